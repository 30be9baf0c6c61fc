/*
 * The process that reads symbols: this test is also that process, as /proc/self/exe. Files are made
 * by this machine's gcc.
 */
#include "symbol/sandbox.h"

#include "base/array.h"
#include "symbol/demangle.h"
#include "symbol/perfmap.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIE "TEST_SANDBOX_LIE"          /* the byte of its first answer to turn over */
#define DIES "TEST_SANDBOX_DIES"        /* of a request with this text */
#define ANSWER_MAX (1u << 20)

/* Sanitizers turn the signal into an exit code. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SHORTER "the process that reads symbols died of it (exit code 1), so the file is " \
		"damaged, or made to do that"
#else
#define SHORTER "it became shorter while its symbols were read"
#endif

/* ---- what it is asked about ------------------------------------------------------------------ */

static void open_self(struct elf_file *out)
{
	assert_int_equal(elf_file_open_path("/proc/self/exe", out, NULL), 0);
}

static const char *name_of(const struct elf_index *index, const struct elf_file *file, uint64_t at)
{
	static char name[200];
	struct elf_function f;

	name[0] = '\0';
	if (elf_find(index, at, &f))
		elf_function_name(index, &file->bytes, &f, name, sizeof(name), NULL);
	return name;
}

static void assert_same(const struct elf_index *a, const struct elf_index *b)
{
	unsigned i;

	assert_int_equal(a->base, b->base);
	assert_int_equal(a->nentries, b->nentries);
	assert_memory_equal(a->entries, b->entries, a->nentries * sizeof(*a->entries));
	for (i = 0; i < ELF_TABLES; i++) {
		assert_int_equal(a->strings[i].offset, b->strings[i].offset);
		assert_int_equal(a->strings[i].size, b->strings[i].size);
		assert_int_equal(!a->strings[i].kept, !b->strings[i].kept);
		if (a->strings[i].kept)
			assert_memory_equal(a->strings[i].kept, b->strings[i].kept,
					    a->strings[i].size);
	}
}

TEST(the_index_of_the_sandbox_is_the_one_made_here)
{
	struct elf_index *here = NULL, *there = NULL;
	struct sandbox *sandbox = sandbox_new();
	char note[SANDBOX_NOTE_BYTES];
	struct elf_file file;

	open_self(&file);
	assert_int_equal(sandbox_index(NULL, &file, true, &here, note, NULL), 0);
	assert_int_equal(sandbox_index(sandbox, &file, true, &there, note, NULL), 0);
	assert_true(here->nentries > 10);
	assert_same(here, there);
	elf_index_free(here);
	elf_index_free(there);
	elf_file_close(&file);
	sandbox_free(sandbox);
}

static const char map_text[] = "1000 20 early\n1010 8 late\nno line\n2000 10 other\n";

static struct os_file *write_map(void)
{
	struct os_file *file = NULL;

	assert_int_equal(os_open(tmp_path("map"), OS_REPLACE, &file, NULL), 0);
	assert_int_equal(os_write(file, map_text, sizeof(map_text) - 1, NULL), 0);
	os_close(file);
	assert_int_equal(os_open(tmp_path("map"), OS_READ, &file, NULL), 0);
	return file;
}

TEST(the_perf_map_of_the_sandbox_is_the_one_made_here)
{
	static const char *const names[] = {NULL, "early", "late", "early", NULL, "other"};
	static const uint64_t at[] = {0xfff, 0x1000, 0x1017, 0x1018, 0x1020, 0x200f};
	struct sandbox *sandbox = sandbox_new();
	struct os_file *file = write_map();
	struct perfmap_function f;
	struct perfmap *map;
	unsigned turn, i;

	for (turn = 0; turn < 2; turn++) {
		assert_int_equal(sandbox_perfmap(turn ? sandbox : NULL, file, sizeof(map_text) - 1,
						 &map, NULL), 0);
		assert_int_equal(perfmap_count(map), 3);
		for (i = 0; i < COUNT_OF(at); i++) {
			assert_int_equal(perfmap_find(map, at[i], &f), names[i] != NULL);
			if (names[i])
				assert_string_equal(f.name, names[i]);
		}
		perfmap_free(map);
	}
	/* It became shorter since: what is left has no line. */
	assert_int_equal(truncate(tmp_path("map"), 4), 0);
	assert_int_equal(sandbox_perfmap(sandbox, file, sizeof(map_text) - 1, &map, NULL), 0);
	assert_int_equal(perfmap_count(map), 0);
	assert_false(perfmap_find(map, 0x1000, &f));
	perfmap_free(map);
	os_close(file);
	sandbox_free(sandbox);
}

TEST(names_are_made_readable_as_here)
{
	static const char *const names[] = {
		"_ZN3foo3barEv", "_RNvC6_123foo3bar", "_start", "main", "_Z", "memcpy@@GLIBC_2.14",
		"_ZNSt6vectorIiSaIiEE9push_backEOi@Base", "",
	};
	enum { COUNT = sizeof(names) / sizeof(names[0]) };
	struct sandbox *sandbox = sandbox_new();
	struct buf raw = {0}, there = {0};
	const char *at;
	char here[200];
	size_t i;

	for (i = 0; i < COUNT; i++)
		buf_put(&raw, names[i], strlen(names[i]) + 1);
	sandbox_demangle(sandbox, &raw, COUNT, &there);
	at = buf_text(&there);
	for (i = 0; i < COUNT; at += strlen(at) + 1, i++)
		assert_string_equal(at, demangle(names[i], here, sizeof(here)) ? here : "");
	assert_int_equal(at - there.data, there.len);
	buf_free(&raw);
	buf_free(&there);
	sandbox_free(sandbox);
}

/* n names of the longest kind: more than a socket holds. */
TEST(the_answer_to_many_long_names_comes_whole)
{
	struct sandbox *sandbox = sandbox_new();
	struct buf raw = {0}, there = {0};
	unsigned i;
	const char *at;

	for (i = 0; i < SANDBOX_NAMES; i++) {
		buf_printf(&raw, "_ZN900n%0899uEv", i);
		buf_put(&raw, "", 1);
	}
	sandbox_demangle(sandbox, &raw, SANDBOX_NAMES, &there);
	at = buf_text(&there);
	for (i = 0; i < SANDBOX_NAMES; at += strlen(at) + 1, i++)
		assert_int_equal(strtoul(at + 1, NULL, 10), i);
	assert_int_equal(there.len, SANDBOX_NAMES * 901);
	buf_free(&raw);
	buf_free(&there);
	sandbox_free(sandbox);
}

static void assert_readable(struct sandbox *sandbox, const char *raw, uint32_t n,
			    const char *readable, size_t nbytes)
{
	struct buf in = {0}, out = {0};

	buf_put(&in, raw, nbytes);
	sandbox_demangle(sandbox, &in, n, &out);
	assert_int_equal(out.len, strlen(readable) + 1);
	for (char *at = out.data; at < out.data + out.len - 1; at++)
		*at = *at ? *at : ';';
	assert_string_equal(out.data, readable);
	buf_free(&in);
	buf_free(&out);
}

TEST(a_name_that_ends_the_process_costs_only_itself)
{
	static const char raw[] = "_ZN3foo3barEv\0_ZN6killer1aEv\0_ZN1a1bEv";
	struct sandbox *sandbox = sandbox_new();

	setenv(DIES, "killer", 1);
	assert_readable(sandbox, raw, 3, "foo::bar;;a::b", sizeof(raw));
	unsetenv(DIES);
	assert_readable(sandbox, raw, 3, "foo::bar;killer::a;a::b", sizeof(raw));
	sandbox_free(sandbox);
}

/* ---- when it dies or lies -------------------------------------------------------------------- */

static void make_short(const char *path)
{
	char command[2 * TMP_BYTES];

	snprintf(command, sizeof(command), "cp /proc/%d/exe %s && chmod u+w %s", (int)getpid(),
		 path, path);
	assert_int_equal(system(command), 0);
}

TEST(a_file_that_becomes_shorter_ends_the_process_and_another_one_goes_on)
{
	struct sandbox *sandbox = sandbox_new();
	const char *path = tmp_path("short");
	char note[SANDBOX_NOTE_BYTES];
	struct elf_index *index = NULL;
	struct elf_file file, self;
	struct err err;

	make_short(path);
	assert_int_equal(elf_file_open_path(path, &file, NULL), 0);
	assert_int_equal(truncate(path, 4096), 0);
	assert_int_equal(sandbox_index(sandbox, &file, true, &index, note, &err), ERR_FORMAT);
	assert_string_equal(err.text, SHORTER);
	elf_file_close(&file);
	open_self(&self);
	assert_int_equal(sandbox_index(sandbox, &self, true, &index, note, NULL), 0);
	elf_index_free(index);
	elf_file_close(&self);
	sandbox_free(sandbox);
}

TEST(one_that_was_killed_at_rest_is_replaced_before_the_next_request)
{
	struct sandbox *sandbox = sandbox_new();
	char path[64];
	struct buf children = {0};
	unsigned i;
	pid_t pid;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", (int)getpid());
	for (i = 0; i < 3; i++) {
		assert_readable(sandbox, "_ZN3foo3barEv", 1, "foo::bar",
				sizeof("_ZN3foo3barEv"));
		buf_reset(&children);
		assert_int_equal(os_load(path, 100, &children, NULL), 0);
		pid = atoi(buf_text(&children));
		assert_int_equal(kill(pid, SIGKILL), 0);
		/* Until it is dead, but not yet collected. */
		assert_int_equal(waitid(P_PID, (id_t)pid, NULL, WEXITED | WNOWAIT), 0);
	}
	buf_free(&children);
	sandbox_free(sandbox);
}

/*
 * Stand between the owner and an honest process, for one request: turn one byte of its answer over,
 * or return false when it has the text that it dies of.
 */
static bool pass_on(size_t at, const char *dies)
{
	static uint8_t answer[ANSWER_MAX];
	uint8_t request[200];
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct iovec part = {request, sizeof(request)};
	struct msghdr m = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = &control,
			   .msg_controllen = sizeof(control)};
	size_t n = 0;
	ssize_t got;
	int fds[2];

	got = recvmsg(0, &m, 0);
	if (got <= 0 || (dies && memmem(request, (size_t)got, dies, strlen(dies))) ||
	    socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		return false;
	if (fork() == 0) {
		dup2(fds[1], 0);
		close(fds[0]);
		_exit(sandbox_serve());
	}
	close(fds[1]);
	part.iov_len = (size_t)got;
	sendmsg(fds[0], &m, 0);
	shutdown(fds[0], SHUT_WR);
	while (n < sizeof(answer) && (got = recv(fds[0], answer + n, sizeof(answer) - n, 0)) > 0)
		n += (size_t)got;
	if (at < n)
		answer[at] = (uint8_t)~answer[at];
	send(0, answer, n, MSG_NOSIGNAL);
	close(fds[0]);
	return true;
}

static int lie(const char *at)
{
	pass_on(strtoul(at, NULL, 10), NULL);
	return 0;
}

static int die(const char *of)
{
	while (pass_on(SIZE_MAX, of))
		;
	return 1;
}

/* What it says may be wrong, but no access leaves what was sent: the sanitizers see to that. */
TEST(an_answer_with_any_byte_changed_is_an_error_or_can_be_used)
{
	struct sandbox *sandbox = sandbox_new();
	unsigned at, refused = 0, used = 0;
	struct elf_file file;

	open_self(&file);
	for (at = 0; at < 200; at++) {
		char note[SANDBOX_NOTE_BYTES], text[16];
		struct elf_index *index = NULL;
		struct err err = {0};
		uint32_t i;
		int rc;

		snprintf(text, sizeof(text), "%u", at < 100 ? at : at * 53);
		setenv(LIE, text, 1);
		rc = sandbox_index(sandbox, &file, true, &index, note, &err);
		refused += rc != 0;
		used += rc == 0;
		assert_true(!rc || err.text[0]);
		for (i = 0; !rc && i < index->nentries; i++)
			name_of(index, &file, index->base + index->entries[i].start);
		elf_index_free(index);
	}
	unsetenv(LIE);
	assert_true(refused > 10);
	assert_true(used > 10);
	elf_file_close(&file);
	sandbox_free(sandbox);
}

TEST(a_perf_map_with_any_byte_changed_is_an_error_or_can_be_used)
{
	struct sandbox *sandbox = sandbox_new();
	unsigned at, refused = 0, used = 0;
	struct os_file *file = write_map();

	for (at = 0; at < 430; at += at < 24 || at > 270 ? 1 : 10) {
		struct perfmap_function f;
		struct perfmap *map = NULL;
		struct err err = {0};
		char text[16];
		uint32_t i;
		int rc;

		snprintf(text, sizeof(text), "%u", at);
		setenv(LIE, text, 1);
		rc = sandbox_perfmap(sandbox, file, sizeof(map_text) - 1, &map, &err);
		refused += rc != 0;
		used += rc == 0;
		assert_true(!rc || err.text[0]);
		for (i = 0; !rc && i < map->nranges; i++)
			if (perfmap_find(map, map->ranges[i].start, &f))
				assert_true(strlen(f.name) <= FUNCTION_NAME_MAX);
		perfmap_free(map);
	}
	unsetenv(LIE);
	assert_true(refused > 10);
	assert_true(used > 10);
	os_close(file);
	sandbox_free(sandbox);
}

TEST(a_perf_map_whose_ranges_overlap_or_whose_names_lie_outside_is_not_sound)
{
	struct perfmap_entry entries[] = {{16, 8, 0}, {32, 8, 3}};
	struct perfmap_range ranges[] = {{16, 8, 0}, {32, 8, 1}};
	struct perfmap map = {.text = {.data = (char[]){"ab\0cd"}, .len = 6}, .nentries = 2,
			      .entries = entries, .ranges = ranges, .nranges = 2};

	assert_true(perfmap_is_sound(&map));
	entries[1].name = 6;
	assert_false(perfmap_is_sound(&map));
	entries[1].name = 5;
	ranges[1].entry = 2;
	assert_false(perfmap_is_sound(&map));
	ranges[1] = (struct perfmap_range){23, 8, 1};
	assert_false(perfmap_is_sound(&map));
	ranges[1] = (struct perfmap_range){UINT64_MAX - 6, 8, 1};
	assert_false(perfmap_is_sound(&map));
	ranges[1].start--;
	assert_false(perfmap_is_sound(&map));
	ranges[1].start--;
	assert_true(perfmap_is_sound(&map));
	map.text.len = 5;                    /* the last name does not end */
	assert_false(perfmap_is_sound(&map));
}

TEST(an_index_that_goes_backwards_or_whose_names_lie_outside_is_not_sound)
{
	struct elf_entry entries[] = {{16, 4, 0}, {32, 4, 9}};
	struct elf_index index = {.base = 4096, .entries = entries, .nentries = 2,
				  .strings = {{.offset = 100, .size = 10}}};

	assert_true(sandbox_index_is_sound(&index));
	entries[1].name = 10;
	assert_false(sandbox_index_is_sound(&index));
	entries[1].name = 9 | ELF_NAME_IN_DYNSYM;
	assert_false(sandbox_index_is_sound(&index));
	entries[1] = (struct elf_entry){16, 4, 9};
	assert_false(sandbox_index_is_sound(&index));
	entries[1].start = 17;
	assert_true(sandbox_index_is_sound(&index));
	index.strings[0].offset = ELF_FILE_MAX_BYTES + 1;
	assert_false(sandbox_index_is_sound(&index));
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_index_of_the_sandbox_is_the_one_made_here),
		cmocka_unit_test(the_perf_map_of_the_sandbox_is_the_one_made_here),
		cmocka_unit_test(a_perf_map_with_any_byte_changed_is_an_error_or_can_be_used),
		cmocka_unit_test(
			a_perf_map_whose_ranges_overlap_or_whose_names_lie_outside_is_not_sound),
		cmocka_unit_test(names_are_made_readable_as_here),
		cmocka_unit_test(the_answer_to_many_long_names_comes_whole),
		cmocka_unit_test(a_name_that_ends_the_process_costs_only_itself),
		cmocka_unit_test(
			a_file_that_becomes_shorter_ends_the_process_and_another_one_goes_on),
		cmocka_unit_test(one_that_was_killed_at_rest_is_replaced_before_the_next_request),
		cmocka_unit_test(an_answer_with_any_byte_changed_is_an_error_or_can_be_used),
		cmocka_unit_test(
			an_index_that_goes_backwards_or_whose_names_lie_outside_is_not_sound),
	};

	if (argc == 2 && !strcmp(argv[1], SANDBOX_WORD))
		return getenv(LIE)    ? lie(getenv(LIE))
		       : getenv(DIES) ? die(getenv(DIES))
				      : sandbox_serve();
	return cmocka_run_group_tests(tests, NULL, NULL);
}
