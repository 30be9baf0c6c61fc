/* Finding a process by what people call it: the same on both hosts. */
#include "source/stopped/thread_stacks.h"

#include "base/os.h"
#include "source/host/running.h"

struct finding {
	const char *name;
	uint32_t *pids, n, max;
};

/* This very process is found by its number only. */
static void find_one(void *ctx, uint32_t pid, const struct process_names *names)
{
	struct finding *f = ctx;

	if (!f->name) {
		if (f->n < f->max && pid != os_pid() && names->file && *names->file)
			f->pids[f->n++] = pid;
		return;
	}
	if (f->n < f->max && process_names_mean(names, pid, f->name) &&
	    (pid != os_pid() || !process_names_match(names, f->name)))
		f->pids[f->n++] = pid;
}

uint32_t thread_stacks_find(const char *name, uint32_t *pids, uint32_t max)
{
	struct finding f = {.name = name, .pids = pids, .max = max};

	running_each(find_one, &f);
	return f.n;
}
