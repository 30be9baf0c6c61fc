#include "source/jvm/table_linux.h"

#include "base/os.h"
#include "base/table.h"
#include "source/host/proc_pid_linux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#define SCAN_NS NS_PER_SEC
#define WATCHED_SCAN_NS (10 * NS_PER_SEC)    /* where inotify reports new files */
#define TRY_NS (10 * NS_PER_MS)              /* for TRY_FOR_NS after a file is found */
#define TRY_FOR_NS (5 * NS_PER_SEC)
#define WAIT_NS (100 * NS_PER_MS)            /* for the turn of its user */
#define FAILED_NS (60 * NS_PER_SEC)          /* after its reader has died, or took too long */
#define USERS_MAX 1024u                      /* directories and files used in one scan */
#define NAMED_MAX 65536u                     /* entries of /tmp with our prefix, in one scan */
#define SEARCH_LOOK_NS (20 * NS_PER_MS)      /* while a search is not done */
#define ANSWER_LOOK_NS NS_PER_MS             /* while an answer is awaited */
#define READS_MAX 64u                        /* reads of changes in /tmp in one look */
#define PREFIX "hsperfdata_"
#define NAME_BYTES 64u                       /* of a directory: 53 are a long user's */
/* a wake-up costs about 50 us: 20 a second take 0.1 % of a core */
#define LOOK_SELDOM_NS (50 * NS_PER_MS)
#define FREQUENT_GAP_NS NS_PER_SEC           /* pauses closer than this: look every LOOK_OFTEN_NS */
#define LOOK_OFTEN_NS (10 * NS_PER_MS)       /* until LESS_AFTER_NS without a pause, */
#define LESS_AFTER_NS (200 * NS_PER_MS)
#define LOOK_LESS_NS (20 * NS_PER_MS)        /* then this often until SELDOM_AFTER_NS */
#define SELDOM_AFTER_NS (2 * NS_PER_SEC)
#define LONE_PAUSE_NS (100 * NS_PER_MS)      /* after a lone pause, LOOK_LESS_NS for so long */

/* ---- clock ----------------------------------------------------------------------------------- */

uint64_t jvm_ticks_to_ns(const struct jvm *j, uint64_t ticks)
{
	double ns = (double)ticks * 1e9 / (double)j->data.frequency_hz;

	if (j->data.frequency_hz == NS_PER_SEC)
		return ticks;
	return ns < 9e18 ? (uint64_t)ns : 0;
}

void jvm_clock_note(struct jvm *j, uint64_t stamp_ns, uint64_t after_ns, uint64_t done_ns)
{
	if (stamp_ns > done_ns)
		return;
	if (done_ns - stamp_ns < j->zero_high_ns)
		j->zero_high_ns = done_ns - stamp_ns;
	if (after_ns > stamp_ns && after_ns - stamp_ns > j->zero_low_ns)
		j->zero_low_ns = after_ns - stamp_ns;
	if (j->zero_low_ns > j->zero_high_ns)
		j->zero_low_ns = j->zero_high_ns;
}

void jvm_clock_note_wall(struct jvm *j, uint64_t began_ms, uint64_t wall_now_ns, uint64_t now_ns)
{
	uint64_t ago_ns = wall_now_ns - began_ms * NS_PER_MS;

	/* The middle of the stated millisecond. */
	if (began_ms && began_ms < wall_now_ns / NS_PER_MS && ago_ns < now_ns)
		j->zero_wall_ns = now_ns - ago_ns + NS_PER_MS / 2;
}

uint64_t jvm_clock_zero(const struct jvm *j)
{
	uint64_t room_ns = j->zero_high_ns - j->zero_low_ns;

	if (room_ns > JVM_CLOCK_EXACT_NS && j->zero_wall_ns + JVM_CLOCK_EXACT_NS > j->zero_low_ns &&
	    j->zero_wall_ns < j->zero_high_ns + JVM_CLOCK_EXACT_NS)
		return j->zero_wall_ns < j->zero_low_ns	   ? j->zero_low_ns
		       : j->zero_wall_ns > j->zero_high_ns ? j->zero_high_ns
							   : j->zero_wall_ns;
	return j->zero_low_ns ? j->zero_low_ns + room_ns / 2 : j->zero_high_ns;
}

void jvm_pace_note(struct jvm_pace *p, uint64_t collections, uint64_t now_ns)
{
	p->changed_ns = now_ns;
	if (collections == p->collections)
		return;
	p->frequent |=
		collections - p->collections > 1 || now_ns - p->collected_ns < FREQUENT_GAP_NS;
	p->collections = collections;
	p->collected_ns = now_ns;
}

uint64_t jvm_pace_look_every_ns(struct jvm_pace *p, bool open, uint64_t now_ns)
{
	uint64_t quiet_ns = now_ns > p->changed_ns ? now_ns - p->changed_ns : 0;

	if (quiet_ns >= SELDOM_AFTER_NS)
		p->frequent = false;
	if (open || (p->frequent && quiet_ns < LESS_AFTER_NS))
		return LOOK_OFTEN_NS;
	return p->frequent || quiet_ns < LONE_PAUSE_NS ? LOOK_LESS_NS : LOOK_SELDOM_NS;
}

/* ---- one file -------------------------------------------------------------------------------- */

static void forget(struct jvm_table *t, uint32_t i)
{
	struct share share = {.uid = t->all[i].uid, .used = 1};

	shares_give_back(&t->places, &share, 1);
	if (t->asked == t->all[i].pid) {
		jvm_reader_cancel(t->reader);
		t->asked = 0;
	}
	if (t->all[i].ready && t->last_look)
		t->last_look(t->last_look_ctx, &t->all[i]);
	mapped_close(&t->all[i].map);
	free(t->all[i].numbers);
	close(t->all[i].fd);
	jvm_attach_close(&t->all[i].attach);
	proc_pid_drop(t->processes, &t->all[i].own);
	gc_counters_gone(t->counters, t->all[i].pid);
	t->nready -= t->all[i].ready;
	t->all[i] = t->all[--t->n];
}

/* returns  its index; t->n = none */
static uint32_t find(const struct jvm_table *t, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < t->n && t->all[i].pid != pid; i++)
		;
	return i;
}

/*
 * Whether the process belongs to the owner and is in our namespaces; else the number means another.
 */
static bool is_its_process(uint32_t pid, uid_t owner)
{
	uint32_t user;

	return proc_pid_user(pid, &user) && user == owner && ns_tmp_is_here(pid);
}

static void note_failure(struct jvm_table *t, struct jvm *j, uint64_t now_ns, const struct err *err)
{
	j->next_try_ns = now_ns + FAILED_NS;
	j->head[0] = 0;
	if (!j->failed)
		log_line(t->log, LOG_WARN,
			 "performance data of the Java program with pid %u: %s; they are read "
			 "again in %u s", j->pid, err->text, (unsigned)(FAILED_NS / NS_PER_SEC));
	j->failed = true;
}

static bool map_file(struct jvm *j)
{
	struct stat st;
	struct err err;

	return fstat(j->fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == j->uid &&
	       st.st_nlink == 1 && st.st_size > 0 && (uint64_t)st.st_size <= HSPERF_MAX_BYTES &&
	       mapped_open(&j->map, j->fd, (size_t)st.st_size, &err) == 0;
}

/* Ask for its entries, when it is its turn and no other answer is awaited. */
static void ask(struct jvm_table *t, struct jvm *j, uint64_t now_ns)
{
	struct err err;

	j->next_try_ns = now_ns + (now_ns - j->found_ns < TRY_FOR_NS ? TRY_NS : SCAN_NS);
	if (t->asked) {
		j->next_try_ns = now_ns + ANSWER_LOOK_NS;
	} else if (t->turns && !turns_may(t->turns, j->uid, now_ns)) {
		j->next_try_ns = now_ns + WAIT_NS;
	} else if (j->ready || map_file(j)) {
		mapped_read(&j->map, j->head, 0, sizeof(j->head));
		if (jvm_reader_ask(t->reader, j->fd, j->map.bytes, &err))
			note_failure(t, j, now_ns, &err);
		else
			t->asked = j->pid;
	}
	if (!j->ready && t->asked != j->pid)
		mapped_close(&j->map);
}

/* Its counters are known. */
static void begin(struct jvm_table *t, struct jvm *j)
{
	struct proc_pid process;
	uint32_t i;

	j->ready = true;
	t->nready++;
	if (!proc_pid_read(j->pid, &process))
		return;
	j->zero_low_ns = process.start_ns;
	j->young = process.start_ns > t->opened_ns;
	/* All that it has done so far is new. */
	for (i = 0; j->young && i <= HSPERF_COLLECTORS; i++)
		j->tracks[i].begun = true;
}

/* While a JVM starts, its counters appear one after another; a collector's follow its name. */
static void use_file(struct jvm_table *t, struct jvm *j, const struct hsperf_file *file)
{
	struct err err;

	if (!j->ready && hsperf_parse(file, &j->data, &err) == 0)
		begin(t, j);
	if (j->ready && t->take)
		t->take(t->take_ctx, j, file);
}

/* Take the answer, if it has come. returns  whether there is a file */
static bool take_answer(struct jvm_table *t, uint64_t now_ns, struct hsperf_file *out)
{
	struct jvm *j = &t->all[find(t, t->asked)];
	uint64_t used_ns;
	struct err err;
	int rc = jvm_reader_take(t->reader, &j->map, t->wait_ns, out, &used_ns, &err);

	if (rc > 0)
		return false;
	t->asked = 0;
	if (t->turns)
		turns_spend(t->turns, j->uid, used_ns);
	if (!rc)
		use_file(t, j, out);
	else if (rc != ERR_NOT_FOUND)
		note_failure(t, j, now_ns, &err);
	if (!j->ready)
		mapped_close(&j->map);
	return !rc;
}

bool jvm_table_read(struct jvm_table *t, struct jvm *j, struct hsperf_file *out)
{
	ask(t, j, os_now_ns());
	return t->asked == j->pid && take_answer(t, os_now_ns(), out);
}

/* Whether there is something to be read in its file. */
static bool is_to_be_read(const struct jvm_table *t, const struct jvm *j)
{
	uint64_t head[HSPERF_HEAD_WORDS];

	return !j->ready ||
	       (t->take && (!j->numbers || (mapped_read(&j->map, head, 0, sizeof(head)) &&
					    memcmp(head, j->head, sizeof(head)) != 0)));
}

static void read_files(struct jvm_table *t, uint64_t now_ns)
{
	struct hsperf_file file;
	uint32_t i;

	if (t->asked)
		take_answer(t, now_ns, &file);
	for (i = 0; i < t->n; i++) {
		struct jvm *j = &t->all[i];
		uint64_t begun_ns;

		if (now_ns < j->next_try_ns || t->asked == j->pid || !is_to_be_read(t, j))
			continue;
		begun_ns = t->turns ? turns_begin(t->turns, j->uid) : 0;
		ask(t, j, now_ns);
		if (t->asked == j->pid)
			take_answer(t, now_ns, &file);
		if (t->turns)
			turns_end(t->turns, j->uid, begun_ns);
	}
}

/* Whether its owner has not filled his share of the table. */
static bool take_place(struct jvm_table *t, uid_t owner)
{
	struct share share = {.uid = owner};

	if (shares_take(&t->places, &share, 1))
		return true;
	if (!atomic_exchange(&t->crowded, true))
		log_line(t->log, LOG_WARN,
			 "user %u has too many Java programs, as one of %u: pauses of further ones "
			 "of users with so many are not seen",
			 (unsigned)owner, JVMS_MAX);
	return false;
}

/* Takes fd. */
static void add(struct jvm_table *t, int fd, uint32_t pid, uid_t owner, bool in_container,
		uint64_t now_ns)
{
	if (t->n == JVMS_MAX) {
		if (!t->full_logged)
			log_line(t->log, LOG_WARN,
				 "more than %u Java programs run: pauses of the others are not "
				 "seen",
				 JVMS_MAX);
		t->full_logged = true;
		close(fd);
		return;
	}
	if (!take_place(t, owner)) {
		close(fd);
		return;
	}
	t->all[t->n++] = (struct jvm){.pid = pid, .uid = owner, .fd = fd, .zero_high_ns = now_ns,
				      .in_container = in_container, .found_ns = now_ns,
				      .own.pool = t->pool};
}

/* The JVM removes its file when it ends; if it was killed, the process is gone. */
static bool is_over(const struct jvm *j)
{
	struct stat st;

	return fstat(j->fd, &st) != 0 || !st.st_nlink ||
	       (kill((pid_t)j->pid, 0) != 0 && errno == ESRCH);
}

static void add_those_in_containers(struct jvm_table *t, uint64_t now_ns)
{
	struct ns_tmp_file file;
	uint32_t i;

	/* A file that was taken is not found again. */
	while (t->n < JVMS_MAX && ns_tmp_take(t->containers, now_ns, &file)) {
		i = find(t, file.pid);
		if (i < t->n && is_over(&t->all[i]))
			forget(t, i);
		if (find(t, file.pid) < t->n)
			close(file.fd);
		else
			add(t, file.fd, file.pid, file.uid, true, now_ns);
	}
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* One search; it may outlive its owner. */
struct search {
	struct tmp_search base;
	int watch;                           /* its own; -1 = none */
	bool unwatched;                      /* a directory could not be watched */
	uint32_t known[JVMS_MAX], nknown;    /* pids, which are not looked for */
	struct shares directories, places;   /* directories: that it opens and watches, USERS_MAX */
	struct {
		int fd;
		uint32_t pid, uid;
	} found[JVMS_MAX];
	uint32_t nfound;
	uint32_t unread_pid;                 /* its file may hang; 0 = none */
};

/* Adding a watch twice makes one. */
static void watch(struct search *s, const char *path, uint32_t how)
{
	s->unwatched |=
		s->watch < 0 ||
		inotify_add_watch(s->watch, path, IN_CREATE | IN_MOVED_TO | IN_ONLYDIR | how) < 0;
}

/* Whether its owner has not too many of them: directories, of which he needs one, or files. */
static bool take_share(struct shares *shares, uid_t owner)
{
	struct share share = {.uid = owner};

	return shares_take(shares, &share, 1);
}

static bool is_known(const struct search *s, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < s->nknown && s->known[i] != pid; i++)
		;
	return i < s->nknown;
}

/* What is read later, by a thread that must not wait, is on file systems that need no server. */
static void look_at_file(struct search *s, int dir, const char *name, uid_t owner)
{
	char *end;
	unsigned long pid = strtoul(name, &end, 10);
	int fd;

	if (*end || name[0] < '1' || name[0] > '9' || pid > INT32_MAX ||
	    is_known(s, (uint32_t)pid) || !is_its_process((uint32_t)pid, owner))
		return;
	fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return;
	if (ns_tmp_may_hang(fd))
		s->unread_pid = (uint32_t)pid;
	if (s->unread_pid == pid || s->nfound == JVMS_MAX || !take_share(&s->places, owner)) {
		close(fd);
		return;
	}
	s->found[s->nfound].fd = fd;
	s->found[s->nfound].pid = (uint32_t)pid;
	s->found[s->nfound++].uid = owner;
}

/* Look at the directory of a user, which only that user may be able to write to. */
static void look_at_user(struct search *s, int tmp, const char *name)
{
	int fd = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	char path[300];
	DIR *dir = NULL;
	struct dirent *entry;
	struct stat st;
	unsigned i;

	snprintf(path, sizeof(path), "/tmp/%s", name);
	if (fd >= 0 && fstat(fd, &st) == 0 && !(st.st_mode & 022) &&
	    take_share(&s->directories, st.st_uid)) {
		watch(s, path, IN_DONT_FOLLOW);
		dir = fdopendir(fd);
	}
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (i = 0; i < USERS_MAX && (entry = readdir(dir)) != NULL; i++)
		look_at_file(s, fd, entry->d_name, st.st_uid);
	closedir(dir);
}

/* A directory may be a mount whose server is gone: of its name there is one. */
static void run_search(struct tmp_search *search)
{
	struct search *s = (struct search *)search;
	DIR *tmp = opendir("/tmp");
	struct dirent *entry;
	unsigned found = 0;

	/* again: a file system may have been mounted on it */
	watch(s, "/tmp", 0);
	while (tmp && found < NAMED_MAX && (entry = readdir(tmp)) != NULL) {
		const char *name = entry->d_name;

		if (strncmp(name, PREFIX, sizeof(PREFIX) - 1) == 0 && ++found &&
		    tmp_search_at(search, tmp_place(1, (uint32_t)hash_bytes(name, strlen(name)))))
			look_at_user(s, dirfd(tmp), name);
		tmp_search_at(search, 0);
	}
	if (tmp)
		closedir(tmp);
}

static void free_search(struct job *job)
{
	struct search *s = (struct search *)job;

	if (s->watch >= 0)
		close(s->watch);
	while (s->nfound)
		close(s->found[--s->nfound].fd);
	free(s);
}

static void begin_search(struct jvm_table *t)
{
	struct search *s = calloc(1, sizeof(*s));
	uint32_t i;

	if (!s)
		return;
	s->base.run = run_search;
	s->base.job.free = free_search;
	s->watch = t->watch < 0 ? -1 : fcntl(t->watch, F_DUPFD_CLOEXEC, 0);
	for (i = 0; i < t->n; i++)
		s->known[s->nknown++] = t->all[i].pid;
	shares_init(&s->directories, USERS_MAX, os_uid());
	/* One more than a share of the table, so that the table sees who wants too many. */
	shares_init(&s->places, JVMS_MAX + 2, os_uid());
	tmp_scan_begin(&t->scan, &s->base);
}

static void take_found(struct jvm_table *t, struct search *s, uint64_t now_ns)
{
	t->unwatched = s->unwatched;
	while (s->nfound) {
		uint32_t i = --s->nfound;

		if (find(t, s->found[i].pid) < t->n)
			close(s->found[i].fd);
		else
			add(t, s->found[i].fd, s->found[i].pid, s->found[i].uid, false, now_ns);
	}
	if (s->unread_pid && !t->unread_logged) {
		log_line(t->log, LOG_WARN,
			 "pauses of the Java program with pid %u are not seen: its performance "
			 "data are on a file system that depends on a server (NFS, FUSE)",
			 s->unread_pid);
		t->unread_logged = true;
	}
}

/*
 * Whether an entry appeared where JVMs create their files; other programs create files in /tmp too.
 */
static bool has_changed(struct jvm_table *t)
{
	_Alignas(struct inotify_event) char bytes[4096];
	bool changed = false;
	unsigned reads;
	ssize_t n, at;

	for (reads = 0; t->watch >= 0 && reads < READS_MAX; reads++) {
		n = read(t->watch, bytes, sizeof(bytes));
		if (n <= 0)
			break;
		for (at = 0; at + (ssize_t)sizeof(struct inotify_event) <= n;) {
			const struct inotify_event *e = (const struct inotify_event *)(bytes + at);

			changed |= e->mask & IN_Q_OVERFLOW ||
				   (e->len && ((e->name[0] >= '1' && e->name[0] <= '9') ||
					       strncmp(e->name, PREFIX, sizeof(PREFIX) - 1) == 0));
			at += (ssize_t)(sizeof(*e) + e->len);
		}
	}
	return changed;
}

void jvm_table_look(struct jvm_table *t, uint64_t now_ns)
{
	bool changed = has_changed(t);
	struct search *search;
	uint32_t i;

	/* Before the scan for new ones: a new JVM may have the pid of one that has ended. */
	if (changed || now_ns >= t->next_check_ns) {
		for (i = t->n; i--;)
			if (is_over(&t->all[i]))
				forget(t, i);
		t->next_check_ns = now_ns + SCAN_NS;
	}
	if (changed)
		t->next_scan_ns = 0;
	if (now_ns >= t->next_scan_ns && tmp_scan_is_free(&t->scan, now_ns)) {
		t->next_scan_ns = now_ns + WATCHED_SCAN_NS;
		begin_search(t);
	}
	search = (struct search *)tmp_scan_done(&t->scan, now_ns);
	if (search) {
		take_found(t, search, now_ns);
		if (t->unwatched && now_ns + SCAN_NS < t->next_scan_ns)
			t->next_scan_ns = now_ns + SCAN_NS;
		job_drop(&search->base.job);
	}
	add_those_in_containers(t, now_ns);
	read_files(t, now_ns);
}

void jvm_table_ask_for_map(struct jvm_table *t, struct jvm *j, uint64_t now_ns)
{
	if (!j->in_container) {
		jvm_attach_look(&j->attach, j->pid, j->uid, now_ns, t->pool, t->log);
	} else if (j->attach.state != ATTACH_REFUSED) {
		log_line(t->log, LOG_WARN,
			 "Java program with pid %u does not write a map of its code: it is in a "
			 "container, where it is not asked for one (run jcmd PID Compiler.perfmap "
			 "there)", j->pid);
		j->attach.state = ATTACH_REFUSED;
	}
}

uint64_t jvm_table_due_ns(const struct jvm_table *t, uint64_t now_ns, uint64_t due_ns)
{
	uint64_t soon_ns = now_ns + (t->asked ? ANSWER_LOOK_NS : SEARCH_LOOK_NS);

	return (t->asked || t->scan.now) && soon_ns < due_ns ? soon_ns : due_ns;
}

bool jvm_table_note(const struct jvm_table *t, char *out, size_t n)
{
	if (atomic_load(&t->crowded))
		snprintf(out, n,
			 "a user has more Java programs than the share of one user, %u: pauses of "
			 "the others of that user are not seen", JVMS_MAX / 2);
	return t->pool && pool_note(t->pool, "files of Java programs", out, n);
}

int jvm_table_open(struct jvm_table *t, struct processes *processes, struct gc_counters *counters,
		   struct os_wake *wake, struct log *log, struct err *err)
{
	int rc;

	*t = (struct jvm_table){.processes = processes, .counters = counters, .log = log,
				.opened_ns = os_now_ns()};
	shares_init(&t->places, JVMS_MAX, os_uid());
	t->all = calloc(JVMS_MAX, sizeof(*t->all));
	if (!t->all)
		return err_memory(err, "for the table of Java programs");
	t->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	rc = jvm_reader_new(&t->reader, err);
	rc = rc ? rc : pool_new("java", 2, OS_PRIORITY_NORMAL, &t->pool, err);
	t->scan = (struct tmp_scan){.pool = t->pool, .log = log, .programs = "Java"};
	return rc ? rc : ns_tmp_open(&ns_tmp_jvm, wake, log, &t->containers, err);
}

void jvm_table_close(struct jvm_table *t)
{
	if (!t->all)
		return;
	while (t->n)
		forget(t, t->n - 1);
	tmp_scan_close(&t->scan);
	pool_free(t->pool);
	ns_tmp_close(t->containers);
	jvm_reader_free(t->reader);
	if (t->watch >= 0)
		close(t->watch);
	free(t->all);
	t->all = NULL;
}
