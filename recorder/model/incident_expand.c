#include "model/incident_build_private.h"

#include <stdlib.h>

/* Mark the stacks that a sample or an event ends in, and all their callers. */
static bool *stacks_used(const struct incident *in)
{
	bool *used = calloc((size_t)in->nstacks + 1, sizeof(*used));
	uint32_t i;

	if (!used)
		return NULL;
	for (i = 0; i < in->nsamples; i++) {
		if (in->samples[i].stack != STACK_NONE)
			used[in->samples[i].stack] = true;
	}
	for (i = 0; i < in->nevents; i++) {
		if (in->events[i].stack != STACK_NONE)
			used[in->events[i].stack] = true;
	}
	for (i = in->nstacks; i-- > 0;) {    /* callers have lower numbers */
		if (used[i] && in->stacks[i].parent != STACK_NONE)
			used[in->stacks[i].parent] = true;
	}
	return used;
}

/* The frame itself (k = 0) or a function inlined into it, as line k says. */
static uint32_t add_frame(struct incident *in, uint32_t frame, uint32_t k,
			  const struct incident_line *line)
{
	struct incident_frame f = in->frames[frame];

	f.file = line->file;
	f.line = line->line;
	if (k || !f.function || !*f.function) {
		f.function = line->function;
		f.function_offset = line->function ? line->function_offset : 0;
		f.raw_name = NULL;
	}
	if (k)
		f.flags |= FRAME_INLINED;
	return incident_add_frame(in, &f);
}

/* frame_of[line]: the frame made from a line. */
static int add_frames(struct incident *in, const struct incident_expansion *of_frame,
		      const struct incident_line *lines, uint32_t *frame_of)
{
	uint32_t n = in->nframes, i, k;

	for (i = 0; i < n; i++) {
		for (k = 0; k < of_frame[i].n; k++) {
			uint32_t at = of_frame[i].first + k;

			frame_of[at] = add_frame(in, i, k, &lines[at]);
			if (frame_of[at] == UINT32_MAX)
				return ERR_MEMORY;
		}
	}
	return 0;
}

/* to[stack]: the stack with all its frames expanded. New ones also come after their callers. */
static int add_stacks(struct incident *in, const struct incident_expansion *of_frame,
		      const uint32_t *frame_of, const bool *used, uint32_t *to)
{
	uint32_t n = in->nstacks, i, k;

	for (i = 0; i < n; i++) {
		const struct incident_stack s = in->stacks[i];
		const struct incident_expansion *e = &of_frame[s.frame];
		uint32_t at = s.parent == STACK_NONE ? STACK_NONE : to[s.parent];

		if (!used[i])
			continue;
		if (!e->n)
			at = incident_add_stack(in, at, s.frame);
		for (k = 0; k < e->n && (!k || at != UINT32_MAX); k++)
			at = incident_add_stack(in, at, frame_of[e->first + k]);
		if (at == UINT32_MAX)
			return ERR_MEMORY;
		to[i] = at;
	}
	return 0;
}

int incident_expand(struct incident *in, const struct incident_expansion *of_frame,
		    const struct incident_line *lines, uint32_t nlines, struct err *err)
{
	uint32_t *frame_of = malloc(((size_t)nlines + 1) * sizeof(*frame_of));
	uint32_t *to = malloc(((size_t)in->nstacks + 1) * sizeof(*to));
	bool *used = stacks_used(in);
	int rc = frame_of && to && used ? 0 : ERR_MEMORY;

	if (!rc)
		rc = add_frames(in, of_frame, lines, frame_of);
	if (!rc)
		rc = add_stacks(in, of_frame, frame_of, used, to);
	if (!rc)
		incident_restack(in, to);
	free(frame_of);
	free(to);
	free(used);
	return rc ? err_memory(err, "for source lines") : 0;
}
