/*
 * What rules ask of sources: counters and their periods, providers of events, logs. The engine
 * merges the rules' needs and gives them to the sources that can meet them.
 */
#pragma once

#include "base/err.h"
#include "model/process_filter.h"

#include <stdbool.h>
#include <stdint.h>

#define NEEDS_MAX_COUNTERS 256u
#define COUNTER_NAME_MAX 400            /* bytes, NUL included */
#define NEEDS_MAX_PROVIDERS 64u
#define NEEDS_MAX_LOGS 16u
#define PROVIDER_NAME_MAX 128           /* bytes, NUL included */
#define LOG_NAME_MAX 300                /* the same; a path may be one */
#define NEEDS_MAX_EVENTS 64u
#define EVENT_NAME_MAX 512              /* the same; a program's path and a symbol may be one */
#define EVENT_FILTER_MAX 512
#define EVENT_FIELD_MAX 64
#define EVENT_TEXTS_MAX 160
#define EVENT_PROCESSES_MAX 256

struct need_counter {
	char name[COUNTER_NAME_MAX];        /* CATEGORY:COUNTER:INSTANCE as the rule gave it */
	uint64_t period_ns;
	bool monitor;                       /* its values are kept in the incident */
};

struct need_provider {
	char name[PROVIDER_NAME_MAX];       /* registered name, GUID, or *EventSourceName */
	uint64_t keywords;                  /* any of these */
	uint8_t level;                      /* 1 critical to 5 verbose */
	bool asked;                         /* by --providers: a later program may have it */
	bool unfiltered;                    /* somebody wants all its events, not just those of
					       need_event.asked */
};

/* One event of a provider, for sources that switch each on by itself: tracepoints, probes. */
struct need_event {
	char provider[PROVIDER_NAME_MAX];
	char name[EVENT_NAME_MAX];
	/*
	 * FIELD OP VALUE as in FieldFilter, with ';' between conditions that must all hold; "" =
	 * all events. A source that can may drop events that do not pass.
	 */
	char filter[EVENT_FILTER_MAX];
	/* Whose events; others may be dropped. */
	struct process_filter whose;
	char id_field[EVENT_FIELD_MAX];     /* what start and stop share, which it must have; "" */
	char texts[EVENT_TEXTS_MAX];        /* of a probe: uprobe_text_linux.h; "" */
	uint32_t texts_ms;                  /* the texts are of what lasts this long; 0 = unknown */
	bool stack;                         /* the stack of the thread goes with it */
	/*
	 * It was asked for by --providers, not by a rule. Then the name may be a pattern with '*',
	 * and of a .NET provider a list of numbers and names, after '!' of those that are not
	 * wanted; what exceeds the ceiling of a second is left out and counted.
	 */
	bool asked;
	char processes[EVENT_PROCESSES_MAX]; /* names and pids, with ';' between; "" = all */
};

struct need_log {
	char name[LOG_NAME_MAX];        /* "Application", "kernel", "journal", or a file's path */
};

struct needs {
	struct need_counter counters[NEEDS_MAX_COUNTERS];
	uint32_t ncounters;
	struct need_provider providers[NEEDS_MAX_PROVIDERS];
	uint32_t nproviders;
	struct need_log logs[NEEDS_MAX_LOGS];
	uint32_t nlogs;
	bool memory;                        /* who made memory grow, where that can be told */
	bool endings;                       /* how processes ended: exit code, signal */
	bool stacks;                        /* of all threads of a process, when a rule fires */
	bool command_lines;                 /* those of new processes, at once */
	bool dotnet_names;               /* .NET programs are asked what their code is called */
	bool perf_maps;                  /* programs are asked to write maps of their jitted code */
	bool assume_exists;              /* what only programs that come later have is no mistake */
	struct need_event events[NEEDS_MAX_EVENTS];
	uint32_t nevents;
};

/* Add a counter, or shorten the period of one that is there; ERR_LIMIT when there are too many. */
int needs_counter(struct needs *n, const char *name, uint64_t period_ns, bool monitor,
		  struct err *err);
/* Add a provider, or more keywords and a finer level to one that is there; names without case. */
int needs_provider(struct needs *n, const char *name, uint64_t keywords, uint8_t level,
		   struct err *err);
/* The same for one of which only what need_event.asked names is wanted. */
int needs_filtered_provider(struct needs *n, const char *name, uint64_t keywords, uint8_t level,
			    struct err *err);
int needs_log(struct needs *n, const char *name, struct err *err);
/* Add an event; the same with the same filter once, then with a stack if one of them wants it. */
int needs_event(struct needs *n, const struct need_event *event, struct err *err);
