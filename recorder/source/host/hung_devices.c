#include "source/host/hung_devices.h"

#include <stdatomic.h>
#include <stdlib.h>

struct hung_device {
	uint64_t dev, since_ns, until_ns;
	uint32_t nthreads;                   /* that hang in its files now */
};

struct hung_devices {
	_Atomic uint32_t users;
	struct os_mutex *lock;               /* guards what follows */
	struct hung_device all[HUNG_DEVICES_MAX];
};

struct hung_devices *hung_devices_new(void)
{
	struct hung_devices *h = calloc(1, sizeof(*h));

	if (!h)
		return NULL;
	h->lock = os_mutex_new();
	if (!h->lock) {
		free(h);
		return NULL;
	}
	atomic_store(&h->users, 1);
	return h;
}

struct hung_devices *hung_devices_use(struct hung_devices *h)
{
	atomic_fetch_add(&h->users, 1);
	return h;
}

void hung_devices_drop(struct hung_devices *h)
{
	if (!h || atomic_fetch_sub(&h->users, 1) != 1)
		return;
	os_mutex_free(h->lock);
	free(h);
}

static bool is_hung(const struct hung_device *d, uint64_t now_ns)
{
	return d->nthreads || now_ns < d->until_ns;
}

/* Under the lock: the device, if it hangs; else NULL, and *room is a free place or NULL. */
static struct hung_device *find(struct hung_devices *h, uint64_t dev, struct hung_device **room)
{
	uint64_t now_ns = os_now_ns();
	uint32_t i;

	for (i = 0; i < HUNG_DEVICES_MAX; i++) {
		if (!is_hung(&h->all[i], now_ns))
			*room = &h->all[i];
		else if (h->all[i].dev == dev)
			return &h->all[i];
	}
	return NULL;
}

bool hung_devices_add(struct hung_devices *h, uint64_t dev)
{
	struct hung_device *d, *room = NULL;
	bool fresh;

	os_mutex_lock(h->lock);
	d = find(h, dev, &room);
	fresh = !d;
	if (fresh && room) {
		d = room;
		*d = (struct hung_device){.dev = dev, .since_ns = os_now_ns()};
	}
	if (d)
		d->nthreads++;
	os_mutex_unlock(h->lock);
	return fresh;
}

void hung_devices_came_back(struct hung_devices *h, uint64_t dev)
{
	struct hung_device *d, *room;
	uint64_t now_ns = os_now_ns();

	os_mutex_lock(h->lock);
	d = find(h, dev, &room);
	if (d && d->nthreads && --d->nthreads == 0 && now_ns >= d->since_ns + HUNG_SLOW_NS)
		d->until_ns = now_ns + HUNG_SPARED_NS;
	os_mutex_unlock(h->lock);
}

bool hung_devices_has(struct hung_devices *h, uint64_t dev)
{
	struct hung_device *room;
	bool has;

	os_mutex_lock(h->lock);
	has = find(h, dev, &room) != NULL;
	os_mutex_unlock(h->lock);
	return has;
}
