/*
 * The end of a run does not wait for ever. The writer may hang in a store whose disk or server no
 * longer answers, the export and the stop command in whatever they use. Once they have had their
 * time they are left behind, and the exit code and a sentence say what was waited for. Sources:
 * stalls.c. Control thread.
 */
#include "engine/engine_private.h"

#include <inttypes.h>

#define STORE_WAIT_NS (30 * NS_PER_SEC)      /* without any answer */
#define ABORT_WAIT_NS (5 * NS_PER_SEC)
#define EXPORT_WAIT_NS (60 * NS_PER_SEC)     /* without any progress */
#define COMMAND_WAIT_NS (5 * NS_PER_SEC)     /* beyond its own time limit */
#define LOOK_NS (50 * NS_PER_MS)

static uint64_t store_wait_ns(const struct engine *e)
{
	if (e->cfg->store_wait_ns)
		return e->cfg->store_wait_ns;
	if (atomic_load(&e->stop) == STOP_ABORT)
		return ABORT_WAIT_NS;
	return STORE_WAIT_NS + e->policy->settle_ns;
}

bool ends_stands_still(struct standstill *s, uint64_t count, uint64_t wait_ns)
{
	uint64_t now_ns = os_now_ns();

	if (!s->since_ns || s->count != count) {
		s->count = count;
		s->since_ns = now_ns;
	}
	return now_ns - s->since_ns >= wait_ns;
}

static void log_lost(struct engine *e)
{
	const struct pending *p;

	os_mutex_lock(e->shared.lock);
	for (p = e->shared.first_pending; p; p = p->next)
		log_line(e->log, LOG_ERROR,
			 "lost, as the store does not answer and recording ends: %s",
			 p->head.reason);
	e->shared.failed += e->shared.npending;
	os_mutex_unlock(e->shared.lock);
}

int ends_without_store(struct engine *e, struct standstill *s, struct err *err)
{
	char waits[OS_THREAD_WAITS_BYTES];
	uint64_t wait_ns = store_wait_ns(e);

	if (atomic_load(&e->stop) == STOP_NO) {
		s->since_ns = 0;
		return 0;
	}
	if (!ends_stands_still(s, atomic_load(&e->writer_steps), wait_ns))
		return 0;
	os_thread_state_text(e->writer_thread, waits);
	log_lost(e);
	return err_set(err, ERR_IO,
		       "recording ended without its store: %.200s has not answered for %.0f s (its "
		       "thread %s), and %" PRIu32 " incident%s, the last one among them, %s not "
		       "stored: check its disk or server",
		       e->cfg->store_path, (double)wait_ns / 1e9, waits, e->shared.failed,
		       e->shared.failed == 1 ? "" : "s", e->shared.failed == 1 ? "was" : "were");
}

void ends_allow(struct engine *e, const char *what, uint64_t timeout_ns)
{
	uint64_t wait_ns = timeout_ns ? timeout_ns + COMMAND_WAIT_NS : EXPORT_WAIT_NS;

	atomic_store(&e->command_what, what);
	atomic_store(&e->command_wait_ns, wait_ns);
	atomic_fetch_add(&e->command_steps, 1);
}

int ends_with_command(struct engine *e, struct os_thread *thread, struct err *err)
{
	struct standstill s = {0};
	uint64_t wait_ns;

	if (!thread)
		return 0;
	command_end(e);
	do {
		if (os_thread_join_within(thread, LOOK_NS))
			return 0;
		wait_ns = atomic_load(&e->command_wait_ns);
	} while (!ends_stands_still(&s, atomic_load(&e->command_steps), wait_ns));
	os_thread_leave(thread);
	e->left_behind = true;
	return err_set(err, ERR_IO, "%s of the last incident did not end within %.0f s, and was "
		       "left behind; the incident itself is stored",
		       atomic_load(&e->command_what), (double)wait_ns / 1e9);
}
