/*
 * What programs in other namespaces (containers) keep in their /tmp for who looks: the performance
 * data of JVMs, the diagnostic sockets of .NET. Reached by /proc/PID/root, the number in a name
 * being that which the process has in its own namespace of pids (NSpid). TMPDIR of a container is
 * not known, nor what lies in another directory of it (chroot).
 *
 * A thread of its own looks once a second, or so seldom that it takes 1/5,000 of a CPU. A process
 * that leaves our namespaces when it has run for long is noticed some 16 looks later. A file system
 * that hangs holds up that thread only: after NS_TMP_STUCK_NS it is left behind, and another one
 * takes over, which leaves out that namespace until a minute after the file system answers again
 * (ns_hung_linux.h). While NS_HUNG_MAX threads are held up nobody looks. Nothing is believed that
 * is not its process's user's; no link is followed, and no device opened. Performance data on NFS,
 * SMB, 9P, Ceph or FUSE is not taken: who reads it must not wait for a server.
 */
#pragma once

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

#define NS_TMP_NAME_BYTES 108
#define NS_TMP_STUCK_NS (2 * NS_PER_SEC)

/* What to look for; static. */
struct ns_tmp_kind {
	const char *programs;                /* for messages: "Java" */
	/*
	 * Whether a name in /tmp is that of such a socket, and the pid in it; a socket is delivered
	 * by O_PATH. NULL = performance data, /tmp/hsperfdata_USER/PID, delivered open for reading.
	 */
	bool (*is_socket)(const char *name, uint32_t *inner_pid);
};

extern const struct ns_tmp_kind ns_tmp_jvm;

struct ns_tmp_file {
	uint32_t pid, uid;                   /* of its process, as we see it */
	int fd;                              /* who takes it closes it */
	char name[NS_TMP_NAME_BYTES];        /* without directories */
};

struct ns_tmp;
struct os_wake;

/* wake: woken when there is one to take; NULL = nobody waits for that. Outlives it. */
int ns_tmp_open(const struct ns_tmp_kind *kind, struct os_wake *wake, struct log *log,
		struct ns_tmp **out, struct err *err);
void ns_tmp_close(struct ns_tmp *t);         /* NULL allowed; waits 2 s at most */

/*
 * The next one that was found, once each; false = none now. Never waits. One thread, and once a
 * second or more.
 */
bool ns_tmp_take(struct ns_tmp *t, uint64_t now_ns, struct ns_tmp_file *out);

/* 0, or ERR_ACCESS: this user sees programs of its own only, here and in containers. For check. */
int ns_tmp_others(const struct ns_tmp_kind *kind, struct err *err);
/* Whether this process is, for sure, in our namespaces of mounts and of pids. */
bool ns_tmp_is_here(uint32_t pid);
/* Whether one that is not has its file: for check, on a thread that may hang. */
bool ns_tmp_has(uint32_t pid, const struct ns_tmp_kind *kind);
