#include "base/turns.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>

#define ACCRUED_NS (10 * NS_PER_SEC)         /* what this time brings, at most */

void turns_init(struct turns *t, double max_cpu_pct, uint32_t own_uid)
{
	*t = (struct turns){.user_rate = max_cpu_pct / 100 / 2,
			    .others_rate = max_cpu_pct / 100 * 3 / 4, .own_uid = own_uid};
}

static bool is_limited(const struct turns *t, uint32_t uid)
{
	return t->user_rate > 0 && uid != 0 && uid != t->own_uid;
}

static void accrue(struct turn *turn, double rate, uint64_t now_ns)
{
	double most_ns = rate * (double)ACCRUED_NS;
	double left_ns = turn->at_ns ? (double)turn->left_ns +
				       rate * (double)(now_ns - turn->at_ns) : most_ns;

	if (turn->at_ns && now_ns <= turn->at_ns)
		return;
	turn->left_ns = (int64_t)(left_ns < most_ns ? left_ns : most_ns);
	turn->at_ns = now_ns;
}

bool turns_may(struct turns *t, uint32_t uid, uint64_t now_ns)
{
	struct turn *user = &t->users[uid % TURNS_USERS];

	if (!is_limited(t, uid))
		return true;
	accrue(user, t->user_rate, now_ns);
	accrue(&t->others, t->others_rate, now_ns);
	if (user->left_ns >= 0 && t->others.left_ns >= 0)
		return true;
	atomic_fetch_add_explicit(&t->skipped, 1, memory_order_relaxed);
	return false;
}

void turns_spend(struct turns *t, uint32_t uid, uint64_t cpu_ns)
{
	if (!is_limited(t, uid))
		return;
	t->users[uid % TURNS_USERS].left_ns -= (int64_t)cpu_ns;
	t->others.left_ns -= (int64_t)cpu_ns;
}

uint64_t turns_begin(const struct turns *t, uint32_t uid)
{
	return is_limited(t, uid) ? os_thread_cpu_ns() : 0;
}

void turns_end(struct turns *t, uint32_t uid, uint64_t begun_ns)
{
	if (begun_ns)
		turns_spend(t, uid, os_thread_cpu_ns() - begun_ns);
}

uint64_t turns_skipped(const struct turns *t)
{
	return atomic_load_explicit(&t->skipped, memory_order_relaxed);
}

void turns_note(const struct turns *t, const char *kind, char *out, size_t n)
{
	uint64_t skipped = turns_skipped(t);

	if (skipped)
		snprintf(out, n,
			 "%s programs of other users had to wait %" PRIu64 " times, since they "
			 "exceed their share of the CPU time (--max-cpu-percent)", kind, skipped);
}
