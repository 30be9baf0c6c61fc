/*
 * Files of .NET programs as a source. Its queue holds a few events here, so at the first one the
 * rest of the file is not delivered yet: what an event refers to must be known by then, whoever is
 * faster later.
 */
#include "base/os.h"
#include "source/source.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <stdio.h>
#include <string.h>

#define SMALL_QUEUE_BYTES ((size_t)8192)
#define WHOLE "tests/data/nettrace/gc.nettrace"

struct rig {
	struct frames *frames;
	struct processes *processes;
	struct queue *queue;
	struct source *source;
	struct os_thread *thread;
	int rc;
};

static void run(void *ctx)
{
	struct rig *r = ctx;
	struct err err;

	r->rc = r->source->ops->run(r->source, &err);
}

static void start(struct rig *r, const char *path)
{
	static const struct needs none;
	struct source_config cfg = {.capture = {.file = path}};
	struct err err;

	memset(r, 0, sizeof(*r));
	assert_int_equal(frames_new(&r->frames, &err), 0);
	assert_int_equal(processes_new(&r->processes, &err), 0);
	cfg.frames = r->frames;
	cfg.processes = r->processes;
	cfg.queue = r->queue = queue_new(SMALL_QUEUE_BYTES);
	assert_int_equal(file_sources(path)[0]->open(&cfg, &none, &r->source, &err), 0);
	assert_int_equal(os_thread_start("source", run, r, &r->thread, &err), 0);
}

/* The next event; NULL at the end. */
static const struct event *next(struct rig *r)
{
	const struct event *e;

	while ((e = queue_peek(r->queue)) == NULL && queue_released(r->queue, 0) != UINT64_MAX)
		os_sleep_ns(NS_PER_MS);
	return e ? e : queue_peek(r->queue);
}

static unsigned end(struct rig *r)
{
	const struct event *e;
	unsigned n = 0;

	/* Each event with a stack comes as a sample too. */
	for (; (e = next(r)) != NULL; queue_pop(r->queue))
		n += e->kind != EVENT_SAMPLE;
	os_thread_join(r->thread);
	r->source->ops->close(r->source);
	queue_free(r->queue);
	processes_free(r->processes);
	frames_free(r->frames);
	return n;
}

TEST(the_first_event_has_the_name_that_the_last_one_tells)
{
	const struct event *first;
	struct rig r;

	start(&r, WHOLE);
	first = next(&r);
	assert_non_null(first);
	assert_string_equal(process_name(first->process), "Sarif.Multitool");
	assert_non_null(strstr(first->process->cmdline, "rewrite big.sarif"));
	assert_int_equal(end(&r), 208);
	assert_int_equal(r.rc, 0);
}

TEST(that_it_is_cut_is_known_at_its_first_event_and_without_a_name_it_is_dotnet)
{
	struct source_origin origin;
	const struct event *first;
	struct buf file = {0};
	struct os_file *cut = NULL;
	const char *path = tmp_path("cut.nettrace");
	struct rig r;

	assert_int_equal(os_load(WHOLE, 1 << 20, &file, NULL), 0);
	os_remove(path, NULL);
	assert_int_equal(os_open(path, OS_CREATE, &cut, NULL), 0);
	assert_int_equal(os_write(cut, file.data, 9000, NULL), 0);
	os_close(cut);
	start(&r, path);
	first = next(&r);
	assert_non_null(first);
	assert_string_equal(process_name(first->process), "dotnet");
	r.source->ops->origin(r.source, &origin);
	assert_string_equal(origin.note, "it ends before its end mark");
	assert_true(end(&r) > 20);
	assert_int_equal(r.rc, 0);
	buf_free(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_first_event_has_the_name_that_the_last_one_tells),
		cmocka_unit_test(
			that_it_is_cut_is_known_at_its_first_event_and_without_a_name_it_is_dotnet),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
