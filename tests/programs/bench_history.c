/*
 * The history on disk: what it writes, and how soon a window of it is there.
 *
 *	bench_history [--json] [--dir DIR] [--days N]
 *
 * The stream of bench_stream.h, 198 samples a second, is sealed every ten seconds, as the engine
 * does it. First an hour of it, each segment put and synced on its own: bytes a day, what the disk
 * was given for each byte that stays (/proc/self/io, Linux), CPU time of one CPU. Then N days (30)
 * in rounds of ten minutes: resident memory at a tenth and at the end, and a window of 60 s and one
 * of an hour in their middle. Later segments are the first ones again, with later times.
 */
#include "base/os.h"
#include "base/varint.h"
#include "store/history.h"
#include "tests/support/bench_rows.h"
#include "tests/support/bench_stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_S = 10, PIECES = 400, PER_PUT = 60, DAY_S = 86400 };

#define SAMPLES_ROUND (ROUND_S * BENCH_CPUS * BENCH_FREQ_HZ)
#define WALL_NS 1795219200000000000ULL       /* of the recorder clock's 0 */
#define LIMIT_BYTES ((uint64_t)64 << 30)

struct bench {
	struct settings settings;
	struct world world;
	struct segment *pieces[PIECES];
	struct history *history;
	struct buf bytes[PER_PUT];           /* of the segments of a put, with their own times */
	uint64_t put_bytes, samples;
	uint32_t days;
	char path[400];
};

static void die(const struct err *err)
{
	fprintf(stderr, "bench_history: %s\n", err->text);
	exit(1);
}

/* A sealed segment of every ten seconds. */
static void make_pieces(struct bench *b)
{
	struct err err = {0};
	uint32_t i, n;

	if (world_make(&b->world, &b->settings, &err))
		die(&err);
	for (i = 0; i < PIECES; i++) {
		for (n = 0; n < SAMPLES_ROUND; n++) {
			struct event e;

			world_sample(&b->world, b->world.next++, &e);
			e.stack = segment_stack(b->world.builder, e.stack_frames, e.nstack_frames,
						world_name_frame, &b->world);
			segment_add(b->world.builder, &e);
		}
		if (segment_seal(b->world.builder, &b->pieces[i], &err))
			die(&err);
	}
}

/* The same bytes with another base: every other time counts from it (model/segment.h). */
static void move_to(const struct segment *from, uint64_t shift_ns, struct buf *bytes,
		    struct segment *out)
{
	const uint8_t *at = from->bytes + 2, *end = from->bytes + from->nbytes;
	uint64_t base = 0;
	uint8_t number[10];

	buf_reset(bytes);
	varint_get(&at, end, &base);
	buf_put(bytes, from->bytes, 2);
	buf_put(bytes, number, varint_put(number, base + shift_ns / SEGMENT_TICK_NS));
	buf_put(bytes, at, (size_t)(end - at));
	out->bytes = (const uint8_t *)bytes->data;
	out->nbytes = bytes->len;
	out->t0_ns = from->t0_ns + shift_ns;
	out->t1_ns = from->t1_ns + shift_ns;
	out->store_id = 0;
}

/* Put n rounds from one on. */
static void put(struct bench *b, uint64_t round, uint32_t n)
{
	static struct segment moved[PER_PUT];        /* counted references are not touched */
	struct segment *all[PER_PUT];
	struct history_now now;
	struct err err = {0};
	uint32_t i;

	for (i = 0; i < n; i++) {
		const struct segment *from = b->pieces[(round + i) % PIECES];
		uint64_t again = (round + i) / PIECES;

		memcpy(&moved[i], from, sizeof(moved[i]));
		move_to(from, again * PIECES * ROUND_S * NS_PER_SEC, &b->bytes[i], &moved[i]);
		all[i] = &moved[i];
		b->put_bytes += moved[i].nbytes;
		b->samples += moved[i].nsamples;
	}
	now.clock_ns = moved[n - 1].t1_ns;
	now.wall_ns = WALL_NS + now.clock_ns;
	if (history_put(b->history, all, n, &now, &err))
		die(&err);
}

static uint64_t written_bytes(void)
{
	struct buf text = {0};
	const char *at;
	uint64_t n = 0;

	if (!os_load("/proc/self/io", 4096, &text, NULL) &&
	    (at = strstr(buf_text(&text), "write_bytes: ")) != NULL)
		n = strtoull(at + strlen("write_bytes: "), NULL, 10);
	buf_free(&text);
	return n;
}

static void open_history(struct bench *b, const char *name)
{
	struct history_config cfg = {.max_bytes = LIMIT_BYTES, .host = "bench", .host_text = "",
				     .version = "", .boot_id = "bench", .kills = "",
				     .period_ns = BENCH_PERIOD_NS};
	struct err err = {0};

	snprintf(b->path, sizeof(b->path), "%s/%s", b->settings.dir, name);
	cfg.store_path = b->path;
	b->put_bytes = b->samples = 0;
	if (history_open(&cfg, &b->history, &err))
		die(&err);
}

static void hour(struct bench *b)
{
	const uint64_t rounds = 3600 / ROUND_S;
	uint64_t io = written_bytes(), cpu0, cpu1, rss, round;
	struct history_use use;
	struct row row;

	open_history(b, "hour.db");
	os_self_usage(&cpu0, &rss);
	for (round = 0; round < rounds; round++)
		put(b, round, 1);
	os_self_usage(&cpu1, &rss);
	history_use(b->history, &use);
	history_close(b->history, "the end");
	io = written_bytes() - io;
	row_open(&row, b->settings.json, "history hour");
	row_most(&row, "stored_mb_a_day", (double)use.bytes * 24 / 1e6, 300);
	row_num(&row, "segments_bytes_a_sample", (double)b->put_bytes / (double)b->samples);
	row_most(&row, "written_for_each_stored_byte", (double)io / (double)use.bytes, 1.5);
	row_num(&row, "written_for_each_byte_of_columns", (double)io / (double)b->put_bytes);
	row_num(&row, "written_mb_a_day", (double)io * 24 / 1e6);
	row_most(&row, "cpu_percent", (double)(cpu1 - cpu0) / 3600e9 * 100, 0.1);
	row_close(&row);
}

static void window(struct bench *b, const char *name, uint64_t seconds, double most_ms)
{
	uint64_t from = WALL_NS + (uint64_t)b->days * DAY_S / 2 * NS_PER_SEC, start = os_now_ns();
	uint64_t cpu, rss;
	struct incident in = {0};
	struct err err = {0};
	struct row row;

	if (history_load(b->path, from, from + seconds * NS_PER_SEC, from, &in, &err))
		die(&err);
	os_self_usage(&cpu, &rss);
	row_open(&row, b->settings.json, name);
	row_most(&row, "load_ms", (double)(os_now_ns() - start) / 1e6, most_ms);
	row_num(&row, "samples", in.nsamples);
	row_close(&row);
	incident_free(&in);
}

static void many_days(struct bench *b)
{
	uint64_t rounds = (uint64_t)b->days * DAY_S / ROUND_S, round, cpu, early = 0, late = 0;
	struct history_use use;
	struct row row;

	open_history(b, "days.db");
	for (round = 0; round + PER_PUT <= rounds; round += PER_PUT) {
		put(b, round, PER_PUT);
		if (!early && round >= rounds / 10)
			os_self_usage(&cpu, &early);
	}
	os_self_usage(&cpu, &late);
	history_use(b->history, &use);
	history_close(b->history, "the end");
	row_open(&row, b->settings.json, "history days");
	row_num(&row, "days", b->days);
	row_num(&row, "stored_mb", (double)use.bytes / 1e6);
	row_num(&row, "files", use.files);
	row_most(&row, "rss_growth_percent", ((double)late / (double)early - 1) * 100, 2);
	row_close(&row);
	window(b, "history 60 s", 60, 1000);
	window(b, "history 1 h", 3600, 5000);
}

int main(int argc, char **argv)
{
	struct bench b = {.settings = {.dir = ".", .samples = PIECES * SAMPLES_ROUND,
				       .stacks = 20000, .frames = 20000, .threads = 1000},
			  .days = 30};
	int i;

	for (i = 1; i < argc; i++) {
		if (strcmp(argv[i], "--json") == 0)
			b.settings.json = true;
		else if (strcmp(argv[i], "--dir") == 0 && i + 1 < argc)
			b.settings.dir = argv[++i];
		else if (strcmp(argv[i], "--days") == 0 && i + 1 < argc)
			b.days = (uint32_t)strtoul(argv[++i], NULL, 10);
		else
			return 2;
	}
	make_pieces(&b);
	hour(&b);
	if (b.days)
		many_days(&b);
	world_free(&b.world);
	return 0;
}
