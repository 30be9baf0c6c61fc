/*
 * CPU time shared out by user: how much of a CPU the programs of others can make a source use. Time
 * accrues all the while, up to what 10 s bring, so that bursts pass. A user who has used up more is
 * not served until it has accrued again.
 *
 *	one user      half of the limit of the recorder
 *	all users but root and our own together: three quarters of it
 *	root and our own user: no limit, whatever the others do
 *
 * One thread; turns_skipped() and turns_note() any.
 */
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define TURNS_USERS 64u                      /* shares; further users have one in common */

struct turn {
	int64_t left_ns;                     /* < 0: used up */
	uint64_t at_ns;                      /* when it was counted */
};

struct turns {
	double user_rate, others_rate;       /* of a CPU; 0 = no limit */
	uint32_t own_uid;
	struct turn users[TURNS_USERS], others;
	_Atomic uint64_t skipped;
};

/* max_cpu_pct: the recorder's limit, of one CPU; 0 = none. own_uid: os_uid() */
void turns_init(struct turns *t, double max_cpu_pct, uint32_t own_uid);
/* Whether it is the turn of a program of this user now; false is counted. */
bool turns_may(struct turns *t, uint32_t uid, uint64_t now_ns);
/* The user's programs have used so much. */
void turns_spend(struct turns *t, uint32_t uid, uint64_t cpu_ns);
/* What the calling thread uses from here to turns_end() is used by this user's programs. */
uint64_t turns_begin(const struct turns *t, uint32_t uid);
void turns_end(struct turns *t, uint32_t uid, uint64_t begun_ns);
/* How often a program had something, and it was not its user's turn. */
uint64_t turns_skipped(const struct turns *t);
/* Say so for `status`, of programs of this kind (".NET"); nothing when none had to. Any thread. */
void turns_note(const struct turns *t, const char *kind, char *out, size_t n);
