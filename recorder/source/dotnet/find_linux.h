/*
 * Finds the .NET programs of this machine by their diagnostic sockets. One thread.
 *
 * Sockets in /tmp are found at once by inotify, with a scan every 10 s (every second where inotify
 * is refused). Programs with a TMPDIR of their own are found in /proc/net/unix, once a second;
 * programs in containers by ns_tmp_linux.h, once a second. Jobs search (tmp_scan_linux.h), and
 * leave directories alone that do not answer.
 *
 * A socket is trusted only if it belongs to the user of the process in its name, if that process
 * started when the name says, and if the process is in our namespaces or has the socket in its own
 * /tmp.
 */
#pragma once

#include "source/host/ns_tmp_linux.h"
#include "source/host/tmp_scan_linux.h"

#define DOTNET_PATH_BYTES 108                /* of a socket's address */

struct dotnet_socket {
	uint32_t pid, uid;
	uint64_t key;                        /* the process's start, in clock ticks since boot */
	bool nested;                         /* in a pid namespace: other thread ids than ours */
	int fd;                              /* in a container: the socket by O_PATH; else -1 */
	char path[DOTNET_PATH_BYTES];        /* in a container: through fd */
};

struct dotnet_find {
	struct pool *pool;                   /* of searches, and for others to use */
	struct tmp_scan scan;
	int watch;                           /* inotify, for poll(); -1 = none */
	uint64_t next_table_ns, next_tmp_ns;
	struct ns_tmp *containers;
};

/* Diagnostic sockets in containers. */
extern const struct ns_tmp_kind dotnet_socket_kind;

/* wake: woken when dotnet_find_in_container() has a socket; must outlive f. */
int dotnet_find_open(struct dotnet_find *f, struct os_wake *wake, struct log *log, struct err *err);
void dotnet_find_close(struct dotnet_find *f);

/* Report sockets that may be new since the last call; returns when to call again at the latest. */
uint64_t dotnet_find_new(struct dotnet_find *f, uint64_t now_ns,
			 void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx);
/* Report every socket; some twice. For a thread that may hang. */
void dotnet_find_all(void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx);
/* The next socket in a container, each once; false = none now. The caller owns its fd. */
bool dotnet_find_in_container(struct dotnet_find *f, uint64_t now_ns, struct dotnet_socket *out);
/* Whether the process still runs, and its pid is not another's by now. */
bool dotnet_socket_lives(const struct dotnet_socket *socket);
