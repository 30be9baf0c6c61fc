#include "source/host/tmp_wait_linux.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether /tmp is another directory than before. */
static bool look_at_tmp(struct tmp_wait *w)
{
	struct statx st = {0};
	uint64_t dev;
	bool is_another;

	/* Without asking a server, which may be gone. */
	if (statx(AT_FDCWD, "/tmp", AT_STATX_DONT_SYNC | AT_NO_AUTOMOUNT, STATX_INO, &st) != 0)
		st = (struct statx){0};
	dev = (uint64_t)st.stx_dev_major << 32 | st.stx_dev_minor;
	is_another = w->dev != dev || w->ino != st.stx_ino;
	w->dev = dev;
	w->ino = st.stx_ino;
	return is_another;
}

void tmp_wait_open(struct tmp_wait *w)
{
	w->mounts = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC);
	look_at_tmp(w);
}

void tmp_wait_close(struct tmp_wait *w)
{
	if (w->mounts >= 0)
		close(w->mounts);
	w->mounts = -1;
}

void tmp_wait(struct tmp_wait *w, uint64_t until_ns, int watch, struct pollfd *p, uint32_t n)
{
	struct pollfd *wake = &p[n], *files = &p[n + 1], *mounts = &p[n + 2];
	uint64_t now_ns = os_now_ns();
	int changes = w->mounts;

	if ((watch >= 0 || changes >= 0) && now_ns < w->noisy_until_ns) {
		watch = changes = -1;
		until_ns = w->noisy_until_ns < until_ns ? w->noisy_until_ns : until_ns;
	}
	*wake = (struct pollfd){.fd = os_wake_fd(w->wake), .events = POLLIN};
	*files = (struct pollfd){.fd = watch, .events = POLLIN};
	*mounts = (struct pollfd){.fd = changes, .events = POLLPRI};
	if (os_poll(p, n + TMP_POLLED, until_ns > now_ns ? until_ns - now_ns : 1) &&
	    !wake->revents && w->gather_ns)
		os_sleep_ns(w->gather_ns);
	if (wake->revents)
		os_wake_clear(w->wake);
	if (mounts->revents)
		w->replaced |= look_at_tmp(w);
	if (files->revents || mounts->revents)
		w->noisy_until_ns = os_now_ns() + TMP_NOISY_NS;
}
