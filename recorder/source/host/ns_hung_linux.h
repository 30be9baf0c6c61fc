/*
 * Mount namespaces (containers) whose file system does not answer, or did not lately. A namespace
 * is skipped while a thread hangs in it, and NS_HUNG_SPARED_NS longer. At most NS_HUNG_MAX threads
 * hang at a time. One thread at a time.
 */
#pragma once

#include "base/os.h"

#define NS_HUNG_MAX 4u
#define NS_HUNG_SPARED_NS (60 * NS_PER_SEC)  /* skipped for so long after it answers again */

struct ns_group {                            /* namespaces that processes share */
	uint64_t mounts, pids;
	uint32_t some_pid;                   /* one of them */
};

bool ns_group_is(const struct ns_group *a, uint64_t mounts, uint64_t pids);

struct ns_hung {                             /* starts as {0} */
	struct {
		struct ns_group group;
		uint64_t until_ns;           /* skipped until then; 0 = its thread still hangs */
	} all[NS_HUNG_MAX];
	uint32_t n;
};

/* A thread hangs there now. When NS_HUNG_MAX are listed, one that answers again makes room. */
void ns_hung_add(struct ns_hung *h, const struct ns_group *group);
/* That thread no longer hangs. */
void ns_hung_came_back(struct ns_hung *h, const struct ns_group *group, uint64_t now_ns);
/* Whether to skip this namespace. */
bool ns_hung_has(struct ns_hung *h, uint64_t mounts, uint64_t pids, uint64_t now_ns);
