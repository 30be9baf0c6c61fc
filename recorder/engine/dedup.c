/*
 * --dedup: a firing that repeats an incident within its cool-down is counted, not stored.
 *
 * Firings are the same when rule, process name, and module!function of the first 8 named user
 * frames of the event are (a counter or a tick has no frames). Names come from the symbol worker,
 * so the writer decides, before anything is stored, and waits at most 2 s. The cool-down runs from
 * the stored incident: a condition that lasts is recorded again after each cool-down. The count
 * stands in the incident's note. When reading a file, the merge thread waits for the decision at
 * each firing, so that it is always the same.
 */
#include "engine/engine_private.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIGNATURES_MAX 256u              /* the oldest is replaced */
#define SIGNATURE_FRAMES 8u
#define SIGNATURE_BYTES 4096u
#define SIGNATURE_WAIT_NS (2 * NS_PER_SEC)   /* for names */

struct kept_signature {
	char *text;
	int64_t incident;
	uint64_t time_ns;                    /* of its firing */
	uint32_t repeats;
};

void dedup_note(struct engine *e, struct pending *p, const struct event *event)
{
	uint32_t i, number;
	bool fresh;

	if (!e->capture->dedup_ns || !event)
		return;
	if (event->process)
		snprintf(p->process, sizeof(p->process), "%s", process_name(event->process));
	for (i = 0; i < event->nstack_frames && p->nframes < ENGINE_SIGNATURE_FRAMES; i++) {
		if (event->stack_frames[i].flags & FRAME_KERNEL)
			continue;
		number = frames_intern(e->frames, &event->stack_frames[i], &fresh);
		if (number == UINT32_MAX)
			continue;
		p->frames[p->nframes] = frame_get(e->frames, number);
		frame_ref(p->frames[p->nframes++]);
	}
}

static void put_frames(struct engine *e, struct pending *p, struct buf *out)
{
	uint64_t start_ns = os_now_ns(), took_ns;
	uint32_t i, named = 0;

	if (p->nframes)
		symbols_settle(e->symbols, p->frames, p->nframes,
			       p->settle_ns < SIGNATURE_WAIT_NS ? p->settle_ns : SIGNATURE_WAIT_NS);
	took_ns = os_now_ns() - start_ns;
	p->settle_ns -= took_ns < p->settle_ns ? took_ns : p->settle_ns;
	for (i = 0; i < p->nframes && named < SIGNATURE_FRAMES; i++) {
		const struct function *f = atomic_load(&p->frames[i]->function);

		if (!f)
			continue;
		buf_printf(out, "\n%s!%s", f->module ? f->module : f->object->name, f->name);
		named++;
	}
}

static struct kept_signature *find_signature(struct engine *e, const char *text)
{
	uint32_t i;

	for (i = 0; i < e->dedup.n; i++)
		if (strcmp(e->dedup.all[i].text, text) == 0)
			return &e->dedup.all[i];
	return NULL;
}

static void count_repeat(struct engine *e, const struct pending *p, struct kept_signature *k)
{
	char when[OS_TIME_TEXT_BYTES], note[200];
	struct err err = {0};

	k->repeats++;
	atomic_fetch_add(&e->dedup.nrepeats, 1);
	os_mutex_lock(e->shared.lock);
	if (p->rule != MANUAL_RULE)          /* or it has gone by a reload */
		atomic_fetch_add(&e->rules.all[p->rule].repeats, 1);
	os_mutex_unlock(e->shared.lock);
	os_time_text(p->head.trigger_wall_ns, when);
	snprintf(note, sizeof(note),
		 "fired again %" PRIu32 " time%s, last at %s; repeats are not stored (--dedup)",
		 k->repeats, k->repeats == 1 ? "" : "s", when);
	log_line(e->log, LOG_INFO, "incident %" PRId64 ": %s", k->incident, note);
	if (store_set_note(e->writer.store, k->incident, note, &err) != 0)
		log_line(e->log, LOG_WARN, "the note of incident %" PRId64 " was not written: %s",
			 k->incident, err.text);
}

/*
 * Its id is known only now. When several incidents of one signature were open at a time, repeats
 * count with the last one, in whatever order they are stored.
 */
void dedup_stored(struct engine *e, const struct pending *p)
{
	struct kept_signature *k = p->signature < e->dedup.n ? &e->dedup.all[p->signature] : NULL;

	if (k && k->time_ns == p->head.trigger_ns && k->incident < p->head.id)
		k->incident = p->head.id;
}

static void remember_signature(struct engine *e, struct pending *p, const char *text)
{
	struct kept_signature *k, *all = e->dedup.all;
	char *copy = text_dup(text, SIGNATURE_BYTES);

	if (!all)
		all = e->dedup.all = calloc(SIGNATURES_MAX, sizeof(*all));
	if (!copy || !all) {
		free(copy);                  /* this incident is stored, and so is its repeat */
		return;
	}
	k = find_signature(e, text);
	if (!k && e->dedup.n < SIGNATURES_MAX)
		k = &all[e->dedup.n++];
	if (!k) {
		uint32_t i;

		for (k = all, i = 1; i < SIGNATURES_MAX; i++)
			if (all[i].time_ns < k->time_ns)
				k = &all[i];
	}
	free(k->text);
	*k = (struct kept_signature){.text = copy, .time_ns = p->head.trigger_ns};
	p->signature = (uint32_t)(k - all);
}

bool dedup_repeats(struct engine *e, struct pending *p)
{
	struct kept_signature *k;
	struct buf text = {.max_bytes = SIGNATURE_BYTES};
	uint64_t dedup_ns;
	bool manual;

	os_mutex_lock(e->shared.lock);
	dedup_ns = e->capture->dedup_ns;
	manual = p->rule == MANUAL_RULE;
	os_mutex_unlock(e->shared.lock);
	if (!dedup_ns || manual || p->dedup_decided)
		return p->repeats;
	buf_printf(&text, "%s\n%s", p->head.rule, p->process);
	put_frames(e, p, &text);
	k = find_signature(e, buf_text(&text));
	if (k && k->incident && p->head.trigger_ns - k->time_ns < dedup_ns) {
		p->repeats = true;
		count_repeat(e, p, k);
	} else {
		remember_signature(e, p, buf_text(&text));
	}
	buf_free(&text);
	os_mutex_lock(e->shared.lock);
	p->dedup_decided = true;
	os_cond_signal(e->shared.wake_merge);
	os_mutex_unlock(e->shared.lock);
	return p->repeats;
}

void dedup_forget(struct dedup *d)
{
	uint32_t i;

	for (i = 0; i < d->n; i++)
		d->all[i].incident = 0;
}

void dedup_free(struct dedup *d)
{
	while (d->n)
		free(d->all[--d->n].text);
	free(d->all);
}
