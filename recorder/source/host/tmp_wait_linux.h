/*
 * How a source waits for programs that leave files in /tmp: until something is due, until it is
 * woken, until one of its own descriptors is readable, or until a watched directory (inotify(7))
 * may have a new file. After such a notice the directory is not watched for TMP_NOISY_NS, since
 * others may create files there all the time.
 *
 * A mount ends the wait too (/proc/self/mountinfo, proc(5)): /tmp may then be another directory,
 * which has no watch. One thread.
 */
#pragma once

#include "base/os.h"

#include <poll.h>

#define TMP_NOISY_NS (50 * NS_PER_MS)
#define TMP_POLLED 3u

struct tmp_wait {
	struct os_wake *wake;                /* borrowed */
	uint64_t gather_ns;                  /* wait so much longer for more, except when woken */
	uint64_t noisy_until_ns;
	int mounts;                          /* -1 = cannot be watched */
	uint64_t dev, ino;                   /* of /tmp, 0 = there is none */
	bool replaced;           /* out: /tmp was mounted over or unmounted; the caller clears it */
};

/* Call it before the first watch on /tmp. Neither function closes `wake`. */
void tmp_wait_open(struct tmp_wait *w);
void tmp_wait_close(struct tmp_wait *w);     /* after tmp_wait_open() */

/*
 * until_ns  recorder clock; when it is past, the wait is the shortest possible sleep
 * watch     inotify descriptor, which the caller reads; -1 = none
 * p         n descriptors of the caller and room for TMP_POLLED more; revents of the n are set
 */
void tmp_wait(struct tmp_wait *w, uint64_t until_ns, int watch, struct pollfd *p, uint32_t n);
