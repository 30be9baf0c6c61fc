/*
 * Streams of .NET programs, and damaged ones. Those of tests/data/nettrace come from
 * sarif-multitool 5.7.0 of npm (.NET 8), over its diagnostic socket: collections while it rewrote
 * a file for 3 s; and exceptions of one that is cut, with the events of ArrayPool, which the
 * stream describes.
 */
#include "base/os.h"
#include "source/dotnet/nettrace.h"
#include "source/dotnet/nettrace_decode.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct seen {
	struct nettrace_decode *decode;
	uint32_t events, starts, stops, suspends, restarts, pauses;
	uint64_t first_count, last_count, open_ticks, paused_ns, last_ticks;
};

static uint64_t number(const struct etw_decoded *d, const char *name)
{
	uint32_t i;

	for (i = 0; i < d->nfields; i++)
		if (strcmp(d->fields[i].name, name) == 0)
			return d->fields[i].v.u;
	return UINT64_MAX;
}

static int see(void *ctx, const struct nettrace_event *event)
{
	struct seen *s = ctx;
	const struct etw_decoded *d = nettrace_decode_event(s->decode, event, 8);

	s->events++;
	if (strcmp(d->provider, "Microsoft-Windows-DotNETRuntime") != 0)
		return 0;            /* the runtime describes its program */
	if (strcmp(d->name, "GC/Start") == 0) {
		if (!s->starts++)
			s->first_count = number(d, "Count");
		s->last_count = number(d, "Count");
		assert_true(number(d, "Depth") <= 2);
	}
	s->stops += strcmp(d->name, "GC/Stop") == 0;
	if (strcmp(d->name, "GC/SuspendEEStart") == 0) {
		s->suspends++;
		s->open_ticks = event->ticks;
	}
	if (strcmp(d->name, "GC/RestartEEStop") == 0) {
		s->restarts++;
		if (s->open_ticks) {
			s->pauses++;
			s->paused_ns += event->ticks - s->open_ticks;
		}
		s->open_ticks = 0;
	}
	return 0;
}

static void load(struct buf *out)
{
	assert_int_equal(os_load("tests/data/nettrace/gc.nettrace", 1 << 20, out, NULL), 0);
}

/* In portions of n bytes. */
static void feed(const struct buf *file, size_t n, struct seen *s)
{
	struct nettrace *t;
	struct err err;
	size_t at, portion;

	memset(s, 0, sizeof(*s));
	assert_int_equal(nettrace_new(&t, &err), 0);
	assert_int_equal(nettrace_decode_new(&s->decode, &err), 0);
	for (at = 0; at < file->len; at += portion) {
		portion = file->len - at < n ? file->len - at : n;
		assert_int_equal(nettrace_feed(t, file->data + at, portion, see, s, &err), 0);
	}
	assert_true(nettrace_facts(t)->ended);
	assert_int_equal(nettrace_facts(t)->ticks_per_sec, 1000000000u);
	assert_int_equal(nettrace_facts(t)->pointer_bytes, 8);
	assert_int_equal(nettrace_facts(t)->lost, 0);
	nettrace_decode_free(s->decode);
	nettrace_free(t);
}

TEST(a_stream_gives_the_same_events_in_whatever_portions_it_comes)
{
	struct buf file = {0};
	struct seen whole, parts;
	size_t n;

	load(&file);
	feed(&file, file.len, &whole);
	print_message("%u events, %u GCs from number %u to %u, %u pauses of %.3f ms in all\n",
		      whole.events, whole.starts, (unsigned)whole.first_count,
		      (unsigned)whole.last_count, whole.pauses, (double)whole.paused_ns / 1e6);
	assert_true(whole.starts >= 5);
	/* None is missing. */
	assert_int_equal(whole.last_count - whole.first_count + 1, whole.starts);
	for (n = 1; n < 300; n = n * 3 + 1) {
		feed(&file, n, &parts);
		parts.decode = whole.decode;
		assert_memory_equal(&parts, &whole, sizeof(parts));
	}
	buf_free(&file);
}

struct exceptions {
	struct nettrace_decode *decode;
	uint32_t thrown, rented;
	char first[300];
};

static int see_exception(void *ctx, const struct nettrace_event *event)
{
	struct exceptions *s = ctx;
	const struct etw_decoded *d = nettrace_decode_event(s->decode, event, 8);

	if (strcmp(d->name, "Exception/Start") == 0 && !s->thrown++)
		snprintf(s->first, sizeof(s->first), "%s: %s", d->fields[0].v.text,
			 d->fields[1].v.text);
	if (strcmp(d->name, "BufferRented") != 0)
		return 0;
	s->rented++;
	assert_string_equal(d->provider, "System.Buffers.ArrayPoolEventSource");
	assert_int_equal(d->nfields, 4);
	assert_string_equal(d->fields[0].name, "bufferId");
	assert_string_equal(d->fields[1].name, "bufferSize");
	/* Sizes that the pool has. */
	assert_true(d->fields[1].v.i >= 16 && d->fields[1].v.i % 16 == 0);
	return 0;
}

TEST(exceptions_and_events_of_an_event_source_have_their_fields)
{
	struct exceptions s = {0};
	struct buf file = {0};
	struct nettrace *t;
	struct err err;

	assert_int_equal(os_load("tests/data/nettrace/exceptions.nettrace", 1 << 20, &file, NULL),
			 0);
	assert_int_equal(nettrace_new(&t, &err), 0);
	assert_int_equal(nettrace_decode_new(&s.decode, &err), 0);
	assert_int_equal(nettrace_feed(t, file.data, file.len, see_exception, &s, &err), 0);
	assert_true(nettrace_facts(t)->ended);
	print_message("%u thrown, %u rented; %s\n", s.thrown, s.rented, s.first);
	assert_int_equal(strncmp(s.first,
				 "Newtonsoft.Json.JsonReaderException: Invalid character after "
				 "parsing property name.",
				 80),
			 0);
	assert_true(s.rented > 40);
	nettrace_decode_free(s.decode);
	nettrace_free(t);
	buf_free(&file);
}

static int count(void *ctx, const struct nettrace_event *event)
{
	(void)event;
	++*(unsigned *)ctx;
	return 0;
}

/* Ten thousand streams, each with one changed byte. */
TEST(a_damaged_stream_is_an_error_or_other_events_never_more)
{
	struct buf file = {0};
	struct nettrace *t;
	struct err err;
	unsigned events, i;
	uint64_t random = 1;
	char kept;
	size_t at;

	load(&file);
	for (i = 0; i < 10000; i++) {
		random = random * 6364136223846793005u + 1442695040888963407u;
		at = (size_t)(random >> 33) % file.len;
		kept = file.data[at];
		file.data[at] = (char)(random >> 20);
		events = 0;
		assert_int_equal(nettrace_new(&t, &err), 0);
		nettrace_feed(t, file.data, file.len, count, &events, &err);
		assert_true(events < 100000);
		nettrace_free(t);
		file.data[at] = kept;
	}
	buf_free(&file);
}

/* Whichever allocation fails: an error, or fewer losses counted; a sanitizer sees what leaks. */
TEST(lack_of_memory_is_an_error)
{
	struct buf file = {0};
	struct nettrace *t;
	struct err err;
	unsigned events, refused = 0;
	unsigned long n;
	int rc;

	load(&file);
	for (n = 1;; n++) {
		events = 0;
		t = NULL;
		alloc_walk_fail_at(n);
		rc = nettrace_new(&t, &err);
		if (!rc)
			rc = nettrace_feed(t, file.data, file.len, count, &events, &err);
		refused += rc == ERR_MEMORY;
		assert_true(rc == 0 || rc == ERR_MEMORY);
		nettrace_free(t);
		if (alloc_walk_count() < n)
			break;
	}
	alloc_walk_fail_at(0);
	assert_int_equal(events, 208);
	assert_true(refused > 20);
	buf_free(&file);
}

TEST(what_is_no_stream_of_version_4_is_refused_at_its_first_bytes)
{
	struct nettrace *t;
	struct err err;
	unsigned events = 0;

	assert_int_equal(nettrace_new(&t, &err), 0);
	assert_int_equal(nettrace_feed(t, "GET /", 5, count, &events, &err), ERR_FORMAT);
	assert_int_equal(nettrace_feed(t, "Nettrace", 8, count, &events, &err), ERR_FORMAT);
	nettrace_free(t);
	assert_int_equal(nettrace_new(&t, &err), 0);
	assert_int_equal(nettrace_feed(t, "Nettrace\0\0\0\0\6\0\0\0", 16, count, &events, &err),
			 ERR_FORMAT);
	assert_non_null(strstr(err.text, "later"));
	nettrace_free(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_stream_gives_the_same_events_in_whatever_portions_it_comes),
		cmocka_unit_test(exceptions_and_events_of_an_event_source_have_their_fields),
		cmocka_unit_test(a_damaged_stream_is_an_error_or_other_events_never_more),
		cmocka_unit_test(lack_of_memory_is_an_error),
		cmocka_unit_test(what_is_no_stream_of_version_4_is_refused_at_its_first_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
