#include "triggers/pairs.h"

#include "base/array.h"

#include <stdio.h>
#include <string.h>

int pairs_init(struct pairs *p)
{
	memset(p, 0, sizeof(*p));
	p->oldest = p->newest = SLOTS_NONE;
	return slots_init(&p->slots, sizeof(struct pair), PAIRS_MAX);
}

void pairs_free(struct pairs *p)
{
	table_free(&p->table);
	slots_free(&p->slots);
}

/* ---- keys ------------------------------------------------------------------------------------ */

void pair_key_begin(struct pair_key *key, const struct process *process)
{
	memset(key, 0, sizeof(*key));
	pair_key_u64(key, process ? process->pid : 0);
	pair_key_u64(key, process ? process->start_ns : 0);
}

void pair_key_u64(struct pair_key *key, uint64_t v)
{
	pair_key_bytes(key, &v, sizeof(v));
}

void pair_key_bytes(struct pair_key *key, const void *bytes, size_t n)
{
	uint64_t hashes[3];

	if (n > PAIR_KEY_BYTES - key->len) {
		hashes[0] = hash_bytes(bytes, n);
		/* The second hash is over other pieces, so that the two are independent. */
		hashes[1] = hash_pair(hash_bytes(bytes, n / 2),
				      hash_bytes((const char *)bytes + n / 2, n - n / 2));
		hashes[2] = n;
		bytes = hashes;
		n = sizeof(hashes);
	}
	if (n > PAIR_KEY_BYTES - key->len)
		n = PAIR_KEY_BYTES - key->len;
	memcpy(key->bytes + key->len, bytes, n);
	key->len += (uint32_t)n;
}

static uint64_t key_hash(const struct pair_key *key)
{
	return hash_bytes(key->bytes, key->len);
}

static bool same_key(const void *ctx, uint32_t value, const void *wanted)
{
	const struct pair *pair = slots_get(ctx, value);
	const struct pair_key *key = wanted;

	return pair->key.len == key->len && memcmp(pair->key.bytes, key->bytes, key->len) == 0;
}

static uint32_t find(const struct pairs *p, const struct pair_key *key)
{
	return table_find(&p->table, key_hash(key), same_key, &p->slots, key);
}

/* ---- the list, oldest to newest -------------------------------------------------------------- */

static struct pair *at(const struct pairs *p, uint32_t number)
{
	return slots_get(&p->slots, number);
}

static void unlink_pair(struct pairs *p, struct pair *pair)
{
	if (pair->older != SLOTS_NONE)
		at(p, pair->older)->newer = pair->newer;
	else
		p->oldest = pair->newer;
	if (pair->newer != SLOTS_NONE)
		at(p, pair->newer)->older = pair->older;
	else
		p->newest = pair->older;
}

static void link_newest(struct pairs *p, struct pair *pair, uint32_t number)
{
	pair->newer = SLOTS_NONE;
	pair->older = p->newest;
	if (p->newest != SLOTS_NONE)
		at(p, p->newest)->newer = number;
	else
		p->oldest = number;
	p->newest = number;
}

static uint16_t *pid_count(struct pairs *p, uint32_t pid)
{
	return &p->by_pid[pid % COUNT_OF(p->by_pid)];
}

static void remove_pair(struct pairs *p, uint32_t number)
{
	struct pair *pair = at(p, number);
	uint16_t *count = pid_count(p, pair->pid);

	if (*count && *count != UINT16_MAX)
		--*count;
	unlink_pair(p, pair);
	table_remove(&p->table, key_hash(&pair->key), number);
	slots_free_one(&p->slots, number);
}

/* ---- starts and stops ------------------------------------------------------------------------ */

static struct pair *add(struct pairs *p, const struct pair_key *key, const struct event *e)
{
	uint32_t number = table_add_slot(&p->table, key_hash(key), &p->slots, SLOTS_NONE);
	char label[PROCESS_LABEL_BYTES];
	struct pair *pair;
	uint16_t *count;

	if (number == SLOTS_NONE) {
		p->refused++;
		return NULL;
	}
	pair = at(p, number);
	pair->key = *key;
	pair->start_ns = e->time_ns;
	pair->tid = e->thread ? e->thread->tid : 0;
	if (e->process) {
		pair->pid = e->process->pid;
		snprintf(pair->process, sizeof(pair->process), "%s",
			 process_label(e->process, label));
	}
	link_newest(p, pair, number);
	count = pid_count(p, pair->pid);
	if (*count != UINT16_MAX)
		++*count;
	return pair;
}

struct pair *pairs_start(struct pairs *p, const struct pair_key *key, const struct event *e,
			 enum pair_again again)
{
	uint32_t number = find(p, key);

	if (number != TABLE_NONE && again == PAIR_KEEP_FIRST)
		return NULL;
	if (number != TABLE_NONE)
		remove_pair(p, number);
	if (p->slots.used >= PAIRS_MAX) {
		pairs_drop_oldest(p);
		p->pushed_out++;
	}
	return add(p, key, e);
}

bool pairs_stop(struct pairs *p, const struct pair_key *key, struct pair *out)
{
	uint32_t number = find(p, key);

	if (number == TABLE_NONE)
		return false;
	*out = *at(p, number);
	remove_pair(p, number);
	return true;
}

const struct pair *pairs_oldest(const struct pairs *p)
{
	return p->oldest == SLOTS_NONE ? NULL : at(p, p->oldest);
}

bool pairs_has_start(const struct pairs *p, uint64_t start_ns)
{
	uint32_t number;

	for (number = p->oldest; number != SLOTS_NONE; number = at(p, number)->newer)
		if (at(p, number)->start_ns == start_ns)
			return true;
	return false;
}

void pairs_drop_oldest(struct pairs *p)
{
	if (p->oldest != SLOTS_NONE)
		remove_pair(p, p->oldest);
}

void pairs_expire(struct pairs *p, uint64_t now_ns)
{
	const struct pair *oldest;

	while ((oldest = pairs_oldest(p)) != NULL && now_ns > oldest->start_ns &&
	       now_ns - oldest->start_ns > PAIRS_EXPIRY_NS) {
		pairs_drop_oldest(p);
		p->expired++;
	}
}

void pairs_forget_process(struct pairs *p, const struct process *process)
{
	uint32_t number, newer;

	if (!process || !p->slots.used || !*pid_count(p, process->pid))
		return;
	for (number = p->oldest; number != SLOTS_NONE; number = newer) {
		newer = at(p, number)->newer;
		if (at(p, number)->pid == process->pid)
			remove_pair(p, number);
	}
}
