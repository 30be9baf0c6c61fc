#include "source/host/busy.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <windows.h>
#include <winternl.h>

#define CPUS_MAX 1024u
#define GROUP_CPUS_MAX 64u                   /* the most that Windows puts in a group */
#define TICK_NS 100u

/* Declared here: mingw-w64 lacks the Ex call and hides the fields after the third. */
struct times {                               /* SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION */
	int64_t idle, kernel, user, deferred, interrupt;
	uint32_t ninterrupts;
};

_Static_assert(sizeof(struct times) == sizeof(SYSTEM_PROCESSOR_PERFORMANCE_INFORMATION),
	       "times of a CPU");

NTSTATUS NTAPI NtQuerySystemInformationEx(ULONG class, PVOID in, ULONG nin, PVOID out, ULONG nout,
					  PULONG n);

struct busy {
	bool started;
	uint64_t before[CPUS_MAX];           /* busy ticks until the last call */
};

struct busy *busy_open(void)
{
	return calloc(1, sizeof(struct busy));
}

void busy_close(struct busy *b)
{
	free(b);
}

/* How many CPUs the group has; 0 = not known. */
static unsigned read_group(USHORT group, unsigned ngroups, struct times out[GROUP_CPUS_MAX])
{
	ULONG n = 0, most = GROUP_CPUS_MAX * (ULONG)sizeof(*out);
	NTSTATUS status;

	status = ngroups == 1 ? NtQuerySystemInformation(SystemProcessorPerformanceInformation, out,
							 most, &n)
			      : NtQuerySystemInformationEx(SystemProcessorPerformanceInformation,
							   &group, sizeof(group), out, most, &n);
	return status < 0 || n > most ? 0 : (unsigned)(n / sizeof(*out));
}

void busy_read(struct busy *b, void (*each)(void *ctx, unsigned cpu, uint64_t busy_ns), void *ctx)
{
	unsigned ngroups = GetActiveProcessorGroupCount(), base = 0, n, i;
	struct times times[GROUP_CPUS_MAX];
	USHORT group;

	for (group = 0; group < ngroups; group++) {
		n = read_group(group, ngroups, times);
		for (i = 0; i < n && base + i < CPUS_MAX; i++) {
			uint64_t ticks =
				(uint64_t)(times[i].kernel + times[i].user - times[i].idle);
			uint64_t *before = &b->before[base + i];

			if (b->started && ticks > *before)
				each(ctx, base + i, (ticks - *before) * TICK_NS);
			*before = ticks;
		}
		base += GetMaximumProcessorCount(group);
	}
	b->started = true;
}
