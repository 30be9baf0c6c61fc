/* Mounted disks and version 2 control groups. See proc_reader.h. */

#include "base/array.h"
#include "base/os.h"
#include "source/counter/proc_reader_private.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define VOLUMES_MAX 128
#define CGROUP_DEPTH_MAX 8
#define CGROUPS_LISTED_MAX 4096u

/* ---- volumes --------------------------------------------------------------------------------- */

/* Local disks only: asking a network file system for its free space can hang. */
static bool next_volume(struct text *rest, struct proc_mount *mount)
{
	while (proc_mount_next(rest, mount))
		if (text_begins(mount->device, "/dev/"))
			return true;
	return false;
}

static bool add_volume(struct proc_reader *r, struct proc_instance *i, const char *dir)
{
	double total, available;

	if (!answers_space(r->answers, dir, &total, &available))
		return false;
	i->raw.v[VOLUME_TOTAL] += total;
	i->raw.v[VOLUME_FREE] += available;
	return true;
}

static bool text_same(struct text a, struct text b)
{
	return a.end - a.at == b.end - b.at && memcmp(a.at, b.at, (size_t)(a.end - a.at)) == 0;
}

enum counter_result volume_read(struct proc_reader *r, struct proc_instance *i)
{
	bool total = is_total(i->name), found = false;
	struct text all, seen[VOLUMES_MAX];
	struct proc_mount mount;
	size_t nseen = 0, k;

	if (!proc_file_text(r, FILE_MOUNTS, &all))
		return COUNTER_ABSENT;
	i->raw.v[VOLUME_TOTAL] = i->raw.v[VOLUME_FREE] = 0;
	i->raw.time_ns = os_now_ns();
	while (nseen < VOLUMES_MAX && next_volume(&all, &mount)) {
		if (!total && strcmp(mount.dir, i->name) != 0)
			continue;
		/* A disk may be mounted at several places; count it once. */
		for (k = 0; k < nseen && !text_same(seen[k], mount.device);)
			k++;
		if (k < nseen)
			continue;
		seen[nseen++] = mount.device;
		found |= add_volume(r, i, mount.dir);
		if (!total)
			break;
	}
	return found ? COUNTER_VALUE : COUNTER_ABSENT;
}

void volume_list(struct proc_reader *r, proc_instance_found *found, void *ctx)
{
	struct proc_mount mount;
	struct text all;

	if (!proc_file_text(r, FILE_MOUNTS, &all) || !found(ctx, "_Total", false))
		return;
	while (next_volume(&all, &mount))
		if (!found(ctx, mount.dir, false))
			return;
}

/* ---- control groups -------------------------------------------------------------------------- */

enum { CG_FD_MEMORY, CG_FD_SWAP, CG_FD_MAX, CG_FD_EVENTS, CG_FD_PIDS, CG_FD_CPU, CG_FD_IO,
       CG_FD_CPU_PSI, CG_FD_MEMORY_PSI, CG_FD_IO_PSI };

/*
 * Where each field is: a file, and the name before the number ("" = the file is the number); of
 * pressure the row that has total=.
 */
static const struct {
	uint8_t field, fd;
	const char *file, *name;
} cgroup_fields[] = {
	{ CG_MEMORY, CG_FD_MEMORY, "memory.current", "" },
	{ CG_SWAP, CG_FD_SWAP, "memory.swap.current", "" },
	{ CG_MEMORY_MAX, CG_FD_MAX, "memory.max", "" },       /* "max" = no limit = no number */
	{ CG_OOM_KILLS, CG_FD_EVENTS, "memory.events", "oom_kill" },
	{ CG_AT_HIGH, CG_FD_EVENTS, "memory.events", "high" },
	{ CG_AT_MAX, CG_FD_EVENTS, "memory.events", "max" },
	{ CG_OOM, CG_FD_EVENTS, "memory.events", "oom" },
	{ CG_PIDS, CG_FD_PIDS, "pids.current", "" },
	{ CG_CPU_US, CG_FD_CPU, "cpu.stat", "usage_usec" },
	{ CG_USER_US, CG_FD_CPU, "cpu.stat", "user_usec" },
	{ CG_SYSTEM_US, CG_FD_CPU, "cpu.stat", "system_usec" },
	{ CG_THROTTLED_US, CG_FD_CPU, "cpu.stat", "throttled_usec" },
	{ CG_CPU_SOME_US, CG_FD_CPU_PSI, "cpu.pressure", "some" },
	{ CG_MEMORY_SOME_US, CG_FD_MEMORY_PSI, "memory.pressure", "some" },
	{ CG_MEMORY_FULL_US, CG_FD_MEMORY_PSI, "memory.pressure", "full" },
	{ CG_IO_SOME_US, CG_FD_IO_PSI, "io.pressure", "some" },
	{ CG_IO_FULL_US, CG_FD_IO_PSI, "io.pressure", "full" },
};

static const char *cgroup_dir(struct proc_reader *r)
{
	struct proc_mount mount;
	struct text all;

	if (*r->cgroup_dir || !proc_file_text(r, FILE_MOUNTS, &all))
		return r->cgroup_dir;
	while (proc_mount_next(&all, &mount))
		if (text_is(mount.type, "cgroup2")) {
			snprintf(r->cgroup_dir, sizeof(r->cgroup_dir), "%s", mount.dir);
			break;
		}
	return r->cgroup_dir;
}

/* Whether the path stays inside the hierarchy: the name comes from a rule. */
static bool is_inside(const char *name)
{
	const char *at;

	for (at = name; (at = strstr(at, "..")); at += 2)
		if ((at == name || at[-1] == '/') && (at[2] == '/' || !at[2]))
			return false;
	return !*name || *name == '/';
}

static bool open_cgroup(struct proc_reader *r, struct proc_instance *i)
{
	const char *root = cgroup_dir(r);
	char path[sizeof(r->cgroup_dir) + COUNTER_NAME_MAX + 2];

	if (!*root || !is_inside(i->name))
		return false;
	snprintf(path, sizeof(path), "%s%s", root, i->name);
	i->dir_fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	return i->dir_fd >= 0;
}

/* Sum the bytes of all devices; the file of a group without reads or writes is empty. */
static void read_cgroup_io(struct proc_reader *r, struct proc_instance *i)
{
	double *v = i->raw.v;
	struct text all;

	if (!(i->fields & (BIT(CG_READ_BYTES) | BIT(CG_WRITE_BYTES))) ||
	    !proc_read_at(r, i->dir_fd, "io.stat", &i->fds[CG_FD_IO], &all))
		return;
	v[CG_READ_BYTES] = v[CG_WRITE_BYTES] = 0;
	proc_key_sum(all, NULL, "rbytes", &v[CG_READ_BYTES]);
	proc_key_sum(all, NULL, "wbytes", &v[CG_WRITE_BYTES]);
}

static bool read_cgroup_fields(struct proc_reader *r, struct proc_instance *i)
{
	struct text all = { NULL, NULL }, word;
	int last = -1;
	size_t k;

	for (k = 0; k < COUNT_OF(cgroup_fields); k++) {
		double *v = &i->raw.v[cgroup_fields[k].field];
		int fd = cgroup_fields[k].fd;

		if (!(i->fields & BIT(cgroup_fields[k].field)))
			continue;
		if (fd != last)
			proc_read_at(r, i->dir_fd, cgroup_fields[k].file, &i->fds[fd], &all);
		last = fd;
		if (fd >= CG_FD_CPU_PSI) {
			proc_key_sum(all, cgroup_fields[k].name, "total", v);
		} else if (*cgroup_fields[k].name) {
			proc_value(all, cgroup_fields[k].name, v);
		} else {
			struct text rest = all, line;

			if (text_line(&rest, &line) && text_word(&line, &word))
				text_number(word, v);
		}
	}
	i->raw.time_ns = os_now_ns();
	read_cgroup_io(r, i);
	/* A removed group leaves its open directory behind, empty. */
	return faccessat(i->dir_fd, "cgroup.procs", F_OK, 0) == 0;
}

enum counter_result cgroup_read(struct proc_reader *r, struct proc_instance *i)
{
	bool exists;

	if (i->dir_fd < 0 && !open_cgroup(r, i))
		return COUNTER_ABSENT;
	exists = read_cgroup_fields(r, i);
	/* A group that was removed may be created anew under its name. */
	if (!exists || !r->keep_open)
		proc_instance_unbind(i);
	return exists ? COUNTER_VALUE : COUNTER_ABSENT;
}

struct walk {
	proc_instance_found *found;
	void *ctx;
	unsigned left;
};

/* List the groups in a directory, which this closes; len: of its own name. */
static bool list_groups(struct walk *walk, DIR *dir, char *name, size_t len, int depth)
{
	struct dirent *entry;
	bool go_on = true;
	size_t n;

	if (!dir)
		return true;
	while (go_on && walk->left && (entry = readdir(dir))) {
		n = strlen(entry->d_name);
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.' ||
		    len + n + 2 > COUNTER_NAME_MAX)
			continue;
		name[len] = '/';
		memcpy(name + len + 1, entry->d_name, n + 1);
		walk->left--;
		go_on = walk->found(walk->ctx, name, false);
		if (go_on && depth < CGROUP_DEPTH_MAX)
			go_on = list_groups(walk, proc_open_dir(dirfd(dir), entry->d_name), name,
					    len + 1 + n, depth + 1);
	}
	closedir(dir);
	return go_on;
}

void cgroup_list(struct proc_reader *r, proc_instance_found *found, void *ctx)
{
	struct walk walk = { found, ctx, CGROUPS_LISTED_MAX };
	const char *root = cgroup_dir(r);
	char name[COUNTER_NAME_MAX];
	DIR *dir = *root ? proc_open_dir(AT_FDCWD, root) : NULL;

	if (dir && found(ctx, "/", false))
		list_groups(&walk, dir, name, 0, 1);
	else if (dir)
		closedir(dir);
}
