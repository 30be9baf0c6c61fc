#include "source/dotnet/running.h"

#include "source/dotnet/find_linux.h"
#include "source/host/proc_pid_linux.h"

struct visitor {
	dotnet_running_one *one;
	void *ctx;
};

static void visit(void *ctx, const struct dotnet_socket *socket)
{
	const struct visitor *t = ctx;
	struct proc_names p;

	if (proc_names_read(socket->pid, &p))
		t->one(t->ctx, socket->pid, &p.is);
}

bool dotnet_running(dotnet_running_one *one, void *ctx)
{
	struct visitor t = {one, ctx};

	dotnet_find_all(visit, &t);
	return true;
}
