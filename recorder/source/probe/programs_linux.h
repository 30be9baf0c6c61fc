/*
 * Running programs and their files, for the searches for places of probes (gc_probes_linux.c,
 * throw_linux.c) and for putting probes there.
 *
 * A program may lie on a mount whose server is gone, and the kernel may hold a process with its
 * mappings locked: whoever opens such a file, reads such mappings or puts a probe there waits, too.
 * So jobs of a pool do that (base/pool.h). What does not answer in time is left alone from then on:
 * the file system, and when PROGRAMS_HUNG_OF_USER of a user do not answer, all programs of that
 * user. One thread at a time, the owner.
 */
#pragma once

#include "base/log.h"
#include "source/host/proc_pid_linux.h"
#include "source/probe/uprobe_linux.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_FILES_MAX 8u
#define PROGRAMS_HUNG_OF_USER 2u             /* POOL_STUCK_MAX of all users */

#define PROGRAM_FUNCTIONS_MAX 5u

struct programs;
struct perf_event_attr;

struct program_id {
	uint64_t dev, ino;
};

int programs_new(struct log *log, struct programs **out, struct err *err);
/* Waits at most 2 s for what programs_close() got. NULL allowed. */
void programs_free(struct programs *p);
/* From now on the owner drains rings: it waits 100 ms at most. Call about once a second. */
void programs_look(struct programs *p, uint64_t now_ns);

/* The mappings of a process, /proc/PID/maps; *out is replaced. false: not known */
bool programs_maps(struct programs *p, uint32_t pid, struct buf *out);

/* As proc_names_read(): a command line may lie in a file whose server is gone. */
bool programs_names(struct programs *p, uint32_t pid, struct proc_names *out);

/* A file that a process runs or maps. */
struct program_file {
	char path[UPROBE_PATH_MAX];          /* to open it by */
	uint32_t pid;                        /* 0 = a path of ours */
	uint64_t dev;                        /* as its mappings have it; 0 = not known */
};

/*
 * The file, below /proc/PID/root, of the next mapping after *at, in a text of /proc/PID/maps, whose
 * line contains `part`; *at moves behind it. false: none is left, or the path does not fit.
 */
bool program_mapped(uint32_t pid, const char **at, const char *part, struct program_file *out);
/* The file that a process executes, by /proc/PID/exe; maps: its mappings. */
void program_exe(uint32_t pid, const char *maps, const char *target, struct program_file *out);

/* As os_path_info(). */
bool programs_info(struct programs *p, const struct program_file *file, struct os_file_info *out);
/* As uprobe_resolve(), for a file of a process or of ours; only whether it works. */
bool programs_have(struct programs *p, const struct program_file *file, const char *provider,
		   const char *name);
/* As uprobe_resolve(). */
int programs_resolve(struct programs *p, const char *provider, const char *name,
		     struct uprobe *out, struct err *err);
/*
 * As perf_event_fd(), for a place in the file of u; errno ETIMEDOUT: it did not answer. attr's path
 * is set here.
 */
int programs_event_fd(struct programs *p, const struct uprobe *u,
		      const struct perf_event_attr *attr, unsigned cpu);
/*
 * Close what programs_event_fd() returned, or the file of a probe or place, which may hang. Never
 * waits; fd -1 allowed.
 */
void programs_close(struct programs *p, int fd);

/* A library that a process maps, and functions in it. */
struct program_library {
	const char *part;                    /* what its line in /proc/PID/maps contains */
	const char *functions[PROGRAM_FUNCTIONS_MAX];        /* NULL behind the last one */
	struct program_id *known;            /* libraries that are of no interest; owned */
	unsigned nknown;
	/* The answer: */
	char path[UPROBE_PATH_MAX];          /* "" = there is none, or it is known */
	struct program_id id;
	struct uprobe places[PROGRAM_FUNCTIONS_MAX];         /* file -1 = it has no such function */
};

/*
 * Look for a library without waiting, one at a time; part and functions are constants. Takes
 * library, also when it returns false: nothing can be asked now.
 */
bool programs_ask(struct programs *p, uint32_t pid, struct program_library *library);
/*
 * What was found; NULL: no answer has come. Then waits tells whether one may still come. The caller
 * takes the files of places and gives them to programs_close(), then program_library_free().
 */
struct program_library *programs_answer(struct programs *p, bool *waits);
void program_library_free(struct program_library *library);          /* NULL allowed */

/* A list with each file once. Starts empty. */
struct program_files {
	unsigned n;
	struct program_id ids[PROGRAM_FILES_MAX];
};

/*
 * Add a regular file unless the list has it, whatever its path. returns  its index; is_new: it was
 * added now. PROGRAM_FILES_MAX: the list is full, or a probe cannot name the path (a ':' in it)
 */
unsigned program_files_add(struct program_files *files, struct programs *p,
			   const struct program_file *file, bool *is_new);
