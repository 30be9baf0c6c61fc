/* What a mapping is, by its path: a file, or code made at run time. See state_linux.h. */
#include "base/table.h"
#include "source/host/maps.h"
#include "source/perf/state_linux.h"

#include <string.h>

size_t perf_path_length(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), suffix = sizeof(deleted) - 1;

	return n > suffix && strcmp(path + n - suffix, deleted) == 0 ? n - suffix : n;
}

const char *perf_mapping_path(const char *path, uint64_t start)
{
	return strcmp(path, "[vdso]") == 0 && start < (uint64_t)1 << 32 ? "[vdso32]" : path;
}

void perf_mapping_kind(const char *path, const struct perf_process *process, struct object_key *key)
{
	key->kind = OBJECT_ELF;
	key->path = path;
	if (strncmp(path, "[vdso", 5) == 0)
		return;
	if (!maps_path_is_run_time(path))
		return;
	memset(key, 0, sizeof(*key));
	key->kind = OBJECT_JIT;
	key->pid = process->pid;
	/* A pid may be reused, and exec starts anew: earlier names of an address are void then. */
	key->epoch = (uint32_t)hash_pair(process->start_ns, process->exec);
	key->path = "[jit]";
}
