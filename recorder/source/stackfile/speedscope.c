/*
 * speedscope's files: shared frames by name, and profiles of one thread each. A sampled one lists
 * stacks, root first, with the time that each took; an evented one opens and closes frames.
 * Source: its file-format-schema.json.
 */
#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "base/json_read.h"

#include <stdlib.h>
#include <string.h>

struct reading {
	struct stack_list *l;
	uint32_t *frames;                    /* of each shared frame; or a mark: */
	uint8_t *marks;                      /* quality, where it is no frame; else 0 */
	uint32_t nframes, frames_room, marks_room;
	double to_unit;                      /* the profile's unit in ns, bytes or events */
	uint8_t stream;
	uint32_t thread;
	struct buf text;
};

static bool text_of(struct reading *r, struct json_value v)
{
	buf_reset(&r->text);
	json_put_text(v, &r->text);
	return !r->text.failed;
}

static int read_frames(struct reading *r, struct json_value list)
{
	struct json_value item = {0};

	while ((item = json_next(list, item)).at) {
		uint8_t mark = QUALITY_NONE;

		if (ARRAY_ROOM(r->frames, r->frames_room, r->nframes + 1) ||
		    ARRAY_ROOM(r->marks, r->marks_room, r->nframes + 1) ||
		    !text_of(r, json_member(item, "name")))
			return ERR_MEMORY;
		if (!stack_list_mark(buf_text(&r->text), r->text.len, &mark))
			mark = QUALITY_NONE;
		r->marks[r->nframes] = mark;
		r->frames[r->nframes++] = mark ? STACK_LIST_NONE
					       : stack_list_text(r->l, buf_text(&r->text),
								 r->text.len);
	}
	return 0;
}

/* The node of a frame below another; a mark changes the quality only. */
static uint32_t enter(struct reading *r, uint32_t caller, struct json_value v,
		      struct stack_list_sample *s)
{
	double number;
	uint32_t at;

	if (!json_number(v, &number) || !(number >= 0 && number < r->nframes)) {
		r->l->skipped++;
		return caller;
	}
	at = (uint32_t)number;
	if (r->marks[at]) {
		s->quality = r->marks[at];
		return caller;
	}
	return stack_list_node(r->l, caller, r->frames[at]);
}

static uint64_t to_ns(const struct reading *r, double at)
{
	double ns = at * (r->stream == STREAM_CPU ? r->to_unit : (double)STACK_LIST_PERIOD_NS);

	return ns >= 0 && ns < 9e18 ? (uint64_t)ns : 0;
}

static void put(struct reading *r, struct stack_list_sample *s, double at, double weight)
{
	s->thread = r->thread;
	s->stream = r->stream;
	s->cpu = CPU_NONE;
	s->time_ns = to_ns(r, at);
	s->weight = weight * r->to_unit;
	stack_list_sample(r->l, s);
}

static void read_sampled(struct reading *r, struct json_value profile, double start)
{
	struct json_value stacks = json_member(profile, "samples"), stack = {0}, weight = {0};
	struct json_value weights = json_member(profile, "weights");

	while ((stack = json_next(stacks, stack)).at) {
		struct stack_list_sample s = {.node = STACK_LIST_NONE,
					      .quality = QUALITY_COMPLETE};
		struct json_value frame = {0};
		uint32_t depth = 0;
		double w = 1;

		if (weights.at && (weight = json_next(weights, weight)).at &&
		    !json_number(weight, &w))
			w = 0;
		while ((frame = json_next(stack, frame)).at && depth++ < STACK_LIST_DEPTH_MAX)
			s.node = enter(r, s.node, frame, &s);
		/* An empty stack is time without samples. */
		if (depth && w > 0)
			put(r, &s, start, w);
		start += w > 0 ? w : 0;
	}
}

static void read_evented(struct reading *r, struct json_value profile)
{
	struct json_value events = json_member(profile, "events"), event = {0};
	struct stack_list_sample s = {.node = STACK_LIST_NONE, .quality = QUALITY_COMPLETE};
	uint32_t open[STACK_LIST_DEPTH_MAX];
	uint32_t depth = 0;
	double last = 0, at;

	while ((event = json_next(events, event)).at) {
		struct json_value type = json_member(event, "type");
		bool opens = type.at && type.end - type.at == 3 && type.at[1] == 'O';

		if (!json_number(json_member(event, "at"), &at)) {
			r->l->skipped++;
			continue;
		}
		if (depth && at > last)
			put(r, &s, last, at - last);
		last = at;
		if (opens && depth < STACK_LIST_DEPTH_MAX) {
			open[depth++] = s.node;
			s.node = enter(r, s.node, json_member(event, "frame"), &s);
		} else if (!opens && depth) {
			s.node = open[--depth];
		} else {
			r->l->skipped++;
		}
	}
}

static void read_unit(struct reading *r, const char *unit)
{
	static const struct {
		const char *name;
		double to_unit;
		uint8_t stream;
	} units[] = {{"nanoseconds", 1, STREAM_CPU}, {"microseconds", 1e3, STREAM_CPU},
		     {"milliseconds", 1e6, STREAM_CPU}, {"seconds", 1e9, STREAM_CPU},
		     {"bytes", 1, STREAM_ALLOC}};
	size_t i;

	/* Samples without a unit count as everywhere where a file tells no rate. */
	r->to_unit = (double)STACK_LIST_PERIOD_NS;
	r->stream = STREAM_CPU;
	for (i = 0; i < COUNT_OF(units); i++)
		if (strcmp(unit, units[i].name) == 0) {
			r->to_unit = units[i].to_unit;
			r->stream = units[i].stream;
		}
}

/* "sh (12) / sh (13)", as our own exports call a thread's profile */
static void read_profile(struct reading *r, struct json_value profile)
{
	const char *slash, *name;
	unsigned used;
	double start = 0;
	size_t n;

	if (!text_of(r, json_member(profile, "unit")))
		return;
	read_unit(r, buf_text(&r->text));
	if (!text_of(r, json_member(profile, "name")))
		return;
	name = buf_text(&r->text);
	slash = strstr(name, " / ");
	n = slash ? (size_t)(slash - name) : r->text.len;
	r->thread = stack_list_who(r->l, name, n, slash ? slash + 3 : NULL,
				   slash ? r->text.len - n - 3 : 0, &used);
	json_number(json_member(profile, "startValue"), &start);
	if (json_member(profile, "events").at)
		read_evented(r, profile);
	else
		read_sampled(r, profile, start);
}

int stack_list_speedscope(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	struct json_value whole, profiles, profile = {0};
	struct reading r = {.l = l};
	int rc;

	(void)n;
	if (!json_read(text, &whole))
		return err_set(err, ERR_FORMAT, "it is no valid JSON");
	profiles = json_member(whole, "profiles");
	if (!profiles.at)
		return err_set(err, ERR_FORMAT, "it is JSON, but not speedscope's: it has no "
			       "profiles");
	rc = read_frames(&r, json_member(json_member(whole, "shared"), "frames"));
	while (!rc && (profile = json_next(profiles, profile)).at)
		read_profile(&r, profile);
	free(r.frames);
	free(r.marks);
	buf_free(&r.text);
	l->has_times = l->times_begin = true;
	return rc ? err_memory(err, "for speedscope's frames") : 0;
}
