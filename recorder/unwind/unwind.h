/*
 * Unwinding: from what the kernel took at the interrupt to a stack of frames.
 *
 * Portable and without system calls. Registers, a copy of stack bytes and the kernel's callchain go
 * in; frames, leaf first, come out with the quality of the walk. The caller says which object an
 * address belongs to and which unwind tables describe it. Every byte may be hostile: the walk ends
 * after STACK_MAX_FRAMES frames or EH_BUDGET instructions.
 *
 * User frames are found in one of two ways:
 *
 *   registers and stack copy   the rules of each object's .eh_frame, of x86-64 and of i386; frame
 *                              pointers in jitted code, where no function is described, and while
 *                              tables are still being loaded
 *   the kernel's callchain     its frame-pointer walk; used when there are no registers, and
 *                              instead of our own frame pointers where it has two frames or more
 *
 * A stack that is deeper than the copy is completed from the thread's last complete stack
 * (struct unwind_memory), else from the live process (unwind_read), else it is truncated.
 *
 * Threads: an unwinder belongs to one. Nothing is allocated after unwinder_new().
 */
#pragma once

#include "model/event.h"
#include "unwind/elf_eh_frame.h"
#include "unwind/managed.h"

/* default limit of bytes read from the live process for one stack */
#define UNWIND_REMOTE_BYTES (256u << 10)
#define UNWIND_REMOTE_MAX_BYTES (1u << 20)
#define UNWIND_MEMORY_PAIRS 128u             /* how many frames next to the root are remembered */

/*
 * The sampled mask must have RSP and RIP, and RBP where the kernel has walked, too. All sixteen
 * make more stacks complete.
 */
#define UNWIND_REGS_NEEDED 0x180u
#define UNWIND_REGS_BETTER 0x1c0u

struct unwind_input {
	const uint64_t *kernel_chain;        /* leaf first; NULL = none */
	uint32_t nkernel;
	const uint64_t *user_chain;          /* the kernel's frame-pointer walk, leaf first */
	uint32_t nuser;
	bool chain_cut;                      /* the kernel stopped at its depth limit */
	bool user_expected;                  /* the thread has user code (it is no kernel thread) */

	uint32_t regs_abi;                   /* 0 = none, 1 = 32-bit, 2 = 64-bit */
	const uint64_t *regs;                /* in the order of the sampled mask; NULL = none */
	uint64_t regs_mask;                  /* perf's sample_regs_user; 0 = not requested */
	const uint8_t *stack;                /* bytes from the stack pointer up; NULL = none */
	uint32_t stack_bytes;                /* the valid ones (dyn_size) */
};

/*
 * A frame in the form that stitching compares: where it ends and where it returns to. Equal pairs
 * in two stacks of a thread are taken as one call that is still in progress, with the same callers.
 */
struct unwind_pair {
	uint64_t cfa;
	uint64_t ip;                         /* of its caller */
	bool interrupted;              /* ip was interrupted by a signal: it is no return address */
};

struct unwind_stack {
	struct frame_ref frames[STACK_MAX_FRAMES];
	uint32_t nframes;
	enum stack_quality quality;
	bool pending;                        /* the tables of a frame were still being loaded */
	uint32_t nframe_pointer;             /* steps that had to follow a frame pointer */

	/*
	 * Where native frames end on the stack: pairs[i] is the end of frame nuser_at + i; valid
	 * until the next walk. npairs 0: not known, or frames of runtimes are among them.
	 */
	const struct unwind_pair *pairs;
	uint32_t npairs, nuser_at;
	uint64_t ip, sp;                     /* of the sample */
	uint64_t end;                        /* nothing was read from here on; 0 = not complete */
};

/* What the caller knows about an address. */
struct unwind_place {
	struct frame_ref ref;                /* object and offset; FRAME_JIT is added for jit */
	const struct eh_frame *tables;       /* of the object; NULL = it has none; borrowed */
	uint64_t vaddr;                      /* the address, counted as in the tables */
	bool jit;                    /* generated code: followed by frame pointers, or not at all */
	bool doubtful;                       /* it may use RBP for other things: see "fp" below */
	bool entry;                          /* where the kernel starts a program */
	bool top;                            /* nothing calls it on its stack, once it calls */
	bool injected;                       /* its caller did not call it, but was interrupted */
	bool pending;                        /* there may be tables; they are being loaded */
	bool managed;                        /* code of a runtime that is known: unwind_managed; */
	struct object *runtime;      /* the object of its functions */
};

/* Fill in what is known; *out comes in with offset = address, its flags, and no object. */
typedef void unwind_find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out);

/*
 * Read bytes of the sampled process as they are now. Called with a page's address, for at most the
 * unwinder's remote_bytes in one stack.
 * returns  how many of the n were read, from the first on; 0 = none
 */
typedef size_t unwind_read(void *ctx, uint64_t address, void *to, size_t n);

/*
 * Name a frame of a runtime's code, whose place is managed, and step to its caller. Its functions
 * become frames of the place's runtime. It is called again for the same frame when a word was
 * missing that can be read now.
 */
typedef enum unwind_result unwind_managed(void *ctx, struct unwind_frame *frame);

struct unwind_caller {
	unwind_find *find;
	unwind_read *read;                   /* NULL: never read remotely */
	unwind_read *code;                   /* reads code, if RBP is not sampled; NULL: never */
	unwind_managed *managed;             /* NULL: no place is managed */
	bool frozen;                         /* memory does not change: a core's */
	void *ctx;
};

/*
 * The last complete stack of a thread, 3 KiB: {0} is empty. Belongs to the caller, who drops it at
 * exec and when the thread ends.
 */
struct unwind_memory {
	uint32_t npairs;                     /* leaf first; the last one's ip is the root frame */
	bool remote;                         /* includes bytes that were read remotely */
	struct unwind_pair pairs[UNWIND_MEMORY_PAIRS];
};

/* Keep a stack; of a longer one, the pairs next to the root. */
void unwind_remember(struct unwind_memory *memory, const struct unwind_pair *pairs, uint32_t n,
		     bool remote);

/*
 * The callers of a pair.
 *
 * cfa      of the frame that the pair's ip is in; 0 = unknown
 * n        their number
 * returns  their pairs, the nearest caller first; NULL when the pair is not in the memory
 */
const struct unwind_pair *unwind_stitch(const struct unwind_memory *memory,
					const struct unwind_pair *pair, uint64_t cfa, uint32_t *n);

struct unwinder;

/*
 * remote_bytes   ceiling of remote reading per stack; UNWIND_REMOTE_BYTES, at most _MAX_BYTES
 * returns        0 or ERR_MEMORY
 */
int unwinder_new(uint32_t remote_bytes, struct unwinder **out, struct err *err);
void unwinder_free(struct unwinder *u);      /* NULL allowed */

/*
 * Unwind one sample. Quality:
 *
 *   complete   the root was reached: its return address is undefined in the tables, or zero; or
 *              frame pointers end at a program's entry; or there is no user stack (any more)
 *   stitched   callers taken from memory     remote   the root was reached with remote bytes
 *   fp         the frame pointers or the kernel's chain ended, perhaps at the root. Or the root was
 *              reached through a place.doubtful: code that does not save RBP may be missing
 *   truncated  deeper than the copy or STACK_MAX_FRAMES. When remote reading did not lead to the
 *              root, its frames are dropped: the process has moved on
 *   broken     a frame makes no sense: not rising, misaligned, in no mapping, bad tables
 *
 * Bytes of a frozen process that were read remotely are as good as those of the copy.
 *
 * When out->pending is set the caller may keep the sample and walk it again once tables are loaded.
 *
 * memory   of the sampled thread; used for stitching, and replaced by a complete stack; NULL = none
 */
void unwinder_walk(struct unwinder *u, const struct unwind_input *in,
		   const struct unwind_caller *caller, struct unwind_memory *memory,
		   struct unwind_stack *out);
