#include "source/dotnet/running.h"

#include "source/dotnet/find_linux.h"
#include "source/host/proc_pid_linux.h"

struct teller {
	dotnet_running_one *one;
	void *ctx;
};

static void tell(void *ctx, const struct dotnet_socket *socket)
{
	const struct teller *t = ctx;
	struct proc_names p;

	if (proc_names_read(socket->pid, &p))
		t->one(t->ctx, socket->pid, &p.is);
}

bool dotnet_running(dotnet_running_one *one, void *ctx)
{
	struct teller t = {one, ctx};

	dotnet_find_all(tell, &t);
	return true;
}
