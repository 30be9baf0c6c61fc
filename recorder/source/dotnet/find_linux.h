/*
 * The .NET programs of this machine, by their diagnostic sockets: those in /tmp at once (inotify; where that is
 * refused once a second, else every 10 s too), those of programs with a TMPDIR of their own by /proc/net/unix, once
 * a second. One thread.
 *
 * Those of containers by ns_tmp_linux.h, once a second.
 *
 * A socket is believed only if it is one of the owner of the process that its name says, if that process
 * has begun when the name says, and is in our namespaces or has it in its own /tmp.
 */
#ifndef SOURCE_DOTNET_FIND_LINUX_H
#define SOURCE_DOTNET_FIND_LINUX_H

#include "source/host/ns_tmp_linux.h"

#define DOTNET_PATH_BYTES 108                /* of a socket's address */

struct dotnet_socket {
	uint32_t pid, uid;
	uint64_t key;                        /* the process's start, in clock ticks since boot */
	bool nested;                         /* it numbers its threads otherwise than we */
	int fd;                              /* of a container's, by O_PATH; else -1 */
	char path[DOTNET_PATH_BYTES];        /* by that number, then */
};

struct dotnet_find {
	int watch;                           /* to be waited for, by poll(); -1 = none */
	uint64_t next_table_ns, next_tmp_ns;
	struct ns_tmp *elsewhere;
};

/* Diagnostic sockets in containers. */
extern const struct ns_tmp_kind dotnet_socket_kind;

/* wake: woken when dotnet_find_elsewhere() has one; outlives it. */
int dotnet_find_open(struct dotnet_find *f, struct os_wake *wake, struct log *log, struct err *err);
void dotnet_find_close(struct dotnet_find *f);

/* Those that may be new since the last call, as dotnet_find_all(); returns when to call again at the latest. */
uint64_t dotnet_find_new(struct dotnet_find *f, uint64_t now_ns,
			 void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx);
/* Each one that is there; may be told twice. */
void dotnet_find_all(void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx);
/* The next one of a container, once each; false = none now. Its fd is the caller's. */
bool dotnet_find_elsewhere(struct dotnet_find *f, uint64_t now_ns, struct dotnet_socket *out);
/* The process has not ended, nor has its number another one. */
bool dotnet_socket_lives(const struct dotnet_socket *socket);

#endif
