#include "source/host/file_paths_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define MOUNTS_MAX_BYTES ((size_t)4 << 20)   /* a host of 1,000 containers has 1 MB */
#define CLOCK_STEP_NS (10 * NS_PER_MS)       /* times of files are those of the last tick */

/* Of the files of one process. */
struct search {
	uint32_t pid;
	struct file_path *files;
	uint32_t n, missing;
	struct buf mounts;                   /* of the process, read once they are needed */
};

/* btrfs and overlays give files another device than their file system has. */
static bool is_on(struct search *s, const struct statx *st, dev_t dev)
{
	dev_t seen = makedev(st->stx_dev_major, st->stx_dev_minor), mounted;
	struct proc_mounted mount = {.id = 0};
	struct stat layer;
	struct text rest;

	if (seen == dev || !(st->stx_mask & STATX_MNT_ID))
		return seen == dev;
	if (!s->mounts.len)
		proc_pid_load(s->pid, "mountinfo", MOUNTS_MAX_BYTES, &s->mounts);
	rest = text_of(buf_text(&s->mounts), s->mounts.len);
	while (proc_mounted_next(&rest, &mount) && mount.id != st->stx_mnt_id)
		;
	mounted = makedev(mount.major, mount.minor);
	/* A file of an overlay over several file systems has neither device. */
	return mount.id == st->stx_mnt_id &&
	       (mounted == dev || (mounted == seen && mount.layer[0] == '/' &&
				   stat(mount.layer, &layer) == 0 && layer.st_dev == dev));
}

/* When its number became this file's: where the file system does not tell, its last change. */
static uint64_t born_ns(const struct statx *st, uint64_t now_ns)
{
	const struct statx_timestamp *t =
		st->stx_mask & STATX_BTIME ? &st->stx_btime : &st->stx_ctime;
	uint64_t wall_ns = os_wall_ns(), age_ns;
	uint64_t born = t->tv_sec < 0 ? 0 : (uint64_t)t->tv_sec * NS_PER_SEC + t->tv_nsec;

	age_ns = born < wall_ns ? wall_ns - born : 0;
	return age_ns < now_ns ? now_ns - age_ns + CLOCK_STEP_NS : 0;
}

static bool look(int dir, const char *name, struct statx *st)
{
	return statx(dir, name, AT_STATX_DONT_SYNC,
		     STATX_INO | STATX_BTIME | STATX_CTIME | STATX_MNT_ID, st) == 0;
}

static bool take(struct file_path *f, const struct statx *st, const char *path)
{
	f->seen_ns = os_now_ns();
	f->born_ns = born_ns(st, f->seen_ns);
	f->path = strdup(path);
	return f->path != NULL;
}

static bool read_link(int dir, const char *name, char path[PATH_MAX])
{
	ssize_t length = readlinkat(dir, name, path, PATH_MAX - 1);

	path[length > 0 ? length : 0] = '\0';
	return length > 0;
}

static void look_at(struct search *s, int dir, const char *name)
{
	char path[PATH_MAX];
	struct statx st;
	uint32_t i;

	if (!look(dir, name, &st))
		return;
	for (i = 0; i < s->n; i++) {
		struct file_path *f = &s->files[i];

		if (!f->path && f->pid == s->pid && f->ino == st.stx_ino && is_on(s, &st, f->dev) &&
		    read_link(dir, name, path))
			s->missing -= take(f, &st, path);
	}
}

/* Both have a link for each file: "fd" by number, "map_files" by addresses. */
static void look_in(struct search *s, const char *what)
{
	struct dirent *entry;
	unsigned n = 0;
	char path[64];
	DIR *dir;

	snprintf(path, sizeof(path), "/proc/%u/%s", s->pid, what);
	dir = opendir(path);
	while (dir && s->missing && n++ < FILE_PATHS_ENTRIES && (entry = readdir(dir)) != NULL)
		if (entry->d_name[0] != '.')
			look_at(s, dirfd(dir), entry->d_name);
	if (dir)
		closedir(dir);
}

/* A directory of a file system whose files can be opened by their numbers alone; -1 = none. */
static int open_mount(dev_t dev)
{
	static const char *const types[] = {"ext4", "ext3", "ext2", "f2fs"};
	struct proc_mounted mount;
	struct buf mounts = {0};
	struct text rest;
	int fd = -1;
	size_t i;

	proc_pid_load(os_pid(), "mountinfo", MOUNTS_MAX_BYTES, &mounts);
	rest = text_of(buf_text(&mounts), mounts.len);
	while (fd < 0 && proc_mounted_next(&rest, &mount)) {
		if (makedev(mount.major, mount.minor) != dev)
			continue;
		for (i = 0; i < COUNT_OF(types); i++)
			if (text_is(mount.type, types[i]))
				fd = open(mount.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	}
	buf_free(&mounts);
	return fd;
}

/*
 * The kernel knows for some time where a file is that was in use. Needs cap_dac_read_search. The
 * generation 0 means any (ext4_nfs_get_inode()).
 */
static void look_by_number(struct file_path *f, int mount)
{
	struct {
		struct file_handle head;
		uint32_t ino, generation;
	} handle = {{.handle_bytes = 8, .handle_type = 1}, (uint32_t)f->ino, 0};
	char link[40], path[PATH_MAX];
	int fd = open_by_handle_at(mount, &handle.head, O_PATH | O_CLOEXEC);
	struct statx st;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	/* One that is not known, or below another mount, seems to have the path of another file. */
	if (fd >= 0 && read_link(AT_FDCWD, link, path) && look(AT_FDCWD, path, &st) &&
	    st.stx_ino == f->ino && makedev(st.stx_dev_major, st.stx_dev_minor) == f->dev)
		take(f, &st, path);
	if (fd >= 0)
		close(fd);
}

static void look_by_numbers(struct file_path *files, uint32_t n)
{
	uint32_t i, k;
	int mount;

	for (i = 0; i < n; i++) {
		for (k = 0; files[k].dev != files[i].dev; k++)
			;
		mount = k == i ? open_mount(files[i].dev) : -1;       /* once for each of them */
		if (mount < 0)
			continue;
		for (k = i; k < n; k++)
			if (files[k].dev == files[i].dev && files[k].ino <= UINT32_MAX)
				look_by_number(&files[k], mount);
		close(mount);
	}
}

static void look_in_process(uint32_t pid, struct file_path *files, uint32_t n)
{
	struct search s = {.pid = pid, .files = files, .n = n};
	uint32_t i;

	for (i = 0; i < n; i++)
		s.missing += files[i].pid == pid && !files[i].path;
	look_in(&s, "fd");
	look_in(&s, "map_files");
	buf_free(&s.mounts);
}

void file_paths_find(struct file_path *files, uint32_t n)
{
	uint32_t i, k;

	look_by_numbers(files, n);
	for (i = 0; i < n; i++) {
		for (k = 0; files[k].pid != files[i].pid; k++)
			;
		if (k == i)                  /* once for each process */
			look_in_process(files[i].pid, files, n);
	}
}
