#include "base/array.h"
#include "base/os.h"
#include "source/counter/proc_reader_private.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define READ_CHUNK 16384u

static const char *const paths[PROC_FILES] = {
	[FILE_STAT] = "stat",
	[FILE_LOADAVG] = "loadavg",
	[FILE_UPTIME] = "uptime",
	[FILE_MEMINFO] = "meminfo",
	[FILE_VMSTAT] = "vmstat",
	[FILE_DISKSTATS] = "diskstats",
	[FILE_NET_DEV] = "net/dev",
	[FILE_SNMP] = "net/snmp",
	[FILE_MOUNTS] = "self/mounts",
	[FILE_PSI_CPU] = "pressure/cpu",
	[FILE_PSI_MEMORY] = "pressure/memory",
	[FILE_PSI_IO] = "pressure/io",
	[FILE_PSI_IRQ] = "pressure/irq",
};

/* ---- files ----------------------------------------------------------------------------------- */

bool proc_read_fd(int fd, struct buf *out)
{
	ssize_t got;
	char *to;

	buf_reset(out);
	for (;;) {
		to = buf_reserve(out, READ_CHUNK);
		if (!to)
			return false;
		/* A short read is not the end: the kernel returns these files record by record. */
		got = pread(fd, to, READ_CHUNK, (off_t)out->len);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			return got == 0;
		buf_advance(out, (size_t)got);
	}
}

bool proc_file_text(struct proc_reader *r, enum proc_file file, struct text *out)
{
	struct kept_file *f = &r->files[file];

	if (f->moment != r->moment) {
		f->moment = r->moment;
		if (f->fd < 0)
			f->fd = openat(r->proc_fd, paths[file], O_RDONLY | O_CLOEXEC);
		f->exists = f->fd >= 0 && proc_read_fd(f->fd, &f->text);
		f->time_ns = os_now_ns();
	}
	*out = text_of(f->text.data, f->exists ? f->text.len : 0);
	return f->exists;
}

DIR *proc_open_dir(int dir_fd, const char *name)
{
	int fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;

	if (!dir && fd >= 0)
		close(fd);
	return dir;
}

bool proc_read_at(struct proc_reader *r, int dir_fd, const char *name, int *kept, struct text *out)
{
	bool ok;

	if (*kept < 0)
		*kept = openat(dir_fd, name, O_RDONLY | O_CLOEXEC);
	ok = *kept >= 0 && proc_read_fd(*kept, &r->scratch);
	if (*kept >= 0 && !r->keep_open) {
		close(*kept);
		*kept = -1;
	}
	*out = text_of(r->scratch.data, ok ? r->scratch.len : 0);
	return ok;
}

void proc_instance_unbind(struct proc_instance *i)
{
	size_t k;

	for (k = 0; k < PROC_KEPT_FDS; k++) {
		if (i->fds[k] >= 0)
			close(i->fds[k]);
		i->fds[k] = -1;
	}
	if (i->dir_fd >= 0)
		close(i->dir_fd);
	i->dir_fd = -1;
}

/* ---- the machine's categories ---------------------------------------------------------------- */

/* The text of a file; the numbers in it are as old as the text. */
static bool instance_text(struct proc_reader *r, struct proc_instance *i, enum proc_file file,
			  struct text *out)
{
	bool ok = proc_file_text(r, file, out);

	i->raw.time_ns = r->files[file].time_ns;
	return ok;
}

static enum counter_result read_processor(struct proc_reader *r, struct proc_instance *i)
{
	char name[COUNTER_NAME_MAX + 3];
	struct proc_row row;
	struct text all;

	snprintf(name, sizeof(name), "cpu%s", is_total(i->name) ? "" : i->name);
	if (!instance_text(r, i, FILE_STAT, &all))
		return COUNTER_ABSENT;
	while (proc_row_next(&all, &row)) {
		if (row.n < 4 || !text_is(row.name, name))
			continue;
		memcpy(i->raw.v, row.v, CPU_FIELDS * sizeof(row.v[0]));
		return COUNTER_VALUE;
	}
	return COUNTER_ABSENT;
}

/* "0.76 0.45 0.22 1/95 10963": the averages, and how many of all threads run. */
static void read_load(struct proc_reader *r, double *v)
{
	struct text all, word;
	int k;

	if (!proc_file_text(r, FILE_LOADAVG, &all))
		return;
	for (k = 0; k < 3 && text_word(&all, &word); k++)
		text_number(word, &v[SYS_LOAD1 + k]);
	if (!text_word(&all, &word))
		return;
	while (word.at < word.end && *word.at++ != '/')
		;
	text_number(word, &v[SYS_THREADS]);
}

/* The threads that are ready beyond the number of CPUs. */
static double queue_length(struct text all)
{
	double running, cpus = 0;
	struct proc_row row;

	if (!proc_value(all, "procs_running", &running))
		return NAN;
	while (proc_row_next(&all, &row))
		cpus += row.n && text_begins(row.name, "cpu") && !text_is(row.name, "cpu");
	return fmax(running - cpus, 0);
}

static const struct {
	uint8_t category, field, file;
	const char *name;
} named_values[] = {
	{PROC_SYSTEM, SYS_SWITCHES, FILE_STAT, "ctxt"},
	{PROC_SYSTEM, SYS_FORKS, FILE_STAT, "processes"},
	{PROC_SYSTEM, SYS_RUNNING, FILE_STAT, "procs_running"},
	{PROC_SYSTEM, SYS_BLOCKED, FILE_STAT, "procs_blocked"},
	{PROC_MEMORY, RAM_TOTAL, FILE_MEMINFO, "MemTotal"},
	{PROC_MEMORY, RAM_FREE, FILE_MEMINFO, "MemFree"},
	{PROC_MEMORY, RAM_AVAILABLE, FILE_MEMINFO, "MemAvailable"},
	{PROC_MEMORY, RAM_COMMITTED, FILE_MEMINFO, "Committed_AS"},
	{PROC_MEMORY, RAM_LIMIT, FILE_MEMINFO, "CommitLimit"},
	{PROC_MEMORY, RAM_SWAP_TOTAL, FILE_MEMINFO, "SwapTotal"},
	{PROC_MEMORY, RAM_SWAP_FREE, FILE_MEMINFO, "SwapFree"},
	{PROC_MEMORY, RAM_DIRTY, FILE_MEMINFO, "Dirty"},
	{PROC_MEMORY, RAM_FAULTS, FILE_VMSTAT, "pgfault"},
	{PROC_MEMORY, RAM_MAJOR_FAULTS, FILE_VMSTAT, "pgmajfault"},
	{PROC_MEMORY, RAM_SWAP_IN, FILE_VMSTAT, "pswpin"},
	{PROC_MEMORY, RAM_SWAP_OUT, FILE_VMSTAT, "pswpout"},
};

/* A value of meminfo, which is in KiB, in bytes. */
static double memory_bytes(struct text all, const char *name)
{
	double kib;

	return proc_value(all, name, &kib) ? kib * 1024 : NAN;
}

/* Read the category's fields that are the values of named rows. */
static void read_named_values(struct proc_reader *r, struct proc_instance *i)
{
	struct text all;
	size_t k;

	i->raw.time_ns = os_now_ns();
	for (k = 0; k < COUNT_OF(named_values); k++) {
		enum proc_file file = named_values[k].file;
		double *v = &i->raw.v[named_values[k].field];

		if (named_values[k].category != i->category->id ||
		    !(i->fields & BIT(named_values[k].field)) || !instance_text(r, i, file, &all))
			continue;
		if (file == FILE_MEMINFO)
			*v = memory_bytes(all, named_values[k].name);
		else
			proc_value(all, named_values[k].name, v);
	}
}

static enum counter_result read_system(struct proc_reader *r, struct proc_instance *i)
{
	struct text all, word;
	double *v = i->raw.v;

	if (!is_total(i->name))
		return COUNTER_ABSENT;
	read_named_values(r, i);
	if ((i->fields & BIT(SYS_QUEUE)) && proc_file_text(r, FILE_STAT, &all))
		v[SYS_QUEUE] = queue_length(all);
	if (i->fields & (BIT(SYS_LOAD1) | BIT(SYS_LOAD5) | BIT(SYS_LOAD15) | BIT(SYS_THREADS)))
		read_load(r, v);
	if ((i->fields & BIT(SYS_UPTIME)) && proc_file_text(r, FILE_UPTIME, &all) &&
	    text_word(&all, &word))
		text_number(word, &v[SYS_UPTIME]);
	if (i->fields & BIT(SYS_PROCESSES))
		v[SYS_PROCESSES] = task_count(r);
	return COUNTER_VALUE;
}

static enum counter_result read_memory(struct proc_reader *r, struct proc_instance *i)
{
	struct text all;

	if (!is_total(i->name))
		return COUNTER_ABSENT;
	read_named_values(r, i);
	if ((i->fields & BIT(RAM_CACHE)) && proc_file_text(r, FILE_MEMINFO, &all))
		i->raw.v[RAM_CACHE] = memory_bytes(all, "Cached") +
				      memory_bytes(all, "SReclaimable") -
				      memory_bytes(all, "Shmem");
	return COUNTER_VALUE;
}

static enum counter_result read_paging_file(struct proc_reader *r, struct proc_instance *i)
{
	struct text all;

	if (!is_total(i->name) || !instance_text(r, i, FILE_MEMINFO, &all))
		return COUNTER_ABSENT;
	i->raw.v[1] = memory_bytes(all, "SwapTotal");
	i->raw.v[0] = i->raw.v[1] - memory_bytes(all, "SwapFree");
	return COUNTER_VALUE;
}

/* Devices built on others or on memory: counting them would count twice. */
static bool is_virtual_disk(struct text name)
{
	static const char *const prefixes[] = {"loop", "ram", "zram", "dm-",
					       "md",   "sr",  "fd",   "nbd"};
	size_t i;

	for (i = 0; i < COUNT_OF(prefixes); i++)
		if (text_begins(name, prefixes[i]))
			return true;
	return false;
}

static void add_row(struct proc_instance *i, const struct proc_row *row, uint32_t n)
{
	uint32_t k;

	for (k = 0; k < n; k++)
		i->raw.v[k] += row->v[k];
}

static bool row_is(const struct proc_row *row, const char *name)
{
	char text[COUNTER_NAME_MAX];

	text_copy(row->name, text, sizeof(text));
	return text_same_fold(text, name);
}

static enum counter_result read_disk(struct proc_reader *r, struct proc_instance *i)
{
	bool total = is_total(i->name);
	struct text all, disk = { NULL, NULL };
	struct proc_row row;

	if (!instance_text(r, i, FILE_DISKSTATS, &all))
		return COUNTER_ABSENT;
	memset(i->raw.v, 0, sizeof(i->raw.v));
	while (proc_disk_next(&all, &row)) {
		bool part = proc_disk_is_part_of(row.name, disk);

		if (!part)
			disk = row.name;
		if (total ? part || is_virtual_disk(row.name) : !row_is(&row, i->name))
			continue;
		add_row(i, &row, DISK_COUNT);
		i->raw.v[DISK_COUNT]++;
	}
	return total || i->raw.v[DISK_COUNT] > 0 ? COUNTER_VALUE : COUNTER_ABSENT;
}

static enum counter_result read_network(struct proc_reader *r, struct proc_instance *i)
{
	bool total = is_total(i->name), found = total;
	struct proc_row row;
	struct text all;

	if (!instance_text(r, i, FILE_NET_DEV, &all))
		return COUNTER_ABSENT;
	memset(i->raw.v, 0, sizeof(i->raw.v));
	while (proc_row_next(&all, &row)) {
		if (row.n < 12 || (total ? text_is(row.name, "lo") : !row_is(&row, i->name)))
			continue;
		add_row(i, &row, NET_FIELDS);
		found = true;
	}
	return found ? COUNTER_VALUE : COUNTER_ABSENT;
}

static enum counter_result read_tcp(struct proc_reader *r, struct proc_instance *i)
{
	static const char *const headings[TCP_FIELDS] = {
		[TCP_ACTIVE] = "ActiveOpens",
		[TCP_PASSIVE] = "PassiveOpens",
		[TCP_FAILED] = "AttemptFails",
		[TCP_RESET] = "EstabResets",
		[TCP_ESTABLISHED] = "CurrEstab",
		[TCP_IN] = "InSegs",
		[TCP_OUT] = "OutSegs",
		[TCP_RETRANSMITTED] = "RetransSegs",
	};
	struct text all;
	size_t k;

	if (!is_total(i->name) || !instance_text(r, i, FILE_SNMP, &all))
		return COUNTER_ABSENT;
	for (k = 0; k < TCP_FIELDS; k++)
		if (i->fields & BIT(k))
			proc_heading_value(all, "Tcp", headings[k], &i->raw.v[k]);
	return COUNTER_VALUE;
}

static const char *const resources[] = { "cpu", "memory", "io", "irq", NULL };

static enum counter_result read_pressure(struct proc_reader *r, struct proc_instance *i)
{
	static const char *const keys[] = { "avg10", "avg60", "avg300", "total" };
	struct text all;
	int file, k;

	for (file = 0; resources[file] && !text_same_fold(resources[file], i->name);)
		file++;
	if (!resources[file] || !instance_text(r, i, FILE_PSI_CPU + (unsigned)file, &all))
		return COUNTER_ABSENT;
	for (k = 0; k < 4; k++) {
		proc_key_sum(all, "some", keys[k], &i->raw.v[PSI_SOME_10 + k]);
		proc_key_sum(all, "full", keys[k], &i->raw.v[PSI_FULL_10 + k]);
	}
	return COUNTER_VALUE;
}

/* ---- which instances there are --------------------------------------------------------------- */

static void list_rows(struct proc_reader *r, enum proc_file file,
		      bool next(struct text *rest, struct proc_row *row), uint32_t least,
		      const char *prefix, proc_instance_found *found, void *ctx)
{
	char name[COUNTER_NAME_MAX];
	size_t skip = strlen(prefix);
	struct proc_row row;
	struct text all;

	if (!proc_file_text(r, file, &all) || !found(ctx, "_Total", false))
		return;
	while (next(&all, &row)) {
		text_copy(row.name, name, sizeof(name));
		if (row.n < least || strncmp(name, prefix, skip) != 0 || !name[skip])
			continue;
		if (!found(ctx, name + skip, false))
			return;
	}
}

static void list_pressure(struct proc_reader *r, proc_instance_found *found, void *ctx)
{
	struct text all;
	unsigned k;

	for (k = 0; resources[k]; k++)
		if (proc_file_text(r, FILE_PSI_CPU + k, &all) && !found(ctx, resources[k], false))
			return;
}

void proc_reader_list(struct proc_reader *r, const struct counter_category *category,
		      proc_instance_found *found, void *ctx)
{
	switch (category->id) {
	case PROC_PROCESSOR:
		list_rows(r, FILE_STAT, proc_row_next, 4, "cpu", found, ctx);
		break;
	case PROC_PHYSICAL_DISK:
		list_rows(r, FILE_DISKSTATS, proc_disk_next, 1, "", found, ctx);
		break;
	case PROC_NETWORK:
		list_rows(r, FILE_NET_DEV, proc_row_next, 12, "", found, ctx);
		break;
	case PROC_PAGING_FILE:
		found(ctx, "_Total", false);
		break;
	case PROC_PRESSURE:
		list_pressure(r, found, ctx);
		break;
	case PROC_PROCESS:
		task_list(r, found, ctx);
		break;
	case PROC_LOGICAL_DISK:
		volume_list(r, found, ctx);
		break;
	case PROC_CGROUP:
		cgroup_list(r, found, ctx);
		break;
	default:
		found(ctx, "", false);
		break;
	}
}

/* ---- reader ---------------------------------------------------------------------------------- */

static enum counter_result (*const readers[PROC_CATEGORIES])(struct proc_reader *,
							     struct proc_instance *) = {
	[PROC_PROCESSOR] = read_processor,
	[PROC_SYSTEM] = read_system,
	[PROC_MEMORY] = read_memory,
	[PROC_PAGING_FILE] = read_paging_file,
	[PROC_PROCESS] = task_instance_read,
	[PROC_PHYSICAL_DISK] = read_disk,
	[PROC_LOGICAL_DISK] = volume_read,
	[PROC_NETWORK] = read_network,
	[PROC_TCP] = read_tcp,
	[PROC_PRESSURE] = read_pressure,
	[PROC_CGROUP] = cgroup_read,
};

enum counter_result proc_instance_read(struct proc_reader *r, struct proc_instance *i,
				       const struct counter_raw **out)
{
	size_t k;

	if (i->moment != r->moment) {
		for (k = 0; k < PROC_FIELDS_MAX; k++)
			i->raw.v[k] = NAN;
		i->raw.identity = 0;
		i->moment = r->moment;
		i->result = readers[i->category->id](r, i);
	}
	*out = &i->raw;
	return i->result;
}

struct proc_instance *proc_reader_instance(struct proc_reader *r,
					   const struct counter_category *category,
					   const char *name, uint32_t fields)
{
	struct proc_instance *i;
	size_t k;

	for (i = r->instances; i; i = i->next)
		if (i->category == category && strcmp(i->name, name) == 0)
			break;
	if (!i) {
		i = calloc(1, sizeof(*i));
		if (!i)
			return NULL;
		i->category = category;
		snprintf(i->name, sizeof(i->name), "%s", name);
		i->dir_fd = -1;
		for (k = 0; k < PROC_KEPT_FDS; k++)
			i->fds[k] = -1;
		i->next = r->instances;
		r->instances = i;
	}
	i->fields |= fields;
	if (category->id == PROC_PROCESS)
		task_instance_init(r, i);
	return i;
}

int proc_reading_start(struct proc_reader *r, const struct proc_counter *counter,
		       struct proc_reading *out, struct err *err)
{
	*out = (struct proc_reading){
		.def = counter->def,
		.instance = proc_reader_instance(r, counter->category, counter->instance,
						 counter_fields(counter->def)),
	};
	return out->instance ? 0 : err_memory(err, "for the counter '%s:%s:%s'",
					      counter->category->name, counter->def->name,
					      counter->instance);
}

enum counter_result proc_reading_next(struct proc_reader *r, struct proc_reading *reading,
				      double *value)
{
	const struct counter_raw *now;
	enum counter_result result = proc_instance_read(r, reading->instance, &now);

	return counter_next_value(reading->def, &reading->before, result, now, value);
}

void proc_reader_begin(struct proc_reader *r)
{
	r->moment++;
}

bool proc_reader_note(const struct proc_reader *r, char *out, size_t n)
{
	return answers_note(r->answers, out, n);
}

int proc_reader_open(const char *proc_dir, bool keep_open, struct proc_reader **out,
		     struct err *err)
{
	struct proc_reader *r = calloc(1, sizeof(*r));
	size_t k;
	int rc;

	if (!r)
		return err_memory(err, "for reading counters");
	for (k = 0; k < PROC_FILES; k++) {
		r->files[k].fd = -1;
		r->files[k].text.max_bytes = PROC_TEXT_MAX;
	}
	r->scratch.max_bytes = PROC_TEXT_MAX;
	r->keep_open = keep_open;
	r->moment = 1;
	r->proc_fd = open(proc_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rc = r->proc_fd < 0 ? err_os(err, "cannot open '%s', the source of counters", proc_dir)
			    : answers_open(&r->answers, err);
	if (rc)
		proc_reader_close(r);
	else
		*out = r;
	return rc;
}

void proc_reader_close(struct proc_reader *r)
{
	struct proc_instance *i;
	size_t k;

	if (!r)
		return;
	while ((i = r->instances)) {
		r->instances = i->next;
		proc_instance_unbind(i);
		free(i);
	}
	for (k = 0; k < PROC_FILES; k++) {
		if (r->files[k].fd >= 0)
			close(r->files[k].fd);
		buf_free(&r->files[k].text);
	}
	if (r->proc_fd >= 0)
		close(r->proc_fd);
	answers_close(r->answers);
	buf_free(&r->scratch);
	free(r->tasks);
	free(r);
}
