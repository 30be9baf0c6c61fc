/*
 * CPU time of programs by unit, container, pod and service (model/home.h), for status and metrics.
 *
 * Whoever makes control groups chooses their names, so rows are bounded in number and in bytes. For
 * a new one, rows without a sample for HOMES_IDLE_NS go; else its time counts as "(other)".
 */
#pragma once

#include "base/json.h"
#include "base/os.h"
#include "model/process.h"

#define HOMES_MAX 200u
#define HOMES_MAX_BYTES (20u << 10)          /* a status is one line of OS_IPC_MAX_BYTES */
#define HOMES_IDLE_NS (600 * NS_PER_SEC)
#define HOMES_OTHER "(other)"

struct homes {
	struct os_mutex *lock;               /* NULL = nothing is counted */
	struct home_row {
		char *labels;                /* members of a JSON object, "" = none; NULL = free */
		uint32_t age;                /* of its place: differs once another row has it */
		uint64_t last_ns;
		_Atomic uint64_t cpu_ns;
	} rows[HOMES_MAX];
	uint32_t n;
	size_t bytes;                        /* of all labels */
	_Atomic uint64_t other_ns;
};

int homes_init(struct homes *h, struct err *err);
void homes_free(struct homes *h);
/* Merge thread: a sample of a process, or of none, with this weight. */
void homes_add(struct homes *h, struct process *process, double weight_ns, uint64_t now_ns);
/* Any thread: objects with the labels that a row has, and "cpu_s". */
void homes_put(struct homes *h, struct json *j);
