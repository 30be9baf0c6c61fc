/* What only Unix can show: kill -9, file modes, other users, a file system that is really full. */
#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- kill -9 -------------------------------------------------------------------------------- */

enum { KILLS = 30, DUMPS_MAX = 4000 };

/* A recorder that writes incidents of three shared segments until it is killed. */
static void record_for_ever(struct lab *lab)
{
	struct segment *segments[3];
	struct store *s = lab_store(lab, STORE_RECORD);
	uint64_t now = MS(1000);
	unsigned i;

	lab_sample(lab, now, 0, "a");
	segments[0] = lab_seal(lab);
	lab_sample(lab, now, 1, "ab");
	segments[1] = lab_seal(lab);
	for (;;) {
		struct incident_head head = lab_head(now += MS(1000), MS(3000), 0);

		for (i = 0; i < 300; i++)
			lab_sample(lab, now - MS(300) + MS(i), i % 2, i % 3 ? "abcde" : "abf");
		segments[2] = lab_seal(lab);
		lab_incident(s, &head, segments, 3);
		segment_unref(segments[0]);
		segments[0] = segments[1];
		segments[1] = segments[2];
	}
}

static void record_until_killed(struct lab *lab, uint64_t ns)
{
	pid_t child = fork();

	assert_true(child >= 0);
	if (!child) {
		record_for_ever(lab);
		_exit(1);
	}
	os_sleep_ns(ns);
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

/* Every incident known so far reads as before; new ones are remembered. */
static void compare_all(struct store *s, char **dumps, int64_t *known, int64_t newest)
{
	int64_t id;

	assert_in_range(newest, 0, DUMPS_MAX - 1);
	for (id = 1; id <= newest; id++) {
		const char *dump = lab_dump(s, id);

		if (id <= *known)
			assert_string_equal(dump, dumps[id]);
		else
			dumps[id] = strdup(dump);
	}
	*known = newest;
}

TEST(a_killed_recorder_loses_nothing_that_was_complete)
{
	static char *dumps[DUMPS_MAX];
	int64_t known = 0, partial = 0, newest, now_partial;
	struct store *s;
	struct lab lab;
	int i;

	lab_open(&lab, "kill.db");
	srand(1);
	for (i = 0; i < KILLS; i++) {
		/* On a busy machine nothing is stored so soon: then wait longer and longer. */
		record_until_killed(&lab,
				    MS((unsigned)rand() % 60) * (known ? 1u : 1u + (unsigned)i));
		s = lab_store(&lab, STORE_RECORD);
		lab_check_integrity(lab.path);
		assert_int_equal(
			lab_sql(lab.path, "SELECT count(*) FROM incident WHERE state='open'"), 0);
		now_partial =
			lab_sql(lab.path, "SELECT count(*) FROM incident WHERE state='partial'");
		assert_in_range(now_partial, partial, partial + 1);
		partial = now_partial;
		newest = lab_sql(lab.path, "SELECT coalesce(max(id), 0) FROM incident");
		compare_all(s, dumps, &known, newest);
		store_close(s);
	}
	assert_true(known > 0);              /* how many depends on the machine */
	for (i = 1; i <= known; i++)
		free(dumps[i]);
	lab_close(&lab);
}

/* ---- rights --------------------------------------------------------------------------------- */

static void assert_private(const char *path, const char *suffix)
{
	char name[700];
	struct stat st;

	snprintf(name, sizeof(name), "%s%s", path, suffix);
	assert_int_equal(stat(name, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
}

TEST(nobody_else_can_read_a_store)
{
	mode_t before = umask(0);
	struct store *s;
	struct lab lab;

	s = lab_record(&lab, "mode.db");
	lab_simple(&lab, s, MS(10), 3);
	assert_private(lab.path, "");
	assert_private(lab.path, "-wal");
	assert_private(lab.path, "-shm");
	assert_private(lab.path, ".lock");
	assert_private(lab.path, ".reserve");
	store_close(s);
	umask(before);
	lab_close(&lab);
}

/* A store in a directory that a child may read but not write. As root we make it another user's. */
struct elsewhere {
	struct lab lab;
	char dir[40], path[60];
};

static void open_elsewhere(struct elsewhere *e)
{
	struct store *s;

	snprintf(e->dir, sizeof(e->dir), "/tmp/store_test.XXXXXX");
	assert_non_null(mkdtemp(e->dir));
	lab_open(&e->lab, "elsewhere.db");
	snprintf(e->path, sizeof(e->path), "%s/incidents.db", e->dir);
	e->lab.path = e->path;
	s = lab_store(&e->lab, STORE_RECORD);
	lab_simple(&e->lab, s, MS(10), 3);
	store_close(s);
}

static void close_elsewhere(struct elsewhere *e)
{
	chmod(e->dir, 0700);
	lab_close(&e->lab);
	assert_int_equal(rmdir(e->dir), 0);
}

/* Run check() in a child without root's rights; it returns 0 when all was as expected. */
static void as_another_user(struct elsewhere *e, int (*check)(struct elsewhere *e))
{
	int status = -1;
	pid_t child;

	assert_int_equal(chmod(e->dir, 0555), 0);
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		if (getuid() == 0 && (setgid(65534) || setuid(65534)))
			_exit(99);
		_exit(check(e));
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static int refused(struct elsewhere *e, enum store_mode mode, const char *says)
{
	struct store *s = NULL;
	struct err err = {0};

	if (store_open(e->path, mode, &s, &err) != ERR_ACCESS || !strstr(err.text, says)) {
		fprintf(stderr, "code %d: %s\n", err.code, err.text);
		return 1;
	}
	return 0;
}

static int reads_but_does_not_write(struct elsewhere *e)
{
	struct store *s = NULL;
	struct err err = {0};

	if (store_open(e->path, STORE_READ, &s, &err)) {
		fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	if (strcmp(lab_samples(s, 1), "10.0 main ???\n11.0 worker ???\n12.0 main ???\n") != 0)
		return 2;
	store_close(s);
	return refused(e, STORE_EDIT, "cannot be") || refused(e, STORE_RECORD, "cannot be");
}

TEST(a_store_on_read_only_media_can_be_read)
{
	struct elsewhere e;

	open_elsewhere(&e);
	assert_int_equal(chmod(e.path, 0444), 0);
	as_another_user(&e, reads_but_does_not_write);
	close_elsewhere(&e);
}

static int is_told_of_the_log(struct elsewhere *e)
{
	return refused(e, STORE_READ, "(-wal)");
}

TEST(a_log_that_may_not_be_read_is_not_ignored)
{
	struct elsewhere e;
	struct store *s;

	open_elsewhere(&e);
	s = lab_store(&e.lab, STORE_RECORD);
	lab_simple(&e.lab, s, MS(20), 3);
	if (getuid() == 0) {
		assert_int_equal(chmod(e.path, 0444), 0);
		as_another_user(&e, is_told_of_the_log);
	}
	store_close(s);
	close_elsewhere(&e);
}

static int is_refused(struct elsewhere *e)
{
	return refused(e, STORE_READ, "cannot be opened");
}

TEST(a_store_of_another_user_is_refused_clearly)
{
	struct elsewhere e;

	open_elsewhere(&e);
	assert_int_equal(chmod(e.path, getuid() == 0 ? 0600 : 0), 0);
	as_another_user(&e, is_refused);
	close_elsewhere(&e);
}

/* ---- a file system that is really full ------------------------------------------------------ */

static void fill_disk(const char *path)
{
	static char bytes[65536];
	FILE *file = fopen(path, "a");

	assert_non_null(file);
	setvbuf(file, NULL, _IONBF, 0);
	while (fwrite(bytes, 1, sizeof(bytes), file) > 0)
		;
	fclose(file);
}

/* Returns the store's code; the 2,000 samples of the segment are new each time. */
static int record_more(struct lab *lab, struct store *s, uint64_t now, struct err *err)
{
	struct incident_head head = lab_head(now, MS(4000), 0);
	struct segment *segment;
	unsigned i;
	int rc;

	for (i = 0; i < 2000; i++)
		lab_sample(lab, now - MS(2000) + MS(i) + (unsigned)rand() % 1000000, i % 2,
			   "abc");
	segment = lab_seal(lab);
	rc = store_begin(s, &head, err);
	if (!rc)
		rc = store_put_segment(s, head.id, segment, err);
	if (!rc)
		rc = store_finish(s, &head, &segment, 1, err);
	segment_unref(segment);
	return rc;
}

static void fill_the_store(struct elsewhere *e, struct store *s)
{
	char filler[80], reserve[80];
	struct err err = {0};
	uint64_t now = MS(10000);
	int rc = 0;

	snprintf(filler, sizeof(filler), "%s/filler", e->dir);
	snprintf(reserve, sizeof(reserve), "%s.reserve", e->path);
	while (!rc && now < MS(10000000)) {
		fill_disk(filler);
		rc = record_more(&e->lab, s, now += MS(2000), &err);
	}
	assert_int_equal(rc, ERR_FULL);
	assert_non_null(strstr(err.text, "is full"));
	/* The reserve was given up, and its room is used. */
	assert_false(os_exists(reserve));
	unlink(filler);
	assert_int_equal(record_more(&e->lab, s, now, NULL), 0);
}

TEST(a_full_file_system_is_survived)
{
	struct elsewhere e;
	struct store *s;
	char *first;

	open_elsewhere(&e);
	lab_remove(e.path);
	if (mount("tmpfs", e.dir, "tmpfs", 0, "size=24m")) {
		print_message("a small tmpfs cannot be mounted: %s\n", strerror(errno));
		close_elsewhere(&e);
		skip();
	}
	s = lab_store(&e.lab, STORE_RECORD);
	lab_simple(&e.lab, s, MS(10), 3);
	first = strdup(lab_dump(s, 1));
	fill_the_store(&e, s);
	assert_string_equal(lab_dump(s, 1), first);
	store_close(s);
	lab_check_integrity(e.path);
	free(first);
	lab_remove(e.path);
	assert_int_equal(umount(e.dir), 0);
	close_elsewhere(&e);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_killed_recorder_loses_nothing_that_was_complete),
		cmocka_unit_test(nobody_else_can_read_a_store),
		cmocka_unit_test(a_store_on_read_only_media_can_be_read),
		cmocka_unit_test(a_log_that_may_not_be_read_is_not_ignored),
		cmocka_unit_test(a_store_of_another_user_is_refused_clearly),
		cmocka_unit_test(a_full_file_system_is_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
