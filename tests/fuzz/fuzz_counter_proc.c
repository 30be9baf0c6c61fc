/*
 * Any bytes as a text of /proc, or as the name of a counter. The first byte chooses which, so that
 * a corpus file is one byte and then the text as the kernel writes it.
 */
#include "base/nearest.h"
#include "model/process_name.h"
#include "source/counter_name.h"
#include "source/host/proc_parse.h"
#include "source/counter/proc_table.h"

#include <stdlib.h>
#include <string.h>

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

static void names(struct text all)
{
	struct proc_counter counter;
	char name[1000], *second;
	unsigned there, back;
	struct err err;

	text_copy(all, name, sizeof(name));
	proc_counter_find(name, &counter, &err);
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
	switch (data[0] % 4) {
	case 0:
		rows(all);
		break;
	case 1:
		processes(all);
		break;
	case 2:
		keys(all);
		break;
	default:
		names(all);
		break;
	}
	return 0;
}
