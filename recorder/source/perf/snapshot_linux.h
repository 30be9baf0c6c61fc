/*
 * What /proc says of one process, and the build ids of the files that it maps: a value, read by a
 * job of a pool (base/pool.h), because a process that the kernel holds, or a mount whose server is
 * gone, may stop whoever looks.
 *
 * The job fills it in two steps: first all that /proc says, then one build id after the other. What
 * a step has published does not change any more.
 */
#pragma once

#include "base/buf.h"
#include "base/pool.h"
#include "model/frame.h"
#include "source/host/hung_devices.h"
#include "source/host/proc_parse.h"

#define SNAPSHOT_NO_FILE UINT32_MAX

struct snapshot_file {
	uint32_t path;                       /* of its first mapping */
	uint64_t dev, ino;
	_Atomic bool known;                  /* then what follows can be read */
	uint8_t build_id_bytes;
	uint8_t build_id[BUILD_ID_MAX];
};

struct snapshot_mapping {                    /* an executable one */
	uint64_t start, end, pgoff;
	uint32_t path;                       /* for snapshot_path(); "//anon" = none */
	uint32_t file;                       /* SNAPSHOT_NO_FILE = of no file */
};

struct snapshot_task {
	uint32_t tid;
	char comm[64];                       /* "" = not known */
};

struct snapshot_files;

struct snapshot {
	struct job job;
	char what[48];
	uint32_t pid;
	struct snapshot_files *shared;
	bool build_ids;

	_Atomic bool read;                   /* the first step is done: what follows can be read */
	bool found;                          /* there is such a process */
	bool maps_read;                      /* false: they are not known */
	uint64_t read_ns, end_ns;            /* of the first step */
	uint64_t start_ns;
	struct proc_stat stat;
	char *exe;                           /* NULL = not known */
	struct buf home;                     /* model/home.h; empty: not known, or the root group */
	struct buf paths;                    /* of the mappings, each with its NUL */
	struct snapshot_mapping *mappings;
	struct snapshot_file *files;
	struct snapshot_task *tasks;
	uint32_t nmappings, mappings_room, nfiles, files_room, ntasks, tasks_room;
	_Atomic uint32_t nopened;            /* the file before this one is the last one opened */
};

/*
 * A snapshot to put into a pool; the caller has a use of its job.
 *
 * shared     what the snapshots of one owner know together
 * build_ids  false: are not wanted
 */
struct snapshot *snapshot_new(struct snapshot_files *shared, uint32_t pid, bool build_ids);

static inline bool snapshot_is_read(const struct snapshot *s)
{
	return atomic_load_explicit(&s->read, memory_order_acquire);
}

static inline const char *snapshot_path(const struct snapshot *s, uint32_t path)
{
	return s->paths.data + path;
}

/* The file that a job which is stuck was opening; NULL = it reads /proc. */
const struct snapshot_file *snapshot_opening(const struct snapshot *s);

/* ---- files: any thread ----------------------------------------------------------------------- */

/* Build ids that are known, and whose devices do not answer (used). NULL without memory. */
struct snapshot_files *snapshot_files_new(struct hung_devices *hung);
void snapshot_files_drop(struct snapshot_files *f);      /* snapshots that go on use it, too */
/* A file may have other content by now. */
void snapshot_files_forget(struct snapshot_files *f);
