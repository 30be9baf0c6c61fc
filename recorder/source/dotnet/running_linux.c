#include "source/dotnet/running.h"

#include "source/dotnet/find_linux.h"
#include "source/host/proc_pid_linux.h"

struct report {
	dotnet_running_one *one;
	void *ctx;
};

static void report_program(void *ctx, const struct dotnet_socket *socket)
{
	const struct report *to = ctx;
	struct proc_names p;

	if (proc_names_read(socket->pid, &p))
		to->one(to->ctx, socket->pid, &p.is);
}

bool dotnet_running(dotnet_running_one *one, void *ctx)
{
	struct report to = {one, ctx};

	dotnet_find_all(report_program, &to);
	return true;
}
