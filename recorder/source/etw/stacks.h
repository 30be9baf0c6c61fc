/*
 * Binds stacks to their events.
 *
 * ETW writes a stack as separate records after its event: a kernel and a user part, each with
 * addresses or as a key. Here every record waits in a queue. Parts that follow are bound to it, and
 * it leaves the queue with its stack; records keep their order.
 *
 * A trace file goes through twice. ETW_STACKS_SURVEY learns the keys, and the parts that come
 * after their event left the queue; ETW_STACKS_DELIVER gives complete events. Both passes count
 * records instead of reading a clock, so they decide alike. ETW_STACKS_LIVE is a single pass: a
 * record waits at most ETW_STACKS_WAIT_MS of trace time, then leaves with the parts that it has.
 *
 * One thread at a time. Memory: the queue (ceilings below), pending parts, and etw/stack_store.h.
 * Sources: the MOF class StackWalk (docs, ETW) for opcode 32; EVENT_HEADER_EXTENDED_DATA_ITEM; all
 * else from real traces, where these rules leave no part without its event.
 */
#pragma once

#include "base/err.h"
#include "source/etw/class.h"

#include <stdbool.h>

#define ETW_STACKS_HELD_RECORDS 8192u             /* in the queue */
#define ETW_STACKS_HELD_BYTES (3u << 20)          /* of their copies */
#define ETW_STACKS_WAIT_MS 500
#define ETW_STACKS_PENDING_MAX (1u << 18)         /* kernel parts without their user part */
#define ETW_STACKS_THREADS_MAX (1u << 18)
#define ETW_STACKS_LATE_MAX (1u << 24)            /* parts after their event left the queue */

enum etw_stacks_pass { ETW_STACKS_SURVEY, ETW_STACKS_DELIVER, ETW_STACKS_LIVE };

enum etw_stack_state {
	ETW_STACK_ABSENT,                    /* the event has no stack */
	ETW_STACK_WHOLE,
	ETW_STACK_NO_USER,                   /* its user part is missing */
	ETW_STACK_NO_KEY,                    /* a part is a key without definition */
};

/* A record that leaves the queue, with its stack; borrowed until the next call. */
struct etw_whole {
	const struct etw_record *record;
	const struct etw_class *class;       /* from etw_stacks_put() */
	uint32_t tid;                        /* etw_effective_tid() */
	enum etw_stack_state state;
	bool from_runtime;                   /* the CLR walked this stack */
	/*
	 * Leaf first. Kernel and user addresses may alternate: the kernel calls back into
	 * programs.
	 */
	const uint64_t *addresses;
	uint32_t naddresses, os_pointer_bytes;
};

/* What is missing. In a file, orphans are those of the survey. */
struct etw_stacks_count {
	uint64_t orphans;                    /* parts without an event, or too short to name one */
	uint64_t unresolved;                 /* delivered events with an undefined key */
	uint64_t no_user;                    /* delivered events without their user part */
	uint64_t refused;                    /* by a ceiling, or without memory */
};

struct etw_stacks;

int etw_stacks_new(enum etw_stacks_pass pass, int64_t ticks_per_sec, struct etw_stacks **out,
		   struct err *err);
void etw_stacks_free(struct etw_stacks *s);       /* NULL allowed */

/* Put the next record in time order; it is copied. class: from etw_class_find(), NULL allowed. */
void etw_stacks_put(struct etw_stacks *s, const struct etw_record *record,
		    const struct etw_class *class);
/*
 * DELIVER, LIVE: the next record that leaves the queue, or NULL. After each put, call until NULL.
 */
const struct etw_whole *etw_stacks_next(struct etw_stacks *s);
/* After the last record: all queued records may leave. */
void etw_stacks_end(struct etw_stacks *s);
/* Change from SURVEY, at the end of the file, to DELIVER, at its start. */
int etw_stacks_deliver(struct etw_stacks *s, struct err *err);
/* LIVE: the time is now_ticks, even if no record comes. */
void etw_stacks_time(struct etw_stacks *s, int64_t now_ticks);

const struct etw_stacks_count *etw_stacks_counts(const struct etw_stacks *s);
size_t etw_stacks_bytes(const struct etw_stacks *s);   /* all memory */

/* The thread of an event: by class the payload's or the header's tid, or ETW_ID_UNKNOWN. */
uint32_t etw_effective_tid(const struct etw_record *record, const struct etw_class *class);
/* Whether it is a kernel address on a system with pointers of this size. */
bool etw_is_kernel_address(uint64_t address, uint32_t os_pointer_bytes);
