#include "symbol/sandbox.h"

#include "symbol/demangle.h"
#include "symbol/perfmap.h"
#include "symbol/xz.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

#define STAT_MAX_BYTES 4096u
#define NOT_CONFINED 3                   /* the process's exit code */
#define REAP_TRIES 200                   /* of 5 ms: one that hangs in a file system cannot end */

/* ---- what goes over the socket: between two processes of one program ------------------------- */

enum asked { ASKED_INDEX, ASKED_NAME, ASKED_PERFMAP };

struct request {
	uint32_t asked;                      /* an enum asked; a file's descriptor comes with it */
	uint32_t which;                      /* an enum sandbox_index */
	uint32_t name_bytes;                 /* of a name, which follows */
	uint64_t file_bytes;
};

/* Entries and kept strings follow. */
struct reply {
	int32_t code;                        /* an enum err_code */
	uint32_t nentries;
	uint64_t base;
	struct {
		uint64_t offset, size;
		uint64_t kept;               /* 0 or 1 */
	} strings[ELF_TABLES];
	char note[SANDBOX_NOTE_BYTES];
	char why[sizeof(((struct err *)0)->text)];
};

/* To a perf map: its entries, ranges and text follow. */
struct map_reply {
	int32_t code;
	uint32_t nentries, nranges, text_bytes;
	uint32_t full;                       /* 0 or 1 */
	char why[sizeof(((struct err *)0)->text)];
};

/* To a name: comes as one message, so that its owner wakes once. */
struct name_reply {
	uint32_t nbytes;                     /* 0 = it has none */
	char text[FUNCTION_NAME_MAX + 1];    /* as much as is used */
};

struct sandbox {
	int fd;                              /* -1 = there is no process */
	_Atomic pid_t pid;                   /* 0 likewise */
	_Atomic uint64_t ended_cpu_ns;       /* of those that have ended */
};

/* ---- the process ----------------------------------------------------------------------------- */

/* All n bytes; false at the end of the stream, or when it breaks. */
static bool send_all(int fd, const void *bytes, size_t n)
{
	const char *at = bytes;
	ssize_t sent;

	for (; n; at += sent, n -= (size_t)sent) {
		do
			sent = send(fd, at, n, MSG_NOSIGNAL);
		while (sent < 0 && errno == EINTR);
		if (sent <= 0)
			return false;
	}
	return true;
}

static bool receive_all(int fd, void *bytes, size_t n)
{
	ssize_t got;

	do
		got = recv(fd, bytes, n, MSG_WAITALL);
	while (got < 0 && errno == EINTR);
	return got == (ssize_t)n;
}

union control {
	struct cmsghdr head;
	char bytes[CMSG_SPACE(sizeof(int))];
};

/* file: set to the descriptor that came with it, or -1. */
static bool receive_request(struct request *out, int *file)
{
	struct iovec part = {out, sizeof(*out)};
	union control control;
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
				 .msg_controllen = sizeof(control)};
	const struct cmsghdr *head;
	ssize_t n;

	*file = -1;
	do
		n = recvmsg(STDIN_FILENO, &message, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
	if (head && head->cmsg_type == SCM_RIGHTS)
		memcpy(file, CMSG_DATA(head), sizeof(*file));
	return n == sizeof(*out);
}

/* Mapped: if the file becomes shorter, only this process ends. */
static int make_index(const struct request *r, int file, struct elf_index **out, char *note,
		      struct err *err)
{
	void *map = mmap(NULL, (size_t)r->file_bytes, PROT_READ, MAP_PRIVATE, file, 0);
	struct bytes in = bytes_of_memory(map, (size_t)r->file_bytes);
	struct elf_head head;
	int rc;

	if (map == MAP_FAILED)
		return err_os(err, "cannot map it");
	rc = r->which == SANDBOX_DOTNET ? 0 : elf_head_read(&in, &head, err);
	if (!rc)
		rc = sandbox_index_here(&in, &head, r->which, out, note, err);
	munmap(map, (size_t)r->file_bytes);
	return rc;
}

static bool answer_index(const struct request *r, int file)
{
	struct elf_index *index = NULL;
	struct reply reply = {0};
	struct err err = {0};
	bool sent;
	unsigned i;

	reply.code = make_index(r, file, &index, reply.note, &err);
	memcpy(reply.why, err.text, sizeof(reply.why));
	reply.nentries = index ? index->nentries : 0;
	reply.base = index ? index->base : 0;
	for (i = 0; index && i < ELF_TABLES; i++) {
		reply.strings[i].offset = index->strings[i].offset;
		reply.strings[i].size = index->strings[i].size;
		reply.strings[i].kept = index->strings[i].kept != NULL;
	}
	sent = send_all(STDIN_FILENO, &reply, sizeof(reply)) &&
	       (!index || send_all(STDIN_FILENO, index->entries,
				   index->nentries * sizeof(*index->entries)));
	for (i = 0; index && sent && i < ELF_TABLES; i++)
		sent = !index->strings[i].kept || send_all(STDIN_FILENO, index->strings[i].kept,
							   (size_t)index->strings[i].size);
	elf_index_free(index);
	return sent;
}

/* Read, not mapped: a runtime may begin its map anew at any time. */
static int make_perfmap(int file, uint64_t file_bytes, struct perfmap **out, struct err *err)
{
	size_t n = file_bytes < PERFMAP_MAX_BYTES ? (size_t)file_bytes : PERFMAP_MAX_BYTES;
	struct buf text = {0};
	char *to = buf_reserve(&text, n);
	ssize_t got = 1;
	int rc;

	while (to && text.len < n && got > 0) {
		got = pread(file, to + text.len, n - text.len, (off_t)text.len);
		buf_advance(&text, got > 0 ? (size_t)got : 0);
	}
	if (!to)
		rc = err_memory(err, "for a perf map");
	else
		rc = got < 0 ? err_os(err, "cannot read it") : perfmap_parse(&text, out, err);
	buf_free(&text);
	return rc;
}

static bool answer_perfmap(const struct request *r, int file)
{
	struct map_reply reply = {0};
	struct perfmap *map = NULL;
	struct err err = {0};
	bool sent;

	reply.code = make_perfmap(file, r->file_bytes, &map, &err);
	memcpy(reply.why, err.text, sizeof(reply.why));
	if (map) {
		reply.nentries = map->nentries;
		reply.nranges = map->nranges;
		reply.text_bytes = map->nentries ? (uint32_t)map->text.len : 0;
		reply.full = map->full;
	}
	sent = send_all(STDIN_FILENO, &reply, sizeof(reply)) &&
	       (!map || (send_all(STDIN_FILENO, map->entries,
				  map->nentries * sizeof(*map->entries)) &&
			 send_all(STDIN_FILENO, map->ranges,
				  map->nranges * sizeof(*map->ranges)) &&
			 send_all(STDIN_FILENO, map->text.data, reply.text_bytes)));
	perfmap_free(map);
	return sent;
}

static bool answer_name(const struct request *r)
{
	char raw[DEMANGLE_MAX_BYTES + 1];
	struct name_reply reply = {.nbytes = 0};

	if (r->name_bytes > DEMANGLE_MAX_BYTES ||
	    !receive_all(STDIN_FILENO, raw, r->name_bytes))
		return false;
	raw[r->name_bytes] = '\0';
	if (demangle(raw, reply.text, sizeof(reply.text)))
		reply.nbytes = (uint32_t)strlen(reply.text);
	return send_all(STDIN_FILENO, &reply,
			offsetof(struct name_reply, text) + reply.nbytes);
}

int sandbox_serve(void)
{
	struct request r;
	bool goes_on = true;
	int file;

	/* What its owner was given. Headers of an older C library lack the SYS_ name. */
	syscall(__NR_close_range, STDERR_FILENO + 1, ~0u, 0);
	xz_load();
	prctl(PR_SET_NAME, "recorder-names");
	os_limit_memory(SANDBOX_MEMORY_MAX_BYTES);
	if (!os_confine())
		return NOT_CONFINED;
	while (goes_on && receive_request(&r, &file)) {
		goes_on = r.asked == ASKED_NAME	     ? answer_name(&r)
			  : r.asked == ASKED_PERFMAP ? answer_perfmap(&r, file)
						     : answer_index(&r, file);
		if (file >= 0)
			close(file);
	}
	return 0;
}

/* ---- its owner ------------------------------------------------------------------------------- */

struct sandbox *sandbox_new(void)
{
	struct sandbox *s = calloc(1, sizeof(*s));

	if (s)
		s->fd = -1;
	return s;
}

static uint64_t cpu_of(pid_t pid)
{
	struct timespec used = {0};
	clockid_t clock;

	if (pid && clock_getcpuclockid(pid, &clock) == 0)
		clock_gettime(clock, &used);
	return (uint64_t)used.tv_sec * NS_PER_SEC + (uint64_t)used.tv_nsec;
}

/* A process group of its own: Ctrl-C in a terminal is not meant for it. */
static int start(struct sandbox *s, struct err *err)
{
	char *const argv[] = {(char[]){"recorder"}, (char[]){SANDBOX_WORD}, NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none;
	pid_t pid = 0;
	int fds[2], rc;

	if (s->fd >= 0)
		return 0;
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) != 0)
		return err_os(err, "the process that reads symbols was not started: no socket");
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawn_file_actions_adddup2(&files, fds[1], STDIN_FILENO);
	posix_spawn_file_actions_addopen(&files, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&how, 0);
	posix_spawnattr_setsigmask(&how, &none);
	rc = posix_spawn(&pid, "/proc/self/exe", &files, &how, argv, environ);
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	close(fds[1]);
	if (rc) {
		close(fds[0]);
		return err_os_code(err, rc, "the process that reads symbols was not started");
	}
	s->fd = fds[0];
	atomic_store(&s->pid, pid);
	return 0;
}

/* Returns its status; one that hangs in a file system is left behind. */
static int end(struct sandbox *s)
{
	pid_t pid = atomic_load(&s->pid), got = 0;
	int status = 0;
	unsigned i;

	if (s->fd < 0)
		return 0;
	close(s->fd);                        /* one at rest ends by this */
	s->fd = -1;
	for (i = 0; i < REAP_TRIES && !got; i++) {
		uint64_t cpu_ns = cpu_of(pid);

		got = waitpid(pid, &status, WNOHANG);
		if (got == pid)
			atomic_fetch_add(&s->ended_cpu_ns, cpu_ns);
		if (i == 1)
			kill(pid, SIGKILL);
		if (!got)
			os_sleep_ns(5 * NS_PER_MS);
	}
	atomic_store(&s->pid, 0);
	return status;
}

void sandbox_free(struct sandbox *s)
{
	if (s)
		end(s);
	free(s);
}

static int failed(struct sandbox *s, bool is_late, struct err *err)
{
	int status = end(s);

	if (is_late)
		return err_set(err, ERR_LIMIT, "reading its symbols took longer than %u s",
			       (unsigned)(SANDBOX_MAX_NS / NS_PER_SEC));
	if (WIFEXITED(status) && WEXITSTATUS(status) == NOT_CONFINED)
		return err_set(err, ERR_ACCESS, "the process that reads symbols could not give up "
			       "its rights, so it has read nothing");
	if (WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS)
		return err_set(err, ERR_FORMAT, "it became shorter while its symbols were read");
	return err_set(err, ERR_FORMAT, "the process that reads symbols died of it (%s %d), so the "
		       "file is damaged, or made to do that",
		       WIFSIGNALED(status) ? "signal" : "exit code",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
}

/*
 * At least n bytes before end_ns, and up to max of what has come with them. It waits in one
 * call, so that a process that hangs can be seen.
 */
static int receive_some(struct sandbox *s, void *to, size_t n, size_t max, uint64_t end_ns,
			size_t *got_bytes, struct err *err)
{
	size_t all = 0;

	while (all < n) {
		struct pollfd p = {.fd = s->fd, .events = POLLIN};
		uint64_t now_ns = os_now_ns();
		ssize_t got = -1;

		if (now_ns >= end_ns)
			return failed(s, true, err);
		if (poll(&p, 1, (int)((end_ns - now_ns) / NS_PER_MS) + 1) > 0) {
			got = recv(s->fd, (char *)to + all, max - all, MSG_DONTWAIT);
			if (!got || (got < 0 && errno != EINTR && errno != EAGAIN))
				return failed(s, false, err);
		}
		all += got > 0 ? (size_t)got : 0;
	}
	*got_bytes = all;
	return 0;
}

static int receive(struct sandbox *s, void *to, size_t n, uint64_t end_ns, struct err *err)
{
	size_t got;

	return receive_some(s, to, n, n, end_ns, &got, err);
}

/* It works at the priority of the thread that waits for it. */
static void take_priority(const struct sandbox *s)
{
	pid_t pid = atomic_load(&s->pid);
	int own;

	errno = 0;
	own = getpriority(PRIO_PROCESS, 0);
	if (!errno && getpriority(PRIO_PROCESS, (id_t)pid) != own)
		setpriority(PRIO_PROCESS, (id_t)pid, own);
}

static int send_request(struct sandbox *s, const struct request *r, int file, const char *name,
			struct err *err)
{
	struct iovec parts[2] = {{(void *)(uintptr_t)r, sizeof(*r)},
				 {(void *)(uintptr_t)name, r->name_bytes}};
	union control control = {.head = {.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS,
					  .cmsg_len = CMSG_LEN(sizeof(file))}};
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = name ? 2 : 1};
	unsigned tries;
	int rc;

	if (!name) {
		memcpy(CMSG_DATA(&control.head), &file, sizeof(file));
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
	}
	/* It is at rest, and this is little: nothing blocks. It may have been killed since. */
	for (tries = 0; tries < 2; tries++) {
		rc = start(s, err);
		if (rc)
			return rc;
		take_priority(s);
		if (sendmsg(s->fd, &message, MSG_NOSIGNAL) == (ssize_t)(sizeof(*r) + r->name_bytes))
			return 0;
		end(s);
	}
	return err_set(err, ERR_IO, "the process that reads symbols ends as soon as it starts");
}

/* ---- what it is asked ------------------------------------------------------------------------ */

static int distrust(struct sandbox *s, struct err *err)
{
	end(s);
	return err_set(err, ERR_FORMAT,
		       "the process that reads symbols gave an index that cannot be: the file is "
		       "damaged, or made to do that");
}

static int receive_strings(struct sandbox *s, const struct reply *reply, uint64_t end_ns,
			   struct elf_index *index, struct err *err)
{
	int rc = 0;
	unsigned i;

	for (i = 0; i < ELF_TABLES && !rc; i++) {
		struct elf_strings *strings = &index->strings[i];

		strings->offset = reply->strings[i].offset;
		strings->size = reply->strings[i].size;
		if (!reply->strings[i].kept)
			continue;
		if (strings->size > ELF_STRINGS_MAX_BYTES)
			return distrust(s, err);
		strings->kept = calloc(1, (size_t)strings->size + 1);
		rc = strings->kept ? receive(s, strings->kept, (size_t)strings->size, end_ns, err)
				   : err_memory(err, "for its names");
	}
	return rc;
}

static int receive_index(struct sandbox *s, const struct reply *reply, uint64_t end_ns,
			 struct elf_index **out, struct err *err)
{
	struct elf_index *index = calloc(1, sizeof(*index));
	uint32_t n = reply->nentries;
	int rc = 0;

	if (index)
		index->entries = malloc((n ? n : 1) * sizeof(*index->entries));
	if (!index || !index->entries)
		rc = err_memory(err, "for its symbols");
	if (!rc)
		rc = receive(s, index->entries, n * sizeof(*index->entries), end_ns, err);
	if (!rc)
		rc = receive_strings(s, reply, end_ns, index, err);
	if (!rc) {
		index->nentries = n;
		index->base = reply->base;
		*out = index;
		return 0;
	}
	elf_index_free(index);
	return rc;
}

int sandbox_index(struct sandbox *s, const struct elf_file *file, enum sandbox_index which,
		  struct elf_index **out, char *note, struct err *err)
{
	struct request r = {.asked = ASKED_INDEX, .which = which,
			    .file_bytes = file->bytes.size};
	uint64_t end_ns = os_now_ns() + SANDBOX_MAX_NS;
	struct elf_index *index = NULL;
	struct reply reply;
	int rc;

	if (!s || !file->file)
		return sandbox_index_here(&file->bytes, &file->head, which, out, note, err);
	rc = send_request(s, &r, os_file_fd(file->file), NULL, err);
	if (!rc)
		rc = receive(s, &reply, sizeof(reply), end_ns, err);
	if (rc)
		return rc;
	reply.note[sizeof(reply.note) - 1] = reply.why[sizeof(reply.why) - 1] = '\0';
	if (reply.code > 0 || reply.code < ERR_STOPPED || reply.nentries > ELF_FUNCTIONS_MAX)
		return distrust(s, err);
	memcpy(note, reply.note, sizeof(reply.note));
	if (reply.code)
		return err_set(err, (enum err_code)reply.code, "%s", reply.why);
	rc = receive_index(s, &reply, end_ns, &index, err);
	if (rc) {
		end(s);                      /* the next answer would begin in this one's middle */
		return rc;
	}
	if (!sandbox_index_is_sound(index)) {
		elf_index_free(index);
		return distrust(s, err);
	}
	*out = index;
	return 0;
}

/* Room for what follows; an empty block needs none. */
static void *block(size_t n)
{
	return malloc(n ? n : 1);
}

static int receive_perfmap(struct sandbox *s, const struct map_reply *reply, uint64_t end_ns,
			   struct perfmap *map, struct err *err)
{
	char *text;
	int rc = 0;

	map->text.max_bytes = reply->text_bytes;     /* no more room than that */
	text = buf_reserve(&map->text, reply->text_bytes);
	map->nentries = map->capacity = reply->nentries;
	map->nranges = reply->nranges;
	map->full = reply->full;
	map->entries = block(map->nentries * sizeof(*map->entries));
	map->ranges = block(map->nranges * sizeof(*map->ranges));
	if (!text || !map->entries || !map->ranges)
		rc = err_memory(err, "for a perf map");
	if (!rc)
		rc = receive(s, map->entries, map->nentries * sizeof(*map->entries), end_ns, err);
	if (!rc)
		rc = receive(s, map->ranges, map->nranges * sizeof(*map->ranges), end_ns, err);
	if (!rc)
		rc = receive(s, text, reply->text_bytes, end_ns, err);
	if (rc) {
		end(s);
		return rc;
	}
	buf_advance(&map->text, reply->text_bytes);
	return perfmap_is_sound(map) ? 0 : distrust(s, err);
}

int sandbox_perfmap(struct sandbox *s, struct os_file *file, uint64_t file_bytes,
		    struct perfmap **out, struct err *err)
{
	struct request r = {.asked = ASKED_PERFMAP, .file_bytes = file_bytes};
	uint64_t end_ns = os_now_ns() + SANDBOX_MAX_NS;
	struct map_reply reply;
	struct perfmap *map;
	int rc;

	if (!s)
		return make_perfmap(os_file_fd(file), file_bytes, out, err);
	rc = send_request(s, &r, os_file_fd(file), NULL, err);
	if (!rc)
		rc = receive(s, &reply, sizeof(reply), end_ns, err);
	if (rc)
		return rc;
	reply.why[sizeof(reply.why) - 1] = '\0';
	if (reply.code > 0 || reply.code < ERR_STOPPED || reply.nentries > PERFMAP_LINES_MAX ||
	    reply.nranges > 2 * reply.nentries || reply.text_bytes > PERFMAP_MAX_BYTES)
		return distrust(s, err);
	if (reply.code)
		return err_set(err, (enum err_code)reply.code, "%s", reply.why);
	map = calloc(1, sizeof(*map));
	if (!map) {
		end(s);
		return err_memory(err, "for a perf map");
	}
	rc = receive_perfmap(s, &reply, end_ns, map, err);
	if (rc)
		perfmap_free(map);
	else
		*out = map;
	return rc;
}

/* What libiberty would take apart: of Itanium C++ and of Rust. */
static bool is_mangled(const char *raw)
{
	return raw[0] == '_' && (raw[1] == 'Z' || raw[1] == 'R' || raw[1] == 'G');
}

bool sandbox_demangle(struct sandbox *s, const char *raw, char *out, size_t n)
{
	uint64_t end_ns = os_now_ns() + SANDBOX_MAX_NS;
	struct request r = {.asked = ASKED_NAME,
			    .name_bytes = (uint32_t)strnlen(raw, DEMANGLE_MAX_BYTES + 1)};
	const size_t head = offsetof(struct name_reply, text);
	struct name_reply reply;
	size_t got;

	if (!s || !is_mangled(raw) || r.name_bytes > DEMANGLE_MAX_BYTES)
		return demangle(raw, out, n);
	if (send_request(s, &r, -1, raw, NULL) ||
	    receive_some(s, &reply, head, sizeof(reply), end_ns, &got, NULL))
		return false;
	if (reply.nbytes >= n || reply.nbytes >= sizeof(reply.text) || got > head + reply.nbytes) {
		end(s);
		return false;
	}
	if (!reply.nbytes ||
	    receive(s, (char *)&reply + got, head + reply.nbytes - got, end_ns, NULL))
		return false;
	memcpy(out, reply.text, reply.nbytes);
	out[reply.nbytes] = '\0';
	return true;
}

/* ---- for other threads ----------------------------------------------------------------------- */

/* Its state (R, S, D, ...), or 0, and its memory: proc(5), stat, fields 3 and 24. */
static char look_at(pid_t pid, uint64_t *rss_bytes)
{
	struct buf text = {0};
	unsigned long long pages = 0;
	char path[40], state = 0;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
	if (os_load(path, STAT_MAX_BYTES, &text, NULL) == 0 &&
	    (at = strrchr(buf_text(&text), ')')) != NULL)
		sscanf(at, ") %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
		       "%*d %*d %*u %*u %llu", &state, &pages);
	buf_free(&text);
	*rss_bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	return state;
}

bool sandbox_waits(const struct sandbox *s, uint64_t *progress)
{
	pid_t pid = s ? atomic_load(&s->pid) : 0;
	uint64_t rss_bytes;

	*progress = cpu_of(pid);
	return !pid || look_at(pid, &rss_bytes) != 'R';
}

void sandbox_hurry(const struct sandbox *s)
{
	pid_t pid = s ? atomic_load(&s->pid) : 0;

	if (pid)
		setpriority(PRIO_PROCESS, (id_t)pid, -10);
}

void sandbox_add_usage(const struct sandbox *s, uint64_t *cpu_ns, uint64_t *rss_bytes)
{
	pid_t pid = s ? atomic_load(&s->pid) : 0;
	uint64_t own_rss_bytes;

	if (!s)
		return;
	*cpu_ns += atomic_load(&s->ended_cpu_ns) + cpu_of(pid);
	if (pid && look_at(pid, &own_rss_bytes))
		*rss_bytes += own_rss_bytes;
}
