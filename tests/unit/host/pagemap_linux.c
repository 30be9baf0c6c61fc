/* What pagemap says of this process's own pages. */
#include "source/host/pagemap_linux.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PAGE 4096u
#define MB ((size_t)1 << 20)

static char *map(size_t bytes)
{
	char *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

/* One page in `every` of it, as if each stood for that many. */
static uint32_t pages_of(const char *at, size_t bytes, unsigned every, uint64_t time_ns,
			 struct seen_page *out)
{
	uint32_t n = 0;
	size_t i;

	for (i = 0; i < bytes / PAGE; i += every)
		out[n++] = (struct seen_page){.number = (uintptr_t)at / PAGE + i, .at = (uint32_t)i,
					      .time_ns = time_ns, .weight = every, .fresh = true};
	return n;
}

static uint32_t there(const struct seen_page *pages, uint32_t n)
{
	uint32_t i, count = 0;

	for (i = 0; i < n; i++)
		count += !pages[i].gone;
	return count;
}

TEST(pages_that_were_given_back_or_never_touched_are_gone)
{
	char *at = map(4 * MB);
	struct seen_page pages[64];
	struct seen_memory seen;
	uint32_t n, i;

	madvise(at, 4 * MB, MADV_NOHUGEPAGE);
	memset(at, 1, 2 * MB);
	madvise(at, MB, MADV_DONTNEED);
	n = pages_of(at, 4 * MB, 16, 1, pages);
	pagemap_look((uint32_t)getpid(), pages, n, &seen);
	assert_true(seen.read);
	assert_true(seen.anon_kb >= 1024 && seen.rss_kb >= seen.anon_kb);
	assert_int_equal(there(pages, n), 16);
	for (i = 0; i < n; i++)
		assert_int_equal(pages[i].gone, pages[i].at < 256 || pages[i].at >= 512);
	munmap(at, 4 * MB);
}

/* Two generations in the same 4 MB, of which only one can be resident: the older has gone. */
TEST(no_stretch_holds_more_than_is_resident)
{
	char *at = map(8 * MB);
	struct seen_page pages[256];
	struct seen_memory seen;
	uint32_t n, i, old = 0, fresh = 0;

	madvise(at, 8 * MB, MADV_NOHUGEPAGE);
	at = (char *)(((uintptr_t)at + 4 * MB - 1) / (4 * MB) * (4 * MB));
	memset(at, 1, 4 * MB);
	n = pages_of(at, 4 * MB, 16, 1, pages);
	n += pages_of(at + PAGE, 4 * MB, 16, 2, pages + n);
	pagemap_look((uint32_t)getpid(), pages, n, &seen);
	for (i = 0; i < n; i++) {
		old += !pages[i].gone && pages[i].time_ns == 1;
		fresh += !pages[i].gone && pages[i].time_ns == 2;
	}
	assert_int_equal(fresh, 64);
	assert_int_equal(old, 16);                   /* a quarter, for chance */
}

TEST(file_pages_are_not_growth)
{
	FILE *file = tmpfile();
	struct seen_page page;
	struct seen_memory seen;
	char *at;

	assert_true(file && ftruncate(fileno(file), PAGE) == 0);
	at = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fileno(file), 0);
	assert_true(at != MAP_FAILED && at[0] == 0);
	pages_of(at, PAGE, 1, 1, &page);
	pagemap_look((uint32_t)getpid(), &page, 1, &seen);
	assert_true(seen.read && page.gone);
	munmap(at, PAGE);
	fclose(file);
}

TEST(process_that_does_not_exist_is_not_read)
{
	struct seen_page page = {.number = 1, .weight = 1};
	struct seen_memory seen;
	uint64_t anon, rss;

	pagemap_look(0x3fffffff, &page, 1, &seen);
	assert_false(seen.read);
	assert_false(pagemap_sizes(0x3fffffff, &anon, &rss));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pages_that_were_given_back_or_never_touched_are_gone),
		cmocka_unit_test(no_stretch_holds_more_than_is_resident),
		cmocka_unit_test(file_pages_are_not_growth),
		cmocka_unit_test(process_that_does_not_exist_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
