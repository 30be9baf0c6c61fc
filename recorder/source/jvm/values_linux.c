#include "source/jvm/values.h"

#include "base/nearest.h"
#include "base/os.h"
#include "base/text.h"
#include "source/counter_due.h"
#include "source/counter_name.h"
#include "source/host/proc_pid_linux.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEARCH_NS NS_PER_SEC                 /* for JVMs, before a recording */
#define SEARCH_LOOK_NS (5 * NS_PER_MS)
#define ANSWER_NS (6 * NS_PER_SEC)           /* more than the process that reads files may take */
#define NAME_COLUMN 56

struct jvm_value {
	struct need_counter need;
	struct counter_name name;
	uint64_t next_ns;
	/* Of the last reading: when, of which JVMs (the sum of their pids), the sum; 0 = none. */
	uint64_t before_ns, before_pids;
	double before;
};

struct jvm_values {
	uint32_t n;
	struct jvm_value all[];
};

int jvm_values_new(const struct needs *needs, struct jvm_values **out, struct err *err)
{
	struct jvm_values *v;
	uint32_t i, n = 0;

	*out = NULL;
	for (i = 0; i < needs->ncounters; i++)
		n += jvm_counter_is(needs->counters[i].name);
	if (!n)
		return 0;
	v = calloc(1, sizeof(*v) + n * sizeof(v->all[0]));
	if (!v)
		return err_memory(err, "for counters of Java programs");
	for (i = 0; i < needs->ncounters; i++) {
		struct jvm_value *value = &v->all[v->n];

		if (!jvm_counter_is(needs->counters[i].name) ||
		    counter_name_split(needs->counters[i].name, &value->name, NULL))
			continue;
		value->need = counter_need(&needs->counters[i]);
		v->n++;
	}
	*out = v;
	return 0;
}

void jvm_values_free(struct jvm_values *v)
{
	free(v);
}

/* In seconds where it is a time, so that its increase a second is a share. */
static double as_number(const struct hsperf_number *n)
{
	return n->ticks && n->frequency_hz ? (double)n->value / (double)n->frequency_hz
					   : (double)n->value;
}

static bool is_meant(struct jvm_table *t, struct jvm *j, const char *instance)
{
	struct process *process = j->ready ? proc_pid_process(t->processes, j->pid, &j->own) : NULL;
	bool meant = process && gc_counter_means(instance, process);

	if (process)
		process_unref(process);
	return meant;
}

void jvm_values_take(void *values, struct jvm *j, const struct hsperf_file *file)
{
	const struct jvm_values *v = values;
	uint32_t i;

	if (!j->numbers)
		j->numbers = calloc(v->n, sizeof(*j->numbers));
	for (i = 0; j->numbers && i < v->n; i++)
		hsperf_number(file, v->all[i].name.counter, &j->numbers[i]);
}

static bool read_one(const struct jvm_values *v, struct jvm_table *t, struct jvm *j,
		     const struct jvm_value *value, struct hsperf_number *out)
{
	if (!is_meant(t, j, value->name.instance) || !j->numbers || !j->numbers[value - v->all].at)
		return false;
	*out = j->numbers[value - v->all];
	return mapped_read(&j->map, &out->value, out->at, sizeof(out->value));
}

/* false = there is nothing to tell now */
static bool value_now(struct jvm_values *v, struct jvm_table *t, struct jvm_value *value,
		      uint64_t now_ns, struct event *e)
{
	struct hsperf_number number = {0}, last = {0};
	double sum = 0, before = value->before;
	uint64_t pids = 0, before_ns = value->before_ns;
	uint32_t i;

	for (i = 0; i < t->n; i++)
		if (read_one(v, t, &t->all[i], value, &number)) {
			sum += as_number(&number);
			pids += t->all[i].pid;
			last = number;
		}
	if (!pids) {
		value->before_ns = 0;
		e->flags |= EVENT_FLAG_ABSENT;
		return true;
	}
	e->value = sum;
	if (!last.grows)
		return true;
	value->before = sum;
	value->before_ns = now_ns;
	if (!before_ns || value->before_pids != pids || sum < before) {
		value->before_pids = pids;
		return false;
	}
	e->value = (sum - before) * (last.ticks ? 100 : 1) * (double)NS_PER_SEC /
		   (double)(now_ns - before_ns);
	return true;
}

uint64_t jvm_values_poll(struct jvm_values *v, struct jvm_table *t, uint64_t now_ns,
			 void (*deliver)(void *ctx, const struct event *e), void *ctx)
{
	uint64_t next_ns = UINT64_MAX;
	uint32_t i;

	for (i = 0; v && i < v->n; i++) {
		struct jvm_value *value = &v->all[i];
		struct event e = counter_event(&value->need, now_ns);

		if (!value->next_ns)
			value->next_ns = now_ns;
		if (counter_due(&value->next_ns, value->need.period_ns, now_ns) &&
		    value_now(v, t, value, now_ns, &e))
			deliver(ctx, &e);
		next_ns = value->next_ns < next_ns ? value->next_ns : next_ns;
	}
	return next_ns;
}

/* ---- without a recording --------------------------------------------------------------------- */

/* The JVMs that run now, found by one search. */
struct found {
	struct processes *processes;
	struct os_wake *wake;
	struct jvm_table table;
};

static void found_close(struct found *f)
{
	jvm_table_close(&f->table);
	os_wake_free(f->wake);
	processes_free(f->processes);
}

static int found_open(struct found *f, struct err *err)
{
	uint64_t until_ns = os_now_ns() + SEARCH_NS;
	int rc;

	*f = (struct found){.wake = os_wake_new()};
	rc = f->wake ? processes_new(&f->processes, err)
		     : err_memory(err, "for the search of Java programs");
	if (!rc)
		rc = jvm_table_open(&f->table, f->processes, NULL, f->wake, NULL, err);
	f->table.wait_ns = ANSWER_NS;
	if (!rc)
		jvm_table_look(&f->table, os_now_ns());
	while (!rc && f->table.scan.now && os_now_ns() < until_ns) {
		os_sleep_ns(SEARCH_LOOK_NS);
		jvm_table_look(&f->table, os_now_ns());
	}
	return rc;
}

/* Names of a file that a program writes; others are nobody's. */
static bool is_plain(const char *name)
{
	while (isgraph((unsigned char)*name))
		name++;
	return !*name;
}

static void offer(void *ctx, const char *name, const struct hsperf_number *number)
{
	(void)number;
	if (is_plain(name))
		nearest_offer(ctx, name);
}

static bool starts_as_theirs(const char *name)
{
	return strncmp(name, "java.", 5) == 0 || strncmp(name, "sun.", 4) == 0 ||
	       strncmp(name, "com.sun.", 8) == 0;
}

/*
 * Whether a JVM that the instance means keeps this number; offers others otherwise, as text.
 * returns  the pid of one that does not; 0 = none is meant, or one keeps it
 */
static uint32_t find_keeper(struct found *f, const char *counter, const char *instance, bool *kept,
			    struct buf *near)
{
	struct hsperf_number number;
	struct hsperf_file file;
	struct nearest nearest;
	uint32_t i, pid = 0;

	for (i = 0; i < f->table.n; i++) {
		struct jvm *j = &f->table.all[i];

		if (!is_meant(&f->table, j, instance) ||
		    !jvm_table_read(&f->table, j, &file))
			continue;
		*kept = hsperf_number(&file, counter, &number);
		if (*kept)
			return 0;
		/* Its names are borrowed from the file. */
		nearest = (struct nearest){.wanted = counter};
		hsperf_numbers(&file, offer, &nearest);
		pid = j->pid;
		buf_reset(near);
		nearest_put(&nearest, "'", "'", near);
	}
	return pid;
}

/* Where no JVM of the instance runs, the numbers of any other will do. */
static int check_one(struct found *f, const char *full, struct err *err)
{
	struct counter_name name;
	struct buf near = {0};
	bool kept = false;
	uint32_t pid;
	int rc = counter_name_split(full, &name, err);

	if (rc)
		return rc;
	pid = find_keeper(f, name.counter, name.instance, &kept, &near);
	if (!pid && !kept)
		pid = find_keeper(f, name.counter, "", &kept, &near);
	if (pid)
		rc = err_set(err, ERR_USAGE,
			     "'%.200s': the Java program with pid %u keeps no number '%.100s'%s%s;"
			     " 'recorder counters JVM:' lists them, --assume-exists takes one that "
			     "comes later", full, pid, name.counter,
			     near.len ? "; the nearest are " : "", buf_text(&near));
	else if (!kept && !starts_as_theirs(name.counter))
		rc = err_set(err, ERR_USAGE,
			     "'%.200s': no Java program runs that could have a number '%.100s', "
			     "and their names begin with java., sun. or com.sun.; --assume-exists "
			     "takes one that comes later", full, name.counter);
	buf_free(&near);
	return rc;
}

int jvm_values_check(const struct needs *needs, struct err *err)
{
	struct found f = {.wake = NULL};
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->ncounters && !needs->assume_exists; i++) {
		if (!jvm_counter_is(needs->counters[i].name))
			continue;
		if (!f.wake)
			rc = found_open(&f, err);
		if (!rc)
			rc = check_one(&f, needs->counters[i].name, err);
	}
	found_close(&f);
	return rc;
}

struct listing {
	const char *pattern;
	bool json;
	struct buf line;
	const struct jvm *jvm;
};

static void put_number(void *ctx, const char *name, const struct hsperf_number *number)
{
	struct hsperf_number n = *number;
	char full[COUNTER_NAME_MAX], instance[24], value[40];
	struct listing *l = ctx;
	struct counter_row row;

	snprintf(instance, sizeof(instance), "pid=%u", l->jvm->pid);
	if (!is_plain(name) ||
	    (size_t)snprintf(full, sizeof(full), "JVM:%s:%s", name, instance) >= sizeof(full) ||
	    !name_matches(l->pattern, full))
		return;
	n.frequency_hz = l->jvm->data.frequency_hz;
	row = (struct counter_row){
		.counter = full, .category = "JVM", .name = name, .instance = instance,
		.value = as_number(&n), .unit = n.grows ? n.ticks ? "s total" : "total" : "",
		.meaning = "",
	};
	if (l->json) {
		counter_put_json(&row, &l->line);
		return;
	}
	counter_value_text(row.value, value, sizeof(value));
	buf_printf(&l->line, "%-*s %16s %s\n", NAME_COLUMN, full, value, row.unit);
}

int jvm_values_list(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct listing l = {.pattern = pattern, .json = json};
	struct hsperf_file file;
	struct found f;
	uint32_t i;
	int rc;

	if (!pattern || strncasecmp(pattern, "JVM", 3) != 0)
		return err_set(err, ERR_NOT_FOUND, "not a number of a Java program");
	rc = found_open(&f, err);
	for (i = 0; !rc && i < f.table.n; i++) {
		struct jvm *j = &f.table.all[i];

		l.jvm = j;
		if (is_meant(&f.table, j, "_Global_") &&
		    jvm_table_read(&f.table, j, &file))
			hsperf_numbers(&file, put_number, &l);
	}
	rc = rc ? rc : buf_check(&l.line, "the list of counters", err);
	if (!rc)
		out_put(out, l.line.data, l.line.len);
	buf_free(&l.line);
	found_close(&f);
	return rc;
}
