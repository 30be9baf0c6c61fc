/*
 * The .NET programs of this machine, by their diagnostic sockets: those in /tmp at once (inotify), those
 * of programs with a TMPDIR of their own by /proc/net/unix, once a second. One thread.
 *
 * A socket is believed only if it is one of the owner of the process that its name says, if that process
 * has begun when the name says, and sees the same file systems as we.
 */
#ifndef SOURCE_DOTNET_FIND_LINUX_H
#define SOURCE_DOTNET_FIND_LINUX_H

#include <stdbool.h>
#include <stdint.h>

#define DOTNET_PATH_BYTES 108                /* of a socket's address */

struct dotnet_socket {
	uint32_t pid, uid;
	uint64_t key;                        /* the process's start, in clock ticks since boot */
	char path[DOTNET_PATH_BYTES];
};

struct dotnet_find {
	int watch;
	uint64_t next_scan_ns;
};

void dotnet_find_open(struct dotnet_find *f);
void dotnet_find_close(struct dotnet_find *f);

/* Whether it is time for dotnet_find_all(). */
bool dotnet_find_due(struct dotnet_find *f, uint64_t now_ns);
/* Each one that is there; may be told twice. */
void dotnet_find_all(void (*each)(void *ctx, const struct dotnet_socket *socket), void *ctx);
/* The process has not ended, nor has its number another one. */
bool dotnet_socket_lives(const struct dotnet_socket *socket);

#endif
