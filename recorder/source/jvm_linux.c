/*
 * Pauses of Java programs on Linux, from the performance data that each HotSpot JVM keeps in
 * /tmp/hsperfdata_USER/PID: nothing has to be prepared, and nothing runs in the JVM. Open only when a
 * rule on collections asks.
 *
 * Every POLL_NS the entry and exit times of each collector's last pause are read: exact, by the JVM's
 * own clock, however late we are. Of pauses that follow each other within a poll only the last is
 * seen; the others are counted (status), and for a while the poll is shorter. A pause is delivered as
 * four events of provider "JVM": GC/SuspendEEStart and GC/Start at its entry, GC/Stop and
 * GC/RestartEEStop at its exit, with the fields that those of .NET have (Reason, Count, Depth: 2 for a
 * full collection, else 0; Type 0; ClrInstanceID: the collector's number) and Collector, its name.
 *
 * The JVM's clock begins when it starts. It notes it every 50 ms: reading every millisecond after a JVM
 * was found tells its beginning to 2 ms. Durations do not depend on that.
 *
 * The files are read, never mapped (their owner could truncate them), and only if they are plain files
 * of the owner of their directory and of the process. Shenandoah's counters mix phases: it is left out.
 */
#include "base/os.h"
#include "source/hsperf.h"
#include "source/proc_pid_linux.h"
#include "source/source.h"
#include "source/tracepoint_linux.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

#define POLL_NS (50 * NS_PER_MS)
#define QUICK_NS (10 * NS_PER_MS)            /* for QUICK_FOR_NS after a pause was missed */
#define QUICK_FOR_NS (10 * NS_PER_SEC)
#define CLOCK_POLL_NS NS_PER_MS              /* for CLOCK_FOR_NS after a JVM was found */
#define CLOCK_FOR_NS (300 * NS_PER_MS)
#define CLOCK_EXACT_NS (2 * NS_PER_MS)
#define SCAN_NS NS_PER_SEC
#define JVMS_MAX 256u
#define USERS_MAX 1024u                      /* directories and files looked at in one scan */
#define RANGE_MAX 65536u                     /* from the first to the last counter that we read */

struct jvm {
	uint32_t pid;
	int fd;
	struct hsperf data;
	struct hsperf_track tracks[HSPERF_COLLECTORS];
	uint64_t found_ns, ticks, read_ns;   /* read_ns: when the last reading began */
	uint64_t zero_low_ns, zero_high_ns;  /* when its clock was 0 */
};

struct jvm_source {
	struct source base;
	struct processes *processes;
	struct queue *queue;
	struct log *log;
	bool wanted;
	struct jvm *all;
	uint32_t n;
	unsigned char *image, *again;
	uint64_t next_scan_ns, quick_until_ns;
	bool full_told;
	_Atomic bool stopping;
	atomic_uint_fast64_t events, missed;
	_Atomic uint32_t running;
};

extern const struct source_ops jvm_source;

static bool wants_gc(const struct needs *needs)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++)
		if (strcasecmp(needs->providers[i].name, "Microsoft-Windows-DotNETRuntime") == 0)
			return true;
	return false;
}

/* ---- events ---------------------------------------------------------------------------------------- */

static uint64_t to_ns(const struct jvm *j, uint64_t ticks)
{
	double ns = (double)ticks * 1e9 / (double)j->data.frequency_hz;

	if (j->data.frequency_hz == NS_PER_SEC)
		return ticks;
	return ns < 9e18 ? (uint64_t)ns : 0;
}

/* The middle of what is possible; before its clock was noted, the latest. */
static uint64_t zero_of(const struct jvm *j)
{
	return j->zero_low_ns ? j->zero_low_ns + (j->zero_high_ns - j->zero_low_ns) / 2 : j->zero_high_ns;
}

static void put(struct jvm_source *s, const struct jvm *j, uint32_t collector, const struct hsperf_edge *edge,
		struct process *process)
{
	static const char *const names[2][2] = {{"GC/Stop", "GC/RestartEEStop"},
						{"GC/SuspendEEStart", "GC/Start"}};
	const struct event_field fields[] = {
		{.name = "Reason", .type = FIELD_UINT, .v.u = 1},
		{.name = "Count", .type = FIELD_UINT, .v.u = edge->count},
		{.name = "Depth", .type = FIELD_UINT, .v.u = collector == 1 ? 2 : 0},
		{.name = "Type", .type = FIELD_UINT, .v.u = 0},
		{.name = "ClrInstanceID", .type = FIELD_UINT, .v.u = collector},
		{.name = "Collector", .type = FIELD_TEXT, .v.text = j->data.collectors[collector].name},
	};
	struct event e = {
		.time_ns = zero_of(j) + to_ns(j, edge->ticks), .kind = EVENT_GENERIC, .cpu = CPU_NONE,
		.stream = STREAM_EVENT, .stack = STACK_NONE, .process = process, .provider = "JVM",
		.fields = fields, .nfields = sizeof(fields) / sizeof(fields[0]),
	};
	unsigned i;

	e.thread = process ? thread_add(s->processes, process, j->pid) : NULL;
	for (i = 0; i < 2; i++) {
		e.name = names[edge->start][i];
		if (queue_put(s->queue, &e))
			atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
	}
}

static void put_edges(struct jvm_source *s, const struct jvm *j, uint32_t collector,
		      const struct hsperf_edge *edges, uint32_t n)
{
	struct process *process = n ? process_find(s->processes, j->pid, UINT64_MAX) : NULL;
	bool own = n && !process;
	struct proc_pid now;
	uint32_t i;

	if (own && proc_pid_read(j->pid, &now)) {
		process = process_add(s->processes, j->pid, now.start_ns, 0, 0, now.name);
		if (process)
			process_ref(process);
	}
	for (i = 0; i < n; i++)
		put(s, j, collector, &edges[i], process);
	if (process)
		process_unref(process);      /* one of our own stays known until the run ends */
}

/* ---- reading --------------------------------------------------------------------------------------- */

static uint64_t value(const struct jvm_source *s, const struct jvm *j, uint32_t at)
{
	uint64_t v;

	memcpy(&v, s->image + (at - j->data.low), sizeof(v));
	return v;
}

/* Twice the same: nothing changed in the middle. */
static bool read_values(struct jvm_source *s, const struct jvm *j)
{
	size_t n = j->data.high - j->data.low;
	int i;

	for (i = 0; i < 3; i++) {
		if (pread(j->fd, s->image, n, j->data.low) != (ssize_t)n ||
		    pread(j->fd, s->again, n, j->data.low) != (ssize_t)n)
			return false;
		if (memcmp(s->image, s->again, n) == 0)
			return true;
	}
	return false;
}

/* What it noted was written before now, and after the last reading that did not have it. */
static void set_clock(struct jvm *j, uint64_t ticks, uint64_t began_ns, uint64_t done_ns)
{
	uint64_t ns = to_ns(j, ticks);

	if (ns > done_ns)
		return;
	if (done_ns - ns < j->zero_high_ns)
		j->zero_high_ns = done_ns - ns;
	if (j->read_ns && ticks != j->ticks && j->read_ns > ns && j->read_ns - ns > j->zero_low_ns)
		j->zero_low_ns = j->read_ns - ns;
	if (j->zero_low_ns > j->zero_high_ns)
		j->zero_low_ns = j->zero_high_ns;
	j->ticks = ticks;
	j->read_ns = began_ns;
}

static bool clock_is_exact(const struct jvm *j, uint64_t now_ns)
{
	return now_ns - j->found_ns > CLOCK_FOR_NS || !j->data.ticks_at ||
	       (j->zero_low_ns && j->zero_high_ns - j->zero_low_ns < CLOCK_EXACT_NS);
}

static void look(struct jvm_source *s, struct jvm *j)
{
	struct hsperf_edge edges[HSPERF_EDGES];
	uint64_t now[HSPERF_VALUES], missed = 0, began_ns = os_now_ns();
	uint32_t i, k, n;

	if (!read_values(s, j))
		return;
	if (j->data.ticks_at)
		set_clock(j, value(s, j, j->data.ticks_at), began_ns, os_now_ns());
	for (i = 0; i < HSPERF_COLLECTORS; i++) {
		if (!j->data.collectors[i].at[0])
			continue;
		for (k = 0; k < HSPERF_VALUES; k++)
			now[k] = value(s, j, j->data.collectors[i].at[k]);
		if (!j->data.ticks_at && to_ns(j, now[HSPERF_EXIT]) < began_ns &&
		    began_ns - to_ns(j, now[HSPERF_EXIT]) < j->zero_high_ns)
			j->zero_high_ns = began_ns - to_ns(j, now[HSPERF_EXIT]);
		n = hsperf_step(&j->tracks[i], now, edges, &missed);
		put_edges(s, j, i, edges, n);
	}
	if (missed)
		s->quick_until_ns = began_ns + QUICK_FOR_NS;
	atomic_fetch_add_explicit(&s->missed, missed, memory_order_relaxed);
}

/* ---- finding --------------------------------------------------------------------------------------- */

static void forget(struct jvm_source *s, uint32_t i)
{
	close(s->all[i].fd);
	s->all[i] = s->all[--s->n];
}

static bool is_known(const struct jvm_source *s, uint32_t pid)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->all[i].pid == pid)
			return true;
	return false;
}

/* Its process: of the same user, and with the same file system, else the number is another's. */
static bool is_its_process(uint32_t pid, uid_t owner)
{
	char path[40];
	struct stat st, ours, theirs;

	snprintf(path, sizeof(path), "/proc/%u", pid);
	if (stat(path, &st) != 0 || st.st_uid != owner)
		return false;
	snprintf(path, sizeof(path), "/proc/%u/ns/mnt", pid);
	return stat("/proc/self/ns/mnt", &ours) == 0 && stat(path, &theirs) == 0 && ours.st_ino == theirs.st_ino;
}

static bool is_shenandoah(const struct hsperf *data)
{
	uint32_t i;

	for (i = 0; i < HSPERF_COLLECTORS; i++)
		if (strstr(data->collectors[i].name, "Shenandoah"))
			return true;
	return false;
}

static bool parse(struct jvm_source *s, int fd, uid_t owner, struct hsperf *out)
{
	unsigned char *image;
	struct stat st;
	struct err err;
	ssize_t n;
	bool ok = false;

	(void)s;
	if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != owner || st.st_nlink != 1 ||
	    st.st_size <= 0 || (uint64_t)st.st_size > HSPERF_MAX_BYTES)
		return false;
	image = malloc((size_t)st.st_size);
	n = image ? pread(fd, image, (size_t)st.st_size, 0) : 0;
	if (n > 0)
		ok = hsperf_parse(image, (size_t)n, out, &err) == 0 && out->high - out->low <= RANGE_MAX &&
		     !is_shenandoah(out);
	free(image);
	return ok;
}

static void add(struct jvm_source *s, int dir, const char *name, uid_t owner)
{
	char *end;
	unsigned long pid = strtoul(name, &end, 10);
	struct jvm j = {.pid = (uint32_t)pid, .zero_high_ns = os_now_ns(), .found_ns = os_now_ns()};

	if (*end || name[0] < '1' || name[0] > '9' || pid > INT32_MAX || is_known(s, j.pid) ||
	    !is_its_process(j.pid, owner))
		return;
	if (s->n == JVMS_MAX) {
		if (!s->full_told)
			log_line(s->log, LOG_WARN, "over %u Java programs run: the pauses of the others are not "
				 "seen", JVMS_MAX);
		s->full_told = true;
		return;
	}
	j.fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (j.fd < 0)
		return;
	if (parse(s, j.fd, owner, &j.data))
		s->all[s->n++] = j;
	else
		close(j.fd);
}

/* A directory of one user, which only that user can write to. */
static void scan_user(struct jvm_source *s, int tmp, const char *name)
{
	int fd = openat(tmp, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
	DIR *dir = NULL;
	struct dirent *entry;
	struct stat st;
	unsigned i;

	if (fd >= 0 && fstat(fd, &st) == 0 && !(st.st_mode & 022))
		dir = fdopendir(fd);
	if (!dir) {
		if (fd >= 0)
			close(fd);
		return;
	}
	for (i = 0; i < USERS_MAX && (entry = readdir(dir)) != NULL; i++)
		add(s, fd, entry->d_name, st.st_uid);
	closedir(dir);
}

static void scan(struct jvm_source *s)
{
	DIR *tmp = opendir("/tmp");
	struct dirent *entry;
	struct stat st;
	unsigned found = 0;
	uint32_t i;

	/* The JVM removes its file at its end; one that was killed is gone. */
	for (i = s->n; i--;)
		if (fstat(s->all[i].fd, &st) != 0 || !st.st_nlink ||
		    (kill((pid_t)s->all[i].pid, 0) != 0 && errno == ESRCH))
			forget(s, i);
	while (tmp && found < USERS_MAX && (entry = readdir(tmp)) != NULL)
		if (strncmp(entry->d_name, "hsperfdata_", 11) == 0 && ++found)
			scan_user(s, dirfd(tmp), entry->d_name);
	if (tmp)
		closedir(tmp);
	atomic_store(&s->running, s->n);
}

/* ---- life ------------------------------------------------------------------------------------------ */

static int jvm_run(struct source *source, struct err *err)
{
	struct jvm_source *s = (struct jvm_source *)source;
	uint64_t now_ns, wait_ns;
	uint32_t i;

	(void)err;
	while (s->wanted && !atomic_load(&s->stopping)) {
		now_ns = os_now_ns();
		if (now_ns >= s->next_scan_ns) {
			scan(s);
			s->next_scan_ns = now_ns + SCAN_NS;
			now_ns = os_now_ns();
		}
		wait_ns = now_ns < s->quick_until_ns ? QUICK_NS : POLL_NS;
		for (i = 0; i < s->n; i++) {
			look(s, &s->all[i]);
			if (!clock_is_exact(&s->all[i], now_ns))
				wait_ns = CLOCK_POLL_NS;
		}
		/* What begins from here on is seen by the next look; its clock may be off by a little. */
		queue_watermark(s->queue, now_ns - CLOCK_EXACT_NS);
		os_sleep_ns(wait_ns);
	}
	queue_finish(s->queue);
	return 0;
}

static int jvm_check(const struct needs *needs, struct err *err)
{
	uint32_t i;

	for (i = 0; i < needs->nproviders; i++) {
		const struct need_provider *p = &needs->providers[i];

		if (tracepoint_provider(p->name))
			continue;            /* probes_check() judges it */
		if (strcasecmp(p->name, "Microsoft-Windows-DotNETRuntime") != 0 || p->keywords != 1)
			return err_set(err, ERR_UNSUPPORTED, "no source on this system delivers events of %s%s, so "
				       "the rule on them could never fire", p->name,
				       p->keywords == 1 ? "" : " other than collections of Java programs");
	}
	return 0;
}

static void jvm_close(struct source *source)
{
	struct jvm_source *s = (struct jvm_source *)source;

	if (!s)
		return;
	while (s->n)
		forget(s, s->n - 1);
	free(s->all);
	free(s->image);
	free(s->again);
	free(s);
}

static int jvm_open(const struct source_config *cfg, const struct needs *needs, struct source **out,
		    struct err *err)
{
	struct jvm_source *s = calloc(1, sizeof(*s));

	if (s) {
		s->base.ops = &jvm_source;
		s->processes = cfg->processes;
		s->queue = cfg->queue;
		s->log = cfg->log;
		s->wanted = wants_gc(needs);
		s->all = s->wanted ? calloc(JVMS_MAX, sizeof(*s->all)) : NULL;
		s->image = malloc(s->wanted ? RANGE_MAX : 1);
		s->again = malloc(s->wanted ? RANGE_MAX : 1);
	}
	if (!s || !s->image || !s->again || (s->wanted && !s->all)) {
		jvm_close((struct source *)s);
		return err_set(err, ERR_MEMORY, "no memory for the source of Java programs");
	}
	if (s->wanted)
		log_line(s->log, LOG_WARN, "rules on garbage collections: Java programs are watched; those "
			 "of .NET are not seen by this version on Linux");
	*out = &s->base;
	return 0;
}

static void jvm_stop(struct source *source)
{
	atomic_store(&((struct jvm_source *)source)->stopping, true);
}

static void jvm_status(struct source *source, struct source_status *out)
{
	struct jvm_source *s = (struct jvm_source *)source;
	uint64_t missed = atomic_load_explicit(&s->missed, memory_order_relaxed);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
	out->lost = queue_lost(s->queue);
	if (missed)
		snprintf(out->note, sizeof(out->note), "%llu pauses of Java programs followed another within a "
			 "poll and were not seen", (unsigned long long)missed);
}

const struct source_ops jvm_source = {
	.name = "java",
	.summary = "pauses of Java programs (HotSpot, from /tmp/hsperfdata_*), for rules on collections",
	.events = true,
	.optional = true,
	.check = jvm_check,
	.open = jvm_open,
	.run = jvm_run,
	.stop = jvm_stop,
	.status = jvm_status,
	.close = jvm_close,
};
