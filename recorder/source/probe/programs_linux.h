/*
 * Running programs, the files they map, and a list with each of these files once: what the searches
 * for places of probes share (gc_probes_linux.c, throw_linux.c). Reads /proc, so not on the
 * source's thread.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PROGRAM_FILES_MAX 8u

struct program_files {                       /* starts empty */
	unsigned n;
	uint64_t dev[PROGRAM_FILES_MAX], ino[PROGRAM_FILES_MAX];
};

/*
 * Add a regular file unless the list has it, whatever its path. returns  its index; is_new: it was
 * added now. PROGRAM_FILES_MAX: the list is full, or a probe cannot name the path (a ':' in it)
 */
unsigned program_files_add(struct program_files *files, const char *path, bool *is_new);

/*
 * The path, below /proc/PID/root, of the next mapping after *at, in a text of /proc/PID/maps, whose
 * line contains `part`; *at moves behind it. false: none is left, or the path does not fit.
 */
bool program_maps(uint32_t pid, const char **at, const char *part, char *out, size_t n);
