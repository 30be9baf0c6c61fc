/*
 * Namespaces (containers) whose file system does not answer, or did not lately: what the threads that look into
 * them, and are left behind when they are held up, tell the one that goes on (ns_tmp_linux.c).
 *
 * Any thread may call. A namespace is left out while a thread is held up in it, and NS_HUNG_SPARED_NS longer. At
 * most NS_HUNG_MAX threads are held up at a time. Freed when the last of its users lets go: a thread that is left
 * behind holds it until it comes back, which may be after its source has closed.
 */
#ifndef SOURCE_NS_HUNG_LINUX_H
#define SOURCE_NS_HUNG_LINUX_H

#include "base/os.h"

#include <stdbool.h>
#include <stdint.h>

#define NS_HUNG_MAX 4u
#define NS_HUNG_SPARED_NS (60 * NS_PER_SEC)  /* one that hung and answers again */

struct ns_group {                            /* namespaces that processes share */
	uint64_t mounts, pids;
	uint32_t some_pid;                   /* one of them */
};

bool ns_group_is(const struct ns_group *a, uint64_t mounts, uint64_t pids);

struct ns_hung;

struct ns_hung *ns_hung_new(void);           /* with one user; NULL = no memory */
struct ns_hung *ns_hung_use(struct ns_hung *h);      /* one user more; returns h */
void ns_hung_drop(struct ns_hung *h);        /* one less; NULL allowed */

/* A thread is held up there now. With NS_HUNG_MAX told, one that answers again makes room. */
void ns_hung_add(struct ns_hung *h, const struct ns_group *group);
/* It is no more; told by that thread. */
void ns_hung_came_back(struct ns_hung *h, const struct ns_group *group, uint64_t now_ns);
/* Whether to leave these out. */
bool ns_hung_has(struct ns_hung *h, uint64_t mounts, uint64_t pids, uint64_t now_ns);
uint32_t ns_hung_threads(struct ns_hung *h);         /* that are held up now */
uint32_t ns_hung_back(struct ns_hung *h);            /* that came back so far; never waits */

#endif
