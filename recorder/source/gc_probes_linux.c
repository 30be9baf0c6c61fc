#include "source/gc_probes_linux.h"

#include "base/os.h"
#include "base/text.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CLR "Microsoft-Windows-DotNETRuntime"
#define CLR_KEYWORD_GC 1u
#define V8_COLLECT "_ZN2v88internal4Heap24PerformGarbageCollection*"
#define V8_MARK_COMPACT 1u

bool gc_probes_wanted(const struct needs *needs)
{
	uint32_t i;

	for (i = 0; needs && i < needs->nproviders; i++)
		if (text_same_fold(needs->providers[i].name, CLR) && needs->providers[i].keywords & CLR_KEYWORD_GC)
			return true;
	return false;
}

/* ---- which programs --------------------------------------------------------------------------------- */

struct search {
	struct need_event *events;
	struct gc_probe *probes;
	unsigned n, nfiles;
	uint64_t dev[GC_PROGRAMS_MAX], ino[GC_PROGRAMS_MAX];
};

static void add(struct search *s, const char *provider, const char *path, const char *what, enum gc_edge edge)
{
	struct need_event *e = &s->events[s->n];

	memset(e, 0, sizeof(*e));
	snprintf(e->provider, sizeof(e->provider), "%s", provider);
	snprintf(e->name, sizeof(e->name), "%.300s:%s", path, what);
	s->probes[s->n++] = (struct gc_probe){edge, strcmp(provider, "uprobe") == 0};
}

static int is_gc(void *ctx, const struct stapsdt *probe)
{
	(void)ctx;
	return strcmp(probe->provider, "python") == 0 && strcmp(probe->name, "gc__start") == 0;
}

/* A file that was not met before. */
static bool is_new(struct search *s, const char *path)
{
	struct os_file_info info;
	unsigned i;

	if (s->nfiles == GC_PROGRAMS_MAX || strchr(path, ':') || os_path_info(path, &info, NULL) != 0)
		return false;
	for (i = 0; i < s->nfiles; i++)
		if (s->dev[i] == info.dev && s->ino[i] == info.ino)
			return false;
	s->dev[s->nfiles] = info.dev;
	s->ino[s->nfiles++] = info.ino;
	return true;
}

static void look(struct search *s, const char *name, const char *path)
{
	if (strncmp(name, "python", 6) == 0 && is_new(s, path) && uprobe_list(path, is_gc, NULL, NULL) == 1) {
		add(s, "usdt", path, "python:gc__start", GC_BEGINS);
		add(s, "usdt", path, "python:gc__done", GC_ENDS);
	} else if (strcmp(name, "node") == 0 && is_new(s, path)) {
		add(s, "uprobe", path, V8_COLLECT, GC_BEGINS);
		add(s, "uprobe", path, V8_COLLECT "%return", GC_ENDS);
	}
}

unsigned gc_probes_find(struct need_event events[2 * GC_PROGRAMS_MAX], struct gc_probe probes[2 * GC_PROGRAMS_MAX])
{
	struct search s = {.events = events, .probes = probes};
	char path[64], target[UPROBE_PATH_MAX];
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	ssize_t n;

	look(&s, "python3", "/usr/bin/python3");
	look(&s, "node", "/usr/bin/node");
	while (proc && (entry = readdir(proc)) != NULL) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/exe", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0) {
			target[n] = '\0';
			look(&s, text_base_name(target), path);
		}
	}
	if (proc)
		closedir(proc);
	return s.n;
}

/* ---- what they say ---------------------------------------------------------------------------------- */

static const char *const names[2][2] = {
	{"GC/SuspendEEStart", "GC/Start"},
	{"GC/Stop", "GC/RestartEEStop"},
};

const char *gc_probe_second_name(const struct gc_probe *probe)
{
	return names[probe->edge == GC_ENDS][1];
}

static uint64_t argument(const struct event_field *arguments, unsigned n, const char *name)
{
	unsigned i;

	for (i = 0; i < n; i++)
		if (strcmp(arguments[i].name, name) == 0)
			return arguments[i].v.u & UINT32_MAX;
	return 0;
}

void gc_probe_event(const struct gc_probe *probe, const struct event_field *arguments, unsigned narguments,
		    struct event_field fields[GC_PROBE_FIELDS], struct event *out)
{
	uint64_t depth = 0;

	if (probe->edge == GC_BEGINS && probe->v8)
		depth = argument(arguments, narguments, "Arg2") == V8_MARK_COMPACT ? 2 : 0;
	else if (probe->edge == GC_BEGINS)
		depth = argument(arguments, narguments, "Arg1");
	fields[0] = (struct event_field){.name = "Reason", .type = FIELD_UINT, .v.u = 1};
	fields[1] = (struct event_field){.name = "Count", .type = FIELD_UINT};
	fields[2] = (struct event_field){.name = "Depth", .type = FIELD_UINT, .v.u = depth};
	fields[3] = (struct event_field){.name = "Type", .type = FIELD_UINT};
	fields[4] = (struct event_field){.name = "Collector", .type = FIELD_TEXT,
					 .v.text = probe->v8 ? "V8" : "CPython"};
	out->provider = fields[4].v.text;
	out->name = names[probe->edge == GC_ENDS][0];
	out->fields = fields;
	out->nfields = GC_PROBE_FIELDS;
	out->hex_fields = 0;
}
