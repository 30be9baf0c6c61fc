/*
 * The peek: which Python functions a thread is in, read at the moment of its sample.
 *
 * Whoever calls it has stopped the thread, by running in its place on its CPU. What is read later
 * is worthless: frames are reused within microseconds. So this only follows pointers and copies
 * numbers; names are read later (code.h) and are believed only if the stamp, which is read here, is
 * still the code object's.
 *
 * All memory is hostile: pointers are checked, lists and calls have ceilings, which end cycles too.
 *
 * Threads: any; one at a time per cache. Allocates nothing.
 */
#pragma once

#include "managed/python/layout.h"
#include "managed/reader.h"

#define PYTHON_FRAMES_MAX 512u
#define PYTHON_CALLS_MAX 64u                 /* reads of one chain */
#define PYTHON_TSTATES_MAX 512u              /* of one search */
#define PYTHON_INTERPRETERS_MAX 64u
#define PYTHON_OF_THREAD_MAX 4u              /* one for each interpreter that it is in */
#define PYTHON_THREADS_CACHED 256u
#define PYTHON_TEXTS_CACHED 1024u
#define PYTHON_PAGES 2u                      /* of frames: on the heap's stack, and elsewhere */
#define PYTHON_CFRAMES 4u                    /* calls of the evaluator, from the innermost on */
#define PYTHON_NAMED_MAX 8u                  /* code objects of one peek, from the innermost on */
#define PYTHON_NAMED_BYTES 384u
#define PYTHON_TEXT_STAMP 112u               /* of a text: its length, hash and beginning */

/* A process, as whoever peeks must know it. A value: copied freely. */
struct python_target {
	struct python_layout layout;
	uint32_t pid;
	uint32_t serial;                     /* of this program, never used twice */
	bool inner;                          /* its threads have other numbers in its namespace */
	uint64_t head;                       /* address of the pointer to the first interpreter */
	uint64_t current;                    /* before 3.7: of _PyThreadState_Current; else 0 */
	uint64_t gil;                        /* address of its lock; 0 = not known, or none */
};

/* One frame, the innermost first. */
struct python_spot {
	uint64_t code;                       /* address of its code object */
	uint64_t stamp;                      /* hash of its contents; 0 = it could not be read */
	uint64_t anchor;                     /* of the last frame of a call of the evaluator: where
						it is on the C stack; else 0 */
	int32_t position;                    /* in bytes of its instructions; -1 = not begun */
	uint32_t last;                       /* of its call of the evaluator */
};

enum python_peeked {
	PEEKED_WHOLE,
	PEEKED_CUT,                          /* a pointer led nowhere, or a ceiling was reached */
	PEEKED_NOTHING,                      /* the thread is in no Python function */
	PEEKED_OTHER,                        /* the states are another thread's by now */
	PEEKED_MOVED,                        /* the thread ran meanwhile: worthless */
	PEEKED_LATE,                         /* the same, by the lag */
	PEEKED_UNREADABLE,
};

/* What a code object is called, read with the frames: it may be gone a moment later. */
struct python_named {
	uint32_t spot;
	int32_t first_line;
	char text[PYTHON_NAMED_BYTES];       /* its function and file, each with a NUL */
};

struct python_peek {
	enum python_peeked status;
	bool has_gil;                        /* the thread holds the lock; false: not known */
	uint32_t n, nnamed;
	struct python_named named[PYTHON_NAMED_MAX];
	struct python_spot spots[PYTHON_FRAMES_MAX];
};

/* Which thread states belong to a thread. {0} is empty. */
struct python_thread {
	uint32_t serial, tid, n, nothing, skip;
	uint64_t tstates[PYTHON_OF_THREAD_MAX], ids[PYTHON_OF_THREAD_MAX];
	/* Where its chain was: read first; 0 = nowhere. */
	uint64_t pages[PYTHON_PAGES], cframes[PYTHON_CFRAMES];
};

/* Where the texts of a code object were: read together with it. {0} is empty. */
struct python_texts {
	uint64_t code, file, name;
};

struct python_threads {
	struct python_thread threads[PYTHON_THREADS_CACHED];
	struct python_texts texts[PYTHON_TEXTS_CACHED];
};

/*
 * The thread's states, from the cache or, if they are not there, by a search.
 *
 * tid       as in the process's own namespace
 * again     what the cache has is PEEKED_OTHER
 * searched  set when it took more than a look into the cache
 * returns   the thread's entry of the cache, with or without states
 */
struct python_thread *python_find_thread(const struct python_target *t,
					 const struct managed_memory *memory, uint32_t tid,
					 struct python_threads *cache, bool again, bool *searched);

/* The thread (in the process's own namespace) that holds the lock, or held it last; 0: not known */
uint32_t python_gil_holder(const struct python_target *t, const struct managed_memory *memory);

/* Read the chain of a thread that was just found in the cache. */
void python_peek(const struct python_target *t, const struct managed_memory *memory,
		 struct python_thread *thread, struct python_threads *cache,
		 struct python_peek *out);

/* What tells a code object from another one at its address: n of them. stamps[i] 0 = unreadable */
void python_stamps(const struct python_layout *l, const struct managed_memory *memory,
		   const uint64_t *codes, uint32_t n, uint64_t *stamps);
