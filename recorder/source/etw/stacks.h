/*
 * Which event a stack belongs to.
 *
 * ETW writes a stack as records of its own that follow their event, a kernel and a user part apart,
 * whole or as keys. Here every record waits in a line; the parts that follow are bound to it, and it
 * leaves the line with its stack, in the order in which it came.
 *
 * A trace file is put through twice: ETW_STACKS_SURVEY learns the keys and those parts that come
 * after their event has left the line, ETW_STACKS_DELIVER gives whole events. Both passes decide by
 * numbers of records, never by a clock, so they agree. ETW_STACKS_LIVE is one pass: a record waits
 * ETW_STACKS_WAIT_MS of trace time at most, then goes on with what it has, counted.
 *
 * One thread at a time. Memory: the line (ceilings below), pending parts, and etw/stack_store.h.
 * Little-endian hosts. Source: design page etl-format.md sections 7 to 9.
 */
#ifndef SOURCE_ETW_STACKS_H
#define SOURCE_ETW_STACKS_H

#include "base/err.h"
#include "source/etw/class.h"

#include <stdbool.h>

#define ETW_STACKS_HELD_RECORDS 8192u             /* in the line */
#define ETW_STACKS_HELD_BYTES (3u << 20)          /* of their copies */
#define ETW_STACKS_WAIT_MS 500
#define ETW_STACKS_PENDING_MAX (1u << 18)         /* kernel parts that wait for a user part */
#define ETW_STACKS_THREADS_MAX (1u << 18)
#define ETW_STACKS_LATE_MAX (1u << 24)            /* parts that came after their event had left */

enum etw_stacks_pass { ETW_STACKS_SURVEY, ETW_STACKS_DELIVER, ETW_STACKS_LIVE };

enum etw_stack_state {
	ETW_STACK_ABSENT,                    /* the event has none */
	ETW_STACK_WHOLE,
	ETW_STACK_NO_USER,                   /* its user part never came */
	ETW_STACK_NO_KEY,                    /* a part is a key that is never defined */
};

/* A record that leaves the line; borrowed until the next call. */
struct etw_whole {
	const struct etw_record *record;
	const struct etw_class *class;       /* as it was put */
	uint32_t tid;                        /* whose it is: of the payload where the header has none */
	enum etw_stack_state state;
	bool from_runtime;                   /* the CLR walked this stack */
	/* Leaf first. Each for itself is the kernel's or not: it may call back into the program. */
	const uint64_t *addresses;
	uint32_t naddresses, os_pointer_bytes;
};

/* What was met. In a file keys and orphans are those of the survey. */
struct etw_stacks_count {
	uint64_t records, whole_stacks, kernel_parts, user_parts;  /* opcode 32, by what they are */
	uint64_t kernel_keys, user_keys;     /* uses: opcodes 37 and 38 */
	uint64_t deletes, rundowns;          /* definitions: 35 and 36 */
	uint64_t item_stacks, runtime_stacks;
	uint64_t orphans, runtime_orphans;   /* parts without an event */
	uint64_t twice;                      /* parts of an event that had one already */
	uint64_t late;                       /* came after the event had left the line */
	uint64_t unresolved;                 /* keys of delivered events that are never defined */
	uint64_t no_user;                    /* delivered without the user part that was to come */
	uint64_t hurried;                    /* live: left before its time because the line was full */
	uint64_t refused;                    /* by a ceiling, or without memory */
	uint64_t malformed;
};

struct etw_stacks;

int etw_stacks_new(enum etw_stacks_pass pass, int64_t ticks_per_sec, struct etw_stacks **out,
		   struct err *err);
void etw_stacks_free(struct etw_stacks *s);       /* NULL allowed */

/* The next record in time order; class as etw_class_find() says, NULL allowed. Copies it. */
void etw_stacks_put(struct etw_stacks *s, const struct etw_record *record,
		    const struct etw_class *class);
/* DELIVER, LIVE: the next that leaves the line, or NULL; call until NULL after each put. */
const struct etw_whole *etw_stacks_next(struct etw_stacks *s);
/* No record follows: all that is in the line may leave. */
void etw_stacks_end(struct etw_stacks *s);
/* From SURVEY, at the end of the file, to DELIVER, at its start. */
int etw_stacks_deliver(struct etw_stacks *s, struct err *err);
/* LIVE: it is now this late, also when no record comes. */
void etw_stacks_time(struct etw_stacks *s, int64_t now_ticks);

void etw_stacks_counts(const struct etw_stacks *s, struct etw_stacks_count *out);
size_t etw_stacks_bytes(const struct etw_stacks *s);   /* all memory that it takes */

/* Whose event it is: the payload's tid for classes without one in the header; or ETW_ID_UNKNOWN. */
uint32_t etw_effective_tid(const struct etw_record *record, const struct etw_class *class);
/* Whether an address is the kernel's, on a system with pointers of this size. */
bool etw_is_kernel_address(uint64_t address, uint32_t os_pointer_bytes);

#endif
