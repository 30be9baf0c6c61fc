#include "source/host/busy.h"

#include "base/os.h"
#include "source/host/proc_parse.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CPUS_MAX 1024u
#define STAT_ROW_BYTES 224u                  /* the most that a CPU's takes; others stand below */

enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ };     /* columns of a cpu row */

struct busy {
	uint64_t tick_ns;
	bool started;
	int fd;                              /* of /proc/stat, which stays open; -1 = not yet */
	double before[CPUS_MAX];             /* busy ticks until the last call */
	char text[(1 + CPUS_MAX) * STAT_ROW_BYTES];  /* only what is read takes memory */
};

struct busy *busy_open(void)
{
	struct busy *b = calloc(1, sizeof(*b));
	long per_second = sysconf(_SC_CLK_TCK);

	if (!b || per_second <= 0) {
		free(b);
		return NULL;
	}
	b->tick_ns = NS_PER_SEC / (uint64_t)per_second;
	b->fd = -1;
	return b;
}

void busy_close(struct busy *b)
{
	if (b && b->fd >= 0)
		close(b->fd);
	free(b);
}

/* "cpu12" -> 12; the row "cpu" sums up all CPUs and is skipped. */
static bool cpu_number(struct text name, unsigned *out)
{
	struct text digits = {name.at + 3, name.end};
	double number;

	if (name.end - name.at < 4 || memcmp(name.at, "cpu", 3) != 0 ||
	    !text_number(digits, &number) || number >= CPUS_MAX)
		return false;
	*out = (unsigned)number;
	return true;
}

void busy_read(struct busy *b, void (*each)(void *ctx, unsigned cpu, uint64_t busy_ns), void *ctx)
{
	struct proc_row row;
	struct text rest;
	ssize_t n;

	if (b->fd < 0)
		b->fd = open("/proc/stat", O_RDONLY | O_CLOEXEC);
	n = pread(b->fd, b->text, sizeof(b->text), 0);
	if (n <= 0)
		return;
	for (rest = text_of(b->text, (size_t)n); proc_row_next(&rest, &row);) {
		double ticks =
			row.v[USER] + row.v[NICE] + row.v[SYSTEM] + row.v[IRQ] + row.v[SOFTIRQ];
		unsigned cpu;

		if (!cpu_number(row.name, &cpu))
			continue;
		if (b->started && ticks > b->before[cpu])
			each(ctx, cpu, (uint64_t)((ticks - b->before[cpu]) * (double)b->tick_ns));
		b->before[cpu] = ticks;
	}
	b->started = true;
}
