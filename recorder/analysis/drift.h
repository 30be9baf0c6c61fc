/*
 * What is different now: the CPU time of each program and function in a window, against what it was
 * in other windows of the same kind (the same hour of other days), with the spread that those have
 * among themselves. One thread.
 *
 *	drift_add(&d, &in, t0_ns, t1_ns, &err);      those to judge first (njudged), then the others
 *	drift_finish(&d, &err);                      rows are what exceeds the spread
 *	drift_free(&d);
 */
#pragma once

#include "base/text_table.h"
#include "model/incident.h"

#define DRIFT_WINDOWS_MAX 64u                /* the judged ones included */

enum drift_kind { DRIFT_PROGRAM, DRIFT_FUNCTION, DRIFT_INCLUSIVE, DRIFT_KINDS };

struct drift_row {
	const char *name;
	enum drift_kind kind;                /* DRIFT_FUNCTION: its own time, callees apart */
	double now, now_sd, mean, sd;        /* CPUs that it kept busy: 0.5 = half of one */
};

struct drift {
	bool inclusive;                      /* also functions with their callees */
	uint32_t njudged;                    /* of several windows the mean is judged; 0 = 1 */
	struct text_table names;             /* '0' + enum drift_kind, then the name */
	double *sums;                        /* DRIFT_WINDOWS_MAX of CPUs for each name */
	uint32_t sums_cap, nwindows;
	double seconds[DRIFT_WINDOWS_MAX], period_s;
	struct drift_row *rows;              /* after drift_finish(): what grew, then the rest */
	uint32_t nrows;
};

/* Add the window [t0_ns, t1_ns] of an incident. 0, ERR_MEMORY, or ERR_LIMIT for one too many. */
int drift_add(struct drift *d, const struct incident *in, uint64_t t0_ns, uint64_t t1_ns,
	      struct err *err);
/*
 * Judge: a row's mean differs by more than three standard deviations, those of the windows on both
 * sides and of sampling, and by at least 2 % of a CPU.
 */
int drift_finish(struct drift *d, struct err *err);
/*
 * When a row's program or function began (or ceased) to take that time within [t0_ns, t1_ns], which
 * was judged: where both sides differ most, if by more than half of the larger one and by more than
 * chance; else t0_ns. *cpus is what it took from then on.
 */
int drift_onset(const struct drift_row *row, const struct incident *in, uint64_t t0_ns,
		uint64_t t1_ns, uint64_t *since_ns, double *cpus, struct err *err);
void drift_free(struct drift *d);
