#include "source/dotnet/find_linux.h"

#include "base/os.h"
#include "source/dotnet/ipc.h"
#include "source/host/proc_parse.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCAN_NS NS_PER_SEC
#define WATCHED_SCAN_NS (10 * NS_PER_SEC)    /* of /tmp, where inotify works */
#define ENTRIES_MAX 65536u                   /* of /tmp, in one scan */
#define UNIX_MAX_BYTES ((size_t)4 << 20)     /* of /proc/net/unix: some 40,000 sockets */
#define READS_MAX 64u
#define PREFIX "dotnet-diagnostic-"

static bool is_socket(const char *name, uint32_t *inner_pid)
{
	uint64_t key;

	return dotnet_socket_name(name, inner_pid, &key);
}

const struct ns_tmp_kind dotnet_socket_kind = {.programs = ".NET", .is_socket = is_socket};

/* Adding the watch twice is harmless; again, because /tmp may be another directory by now. */
static bool watch_tmp(const struct dotnet_find *f)
{
	return f->watch >= 0 &&
	       inotify_add_watch(f->watch, "/tmp", IN_CREATE | IN_MOVED_TO | IN_ONLYDIR) >= 0;
}

int dotnet_find_open(struct dotnet_find *f, struct os_wake *wake, struct log *log, struct err *err)
{
	*f = (struct dotnet_find){.watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
	watch_tmp(f);
	return ns_tmp_open(&dotnet_socket_kind, wake, log, &f->containers, err);
}

void dotnet_find_close(struct dotnet_find *f)
{
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

static bool read_socket(const char *path, struct dotnet_socket *out)
{
	const char *name = strrchr(path, '/');
	char proc[40];
	struct stat st;

	*out = (struct dotnet_socket){.fd = -1};
	if (!name || strlen(path) >= sizeof(out->path) ||
	    !dotnet_socket_name(name + 1, &out->pid, &out->key))
		return false;
	snprintf(proc, sizeof(proc), "/proc/%u", out->pid);
	if (stat(proc, &st) != 0)
		return false;
	out->uid = st.st_uid;
	if (lstat(path, &st) != 0 || !S_ISSOCK(st.st_mode) || st.st_uid != out->uid)
		return false;
	snprintf(out->path, sizeof(out->path), "%s", path);
	return dotnet_socket_lives(out) && ns_tmp_is_here(out->pid);
}

/* ---- finding sockets ------------------------------------------------------------------------- */

static void find_in_tmp(void (*each)(void *, const struct dotnet_socket *), void *ctx)
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
		if (read_socket(path, &socket))
			each(ctx, &socket);
	}
	if (dir)
		closedir(dir);
}

/* /proc/net/unix: each line ends in the socket's path. */
static void find_in_table(void (*each)(void *, const struct dotnet_socket *), void *ctx)
{
	struct dotnet_socket socket;
	struct buf text = {0};
	char *line, *path, *rest;

	if (os_load("/proc/net/unix", UNIX_MAX_BYTES, &text, NULL) == 0) {
		for (line = strtok_r(text.data, "\n", &rest); line;
		     line = strtok_r(NULL, "\n", &rest)) {
			path = strstr(line, "/" PREFIX) ? strchr(line, '/') : NULL;
			if (path &&
			    strncmp(path, "/tmp/" PREFIX, sizeof("/tmp/" PREFIX) - 1) != 0 &&
			    read_socket(path, &socket))
				each(ctx, &socket);
		}
	}
	buf_free(&text);
}

void dotnet_find_all(void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx)
{
	find_in_tmp(each, ctx);
	find_in_table(each, ctx);
}

uint64_t dotnet_find_new(struct dotnet_find *f, uint64_t now_ns,
			 void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx)
{
	if (has_changed(f) || now_ns >= f->next_tmp_ns) {
		f->next_tmp_ns = now_ns + (watch_tmp(f) ? WATCHED_SCAN_NS : SCAN_NS);
		find_in_tmp(each, ctx);
	}
	if (now_ns >= f->next_table_ns) {
		f->next_table_ns = now_ns + SCAN_NS;
		find_in_table(each, ctx);
	}
	return f->next_table_ns < f->next_tmp_ns ? f->next_table_ns : f->next_tmp_ns;
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
