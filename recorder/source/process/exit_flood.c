#include "source/process/exit_flood.h"

#include "base/os.h"

bool exit_flood_takes(struct exit_flood *f, unsigned ncpus, uint32_t parent, uint64_t time_ns)
{
	uint32_t *n = &f->of_parent[parent % EXIT_FLOOD_PARENTS], max = EXIT_FLOOD_PER_CPU * ncpus;

	/* CPUs report out of order: one of the second before counts in this one. */
	if (time_ns / NS_PER_SEC > f->second)
		*f = (struct exit_flood){.second = time_ns / NS_PER_SEC};
	if (f->taken >= max || *n >= max / 2)
		return false;
	f->taken++;
	++*n;
	return true;
}
