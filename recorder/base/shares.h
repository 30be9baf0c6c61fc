/*
 * A total shared out by user and program: a bound for what outsiders can make the recorder hold,
 * in bytes or pieces. The program that holds something takes as much from the total before, and
 * gives it back afterwards.
 *
 *	one user      at most 1/2 of the total
 *	one program   at most 1/8
 *	all users but root and our own together: at most 3/4, so that a quarter is left for those
 *	two whatever the others do
 *
 * A program's part is a struct share, which its owner keeps: {.uid = its user} at first. Users are
 * looked up in a list that is as long as there are users who hold something. One thread at a time.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define SHARES_USERS_MAX 256u                /* that hold something; more are refused */

struct share {
	uint32_t uid;
	uint64_t used;
	uint64_t refused;                    /* requests */
};

struct shares_user {
	uint32_t uid;
	uint64_t used;
};

struct shares {
	uint64_t total, user_max, others_max, program_max;
	uint64_t used, used_by_others;       /* others: users but root and our own */
	uint64_t refused;                    /* requests */
	uint32_t programs_refused;           /* with at least one refused request */
	uint32_t own_uid, nusers;
	struct shares_user users[SHARES_USERS_MAX];
};

/* own_uid: os_uid(). */
void shares_init(struct shares *s, uint64_t total, uint32_t own_uid);

/* Take n for a program; false = it would exceed a limit: nothing is taken, and it is counted. */
bool shares_take(struct shares *s, struct share *share, uint64_t n);
/* n: at most what the program has taken. */
void shares_give_back(struct shares *s, struct share *share, uint64_t n);
/* Take or give back so that the program holds n; false = refused, it holds what it held. */
bool shares_hold(struct shares *s, struct share *share, uint64_t n);
