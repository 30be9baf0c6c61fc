#include "source/dotnet/find_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "base/shares.h"
#include "base/table.h"
#include "source/dotnet/ipc.h"
#include "source/host/proc_parse.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define WATCHED_SCAN_NS (10 * NS_PER_SEC)    /* of /tmp, where inotify works */
#define SCAN_NS NS_PER_SEC                   /* where it does not */
#define TABLE_NS (5 * NS_PER_SEC)            /* for sockets that are elsewhere */
#define ENTRIES_MAX 65536u                   /* of /tmp, in one scan */
#define UNIX_MAX_BYTES ((size_t)4 << 20)     /* of /proc/net/unix: some 40,000 sockets */
#define READS_MAX 64u
#define FOUND_MAX 4096u                      /* in one search, shared out by user */
#define PREFIX "dotnet-diagnostic-"

static bool is_socket(const char *name, uint32_t *inner_pid)
{
	uint64_t key;

	return dotnet_socket_name(name, inner_pid, &key);
}

const struct ns_tmp_kind dotnet_socket_kind = {.programs = ".NET", .is_socket = is_socket};

/* One search; it may outlive its owner. */
struct search {
	struct tmp_search base;
	int watch;                           /* its own; -1 = none */
	bool of_tmp, watched;
	struct shares shares;
	struct dotnet_socket *found;
	uint32_t nfound, room;
};

/* Who gets the sockets. */
struct finder {
	void (*each)(void *ctx, const struct dotnet_socket *socket);
	void *ctx;
	struct tmp_search *search;           /* NULL = the caller may hang */
};

int dotnet_find_open(struct dotnet_find *f, struct os_wake *wake, struct log *log, struct err *err)
{
	int rc;

	*f = (struct dotnet_find){.watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
	rc = pool_new("dotnet", 2, OS_PRIORITY_NORMAL, &f->pool, err);
	f->scan = (struct tmp_scan){.pool = f->pool, .log = log, .programs = ".NET"};
	return rc ? rc : ns_tmp_open(&dotnet_socket_kind, wake, log, &f->containers, err);
}

void dotnet_find_close(struct dotnet_find *f)
{
	tmp_scan_close(&f->scan);
	pool_free(f->pool);
	f->pool = NULL;
	if (f->watch >= 0)
		close(f->watch);
	f->watch = -1;
	ns_tmp_close(f->containers);
	f->containers = NULL;
}

/* Whether a file with a socket's name appeared in /tmp. */
static bool has_changed(struct dotnet_find *f)
{
	_Alignas(struct inotify_event) char bytes[4096];
	bool changed = false;
	unsigned reads;
	ssize_t n, at;

	for (reads = 0; f->watch >= 0 && reads < READS_MAX; reads++) {
		n = read(f->watch, bytes, sizeof(bytes));
		if (n <= 0)
			break;
		for (at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
			const struct inotify_event *e = (const struct inotify_event *)(bytes + at);

			changed |= e->mask & IN_Q_OVERFLOW ||
				   (e->len && strncmp(e->name, PREFIX, sizeof(PREFIX) - 1) == 0);
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	}
	return changed;
}

/* ---- checking a socket ----------------------------------------------------------------------- */

bool dotnet_socket_lives(const struct dotnet_socket *socket)
{
	char path[40];
	struct buf text = {0};
	struct proc_stat stat;
	bool ok;

	snprintf(path, sizeof(path), "/proc/%u/stat", socket->pid);
	ok = os_load(path, 8192, &text, NULL) == 0 &&
	     proc_stat_parse(text_of(buf_text(&text), text.len), &stat) &&
	     stat.start_ticks == socket->key && stat.state != 'Z';
	buf_free(&text);
	return ok;
}

/* A directory that hangs is left alone, and so is a user with several. */
static bool read_socket(const struct finder *f, const char *path, struct dotnet_socket *out)
{
	const char *name = strrchr(path, '/');
	char proc[40];
	struct stat st;
	uint64_t place;
	bool ok;

	*out = (struct dotnet_socket){.fd = -1};
	if (!name || strlen(path) >= sizeof(out->path) ||
	    !dotnet_socket_name(name + 1, &out->pid, &out->key))
		return false;
	snprintf(proc, sizeof(proc), "/proc/%u", out->pid);
	if (stat(proc, &st) != 0)
		return false;
	out->uid = st.st_uid;
	place = tmp_place(hash_bytes(path, (size_t)(name - path)), out->uid);
	if (f->search && !tmp_search_at(f->search, place))
		return false;
	ok = lstat(path, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_uid == out->uid;
	if (f->search)
		tmp_search_at(f->search, 0);
	snprintf(out->path, sizeof(out->path), "%s", path);
	return ok && dotnet_socket_lives(out) && ns_tmp_is_here(out->pid);
}

/* ---- finding sockets ------------------------------------------------------------------------- */

static void find_in_tmp(const struct finder *f)
{
	DIR *dir = opendir("/tmp");
	struct dotnet_socket socket;
	struct dirent *entry;
	char path[300];
	unsigned i;

	for (i = 0; dir && i < ENTRIES_MAX && (entry = readdir(dir)) != NULL; i++) {
		if (strncmp(entry->d_name, PREFIX, sizeof(PREFIX) - 1) != 0)
			continue;
		snprintf(path, sizeof(path), "/tmp/%s", entry->d_name);
		if (read_socket(f, path, &socket))
			f->each(f->ctx, &socket);
	}
	if (dir)
		closedir(dir);
}

/*
 * /proc/net/unix: each line ends in the socket's path. Whether it has one outside /tmp; f: NULL =
 * that is all that is asked.
 */
static bool find_in_table(const struct finder *f)
{
	struct dotnet_socket socket;
	struct buf text = {0};
	char *line, *path, *rest;
	bool any = false;

	if (os_load("/proc/net/unix", UNIX_MAX_BYTES, &text, NULL) == 0) {
		for (line = strtok_r(text.data, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest)) {
			path = strstr(line, "/" PREFIX) ? strchr(line, '/') : NULL;
			if (!path ||
			    strncmp(path, "/tmp/" PREFIX, sizeof("/tmp/" PREFIX) - 1) == 0)
				continue;
			any = true;
			if (f && read_socket(f, path, &socket))
				f->each(f->ctx, &socket);
		}
	}
	buf_free(&text);
	return any;
}

void dotnet_find_all(void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx)
{
	const struct finder f = {each, ctx, NULL};

	find_in_tmp(&f);
	find_in_table(&f);
}

/* ---- searches -------------------------------------------------------------------------------- */

static void note_socket(void *ctx, const struct dotnet_socket *socket)
{
	struct search *s = ctx;
	struct share share = {.uid = socket->uid};

	if (shares_take(&s->shares, &share, 1) && !ARRAY_ROOM(s->found, s->room, s->nfound + 1))
		s->found[s->nfound++] = *socket;
}

static void run_search(struct tmp_search *search)
{
	struct search *s = (struct search *)search;
	const struct finder f = {note_socket, s, search};

	if (s->of_tmp) {
		/* A second watch is harmless; /tmp may be another directory by now. */
		s->watched = s->watch >= 0 &&
			     inotify_add_watch(s->watch, "/tmp",
					       IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) >= 0;
		find_in_tmp(&f);
	}
	find_in_table(&f);
}

static void free_search(struct job *job)
{
	struct search *s = (struct search *)job;

	if (s->watch >= 0)
		close(s->watch);
	free(s->found);
	free(s);
}

static void begin_search(struct dotnet_find *f, uint64_t now_ns)
{
	struct search *s = calloc(1, sizeof(*s));

	f->next_table_ns = now_ns + TABLE_NS;
	if (!s)
		return;
	s->base.run = run_search;
	s->base.job.free = free_search;
	s->of_tmp = now_ns >= f->next_tmp_ns;
	s->watch = f->watch < 0 ? -1 : fcntl(f->watch, F_DUPFD_CLOEXEC, 0);
	shares_init(&s->shares, FOUND_MAX, os_uid());
	if (s->of_tmp)
		f->next_tmp_ns = now_ns + WATCHED_SCAN_NS;
	tmp_scan_begin(&f->scan, &s->base);
}

uint64_t dotnet_find_new(struct dotnet_find *f, uint64_t now_ns,
			 void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx)
{
	struct search *s;
	uint32_t i;

	if (has_changed(f))
		f->next_tmp_ns = 0;
	/* A search on another thread is for what it may have to wait for. */
	if (now_ns >= f->next_table_ns && now_ns < f->next_tmp_ns && !find_in_table(NULL))
		f->next_table_ns = now_ns + TABLE_NS;
	if ((now_ns >= f->next_tmp_ns || now_ns >= f->next_table_ns) &&
	    tmp_scan_is_free(&f->scan, now_ns))
		begin_search(f, now_ns);
	s = (struct search *)tmp_scan_done(&f->scan, now_ns);
	if (s) {
		for (i = 0; i < s->nfound; i++)
			each(ctx, &s->found[i]);
		if (s->of_tmp && !s->watched && now_ns + SCAN_NS < f->next_tmp_ns)
			f->next_tmp_ns = now_ns + SCAN_NS;
		job_drop(&s->base.job);
	}
	return tmp_scan_due_ns(&f->scan, now_ns, f->next_table_ns < f->next_tmp_ns
							 ? f->next_table_ns : f->next_tmp_ns);
}

bool dotnet_find_in_container(struct dotnet_find *f, uint64_t now_ns, struct dotnet_socket *out)
{
	struct ns_tmp_file file;
	uint32_t inner;

	while (f->containers && ns_tmp_take(f->containers, now_ns, &file)) {
		*out = (struct dotnet_socket){.pid = file.pid, .uid = file.uid, .fd = file.fd};
		snprintf(out->path, sizeof(out->path), "/proc/self/fd/%d", file.fd);
		if (dotnet_socket_name(file.name, &inner, &out->key) && dotnet_socket_lives(out)) {
			out->nested = inner != file.pid;
			return true;
		}
		close(file.fd);
	}
	return false;
}
