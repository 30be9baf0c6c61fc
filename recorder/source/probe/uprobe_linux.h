/*
 * Where probes in programs go: functions by name, and the probes that programs contain (USDT).
 * Reads the program's file, which may hang: programs_linux.h asks without waiting.
 *
 *	uprobe  /usr/sbin/mysqld:dispatch_command   the function's first instruction
 *	                                            NAME+0x1c: so far behind it; NAME%return: its
 *	                                            end; NA*: the first function that begins so
 *	usdt    /usr/bin/python3.11:python:gc__start
 *
 * In Go functions the stack moves, so a return cannot be probed (the program would crash), and it
 * is the goroutine that goes from a start to its stop, on whatever thread. C functions of a Go
 * program are like any others.
 */
#pragma once

#include "model/event.h"
#include "source/conditions.h"
#include "source/ring/perf_record.h"
#include "symbol/stapsdt.h"

#define UPROBE_PLACES_MAX 16u                /* a compiler may make several places of one probe */
#define UPROBE_PATH_MAX 400

struct uprobe_place {
	uint64_t offset, semaphore;          /* offsets in the file; semaphore 0 = none */
	unsigned narguments;
	struct stapsdt_argument arguments[STAPSDT_ARGUMENTS_MAX];
};

#define UPROBE_TEXTS_OF_RULE 2u
#define UPROBE_TEXTS_MAX 4u                  /* of all rules on a probe */
#define UPROBE_TEXT_BYTES 104u
#define UPROBE_DEREFS_MAX 4u

/* A text in the program's memory; see uprobe_text_linux.h. */
struct uprobe_text {
	char name[24];
	uint8_t reg, n;
	int32_t offsets[UPROBE_DEREFS_MAX];
};

struct uprobe {
	char path[UPROBE_PATH_MAX];
	int file;                            /* its descriptor, -1 = none */
	bool is_usdt, is_return;
	bool is_go;                          /* a Go function, called with registers */
	bool has_no_registers;               /* one whose arguments are on the stack */
	unsigned ntexts;
	uint64_t texts_late_ns;              /* read later than this, they are not told */
	struct uprobe_text texts[UPROBE_TEXTS_MAX];
	unsigned n;
	struct uprobe_place places[UPROBE_PLACES_MAX];
};

/* "uprobe" or "usdt". */
bool uprobe_provider(const char *provider);

/*
 * name: as above. out->file stays open, for the caller to close.
 * returns  0; ERR_USAGE when there is no such file, function or probe, with the nearest names
 */
int uprobe_resolve(const char *provider, const char *name, struct uprobe *out, struct err *err);

/* perf's type number of uprobes; ERR_UNSUPPORTED: this kernel has none. */
int uprobe_pmu(uint32_t *type, struct err *err);

/* List the probes of a file; one() as in stapsdt_each(). ERR_NOT_FOUND: it has none. */
int uprobe_list(const char *path, stapsdt_one *one, void *ctx, struct err *err);

/*
 * Read the fields of a hit: Arg1 ... by a function's calling convention (of C, or of Go since 1.18,
 * with Goroutine) or the notes of the probe, Ret at a return. Arguments in memory are known only
 * with a copy of the stack that holds them.
 * returns how many
 */
unsigned uprobe_fields(const struct uprobe *probe, unsigned place, const struct perf_record *r,
		       struct event_field out[STAPSDT_ARGUMENTS_MAX]);

/* List the fields that its hits have, for checking rules. returns how many */
uint32_t uprobe_field_names(const struct uprobe *probe,
			    struct known_field out[STAPSDT_ARGUMENTS_MAX]);

/* perf's number of the register that a field of a function's start is; false = none. */
bool uprobe_register(const struct uprobe *probe, const char *field, uint8_t *reg);

/* A register of a record by perf's number; false = the record lacks it. */
bool perf_record_register(const struct perf_record *r, unsigned reg, uint64_t *value);
/* n bytes of its copy of the stack; false = they are not in it. */
bool perf_record_stack(const struct perf_record *r, uint64_t at, void *to, size_t n);
