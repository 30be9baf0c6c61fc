/*
 * Mount namespaces (containers) whose file system does not answer, or did not lately. Threads that
 * look into namespaces are left behind when they hang there; by this list they tell the thread that
 * takes over (ns_tmp_linux.c).
 *
 * Any thread may call. A namespace is skipped while a thread hangs in it, and NS_HUNG_SPARED_NS
 * longer. At most NS_HUNG_MAX threads hang at a time. The list is freed with its last user: a
 * thread that was left behind keeps it until it comes back, which may be after its source has
 * closed.
 */
#pragma once

#include "base/os.h"

#include <stdbool.h>
#include <stdint.h>

#define NS_HUNG_MAX 4u
#define NS_HUNG_SPARED_NS (60 * NS_PER_SEC)  /* skipped for so long after it answers again */

struct ns_group {                            /* namespaces that processes share */
	uint64_t mounts, pids;
	uint32_t some_pid;                   /* one of them */
};

bool ns_group_is(const struct ns_group *a, uint64_t mounts, uint64_t pids);

struct ns_hung;

struct ns_hung *ns_hung_new(void);           /* has one user; NULL = no memory */
struct ns_hung *ns_hung_use(struct ns_hung *h);      /* adds a user; returns h */
void ns_hung_drop(struct ns_hung *h);        /* removes a user; NULL allowed */

/* A thread hangs there now. When NS_HUNG_MAX are listed, one that answers again makes room. */
void ns_hung_add(struct ns_hung *h, const struct ns_group *group);
/* That thread no longer hangs; called by the thread itself. */
void ns_hung_came_back(struct ns_hung *h, const struct ns_group *group, uint64_t now_ns);
/* Whether to skip this namespace. */
bool ns_hung_has(struct ns_hung *h, uint64_t mounts, uint64_t pids, uint64_t now_ns);
uint32_t ns_hung_threads(struct ns_hung *h);         /* that hang now */
uint32_t ns_hung_back(struct ns_hung *h);            /* that have come back; never waits */
