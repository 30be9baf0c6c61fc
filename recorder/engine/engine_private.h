/*
 * The engine's state. Each thread has a struct of its own, which nothing else touches:
 *
 *	merge thread     e->merge, e->rules
 *	writer thread    e->writer, e->dedup
 *	any thread       e->shared, under e->shared.lock; the atomics
 *
 * The rest is written before the threads run, or locks for itself.
 */
#pragma once

#include "base/os.h"
#include "engine/dedup_private.h"
#include "engine/engine.h"
#include "engine/feed.h"
#include "engine/merge_private.h"
#include "engine/pending_private.h"
#include "engine/policy_private.h"
#include "engine/rules_private.h"
#include "engine/shared_private.h"
#include "engine/writer_private.h"
#include "symbol/disk.h"
#include "symbol/symbol.h"

struct engine {
	const struct engine_config *cfg;
	const struct capture *capture;       /* cfg's */
	const struct policy *policy;
	struct frames *frames;
	struct processes *processes;
	struct symbols *symbols;
	struct symbol_env symbol_env;
	struct ring *ring;
	struct log *log;
	struct feed feed;
	struct os_thread *writer_thread;     /* started before the merge thread */
	char host[256], host_text[256];      /* a file's: set at its first event */

	struct merge merge;
	struct rules rules;
	struct writer writer;
	struct dedup dedup;
	struct shared shared;

	_Atomic int stop;                    /* enum engine_stop */
	_Atomic bool begun;                  /* every source delivers */
	_Atomic bool merge_ended, writer_ended;
	struct os_wake *wake_control;        /* when one of these is set, and by lines of the log */
};

/* The control thread, until merge and writer have ended. ERR_STOPPED: not everything was stored. */
int engine_control(struct engine *e);
