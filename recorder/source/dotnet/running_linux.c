#include "source/dotnet/running.h"

#include "base/text.h"
#include "source/dotnet/find_linux.h"

#include <stdio.h>
#include <unistd.h>

struct teller {
	dotnet_running_one *one;
	void *ctx;
};

static void tell(void *ctx, const struct dotnet_socket *socket)
{
	const struct teller *t = ctx;
	char path[40], target[4096];
	ssize_t n;

	snprintf(path, sizeof(path), "/proc/%u/exe", socket->pid);
	n = readlink(path, target, sizeof(target) - 1);
	target[n > 0 ? n : 0] = '\0';
	t->one(t->ctx, socket->pid, text_base_name(target));
}

bool dotnet_running(dotnet_running_one *one, void *ctx)
{
	struct teller t = {one, ctx};

	dotnet_find_all(tell, &t);
	return true;
}
