/*
 * What runtimes tell of themselves beside collections (report_events.h): compiled methods,
 * exceptions by type, waits for locks by where they wait.
 *
 * Call event_samples_add() first: then each event with a stack has a sample of STREAM_EVENT.
 */
#pragma once

#include "model/incident.h"

/* ---- compiled methods ------------------------------------------------------------------------ */

#define JIT_TIERS 8u
extern const char *const jit_tiers[JIT_TIERS];       /* "QuickJitted", as PerfView calls them */

struct jit_method {
	uint32_t process;                    /* UINT32_MAX = not known */
	const char *class, *name;
	double il_bytes, ms;                 /* NaN: its beginning was not recorded */
	uint64_t native_bytes, time_ns;
	uint32_t tier;
};

/*
 * Methods that were compiled, from Method/JittingStarted to Method/LoadVerbose, the longest first.
 * Code that was compiled before, or that is no method's, is left out. Free *out with free().
 */
int jit_methods(const struct incident *in, struct jit_method **out, uint32_t *n, struct err *err);

/* ---- events by where they happen ------------------------------------------------------------- */

struct event_site {
	uint32_t process;
	const char *what;                    /* an exception's type; the lock's site */
	uint32_t stack;                      /* of the first of them; STACK_NONE */
	uint32_t count;
	uint64_t first_ns, last_ns;
	uint64_t waited_ns, longest_ns;      /* of waits; of those whose end was recorded */
	uint32_t open;                       /* whose end was not */
};

/* Exceptions by process, type and stack, the most frequent first; incident_free() frees texts. */
int exception_sites(struct incident *in, struct event_site **out, uint32_t *n, struct err *err);
/* Waits (Contention/Start to Contention/Stop) by process and site, the longest sum first. */
int contention_sites(struct incident *in, struct event_site **out, uint32_t *n, struct err *err);
