/*
 * bench_symbols [--json] FILE [DIR]: the cost of names in an ELF file.
 *
 * Best of 5, of this program's CPU time, which other load on the machine disturbs least; the file
 * is in the page cache.
 *
 * index     reading its symbols into a sorted index, and what that holds
 * lookup    finding the function of an address, at pseudo-random addresses of its code
 * name      the same with its name, which is read from the file
 * cache     the index as the symbol cache on disk keeps it (DIR, default "."): written, opened
 *
 * Text goes to stderr, with --json an object a row to stdout (tests/bench/run.sh).
 */
#include "symbol/elf.h"
#include "symbol/elf_saved.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUNDS = 5, LOOKUPS = 1000000, NAMES = 100000 };

static bool json;

struct input {
	struct os_file *file;
	struct bytes bytes;
	struct elf_head head;
};

static uint64_t cpu_ns(void)
{
	uint64_t cpu, rss;

	os_self_usage(&cpu, &rss);
	return cpu;
}

static void fail(const char *what, const struct err *err)
{
	fprintf(stderr, "bench_symbols: %s: %s\n", what, err->text);
	exit(1);
}

static void row(const char *name, const char *const *keys, const double *values, unsigned n)
{
	unsigned i;

	fprintf(stderr, "%-22s", name);
	for (i = 0; i < n; i++)
		fprintf(stderr, "  %s %.*f", keys[i], values[i] < 100 ? 2 : 0, values[i]);
	fprintf(stderr, "\n");
	if (!json)
		return;
	printf("{\"row\":\"%s\"", name);
	for (i = 0; i < n; i++)
		printf(",\"%s\":%.6g", keys[i], values[i]);
	printf("}\n");
}

#define ROW(name, n, ...) row(name, (const char *const[]){__VA_ARGS__}, values, n)

static void open_input(const char *path, struct input *in)
{
	struct os_file_info info;
	struct err err;

	if (os_open(path, OS_READ, &in->file, &err) || os_file_info(in->file, &info, &err))
		fail(path, &err);
	in->bytes = bytes_of_file(in->file, info.size_bytes);
	if (elf_head_read(&in->bytes, &in->head, &err))
		fail(path, &err);
}

/* An address in executable code; a linear congruential generator (Knuth's MMIX). */
static uint64_t address(const struct elf_head *head, uint64_t *seed)
{
	const struct elf_segment *code = NULL;
	uint32_t i;

	for (i = 0; i < head->nsegments; i++) {
		if (head->segments[i].executable &&
		    (!code || head->segments[i].file_bytes > code->file_bytes))
			code = &head->segments[i];
	}
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return code ? code->vaddr + (*seed >> 16) % code->file_bytes : 0;
}

static double index_ms(const struct input *in, struct elf_index **out)
{
	uint64_t best = UINT64_MAX, start;
	struct err err;
	unsigned i;

	for (i = 0; i < ROUNDS; i++) {
		elf_index_free(*out);
		*out = NULL;
		start = cpu_ns();
		if (elf_index_new(&in->bytes, &in->head, NULL, out, &err))
			fail("index", &err);
		if (cpu_ns() - start < best)
			best = cpu_ns() - start;
	}
	return (double)best / 1e6;
}

static double lookup_ns(const struct elf_head *head, const struct elf_index *index,
			const struct bytes *names, unsigned n)
{
	uint64_t best = UINT64_MAX, start, seed, spent;
	char name[FUNCTION_NAME_MAX + 1];
	struct elf_function f;
	unsigned i, round, found = 0;

	for (round = 0; round < ROUNDS; round++) {
		seed = 1;
		start = cpu_ns();
		for (i = 0; i < n; i++) {
			if (!elf_find(index, address(head, &seed), &f))
				continue;
			found++;
			if (names)
				elf_function_name(index, names, &f, name, sizeof(name), NULL);
		}
		spent = cpu_ns() - start;
		best = spent < best ? spent : best;
	}
	return found ? (double)best / n : 0;
}

static void cache(const struct input *in, struct elf_index *index, const char *dir, double cold_ms)
{
	struct elf_saved saved = {.head = in->head, .index = index, .complete = true}, again;
	uint64_t start = cpu_ns(), best = UINT64_MAX;
	struct os_file *file = NULL;
	struct buf image = {0};
	struct bytes bytes;
	char path[4096];
	struct err err;
	double write_ms, values[4];
	unsigned i;

	snprintf(path, sizeof(path), "%s/bench_symbols.sym", dir);
	if (elf_saved_write(&saved, &in->bytes, &image, &err) ||
	    os_open(path, OS_REPLACE, &file, &err) || os_write(file, image.data, image.len, &err))
		fail("cache", &err);
	os_close(file);
	write_ms = (double)(cpu_ns() - start) / 1e6;
	for (i = 0; i < ROUNDS; i++) {
		start = cpu_ns();
		if (os_open(path, OS_READ, &file, &err))
			fail("cache", &err);
		bytes = bytes_of_file(file, image.len);
		if (elf_saved_read(&bytes, &again, &err))
			fail("cache", &err);
		if (cpu_ns() - start < best)
			best = cpu_ns() - start;
		elf_index_free(again.index);
		os_close(file);
	}
	values[0] = (double)best / 1e6;
	values[1] = cold_ms / values[0];
	values[2] = write_ms;
	values[3] = (double)image.len / 1e6;
	ROW("symbol cache", 4, "open_ms", "times_faster", "write_ms", "file_mb");
	os_remove(path, NULL);
	buf_free(&image);
}

int main(int argc, char **argv)
{
	struct elf_index *index = NULL;
	struct input in = {0};
	double values[4];
	int at = 1;

	json = argc > 1 && !strcmp(argv[1], "--json");
	at += json;
	if (at >= argc) {
		fprintf(stderr, "bench_symbols [--json] FILE [DIR]\n");
		return 2;
	}
	open_input(argv[at], &in);
	values[0] = index_ms(&in, &index);
	values[1] = index->nentries;
	values[2] = (double)elf_index_bytes(index) / 1e6;
	values[3] = (double)in.bytes.size / 1e6;
	ROW("symbol index", 4, "ms", "functions", "mb", "file_mb");
	cache(&in, index, at + 1 < argc ? argv[at + 1] : ".", values[0]);
	values[0] = lookup_ns(&in.head, index, NULL, LOOKUPS);
	values[1] = lookup_ns(&in.head, index, &in.bytes, NAMES);
	ROW("symbol lookup", 2, "ns", "with_name_ns");
	elf_index_free(index);
	os_close(in.file);
	return 0;
}
