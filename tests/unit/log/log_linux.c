/* The source of logs, live: files over rotation and truncation, the kernel's log. */
#include "base/array.h"
#include "base/os.h"
#include "source/source.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern const struct source_ops log_source;

struct rig {
	char path[TMP_BYTES], rotated[TMP_BYTES + 8];
	struct needs needs;
	struct queue *queue;
	struct source *source;
	struct os_thread *thread;
};

static void run(void *ctx)
{
	struct rig *r = ctx;
	struct err err;

	log_source.run(r->source, &err);
}

static void rig_open(struct rig *r, const char *name)
{
	struct source_config cfg = {0};
	struct err err = {0};

	r->queue = cfg.queue = queue_new(1 << 20);
	assert_int_equal(needs_log(&r->needs, name, &err), 0);
	if (log_source.check(&r->needs, &err) ||
	    log_source.open(&cfg, &r->needs, &r->source, &err) ||
	    os_thread_start("log", run, r, &r->thread, &err))
		fail_msg("%s", err.text);
}

static void rig_close(struct rig *r)
{
	log_source.stop(r->source);
	os_thread_join(r->thread);
	log_source.close(r->source);
	queue_free(r->queue);
	free(r);
}

static struct rig *rig_new(const char *name)
{
	struct rig *r = calloc(1, sizeof(*r));

	assert_non_null(r);
	snprintf(r->path, sizeof(r->path), "%s", tmp_path(name));
	snprintf(r->rotated, sizeof(r->rotated), "%s.1", r->path);
	unlink(r->path);
	unlink(r->rotated);
	return r;
}

static void write_to(const char *path, const char *text, int flags)
{
	int fd = open(path, O_WRONLY | O_CREAT | flags, 0600);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

/* The next line, within some seconds. */
static void expect(struct rig *r, const char *wanted)
{
	const struct event *e = NULL;
	const struct event_field *message;
	int i;

	for (i = 0; i < 500 && (e = queue_peek(r->queue)) == NULL; i++)
		os_sleep_ns(20 * NS_PER_MS);
	if (!e)
		fail_msg("no line came; '%s' was expected", wanted);
	assert_int_equal(e->kind, EVENT_LOG);
	message = event_field(e, "message");
	assert_non_null(message);
	assert_string_equal(message->v.text, wanted);
	assert_string_equal(event_field(e, "log")->v.text, r->needs.logs[0].name);
	queue_pop(r->queue);
}

TEST(a_file_is_followed_from_its_end_over_rotation_and_truncation)
{
	struct rig *r = rig_new("rotate");

	write_to(r->path, "old\n", 0);
	rig_open(r, r->path);
	write_to(r->path, "one\ntw", O_APPEND);
	expect(r, "one");
	write_to(r->path, "o\n", O_APPEND);
	expect(r, "two");
	/* Rotated: what is written to the old one before the new one is there counts too. */
	assert_int_equal(rename(r->path, r->rotated), 0);
	write_to(r->rotated, "three\n", O_APPEND);
	expect(r, "three");
	write_to(r->path, "four\n", O_APPEND);
	expect(r, "four");
	write_to(r->path, "5\n", O_TRUNC);
	expect(r, "5");
	assert_null(queue_peek(r->queue));
	unlink(r->path);
	unlink(r->rotated);
	rig_close(r);
}

/* In a log that syslog writes, too. A line of another program may say our name. */
TEST(what_this_recorder_says_is_not_read)
{
	struct rig *r = rig_new("own");
	char text[200];

	rig_open(r, r->path);
	write_to(r->path, "", 0);
	snprintf(text, sizeof(text), "Nov 27 09:06:11 vm recorder[%d]: fired: disaster\n"
		 "Nov 27 09:06:12 vm app[1]: recorder[%d] saw a disaster\n",
		 (int)getpid(), (int)getpid());
	write_to(r->path, text, O_APPEND);
	text[strlen(text) - 1] = '\0';
	expect(r, strchr(text, '\n') + 1);
	unlink(r->path);
	rig_close(r);
}

TEST(a_file_that_is_not_there_yet_is_read_from_its_start)
{
	struct rig *r = rig_new("later");

	rig_open(r, r->path);
	write_to(r->path, "first\n", 0);
	expect(r, "first");
	unlink(r->path);
	rig_close(r);
}

TEST(the_kernel_log_is_read_as_it_comes)
{
	struct rig *r;
	char text[80], line[100];
	int fd = open("/dev/kmsg", O_WRONLY | O_CLOEXEC);

	if (fd < 0) {
		print_message("skip: /dev/kmsg cannot be written by this user\n");
		skip();
	}
	r = rig_new("kernel");
	rig_open(r, "kernel");
	snprintf(text, sizeof(text), "recorder test %d", (int)getpid());
	snprintf(line, sizeof(line), "<6>%s\n", text);
	if (write(fd, line, strlen(line)) > 0)
		expect(r, text);
	else
		print_message("skip: the kernel takes no lines\n");
	close(fd);
	rig_close(r);
}

TEST(logs_that_cannot_be_read_are_refused)
{
	static const struct { const char *name, *says; } bad[] = {
		{"/no/such/dir/x.log", "does not exist, nor does its directory"},
		{"Shop", "unknown log 'Shop'"},
	};
	static struct needs needs;
	struct err err = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(bad); i++) {
		memset(&needs, 0, sizeof(needs));
		assert_int_equal(needs_log(&needs, bad[i].name, &err), 0);
		assert_int_not_equal(log_source.check(&needs, &err), 0);
		if (!strstr(err.text, bad[i].says))
			fail_msg("%s: %s", bad[i].name, err.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_followed_from_its_end_over_rotation_and_truncation),
		cmocka_unit_test(what_this_recorder_says_is_not_read),
		cmocka_unit_test(a_file_that_is_not_there_yet_is_read_from_its_start),
		cmocka_unit_test(the_kernel_log_is_read_as_it_comes),
		cmocka_unit_test(logs_that_cannot_be_read_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
