#include "source/dotnet/known.h"

#include "base/bytes.h"
#include "base/pool.h"
#include "base/table.h"
#include "base/text.h"
#include "model/needs.h"
#include "source/dotnet/find_linux.h"
#include "source/host/maps.h"
#include "source/host/proc_pid_linux.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIMIT_NS NS_PER_SEC
#define PIECE_BYTES ((size_t)256 << 10)
#define MAPS_MAX_BYTES ((size_t)8 << 20)
#define FILES_MAX 4096u
#define PATH_BYTES 4200

/* What is looked for; belongs to the job, which may outlive its owner. */
struct search {
	struct job job;
	char name[PROVIDER_NAME_MAX];
	uint64_t until_ns;
	struct {
		uint64_t dev, ino;
	} files[FILES_MAX];                  /* read already */
	unsigned nfiles, nprograms;
	bool found, unread;
	unsigned char piece[PIECE_BYTES + 2 * PROVIDER_NAME_MAX + 2];
};

static void free_search(struct job *job)
{
	free((struct search *)job);
}

static bool is_over(const struct search *s)
{
	return s->found || os_now_ns() > s->until_ns;
}

/* Pieces overlap, so that a name on their border is found. */
static void read_file(struct search *s, int fd)
{
	const size_t overlap = 2 * strlen(s->name) + 2;
	size_t kept = 0;
	ssize_t got;

	while (!is_over(s) && (got = read(fd, s->piece + kept, PIECE_BYTES)) > 0) {
		size_t n = kept + (size_t)got;

		s->found = dotnet_bytes_name(s->piece, n, s->name);
		kept = n < overlap ? n : overlap;
		memmove(s->piece, s->piece + n - kept, kept);
	}
}

static bool is_new_file(struct search *s, const struct stat *info)
{
	unsigned i;

	for (i = 0; i < s->nfiles; i++)
		if (s->files[i].dev == info->st_dev && s->files[i].ino == info->st_ino)
			return false;
	if (s->nfiles == FILES_MAX)
		return false;
	s->files[s->nfiles].dev = info->st_dev;
	s->files[s->nfiles++].ino = info->st_ino;
	return true;
}

static void look_into(struct search *s, uint32_t pid, const char *path)
{
	char full[PATH_BYTES];
	struct stat info;
	int fd;

	fd = proc_pid_file(pid, path, strlen(path), full, sizeof(full))
		? open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY) : -1;
	if (fd < 0 || fstat(fd, &info) != 0)
		s->unread = true;
	else if (S_ISREG(info.st_mode) && is_new_file(s, &info))
		read_file(s, fd);
	if (fd >= 0)
		close(fd);
}

/* Assemblies, and the program itself, which may contain them. Native libraries are left out. */
static bool may_have_classes(const char *path, const char *exe)
{
	return text_ends_fold(path, ".dll") || text_ends_fold(path, ".exe") ||
	       strcmp(path, exe) == 0;
}

static void look_into_mapped(struct search *s, uint32_t pid, char *maps)
{
	char exe[PATH_BYTES], *line, *next, *path, *last = NULL;

	s->nprograms++;
	proc_pid_exe(pid, exe, sizeof(exe));
	for (line = maps; line && *line && !is_over(s); line = next) {
		next = strchr(line, '\n');
		if (next)
			*next++ = '\0';
		path = strchr(line, '/');
		if (!path || (last && strcmp(last, path) == 0))
			continue;
		last = path;
		maps_unescape(path);
		if (may_have_classes(path, exe))
			look_into(s, pid, path);
	}
}

/* Programs in containers have their sockets there, and are known by the runtime that they map. */
static bool look_into_process(void *ctx, uint32_t pid)
{
	struct search *s = ctx;
	struct buf maps = {0};

	if (proc_pid_load(pid, "maps", MAPS_MAX_BYTES, &maps) && maps.len &&
	    strstr(maps.data, "/libcoreclr.so"))
		look_into_mapped(s, pid, maps.data);
	buf_free(&maps);
	return !is_over(s);
}

/* One whose runtime is part of the program is known by its socket. */
static void look_into_program(void *ctx, const struct dotnet_socket *socket)
{
	struct search *s = ctx;
	struct buf maps = {0};

	if (is_over(s))
		return;
	if (proc_pid_load(socket->pid, "maps", MAPS_MAX_BYTES, &maps) && maps.len)
		look_into_mapped(s, socket->pid, maps.data);
	else
		s->unread = true;
	buf_free(&maps);
}

static void run_search(struct job *job)
{
	struct search *s = (struct search *)job;

	dotnet_find_all(look_into_program, s);
	if (!is_over(s))
		proc_each("/proc", look_into_process, s);
}

enum dotnet_found dotnet_find_provider(const char *name)
{
	struct search *s = calloc(1, sizeof(*s));
	struct pool *pool = NULL;
	enum dotnet_found answer = DOTNET_NOT_SURE;

	if (!s || strlen(name) >= sizeof(s->name) ||
	    pool_new("providers", 1, OS_PRIORITY_NORMAL, &pool, NULL)) {
		free(s);
		return answer;
	}
	s->job = (struct job){.run = run_search, .free = free_search, .what = "files of programs"};
	job_init(&s->job);
	strcpy(s->name, name);
	s->until_ns = os_now_ns() + LIMIT_NS;
	pool_set_stuck(pool, LIMIT_NS / 10);
	pool_put(pool, &s->job);
	if (pool_wait(pool, &s->job, LIMIT_NS + LIMIT_NS / 10))
		answer = s->found ? DOTNET_FOUND : !s->nprograms ? DOTNET_NO_PROGRAM
			 : s->unread || os_now_ns() > s->until_ns ? DOTNET_NOT_SURE
								  : DOTNET_NOT_FOUND;
	job_drop(&s->job);
	pool_look(pool, os_now_ns());
	pool_free(pool);
	return answer;
}
