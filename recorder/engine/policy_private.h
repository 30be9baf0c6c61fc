/*
 * How live events and those of a trace file are treated. Live recording waits for nobody: what does
 * not fit into memory is given up and counted. Reading a file waits for the store and loses
 * nothing. What differs stands in this table; no other file of the engine asks where events come
 * from.
 */
#pragma once

#include "engine/shared_private.h"

struct engine;
struct engine_config;
struct firing;
struct window_end;

struct policy {
	const char *activity;                /* "recording" */
	const char *starts;                  /* "recording had begun": why a window starts late */
	const char *full;                    /* "the store": what too many incidents wait for */
	bool by_clock;                       /* events come as they happen, by the real clock */
	bool foreign;                        /* events of another time, and maybe another machine */
	bool one_source;                     /* in order already: no event waits for a watermark */
	bool loses_nothing;                  /* the merge thread waits for the writer */
	bool in_background;                  /* threads yield to the machine's other work */
	bool rules_pause;                    /* no rule fires in the window of its own incident */
	bool rules_persist;                  /* their states are stored, for the next run */
	enum engine_stop sources_ended;      /* why the run ends when every source has */
	uint64_t idle_ns;                    /* pause of the merge thread; 0 = queues wake it */
	uint64_t settle_ns;                  /* how long one incident waits for names, in all */

	/* Control thread, before the others run; NULL = nothing to do. */
	void (*start)(struct engine *e);
	/* Merge thread, at the first event, unless time has started; NULL = nothing to do. */
	void (*begin)(struct engine *e, uint64_t first_ns);
	/* Any thread: the wall clock at a moment of the recorder clock; 0 = not known. */
	uint64_t (*wall_ns)(const struct engine *e, uint64_t time_ns);
	/* Merge thread: whether one more incident can be kept; may wait. *most: their limit. */
	bool (*has_room)(struct engine *e, uint32_t *most);
	/* Merge thread: an incident was made of this firing. */
	void (*fired)(struct engine *e, const struct firing *f);
	/* Merge thread: bring what incidents hold beyond the ring below its ceiling. */
	void (*limit_held)(struct engine *e, uint64_t evicted_until_ns);
	/* Merge thread: the run ends; say how open windows end. why->cut may point to text. */
	void (*end)(struct engine *e, enum engine_stop how, char *text, size_t n,
		    struct window_end *why);
	/* Merge thread: whether a last incident is made of what is held. */
	bool (*wants_last)(const struct engine *e, enum engine_stop how);
};

extern const struct policy live_policy;
extern const struct policy replay_policy;    /* as live, in the time of events: for tests */
extern const struct policy file_policy;

const struct policy *policy_of(const struct engine_config *cfg);
