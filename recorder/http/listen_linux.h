/*
 * The socket that --http names.
 *
 *	127.0.0.1:9427  [::1]:9427     an address and a port, as numbers
 *	unix:/run/recorder.sock        a Unix socket, mode 0660; one left by a killed recorder goes
 *	fd                             what the service manager passes: sd_listen_fds(3), the first
 */
#pragma once

#include "base/err.h"

#include <stdbool.h>

struct listening {
	int fd;                              /* -1 = closed */
	bool local;                          /* loopback, or a Unix socket */
	bool is_unix;
	char path[108];                      /* of a Unix socket that is ours to remove; "" */
};

/* ERR_USAGE: no address; the sentence shows forms. Opens nothing. */
int listening_check(const char *address, bool *local, struct err *err);
/* ERR_USAGE, too: the process may not open such sockets; the sentence names the unit's settings. */
int listening_open(const char *address, struct listening *out, struct err *err);
void listening_close(struct listening *l);
