/*
 * Which running processes will have incomplete stacks or missing names, and why.
 *
 * For `recorder check`, not for recording. Looking at a process can hang: its files may be on a
 * network mount that is gone, or its memory map may be locked. So a thread of its own looks; when
 * the time is over that thread is left behind, and the result holds what it found and which process
 * it was looking at.
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SURVEY_MAX_NS 2000000000ULL
#define SURVEY_PROCESSES_MAX 4096u
#define SURVEY_GROUPS_MAX 512u
#define SURVEY_NAME_BYTES 64

enum survey_cause {
	SURVEY_JVM,                   /* OpenJ9 */
	SURVEY_NATIVE_IMAGE,          /* Java compiled ahead of time by GraalVM */
	SURVEY_NO_TABLES,             /* program or library without .eh_frame */
	SURVEY_REPLACED,              /* maps files that were deleted or replaced */
	SURVEY_UNREADABLE,            /* this user may not read them */
	SURVEY_INTERPRETER,           /* one whose own stacks no frame reader knows */
	SURVEY_GO,                    /* no tables, but frame pointers everywhere */
	SURVEY_JIT,                   /* jitted code without a perf map: names are missing */
	SURVEY_NO_PERF_DATA,          /* a JVM whose pauses cannot be seen */
	SURVEY_NO_DIAGNOSTICS,        /* a .NET program whose events cannot be seen */
	SURVEY_JAVA_PROBES,           /* a JVM whose pauses are seen by probes */
	SURVEY_JAVA,                  /* a JVM whose pauses are seen: all is well */
	SURVEY_DOTNET,
	SURVEY_PYTHON,                /* CPython whose collections probes see */
	SURVEY_NO_PYTHON_PROBES,
	SURVEY_NODE,                  /* Node.js whose collections probes see */
	SURVEY_NO_NODE_PROBES,
	SURVEY_CAUSES,
};

/* Causes that do no harm to stacks and names. */
#define SURVEY_FINE                                                                              \
	(1u << SURVEY_GO | 1u << SURVEY_JAVA | 1u << SURVEY_DOTNET | 1u << SURVEY_NO_PERF_DATA | \
	 1u << SURVEY_JAVA_PROBES | 1u << SURVEY_PYTHON | 1u << SURVEY_NO_PYTHON_PROBES |        \
	 1u << SURVEY_NODE | 1u << SURVEY_NO_NODE_PROBES | 1u << SURVEY_NO_DIAGNOSTICS)

/* Processes of one name that share one cause. */
struct survey_group {
	enum survey_cause cause;
	char name[SURVEY_NAME_BYTES]; /* "program" or "program (library)" */
	uint32_t pid;                 /* of the first process */
	uint32_t n;
};

struct survey {
	struct survey_group groups[SURVEY_GROUPS_MAX];
	uint32_t ngroups;
	uint32_t processes, looked_at;       /* kernel threads and zombies do not count */
	uint32_t affected;                   /* with a cause outside SURVEY_FINE */
	char stuck_at[SURVEY_NAME_BYTES + 16];   /* "name (pid)" if time ran out there; "" */
};

/*
 * Look at all processes for at most limit_ns.
 *
 * out      untouched on failure; 40 KB
 * returns  0; ERR_UNSUPPORTED on hosts where stacks are always complete; ERR_MEMORY, ERR_IO
 */
int survey_run(uint64_t limit_ns, struct survey *out, struct err *err);

/*
 * "jvm", "no-unwind-tables", ...; and a sentence for root or others: what it means, what to do.
 * Portable.
 */
const char *survey_cause_name(enum survey_cause cause);
const char *survey_cause_text(enum survey_cause cause, bool is_root);

/* ---- for survey_linux.c and tests ------------------------------------------------------------ */

/* What is known about a process. */
struct survey_facts {
	bool unreadable, is_go, is_jvm, is_openj9, has_perf_map;
	bool is_native_image;
	bool is_unread;               /* process_unread_language() */
	bool without_tables;          /* the program or a library */
	bool replaced;                /* a mapped file no longer exists */
	bool is_dotnet, has_perf_data, has_gc_probes, has_diagnostics;
	bool is_python, is_node;      /* has_gc_probes: in it, libpython or libnode */
	bool runtime;                 /* a known JIT runtime: node, .NET, a JVM */
	uint64_t jit_bytes;           /* executable memory without a file */
};

/* Bits 1 << enum survey_cause. */
uint32_t survey_judge(const struct survey_facts *facts);

/* Count a process in its group; beyond SURVEY_GROUPS_MAX groups only in affected. */
void survey_add(struct survey *s, enum survey_cause cause, const char *name, uint32_t pid);
