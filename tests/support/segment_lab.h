/*
 * Tables and an open segment to test the model with: one program "app" (pid 100) with threads 100
 * and 101, and frames that are letters: 'a' is offset 10 of /opt/app, 'b' 11, and so on.
 *
 *	seglab_sample(&lab, 10, 0, "abc");      at 10 ns, thread 0, a called b called c
 *	segment = seglab_seal(&lab);
 *
 * Functions that return int or a pointer do not fail a test by themselves, so that alloc_walk() can
 * use them; seglab_open() after a failure is closed as after a success.
 */
#pragma once

#include "model/segment.h"

struct seglab {
	struct frames *frames;
	struct processes *processes;
	struct segment_builder *builder;
	struct object *object;
	struct process *app;
	struct thread *threads[2];
};

int seglab_open(struct seglab *lab);
void seglab_close(struct seglab *lab);

/* The node of a stack; STACK_NONE for "". */
uint32_t seglab_stack(struct seglab *lab, const char *root_first);
int seglab_sample(struct seglab *lab, uint64_t time_ns, unsigned thread, const char *root_first);
/* NULL without memory or when there is nothing. */
struct segment *seglab_seal(struct seglab *lab);

/* The frame or thread with a local index of a segment. */
struct frame *seglab_frame(struct seglab *lab, const struct segment *s, uint32_t local);
struct thread *seglab_thread(struct seglab *lab, const struct segment *s, uint32_t local);

/* One sealed segment of n samples of stack "ab", 1,000 ns apart from start_ns on. */
struct segment *seglab_segment(struct seglab *lab, uint64_t start_ns, uint32_t n);

/* Where its columns begin. */
size_t seglab_head_bytes(const struct segment *s);
/*
 * The bytes of a segment with its columns as they are instead of compressed: what a test or a
 * fuzzer changes should reach the columns. Returns how many; 0 when they do not fit.
 */
size_t seglab_unpack(const struct segment *s, uint8_t *out, size_t room);

/* Events of each kind of contents: names, fields of every type, extreme numbers. 0 or an error. */
int seglab_rich(struct seglab *lab);
