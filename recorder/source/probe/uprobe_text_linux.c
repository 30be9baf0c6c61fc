#include "source/probe/uprobe_text_linux.h"

#include "base/os.h"
#include "base/text.h"
#include "model/needs.h"
#include "source/host/proc_reader_linux.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OFFSET_MAX 65536

/* ---- parsing --------------------------------------------------------------------------------- */

/* "+192(" at *at. */
static bool take_offset(const char **at, int32_t *out)
{
	char *end;
	long n;

	if ((**at != '+' && **at != '-') || !isdigit((unsigned char)(*at)[1]))
		return false;
	n = strtol(*at, &end, 0);
	if (*end != '(' || n > OFFSET_MAX || n < -OFFSET_MAX)
		return false;
	*out = (int32_t)n;
	*at = end + 1;
	return true;
}

/* NAME:+OFFSET(...ArgN...) of n bytes. */
static bool parse_one(const struct uprobe *probe, const char *text, size_t n,
		      struct uprobe_text *out)
{
	const char *at = memchr(text, ':', n), *end = text + n;
	char field[EVENT_FIELD_MAX];
	int32_t offsets[UPROBE_DEREFS_MAX];
	unsigned i;
	size_t len;

	memset(out, 0, sizeof(*out));
	if (!at || at == text || (size_t)(at - text) >= sizeof(out->name))
		return false;
	memcpy(out->name, text, (size_t)(at - text));
	for (at++; out->n < UPROBE_DEREFS_MAX && take_offset(&at, &offsets[out->n]); out->n++)
		;
	if (!out->n || at >= end)
		return false;
	len = strspn(at, "0123456789ArgGoutine");
	if (!len || len >= sizeof(field) || (size_t)(end - at) != len + out->n ||
	    strspn(at + len, ")") < out->n)
		return false;
	snprintf(field, sizeof(field), "%.*s", (int)len, at);
	/* The innermost is read first. */
	for (i = 0; i < out->n; i++)
		out->offsets[i] = offsets[out->n - 1 - i];
	return uprobe_register(probe, field, &out->reg);
}

/* The texts of several rules on one probe are told to all of them. */
static int add_text(struct uprobe *probe, const struct uprobe_text *text, struct err *err)
{
	unsigned i;

	for (i = 0; i < probe->ntexts; i++)
		if (strcmp(probe->texts[i].name, text->name) == 0)
			return memcmp(&probe->texts[i], text, sizeof(*text)) == 0
				       ? 0
				       : err_set(err, ERR_USAGE, "Text=%s: another rule on this "
						 "probe reads a text of this name elsewhere",
						 text->name);
	if (i == UPROBE_TEXTS_MAX)
		return err_set(err, ERR_USAGE, "Text=%s: the rules on one probe read at most %u "
			       "texts", text->name, UPROBE_TEXTS_MAX);
	probe->texts[probe->ntexts++] = *text;
	return 0;
}

int uprobe_texts_parse(struct uprobe *probe, const char *texts, uint32_t lasting_ms,
		       struct err *err)
{
	uint64_t late_ns = lasting_ms * NS_PER_MS;
	const char *at = texts;
	unsigned of_rule;
	size_t n;
	int rc = 0;

	if (late_ns < UPROBE_TEXT_LATE_NS)
		late_ns = UPROBE_TEXT_LATE_NS;
	if (!probe->ntexts || late_ns < probe->texts_late_ns)
		probe->texts_late_ns = late_ns;
	for (of_rule = 0; !rc && *at; of_rule++, at += n + (at[n] == ',')) {
		struct uprobe_text text;

		n = strcspn(at, ",");
		if (of_rule == UPROBE_TEXTS_OF_RULE)
			rc = err_set(err, ERR_USAGE, "Text=%.100s: a rule has at most %u texts",
				     at, UPROBE_TEXTS_OF_RULE);
		else if (!parse_one(probe, at, n, &text))
			rc = err_set(err, ERR_USAGE,
				     "Text=%.100s is not NAME:+OFFSET(ArgN), like "
				     "URL:+192(Arg4), or NAME:+OFFSET(+OFFSET(ArgN))", at);
		else
			rc = add_text(probe, &text, err);
	}
	return rc;
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Follow the pointers to where the text, or a Go string, stands. */
static bool find_text(const struct uprobe_text *text, struct proc_reader *reader,
		      const struct perf_record *r, uint64_t *at)
{
	unsigned i;

	if (!perf_record_register(r, text->reg, at))
		return false;
	for (i = 0; i < text->n; i++) {
		if (i && proc_reader_memory(reader, r->pid, *at, at, sizeof(*at)) != sizeof(*at))
			return false;
		*at += (uint64_t)(int64_t)text->offsets[i];
	}
	return true;
}

static bool read_text(const struct uprobe *probe, const struct uprobe_text *text,
		      struct proc_reader *reader, const struct perf_record *r, char *out)
{
	size_t room = UPROBE_TEXT_BYTES - 1, got;
	uint64_t at, go[2];

	if (!find_text(text, reader, r, &at))
		return false;
	if (probe->is_go) {
		if (proc_reader_memory(reader, r->pid, at, go, sizeof(go)) != sizeof(go))
			return false;
		at = go[0];
		room = go[1] < room ? (size_t)go[1] : room;
	}
	/* A text may end just before memory that cannot be read. */
	got = proc_reader_memory(reader, r->pid, at, out, room);
	out[got] = '\0';
	return got == room || (!probe->is_go && strlen(out) < got);
}

unsigned uprobe_texts_read(const struct uprobe *probe, struct proc_reader *reader,
			   const struct perf_record *r, uint64_t now_ns,
			   char bytes[UPROBE_TEXTS_MAX][UPROBE_TEXT_BYTES],
			   struct event_field *fields, unsigned n)
{
	unsigned i;

	for (i = 0; i < probe->ntexts && n < STAPSDT_ARGUMENTS_MAX; i++) {
		if (now_ns > r->time_ns + probe->texts_late_ns ||
		    !read_text(probe, &probe->texts[i], reader, r, bytes[i]))
			continue;
		fields[n++] = (struct event_field){.name = probe->texts[i].name,
						   .type = FIELD_TEXT, .v.text = bytes[i]};
	}
	return n;
}
