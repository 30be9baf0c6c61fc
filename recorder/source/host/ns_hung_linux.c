#include "source/host/ns_hung_linux.h"

bool ns_group_is(const struct ns_group *a, uint64_t mounts, uint64_t pids)
{
	return a->mounts == mounts && a->pids == pids;
}

bool ns_hung_has(struct ns_hung *h, uint64_t mounts, uint64_t pids, uint64_t now_ns)
{
	bool has = false;
	uint32_t i;

	for (i = h->n; i--;) {
		if (h->all[i].until_ns && now_ns >= h->all[i].until_ns)
			h->all[i] = h->all[--h->n];
		else
			has |= ns_group_is(&h->all[i].group, mounts, pids);
	}
	return has;
}

void ns_hung_add(struct ns_hung *h, const struct ns_group *group)
{
	uint32_t i;

	for (i = 0; i < h->n && h->n == NS_HUNG_MAX && !h->all[i].until_ns; i++)
		;
	if (h->n < NS_HUNG_MAX)
		i = h->n++;
	if (i < NS_HUNG_MAX) {
		h->all[i].group = *group;
		h->all[i].until_ns = 0;
	}
}

void ns_hung_came_back(struct ns_hung *h, const struct ns_group *group, uint64_t now_ns)
{
	uint32_t i;

	for (i = 0; i < h->n; i++)
		if (!h->all[i].until_ns &&
		    ns_group_is(&h->all[i].group, group->mounts, group->pids))
			h->all[i].until_ns = now_ns + NS_HUNG_SPARED_NS;
}
