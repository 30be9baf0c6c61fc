/* A worker that hangs in one file: others get their names, by looks in time of the test's own. */
#include "symbol/sandbox.h"
#include "symbol/symbol.h"
#include "tests/support/symbol_world.h"
#include "tests/support/test.h"

#include "base/os.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SETTLE_NS (200 * NS_PER_SEC)
#define MANGLED 77u                          /* the offset of a C++ function */

/* ---- a reader whose files are on a server that may stop answering ---------------------------- */

static struct os_mutex *server;              /* locked: it does not answer */
static atomic_int opened, spins;

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_ELF;
}

static int open_served(const struct symbol_env *env, const struct object *object, uint32_t pid,
		       struct symbol_table **out, struct err *err)
{
	extern const struct symbol_reader served_reader;
	struct symbol_table *t = calloc(1, sizeof(*t));

	(void)env;
	(void)pid;
	if (!t)
		return err_memory(err, "for a test");
	atomic_fetch_add(&opened, 1);
	if (strstr(object->key.path, "stuck")) {
		os_mutex_lock(server);
		os_mutex_unlock(server);
	}
	while (strstr(object->key.path, "large") && atomic_load(&spins))
		;
	t->reader = &served_reader;
	*out = t;
	return 0;
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	(void)table;
	*out = (struct symbol){.offset = offset, .name = offset == MANGLED ? "_ZN1a1bEv" : "fine"};
	return true;
}

static void close_served(struct symbol_table *table)
{
	free(table);
}

const struct symbol_reader served_reader = {
	.reads = reads, .open = open_served, .find = find, .close = close_served};
static const struct symbol_reader *const readers[] = {&served_reader, NULL};
static const struct symbol_env env = {.readers = readers, .sandboxed = true};

/* ---- the lab --------------------------------------------------------------------------------- */

static struct symbol_world w;                /* what a thread that hangs uses stays */
static uint64_t now_ns;
static char text[SYMBOLS_NEWS_BYTES];

static void begin(void)
{
	server = os_mutex_new();
	atomic_store(&opened, 0);
	now_ns = os_now_ns();
	symbol_world_open(&w, &env, NULL);
}

static void end(void)
{
	symbol_world_close(&w);
	os_mutex_free(server);
}

static struct frame *frame_of(const char *path, uint64_t dev, uint64_t offset)
{
	struct object_key key = {.kind = OBJECT_ELF, .dev = dev, .ino = 1, .path = path};
	struct frame_ref ref = {objects_get(w.frames, &key, os_pid()), offset, 0};
	bool fresh;
	struct frame *frame = frame_get(w.frames, frames_intern(w.frames, &ref, &fresh));

	frame_ref(frame);
	return frame;
}

static void ask_and_wait_until_opened(struct frame *frame)
{
	int before = atomic_load(&opened);

	symbols_want(w.symbols, frame);
	symbols_begin(w.symbols);
	while (atomic_load(&opened) == before)
		os_sleep_ns(NS_PER_MS);
}

/* Look once a second of the test's time; how often, until there was news. */
static unsigned look_until(enum symbols_news news)
{
	unsigned looks = 0;
	enum symbols_news got;

	do {
		now_ns += NS_PER_SEC;
		got = symbols_look(w.symbols, now_ns, text, sizeof(text));
		os_sleep_ns(NS_PER_MS);
		looks++;
	} while (got == SYMBOLS_NO_NEWS);
	assert_int_equal(got, news);
	return looks;
}

TEST(others_get_names_while_one_file_hangs_and_it_does_once_it_answers)
{
	struct frame *before, *again, *stuck, *beside, *other, *both[2];

	begin();
	before = frame_of("/before", 8, 1);
	again = frame_of("/before", 8, 2);
	assert_int_equal(symbols_settle(w.symbols, &before, 1, SETTLE_NS), 0);
	stuck = both[0] = frame_of("\\\\dead\\stuck", 7, 1);
	beside = both[1] = frame_of("\\\\dead\\beside", 7, 1);
	other = frame_of("/other", 8, 1);
	os_mutex_lock(server);
	ask_and_wait_until_opened(stuck);
	assert_true(look_until(SYMBOLS_HANG) >= 3);        /* two seconds */
	assert_non_null(strstr(text, "the file system of \\\\dead\\stuck has not answered for "));
	assert_true(symbols_hang(w.symbols, now_ns, text, sizeof(text)));

	assert_int_equal(symbols_settle(w.symbols, &other, 1, SETTLE_NS), 0);
	assert_int_equal(symbols_settle(w.symbols, &beside, 1, SETTLE_NS), 1);
	assert_int_equal(symbols_settle(w.symbols, both, 2, SETTLE_NS), 2);
	assert_int_equal(atomic_load(&opened), 3);

	os_mutex_unlock(server);
	look_until(SYMBOLS_ANSWER);
	assert_non_null(strstr(text, "the file system of \\\\dead\\stuck answers again, after "));
	assert_false(symbols_hang(w.symbols, now_ns, text, sizeof(text)));
	assert_int_equal(symbols_settle(w.symbols, both, 2, SETTLE_NS), 0);
	assert_int_equal(atomic_load(&opened), 4);

	/* The one that hung has kept what it had read. */
	assert_int_equal(symbols_settle(w.symbols, &again, 1, SETTLE_NS), 0);
	assert_int_equal(atomic_load(&opened), 4);
	end();
}

TEST(a_name_put_off_by_a_worker_that_hangs_is_given_to_the_next_one)
{
	struct frame *mangled, *stuck;
	const struct function *function;

	begin();
	mangled = frame_of("/other", 8, MANGLED);
	stuck = frame_of("\\\\dead\\stuck", 7, 1);
	os_mutex_lock(server);
	symbols_want(w.symbols, mangled);
	symbols_want(w.symbols, stuck);
	symbols_begin(w.symbols);
	while (atomic_load(&opened) < 2)
		os_sleep_ns(NS_PER_MS);
	look_until(SYMBOLS_HANG);
	while ((function = atomic_load(&mangled->function)) == NULL)
		os_sleep_ns(NS_PER_MS);
	assert_string_equal(function->name, "a::b");
	assert_string_equal(function->raw_name, "_ZN1a1bEv");
	os_mutex_unlock(server);
	look_until(SYMBOLS_ANSWER);
	end();
}

TEST(a_worker_that_works_for_long_is_let_work)
{
	struct frame *large;
	unsigned i;

	begin();
	large = frame_of("/large", 8, 1);
	atomic_store(&spins, 1);
	ask_and_wait_until_opened(large);
	for (i = 0; i < 12; i++) {
		os_sleep_ns(50 * NS_PER_MS);               /* it gets a CPU */
		now_ns += NS_PER_SEC;
		assert_int_equal(symbols_look(w.symbols, now_ns, text, sizeof(text)),
				 SYMBOLS_NO_NEWS);
	}
	atomic_store(&spins, 0);
	assert_int_equal(symbols_settle(w.symbols, &large, 1, SETTLE_NS), 0);
	assert_int_equal(atomic_load(&opened), 1);
	end();
}

TEST(when_all_hang_nobody_waits_for_names_and_closing_returns)
{
	struct frame *frames[6];
	char path[] = "\\\\0\\stuck";
	unsigned i;

	begin();
	for (i = 0; i < 6; i++) {
		path[2] = (char)('0' + i);
		frames[i] = frame_of(path, 10 + i, 1);
	}
	os_mutex_lock(server);
	for (i = 0; i < 5; i++) {
		ask_and_wait_until_opened(frames[i]);
		look_until(SYMBOLS_HANG);
	}
	assert_non_null(strstr(text, "until it answers, nothing gets a name"));
	assert_int_equal(symbols_settle(w.symbols, frames, 6, UINT64_MAX), 6);
	assert_false(symbols_close(w.symbols));

	/* They come back to what is still there. */
	os_mutex_unlock(server);
	while (symbols_hang(w.symbols, now_ns, text, sizeof(text)))
		os_sleep_ns(NS_PER_MS);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			others_get_names_while_one_file_hangs_and_it_does_once_it_answers),
		cmocka_unit_test(a_name_put_off_by_a_worker_that_hangs_is_given_to_the_next_one),
		cmocka_unit_test(a_worker_that_works_for_long_is_let_work),
		cmocka_unit_test(when_all_hang_nobody_waits_for_names_and_closing_returns),
	};

	if (argc == 2 && !strcmp(argv[1], SANDBOX_WORD))
		return sandbox_serve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
