/*
 * The text of `perf script`, and of its imitators:
 *
 *	comm 12/34 [001] 15152.483135: 667111 cpu-clock:u:
 *		ffffffff821c9cb2 mas_walk+0x2 ([kernel.kallsyms])
 *		           85b10 main+0x10 (/usr/bin/x)
 *	(empty line)
 *
 * pid, CPU and period may be missing, and comm may have blanks. Frames are leaf first.
 */
#include "source/stackfile/stack_list.h"

#include "base/text.h"

#include <stdlib.h>
#include <string.h>

struct piece {
	const char *at;
	size_t n;
};

struct reading {
	struct stack_list *l;
	bool open;                           /* a sample's head was read */
	struct stack_list_sample s;
	struct piece event;
	struct stack_text {
		struct piece module, function;
		uint32_t flags;
	} frames[STACK_LIST_DEPTH_MAX];      /* leaf first */
	uint32_t n;
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static bool next_word(const char **at, const char *end, struct piece *word)
{
	while (*at < end && is_blank(**at))
		++*at;
	word->at = *at;
	while (*at < end && !is_blank(**at))
		++*at;
	word->n = (size_t)(*at - word->at);
	return word->n != 0;
}

static bool read_digits(struct piece *w, uint64_t *out)
{
	size_t n = 0;

	*out = 0;
	for (; n < w->n && n < 19 && w->at[n] >= '0' && w->at[n] <= '9'; n++)
		*out = *out * 10 + (uint64_t)(w->at[n] - '0');
	w->at += n;
	w->n -= n;
	return n != 0;
}

/* "12" or "12/34" */
static bool read_ids(struct piece w, uint32_t *pid, uint32_t *tid)
{
	uint64_t first, second;

	if (!read_digits(&w, &first) || first > UINT32_MAX)
		return false;
	second = first;
	if (w.n && *w.at == '/') {
		w.at++;
		w.n--;
		if (!read_digits(&w, &second) || second > UINT32_MAX)
			return false;
	}
	*pid = (uint32_t)first;
	*tid = (uint32_t)second;
	return w.n == 0;
}

/* "15152.483135:", also with nine digits */
static bool read_time(struct piece w, uint64_t *ns)
{
	uint64_t sec, part;
	size_t digits;

	if (!read_digits(&w, &sec) || !w.n || *w.at != '.' || sec > UINT64_MAX / 2000000000)
		return false;
	w.at++;
	digits = --w.n;
	if (!read_digits(&w, &part) || w.n != 1 || *w.at != ':')
		return false;
	digits -= w.n;
	if (digits > 9)
		return false;
	for (; digits < 9; digits++)
		part *= 10;
	*ns = sec * 1000000000 + part;
	return true;
}

static bool read_cpu(struct piece w, uint16_t *cpu)
{
	uint64_t v;

	if (w.n < 3 || *w.at != '[')
		return false;
	w.at++;
	w.n--;
	if (!read_digits(&w, &v) || w.n != 1 || *w.at != ']')
		return false;
	*cpu = v < CPU_NONE ? (uint16_t)v : CPU_NONE;
	return true;
}

/* Without the ':' at its end and modifiers such as ":u"; "sched:sched_switch" stays. */
static struct piece event_name(struct piece w)
{
	size_t i;

	while (w.n && w.at[w.n - 1] == ':')
		w.n--;
	for (i = w.n; i && strchr("ukhGHIpPSDWeb", w.at[i - 1]); i--)
		;
	if (i > 1 && i < w.n && w.at[i - 1] == ':')
		w.n = i - 1;
	return w;
}

static bool is_event(struct piece w, const char *name)
{
	return w.n >= strlen(name) && memcmp(w.at, name, strlen(name)) == 0;
}

static enum stream stream_of(struct piece event)
{
	if (is_event(event, "cpu-clock") || is_event(event, "task-clock") ||
	    is_event(event, "cycles") || is_event(event, "cpu/cycles") ||
	    is_event(event, "cpu_core/cycles"))
		return STREAM_CPU;
	if (is_event(event, "off-cpu"))
		return STREAM_OFF_CPU;
	return is_event(event, "alloc") ? STREAM_ALLOC : STREAM_EVENT;
}

/* false: the line is no head of a sample */
static bool read_head(struct reading *r, const char *line, const char *end)
{
	const char *at = line;
	struct piece word, next;
	uint32_t pid, tid;
	uint64_t period;

	next_word(&at, end, &word);
	while (next_word(&at, end, &word)) {
		const char *after = at;
		uint16_t cpu = CPU_NONE;

		if (!read_ids(word, &pid, &tid) || !next_word(&after, end, &next))
			continue;
		if (read_cpu(next, &cpu) && !next_word(&after, end, &next))
			return false;
		if (!read_time(next, &r->s.time_ns))
			continue;
		r->s.cpu = cpu;
		at = word.at;
		while (at > line && is_blank(at[-1]))
			at--;
		r->s.thread = stack_list_thread(r->l, line, (size_t)(at - line), pid, line,
						(size_t)(at - line), tid);
		r->event = (struct piece){"cpu-clock", 9};
		if (next_word(&after, end, &next)) {
			struct piece digits = next;

			period = 0;
			if (read_digits(&digits, &period) && !digits.n)
				next_word(&after, end, &next);
			else
				period = 0;
			r->s.weight = period ? (double)period : 1;
			if (next.n)
				r->event = event_name(next);
		}
		return true;
	}
	return false;
}

/* "85b10 main+0x10 (/usr/bin/x)" */
static bool read_frame(struct reading *r, const char *line, const char *end)
{
	struct stack_text f = {.module = {"", 0}};
	struct piece address;
	const char *at = line, *open = end, *plus;
	size_t i;

	if (!next_word(&at, end, &address))
		return false;
	for (i = 0; i < address.n; i++)
		if (hex_digit(address.at[i]) < 0)
			return false;
	while (at < end && is_blank(*at))
		at++;
	if (end > at && end[-1] == ')')
		while (open > at && !(*open == '(' && is_blank(open[-1])))
			open--;
	if (open > at && open < end) {
		f.module = (struct piece){open + 1, (size_t)(end - open - 2)};
		end = open - 1;
	}
	for (plus = end; plus > at && *plus != '+'; plus--)
		;
	f.function = (struct piece){at, (size_t)((plus > at && plus + 2 < end && plus[1] == '0'
							 ? plus : end) - at)};
	/* Kernel addresses have the top bit; our own exports say it by the module. */
	if ((address.n == 16 && hex_digit(*address.at) >= 8) ||
	    is_event(f.module, "[kernel.") || is_event(f.module, "[guest.kernel."))
		f.flags = FRAME_KERNEL;
	if (r->n < STACK_LIST_DEPTH_MAX)
		r->frames[r->n++] = f;
	else
		r->s.quality = QUALITY_TRUNCATED;
	return true;
}

/* The object's name as a recording would have it. */
static struct piece module_name(struct reading *r, struct stack_text *f, uint32_t i)
{
	static const char deleted[] = " (deleted)";
	struct piece m = f->module;
	size_t k;

	/* An inlined function is in the module of the one that it was inlined into. */
	if (m.n == 7 && memcmp(m.at, "inlined", 7) == 0) {
		f->flags |= FRAME_INLINED;
		return i + 1 < r->n ? module_name(r, &r->frames[i + 1], i + 1)
				    : (struct piece){"", 0};
	}
	if (is_event(m, "[kernel.") || is_event(m, "[guest.kernel."))
		return (struct piece){"[kernel]", 8};
	if (is_event(m, "/tmp/perf-") || is_event(m, "//anon")) {
		f->flags |= FRAME_JIT;
		return (struct piece){"[jit]", 5};
	}
	if (m.n == 9 && memcmp(m.at, "[unknown]", 9) == 0)
		return (struct piece){"?", 1};
	if (m.n > sizeof(deleted) && memcmp(m.at + m.n - sizeof(deleted) + 1, deleted,
					    sizeof(deleted) - 1) == 0)
		m.n -= sizeof(deleted) - 1;
	for (k = m.n; k && m.at[k - 1] != '/'; k--)
		;
	return (struct piece){m.at + k, m.n - k};
}

/* A sample of an event that is no time has the event as its leaf, as a recording's has. */
static void finish(struct reading *r)
{
	uint32_t i;

	if (!r->open)
		return;
	r->s.stream = (uint8_t)stream_of(r->event);
	r->s.node = STACK_LIST_NONE;
	for (i = r->n; i--;) {
		struct stack_text *f = &r->frames[i];
		struct piece module = module_name(r, f, i);

		if (stack_list_mark(f->function.at, f->function.n, &r->s.quality))
			continue;
		r->s.node = stack_list_node(r->l, r->s.node,
					    stack_list_frame(r->l, module.at, module.n,
							     f->function.at, f->function.n,
							     f->flags));
	}
	if (r->s.stream == STREAM_EVENT && !is_event(r->event, "event"))
		r->s.node = stack_list_node(r->l, r->s.node,
					    stack_list_frame(r->l, "event", 5, r->event.at,
							     r->event.n, FRAME_JIT));
	stack_list_sample(r->l, &r->s);
	r->open = false;
}

static void read_line(struct reading *r, const char *line, const char *end)
{
	if (end > line && end[-1] == '\r')
		end--;
	if (line == end) {
		finish(r);
	} else if (*line != '#' && !(is_blank(*line) && r->open && read_frame(r, line, end))) {
		finish(r);
		r->n = 0;
		r->s = (struct stack_list_sample){.quality = QUALITY_COMPLETE};
		/* Threads' names may begin with blanks, where perf aligns them. */
		while (line < end && is_blank(*line))
			line++;
		r->open = read_head(r, line, end);
		r->l->skipped += !r->open;
	}
}

int stack_list_perf_script(struct stack_list *l, const char *text, size_t n, struct err *err)
{
	struct reading *r = calloc(1, sizeof(*r));
	const char *at = text, *end = text + n;

	if (!r)
		return err_memory(err, "for a text of perf script");
	r->l = l;
	while (at < end) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		const char *stop = newline ? newline : end;

		read_line(r, at, stop);
		at = stop + (newline != NULL);
	}
	finish(r);
	free(r);
	l->has_times = true;
	return l->nsamples ? 0
			   : err_set(err, ERR_FORMAT, "it has no sample of perf script, such as "
				     "'sh 12 [001] 34.567890: 1 cpu-clock:'");
}
