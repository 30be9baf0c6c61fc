#include "source/dump/dump.h"

#include "base/array.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int by_tid(const void *a, const void *b)
{
	return compare_u64(((const struct dump_thread *)a)->tid,
			   ((const struct dump_thread *)b)->tid);
}

static int by_start(const void *a, const void *b)
{
	return compare_u64(((const struct dump_range *)a)->start,
			   ((const struct dump_range *)b)->start);
}

static int module_by_start(const void *a, const void *b)
{
	return compare_u64(((const struct dump_module *)a)->start,
			   ((const struct dump_module *)b)->start);
}

void dump_sort(struct dump *d)
{
	if (d->nranges)
		qsort(d->ranges, d->nranges, sizeof(*d->ranges), by_start);
	if (d->nregions)
		qsort(d->regions, d->nregions, sizeof(*d->regions), by_start);
	if (d->nmodules)
		qsort(d->modules, d->nmodules, sizeof(*d->modules), module_by_start);
}

int dump_settle(struct dump *d, struct err *err)
{
	if (!d->nthreads)
		return err_set(err, ERR_FORMAT, "it has no thread");
	if (d->nthreads > 2)
		qsort(d->threads + 1, d->nthreads - 1, sizeof(*d->threads), by_tid);
	dump_sort(d);
	return 0;
}

void dump_free(struct dump *d)
{
	uint32_t i;

	if (!d)
		return;
	for (i = 0; i < d->nthreads; i++)
		free(d->threads[i].name);
	free(d->threads);
	free(d->ranges);
	free(d->modules);
	free(d->regions);
	free(d->names);
	free(d);
}

/*
 * How many of n places, of so many bytes each, begin at or before an address. They are sorted by
 * their start, which is their first member.
 */
static uint32_t begun_at(const void *places, uint32_t n, size_t bytes, uint64_t address)
{
	uint32_t low = 0, high = n, middle;
	uint64_t start;

	while (low < high) {
		middle = low + (high - low) / 2;
		memcpy(&start, (const char *)places + middle * bytes, sizeof(start));
		if (start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct dump_range *dump_range_at(const struct dump *d, uint64_t address)
{
	uint32_t n = begun_at(d->ranges, d->nranges, sizeof(*d->ranges), address);

	return n && address < d->ranges[n - 1].end ? &d->ranges[n - 1] : NULL;
}

const struct dump_range *dump_region_at(const struct dump *d, uint64_t address)
{
	uint32_t n = begun_at(d->regions, d->nregions, sizeof(*d->regions), address);

	return n && address < d->regions[n - 1].end ? &d->regions[n - 1] : NULL;
}

const struct dump_module *dump_module_at(const struct dump *d, uint64_t address)
{
	uint32_t n = begun_at(d->modules, d->nmodules, sizeof(*d->modules), address);

	return n && address < d->modules[n - 1].end ? &d->modules[n - 1] : NULL;
}

size_t dump_memory(const struct dump *d, uint64_t address, void *to, size_t n)
{
	size_t done = 0;

	while (done < n) {
		const struct dump_range *r = dump_range_at(d, address + done);
		uint64_t at = r ? address + done - r->start : 0;
		size_t piece = n - done;

		if (!r || at >= r->nbytes)
			break;
		if (piece > r->nbytes - at)
			piece = (size_t)(r->nbytes - at);
		if (bytes_read(&d->in, r->offset + at, (uint8_t *)to + done, piece, "memory", NULL))
			break;
		done += piece;
	}
	return done;
}

/* ---- words ----------------------------------------------------------------------------------- */

/* Source: signal(7), x86; ntstatus.h. */
static const struct {
	uint32_t number;
	const char *name;
} signals[] = {
	{1, "SIGHUP"}, {2, "SIGINT"}, {3, "SIGQUIT"}, {4, "SIGILL"}, {5, "SIGTRAP"},
	{6, "SIGABRT"}, {7, "SIGBUS"}, {8, "SIGFPE"}, {9, "SIGKILL"}, {10, "SIGUSR1"},
	{11, "SIGSEGV"}, {12, "SIGUSR2"}, {13, "SIGPIPE"}, {14, "SIGALRM"}, {15, "SIGTERM"},
	{16, "SIGSTKFLT"}, {19, "SIGSTOP"}, {24, "SIGXCPU"}, {25, "SIGXFSZ"}, {30, "SIGPWR"},
	{31, "SIGSYS"},
}, exceptions[] = {
	{0x80000003, "breakpoint"}, {0x80000004, "single step"}, {0xc0000005, "access violation"},
	{0xc0000006, "in-page error"}, {0xc000001d, "illegal instruction"},
	{0xc0000025, "noncontinuable exception"}, {0xc0000094, "integer division by zero"},
	{0xc0000095, "integer overflow"}, {0xc0000096, "privileged instruction"},
	{0xc00000fd, "stack overflow"}, {0xc0000374, "heap corruption"},
	{0xc0000409, "stack buffer overrun"}, {0xc000008e, "floating-point division by zero"},
	{0xe06d7363, "C++ exception"}, {0xe0434352, ".NET exception"},
};

void dump_signal_text(const struct dump *d, char out[DUMP_SIGNAL_BYTES])
{
	size_t i;

	snprintf(out, DUMP_SIGNAL_BYTES, d->windows ? "exception 0x%08X" : "signal %u",
		 (unsigned)d->signal);
	for (i = 0; d->windows && i < COUNT_OF(exceptions); i++)
		if (exceptions[i].number == d->signal)
			snprintf(out, DUMP_SIGNAL_BYTES, "%s", exceptions[i].name);
	for (i = 0; !d->windows && i < COUNT_OF(signals); i++)
		if (signals[i].number == d->signal)
			snprintf(out, DUMP_SIGNAL_BYTES, "%s", signals[i].name);
}

/* Source: sigaction(2); EXCEPTION_RECORD. */
const char *dump_fault_text(const struct dump *d)
{
	if (d->windows)
		return !d->has_fault_address ? NULL
		       : d->signal_code == 0 ? "reading"
		       : d->signal_code == 1 ? "writing"
		       : d->signal_code == 8 ? "executing" : NULL;
	if (d->signal == 11 && d->signal_code == 1)
		return "not mapped";
	if (d->signal == 11 && d->signal_code == 2)
		return "no permission";
	if (d->signal == 11 && d->signal_code == 128)
		return "not an address";
	if (d->signal == 8 && d->signal_code == 1)
		return "integer division by zero";
	if (d->signal == 7 && d->signal_code == 2)
		return "beyond the end of the mapped file";
	return d->signal_code <= 0 ? "sent by a process" : NULL;
}
