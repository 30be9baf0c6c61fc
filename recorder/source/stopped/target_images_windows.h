/*
 * The images and the memory of another process of Windows that lives. One thread.
 */
#pragma once

#include "source/stopped/pe_images.h"

struct target_images {
	void *process;                       /* a borrowed HANDLE: to query and read */
	uint32_t pid;
	bool is_wow64;                       /* list the images of its 64-bit part, too */
	struct pe_images *images;
};

/* Its address stays the same until close. The first refresh lists images. */
int target_images_open(void *process, uint32_t pid, bool is_wow64, struct frames *frames,
		       struct target_images *out, struct err *err);
void target_images_close(struct target_images *t, uint64_t now_ns);   /* an empty one is allowed */

/* Update the list. ERR_ACCESS, ERR_IO, ... */
int target_images_refresh(struct target_images *t, struct err *err);

/* Read n bytes, or up to the first unreadable page. Returns how many. */
size_t target_read(void *process, uint64_t address, void *to, size_t n);
