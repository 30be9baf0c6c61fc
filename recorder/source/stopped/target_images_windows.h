/*
 * The images of another process, for unwinding its threads: finds the image of an address, its
 * exception directory and UNWIND_INFO, and the code around a thread's position.
 *
 * An image's tables are read from the process's memory at the first lookup in it, and kept; all
 * images together take at most IMAGES_MAX_BYTES. The process's memory is not trusted. One thread.
 */
#pragma once

#include "model/frame.h"
#include "unwind/elf_eh_frame.h"
#include "unwind/pe_pdata.h"

#define IMAGES_MAX 4096u
#define IMAGES_MAX_BYTES ((size_t)256 << 20)

struct target_images;

/*
 * The first refresh lists images.
 *
 * process    a borrowed HANDLE with the rights to query and read
 * is_wow64   a 32-bit program: its 32-bit images and those of its 64-bit part are listed
 */
int target_images_open(void *process, uint32_t pid, bool is_wow64, struct frames *frames,
		       struct target_images **out, struct err *err);
void target_images_close(struct target_images *t, uint64_t now_ns);   /* NULL allowed */

/* Update the list; images that are still loaded keep their tables. ERR_ACCESS, ERR_IO, ... */
int target_images_refresh(struct target_images *t, struct err *err);

/* A pe_find; ctx is a struct target_images. */
const struct pe_tables *target_images_find(void *ctx, uint64_t address, uint32_t *rva);

/* The .eh_frame of the x86 image that holds an address; NULL = none. ctx: struct target_images. */
const struct eh_frame *target_images_eh_frame(void *ctx, uint64_t address);

/* Copy n code bytes, at most 256; false = it is none. ctx is a struct target_images. */
bool target_images_read_code(void *ctx, uint64_t address, uint8_t *to, size_t n);

/* Is the address in the image of that file name? */
bool target_images_is_named(const struct target_images *t, uint64_t address, const char *name);

/* Read the code around an address: an interrupted thread may be in an epilogue there. */
void target_images_code(struct target_images *t, uint64_t address);

enum target_place {
	TARGET_IMAGE,                        /* in a listed image */
	TARGET_GENERATED,                    /* executable memory outside of images */
	TARGET_UNLISTED,                     /* in an image loaded after the last refresh */
	TARGET_NOWHERE,                      /* not in executable memory */
};
/*
 * What an address is. Outside of images it asks Windows, and remembers the answer until a refresh
 * or target_images_forget().
 */
enum target_place target_images_place(struct target_images *t, uint64_t address);
void target_images_forget(struct target_images *t);

/* The frame of an address at this place; its object is kept until close. */
void target_images_frame(struct target_images *t, const struct pe_frame *frame,
			 enum target_place place, struct frame_ref *out);

/* Read n bytes, or up to the first unreadable page. Returns how many. */
size_t target_read(void *process, uint64_t address, void *to, size_t n);
