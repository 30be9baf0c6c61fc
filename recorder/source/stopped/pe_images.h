/*
 * The images of a Windows process, for unwinding its threads: finds the image of an address, its
 * exception directory and UNWIND_INFO, and the code around a thread's position; walks stacks of
 * x64 and x86 code with them. The process lives, or a dump has its memory.
 *
 * An image's tables are read from the process's memory at the first lookup in it, and kept; all
 * images together take at most IMAGES_MAX_BYTES. The memory is not trusted. Portable. One thread.
 */
#pragma once

#include "model/event.h"
#include "model/frame.h"
#include "unwind/pe_pdata.h"

#define IMAGES_MAX 4096u
#define IMAGES_MAX_BYTES ((size_t)256 << 20)

struct pe_images;

enum pe_place {
	PE_IN_IMAGE,                         /* in a listed image */
	PE_GENERATED,                        /* executable memory outside of images */
	PE_UNLISTED,                         /* in an image that is not listed (yet) */
	PE_NOWHERE,                          /* not in executable memory */
};

struct pe_region {
	uint64_t from, to;
	enum pe_place place;
};

/* Where its memory comes from. */
struct pe_process {
	/* Read n bytes, or up to the first that is missing; how many. */
	size_t (*read)(void *ctx, uint64_t address, void *to, size_t n);
	/* What holds an address outside of listed images. Answers are kept: pe_images_forget(). */
	struct pe_region (*region)(void *ctx, uint64_t address);
	void *ctx;
};

int pe_images_open(const struct pe_process *process, uint32_t pid, struct frames *frames,
		   struct pe_images **out, struct err *err);
void pe_images_close(struct pe_images *t, uint64_t now_ns);   /* NULL allowed */

/*
 * List the images: begin, note each, end. Those that are still there keep their tables; those that
 * were not noted are dropped.
 *
 * key      what identifies it (build_id, or dev and ino); NULL = its memory says it
 */
void pe_images_begin(struct pe_images *t);
int pe_images_note(struct pe_images *t, uint64_t base, uint32_t nbytes, const char *path,
		   const struct object_key *key, struct err *err);
void pe_images_end(struct pe_images *t);
void pe_images_forget(struct pe_images *t);

/* A thread, as it was when its stack was copied. */
struct pe_stack {
	struct pe_registers regs;
	uint8_t *bytes;                      /* the caller's */
	uint64_t start;
	uint32_t nbytes;
	bool cut;                            /* the stack is longer than the copy */
	bool is_32_bit;
	uint64_t switching;                  /* in 64-bit code where regs may be old; 0 = no */
	uint64_t time_ns, suspended_ns;
};

struct pe_walked {
	struct pe_frame walked[STACK_MAX_FRAMES];
	struct frame_ref frames[STACK_MAX_FRAMES];   /* objects live until close */
	uint64_t addresses[STACK_MAX_FRAMES];
	uint32_t nframes;
	enum stack_quality quality;
	bool unlisted;                       /* an image is missing: list them again, walk again */
};

/*
 * Walk a copy and resolve its frames, leaf first. A return address outside of code ends the stack
 * before it.
 */
void pe_images_walk(struct pe_images *t, const struct pe_stack *stack, struct pe_walked *out);
