/* Processes: scans them, numbers those of one name, binds names, sums up. See proc_reader.h. */

#include "base/array.h"
#include "base/os.h"
#include "base/table.h"
#include "base/text.h"
#include "base/utf8.h"
#include "model/process.h"
#include "source/counter/proc_reader_private.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define IO_FIELDS (BIT(PID_READ_BYTES) | BIT(PID_WRITE_BYTES))
#define MORE_FIELDS (IO_FIELDS | BIT(PID_PRIVATE) | BIT(PID_HANDLES))   /* not in stat */
#define NUMBER_NONE UINT32_MAX

enum { TASK_FD_STAT, TASK_FD_STATUS };

/* ---- one process ----------------------------------------------------------------------------- */

static double boot_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_BOOTTIME, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void stat_fields(const struct proc_stat *stat, double *v)
{
	double ticks = (double)sysconf(_SC_CLK_TCK);

	v[PID_USER] = stat->utime / ticks;
	v[PID_SYSTEM] = stat->stime / ticks;
	v[PID_MINOR_FAULTS] = stat->minor_faults;
	v[PID_MAJOR_FAULTS] = stat->major_faults;
	v[PID_THREADS] = stat->threads;
	v[PID_VIRTUAL] = stat->virtual_bytes;
	v[PID_RESIDENT] = stat->resident_pages * (double)sysconf(_SC_PAGESIZE);
	v[PID_NUMBER] = stat->pid;
	v[PID_ELAPSED] = fmax(boot_seconds() - (double)stat->start_ticks / ticks, 0);
	v[PID_COUNT] = 1;
}

/* Since Linux 6.2 the size of the directory is the number of descriptors; before, it is 0. */
static double handle_count(int dir_fd)
{
	struct dirent *entry;
	double n = 0;
	struct stat st;
	DIR *dir;

	if (fstatat(dir_fd, "fd", &st, 0) == 0 && st.st_size > 0)
		return (double)st.st_size;
	dir = proc_open_dir(dir_fd, "fd");
	if (!dir)
		return NAN;
	while ((entry = readdir(dir)))
		n += entry->d_name[0] != '.';
	closedir(dir);
	return n;
}

/*
 * Read the fields that are not in stat. fds: the kept files, TASK_FD_*. The kernel answers for
 * stat, status and fd without waiting for the process; for io it waits for one that executes a
 * program.
 */
static void more_fields(struct proc_reader *r, int dir_fd, uint32_t pid, int *fds, uint32_t fields,
			double *v)
{
	double anon, swap = 0;
	struct text all;

	if ((fields & BIT(PID_PRIVATE)) &&
	    proc_read_at(r, dir_fd, "status", &fds[TASK_FD_STATUS], &all)) {
		proc_value(all, "VmSwap", &swap);
		/* A kernel thread has no memory of its own. */
		v[PID_PRIVATE] = proc_value(all, "RssAnon", &anon) ? (anon + swap) * 1024 : 0;
	}
	if ((fields & IO_FIELDS) && answers_file(r->answers, dir_fd, pid, "io", &all)) {
		proc_value(all, "read_bytes", &v[PID_READ_BYTES]);
		proc_value(all, "write_bytes", &v[PID_WRITE_BYTES]);
	}
	if (fields & BIT(PID_HANDLES))
		v[PID_HANDLES] = handle_count(dir_fd);
}

static int open_task_dir(const struct proc_reader *r, uint32_t pid)
{
	char name[16];

	snprintf(name, sizeof(name), "%u", pid);
	return openat(r->proc_fd, name, O_PATH | O_DIRECTORY | O_CLOEXEC);
}

/* ---- the scan -------------------------------------------------------------------------------- */

static uint64_t name_key(const char *name)
{
	char lower[TASK_NAME_BYTES];
	size_t n;

	for (n = 0; name[n] && n < sizeof(lower); n++)
		lower[n] = name[n] >= 'A' && name[n] <= 'Z' ? (char)(name[n] + 32) : name[n];
	return hash_bytes(lower, n);
}

static struct process_names names_of(const struct task *t)
{
	return (struct process_names){.file = t->file, .comm = t->comm, .called = t->called,
				      .script = t->script};
}

static void name_task(struct proc_reader *r, struct task *t, int dir_fd)
{
	char text[OS_ARGUMENTS_MAX + 1];
	ssize_t n = readlinkat(dir_fd, "exe", text, sizeof(text) - 1);
	struct process_names names = names_of(t);

	text[n > 0 ? n : 0] = '\0';
	proc_display_name(text, "", t->file, sizeof(t->file));
	/* Without an answer there is none for now: the next scan asks again. */
	answers_arguments(r->answers, dir_fd, t->pid, text);
	process_names_of_command(t->file, text, t->called, t->script);
	snprintf(t->name, sizeof(t->name), "%s", process_names_typed(&names));
	t->key = name_key(t->name);
}

static int by_pid(const void *a, const void *b)
{
	const struct task *x = a, *y = b;

	return (x->pid > y->pid) - (x->pid < y->pid);
}

static const struct task *find_task(const struct proc_reader *r, uint32_t pid)
{
	struct task key = { .pid = pid };

	return r->ntasks ? bsearch(&key, r->tasks, r->ntasks, sizeof(key), by_pid) : NULL;
}

/* The text is far shorter and comes in one read, which saves two calls per process. */
#define STAT_BYTES 2048

static bool read_stat(const struct proc_reader *r, uint32_t pid, struct proc_stat *out)
{
	char path[24], text[STAT_BYTES];
	ssize_t n;
	int fd;

	snprintf(path, sizeof(path), "%u/stat", pid);
	fd = openat(r->proc_fd, path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	close(fd);
	return n > 0 && proc_stat_parse(text_of(text, (size_t)n), out);
}

/* Read the fields that are not in stat, for sums. */
static void scan_more(struct proc_reader *r, int dir_fd, struct task *t)
{
	int fds[PROC_KEPT_FDS] = { -1, -1, -1, -1, -1, -1, -1, -1 };
	bool keep_open = r->keep_open;

	r->keep_open = false;
	more_fields(r, dir_fd, t->pid, fds, r->sum_fields, t->v);
	r->keep_open = keep_open;
}

/* Scan one process; false when it has ended meanwhile. */
static bool scan_task(struct proc_reader *r, uint32_t pid, struct task *t)
{
	const struct task *old = find_task(r, pid);
	struct proc_stat stat;
	int dir_fd = -1;
	bool same;
	size_t k;

	if (!read_stat(r, pid, &stat))
		return false;
	if (old && old->start_ticks != stat.start_ticks)
		old = NULL;
	/* Exec changes comm, and there are no arguments while it runs. */
	same = old && strcmp(old->comm, stat.comm) == 0 && (*old->called || !*old->file);
	if (!same || (r->sum_fields & MORE_FIELDS)) {
		dir_fd = open_task_dir(r, pid);
		if (dir_fd < 0)
			return false;
	}
	*t = same ? *old : (struct task){.pid = pid, .start_ticks = stat.start_ticks};
	if (!same) {
		memcpy(t->comm, stat.comm, sizeof(t->comm));
		name_task(r, t, dir_fd);
		t->number = old && old->key == t->key ? old->number : NUMBER_NONE;
	}
	for (k = 0; k < PROC_FIELDS_MAX; k++)
		t->v[k] = NAN;
	stat_fields(&stat, t->v);
	if (dir_fd >= 0) {
		scan_more(r, dir_fd, t);
		close(dir_fd);
	}
	return true;
}

static bool is_pid(const char *name, uint32_t *pid)
{
	uint32_t v = 0;
	size_t n;

	for (n = 0; name[n] >= '0' && name[n] <= '9' && n < 9; n++)
		v = v * 10 + (uint32_t)(name[n] - '0');
	*pid = v;
	return n > 0 && !name[n];
}

/* Scan all processes into a new array; false without memory, and nothing is changed. */
static bool collect_tasks(struct proc_reader *r, struct task **out, uint32_t *nout)
{
	uint32_t n = 0, room = 0, pid;
	struct task *tasks = NULL;
	DIR *dir = proc_open_dir(r->proc_fd, ".");
	bool ok = dir && !ARRAY_ROOM(tasks, room, r->ntasks + 64);
	struct dirent *entry;

	while (ok && n < PROCESSES_MAX && (entry = readdir(dir))) {
		if (!is_pid(entry->d_name, &pid))
			continue;
		ok = !ARRAY_ROOM(tasks, room, n + 1);
		if (ok)
			n += scan_task(r, pid, &tasks[n]);
	}
	if (dir)
		closedir(dir);
	if (!ok) {
		free(tasks);
		return false;
	}
	qsort(tasks, n, sizeof(*tasks), by_pid);
	*out = tasks;
	*nout = n;
	return true;
}

static int by_name_and_number(const void *a, const void *b)
{
	const struct task *x = *(struct task *const *)a, *y = *(struct task *const *)b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	if (x->start_ticks != y->start_ticks)
		return x->start_ticks < y->start_ticks ? -1 : 1;
	return (x->pid > y->pid) - (x->pid < y->pid);
}

/* Give processes without a number the lowest free one of their name, the oldest first. */
static bool number_tasks(struct task *tasks, uint32_t n)
{
	struct task **order = malloc((n ? n : 1) * sizeof(*order));
	uint32_t i, first, taken, next;

	if (!order)
		return false;
	for (i = 0; i < n; i++)
		order[i] = &tasks[i];
	qsort(order, n, sizeof(struct task *), by_name_and_number);
	for (first = 0; first < n; first = i) {
		/* Within a name: first the numbered ones in order, then the others by age. */
		taken = first;
		next = 0;
		for (i = first; i < n && order[i]->key == order[first]->key; i++) {
			if (order[i]->number != NUMBER_NONE)
				continue;
			while (taken < i && order[taken]->number == next) {
				taken++;
				next++;
			}
			order[i]->number = next++;
		}
	}
	free(order);
	return true;
}

static bool task_is(const struct task *t, const char *wanted)
{
	const struct process_names names = names_of(t);

	return process_names_match(&names, wanted);
}

/* The fields that only grow: rates are calculated from them. */
static uint32_t growing_fields(const struct counter_category *category)
{
	const struct counter_def *def;
	uint32_t fields = 0;

	for (def = category->counters; def->name; def++)
		fields |= counter_needs_two(def) ? def->a : 0;
	return fields;
}

/* Add to a sum the values of its processes, and their growth since the last scan. */
static void add_to_sum(struct proc_reader *r, struct proc_instance *i, const struct task *tasks,
		       uint32_t ntasks)
{
	uint32_t growing = growing_fields(i->category), known = 0, n, k;
	double level[PID_FIELDS] = { 0 };

	for (n = 0; n < ntasks; n++) {
		const struct task *t = &tasks[n], *old = find_task(r, t->pid);

		if (*i->wanted && !task_is(t, i->wanted))
			continue;
		if (old && old->start_ticks != t->start_ticks)
			old = NULL;
		for (k = 0; k < PID_FIELDS; k++) {
			double grown = t->v[k] - (old ? old->v[k] : 0);

			if (t->v[k] != t->v[k])
				continue;
			known |= BIT(k);
			level[k] += t->v[k];
			/* A process that is new since the last scan grew from 0. */
			if (r->scan_time_ns && grown > 0)
				i->grown[k] += grown;
		}
	}
	known &= ~(BIT(PID_NUMBER) | BIT(PID_ELAPSED));     /* their sums have no meaning */
	for (k = 0; k < PID_FIELDS; k++) {
		i->sum[k] = growing & BIT(k) ? i->grown[k] : level[k];
		if (!(known & BIT(k)))
			i->sum[k] = NAN;
	}
}

static bool scan_tasks(struct proc_reader *r)
{
	struct proc_instance *i;
	struct task *tasks;
	uint64_t time_ns;
	uint32_t ntasks;

	if (r->scan_moment == r->moment)
		return true;
	time_ns = os_now_ns();
	if (!collect_tasks(r, &tasks, &ntasks))
		return false;
	if (!number_tasks(tasks, ntasks)) {
		free(tasks);
		return false;
	}
	for (i = r->instances; i; i = i->next)
		if (i->category->id == PROC_PROCESS && i->binding == TASK_SUM)
			add_to_sum(r, i, tasks, ntasks);
	free(r->tasks);
	r->tasks = tasks;
	r->ntasks = ntasks;
	r->scan_moment = r->moment;
	r->scan_time_ns = time_ns;
	return true;
}

/* ---- instances ------------------------------------------------------------------------------- */

void task_instance_init(struct proc_reader *r, struct proc_instance *i)
{
	char *hash;

	i->number = 0;
	if (is_total(i->name)) {
		i->binding = TASK_SUM;
	} else if (strncasecmp(i->name, "pid=", 4) == 0 && is_pid(i->name + 4, &i->pid)) {
		i->binding = TASK_PID;
	} else {
		i->binding = TASK_NAME;
		snprintf(i->wanted, sizeof(i->wanted), "%.*s", TASK_NAME_BYTES - 1, i->name);
		hash = strrchr(i->wanted, '#');
		if (hash && strcmp(hash, "#*") == 0) {
			i->binding = TASK_SUM;
			*hash = '\0';
		} else if (hash && is_pid(hash + 1, &i->number)) {
			*hash = '\0';
		}
		i->wanted[process_name_length(i->wanted)] = '\0';
	}
	if (i->binding == TASK_SUM)
		r->sum_fields |= i->fields;
}

/* Read the process that the instance is bound to; false when it has ended or its pid was reused. */
static bool read_bound(struct proc_reader *r, struct proc_instance *i)
{
	struct proc_stat stat;
	struct text all;

	if (i->dir_fd < 0 || !proc_read_at(r, i->dir_fd, "stat", &i->fds[TASK_FD_STAT], &all) ||
	    !proc_stat_parse(all, &stat) || stat.start_ticks != i->start_ticks)
		return false;
	if (i->binding == TASK_NAME && strcmp(stat.comm, i->comm) != 0)
		return false;
	i->raw.time_ns = os_now_ns();
	i->raw.identity = hash_pair(stat.pid, stat.start_ticks);
	stat_fields(&stat, i->raw.v);
	more_fields(r, i->dir_fd, (uint32_t)stat.pid, i->fds, i->fields, i->raw.v);
	return true;
}

/* Processes that people call by this name come before those of which it is another name. */
static bool comes_before(const struct task *a, const struct task *b, uint64_t key)
{
	if ((a->key == key) != (b->key == key))
		return a->key == key;
	return a->number < b->number;
}

/* "name" means any process of that name, the lowest number first; "name#2" only number 2. */
static bool bind_by_name(struct proc_reader *r, struct proc_instance *i)
{
	const struct task *best = NULL;
	uint64_t key = name_key(i->wanted);
	struct process_names names;
	uint32_t n;

	for (n = 0; n < r->ntasks; n++) {
		const struct task *t = &r->tasks[n];

		if ((i->number && t->number != i->number) || !task_is(t, i->wanted))
			continue;
		if (!best || comes_before(t, best, key))
			best = t;
	}
	if (!best)
		return false;
	names = names_of(best);
	process_names_label(&names, i->label);
	i->start_ticks = best->start_ticks;
	memcpy(i->comm, best->comm, sizeof(i->comm));
	i->dir_fd = open_task_dir(r, best->pid);
	return true;
}

/* The first process seen with the pid, for ever. */
static bool bind_by_pid(struct proc_reader *r, struct proc_instance *i)
{
	struct proc_stat stat;

	if (!i->was_bound && !read_stat(r, i->pid, &stat))
		return false;
	if (!i->was_bound)
		i->start_ticks = stat.start_ticks;
	i->was_bound = true;
	i->dir_fd = open_task_dir(r, i->pid);
	return true;
}

static enum counter_result read_sum(struct proc_reader *r, struct proc_instance *i)
{
	if (!scan_tasks(r))
		return COUNTER_NOT_YET;
	memcpy(i->raw.v, i->sum, sizeof(i->raw.v));
	i->raw.time_ns = r->scan_time_ns;
	return i->raw.v[PID_COUNT] > 0 ? COUNTER_VALUE : COUNTER_ABSENT;
}

enum counter_result task_instance_read(struct proc_reader *r, struct proc_instance *i)
{
	bool bound;

	if (i->binding == TASK_SUM)
		return read_sum(r, i);
	bound = read_bound(r, i);
	if (!bound) {
		proc_instance_unbind(i);
		if (i->binding == TASK_NAME && !scan_tasks(r))
			return COUNTER_NOT_YET;
		bound = (i->binding == TASK_PID ? bind_by_pid(r, i) : bind_by_name(r, i)) &&
			read_bound(r, i);
	}
	if (!bound || !r->keep_open)
		proc_instance_unbind(i);
	return bound ? COUNTER_VALUE : COUNTER_ABSENT;
}

/* ---- listing --------------------------------------------------------------------------------- */

double task_count(struct proc_reader *r)
{
	DIR *dir = proc_open_dir(r->proc_fd, ".");
	struct dirent *entry;
	uint32_t pid;
	double n = 0;

	if (!dir)
		return NAN;
	while ((entry = readdir(dir)))
		n += is_pid(entry->d_name, &pid);
	closedir(dir);
	return n;
}

static bool list_one(struct proc_reader *r, const struct task *t, proc_instance_found *found,
		     void *ctx)
{
	char name[TASK_NAME_BYTES + 16];
	bool several = false;
	uint32_t n;

	snprintf(name, sizeof(name), t->number ? "%s#%u" : "%s", t->name, t->number);
	if (!found(ctx, name, false))
		return false;
	for (n = 0; t->number == 0 && n < r->ntasks && !several; n++)
		several = &r->tasks[n] != t && r->tasks[n].key == t->key;
	if (!several)
		return true;
	snprintf(name, sizeof(name), "%s#*", t->name);
	return found(ctx, name, false);
}

static bool is_listed(const struct proc_reader *r, const char *name)
{
	uint64_t key = name_key(name);
	uint32_t n;

	for (n = 0; n < r->ntasks && r->tasks[n].key != key; n++)
		;
	return n < r->ntasks;
}

/* List its other names, each with the first process that has it, unless one is listed by it. */
static bool list_others(struct proc_reader *r, const struct task *t, proc_instance_found *found,
			void *ctx)
{
	const char *const names[] = {t->file, t->comm, t->called, t->script};
	uint32_t n, k;

	for (k = 0; k < COUNT_OF(names); k++) {
		for (n = 0; n < k && !text_same_fold(names[n], names[k]); n++)
			;
		if (!*names[k] || n < k || is_listed(r, names[k]))
			continue;
		for (n = 0; &r->tasks[n] < t && !task_is(&r->tasks[n], names[k]); n++)
			;
		if (&r->tasks[n] == t && !found(ctx, names[k], true))
			return false;
	}
	return true;
}

void task_list(struct proc_reader *r, proc_instance_found *found, void *ctx)
{
	uint32_t n;

	if (!found(ctx, "_Total", false) || !scan_tasks(r))
		return;
	for (n = 0; n < r->ntasks; n++)
		if (!list_one(r, &r->tasks[n], found, ctx) ||
		    !list_others(r, &r->tasks[n], found, ctx))
			return;
}

void proc_instance_put_meant(const struct proc_instance *i, struct buf *out)
{
	if (i->category->id != PROC_PROCESS || i->result != COUNTER_VALUE)
		return;
	if (i->binding == TASK_SUM) {
		buf_printf(out, "%.0f process%s", i->sum[PID_COUNT],
			   i->sum[PID_COUNT] == 1 ? "" : "es");
	} else if (i->binding == TASK_NAME) {
		utf8_put_clean(out, i->label, strlen(i->label), SIZE_MAX);
		buf_printf(out, " (%.0f)", i->raw.v[PID_NUMBER]);
	}
}
