#include "source/host/pagemap_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define PAGE_KB 4u
#define HUGE 512u
#define STRETCH_MIN 1024u                    /* pages: 4 MB */
#define STRETCH_MAX 32768u
#define STRETCH_WEIGHTS 16u                  /* faults in a stretch, for chance to even out */
#define ENTRY_PRESENT (1ULL << 63)
#define ENTRY_SWAPPED (1ULL << 62)
#define ENTRY_FILE (1ULL << 61)              /* of a file, or shared */

/* include/uapi/linux/fs.h, since 6.7; repeated for older headers. */
struct scan_region {
	uint64_t start, end, categories;
};

struct scan_arg {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
		category_mask, category_anyof_mask, return_mask;
};

#define SCAN _IOWR('f', 16, struct scan_arg)
#define SCAN_IS_PRESENT (1u << 3)
#define SCAN_IS_HUGE (1u << 6)

static bool is_anonymous(uint64_t entry)
{
	return (entry & (ENTRY_PRESENT | ENTRY_SWAPPED)) && !(entry & ENTRY_FILE);
}

/* Whether one page table entry maps the 2 MB around a page. Older kernels do not tell. */
static bool is_huge(int fd, uint64_t page)
{
	struct scan_region region = {0};
	struct scan_arg arg = {
		.size = sizeof(arg), .start = page / HUGE * HUGE * 4096,
		.vec = (uint64_t)(uintptr_t)&region, .vec_len = 1,
		.category_mask = SCAN_IS_PRESENT | SCAN_IS_HUGE,
		.return_mask = SCAN_IS_HUGE,
	};

	arg.end = arg.start + (uint64_t)HUGE * 4096;
	return ioctl(fd, SCAN, &arg) == 1 && region.start == arg.start && region.end == arg.end;
}

/* By stretch, in it the newest first. */
struct order {
	uint64_t stretch;
};

static int compare(const void *a, const void *b, void *ctx)
{
	const struct seen_page *pa = a, *pb = b;
	const struct order *o = ctx;
	int by = compare_u64(pa->number / o->stretch, pb->number / o->stretch);

	return by ? by : compare_u64(pb->time_ns, pa->time_ns);
}

static int by_number(const void *a, const void *b)
{
	const struct seen_page *pa = a, *pb = b;
	int by = compare_u64(pa->number, pb->number);

	return by ? by : compare_u64(pb->time_ns, pa->time_ns);
}

/* Of several faults on a page, the last one counts. */
static void leave_last(struct seen_page *pages, uint32_t n)
{
	uint32_t i;

	qsort(pages, n, sizeof(*pages), by_number);
	for (i = 1; i < n; i++)
		pages[i].gone = pages[i].number == pages[i - 1].number;
}

/* Are all pages of the 2 MB there? Only then it may be one huge page. */
static bool is_whole(const uint64_t *entries, uint64_t stretch, uint64_t at)
{
	uint64_t i, first = at / HUGE * HUGE;

	for (i = first; i < first + HUGE && i < stretch && is_anonymous(entries[i]); i++)
		;
	return i == first + HUGE;
}

/* n pages of one stretch, whose entries were read. */
static void look_at_stretch(int fd, const uint64_t *entries, uint64_t stretch,
			    struct seen_page *pages, uint32_t n)
{
	uint64_t resident = 0, used = 0, i;

	for (i = 0; i < stretch; i++)
		resident += is_anonymous(entries[i]);
	for (i = 0; i < n; i++) {
		struct seen_page *p = &pages[i];
		uint64_t at = p->number % stretch;

		if (!p->gone && is_anonymous(entries[at]) && p->fresh)
			p->huge = is_whole(entries, stretch, at) && is_huge(fd, p->number);
		p->gone |= !is_anonymous(entries[at]) || used >= resident + resident / 4;
		used += p->gone ? 0 : (uint64_t)p->weight * (p->huge ? HUGE : 1);
	}
}

static uint64_t stretch_for(const struct seen_page *pages, uint32_t n)
{
	uint64_t most = 0, stretch = STRETCH_MIN;
	uint32_t i;

	for (i = 0; i < n; i++)
		most = pages[i].weight > most ? pages[i].weight : most;
	while (stretch < STRETCH_MAX && stretch < most * STRETCH_WEIGHTS)
		stretch *= 2;
	return stretch;
}

static bool look(int fd, struct seen_page *pages, uint32_t n, uint64_t *entries, uint64_t stretch)
{
	uint32_t i, j;

	for (i = 0; i < n; i = j) {
		uint64_t number = pages[i].number / stretch;
		ssize_t got = pread(fd, entries, stretch * 8, (off_t)(number * stretch * 8));
		uint64_t k;

		if (got <= 0)
			return false;
		for (k = (uint64_t)got / 8; k < stretch; k++)
			entries[k] = 0;      /* behind the last address */
		for (j = i; j < n && pages[j].number / stretch == number; j++)
			;
		look_at_stretch(fd, entries, stretch, pages + i, j - i);
	}
	return true;
}

void pagemap_look(uint32_t pid, struct seen_page *pages, uint32_t n, struct seen_memory *out)
{
	uint64_t began_ns = os_now_ns(), stretch = stretch_for(pages, n);
	struct order order = {stretch};
	uint64_t *entries = malloc(stretch * 8);
	char path[40];
	int fd;

	*out = (struct seen_memory){0};
	snprintf(path, sizeof(path), "/proc/%u/pagemap", pid);
	fd = entries ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		leave_last(pages, n);
		qsort_r(pages, n, sizeof(*pages), compare, &order);
		out->read = look(fd, pages, n, entries, stretch);
		close(fd);
	}
	free(entries);
	if (out->read)
		pagemap_sizes(pid, &out->anon_kb, &out->rss_kb);
	out->took_ns = os_now_ns() - began_ns;
}

bool pagemap_sizes(uint32_t pid, uint64_t *anon_kb, uint64_t *rss_kb)
{
	struct buf text = {0};
	double v[3] = {0};
	struct text rest, word;
	unsigned i = 0;

	if (proc_pid_load(pid, "statm", 256, &text))
		for (rest = text_of(buf_text(&text), text.len);
		     i < 3 && text_word(&rest, &word) && text_number(word, &v[i]); i++)
			;
	buf_free(&text);
	if (i < 3 || v[1] <= 0)
		return false;
	*rss_kb = (uint64_t)v[1] * PAGE_KB;
	*anon_kb = v[2] < v[1] ? (uint64_t)(v[1] - v[2]) * PAGE_KB : 0;
	return true;
}
