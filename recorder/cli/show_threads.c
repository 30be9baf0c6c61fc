#include "cli/show_threads.h"

#include "base/utf8.h"

#include <inttypes.h>
#include <string.h>

/* An event of source/stopped/threads.c. */
static bool is_thread(const struct incident *in, const struct incident_event *e)
{
	return strcmp(e->provider, "Recorder") == 0 && strcmp(e->name, "Thread") == 0 &&
	       e->thread != THREAD_NONE && e->thread < in->nthreads;
}

static const char *text_of(const struct incident *in, const struct incident_event *e,
			   const char *name)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++) {
		const struct event_field *f = &in->fields[e->first_field + i];

		if (f->type == FIELD_TEXT && strcmp(f->name, name) == 0)
			return f->v.text;
	}
	return "";
}

static double relative_s(const struct incident *in, const struct incident_event *e)
{
	return (double)(int64_t)(e->time_ns - in->head.trigger_ns) / 1e9;
}

static void put_text(const struct incident *in, const struct incident_event *e, struct sheet *p)
{
	const char *name = text_of(in, e, "Name"), *state = text_of(in, e, "State");
	size_t from;
	uint32_t node;

	buf_putc(&p->out, '\n');
	from = p->out.len;
	buf_printf(&p->out, "thread %" PRIu32, in->threads[e->thread].tid);
	if (*name) {
		buf_puts(&p->out, "  ");
		utf8_put_clean(&p->out, name, strlen(name), 64);
	}
	sheet_style(p, from, SHEET_HEAD);
	if (*state) {
		buf_puts(&p->out, "  ");
		utf8_put_clean(&p->out, state, strlen(state), 400);
	}
	buf_putc(&p->out, '\n');
	for (node = e->stack; node != STACK_NONE; node = in->stacks[node].parent) {
		buf_puts(&p->out, "    ");
		incident_frame_text(in, in->stacks[node].frame, true, &p->out);
		buf_putc(&p->out, '\n');
	}
}

static void put_json(const struct incident *in, const struct incident_event *e, struct sheet *p)
{
	const struct incident_thread *t = &in->threads[e->thread];
	struct buf text = {0};
	uint32_t node;

	sheet_open(p);
	json_key_num(&p->j, "s", relative_s(in, e));
	json_key_uint(&p->j, "pid", in->processes[t->process].pid);
	json_key_uint(&p->j, "tid", t->tid);
	json_key_str(&p->j, "name", text_of(in, e, "Name"));
	json_key_str(&p->j, "state", text_of(in, e, "State"));
	json_key_open(&p->j, "frames", '[');
	for (node = e->stack; node != STACK_NONE; node = in->stacks[node].parent) {
		buf_reset(&text);
		incident_frame_text(in, in->stacks[node].frame, true, &text);
		json_str(&p->j, buf_text(&text));
	}
	json_close(&p->j, ']');
	sheet_close(p);
	buf_free(&text);
}

static void put_process(const struct incident *in, const struct incident_event *e, struct sheet *p)
{
	const struct incident_thread *t = &in->threads[e->thread];
	char label[PROCESS_LABEL_BYTES];

	buf_printf(&p->out, "%sprocess %" PRIu32 "  ", p->out.len ? "\n" : "",
		   in->processes[t->process].pid);
	incident_process_label(in, t->process, label);
	utf8_put_clean(&p->out, label, strlen(label), sizeof(label));
	buf_printf(&p->out, "  %+.3f s from the trigger\n", relative_s(in, e));
}

int threads_put(const struct incident *in, struct sheet *p, struct err *err)
{
	uint32_t process = UINT32_MAX, i, n = 0;

	for (i = 0; i < in->nevents; i++) {
		const struct incident_event *e = &in->events[i];

		if (!is_thread(in, e))
			continue;
		n++;
		if (p->json) {
			put_json(in, e, p);
			continue;
		}
		if (in->threads[e->thread].process != process)
			put_process(in, e, p);
		process = in->threads[e->thread].process;
		put_text(in, e, p);
	}
	if (n)
		return 0;
	return err_set(err, ERR_NOT_FOUND, "incident %" PRId64 " has no threads: a rule that ends "
		       "in ;Stacks takes the stacks of all threads when it fires", in->head.id);
}
