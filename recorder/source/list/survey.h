/*
 * Which of the processes that run now will have incomplete stacks or missing names, and why.
 *
 * For people who look before the night (check), not for recording. Looking at a process can hang: its
 * files may lie on a network that is gone, its memory map may be locked. So a thread of its own does
 * it; when the time is over it is left behind, and what it found until then is told, with what it
 * was looking at.
 */
#ifndef SOURCE_SURVEY_H
#define SOURCE_SURVEY_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SURVEY_MAX_NS 2000000000ULL
#define SURVEY_PROCESSES_MAX 4096u
#define SURVEY_GROUPS_MAX 512u
#define SURVEY_NAME_BYTES 64

enum survey_cause {
	SURVEY_JVM,                   /* without -XX:+PreserveFramePointer */
	SURVEY_NO_TABLES,             /* program or library without .eh_frame_hdr */
	SURVEY_32_BIT,
	SURVEY_REPLACED,              /* maps files that were deleted or replaced since */
	SURVEY_UNREADABLE,            /* for this user */
	SURVEY_GO,                    /* no tables, but frame pointers everywhere */
	SURVEY_JIT,                   /* jitted code without a perf map: names are missing */
	SURVEY_NO_PERF_DATA,          /* a JVM whose pauses nobody sees */
	SURVEY_NO_DIAGNOSTICS,        /* a .NET program whose events nobody sees */
	SURVEY_JAVA_PROBES,           /* a JVM whose pauses are seen by probes */
	SURVEY_JAVA,                  /* and those that are seen: all is well */
	SURVEY_DOTNET,
	SURVEY_PYTHON,                /* CPython whose collections are seen, by probes */
	SURVEY_NO_PYTHON_PROBES,
	SURVEY_NODE,                  /* the same of V8's */
	SURVEY_NO_NODE_PROBES,
	SURVEY_CAUSES,
};

/* Those that say nothing bad of stacks and names. */
#define SURVEY_FINE (1u << SURVEY_GO | 1u << SURVEY_JAVA | 1u << SURVEY_DOTNET | 1u << SURVEY_NO_PERF_DATA | \
		     1u << SURVEY_JAVA_PROBES | 1u << SURVEY_PYTHON | 1u << SURVEY_NO_PYTHON_PROBES | \
		     1u << SURVEY_NODE | 1u << SURVEY_NO_NODE_PROBES | 1u << SURVEY_NO_DIAGNOSTICS)

/* The processes of one name that have one cause. */
struct survey_group {
	enum survey_cause cause;
	char name[SURVEY_NAME_BYTES]; /* of the program; "program (library)" */
	uint32_t pid;                 /* of the first */
	uint32_t n;
};

struct survey {
	struct survey_group groups[SURVEY_GROUPS_MAX];
	uint32_t ngroups;
	uint32_t processes, looked_at;       /* kernel threads and zombies do not count */
	uint32_t affected;                   /* that have a cause which is none of SURVEY_FINE */
	char stuck_at[SURVEY_NAME_BYTES + 16];   /* "name (pid)" when the time was over there; "" */
};

/*
 * Look at all processes for at most limit_ns.
 *
 * out      untouched on failure; 40 KB
 * returns  0; ERR_UNSUPPORTED on hosts where this is no question; ERR_MEMORY, ERR_IO
 */
int survey_run(uint64_t limit_ns, struct survey *out, struct err *err);

/* "jvm", "no-unwind-tables", ...; what it means and what to do, one sentence, for who is root or not. Portable. */
const char *survey_cause_name(enum survey_cause cause);
const char *survey_cause_text(enum survey_cause cause, bool is_root);

/* ---- for survey_linux.c and tests --------------------------------------------------------------- */

/* What is known of a process. */
struct survey_facts {
	bool unreadable, is_32_bit, is_go, is_jvm, keeps_frame_pointers, has_perf_map;
	bool without_tables;          /* the program or a library */
	bool replaced;                /* a mapped file is not there any more */
	bool is_dotnet, has_perf_data, has_gc_probes, has_diagnostics;
	bool is_python, is_node;      /* has_gc_probes: in it or in its libpython, libnode */
	bool runtime;                 /* a known one that jits: node, .NET, a JVM */
	uint64_t jit_bytes;           /* executable memory without a file */
};

/* Bits 1 << enum survey_cause. */
uint32_t survey_judge(const struct survey_facts *facts);

/* Count a process in its group; silently not beyond SURVEY_GROUPS_MAX, but in affected. */
void survey_add(struct survey *s, enum survey_cause cause, const char *name, uint32_t pid);

#endif
