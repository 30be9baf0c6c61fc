/*
 * The writer's store, which may go while recording lasts: somebody removes or replaces the file, or
 * a disk damages it. Then a new one is made at its name, and what is held of incidents goes there.
 * Log and status say so. Writer thread, except for engine_open_store().
 */
#include "engine/engine_private.h"

#include <inttypes.h>
#include <stdio.h>

#define MOVED_MAX 300

/* Log a sentence, and have status show it until the run ends. */
static void say(struct engine *e, const char *text)
{
	log_line(e->log, LOG_WARN, "%s", text);
	os_mutex_lock(e->shared.lock);
	snprintf(e->shared.renewed, sizeof(e->shared.renewed), "%s", text);
	os_mutex_unlock(e->shared.lock);
}

int engine_open_store(struct engine *e, struct err *err)
{
	char text[sizeof(e->shared.renewed)];
	struct buf moved = {0};
	int rc = store_open_or_replace(e->cfg->store_path, &moved, &e->writer.store, err);

	if (!rc && moved.len) {
		snprintf(text, sizeof(text), "the store was damaged, and a new one is used: "
			 "`recorder verify %.*s` says what is damaged, `recorder salvage` gets out "
			 "what is readable", MOVED_MAX, buf_text(&moved));
		say(e, text);
	}
	buf_free(&moved);
	return rc;
}

/* What was given up because it was in the store is lost with it. */
static void begin_again(struct pending *p)
{
	char reason[120];
	uint32_t i, lost = 0;

	for (i = 0; i < p->written && i < p->window.nsegments; i++)
		lost += !p->window.segments[i];
	if (lost) {
		snprintf(reason, sizeof(reason),
			 "%" PRIu32 " segments were in a store that was removed or damaged", lost);
		pending_add_reason(p, reason);
	}
	p->begun = false;
	p->head.id = 0;
	p->written = 0;
}

static void leave_store(struct engine *e)
{
	struct pending *p;

	store_close(e->writer.store);
	e->writer.store = NULL;
	dedup_forget(&e->dedup);
	os_mutex_lock(e->shared.lock);
	for (p = e->shared.first_pending; p; p = p->next)
		begin_again(p);
	os_mutex_unlock(e->shared.lock);
}

static int open_again(struct engine *e, struct err *err)
{
	int rc = engine_open_store(e, err);

	if (!rc) {
		store_set_call_off(e->writer.store, writer_retention_must_stop, e);
		store_set_progress(e->writer.store, &e->writer_steps);
		if (e->writer.gone[0])
			say(e, e->writer.gone);
		e->writer.gone[0] = '\0';
	}
	return rc;
}

int writer_have_store(struct engine *e, struct err *err)
{
	struct err why;
	int rc;

	if (!e->writer.store)
		return open_again(e, err);
	if (store_damaged(e->writer.store)) {
		leave_store(e);
		return open_again(e, err);
	}
	rc = store_in_place(e->writer.store, &why);
	if (!rc)
		return 0;
	if (rc != ERR_NOT_FOUND)
		return err_set(err, (enum err_code)rc, "%s", why.text);
	snprintf(e->writer.gone, sizeof(e->writer.gone), "%.*s while recording: a new one is "
		 "made, and incidents stored before (%" PRIu32 ") are not in it", MOVED_MAX,
		 why.text, e->shared.stored);
	leave_store(e);
	return open_again(e, err);
}
