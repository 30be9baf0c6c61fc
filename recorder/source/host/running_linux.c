#include "source/host/running.h"

#include "source/host/proc_pid_linux.h"

#include <dirent.h>
#include <stdlib.h>

bool running_each(running_one *one, void *ctx)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	struct proc_names p;

	while (proc && (entry = readdir(proc)) != NULL) {
		uint32_t pid = (uint32_t)strtoul(entry->d_name, NULL, 10);

		if (pid && proc_names_read(pid, &p))
			one(ctx, pid, &p.is);
	}
	if (proc)
		closedir(proc);
	return proc != NULL;
}
