/*
 * The process that reads streams of .NET programs: its events are those read here, and whatever
 * becomes of it, or of its answers, nothing is taken that cannot be.
 */
#include "base/confined_linux.h"
#include "source/dotnet/nettrace_records.h"
#include "source/dotnet/streams.h"
#include "tests/unit/dotnet/child_linux.h"
#include "tests/support/nettrace_writer.h"
#include "tests/support/test.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct seen {
	unsigned n;
	struct buf text;                     /* all that events say, and what they point to */
};

static int see(void *ctx, const struct nettrace_event *e)
{
	static const uint8_t none[16];
	struct seen *s = ctx;
	uint32_t i;

	s->n++;
	buf_printf(&s->text, "%s %s %u %u %u %llu %u:", e->meta->provider, e->meta->name,
		   e->meta->number, e->meta->event_id, e->meta->version,
		   (unsigned long long)e->meta->keywords, e->meta->opcode);
	for (i = 0; i < e->meta->nfields; i++)
		buf_printf(&s->text, " %s %u", e->meta->fields[i].name, e->meta->fields[i].type);
	buf_printf(&s->text, " %llu %llu %u %u %u ", (unsigned long long)e->ticks,
		   (unsigned long long)e->tid, e->cpu, e->payload_bytes, e->stack_bytes);
	buf_put(&s->text, e->activity ? e->activity : none, 16);
	buf_put(&s->text, e->related ? e->related : none, 16);
	buf_put(&s->text, e->payload, e->payload_bytes);
	buf_put(&s->text, e->stack, e->stack_bytes);
	return 0;
}

static void load(const char *name, struct buf *out)
{
	char path[100];

	snprintf(path, sizeof(path), "tests/data/nettrace/%s.nettrace", name);
	assert_int_equal(os_load(path, 4 << 20, out, NULL), 0);
}

static int feed_all(struct dotnet_stream *t, const struct buf *file, struct seen *s,
		    struct err *err)
{
	size_t at, n;
	int rc = 0;

	for (at = 0; !rc && at < file->len; at += n) {
		n = file->len - at < 60000 ? file->len - at : 60000;
		rc = dotnet_stream_feed(t, file->data + at, n, see, s, err);
	}
	return rc;
}

TEST(events_are_those_that_are_read_here)
{
	static const char *const names[] = {"gc", "exceptions", "objects"};
	struct dotnet_streams *streams;
	unsigned i;

	assert_int_equal(dotnet_streams_new(os_uid(), &streams, NULL), 0);
	for (i = 0; i < 3; i++) {
		struct seen here = {0}, there = {0};
		struct nettrace_facts facts;
		struct dotnet_stream *t;
		struct nettrace *own;
		struct buf file = {0};

		load(names[i], &file);
		assert_int_equal(nettrace_new(&own, NULL), 0);
		assert_int_equal(nettrace_feed(own, file.data, file.len, see, &here, NULL), 0);
		assert_int_equal(dotnet_stream_new(streams, os_uid(), &t, NULL), 0);
		assert_int_equal(feed_all(t, &file, &there, NULL), 0);
		assert_true(here.n > 0);
		assert_int_equal(there.n, here.n);
		assert_int_equal(there.text.len, here.text.len);
		assert_memory_equal(there.text.data, here.text.data, here.text.len);
		facts = *nettrace_facts(own);
		assert_memory_equal(dotnet_stream_facts(t), &facts, sizeof(facts));
		dotnet_stream_free(t);
		nettrace_free(own);
		buf_free(&here.text);
		buf_free(&there.text);
		buf_free(&file);
	}
	assert_int_equal(dotnet_streams_kind_bytes(streams), 0);
	dotnet_streams_free(streams);
}

TEST(when_it_dies_its_streams_fail_and_new_ones_are_read)
{
	struct dotnet_stream *first, *second;
	struct dotnet_streams *streams;
	struct seen seen = {0};
	struct buf file = {0};
	struct err err = {0};
	pid_t pid;

	load("gc", &file);
	assert_int_equal(dotnet_streams_new(os_uid(), &streams, NULL), 0);
	assert_int_equal(dotnet_stream_new(streams, os_uid(), &first, NULL), 0);
	assert_int_equal(dotnet_stream_feed(first, file.data, 500, see, &seen, &err), 0);
	pid = last_child();
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_not_equal(dotnet_stream_feed(first, file.data + 500, 9, see, &seen, &err), 0);
	assert_int_not_equal(dotnet_stream_feed(first, file.data + 509, 9, see, &seen, &err), 0);
	assert_string_equal(err.text, "the process that reads events had to be started again");
	/* What is queued is decoded by it. */
	assert_int_equal(dotnet_stream_facts(first)->pointer_bytes, 8);
	seen.n = 0;
	assert_int_equal(dotnet_stream_new(streams, os_uid(), &second, NULL), 0);
	assert_int_equal(feed_all(second, &file, &seen, &err), 0);
	assert_int_equal(seen.n, 208);
	assert_int_not_equal(last_child(), pid);
	dotnet_stream_free(first);
	dotnet_stream_free(second);
	dotnet_streams_free(streams);
	assert_int_equal(last_child(), 0);
	buf_free(&seen.text);
	buf_free(&file);
}

/* A process that computes without end, as a portion could make one do by a defect of the parser. */
TEST(one_that_spends_its_cpu_time_is_not_waited_for)
{
	struct confined c = {.word = "spin", .reads = "events", .from = "stream",
			     .max_ns = 1000 * NS_PER_SEC, .max_cpu_ns = 50 * NS_PER_MS, .fd = -1};
	const struct iovec part = {"", 1};
	struct err err = {0};
	char answer;

	assert_int_equal(confined_ask(&c, &part, 1, -1, &err), 0);
	assert_int_equal(confined_receive(&c, &answer, 1, os_now_ns() + c.max_ns, &err), ERR_LIMIT);
	assert_string_equal(err.text, "reading its events took more than 50 ms of CPU time");
	assert_int_equal(last_child(), 0);
	assert_true(confined_cpu_ns(&c) > c.max_cpu_ns);
}

struct portion {
	struct dotnet_stream *stream;
	const struct buf *file;
	struct err err;
	int rc;
};

/* The first bytes of the file. */
static void begin(void *ctx)
{
	struct portion *p = ctx;
	struct seen seen = {0};

	p->rc = dotnet_stream_feed(p->stream, p->file->data, 500, see, &seen, &p->err);
	buf_free(&seen.text);
}

/* The process dies while it has a portion of this stream, as by a defect of the parser. */
static void die_of(struct portion *p)
{
	struct os_thread *thread;
	uint64_t progress, before = 0;
	pid_t pid = last_child();
	unsigned looks = 0;

	assert_int_equal(kill(pid, SIGSTOP), 0);
	assert_int_equal(os_thread_start("feeds", begin, p, &thread, NULL), 0);
	/* It waits for the answer, for which it has 5 s. */
	for (; looks < 20; before = progress) {
		looks = os_thread_waits(thread, &progress) && progress == before ? looks + 1 : 0;
		os_sleep_ns(NS_PER_MS);
	}
	assert_int_equal(kill(pid, SIGKILL), 0);
	os_thread_join(thread);
	assert_int_equal(p->rc, ERR_FORMAT);
	assert_non_null(strstr(p->err.text, "died of it (signal 9)"));
}

TEST(nobody_ends_the_streams_of_others_twice)
{
	enum {GOOD = 1001, BAD};
	struct portion good = {.rc = 0}, bad = {.rc = 0};
	struct dotnet_streams *streams;
	struct buf file = {0};
	pid_t pid;
	unsigned i;

	load("gc", &file);
	good.file = bad.file = &file;
	assert_int_equal(dotnet_streams_new(os_uid(), &streams, NULL), 0);
	assert_int_equal(dotnet_stream_new(streams, GOOD, &good.stream, NULL), 0);
	assert_int_equal(dotnet_stream_new(streams, BAD, &bad.stream, NULL), 0);
	begin(&good);
	assert_int_equal(good.rc, 0);
	die_of(&bad);
	begin(&good);
	assert_int_equal(good.rc, ERR_STOPPED);
	dotnet_stream_free(good.stream);
	assert_int_equal(dotnet_stream_new(streams, GOOD, &good.stream, NULL), 0);
	begin(&good);
	assert_int_equal(good.rc, 0);
	pid = last_child();
	for (i = 0; i < 3; i++) {
		dotnet_stream_free(bad.stream);
		assert_int_equal(dotnet_stream_new(streams, BAD, &bad.stream, NULL), 0);
		begin(&bad);
		assert_int_equal(bad.rc, 0);
		assert_int_not_equal(last_child(), pid);
		die_of(&bad);
		assert_int_equal(last_child(), pid);
		assert_int_equal(dotnet_stream_feed(good.stream, file.data + 500 + i, 1, see,
						    NULL, NULL), 0);
	}
	dotnet_stream_free(good.stream);
	dotnet_stream_free(bad.stream);
	dotnet_streams_free(streams);
	buf_free(&file);
}

/* Until what it has described is so large, or an error. */
static int describe(struct dotnet_streams *streams, struct dotnet_stream *t, uint64_t bytes)
{
	struct nettrace_writer w = {.sent = 0};
	struct seen seen = {0};
	int rc = 0;

	nettrace_write_head(&w);
	while (!rc && dotnet_streams_kind_bytes(streams) < bytes) {
		nettrace_write_kinds(&w, 20);
		nettrace_write_event(&w, w.number);       /* kinds are told with it */
		rc = dotnet_stream_feed(t, w.bytes.data, w.bytes.len, see, &seen, NULL);
		nettrace_writer_sent(&w);
	}
	buf_free(&seen.text);
	buf_free(&w.bytes);
	return rc;
}

/* Streams of a process that has gone still have their kinds here, while the new one has none. */
TEST(a_stream_whose_kinds_have_no_room_here_fails_alone)
{
	enum {GOOD = 1001, BAD, SHARES = 5};
	struct dotnet_stream *full[SHARES + 1];
	struct portion good = {.rc = 0};
	struct dotnet_streams *streams;
	struct buf file = {0};
	unsigned i;

	load("gc", &file);
	good.file = &file;
	assert_int_equal(dotnet_streams_new(os_uid(), &streams, NULL), 0);
	for (i = 0; i <= SHARES; i++)
		assert_int_equal(dotnet_stream_new(streams, BAD, &full[i], NULL), 0);
	for (i = 0; i < SHARES; i++)
		assert_int_equal(describe(streams, full[i], (i + 1) * (uint64_t)3100000), 0);
	assert_int_equal(kill(last_child(), SIGKILL), 0);
	assert_int_not_equal(describe(streams, full[0], UINT64_MAX), 0);
	assert_int_equal(dotnet_stream_new(streams, GOOD, &good.stream, NULL), 0);
	begin(&good);
	assert_int_equal(good.rc, 0);
	assert_int_equal(describe(streams, full[SHARES], UINT64_MAX), ERR_LIMIT);
	assert_int_equal(dotnet_stream_feed(good.stream, file.data + 500, 1, see, NULL, NULL), 0);
	dotnet_stream_free(good.stream);
	for (i = 0; i <= SHARES; i++)
		dotnet_stream_free(full[i]);
	dotnet_streams_free(streams);
	buf_free(&file);
}

TEST(a_damaged_stream_fails_alone)
{
	struct dotnet_stream *good, *bad;
	struct dotnet_streams *streams;
	struct seen seen = {0};
	struct buf file = {0};
	struct err err = {0};

	load("gc", &file);
	assert_int_equal(dotnet_streams_new(os_uid(), &streams, NULL), 0);
	assert_int_equal(dotnet_stream_new(streams, os_uid(), &good, NULL), 0);
	assert_int_equal(dotnet_stream_new(streams, os_uid(), &bad, NULL), 0);
	assert_int_equal(dotnet_stream_feed(good, file.data, 500, see, &seen, &err), 0);
	assert_int_equal(dotnet_stream_feed(bad, "GET / HTTP/1.1", 14, see, &seen, &err),
			 ERR_FORMAT);
	assert_string_equal(err.text, "not a nettrace stream of version 4");
	assert_int_equal(dotnet_stream_feed(good, file.data + 500, 20000, see, &seen, &err), 0);
	assert_true(seen.n > 0);
	dotnet_stream_free(bad);
	dotnet_stream_free(good);
	dotnet_streams_free(streams);
	buf_free(&seen.text);
	buf_free(&file);
}

/* ---- records that were tampered with --------------------------------------------------------- */

static struct buf *kept;

static bool keep(const void *bytes, size_t n)
{
	buf_put(kept, bytes, n);
	return true;
}

/* All of a stream in one portion, as its process answers. */
static void write_records(const char *name, struct buf *out)
{
	struct nettrace_shares shares = {0};
	struct nettrace_writing w = {.send = keep, .shares = &shares};
	struct buf file = {0}, buffer = {0};

	load(name, &file);
	kept = out;
	w.out = &buffer;
	assert_int_equal(nettrace_new(&w.stream, NULL), 0);
	assert_true(nettrace_records_write(&w, file.data, file.len));
	nettrace_free(w.stream);
	buf_free(&buffer);
	buf_free(&file);
}

static int take(const struct buf *records, struct seen *seen, bool *ended)
{
	struct nettrace_reading r = {.dropped = 0};
	struct nettrace_end end;
	size_t taken;
	int rc;

	*ended = false;
	rc = nettrace_records_take(&r, (const uint8_t *)records->data, records->len, &taken, &end,
				   ended, see, seen, NULL);
	nettrace_metas_free(&r.metas);
	return rc;
}

/* Whatever it says, no access leaves what was sent: the sanitizers see to that. */
TEST(records_with_any_byte_changed_are_an_error_or_can_be_used)
{
	struct buf records = {0};
	unsigned refused = 0, used = 0;
	size_t at;

	write_records("exceptions", &records);
	assert_true(records.len > 1000);
	for (at = 0; at < records.len; at += at < 1000 ? 1 : 37) {
		struct seen seen = {0};
		bool ended;

		records.data[at] = (char)~records.data[at];
		if (take(&records, &seen, &ended) || !ended)
			refused++;
		else
			used++;
		records.data[at] = (char)~records.data[at];
		buf_free(&seen.text);
	}
	assert_true(refused > 100);
	assert_true(used > 100);
	buf_free(&records);
}

/* Times are divided by that. */
TEST(a_clock_without_ticks_is_not_believed)
{
	const uint64_t a_second = NS_PER_SEC;
	struct buf records = {0};
	struct seen seen = {0};
	bool ended;
	char *at;

	write_records("gc", &records);
	at = memmem(records.data, records.len, &a_second, sizeof(a_second));
	assert_non_null(at);
	memset(at, 0, sizeof(a_second));
	assert_int_equal(take(&records, &seen, &ended), ERR_FORMAT);
	assert_int_equal(seen.n, 0);
	buf_free(&records);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(events_are_those_that_are_read_here),
		cmocka_unit_test(when_it_dies_its_streams_fail_and_new_ones_are_read),
		cmocka_unit_test(one_that_spends_its_cpu_time_is_not_waited_for),
		cmocka_unit_test(nobody_ends_the_streams_of_others_twice),
		cmocka_unit_test(a_stream_whose_kinds_have_no_room_here_fails_alone),
		cmocka_unit_test(a_damaged_stream_fails_alone),
		cmocka_unit_test(a_clock_without_ticks_is_not_believed),
		cmocka_unit_test(records_with_any_byte_changed_are_an_error_or_can_be_used),
	};

	if (argc == 2 && !strcmp(argv[1], "spin"))
		for (;;)
			;
	if (argc == 2 && !strcmp(argv[1], DOTNET_STREAMS_WORD))
		return dotnet_streams_serve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
