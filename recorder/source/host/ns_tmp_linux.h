/*
 * Finds what programs in other namespaces (containers) keep in their /tmp: the performance data of
 * JVMs and the diagnostic sockets of .NET. They are reached through /proc/PID/root; the number in a
 * file's name is the pid in the process's own namespace (NSpid). A container's TMPDIR and files in
 * another root directory (chroot) are not known.
 *
 * A thread of its own looks once a second, or less often, so that it takes at most 1/10,000 of a
 * CPU; at every fifth time only while nothing starts. A process that leaves its namespaces after it
 * has run for long is noticed some 16 looks later. A file system
 * that hangs holds up only that thread: after NS_TMP_STUCK_NS it is left behind and another one
 * takes over, which avoids that namespace until a minute after the file system answers again
 * (ns_hung_linux.h). While NS_HUNG_MAX threads are held up, there is no search.
 *
 * A file is believed only if it belongs to the user of its process. No link is followed, and no
 * device opened. Performance data on NFS, SMB, 9P, Ceph or FUSE is not taken, because its reader
 * must not wait for a server.
 */
#pragma once

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

#define NS_TMP_NAME_BYTES 108
#define NS_TMP_STUCK_NS (2 * NS_PER_SEC)

/* What to look for; must be static. */
struct ns_tmp_kind {
	const char *programs;                /* for messages: "Java" */
	/*
	 * Whether a name in /tmp is that of such a socket, and the pid in the name. Sockets are
	 * delivered as O_PATH descriptors. NULL = look for performance data,
	 * /tmp/hsperfdata_USER/PID, delivered open for reading.
	 */
	bool (*is_socket)(const char *name, uint32_t *inner_pid);
};

extern const struct ns_tmp_kind ns_tmp_jvm;

struct ns_tmp_file {
	uint32_t pid, uid;                   /* of its process, in our namespaces */
	int fd;                              /* the caller of ns_tmp_take() closes it */
	char name[NS_TMP_NAME_BYTES];        /* without directory */
};

struct ns_tmp;
struct os_wake;

/* wake: woken when there is a file to take; NULL = none. It must outlive the search. */
int ns_tmp_open(const struct ns_tmp_kind *kind, struct os_wake *wake, struct log *log,
		struct ns_tmp **out, struct err *err);
void ns_tmp_close(struct ns_tmp *t);         /* NULL allowed; waits at most 2 s */

/*
 * Take the next file that was found; each is delivered once. false = none now. Never waits. Call it
 * on one thread, at least once a second.
 */
bool ns_tmp_take(struct ns_tmp *t, uint64_t now_ns, struct ns_tmp_file *out);

/*
 * For check. returns  0, or ERR_ACCESS when this user sees only its own programs, here and in
 * containers
 */
int ns_tmp_others(const struct ns_tmp_kind *kind, struct err *err);
/* Whether its file system depends on a server or another program. On a thread that may hang. */
bool ns_tmp_may_hang(int fd);
/* Whether this process is certainly in our namespaces of mounts and pids. */
bool ns_tmp_is_here(uint32_t pid);
/* Whether a process elsewhere has its file. For check, on a thread that may hang. */
bool ns_tmp_has(uint32_t pid, const struct ns_tmp_kind *kind);
