#include "tests/support/perfview_reader.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

struct reader {
	const char *at;
	char tag[256];                       /* between < and >, without them */
	struct buf names;                    /* texts of frames, NUL after each */
	size_t *frames;                      /* where each begins in names */
	long (*stacks)[2];                   /* caller, frame */
	struct perfview_totals totals;
	struct buf *out;
};

/* The next tag; false at the end. What is before it is skipped. */
static bool next_tag(struct reader *r)
{
	const char *start = strchr(r->at, '<');
	const char *end = start ? strchr(start, '>') : NULL;

	if (!end)
		return false;
	assert_in_range(end - start - 1, 1, sizeof(r->tag) - 1);
	memcpy(r->tag, start + 1, (size_t)(end - start - 1));
	r->tag[end - start - 1] = '\0';
	r->at = end + 1;
	return true;
}

static bool is(const struct reader *r, const char *name)
{
	size_t n = strlen(name);

	return strncmp(r->tag, name, n) == 0 && (!r->tag[n] || r->tag[n] == ' ');
}

/* An attribute of the tag, or NULL. */
static const char *attribute(const struct reader *r, const char *name)
{
	char key[32] = " ";
	const char *at;

	strcat(strcat(key, name), "=\"");
	at = strstr(r->tag, key);
	return at ? at + strlen(key) : NULL;
}

static long number(const struct reader *r, const char *name)
{
	const char *text = attribute(r, name);
	char *end;
	long v;

	if (!text)
		fail_msg("no %s in <%s>", name, r->tag);
	v = strtol(text, &end, 10);
	assert_int_equal(*end, '"');
	return v;
}

/* The text up to the next tag, without markup. */
static void read_text(struct reader *r, struct buf *out)
{
	static const char *const entities[][2] = {{"&lt;", "<"}, {"&gt;", ">"}, {"&amp;", "&"}};
	size_t i;

	while (*r->at && *r->at != '<') {
		for (i = 0; i < 3 && strncmp(r->at, entities[i][0], strlen(entities[i][0])); i++)
			;
		assert_true(i < 3 || *r->at != '&');
		assert_true((unsigned char)*r->at >= 0x20 || *r->at == '\n');
		if (i < 3)
			buf_puts(out, entities[i][1]);
		else
			buf_putc(out, *r->at);
		r->at += i < 3 ? strlen(entities[i][0]) : 1;
	}
}

static void read_frame(struct reader *r)
{
	assert_int_equal(number(r, "ID"), r->totals.frames);
	assert_int_not_equal(r->tag[strlen(r->tag) - 1], '/');
	assert_int_not_equal(*r->at, '<');   /* an empty name */
	r->frames[r->totals.frames++] = r->names.len;
	read_text(r, &r->names);
	buf_putc(&r->names, '\0');
	assert_true(strncmp(r->at, "</Frame>", 8) == 0);
}

static void read_stack(struct reader *r)
{
	long caller = number(r, "CallerID"), frame = number(r, "FrameID");

	assert_int_equal(number(r, "ID"), r->totals.stacks);
	assert_true(caller >= -1 && caller < (long)r->totals.stacks);
	assert_true(frame >= 0 && frame < (long)r->totals.frames);
	r->stacks[r->totals.stacks][0] = caller;
	r->stacks[r->totals.stacks++][1] = frame;
}

static void put_stack(struct reader *r, long stack)
{
	if (r->stacks[stack][0] >= 0) {
		put_stack(r, r->stacks[stack][0]);
		buf_puts(r->out, " / ");
	}
	buf_puts(r->out, r->names.data + r->frames[r->stacks[stack][1]]);
}

/* Lines of text, leaf first. */
static void put_lines(struct reader *r)
{
	struct buf text = {0};
	char *line;

	read_text(r, &text);
	assert_true(text.len > 2 && text.data[0] == '\n' && text.data[text.len - 1] == '\n');
	text.data[--text.len] = '\0';
	while ((line = strrchr(text.data, '\n')) != NULL) {
		assert_true(line[1]);        /* a blank line is an empty frame */
		if (r->out)
			buf_puts(r->out, line + 1);
		if (r->out && line != text.data)
			buf_puts(r->out, " / ");
		*line = '\0';
	}
	buf_free(&text);
}

static void read_sample(struct reader *r)
{
	const char *metric = attribute(r, "Metric"), *time = attribute(r, "Time");
	long stack = attribute(r, "StackID") ? number(r, "StackID") : -1;

	assert_non_null(time);
	r->totals.last_time_ms = strtod(time, NULL);
	r->totals.metric += metric ? strtod(metric, NULL) : 1;
	r->totals.samples++;
	if (stack >= 0) {
		assert_true(stack < (long)r->totals.stacks);
		if (r->out)
			put_stack(r, stack);
	} else {
		put_lines(r);
	}
	if (r->out)
		buf_putc(r->out, '\n');
}

void perfview_read(const char *xml, struct perfview_totals *out, struct buf *stacks)
{
	struct reader r = {.at = xml, .out = stacks};
	uint32_t frames = 0, nstacks = 0, samples = 0;

	while (next_tag(&r)) {
		if (is(&r, "Frames")) {
			frames = (uint32_t)number(&r, "Count");
			r.frames = calloc((size_t)frames + 1, sizeof(*r.frames));
		} else if (is(&r, "Stacks")) {
			nstacks = (uint32_t)number(&r, "Count");
			r.stacks = calloc((size_t)nstacks + 1, sizeof(*r.stacks));
		} else if (is(&r, "Samples")) {
			samples = (uint32_t)number(&r, "Count");
		} else if (is(&r, "Frame")) {
			assert_true(r.totals.frames < frames);
			read_frame(&r);
		} else if (is(&r, "Stack")) {
			assert_true(r.totals.stacks < nstacks);
			read_stack(&r);
		} else if (is(&r, "Sample")) {
			read_sample(&r);
		}
	}
	assert_int_equal(r.totals.frames, frames);
	assert_int_equal(r.totals.stacks, nstacks);
	assert_int_equal(r.totals.samples, samples);
	*out = r.totals;
	free(r.frames);
	free(r.stacks);
	buf_free(&r.names);
}
