/*
 * PerfView's XML (.perfView.xml): numbered lists of frames, of stacks (a caller and a frame), and
 * of samples at a time in ms, whose metric is ms. A sample without one counts as 1 ms, or as much
 * as the notes of our own exports say ("one per 10.101 ms of CPU time"). The outermost frames are
 * "Process sh (12)" and "Thread (13) sh".
 */
#include "source/stackfile/stack_list.h"

#include "base/array.h"
#include "source/etw/xml.h"

#include <stdlib.h>
#include <string.h>

#define ITEMS_MAX (16u << 20)                /* numbers above that are nobody's */

struct named {
	size_t at, n;                        /* the frame's text in names */
};

struct stack {
	uint32_t caller, frame;
	uint32_t node, thread;               /* once it is resolved */
	uint8_t depth;                       /* 1 process, 2 thread or first frame, 3 others */
	uint8_t quality;
	bool resolved;
};

struct reading {
	struct stack_list *l;
	struct buf names;
	struct named *frames;
	struct stack *stacks;
	uint32_t nframes, nstacks, frames_room, stacks_room;
	double each_ms;                      /* a sample without a metric */
};

static bool number_of(const struct etw_xml_tag *tag, const char *name, double *out)
{
	struct etw_slice v = etw_xml_attribute(tag, name);
	char digits[40], *end;

	if (!v.n || v.n >= sizeof(digits))
		return false;
	memcpy(digits, v.at, v.n);
	digits[v.n] = '\0';
	*out = strtod(digits, &end);
	return end != digits && *out > -1e18 && *out < 1e18;
}

static uint32_t id_of(const struct etw_xml_tag *tag, const char *name)
{
	double v;

	return number_of(tag, name, &v) && v >= 0 && v < ITEMS_MAX ? (uint32_t)v : STACK_LIST_NONE;
}

static int take_frame(struct reading *r, const struct etw_xml_tag *tag, const struct etw_xml *xml)
{
	const char *end = xml->at == xml->end
				  ? NULL : memchr(xml->at, '<', (size_t)(xml->end - xml->at));
	struct etw_slice text = {xml->at, end ? (size_t)(end - xml->at) : 0};
	uint32_t id = id_of(tag, "ID");

	if (id == STACK_LIST_NONE || tag->empty)
		return 0;
	if (ARRAY_ROOM(r->frames, r->frames_room, id + 1))
		return ERR_MEMORY;
	for (; r->nframes <= id; r->nframes++)
		r->frames[r->nframes] = (struct named){0};
	r->frames[id].at = r->names.len;
	etw_xml_put(&r->names, text);
	r->frames[id].n = r->names.len - r->frames[id].at;
	return r->names.failed ? ERR_MEMORY : 0;
}

static int take_stack(struct reading *r, const struct etw_xml_tag *tag)
{
	uint32_t id = id_of(tag, "ID");

	if (id == STACK_LIST_NONE)
		return 0;
	if (ARRAY_ROOM(r->stacks, r->stacks_room, id + 1))
		return ERR_MEMORY;
	for (; r->nstacks <= id; r->nstacks++)
		r->stacks[r->nstacks] = (struct stack){.frame = STACK_LIST_NONE};
	r->stacks[id] = (struct stack){.caller = id_of(tag, "CallerID"),
				       .frame = id_of(tag, "FrameID")};
	return 0;
}

static const char *name_of(const struct reading *r, uint32_t frame, size_t *n)
{
	*n = frame < r->nframes ? r->frames[frame].n : 0;
	return *n ? r->names.data + r->frames[frame].at : "";
}

/* Below its caller, which is resolved; caller NULL = it is outermost. */
static void resolve(struct reading *r, struct stack *s, const struct stack *caller)
{
	const char *outer = "", *name;
	size_t n, nouter = 0;
	unsigned used = 0;

	name = name_of(r, s->frame, &n);
	s->resolved = true;
	s->node = caller ? caller->node : STACK_LIST_NONE;
	s->quality = caller ? caller->quality : QUALITY_COMPLETE;
	s->depth = caller ? 3 : 1;
	if (!caller) {
		s->thread = memchr(name, '!', n)
				    ? stack_list_thread(r->l, "?", 1, 0, "?", 1, 0)
				    : stack_list_who(r->l, name, n, NULL, 0, &used);
		if (used)
			return;
		s->depth = 3;
	} else if (caller->depth == 1) {
		outer = name_of(r, caller->frame, &nouter);
		/* A set's node, such as an incident, becomes the outermost frame. */
		if (stack_list_is_process(name, n) && !stack_list_is_process(outer, nouter)) {
			s->thread = stack_list_who(r->l, name, n, NULL, 0, &used);
			s->node = stack_list_node(r->l, STACK_LIST_NONE,
						  stack_list_text(r->l, outer, nouter));
			s->depth = 1;
			return;
		}
		s->thread = stack_list_who(r->l, outer, nouter, name, n, &used);
		if (used == 2)
			return;
	} else {
		s->thread = caller->thread;
	}
	if (!stack_list_mark(name, n, &s->quality))
		s->node = stack_list_node(r->l, s->node, stack_list_text(r->l, name, n));
}

/* A stack and its callers, outermost first; a circle ends at STACK_LIST_DEPTH_MAX. */
static const struct stack *resolved(struct reading *r, uint32_t id)
{
	uint32_t chain[STACK_LIST_DEPTH_MAX + 2], n = 0, at = id;
	const struct stack *caller = NULL;

	for (; at < r->nstacks && n < COUNT_OF(chain); at = r->stacks[at].caller) {
		if (r->stacks[at].resolved) {
			caller = &r->stacks[at];
			break;
		}
		chain[n++] = at;
	}
	while (n) {
		resolve(r, &r->stacks[chain[--n]], caller);
		caller = &r->stacks[chain[n]];
	}
	return caller;
}

static void take_sample(struct reading *r, const struct etw_xml_tag *tag)
{
	uint32_t id = id_of(tag, "StackID");
	const struct stack *stack = id < r->nstacks ? resolved(r, id) : NULL;
	struct stack_list_sample s = {.cpu = CPU_NONE};
	double time_ms = 0, metric = r->each_ms;

	if (!stack) {
		r->l->skipped++;
		return;
	}
	number_of(tag, "Time", &time_ms);
	number_of(tag, "Metric", &metric);
	s.thread = stack->thread;
	s.node = stack->node;
	s.quality = stack->quality;
	s.time_ns = time_ms > 0 && time_ms < 9e12 ? (uint64_t)(time_ms * 1e6 + 0.5) : 0;
	s.weight = metric > 0 && metric < 9e12 ? metric * 1e6 : 0;
	stack_list_sample(r->l, &s);
}

double stack_list_each_ms(const char *notes)
{
	const char *told = strstr(notes, ", one per ");
	double each_ms = told ? strtod(told + 10, NULL) : 1;

	return each_ms > 0 && each_ms < 1e6 ? each_ms : 1;
}

int stack_list_perfview(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	struct etw_xml xml = {text, text + n};
	struct reading r = {.l = l, .each_ms = stack_list_each_ms(text)};
	struct etw_xml_tag tag;
	int rc = 0;

	while (!rc && etw_xml_next(&xml, &tag)) {
		if (tag.closing)
			continue;
		if (etw_slice_is(tag.name, "Frame"))
			rc = take_frame(&r, &tag, &xml);
		else if (etw_slice_is(tag.name, "Stack"))
			rc = take_stack(&r, &tag);
		else if (etw_slice_is(tag.name, "Sample"))
			take_sample(&r, &tag);
	}
	buf_free(&r.names);
	free(r.frames);
	free(r.stacks);
	l->has_times = l->times_begin = true;
	if (rc)
		return err_memory(err, "for PerfView's stacks");
	return l->nsamples ? 0 : err_set(err, ERR_FORMAT, "it has no samples of PerfView's XML");
}
