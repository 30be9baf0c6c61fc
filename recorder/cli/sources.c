/*
 * The live sources: which ones a recording takes (--source names the one that gives stacks), and
 * `counters`, what those with counters offer to rules.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"

#include "base/fit.h"
#include "base/nearest.h"
#include "base/text.h"
#include "source/list/asked.h"
#include "source/list/heap.h"
#include "source/source.h"

#include <string.h>

static int not_one_of(const char *name, struct err *err)
{
	struct buf text = {0};
	unsigned i;
	int rc;

	for (i = 0; live_sources[i]; i++)
		if (live_sources[i]->stacks)
			buf_printf(&text, "%s, ", live_sources[i]->name);
	rc = err_set(err, ERR_USAGE,
		     "--source: '%s' gives no stacks on this system; use one of: %snone", name,
		     buf_text(&text));
	buf_free(&text);
	return rc;
}

/* Keywords of ClrEtwAll.man. */
#define CLR_GC 0x1u
#define CLR_CONTENTION 0x4000u
#define CLR_EXCEPTION 0x8000u
#define CLR_INFORMATIONAL 4

static const struct source_ops *of_stacks(const char *name)
{
	unsigned i;

	for (i = 0; live_sources[i]; i++)
		if (live_sources[i]->stacks &&
		    (!name || text_same_fold(name, live_sources[i]->name)))
			return live_sources[i];
	return NULL;
}

/* The first option that names events to record; NULL = none. */
static const char *events_option(const struct options *o)
{
	return o->capture.providers	   ? "providers"
	       : o->capture.only_providers ? "only-providers"
	       : o->capture.events	   ? "event"
	       : o->capture.cpu_counters   ? "cpu-counters"
	       : o->capture.kernel_events  ? "kernel-events"
	       : o->capture.clr_events	   ? "clr-events"
	       : o->capture.clr_event_level ? "clr-event-level"
	       : o->capture.tpl_events	   ? "tpl-events"
					    : NULL;
}

/* Whether this source of stacks records the events that options name. */
static int check_events_option(const struct options *o, const struct source_ops *chosen,
			       struct err *err)
{
	const char *option = events_option(o);
	bool is_perf = chosen && strcmp(chosen->name, "perf") == 0;

	if (!option || o->capture.file)
		return 0;
	if (chosen && strcmp(chosen->name, "etw") == 0)
		return 0;
	if (is_perf && o->capture.kernel_events)
		return err_set(err, ERR_USAGE,
			       "--kernel-events needs an ETW session, on Windows: on Linux use "
			       "--event kernel:KEYWORD, --providers SUBSYSTEM:TRACEPOINT or "
			       "--thread-time");
	if (is_perf)
		return 0;
	return err_set(err, ERR_USAGE,
		       "--%s needs the source of stacks that has events: --source etw on Windows, "
		       "--source perf on Linux", option);
}

int cmd_runtime_needs(const struct options *o, struct needs *needs, struct err *err)
{
	uint64_t keywords = (o->runtime_events ? CLR_GC | CLR_CONTENTION | CLR_EXCEPTION : 0) |
			    (o->capture.gc_collect_only ? CLR_GC : 0);
	int rc = 0;

	needs->perf_maps = o->enable_perf_map;
	if (o->capture.file)
		return 0;
	needs->dotnet_names = !o->no_dotnet_names && !o->capture.gc_collect_only;
	if (keywords)
		rc = needs_provider(needs, "Microsoft-Windows-DotNETRuntime", keywords,
				    CLR_INFORMATIONAL, err);
	if (!rc && (o->heap || o->capture.heap_next || o->capture.heap_process))
		rc = heap_needs(o->capture.heap_next, o->capture.heap_process, needs, err);
	return rc ? rc : asked_needs(&o->capture, needs, err);
}

int cmd_sources(const struct options *o, struct cmd_sources *out, struct err *err)
{
	bool none = o->source && text_same_fold(o->source, "none");
	const struct source_ops *chosen = none ? NULL : of_stacks(o->source);
	unsigned i, n = 0;

	memset(out, 0, sizeof(*out));
	/* Leave out perf, which would give stacks only; an ETW session gives the collections. */
	if (o->capture.gc_collect_only && chosen && strcmp(chosen->name, "perf") == 0)
		chosen = NULL;
	if (!chosen && !none && o->source && !o->capture.gc_collect_only)
		return not_one_of(o->source, err);
	if (check_events_option(o, chosen, err))
		return ERR_USAGE;
	if (capture_switches(&o->capture) && !o->capture.file && !chosen && of_stacks(NULL))
		return err_set(err, ERR_USAGE,
			       "--%s: context switches come with stacks, which --%s omits: use one "
			       "or the other",
			       o->capture.wakers ? "wakers" : "thread-time",
			       none ? "source none" : "gc-collect-only");
	if (capture_switches(&o->capture) && !o->capture.file &&
	    !(chosen && (strcmp(chosen->name, "etw") == 0 || strcmp(chosen->name, "perf") == 0)))
		return err_set(err, ERR_USAGE, "--thread-time: on Windows context switches need an "
			       "ETW session: use --source etw");
	for (i = 0; live_sources[i] && n < CMD_SOURCES_MAX; i++) {
		if (live_sources[i]->stacks
			    ? live_sources[i] != chosen
			    : live_sources[i]->instead_of_events && chosen && chosen->events)
			continue;
		out->all[n++] = live_sources[i];
	}
	return 0;
}

/* ---- counters -------------------------------------------------------------------------------- */

int cmd_counters(const struct options *o, struct err *err)
{
	struct out *out = NULL;
	unsigned i, nlists = 0;
	struct sheet sheet;
	int rc;

	sheet_init(&sheet, o);
	sheet.columns = FIT_ALL;             /* a name is typed as it stands there */
	rc = out_to_buf(&sheet.out, &out, err);
	for (i = 0; !rc && live_sources[i]; i++) {
		if (o->pmu ? !live_sources[i]->list_events : !live_sources[i]->list)
			continue;
		nlists++;
		rc = o->pmu ? live_sources[i]->list_events(CPU_COUNTER_PROVIDER, o->json, out, err)
			    : live_sources[i]->list(o->pattern, o->json, out, err);
		/* Another source may have it. */
		if (rc == ERR_NOT_FOUND)
			rc = 0;
	}
	if (out && !rc)
		rc = out_close(out, err);
	else
		out_abandon(out);
	if (!rc && !nlists)
		rc = err_set(err, ERR_UNSUPPORTED,
			     "no source of counters is built into this program");
	else if (!rc && !sheet.out.len && o->pmu)
		rc = err_set(err, ERR_UNSUPPORTED, "this machine hides its processor's "
			     "counters");
	else if (!rc && !sheet.out.len)
		rc = err_set(err, ERR_NOT_FOUND, "no counter matches '%.200s'; 'recorder counters' "
			     "lists all", o->pattern ? o->pattern : "");
	if (!rc)
		rc = sheet_print(&sheet, err);
	sheet_free(&sheet);
	return rc;
}
