/*
 * How a source of programs that leave files in /tmp waits: until something is due, it is woken, one of its own
 * descriptors can be read, or a file may be new in a directory that is listened to (inotify(7)). After such a notice
 * that directory is not listened to for TMP_NOISY_NS: others may make files there all the time.
 *
 * What is mounted ends it, too (/proc/self/mountinfo, proc(5)): /tmp may be another directory then, on which no watch
 * is. One thread.
 */
#ifndef SOURCE_TMP_WAIT_LINUX_H
#define SOURCE_TMP_WAIT_LINUX_H

#include "base/os.h"

#include <poll.h>

#define TMP_NOISY_NS (50 * NS_PER_MS)
#define TMP_POLLED 3u

struct tmp_wait {
	struct os_wake *wake;                /* borrowed */
	uint64_t gather_ns;                  /* from the first that comes, but a wake: what more comes with it; 0 = none */
	uint64_t noisy_until_ns;
	int mounts;                          /* -1 = cannot be told */
	uint64_t dev, ino;                   /* of /tmp, 0 = there is none */
	bool replaced;                       /* out: since the caller cleared it, something was mounted on it or removed */
};

/* Before the first watch is put on /tmp. Both leave `wake` alone. */
void tmp_wait_open(struct tmp_wait *w);
void tmp_wait_close(struct tmp_wait *w);     /* after tmp_wait_open() */

/*
 * until_ns  the recorder's clock; what is due already still takes the shortest sleep there is
 * watch     of inotify; -1 = not listened to. What came there is the caller's to read
 * p         n of the caller's own, and room for TMP_POLLED more; revents of the n say which came
 */
void tmp_wait(struct tmp_wait *w, uint64_t until_ns, int watch, struct pollfd *p, uint32_t n);

#endif
