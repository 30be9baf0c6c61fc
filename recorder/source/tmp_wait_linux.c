#include "source/tmp_wait_linux.h"

void tmp_wait(struct tmp_wait *w, uint64_t until_ns, int watch, struct pollfd *p, uint32_t n)
{
	struct pollfd *wake = &p[n], *files = &p[n + 1];
	uint64_t now_ns = os_now_ns();

	if (watch >= 0 && now_ns < w->noisy_until_ns) {
		watch = -1;
		until_ns = w->noisy_until_ns < until_ns ? w->noisy_until_ns : until_ns;
	}
	*wake = (struct pollfd){.fd = os_wake_fd(w->wake), .events = POLLIN};
	*files = (struct pollfd){.fd = watch, .events = POLLIN};
	if (os_poll(p, n + 2, until_ns > now_ns ? until_ns - now_ns : 1) && !wake->revents && w->gather_ns)
		os_sleep_ns(w->gather_ns);
	if (wake->revents)
		os_wake_clear(w->wake);
	if (files->revents)
		w->noisy_until_ns = os_now_ns() + TMP_NOISY_NS;
}
