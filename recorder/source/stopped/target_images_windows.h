/*
 * The images of another process, for unwinding its threads: which one holds an address, its exception
 * directory and UNWIND_INFO, the code around where a thread stands.
 *
 * An image's tables are read from the process's memory once, when an address in it is first asked for, and
 * kept, within IMAGES_MAX_BYTES for all. What the process has in its memory may be anything. One thread.
 */
#ifndef SOURCE_TARGET_IMAGES_WINDOWS_H
#define SOURCE_TARGET_IMAGES_WINDOWS_H

#include "model/frame.h"
#include "unwind/pe_pdata.h"

#define IMAGES_MAX 4096u
#define IMAGES_MAX_BYTES ((size_t)256 << 20)

struct target_images;

/* process: a HANDLE with the rights to query and read, borrowed. images are listed by the first refresh. */
int target_images_open(void *process, uint32_t pid, struct frames *frames, struct target_images **out,
		       struct err *err);
void target_images_close(struct target_images *t, uint64_t now_ns);   /* NULL allowed */

/* What the process has loaded now; images that are still there keep what was read. ERR_ACCESS, ERR_IO, ... */
int target_images_refresh(struct target_images *t, struct err *err);

/* A pe_find; ctx is the struct target_images. */
const struct pe_tables *target_images_find(void *ctx, uint64_t address, uint32_t *rva);

/* Have the code around an address at hand, where an interrupted thread may be in an epilogue. */
void target_images_code(struct target_images *t, uint64_t address);

enum target_place {
	TARGET_IMAGE,                        /* in a listed image */
	TARGET_GENERATED,                    /* executable memory outside of images */
	TARGET_UNLISTED,                     /* an image that was not there at the last refresh */
	TARGET_NOWHERE,                      /* no code can be there */
};
/* What there is at an address. Asks the system for memory outside of images; remembers it until a refresh
   or target_images_forget(). */
enum target_place target_images_place(struct target_images *t, uint64_t address);
void target_images_forget(struct target_images *t);

/* The frame of an address as place said; the object is kept until close. */
void target_images_frame(struct target_images *t, const struct pe_frame *frame, enum target_place place,
			 struct frame_ref *out);

/* At most n bytes from an address on: whole pages until one cannot be read. Returns how many. */
size_t target_read(void *process, uint64_t address, void *to, size_t n);

#endif
