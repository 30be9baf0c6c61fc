/*
 * The source of log lines on Linux: files followed across rotation, the kernel's log, the journal.
 * One thread waits for all of them, and checks files every 100 ms. New lines become EVENT_LOG with
 * the fields Log (as in the rule), Message, and Source, Pid, Level if known.
 *
 *	/path/to/file     from its end; after rotation or truncation from the start of the new file;
 *	                  a file that does not exist yet is awaited, and read from its start
 *	kernel            /dev/kmsg, as dmesg -w reads it
 *	journal           journalctl -f, which knows the journal's format and this user's rights;
 *	                  restarted when it ends
 *	Application, System    the journal if there is one, else /var/log/syslog or messages
 *
 * The time of a line is when it was read, up to 100 ms after it was written.
 */
#include "base/os.h"
#include "base/text.h"
#include "source/log/parse.h"
#include "source/source.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define OWN_NAME "recorder"
#define LOOK_MS 100
#define RESTART_NS (10 * NS_PER_SEC)
#define READ_BYTES 65536u
#define READS_AT_ONCE 64                     /* 4 MB of a log, then the others' turn */
#define RECORDS_AT_ONCE 1024                 /* of the kernel's log, likewise */

extern char **environ;

enum log_kind { LOG_OF_FILE, LOG_OF_KERNEL, LOG_OF_JOURNAL };

struct followed {
	struct log_source *source;
	const char *name;                    /* as in the rule */
	const char *path;                    /* LOG_OF_FILE */
	enum log_kind kind;
	int fd;                              /* -1 = not open now */
	dev_t dev;
	ino_t ino;
	off_t at;
	uint64_t next_seq;                   /* LOG_OF_KERNEL */
	pid_t child;                         /* LOG_OF_JOURNAL */
	uint64_t start_again_ns;
	struct log_cutter cutter;
};

struct log_source {
	struct source base;
	struct queue *queue;
	struct log *log;
	struct need_log logs[NEEDS_MAX_LOGS];
	struct followed *all;
	uint32_t nall;
	char *buffer;
	_Atomic bool stopping;
	atomic_uint_fast64_t events, lost;
};

extern const struct source_ops log_source;

/* ---- which log is what ----------------------------------------------------------------------- */

/* Fixed paths instead of PATH, which root should not trust. NULL = not installed. */
static const char *journalctl(void)
{
	static const char *const paths[] = {"/usr/bin/journalctl", "/bin/journalctl"};
	size_t i;

	for (i = 0; i < 2; i++)
		if (access(paths[i], X_OK) == 0)
			return paths[i];
	return NULL;
}

static bool has_journal(void)
{
	return (access("/run/log/journal", F_OK) == 0 || access("/var/log/journal", F_OK) == 0) &&
	       journalctl();
}

static int resolve_name(const char *name, enum log_kind *kind, const char **path, struct err *err)
{
	static const char *const files[] = {"/var/log/syslog", "/var/log/messages"};
	size_t i;

	*path = NULL;
	*kind = LOG_OF_KERNEL;
	if (text_same_fold(name, "kernel"))
		return 0;
	*kind = LOG_OF_FILE;
	*path = name;
	if (*name == '/')
		return 0;
	*kind = LOG_OF_JOURNAL;
	*path = NULL;
	if (text_same_fold(name, "journal"))
		return has_journal() ? 0
				     : err_set(err, ERR_USAGE,
					       "this system has no journal; name a file or kernel: "
					       "/var/log/x.log@text");
	if (!text_same_fold(name, "Application") && !text_same_fold(name, "System"))
		return err_set(err, ERR_USAGE,
			       "unknown log '%.100s'; known are kernel, journal, Application and "
			       "System (both: the journal or syslog), and paths of files", name);
	if (has_journal())
		return 0;
	*kind = LOG_OF_FILE;
	for (i = 0; i < 2; i++) {
		*path = files[i];
		if (access(files[i], F_OK) == 0)
			return 0;
	}
	return err_set(err, ERR_USAGE,
		       "the log '%s' means the journal or syslog, and this system has neither; "
		       "name a file or kernel: /var/log/x.log@text", name);
}

/* Find a log and check that it can be read. A file may be missing, but not its directory. */
static int find_log(const char *name, enum log_kind *kind, const char **path, struct err *err)
{
	struct buf dir = {0};
	int rc = resolve_name(name, kind, path, err);
	const char *file = rc || *kind == LOG_OF_FILE ? *path : "/dev/kmsg";

	if (rc || *kind == LOG_OF_JOURNAL || access(file, R_OK) == 0)
		return rc;
	if (errno != ENOENT)
		return err_os(err, "cannot read the log %s; run as root", file);
	os_dirname(file, &dir);
	if (*kind == LOG_OF_KERNEL || access(buf_text(&dir), F_OK) != 0)
		rc = err_set(err, ERR_USAGE, "the log %s does not exist, nor does its directory",
			     file);
	buf_free(&dir);
	return rc;
}

static int log_check(const struct needs *needs, struct err *err)
{
	enum log_kind kind;
	const char *path;
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->nlogs; i++)
		rc = find_log(needs->logs[i].name, &kind, &path, err);
	return rc;
}

/* ---- opening --------------------------------------------------------------------------------- */

static void close_log(struct followed *f)
{
	if (f->fd >= 0)
		close(f->fd);
	f->fd = -1;
}

static void log_close_source(struct source *source)
{
	struct log_source *s = (struct log_source *)source;
	uint32_t i;

	if (!s)
		return;
	for (i = 0; i < s->nall; i++) {
		close_log(&s->all[i]);
		if (s->all[i].child > 0) {
			kill(s->all[i].child, SIGKILL);
			waitpid(s->all[i].child, NULL, 0);
		}
	}
	free(s->all);
	free(s->buffer);
	free(s);
}

static bool open_file(struct followed *f, bool from_its_end)
{
	struct stat st;

	f->fd = open(f->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (f->fd < 0)
		return false;
	if (fstat(f->fd, &st) != 0 || !S_ISREG(st.st_mode)) {
		close_log(f);
		return false;
	}
	f->dev = st.st_dev;
	f->ino = st.st_ino;
	f->at = lseek(f->fd, 0, from_its_end ? SEEK_END : SEEK_SET);
	f->cutter.len = 0;
	f->cutter.skipping = false;
	return true;
}

static void open_kernel(struct followed *f)
{
	f->fd = open("/dev/kmsg", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (f->fd >= 0)
		lseek(f->fd, 0, SEEK_END);
}

static void start_journal(struct followed *f)
{
	char *const argv[] = {"journalctl",    "-f", "-n", "0", "-q", "-o", "short-monotonic",
			      "--no-hostname", NULL};
	posix_spawn_file_actions_t files;
	posix_spawnattr_t how;
	sigset_t none;
	int fds[2];

	f->start_again_ns = os_now_ns() + RESTART_NS;
	if (pipe2(fds, O_CLOEXEC) != 0)
		return;
	sigemptyset(&none);
	posix_spawn_file_actions_init(&files);
	posix_spawnattr_init(&how);
	posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_addopen(&files, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	posix_spawn_file_actions_adddup2(&files, fds[1], STDOUT_FILENO);
	posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGMASK);
	posix_spawnattr_setpgroup(&how, 0);
	posix_spawnattr_setsigmask(&how, &none);
	f->child = 0;
	if (posix_spawn(&f->child, journalctl(), &files, &how, argv, environ) != 0)
		f->child = 0;
	posix_spawn_file_actions_destroy(&files);
	posix_spawnattr_destroy(&how);
	close(fds[1]);
	f->fd = f->child > 0 ? fds[0] : -1;
	if (f->fd < 0)
		close(fds[0]);
	else
		fcntl(f->fd, F_SETFL, O_NONBLOCK);
}

static int follow_log(struct log_source *s, const char *name, struct err *err)
{
	struct followed *f = &s->all[s->nall];
	int rc = find_log(name, &f->kind, &f->path, err);

	if (rc)
		return rc;
	f->source = s;
	f->name = name;
	f->fd = -1;
	s->nall++;
	if (f->kind == LOG_OF_FILE && !open_file(f, true))
		log_line(s->log, LOG_WARN, "the log %s %s; waiting for it", f->path,
			 os_exists(f->path) ? "is not a regular file" : "does not exist yet");
	if (f->kind == LOG_OF_KERNEL)
		open_kernel(f);
	if (f->kind == LOG_OF_JOURNAL)
		start_journal(f);
	return 0;
}

static int log_open_source(const struct source_config *cfg, const struct needs *needs,
			   struct source **out, struct err *err)
{
	struct log_source *s = calloc(1, sizeof(*s));
	uint32_t i;
	int rc = 0;

	if (s) {
		s->base.ops = &log_source;
		s->queue = cfg->queue;
		s->log = cfg->log;
		s->all = calloc(needs->nlogs ? needs->nlogs : 1, sizeof(*s->all));
		s->buffer = malloc(READ_BYTES);
	}
	if (!s || !s->all || !s->buffer)
		rc = err_memory(err, "for the source of logs");
	if (!rc)
		memcpy(s->logs, needs->logs, sizeof(s->logs));
	for (i = 0; !rc && i < needs->nlogs; i++)
		rc = follow_log(s, s->logs[i].name, err);
	if (rc) {
		log_close_source(s ? &s->base : NULL);
		return rc;
	}
	*out = &s->base;
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void put_line(struct followed *f, const struct log_line *line)
{
	char text[LOG_LINE_MAX + 1], name[64];
	struct event_field fields[5] = {
		{.name = "Log", .type = FIELD_TEXT, .v.text = f->name},
		{.name = "Message", .type = FIELD_TEXT, .v.text = text},
	};
	struct event e = {
		.time_ns = os_now_ns(), .kind = EVENT_LOG, .cpu = CPU_NONE, .stream = STREAM_EVENT,
		.stack = STACK_NONE, .name = f->name, .fields = fields, .nfields = 2,
	};

	snprintf(text, sizeof(text), "%.*s",
		 (int)(line->len < LOG_LINE_MAX ? line->len : LOG_LINE_MAX), line->text);
	if (line->name) {
		snprintf(name, sizeof(name), "%.*s",
			 (int)(line->name_len < 60 ? line->name_len : 60), line->name);
		fields[e.nfields++] = (struct event_field){.name = "Source", .type = FIELD_TEXT,
							   .v.text = name};
	}
	if (line->pid)
		fields[e.nfields++] = (struct event_field){.name = "Pid", .type = FIELD_UINT,
							   .v.u = line->pid};
	if (line->level >= 0)
		fields[e.nfields++] = (struct event_field){.name = "Level", .type = FIELD_INT,
							   .v.i = line->level};
	if (queue_put(f->source->queue, &e))
		atomic_fetch_add_explicit(&f->source->events, 1, memory_order_relaxed);
}

/* What recorders say of a rule repeats its words: it would fire again, and again. */
static bool is_of_a_recorder(const struct followed *f, const struct log_line *line)
{
	char tag[40];

	if (f->kind == LOG_OF_JOURNAL)
		return line->name && line->name_len == strlen(OWN_NAME) &&
		       memcmp(line->name, OWN_NAME, line->name_len) == 0;
	snprintf(tag, sizeof(tag), " " OWN_NAME "[%d]: ", (int)getpid());
	return memmem(line->text, line->len, tag, strlen(tag)) != NULL;
}

static void put_text(void *ctx, const char *text, size_t len)
{
	struct followed *f = ctx;
	struct log_line line = {.text = text, .len = len, .level = -1};

	if (f->kind != LOG_OF_FILE && !log_parse_journal(text, len, &line))
		return;
	if (!is_of_a_recorder(f, &line))
		put_line(f, &line);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Read what is there now, within bounds; returns what the last read() did: 0 at an end. */
static ssize_t read_lines(struct followed *f)
{
	char *buffer = f->source->buffer;
	ssize_t n = 1;
	int i;

	for (i = 0; i < READS_AT_ONCE && (n = read(f->fd, buffer, READ_BYTES)) > 0; i++) {
		f->at += n;
		log_cut(&f->cutter, buffer, (size_t)n, put_text, f);
	}
	return n;
}

/* Read the rest of the old file, then the new one after rotation or truncation. */
static void follow_file(struct followed *f)
{
	struct stat st;

	if (f->fd >= 0) {
		read_lines(f);
		if (fstat(f->fd, &st) == 0 && st.st_size < f->at) {
			f->at = lseek(f->fd, 0, SEEK_SET);
			f->cutter.len = 0;
			read_lines(f);
		}
	}
	if (stat(f->path, &st) != 0)
		return;                      /* during a rotation, or missing */
	if (f->fd >= 0 && st.st_dev == f->dev && st.st_ino == f->ino)
		return;
	if (f->fd >= 0 && read_lines(f) > 0)
		return;                      /* the rest of the old file comes first */
	close_log(f);
	if (open_file(f, false))
		read_lines(f);
}

static void read_kernel(struct followed *f)
{
	struct log_source *s = f->source;
	struct log_line line;
	uint64_t seq;
	ssize_t n;
	int i;

	for (i = 0; i < RECORDS_AT_ONCE; i++) {
		n = read(f->fd, s->buffer, READ_BYTES);
		if (n < 0 && errno == EPIPE)
			continue;            /* overwritten records: counted by number */
		if (n <= 0)
			return;
		if (!log_parse_kmsg(s->buffer, (size_t)n, &line, &seq))
			continue;
		if (f->next_seq && seq > f->next_seq)
			atomic_fetch_add_explicit(&s->lost, seq - f->next_seq,
						  memory_order_relaxed);
		f->next_seq = seq + 1;
		put_line(f, &line);
	}
}

static void read_journal(struct followed *f)
{
	if (f->fd >= 0 && read_lines(f) == 0) {
		close_log(f);
		waitpid(f->child, NULL, 0);
		f->child = 0;
		log_line(f->source->log, LOG_WARN, "journalctl has ended; restarting it");
	}
	if (f->fd < 0 && os_now_ns() >= f->start_again_ns)
		start_journal(f);
}

static void read_log(struct followed *f)
{
	switch (f->kind) {
	case LOG_OF_FILE:
		follow_file(f);
		break;
	case LOG_OF_KERNEL:
		if (f->fd >= 0)
			read_kernel(f);
		break;
	case LOG_OF_JOURNAL:
		read_journal(f);
		break;
	}
}

static void wait_for_any(struct log_source *s)
{
	struct pollfd fds[NEEDS_MAX_LOGS];
	uint32_t i, n = 0;

	/* poll() says that regular files are always ready, so they are checked every time. */
	for (i = 0; i < s->nall; i++) {
		if (s->all[i].kind != LOG_OF_FILE && s->all[i].fd >= 0)
			fds[n++] = (struct pollfd){.fd = s->all[i].fd, .events = POLLIN};
	}
	os_poll(fds, n, LOOK_MS * NS_PER_MS);
}

static int log_run(struct source *source, struct err *err)
{
	struct log_source *s = (struct log_source *)source;
	uint64_t now_ns;
	uint32_t i;

	(void)err;
	while (s->nall && !atomic_load(&s->stopping)) {
		now_ns = os_now_ns();
		for (i = 0; i < s->nall; i++)
			read_log(&s->all[i]);
		queue_watermark(s->queue, now_ns);
		queue_rest(s->queue, 0);     /* a line has the time at which it is read */
		wait_for_any(s);
		queue_resume(s->queue, os_now_ns());
	}
	queue_finish(s->queue);
	return 0;
}

static void log_stop(struct source *source)
{
	atomic_store(&((struct log_source *)source)->stopping, true);
}

static void log_status(struct source *source, struct source_status *out)
{
	struct log_source *s = (struct log_source *)source;

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
	out->lost = queue_lost(s->queue) + atomic_load_explicit(&s->lost, memory_order_relaxed);
}

const struct source_ops log_source = {
	.name = "logs",
	.summary = "lines of files, the kernel's log and the journal, for rules",
	.logs = true,
	.check = log_check,
	.open = log_open_source,
	.run = log_run,
	.stop = log_stop,
	.status = log_status,
	.close = log_close_source,
};
