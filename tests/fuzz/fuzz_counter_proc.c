/*
 * Any bytes as a text of /proc, as the name of a counter, or as a counter and its readings. The
 * first byte chooses which, so that a corpus file is one byte and then the text as the kernel
 * writes it. Readings are lines of the time since the last one in ms, who is read, and each field's
 * value; what is no number is not available.
 */
#include "base/json_read.h"
#include "base/nearest.h"
#include "base/os.h"
#include "model/process_name.h"
#include "source/counter_name.h"
#include "source/host/maps.h"
#include "source/host/proc_parse.h"
#include "source/counter/proc_table.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 1e12                       /* a hundred times all of them is counted exactly */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void rows(struct text all)
{
	struct text rest = all, line, word;
	struct proc_row row, disk = {0};
	double v;

	while (proc_row_next(&rest, &row))
		proc_value(all, "pgfault", &v);
	for (rest = all; proc_disk_next(&rest, &row); disk = row)
		proc_disk_is_part_of(row.name, disk.name);
	for (rest = all; text_line(&rest, &line);)
		while (text_word(&line, &word))
			text_number(word, &v);
}

static void processes(struct text all)
{
	char called[PROCESS_CALLED_BYTES], script[PROCESS_CALLED_BYTES];
	char exe[256], name[32], label[PROCESS_LABEL_BYTES];
	struct process_names names = {exe, name, called, script};
	struct proc_stat stat;

	if (proc_stat_parse(all, &stat) && strlen(stat.comm) >= sizeof(stat.comm))
		abort();
	text_copy(all, exe, sizeof(exe));
	proc_display_name(exe, "comm", name, sizeof(name));
	process_names_of_command(name, exe, called, script);
	if (strlen(called) >= sizeof(called) || strlen(script) >= sizeof(script) ||
	    strlen(process_names_label(&names, label)) >= sizeof(label) ||
	    (*called && !process_names_match(&names, called)))
		abort();
}

static void keys(struct text all)
{
	struct proc_mounted mounted;
	struct text rest;
	struct proc_mount mount;
	double v;

	proc_heading_value(all, "Tcp", "RetransSegs", &v);
	proc_key_sum(all, "some", "total", &v);
	proc_key_sum(all, NULL, "rbytes", &v);
	for (rest = all; proc_mounted_next(&rest, &mounted);)
		if (strlen(mounted.dir) >= sizeof(mounted.dir) ||
		    strlen(mounted.layer) >= sizeof(mounted.layer))
			abort();
	while (proc_mount_next(&all, &mount))
		if (strlen(mount.dir) >= sizeof(mount.dir))
			abort();
}

/* A name that is found has one counter, whichever way it is asked for; another error says why. */
static bool find(const char *name, struct proc_counter *counter)
{
	const struct counter_category *category;
	struct counter_name parts;
	struct err err = {0};

	if (proc_counter_find(name, counter, &err)) {
		if (!err.text[0])
			abort();
		return false;
	}
	if (counter_name_split(name, &parts, &err) ||
	    counter_def_find(&parts, &category) != counter->def || category != counter->category)
		abort();
	return true;
}

static bool next_reading(struct text *rest, struct counter_raw *now)
{
	struct text line, word;
	double v;
	unsigned i;

	if (!text_line(rest, &line))
		return false;
	if (text_word(&line, &word) && text_number(word, &v) && v < VALUE_MAX)
		now->time_ns += (uint64_t)v * NS_PER_MS;
	now->identity = text_word(&line, &word) && text_number(word, &v) && v < VALUE_MAX
				? (uint64_t)v : 0;
	for (i = 0; i < PROC_FIELDS_MAX; i++)
		now->v[i] = text_word(&line, &word) && text_number(word, &v) && v < VALUE_MAX
				    ? floor(v) : NAN;
	return true;
}

static bool grows(const struct counter_def *def, const struct counter_raw *before,
		  const struct counter_raw *now)
{
	unsigned i;

	for (i = 0; i < PROC_FIELDS_MAX; i++)
		if (counter_fields(def) >> i & 1 && !(now->v[i] >= before->v[i]))
			return false;
	return true;
}

/* What is told is a number, of one instance, and no more of a whole than all of it. */
static void readings(struct text all)
{
	struct counter_raw now = {.time_ns = NS_PER_SEC}, before = {0}, last;
	enum counter_result result;
	struct proc_counter counter;
	struct text line;
	char name[1000];
	double v;

	if (!text_line(&all, &line))
		return;
	text_copy(line, name, sizeof(name));
	if (!find(name, &counter))
		return;
	while (next_reading(&all, &now)) {
		last = before;
		result = counter_next_value(counter.def, &before, COUNTER_VALUE, &now, &v);
		if (result == COUNTER_VALUE && !isfinite(v))
			abort();
		if (result != COUNTER_VALUE || !counter_needs_two(counter.def))
			continue;
		if (v < 0 || !last.time_ns || last.identity != now.identity)
			abort();
		if (counter.def->how == HOW_SHARE && grows(counter.def, &last, &now) &&
		    v > counter.def->scale)
			abort();
	}
	if (counter_next_value(counter.def, &before, COUNTER_ABSENT, &now, &v) != COUNTER_ABSENT ||
	    before.time_ns)
		abort();
}

/* One source at most has it; a list of counters is JSON whatever they are called. */
static void list(const char *name)
{
	struct counter_row row = {.counter = name, .value = (double)strlen(name) / 7,
				  .unit = name, .means = name};
	struct counter_name parts = {{0}, {0}, {0}};
	struct json_value line;
	struct buf out = {0};
	char value[40];

	if (jvm_counter_is(name) + event_counter_is(name) + prometheus_counter_is(name) > 1)
		abort();
	counter_name_split(name, &parts, NULL);
	row.category = parts.category;
	row.name = parts.counter;
	row.instance = parts.instance;
	counter_put_json(&row, &out);
	if (!json_read(buf_text(&out), &line) || !json_member(line, "instance").at)
		abort();
	counter_value_text(row.value, value, sizeof(value));
	buf_free(&out);
}

/* /proc/PID/maps: what is read of a line is what stands in it, but for its path's line feeds. */
static void mappings(struct text all)
{
	struct maps_line m, again;
	char own[1000], back[1100];
	struct text line;

	while (text_line(&all, &line)) {
		text_copy(line, own, sizeof(own));
		if (!maps_line_read(own, &m))
			continue;
		maps_path_is_run_time(m.path);
		snprintf(back, sizeof(back),
			 "%" PRIx64 "-%" PRIx64 " r-%cp %" PRIx64 " %x:%x %" PRIu64 " %s", m.start,
			 m.end, m.executable ? 'x' : '-', m.pgoff, m.major, m.minor, m.ino, m.path);
		if (!maps_line_read(back, &again) || again.start != m.start || again.end != m.end ||
		    again.pgoff != m.pgoff || again.ino != m.ino || again.major != m.major ||
		    again.minor != m.minor || again.executable != m.executable)
			abort();
	}
}

static void names(struct text all)
{
	struct proc_counter counter;
	char name[1000], *second;
	unsigned there, back;

	text_copy(all, name, sizeof(name));
	find(name, &counter);
	list(name);
	second = strchr(name, '\n');
	if (second) {
		*second++ = '\0';
		/* It is not the same both ways: an abbreviation is nearer to its name. */
		there = nearest_distance(name, second);
		back = nearest_distance(second, name);
		if (there > back && there - back > 1)
			abort();
		name_matches(name, second);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct text all;

	if (!size)
		return 0;
	all = text_of((const char *)data + 1, size - 1);
	switch ((uint8_t)(data[0] - '0') % 6) {
	case 0:
		rows(all);
		break;
	case 1:
		processes(all);
		break;
	case 2:
		keys(all);
		break;
	case 3:
		names(all);
		break;
	case 4:
		readings(all);
		break;
	default:
		mappings(all);
		break;
	}
	return 0;
}
