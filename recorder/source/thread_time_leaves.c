/* The frames that say how a time was spent, and who ended it; see thread_time.h. */
#include "source/thread_time.h"

#include <stdio.h>
#include <string.h>

enum { READIED_BY = TIME_KINDS, NOT_READIED_YET, LEAVES };

/*
 * The offset of a frame that names a thread: its process's number, pid, tid. With the number, a pid
 * that is used again is another frame. A pid of Linux has at most 22 bits (PID_MAX_LIMIT).
 */
#define ID_BITS 22
#define ID_MASK ((1u << ID_BITS) - 1)

struct object *thread_time_leaves(struct frames *frames)
{
	static const struct object_key key = {.kind = OBJECT_JIT, .path = "[thread]"};

	return objects_get(frames, &key, 0);
}

uint32_t thread_time_add_waker(struct object *leaves, const struct process *process, uint32_t tid,
			       struct frame_ref *frames, uint32_t n)
{
	if (!process || process->pid > ID_MASK || tid > ID_MASK || !tid)
		return n;
	frames[n] = (struct frame_ref){.object = leaves,
				       .offset = (uint64_t)process->number << 2 * ID_BITS |
						 (uint64_t)process->pid << ID_BITS | tid};
	return n + 1;
}

/* "sh [dash] (71) thread 72" */
static const char *waker_text(struct processes *processes, uint64_t id,
			      char text[THREAD_TIME_NAME_BYTES])
{
	uint32_t pid = (uint32_t)(id >> ID_BITS) & ID_MASK;
	struct process *process = process_find(processes, pid, UINT64_MAX);
	char label[PROCESS_LABEL_BYTES] = "?";

	if (process && process->number == id >> 2 * ID_BITS)
		process_label(process, label);
	if (process)
		process_unref(process);
	snprintf(text, THREAD_TIME_NAME_BYTES, "%s (%u) thread %u", label, pid,
		 (unsigned)(id & ID_MASK));
	return text;
}

bool thread_time_name(const struct object *leaves, struct processes *processes,
		      const struct frame *frame, char text[THREAD_TIME_NAME_BYTES],
		      struct symbol *out)
{
	static const char *const names[LEAVES] = {
		[TIME_CPU] = "CPU_TIME",	 [TIME_BLOCKED] = "BLOCKED_TIME",
		[TIME_DISK] = "DISK_TIME",	 [TIME_READIED] = "READIED_TIME",
		[TIME_UNKNOWN] = "UNKNOWN_TIME", [READIED_BY] = "READIED_BY",
		[NOT_READIED_YET] = "NOT_READIED_YET", [TIME_LOCK] = "GIL",
	};

	if (!leaves || frame->object != leaves || (!text && frame->offset >= LEAVES))
		return false;
	*out = (struct symbol){.offset = frame->offset,
			       .name = frame->offset < LEAVES ?
					       names[frame->offset] :
					       waker_text(processes, frame->offset, text)};
	return true;
}

uint32_t thread_time_frames(const struct thread_time_piece *piece, struct object *leaves,
			    struct frame_ref *out)
{
	uint32_t most = STACK_MAX_FRAMES / 2 - 1, n = 0, own;

	/* Leaf first: the waker goes below the wait that it ended, as does who has the lock. */
	if (piece->nwaker) {
		n = piece->nwaker < most ? piece->nwaker : most;
		memcpy(out, piece->waker, n * sizeof(*piece->waker));
		if (piece->kind != TIME_LOCK)
			out[n++] = (struct frame_ref){.object = leaves, .offset = READIED_BY};
	} else if (piece->goes_on) {
		out[n++] = (struct frame_ref){.object = leaves, .offset = NOT_READIED_YET};
	}
	out[n++] = (struct frame_ref){.object = leaves, .offset = piece->kind};
	own = piece->nframes < STACK_MAX_FRAMES - n ? piece->nframes : STACK_MAX_FRAMES - n;
	if (own)
		memcpy(out + n, piece->frames, own * sizeof(*piece->frames));
	return n + own;
}
