/*
 * Resolves an address of a trace to an offset in an image, a managed method, or "unknown".
 *
 * In a merged trace, images have the identity of their PDB (GUID and age). Managed code gets its
 * names from method and module records, most of which come at the end of a file; a method wins over
 * the image that contains its bytes. Kernel images (pid 0) belong to every process.
 *
 * Frames of images are OBJECT_PE with the DOS path and the rva as offset. Frames of managed
 * methods are OBJECT_JIT of their process, with the layer of their range as epoch and the address
 * as offset; etw_code_name() names them. Other frames belong to the unknown object, with their
 * address.
 *
 * One thread at a time. After etw_code_settle(), and until something is learned again, any thread
 * may call etw_code_name(). Sources: those of the layouts (etw/class.h).
 */
#pragma once

#include "model/frame.h"
#include "source/etw/state.h"
#include "symbol/reader.h"

#define ETW_IMAGES_MAX (1u << 21)
#define ETW_METHODS_MAX (1u << 22)
#define ETW_MODULES_MAX (1u << 20)

struct etw_code;

/* state and frames are borrowed for the life of the result. */
int etw_code_new(struct etw_state *state, struct frames *frames, struct etw_code **out,
		 struct err *err);
/* now_ns: when its objects are released, on the recorder's clock. NULL allowed. */
void etw_code_free(struct etw_code *c, uint64_t now_ns);

/*
 * Make a copy with only the code that still existed at `since`, for the renewed state. Its
 * managed frames get new epochs, because the same layers may mean other methods. The old one
 * still names the frames that it gave out.
 */
int etw_code_renew(struct etw_code *old, struct etw_state *state, int64_t since,
		   struct etw_code **out, struct err *err);

/* Learn what a record says about code. Call etw_state_learn() for the record first. */
void etw_code_learn(struct etw_code *c, const struct etw_record *record,
		    const struct etw_class *class);
void etw_code_settle(struct etw_code *c);

/* A stack: what to find, and what was found. */
struct etw_located {
	uint32_t pid, naddresses, os_pointer_bytes;
	const uint64_t *addresses;           /* leaf first; see struct etw_whole */
	int64_t ticks;
	bool no_kernel;                      /* leave out its kernel frames */
	/* Until the next one is found; of no more than STACK_MAX_FRAMES addresses. */
	const struct frame_ref *frames;
	uint32_t nframes;
	uint64_t id;                         /* see event.stack_id */
};

/*
 * The frames of a stack. The first address of a stack is the thread's position; the others are
 * return addresses, except the first address of the user part behind a kernel part: it is a
 * position too.
 */
void etw_code_stack(struct etw_code *c, struct etw_located *stack);

/* The frame of an address; kernel: it also gets FRAME_KERNEL. */
void etw_code_locate(struct etw_code *c, uint32_t pid, uint64_t address, int64_t ticks, bool kernel,
		     struct frame_ref *out);
/* The name of a managed frame; false = another frame, or a method without a name. */
bool etw_code_name(const struct etw_code *c, const struct object *object, uint64_t offset,
		   struct symbol *out);

/* How many items full tables have refused; adds the memory of all tables to *bytes. */
uint64_t etw_code_refused(const struct etw_code *c, size_t *bytes);
