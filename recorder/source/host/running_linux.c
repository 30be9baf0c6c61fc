#include "source/host/running.h"

#include "source/host/proc_pid_linux.h"

struct listing {
	running_one *one;
	void *ctx;
};

static bool tell_names(void *ctx, uint32_t pid)
{
	struct listing *l = ctx;
	struct proc_names p;

	if (proc_names_read(pid, &p))
		l->one(l->ctx, pid, &p.is);
	return true;
}

bool running_each(running_one *one, void *ctx)
{
	return proc_each("/proc", tell_names, &(struct listing){one, ctx});
}
