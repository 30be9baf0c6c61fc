/* Command lines of processes, read live: exec(2) writes them last, after the first events. */
#include "tests/support/engine_rig.h"
#include "tests/support/test.h"

#include "base/os.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define GIVE_UP_NS (20 * NS_PER_SEC)

struct late_source {
	struct source base;
	struct queue *queue;
	struct processes *processes;
	_Atomic bool stopping;
};

static pid_t child;
static int to_child;                         /* closed: the child executes */
static bool named;

static int late_open(const struct source_config *cfg, const struct needs *needs,
		     struct source **out, struct err *err)
{
	struct late_source *s = calloc(1, sizeof(*s));

	(void)needs;
	if (!s)
		return err_memory(err, "for a source");
	s->queue = cfg->queue;
	s->processes = cfg->processes;
	*out = &s->base;
	return 0;
}

static void put_sample(struct late_source *s, struct process *p)
{
	struct event sample = {.time_ns = os_now_ns(), .kind = EVENT_SAMPLE, .process = p,
			       .thread = thread_add(s->processes, p, (uint32_t)child),
			       .stack = STACK_NONE, .stream = STREAM_CPU, .value = 1};

	queue_put(s->queue, &sample);
	queue_watermark(s->queue, os_now_ns());
}

/* The process is known as "sleep" from its exec on; its arguments come half a second later. */
static int late_run(struct source *source, struct err *err)
{
	struct late_source *s = (struct late_source *)source;
	uint64_t start_ns = os_now_ns();
	struct process *p = process_add(s->processes, (uint32_t)child, 1, 0, 1, "sleep");

	(void)err;
	put_sample(s, p);
	os_sleep_ns(NS_PER_SEC / 2);
	named = atomic_load(&p->cmdline) != NULL;
	assert_false(named);
	close(to_child);
	while (!named && os_now_ns() - start_ns < GIVE_UP_NS) {
		put_sample(s, p);
		os_sleep_ns(10 * NS_PER_MS);
		named = atomic_load(&p->cmdline) && !strcmp(atomic_load(&p->cmdline), "sleep 100");
	}
	while (!atomic_load(&s->stopping)) {
		queue_watermark(s->queue, os_now_ns());
		os_sleep_ns(10 * NS_PER_MS);
	}
	return 0;
}

static void late_stop(struct source *source)
{
	atomic_store(&((struct late_source *)source)->stopping, true);
}

static void late_close(struct source *source)
{
	free(source);
}

static const struct source_ops late_source = {
	.name = "late", .summary = "a process whose command line comes late", .open = late_open,
	.run = late_run, .stop = late_stop, .close = late_close,
};

static void start_child(void)
{
	int ends[2];
	char byte;

	assert_int_equal(pipe(ends), 0);
	child = fork();
	if (!child) {
		close(ends[1]);
		if (read(ends[0], &byte, 1) == 0)
			execlp("sleep", "sleep", "100", NULL);
		_exit(1);
	}
	close(ends[0]);
	to_child = ends[1];
}

TEST(a_command_line_that_comes_after_the_first_sample_is_read_at_a_later_one)
{
	static const struct source_ops *const sources[] = {&late_source, NULL};
	struct rig r;

	start_child();
	rig_open(&r, "command_lines.db", 0);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.max_collect_ns = 3 * NS_PER_SEC;
	rig_run(&r);
	assert_true(named);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_command_line_that_comes_after_the_first_sample_is_read_at_a_later_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
