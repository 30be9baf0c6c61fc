#include "source/host/ns_hung_linux.h"

#include <stdatomic.h>
#include <stdlib.h>

struct ns_hung {
	struct os_mutex *lock;               /* guards what follows, except `back` */
	struct hung_one {
		struct ns_group group;
		uint64_t until_ns;           /* skipped until then; 0 = its thread still hangs */
	} all[NS_HUNG_MAX];
	uint32_t n, users;                   /* the last user frees it */
	_Atomic uint32_t back;               /* threads that came back */
};

bool ns_group_is(const struct ns_group *a, uint64_t mounts, uint64_t pids)
{
	return a->mounts == mounts && a->pids == pids;
}

struct ns_hung *ns_hung_new(void)
{
	struct ns_hung *h = calloc(1, sizeof(*h));

	if (h && !(h->lock = os_mutex_new())) {
		free(h);
		h = NULL;
	}
	if (h)
		h->users = 1;
	return h;
}

struct ns_hung *ns_hung_use(struct ns_hung *h)
{
	os_mutex_lock(h->lock);
	h->users++;
	os_mutex_unlock(h->lock);
	return h;
}

void ns_hung_drop(struct ns_hung *h)
{
	bool last;

	if (!h)
		return;
	os_mutex_lock(h->lock);
	last = --h->users == 0;
	os_mutex_unlock(h->lock);
	if (last) {
		os_mutex_free(h->lock);
		free(h);
	}
}

bool ns_hung_has(struct ns_hung *h, uint64_t mounts, uint64_t pids, uint64_t now_ns)
{
	bool has = false;
	uint32_t i;

	os_mutex_lock(h->lock);
	for (i = h->n; i--;) {
		if (h->all[i].until_ns && now_ns >= h->all[i].until_ns)
			h->all[i] = h->all[--h->n];
		else
			has |= ns_group_is(&h->all[i].group, mounts, pids);
	}
	os_mutex_unlock(h->lock);
	return has;
}

void ns_hung_add(struct ns_hung *h, const struct ns_group *group)
{
	uint32_t i;

	os_mutex_lock(h->lock);
	for (i = 0; i < h->n && h->n == NS_HUNG_MAX && !h->all[i].until_ns; i++)
		;
	if (h->n < NS_HUNG_MAX)
		i = h->n++;
	if (i < NS_HUNG_MAX)
		h->all[i] = (struct hung_one){*group, 0};
	os_mutex_unlock(h->lock);
}

void ns_hung_came_back(struct ns_hung *h, const struct ns_group *group, uint64_t now_ns)
{
	uint32_t i;

	os_mutex_lock(h->lock);
	for (i = 0; i < h->n; i++)
		if (!h->all[i].until_ns &&
		    ns_group_is(&h->all[i].group, group->mounts, group->pids))
			h->all[i].until_ns = now_ns + NS_HUNG_SPARED_NS;
	os_mutex_unlock(h->lock);
	atomic_fetch_add(&h->back, 1);
}

uint32_t ns_hung_threads(struct ns_hung *h)
{
	uint32_t i, n = 0;

	os_mutex_lock(h->lock);
	for (i = 0; i < h->n; i++)
		n += !h->all[i].until_ns;
	os_mutex_unlock(h->lock);
	return n;
}

uint32_t ns_hung_back(struct ns_hung *h)
{
	return atomic_load(&h->back);
}
