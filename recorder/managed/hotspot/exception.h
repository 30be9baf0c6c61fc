/*
 * What an exception object says: its class and the message that it was made with.
 *
 * Source: OpenJDK, src/hotspot/share/oops (oop, markWord, instanceKlass, fieldInfo, arrayOop). The
 * offsets of Throwable's and String's fields are taken from their classes in the target.
 *
 * The functions may wait for the target: tasks call them.
 */
#pragma once

#include "managed/hotspot/layout.h"

/*
 * How an object says its class. Narrow is tried first: where classes lie below 4 GB, what is narrow
 * may be read as wide.
 */
enum hotspot_class_way { CLASS_NARROW, CLASS_WIDE, CLASS_IN_MARK, CLASS_WAYS };

/* Where the parts of exceptions are; {0} = not known yet. */
struct hotspot_exceptions {
	uint64_t throwable;                  /* the class java.lang.Throwable; 0 = all unknown */
	enum hotspot_class_way way;
	bool wide;                           /* references take 8 bytes */
	uint32_t message;                    /* in a Throwable; 0 = unknown */
	uint32_t value, coder;               /* in a String; 0 = unknown */
};

/*
 * Read the exception at this address. known: filled in at the first one.
 * returns  whether there is one; out->message is "" when it has none or it cannot be read
 */
bool hotspot_exception_read(const struct hotspot_layout *l, const struct managed_memory *memory,
			    uint64_t object, struct hotspot_exceptions *known,
			    struct managed_thrown *out);

/*
 * How many collections there have been, and the heap that counts them; 0 = this JVM does not say.
 */
uint64_t hotspot_collections(const struct hotspot_layout *l, const struct managed_memory *memory,
			     uint64_t *heap);
