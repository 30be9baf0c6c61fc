#include "base/shares.h"

#include <assert.h>

#define KEPT_ENTRIES 2u                      /* of the list: root and our own user */

void shares_init(struct shares *s, uint64_t total, uint32_t own_uid)
{
	*s = (struct shares){.total = total, .user_max = total / 2, .program_max = total / 8,
			     .others_max = total - total / 4, .own_uid = own_uid};
}

static bool is_other(const struct shares *s, uint32_t uid)
{
	return uid != 0 && uid != s->own_uid;
}

/* returns  its index; s->nusers = holds nothing */
static uint32_t find_user(const struct shares *s, uint32_t uid)
{
	uint32_t i;

	for (i = 0; i < s->nusers && s->users[i].uid != uid; i++)
		;
	return i;
}

/* Every number used is at most its limit, so no difference is negative. */
static bool has_room(const struct shares *s, const struct share *share, uint32_t user, uint64_t n)
{
	bool other = is_other(s, share->uid);
	uint64_t user_used = user < s->nusers ? s->users[user].used : 0;

	if (user == s->nusers && user >= SHARES_USERS_MAX - (other ? KEPT_ENTRIES : 0))
		return false;
	return n <= s->program_max - share->used && n <= s->user_max - user_used &&
	       n <= s->total - s->used && (!other || n <= s->others_max - s->used_by_others);
}

bool shares_take(struct shares *s, struct share *share, uint64_t n)
{
	uint32_t user = find_user(s, share->uid);

	if (!n)
		return true;
	if (!has_room(s, share, user, n)) {
		s->refused++;
		s->programs_refused += !share->refused++;
		return false;
	}
	if (user == s->nusers)
		s->users[s->nusers++] = (struct shares_user){.uid = share->uid};
	s->users[user].used += n;
	share->used += n;
	s->used += n;
	s->used_by_others += is_other(s, share->uid) ? n : 0;
	return true;
}

void shares_give_back(struct shares *s, struct share *share, uint64_t n)
{
	uint32_t user = find_user(s, share->uid);

	if (!n)
		return;
	assert(n <= share->used && user < s->nusers);
	share->used -= n;
	s->used -= n;
	s->used_by_others -= is_other(s, share->uid) ? n : 0;
	s->users[user].used -= n;
	if (!s->users[user].used)
		s->users[user] = s->users[--s->nusers];
}

bool shares_hold(struct shares *s, struct share *share, uint64_t n)
{
	if (n > share->used)
		return shares_take(s, share, n - share->used);
	shares_give_back(s, share, share->used - n);
	return true;
}
