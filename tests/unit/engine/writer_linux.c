/* The writer's priority: up while a complete incident waits for it, down when that is stored. */
#include "tests/support/engine_rig.h"
#include "tests/support/stub_source.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define GIVE_UP_NS (30 * NS_PER_SEC)

static char store_file[TMP_BYTES];
static bool was_up, is_down, is_stored;

/* Of the thread of this process that is called so; 100 = there is none. */
static int nice_of(const char *thread)
{
	DIR *dir = opendir("/proc/self/task");
	const struct dirent *entry;
	int found = 100;

	while (dir && (entry = readdir(dir))) {
		char path[300], name[20] = "";
		FILE *file;

		snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
		file = fopen(path, "r");
		if (file && fgets(name, sizeof(name), file) &&
		    strcmp(strtok(name, "\n"), thread) == 0)
			found = getpriority(PRIO_PROCESS, (id_t)atoi(entry->d_name));
		if (file)
			fclose(file);
	}
	if (dir)
		closedir(dir);
	return found;
}

static bool stored(void)
{
	struct incident_head head = {0};
	struct store *s = NULL;
	bool complete = false;

	if (!store_open(store_file, STORE_READ, &s, NULL) && !store_head(s, 1, &head, NULL)) {
		complete = head.state == INCIDENT_COMPLETE;
		incident_head_free(&head);
	}
	store_close(s);
	return complete;
}

/* One firing, at once complete; watched until it is stored and the writer has come down. */
static int watching_run(struct source *source, struct err *err)
{
	struct stub_source *s = (struct stub_source *)source;
	uint64_t start_ns = stub_source_fire(s);

	(void)err;
	while (!atomic_load(&s->stopping) && os_now_ns() - start_ns < GIVE_UP_NS &&
	       !(is_stored && is_down)) {
		queue_watermark(s->queue, os_now_ns());
		was_up |= nice_of("writer") == -10;
		is_stored = is_stored || stored();
		is_down = is_stored && nice_of("writer") == 10;
		os_sleep_ns(NS_PER_MS / 2);
	}
	return 0;
}

TEST(the_writer_comes_down_again_when_an_incident_is_stored)
{
	struct source_ops watching = stub_source;
	const struct source_ops *const sources[] = {&watching, NULL};
	struct rig r;

	if (setpriority(PRIO_PROCESS, (id_t)gettid(), -10) ||
	    setpriority(PRIO_PROCESS, (id_t)gettid(), 0)) {
		print_message("only root may raise a priority\n");
		skip();
	}
	watching.run = watching_run;
	watching.catch_up = NULL;
	rig_open(&r, "writer.db", 0);
	snprintf(store_file, sizeof(store_file), "%s", r.path);
	r.cfg.sources = sources;
	r.cfg.live = true;
	r.cfg.capture.post_ns = 0;
	rig_run(&r);
	assert_true(is_stored);
	assert_true(is_down);
	print_message(was_up ? "it was up meanwhile\n" : "it was quicker than a look\n");
	remove_store(r.path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_writer_comes_down_again_when_an_incident_is_stored),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
