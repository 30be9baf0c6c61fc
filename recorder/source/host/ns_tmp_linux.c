/* Formats: proc(5), namespaces(7), NSpid of /proc/PID/status. */
#include "source/host/ns_tmp_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "source/host/ns_hung_linux.h"
#include "source/host/proc_pid_linux.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#define FIRST_NS (NS_PER_SEC / 5)            /* the sources start first */
#define SCAN_NS NS_PER_SEC
#define SCAN_MAX_NS (30 * NS_PER_SEC)
#define CALM_SCANS 5u                       /* one look in so many, while nothing starts */
#define REST_PER_CPU_TIME 10000u            /* rests this many times its CPU time; see the header */
#define SEEN_MAX 65536u                      /* processes beyond this are examined at every scan */
#define SCANS_SKIPPED_MAX 16u                /* the most scans between two looks at a process */
#define SPREAD_FROM 4u                       /* not all that are skipped as often are due at once */
#define GROUPS_MAX 512u
#define MEMBERS_MAX 16384u                   /* in other namespaces */
#define TOLD_MAX 1024u
#define UNKNOWN_RETRY_NS (10 * NS_PER_SEC)   /* for a file whose process was not found */
#define ENTRIES_MAX 65536u                   /* examined for one group of processes */
#define QUEUE_MAX 64u
#define HSPERF "hsperfdata_"

const struct ns_tmp_kind ns_tmp_jvm = {.programs = "Java"};

struct member {
	uint32_t pid, group, inner;          /* inner: 0 = not read yet */
};

/*
 * A process and its namespaces, ours or others. It may still leave them (unshare(2)), so it is
 * examined again 1, 2, 4... scans later.
 */
struct seen {
	uint64_t mounts, pids;
	/* inode of its directory, which differs if another process gets the same pid */
	uint64_t ino;
	uint32_t pid;
	uint8_t skip, due_in;
};

struct seen_list {                           /* sorted by pid, as /proc lists them */
	struct seen *all;
	uint32_t n, room;
};

struct told {
	uint64_t mounts, pids, ino, until_ns;        /* until_ns 0 = delivered */
	uint32_t pid;
};

struct work {
	const struct ns_tmp_kind *kind;
	struct os_thread *thread;      /* used by its starter */
	struct os_mutex *lock;         /* guards the fields up to `orphan`; no others are shared */
	struct os_cond *wake;
	struct os_wake *taker_wake;    /* used only before `stopping`; NULL = none */
	struct ns_hung hung;
	struct ns_tmp_file queue[QUEUE_MAX];
	uint32_t queued;
	struct ns_group at;                  /* the group being examined */
	uint64_t at_since_ns;                /* since when; 0 = none */
	uint32_t entries;                    /* how many of its entries were examined */
	bool stopping, ended;
	bool orphan;                         /* its starter is gone: the thread frees it */

	struct ns_group groups[GROUPS_MAX];  /* from here on owned by the thread */
	uint32_t ngroups;
	struct member *members;
	uint32_t nmembers, room;
	struct seen_list seen, now;          /* from the last scan, and from this one */
	struct told told[TOLD_MAX];
	uint32_t ntold;
	uint64_t own_mounts, own_pids;
	uint64_t mean_ns;                    /* mean CPU time of the last scans */
	uint64_t last_started;               /* see last_started() */
	uint32_t calm;                       /* looks since that changed */
};

struct ns_tmp {
	struct work *work;                   /* NULL = its thread could not be started */
	struct work *left[NS_HUNG_MAX];      /* whose threads are left behind */
	uint32_t nleft;
	struct os_wake *wake;                /* NULL = none */
	struct log *log;
	const struct ns_tmp_kind *kind;
	struct ns_hung hung;
};

/* ---- which processes ------------------------------------------------------------------------- */

/* returns  0 when there is none or it cannot be read; "mnt:[4026531840]" costs half of a stat() */
static uint64_t namespace_of(const char *pid, const char *which)
{
	char path[64], target[64];
	const char *at;
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%.16s/ns/%s", pid, which);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	at = strchr(target, '[');
	return at ? strtoull(at + 1, NULL, 10) : 0;
}

static bool is_hung(struct work *w, uint64_t mounts, uint64_t pids)
{
	bool hung;

	os_mutex_lock(w->lock);
	hung = ns_hung_has(&w->hung, mounts, pids, os_now_ns());
	os_mutex_unlock(w->lock);
	return hung;
}

static void add_member(struct work *w, uint32_t pid, uint64_t mounts, uint64_t pids)
{
	uint32_t i;

	for (i = 0; i < w->ngroups && !ns_group_is(&w->groups[i], mounts, pids); i++)
		;
	if (i == GROUPS_MAX || w->nmembers == MEMBERS_MAX ||
	    (i == w->ngroups && is_hung(w, mounts, pids)) ||
	    ARRAY_ROOM(w->members, w->room, w->nmembers + 1))
		return;
	if (i == w->ngroups)
		w->groups[w->ngroups++] = (struct ns_group){mounts, pids, pid};
	w->members[w->nmembers++] = (struct member){pid, i, 0};
}

static void add_seen(struct seen_list *l, const struct seen *one)
{
	if (l->n < SEEN_MAX && !ARRAY_ROOM(l->all, l->room, l->n + 1))
		l->all[l->n++] = *one;
}

/* False for one that has ended, and for what we may not know of. */
static bool is_elsewhere(const struct work *w, const struct seen *one)
{
	return one->pids && (one->mounts != w->own_mounts || one->pids != w->own_pids);
}

static void examine(struct seen *one, const char *pid)
{
	one->mounts = namespace_of(pid, "mnt");
	one->pids = one->mounts ? namespace_of(pid, "pid") : 0;
	one->due_in = one->skip;
	if (one->skip == SCANS_SKIPPED_MAX)
		return;
	one->skip = (uint8_t)(one->skip * 2);
	if (one->due_in >= SPREAD_FROM)
		one->due_in = (uint8_t)(1 + one->pid % one->skip);
}

/* *at: the position in the list of the last scan. What the first one finds has run for long. */
static void look_at_process(struct work *w, const struct dirent *entry, uint32_t *at)
{
	struct seen one = {.ino = entry->d_ino,
			   .pid = (uint32_t)strtoul(entry->d_name, NULL, 10),
			   .skip = w->seen.n ? 1 : SPREAD_FROM,
			   .due_in = 1};

	while (*at < w->seen.n && w->seen.all[*at].pid < one.pid)
		++*at;
	if (*at < w->seen.n && w->seen.all[*at].pid == one.pid && w->seen.all[*at].ino == one.ino)
		one = w->seen.all[*at];
	if (--one.due_in == 0)
		examine(&one, entry->d_name);
	add_seen(&w->now, &one);
	if (is_elsewhere(w, &one))
		add_member(w, one.pid, one.mounts, one.pids);
}

static void find_members(struct work *w)
{
	DIR *proc = opendir("/proc");
	struct seen_list before;
	struct dirent *entry;
	uint32_t at = 0;

	w->ngroups = w->nmembers = w->now.n = 0;
	while (proc && (entry = readdir(proc)) != NULL)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			look_at_process(w, entry, &at);
	if (proc)
		closedir(proc);
	before = w->seen;
	w->seen = w->now;
	w->now = before;
}

/* The process of a group with this inner pid; 0 = none. */
static uint32_t member_of(struct work *w, uint32_t group, uint32_t inner)
{
	uint32_t i;

	for (i = 0; i < w->nmembers; i++) {
		struct member *m = &w->members[i];

		if (m->group != group)
			continue;
		if (!m->inner)
			m->inner = proc_pid_inner(m->pid);
		if (m->inner == inner)
			return m->pid;
	}
	return 0;
}

/* ---- what was told already ------------------------------------------------------------------- */

static bool is_member(const struct work *w, const struct told *k)
{
	uint32_t i;

	for (i = 0; i < w->nmembers; i++)
		if (w->members[i].pid == k->pid &&
		    ns_group_is(&w->groups[w->members[i].group], k->mounts, k->pids))
			return true;
	return false;
}

/* Forget processes that have ended, and files that may have a process by now. */
static void forget(struct work *w, uint64_t now_ns)
{
	uint32_t i;

	for (i = w->ntold; i--;)
		if (w->told[i].until_ns ? now_ns >= w->told[i].until_ns
					 : !is_member(w, &w->told[i]))
			w->told[i] = w->told[--w->ntold];
}

static bool was_told(const struct work *w, const struct ns_group *g, uint64_t ino)
{
	uint32_t i;

	for (i = 0; i < w->ntold; i++)
		if (w->told[i].ino == ino && ns_group_is(g, w->told[i].mounts, w->told[i].pids))
			return true;
	return false;
}

/* pid 0: the file has no process yet and is examined again later. */
static void note_told(struct work *w, const struct ns_group *g, uint64_t ino, uint32_t pid)
{
	if (w->ntold < TOLD_MAX)
		w->told[w->ntold++] = (struct told){
			g->mounts, g->pids, ino, pid ? 0 : os_now_ns() + UNKNOWN_RETRY_NS, pid};
}

/* ---- one file -------------------------------------------------------------------------------- */

/*
 * File systems that depend on a server or another program, which may stop answering. Performance
 * data is read later, by a thread that must not wait. Source: linux/magic.h, and fs/9p, fs/ceph,
 * fs/smb.
 */
bool ns_tmp_may_hang(int fd)
{
	static const uint32_t types[] = {0x6969 /* NFS */,
					 0x517b /* SMB */,
					 0xff534d42 /* CIFS */,
					 0xfe534d42 /* SMB2 */,
					 0x01021997 /* 9P */,
					 0x00c36400 /* CEPH */,
					 0x65735546 /* FUSE */};
	struct statfs fs;
	unsigned i;

	if (fstatfs(fd, &fs) != 0)
		return true;
	for (i = 0; i < COUNT_OF(types); i++)
		if ((uint32_t)fs.f_type == types[i])
			return true;
	return false;
}

/* Open performance data; -1 when the file is not as it should be. */
static int open_own_data(int dir, const char *name, uid_t user)
{
	struct os_file *file = NULL;
	struct os_file_info info;
	char path[160];
	int fd = -1;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/%.100s", dir, name);
	if (os_open(path, OS_READ_NO_LINK, &file, NULL) == 0 &&
	    os_file_info(file, &info, NULL) == 0 && info.uid == user &&
	    !ns_tmp_may_hang(os_file_fd(file)))
		fd = fcntl(os_file_fd(file), F_DUPFD_CLOEXEC, 0);
	os_close(file);
	return fd;
}

/* Get a socket by O_PATH, which does not open it; -1 when it is not as it should be. */
static int name_own_socket(int dir, const char *name, uid_t user)
{
	int at = openat(dir, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct stat st;

	if (at >= 0 && fstat(at, &st) == 0 && st.st_uid == user && S_ISSOCK(st.st_mode))
		return at;
	if (at >= 0)
		close(at);
	return -1;
}

static bool deliver(struct work *w, const struct ns_tmp_file *file)
{
	bool taken;

	os_mutex_lock(w->lock);
	taken = w->queued < QUEUE_MAX && !w->stopping;
	if (taken) {
		w->queue[w->queued++] = *file;
		os_wake(w->taker_wake);
	}
	os_mutex_unlock(w->lock);
	if (!taken)
		close(file->fd);
	return taken;
}

struct place {
	struct work *w;
	uint32_t group;
	uid_t owner;                         /* owner of the directory; (uid_t)-1 = any */
};

/* Examine a file whose name claims the inner pid `inner`. */
static void look_at_name(const struct place *p, int dir, const char *name, uint32_t inner)
{
	const struct ns_group *g = &p->w->groups[p->group];
	struct ns_tmp_file file = {.fd = -1};
	struct stat st;
	uint32_t user;

	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) != 0 || was_told(p->w, g, st.st_ino))
		return;
	file.pid = member_of(p->w, p->group, inner);
	if (file.pid && proc_pid_user(file.pid, &user) &&
	    (p->owner == (uid_t)-1 || p->owner == user)) {
		file.uid = user;
		file.fd =
			(p->w->kind->is_socket ? name_own_socket : open_own_data)(dir, name, user);
	}
	snprintf(file.name, sizeof(file.name), "%.100s", name);
	note_told(p->w, g, st.st_ino, file.fd >= 0 && deliver(p->w, &file) ? file.pid : 0);
}

/* ---- one directory --------------------------------------------------------------------------- */

static DIR *open_dir(int at, const char *name, struct stat *st)
{
	int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
	DIR *dir = NULL;

	if (fd >= 0 && fstat(fd, st) == 0)
		dir = fdopendir(fd);
	if (fd >= 0 && !dir)
		close(fd);
	return dir;
}

/* Whether to examine one more entry: the search continues, and the group is below its limit. */
static bool may_continue(struct work *w)
{
	bool on;

	os_mutex_lock(w->lock);
	on = !w->stopping && w->entries++ < ENTRIES_MAX;
	os_mutex_unlock(w->lock);
	return on;
}

/* Examine hsperfdata_USER, which only that user may be able to write to. */
static void look_at_user(struct place *p, int tmp, const char *name)
{
	struct dirent *entry;
	struct stat st;
	DIR *dir = open_dir(tmp, name, &st);
	unsigned long inner;
	char *end;

	p->owner = st.st_uid;
	while (dir && !(st.st_mode & 022) && may_continue(p->w) && (entry = readdir(dir)) != NULL) {
		inner = strtoul(entry->d_name, &end, 10);
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9' && !*end &&
		    inner <= INT32_MAX)
			look_at_name(p, dirfd(dir), entry->d_name, (uint32_t)inner);
	}
	if (dir)
		closedir(dir);
}

static DIR *open_tmp(uint32_t pid)
{
	char path[40];
	struct stat st;
	DIR *dir;
	int root;

	snprintf(path, sizeof(path), "/proc/%u/root", pid);
	root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return NULL;
	dir = open_dir(root, "tmp", &st);
	close(root);
	return dir;
}

static void look_at_tmp(struct work *w, uint32_t group)
{
	struct place place = {w, group, (uid_t)-1};
	DIR *tmp = open_tmp(w->groups[group].some_pid);
	struct dirent *entry;
	uint32_t inner;

	while (tmp && may_continue(w) && (entry = readdir(tmp)) != NULL) {
		if (w->kind->is_socket) {
			if (w->kind->is_socket(entry->d_name, &inner))
				look_at_name(&place, dirfd(tmp), entry->d_name, inner);
		} else if (strncmp(entry->d_name, HSPERF, sizeof(HSPERF) - 1) == 0) {
			look_at_user(&place, dirfd(tmp), entry->d_name);
		}
	}
	if (tmp)
		closedir(tmp);
}

/* ---- the thread ------------------------------------------------------------------------------ */

/* returns  false when the search has ended */
static bool begin_group(struct work *w, uint32_t group)
{
	bool wanted;

	os_mutex_lock(w->lock);
	wanted = !w->stopping;
	if (wanted) {
		w->at = w->groups[group];
		w->at_since_ns = os_now_ns();
		w->entries = 0;
	}
	os_mutex_unlock(w->lock);
	return wanted;
}

/* The number of the task that was started last: proc(5), loadavg. 0 = not known */
static uint64_t last_started(void)
{
	struct buf text = {0};
	const char *at = NULL;
	uint64_t number;

	if (os_load("/proc/loadavg", 256, &text, NULL) == 0)
		at = strrchr(buf_text(&text), ' ');
	number = at ? strtoull(at + 1, NULL, 10) : 0;
	buf_free(&text);
	return number;
}

/*
 * While nothing starts, a scan finds nothing new: a JVM and a .NET runtime start threads after they
 * have made their files.
 */
static bool is_due(struct work *w)
{
	uint64_t last = last_started();

	w->calm = last == w->last_started ? w->calm + 1 : 0;
	w->last_started = last;
	return !last || w->calm < 2 || w->calm % CALM_SCANS == 0;
}

/* returns  how long to rest */
static uint64_t scan(struct work *w)
{
	uint64_t began_ns = os_thread_cpu_ns(), rest_ns;
	const bool first = !w->seen.n;
	uint32_t i;

	find_members(w);
	forget(w, os_now_ns());
	for (i = 0; i < w->ngroups && begin_group(w, i); i++)
		look_at_tmp(w, i);
	if (first)                           /* it examines every process */
		return SCAN_NS;
	w->mean_ns = (w->mean_ns * 3 + (os_thread_cpu_ns() - began_ns)) / 4;
	rest_ns = w->mean_ns * REST_PER_CPU_TIME;
	if (rest_ns < SCAN_NS)
		return SCAN_NS;
	return rest_ns < SCAN_MAX_NS ? rest_ns : SCAN_MAX_NS;
}

static void work_free(struct work *w)
{
	while (w->queued)
		close(w->queue[--w->queued].fd);
	os_cond_free(w->wake);
	os_mutex_free(w->lock);
	free(w->members);
	free(w->seen.all);
	free(w->now.all);
	free(w);
}

static void ns_tmp_main(void *ctx)
{
	struct work *w = ctx;
	uint64_t rest_ns = SCAN_NS;
	bool orphan;

	/* not the priority of a source, whose thread may have started this one */
	os_thread_priority(OS_PRIORITY_NORMAL);
	w->own_mounts = namespace_of("self", "mnt");
	w->own_pids = namespace_of("self", "pid");
	os_mutex_lock(w->lock);
	if (!w->stopping)
		os_cond_wait(w->wake, w->lock, FIRST_NS);
	while (!w->stopping) {
		os_mutex_unlock(w->lock);
		rest_ns = is_due(w) ? scan(w) : rest_ns;
		os_mutex_lock(w->lock);
		w->at_since_ns = 0;
		if (!w->stopping)
			os_cond_wait(w->wake, w->lock, rest_ns);
	}
	w->ended = true;
	orphan = w->orphan;
	os_cond_signal(w->wake);
	os_mutex_unlock(w->lock);
	if (orphan)
		work_free(w);
}

/* ---- for the source -------------------------------------------------------------------------- */

static struct work *new_work(const struct ns_tmp_kind *kind)
{
	struct work *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->kind = kind;
	w->lock = os_mutex_new();
	w->wake = os_cond_new();
	if (w->lock && w->wake)
		return w;
	work_free(w);
	return NULL;
}

static int start(struct ns_tmp *t, struct err *err)
{
	struct work *w = new_work(t->kind);
	int rc;

	if (!w)
		return err_memory(err, "for looking into containers");
	w->taker_wake = t->wake;
	w->hung = t->hung;
	rc = os_thread_start("containers", ns_tmp_main, w, &w->thread, err);
	if (rc)
		work_free(w);
	else
		t->work = w;
	return rc;
}

int ns_tmp_open(const struct ns_tmp_kind *kind, struct os_wake *wake, struct log *log,
		struct ns_tmp **out, struct err *err)
{
	struct ns_tmp *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_memory(err, "for looking into containers");
	t->log = log;
	t->wake = wake;
	t->kind = kind;
	rc = start(t, err);
	if (rc)
		free(t);
	else
		*out = t;
	return rc;
}

/* Leave the thread that is held up behind, and start another one. Called under its lock. */
static void replace(struct ns_tmp *t)
{
	struct work *w = t->work;

	w->stopping = true;
	ns_hung_add(&t->hung, &w->at);
	t->left[t->nleft++] = w;
	t->work = NULL;
	log_line(t->log, LOG_WARN,
		 "the file system of the container of pid %u does not answer: until it does, its "
		 "%s programs are not looked for",
		 w->at.some_pid, t->kind->programs);
	if (t->nleft < NS_HUNG_MAX)
		start(t, NULL);
	if (!t->work)
		log_line(t->log, LOG_ERROR,
			 "%s programs in containers are no longer looked for until one of "
			 "the %u file systems that do not answer does",
			 t->kind->programs, NS_HUNG_MAX);
}

/* End the search, waiting until end_ns; after that its thread frees it, if it ever comes back. */
static void end_work(struct work *w, uint64_t end_ns)
{
	uint64_t now_ns;
	bool ended;

	os_mutex_lock(w->lock);
	w->stopping = true;
	os_cond_signal(w->wake);
	while (!w->ended && (now_ns = os_now_ns()) < end_ns)
		os_cond_wait(w->wake, w->lock, end_ns - now_ns);
	ended = w->ended;
	w->orphan = !ended;
	if (!ended)
		os_thread_leave(w->thread);
	os_mutex_unlock(w->lock);
	if (ended) {
		os_thread_join(w->thread);
		work_free(w);
	}
}

/* Free what the threads that came back used. */
static void look_for_those_back(struct ns_tmp *t, uint64_t now_ns)
{
	uint32_t i;

	for (i = t->nleft; i--;) {
		struct work *w = t->left[i];
		bool ended;

		os_mutex_lock(w->lock);
		ended = w->ended;
		os_mutex_unlock(w->lock);
		if (!ended)
			continue;
		ns_hung_came_back(&t->hung, &w->at, now_ns);
		end_work(w, 0);
		t->left[i] = t->left[--t->nleft];
		log_line(t->log, LOG_WARN,
			 "the file system of a container answers again: its %s programs are "
			 "looked for in a minute",
			 t->kind->programs);
	}
}

bool ns_tmp_take(struct ns_tmp *t, uint64_t now_ns, struct ns_tmp_file *out)
{
	struct work *w;
	bool any;

	look_for_those_back(t, now_ns);
	if (!t->work && t->nleft < NS_HUNG_MAX)
		start(t, NULL);
	w = t->work;
	if (!w)
		return false;
	os_mutex_lock(w->lock);
	w->hung = t->hung;
	any = w->queued != 0;
	if (any) {
		*out = w->queue[0];
		memmove(w->queue, w->queue + 1, --w->queued * sizeof(w->queue[0]));
	} else if (w->at_since_ns && now_ns > w->at_since_ns + NS_TMP_STUCK_NS) {
		replace(t);
	}
	os_mutex_unlock(w->lock);
	return any;
}

void ns_tmp_close(struct ns_tmp *t)
{
	if (!t)
		return;
	while (t->nleft)
		end_work(t->left[--t->nleft], 0);
	if (t->work)
		end_work(t->work, os_now_ns() + NS_TMP_STUCK_NS);
	free(t);
}

/* ---- one process, now ------------------------------------------------------------------------ */

#define CAP_DAC_OVERRIDE_BIT 1u              /* linux/capability.h */
#define CAP_DAC_READ_SEARCH_BIT 2u
#define CAP_SYS_PTRACE_BIT 19u

/*
 * Reading another user's file takes fewer rights than connecting to a socket, which needs write
 * permission (unix(7)).
 */
int ns_tmp_others(const struct ns_tmp_kind *kind, struct err *err)
{
	struct buf text = {0};
	const char *line = NULL;
	uint64_t have = 0;

	if (os_load("/proc/self/status", 16384, &text, NULL) == 0)
		line = strstr(buf_text(&text), "\nCapEff:");
	if (line)
		have = strtoull(line + 8, NULL, 16);
	buf_free(&text);
	if (have >> CAP_SYS_PTRACE_BIT & 1 &&
	    (have >> CAP_DAC_OVERRIDE_BIT & 1 ||
	     (!kind->is_socket && have >> CAP_DAC_READ_SEARCH_BIT & 1)))
		return 0;
	return err_set(
		err, ERR_ACCESS,
		"this user may examine only its own programs: run as root (of the host), or "
		"give the program cap_sys_ptrace and %s",
		kind->is_socket ? "cap_dac_override, to connect to their sockets"
				: "cap_dac_read_search");
}

bool ns_tmp_is_here(uint32_t pid)
{
	uint64_t mounts, pids;
	char text[24];

	snprintf(text, sizeof(text), "%u", pid);
	mounts = namespace_of(text, "mnt");
	pids = namespace_of(text, "pid");
	return mounts && pids && mounts == namespace_of("self", "mnt") &&
	       pids == namespace_of("self", "pid");
}

bool ns_tmp_has(uint32_t pid, const struct ns_tmp_kind *kind)
{
	struct work *w = new_work(kind);
	bool any;

	if (!w)
		return false;
	add_member(w, pid, 1, 1);
	if (w->nmembers)
		look_at_tmp(w, 0);
	any = w->queued != 0;
	work_free(w);
	return any;
}
