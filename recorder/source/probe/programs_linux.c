#include "source/probe/programs_linux.h"

#include "base/array.h"
#include "base/pool.h"
#include "base/text.h"
#include "model/needs.h"
#include "source/host/proc_pid_linux.h"
#include "source/ring/perf_ring_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MAPS_MAX_BYTES ((size_t)16 << 20)
/* A job has then run for POOL_STUCK_NS, even if it began late. */
#define ANSWER_NS (POOL_STUCK_NS + NS_PER_SEC / 2)
#define SAID_NS (NS_PER_SEC / 2)             /* then people are told what is waited for */
#define SERVER_NS (800 * NS_PER_MS)          /* and for the server of a file system, that is all */
#define RESOLVE_NS (10 * NS_PER_SEC)         /* a large table of symbols on a slow disk */
#define DRAINING_NS (100 * NS_PER_MS)

/* Whether its owner still waits; the later one of the two finds what the other has done. */
enum { WAITING, ANSWERED, ABANDONED };

struct question {
	struct job job;
	void (*find)(struct question *q);     /* on a thread of the pool */
	_Atomic int state, thread;            /* thread: that asks, 0 = none does yet */
	char what[UPROBE_PATH_MAX + 60];     /* for people */
	uint32_t pid;
	uint64_t dev;
	char provider[16], name[EVENT_NAME_MAX];     /* or a path */
	bool ok;
	int rc;
	struct err err;
	struct buf text;
	struct proc_names names;
	struct os_file_info info;
	struct uprobe uprobe;                /* its file: -1 = none */
	struct perf_event_attr attr;
	unsigned cpu;
	int fd;                              /* a file, then the answer; -1 = none */
	struct program_library *library;
};

/* To close a descriptor; made with it, so that closing needs no memory. */
struct closing {
	struct job job;
	int fd;
	struct closing *next;
};

struct hung {
	uint64_t dev;                        /* 0 = not known */
	uint32_t uid;
};

struct programs {
	struct log *log;
	struct pool *pool;
	bool draining;
	/* not answered, its thread not left behind yet: nothing is asked meanwhile. NULL = none */
	struct question *late;
	struct question *asked;              /* by programs_ask(); NULL = none */
	struct closing *spare;               /* one for each descriptor that was given out */
	struct closing *last;                /* that was put into the pool; NULL = none */
	struct hung hung[POOL_STUCK_MAX];
	unsigned nhung;
	bool full_logged;
};

/* ---- jobs ------------------------------------------------------------------------------------ */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* To close a file may wait as well, so the job does it when nobody takes the answer. */
static void run_question(struct job *job)
{
	struct question *q = (struct question *)job;
	unsigned i;

	atomic_store(&q->thread, gettid());
	q->find(q);
	if (atomic_exchange(&q->state, ANSWERED) == ABANDONED) {
		close_fd(&q->fd);
		close_fd(&q->uprobe.file);
		for (i = 0; q->library && i < PROGRAM_FUNCTIONS_MAX; i++)
			close_fd(&q->library->places[i].file);
	}
}

/* Descriptors of a job that never ran are closed when the program ends. */
static void free_question(struct job *job)
{
	struct question *q = (struct question *)job;

	buf_free(&q->text);
	program_library_free(q->library);
	free(q);
}

static void find_maps(struct question *q)
{
	q->ok = proc_pid_load(q->pid, "maps", MAPS_MAX_BYTES, &q->text);
}

static void find_names(struct question *q)
{
	q->ok = proc_names_read(q->pid, &q->names);
}

static void find_info(struct question *q)
{
	q->ok = os_path_info(q->name, &q->info, NULL) == 0;
}

static void find_resolve(struct question *q)
{
	q->rc = uprobe_resolve(q->provider, q->name, &q->uprobe, &q->err);
}

static void find_have(struct question *q)
{
	find_resolve(q);
	close_fd(&q->uprobe.file);
}

/* By the number of the open file: at its path may be another one by now. */
static void find_event(struct question *q)
{
	char path[40];
	int file = q->fd;

	snprintf(path, sizeof(path), "/proc/self/fd/%d", file);
	q->attr.uprobe_path = (uint64_t)(uintptr_t)path;
	q->fd = perf_event_fd(&q->attr, q->cpu);
	q->rc = errno;
	close(file);
}

/* The index of a file in a list; n = it is not there. */
static unsigned find_id(const struct program_id *ids, unsigned n, const struct program_id *id)
{
	unsigned i = 0;

	while (i < n && (ids[i].dev != id->dev || ids[i].ino != id->ino))
		i++;
	return i;
}

static void find_library(struct question *q)
{
	struct program_library *l = q->library;
	struct program_file file;
	char name[EVENT_NAME_MAX];
	const char *at;
	unsigned i;

	find_maps(q);
	at = buf_text(&q->text);
	if (!q->ok || !program_mapped(q->pid, &at, l->part, &file) || strchr(file.path, ':') ||
	    os_path_info(file.path, &q->info, NULL) != 0 || !q->info.regular)
		return;
	l->id = (struct program_id){q->info.dev, q->info.ino};
	if (find_id(l->known, l->nknown, &l->id) < l->nknown)
		return;
	strcpy(l->path, file.path);
	for (i = 0; i < PROGRAM_FUNCTIONS_MAX && l->functions[i]; i++) {
		snprintf(name, sizeof(name), "%s:%s", l->path, l->functions[i]);
		if (uprobe_resolve("uprobe", name, &l->places[i], &q->err) != 0)
			l->places[i].file = -1;
	}
}

static struct question *new_question(void (*find)(struct question *q), const char *what,
				     const struct program_file *file)
{
	struct question *q = calloc(1, sizeof(*q));

	if (!q)
		return NULL;
	q->find = find;
	q->uprobe.file = q->fd = -1;
	q->job.run = run_question;
	q->job.free = free_question;
	snprintf(q->what, sizeof(q->what), "%s", what);
	q->job.what = q->what;
	q->pid = file ? file->pid : 0;
	q->dev = file ? file->dev : 0;
	job_init(&q->job);
	return q;
}

static void drop(struct question **q)
{
	if (*q)
		job_drop(&(*q)->job);
	*q = NULL;
}

static void run_closing(struct job *job)
{
	close(((struct closing *)job)->fd);
}

static void free_closing(struct job *job)
{
	free(job);
}

static bool add_spare(struct programs *p)
{
	struct closing *c = calloc(1, sizeof(*c));

	if (!c)
		return false;
	c->job = (struct job){.run = run_closing, .free = free_closing, .what = "a probe's end"};
	job_init(&c->job);
	c->next = p->spare;
	p->spare = c;
	return true;
}

static struct closing *take_spare(struct programs *p)
{
	struct closing *c = p->spare;

	if (c)
		p->spare = c->next;
	return c;
}

/* ---- who does not answer --------------------------------------------------------------------- */

static uint32_t user_of(uint32_t pid)
{
	uint32_t uid = 0;

	if (pid)
		proc_pid_user(pid, &uid);    /* without memory or files of the process */
	return uid;
}

static bool is_left_alone(const struct programs *p, uint32_t pid, uint64_t dev)
{
	uint32_t uid = user_of(pid);
	unsigned i, of_user = 0;

	for (i = 0; i < p->nhung; i++) {
		if (dev && p->hung[i].dev == dev)
			return true;
		of_user += pid && p->hung[i].uid == uid;
	}
	return of_user >= PROGRAMS_HUNG_OF_USER;
}

static void note_hung(struct programs *p, const struct question *q)
{
	log_line(p->log, LOG_WARN,
		 "%s does not answer (a file system that hangs, a machine without CPU?): no probes "
		 "are put there, nor into other programs of that file system", q->what);
	if (p->nhung < POOL_STUCK_MAX)
		p->hung[p->nhung++] = (struct hung){q->dev, user_of(q->pid)};
}

static void abandon_asked(struct programs *p)
{
	if (atomic_exchange(&p->asked->state, ABANDONED) == ANSWERED)
		return;
	note_hung(p, p->asked);
	drop(&p->asked);
}

/* Let another thread take over from the one that is stuck. */
static void leave_behind(struct programs *p, uint64_t now_ns)
{
	const struct job *job;

	while ((job = pool_look(p->pool, now_ns)) != NULL)
		if (p->late && job == &p->late->job)
			drop(&p->late);
		else if (p->asked && job == &p->asked->job)
			abandon_asked(p);
	if (p->late && job_done(&p->late->job))
		drop(&p->late);
}

static bool may_ask(struct programs *p)
{
	if (p->late && job_done(&p->late->job))
		drop(&p->late);
	if (!p->late && pool_stuck(p->pool) < POOL_STUCK_MAX)
		return true;
	if (!p->full_logged)
		log_line(p->log, LOG_WARN,
			 "too many file systems do not answer: no more probes are put into "
			 "programs until one of them does");
	p->full_logged = true;
	return false;
}

/*
 * Whether the thread that asks waits for the server of a file system: FUSE, NFS, CIFS, 9p, Ceph,
 * autofs. A disk or a process is waited for longer, because they answer once the machine has time.
 */
static bool waits_for_server(const struct question *q)
{
	static const char *const servers[] = {"request_wait_answer", "fuse_", "rpc_wait", "nfs",
					      "wait_for_response", "cifs_", "p9_", "ceph_",
					      "autofs_"};
	struct buf where = {0};
	bool waits = false;
	char path[64];
	size_t i;

	snprintf(path, sizeof(path), "/proc/self/task/%d/wchan", atomic_load(&q->thread));
	if (os_load(path, 100, &where, NULL) == 0)
		for (i = 0; i < COUNT_OF(servers); i++)
			waits |= strncmp(buf_text(&where), servers[i], strlen(servers[i])) == 0;
	buf_free(&where);
	return waits;
}

static bool wait_aloud(struct programs *p, const struct question *q, uint64_t limit_ns)
{
	if (p->draining)
		return pool_wait(p->pool, &q->job, DRAINING_NS);
	if (pool_wait(p->pool, &q->job, SAID_NS))
		return true;
	log_line(p->log, LOG_INFO, "waiting for %s, for %.1f s at most", q->what,
		 (double)limit_ns / 1e9);
	if (pool_wait(p->pool, &q->job, SERVER_NS - SAID_NS))
		return true;
	return !waits_for_server(q) && pool_wait(p->pool, &q->job, limit_ns - SERVER_NS);
}

/* Ask and wait. returns  false: no answer, and the caller's use of the question has ended */
static bool get_answer(struct programs *p, struct question *q, uint64_t limit_ns)
{
	if (!may_ask(p)) {
		job_drop(&q->job);
		return false;
	}
	pool_put(p->pool, &q->job);
	if (wait_aloud(p, q, limit_ns) ||
	    atomic_exchange(&q->state, ABANDONED) == ANSWERED)
		return true;
	note_hung(p, q);
	p->late = q;
	pool_set_stuck(p->pool, SERVER_NS / 2);
	leave_behind(p, os_now_ns());
	pool_set_stuck(p->pool, POOL_STUCK_NS);
	return false;
}

/* ---- questions ------------------------------------------------------------------------------- */

bool programs_maps(struct programs *p, uint32_t pid, struct buf *out)
{
	const struct program_file process = {.pid = pid};
	struct question *q;
	char what[40];
	bool ok;

	buf_reset(out);
	snprintf(what, sizeof(what), "process %u", pid);
	if (is_left_alone(p, pid, 0) || (q = new_question(find_maps, what, &process)) == NULL ||
	    !get_answer(p, q, ANSWER_NS))
		return false;
	ok = q->ok;
	buf_free(out);
	*out = q->text;
	q->text = (struct buf){0};
	drop(&q);
	return ok;
}

bool programs_names(struct programs *p, uint32_t pid, struct proc_names *out)
{
	const struct program_file process = {.pid = pid};
	struct question *q;
	char what[40];
	bool ok;

	snprintf(what, sizeof(what), "process %u", pid);
	if (is_left_alone(p, pid, 0) || (q = new_question(find_names, what, &process)) == NULL ||
	    !get_answer(p, q, ANSWER_NS))
		return false;
	ok = q->ok;
	*out = q->names;
	proc_names_point(out);
	drop(&q);
	return ok;
}

/* "the program /srv/x of process 12": what it executes is more telling than /proc/12/exe. */
static void describe(const struct program_file *file, char *out, size_t n)
{
	char target[UPROBE_PATH_MAX];

	if (!file->pid)
		snprintf(out, n, "%s", file->path);
	else if (text_ends_fold(file->path, "/exe") &&
		 proc_pid_exe(file->pid, target, sizeof(target)))
		snprintf(out, n, "%s (of process %u)", target, file->pid);
	else
		snprintf(out, n, "%s", file->path);
}

static struct question *about_file(struct programs *p, void (*how)(struct question *q),
				   const struct program_file *file, const char *name)
{
	char what[UPROBE_PATH_MAX + 60];
	struct question *q;

	if (is_left_alone(p, file->pid, file->dev))
		return NULL;
	describe(file, what, sizeof(what));
	q = new_question(how, what, file);
	if (q)
		snprintf(q->name, sizeof(q->name), "%s", name);
	return q;
}

bool programs_info(struct programs *p, const struct program_file *file, struct os_file_info *out)
{
	struct question *q = about_file(p, find_info, file, file->path);
	bool ok;

	if (!q || !get_answer(p, q, ANSWER_NS))
		return false;
	ok = q->ok;
	*out = q->info;
	drop(&q);
	return ok;
}

bool programs_have(struct programs *p, const struct program_file *file, const char *provider,
		   const char *name)
{
	struct question *q = about_file(p, find_have, file, name);
	bool ok;

	if (!q)
		return false;
	snprintf(q->provider, sizeof(q->provider), "%s", provider);
	if (!get_answer(p, q, RESOLVE_NS))
		return false;
	ok = !q->rc;
	drop(&q);
	return ok;
}

int programs_resolve(struct programs *p, const char *provider, const char *name,
		     struct uprobe *out, struct err *err)
{
	struct question *q = add_spare(p) ? new_question(find_resolve, name, NULL) : NULL;
	int rc;

	if (!q)
		return err_memory(err, "for a probe");
	snprintf(q->provider, sizeof(q->provider), "%s", provider);
	snprintf(q->name, sizeof(q->name), "%s", name);
	if (!get_answer(p, q, RESOLVE_NS))
		return err_set(err, ERR_BUSY,
			       "cannot put a probe into %.300s: its file system does not "
			       "answer, or the machine is too busy to read it in %u s",
			       name, (unsigned)(RESOLVE_NS / NS_PER_SEC));
	rc = q->rc;
	*out = q->uprobe;
	if (rc && err)
		*err = q->err;
	drop(&q);
	return rc;
}

int programs_event_fd(struct programs *p, const struct uprobe *u,
		      const struct perf_event_attr *attr, unsigned cpu)
{
	struct question *q = add_spare(p) ? new_question(find_event, u->path, NULL) : NULL;
	int fd, os_error;

	errno = ENOMEM;
	if (!q)
		return -1;
	q->attr = *attr;
	q->cpu = cpu;
	q->fd = fcntl(u->file, F_DUPFD_CLOEXEC, 0);      /* its own, should it be late */
	if (!get_answer(p, q, ANSWER_NS)) {
		errno = ETIMEDOUT;
		return -1;
	}
	fd = q->fd;
	os_error = q->rc;
	drop(&q);
	errno = os_error;
	return fd;
}

bool programs_ask(struct programs *p, uint32_t pid, struct program_library *library)
{
	const struct program_file process = {.pid = pid};
	struct question *q = NULL;
	char what[40];
	unsigned i;

	snprintf(what, sizeof(what), "process %u", pid);
	if (!p->asked && !is_left_alone(p, pid, 0) && may_ask(p))
		q = new_question(find_library, what, &process);
	for (i = 0; q && i < PROGRAM_FUNCTIONS_MAX; i++) {
		library->places[i].file = -1;
		if (!add_spare(p))
			drop(&q);
	}
	if (!q) {
		program_library_free(library);
		return false;
	}
	q->library = library;
	p->asked = q;
	pool_put(p->pool, &q->job);
	return true;
}

struct program_library *programs_answer(struct programs *p, bool *waits)
{
	struct program_library *library;

	*waits = p->asked && !job_done(&p->asked->job);
	if (!p->asked || *waits)
		return NULL;
	library = p->asked->library;
	p->asked->library = NULL;
	drop(&p->asked);
	return library;
}

void program_library_free(struct program_library *library)
{
	if (library)
		free(library->known);
	free(library);
}

void programs_close(struct programs *p, int fd)
{
	struct closing *c = fd < 0 ? NULL : take_spare(p);

	if (!c)
		return;
	c->fd = fd;
	pool_put(p->pool, &c->job);
	if (p->last)
		job_drop(&p->last->job);
	p->last = c;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/* The line of mappings with `part`: start-end perms pgoff major:minor inode path. NULL = none */
static const char *find_line(const char *text, const char *part, uint64_t *dev)
{
	const char *line = strstr(text, part);
	unsigned major, minor;

	if (!line)
		return NULL;
	while (line > text && line[-1] != '\n')
		line--;
	*dev = sscanf(line, "%*x-%*x %*s %*x %x:%x", &major, &minor) == 2
		       ? (uint64_t)major << 32 | minor : 0;
	return line;
}

bool program_mapped(uint32_t pid, const char **at, const char *part, struct program_file *out)
{
	const char *line = find_line(*at, part, &out->dev);
	size_t length;

	if (!line)
		return false;
	length = strcspn(line, "\n");
	*at = line + length;
	line = memchr(line, '/', length);    /* only the path has a '/' */
	if (!line)
		return false;
	out->pid = pid;
	return proc_pid_file(pid, line, (size_t)(*at - line), out->path, sizeof(out->path));
}

void program_exe(uint32_t pid, const char *maps, const char *target, struct program_file *out)
{
	*out = (struct program_file){.pid = pid};
	snprintf(out->path, sizeof(out->path), "/proc/%u/exe", pid);
	if (!*target || !find_line(maps, target, &out->dev))
		out->dev = 0;
}

/* ---- files, each once ------------------------------------------------------------------------ */

unsigned program_files_add(struct program_files *files, struct programs *p,
			   const struct program_file *file, bool *is_new)
{
	struct os_file_info info;
	struct program_id id;
	unsigned i;

	*is_new = false;
	if (strchr(file->path, ':') || !programs_info(p, file, &info) || !info.regular)
		return PROGRAM_FILES_MAX;
	id = (struct program_id){info.dev, info.ino};
	i = find_id(files->ids, files->n, &id);
	if (i < files->n || i == PROGRAM_FILES_MAX)
		return i;
	*is_new = true;
	files->ids[i] = id;
	return files->n++;
}

/* ---- life ------------------------------------------------------------------------------------ */

int programs_new(struct log *log, struct programs **out, struct err *err)
{
	struct programs *p = calloc(1, sizeof(*p));
	int rc;

	if (!p)
		return err_memory(err, "for looking at programs");
	p->log = log;
	rc = pool_new("programs", 1, OS_PRIORITY_HIGH, &p->pool, err);
	if (rc)
		free(p);
	else
		*out = p;
	return rc;
}

void programs_look(struct programs *p, uint64_t now_ns)
{
	p->draining = true;
	leave_behind(p, now_ns);
}

void programs_free(struct programs *p)
{
	struct closing *c;
	unsigned i;

	if (!p)
		return;
	if (p->asked && atomic_exchange(&p->asked->state, ABANDONED) == ANSWERED)
		for (i = 0; i < PROGRAM_FUNCTIONS_MAX; i++)
			programs_close(p, p->asked->library->places[i].file);
	drop(&p->asked);
	if (p->last) {
		pool_wait(p->pool, &p->last->job, POOL_STUCK_NS);
		job_drop(&p->last->job);
	}
	while ((c = take_spare(p)) != NULL)
		job_drop(&c->job);
	drop(&p->late);
	pool_free(p->pool);
	free(p);
}
