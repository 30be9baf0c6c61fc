/* List the events that rules can name, one a line; see probes_linux.h. */
#include "source/probe/probes_linux.h"

#include "base/json.h"
#include "source/probe/cpu_counter_linux.h"
#include "source/probe/tracepoint_linux.h"
#include "source/probe/uprobe_linux.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct listing {
	bool json;
	const char *path;                    /* a program's file */
	struct out *out;
	struct buf line;
	struct trace_format format;
};

/* As text "sched/sched_switch  prev_comm prev_pid"; in JSON with the fields' types. */
static void put_tracepoint(struct listing *l, const char *provider, const char *name)
{
	static const char *const types[] = {
		[TRACE_NUMBER] = "unsigned", [TRACE_CHARS] = "text", [TRACE_BYTES] = "bytes",
		[TRACE_LOC_CHARS] = "text", [TRACE_LOC_BYTES] = "bytes", [TRACE_REL_CHARS] = "text",
		[TRACE_REL_BYTES] = "bytes",
	};
	const struct trace_field *f = l->format.fields, *end = f + l->format.nfields;
	struct json j = {.out = &l->line};

	if (!l->json) {
		buf_printf(&l->line, "%s/%s%s", provider, name, f < end ? " " : "");
		for (; f < end; f++)
			buf_printf(&l->line, " %s", f->name);
		return;
	}
	json_open(&j, '{');
	json_key_str(&j, "provider", provider);
	json_key_str(&j, "name", name);
	json_key_open(&j, "fields", '[');
	for (; f < end; f++) {
		json_open(&j, '{');
		json_key_str(&j, "name", f->name);
		json_key_str(&j, "type",
			     f->kind == TRACE_NUMBER && f->is_signed ? "signed" : types[f->kind]);
		json_close(&j, '}');
	}
	json_close(&j, ']');
	json_close(&j, '}');
}

static int list_tracepoint(void *ctx, const char *provider, const char *name)
{
	struct listing *l = ctx;

	l->format.nfields = 0;
	if (tracepoint_load(provider, name, &l->format, NULL) == ERR_MEMORY)
		return ERR_MEMORY;
	buf_reset(&l->line);
	put_tracepoint(l, provider, name);
	buf_putc(&l->line, '\n');
	out_put(l->out, buf_text(&l->line), l->line.len);
	return 0;
}

static int list_usdt(void *ctx, const struct stapsdt *probe)
{
	struct stapsdt_argument arguments[STAPSDT_ARGUMENTS_MAX];
	unsigned i, n = stapsdt_arguments(probe->arguments, arguments);
	struct listing *l = ctx;
	char name[UPROBE_PATH_MAX + 2 * STAPSDT_NAME_MAX];

	snprintf(name, sizeof(name), "%s:%s:%s", l->path, probe->provider, probe->name);
	buf_reset(&l->line);
	if (l->json) {
		struct json j = {.out = &l->line};

		json_open(&j, '{');
		json_key_str(&j, "provider", "usdt");
		json_key_str(&j, "name", name);
		json_key_str(&j, "arguments", probe->arguments);
		json_close(&j, '}');
	} else {
		buf_printf(&l->line, "usdt:%s ", name);
		for (i = 1; i <= n; i++)
			buf_printf(&l->line, " Arg%u", i);
	}
	buf_putc(&l->line, '\n');
	out_put(l->out, buf_text(&l->line), l->line.len);
	return 0;
}

int probes_list(const char *pattern, bool json, struct out *out, struct err *err)
{
	struct listing *l;
	int rc;

	if (pattern && strstr(pattern, CPU_COUNTER_PROVIDER) == pattern) {
		cpu_counter_list(json, out);
		return 0;
	}
	l = calloc(1, sizeof(*l));
	if (!l)
		return err_memory(err, "for the list of events");
	l->json = json;
	l->out = out;
	l->path = pattern;
	rc = pattern && pattern[0] == '/' ? uprobe_list(pattern, list_usdt, l, err)
					  : tracepoint_each(pattern, list_tracepoint, l, err);
	buf_free(&l->line);
	free(l);
	return rc;
}
