/*
 * Connects to the socket of another program, for a thread that must not hang: its path may lie on a
 * mount whose server is gone. A job of a pool connects; the caller waits for 20 ms at most.
 */
#pragma once

#include "base/pool.h"

struct peer {
	const char *path;
	int fd;                              /* the socket by O_PATH, used instead; -1 = none */
	uint32_t pid, uid;                   /* who must have it, by what the kernel says */
};

/*
 * returns  a descriptor that does not block, which the caller closes; -1 = failed, or no answer.
 * When a socket of a user does not answer, that user's are left alone (pool_ask()).
 */
int peer_connect(struct pool *pool, const struct peer *to);
