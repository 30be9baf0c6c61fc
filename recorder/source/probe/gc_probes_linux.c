#include "source/probe/gc_probes_linux.h"

#include "base/os.h"
#include "base/text.h"
#include "source/runtime/pause_list.h"
#include "source/host/proc_pid_linux.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLR "Microsoft-Windows-DotNETRuntime"
#define CLR_KEYWORD_GC 1u
#define V8_COLLECT "_ZN2v88internal4Heap24PerformGarbageCollection*"
#define V8_MARK_COMPACT 1u
#define MAPS_MAX_BYTES ((size_t)16 << 20)
#define NO_PROBES UINT32_MAX
#define STARTING_NS NS_PER_SEC               /* a JVM may not have its performance data yet */

bool gc_probes_wanted(const struct needs *needs)
{
	uint32_t i;

	for (i = 0; needs && i < needs->nproviders; i++)
		if (text_same_fold(needs->providers[i].name, CLR) &&
		    needs->providers[i].keywords & CLR_KEYWORD_GC)
			return true;
	return pause_wanted(needs, PAUSE_PROVIDERS);
}

/* ---- which programs -------------------------------------------------------------------------- */

struct search {
	struct need_event *events;
	struct gc_probe *probes;
	unsigned n, nfiles;
	uint64_t dev[GC_PROGRAMS_MAX], ino[GC_PROGRAMS_MAX];
	unsigned first[GC_PROGRAMS_MAX];     /* of the probes of a libjvm.so; NO_PROBES */
};

static void add(struct search *s, enum gc_program program, const char *path, const char *what,
		enum gc_edge edge)
{
	struct need_event *e = &s->events[s->n];

	memset(e, 0, sizeof(*e));
	snprintf(e->provider, sizeof(e->provider), "%s", program == GC_V8 ? "uprobe" : "usdt");
	snprintf(e->name, sizeof(e->name), "%.300s:%s", path, what);
	s->probes[s->n++] = (struct gc_probe){.edge = edge, .program = program};
}

static int is_gc(void *ctx, const struct stapsdt *probe)
{
	(void)ctx;
	return strcmp(probe->provider, "python") == 0 && strcmp(probe->name, "gc__start") == 0;
}

static int is_hotspot(void *ctx, const struct stapsdt *probe)
{
	(void)ctx;
	return strcmp(probe->provider, "hotspot") == 0 && strcmp(probe->name, "gc__begin") == 0;
}

bool gc_probes_has_hotspot(const char *path)
{
	return uprobe_list(path, is_hotspot, NULL, NULL) == 1;
}

/* Which of the files, or a place for a new one; GC_PROGRAMS_MAX = neither. */
static unsigned file_of(struct search *s, const char *path, bool *is_new)
{
	struct os_file_info info;
	unsigned i;

	*is_new = false;
	if (strchr(path, ':') || os_path_info(path, &info, NULL) != 0)
		return GC_PROGRAMS_MAX;
	for (i = 0; i < s->nfiles; i++)
		if (s->dev[i] == info.dev && s->ino[i] == info.ino)
			return i;
	if (i == GC_PROGRAMS_MAX)
		return i;
	*is_new = true;
	s->dev[i] = info.dev;
	s->ino[i] = info.ino;
	s->first[i] = NO_PROBES;
	s->nfiles++;
	return i;
}

/*
 * start-end perms pgoff major:minor inode path: of the first mapping that has this in its path;
 * NULL = none
 */
static const char *path_with(const char *maps, const char *text, size_t *length)
{
	const char *hit = strstr(maps, text), *line = hit;

	while (line && line > maps && line[-1] != '\n')
		line--;
	line = line ? strchr(line, '/') : NULL;
	*length = line ? strcspn(line, "\n") : 0;
	return line;
}

bool gc_probes_has_python(const char *path)
{
	return uprobe_list(path, is_gc, NULL, NULL) == 1;
}

static void look_at_python(struct search *s, const char *path)
{
	bool is_new = false;

	file_of(s, path, &is_new);
	if (!is_new || !gc_probes_has_python(path))
		return;
	add(s, GC_CPYTHON, path, "python:gc__start", GC_BEGINS);
	add(s, GC_CPYTHON, path, "python:gc__done", GC_ENDS);
}

bool gc_probes_has_v8(const char *path)
{
	char name[UPROBE_PATH_MAX + sizeof(V8_COLLECT)];
	struct uprobe *probe = malloc(sizeof(*probe));
	bool has;

	snprintf(name, sizeof(name), "%s:" V8_COLLECT, path);
	has = probe && uprobe_resolve("uprobe", name, probe, NULL) == 0;
	free(probe);
	return has;
}

bool gc_probes_is_node(const char *name)
{
	return strcmp(name, "node") == 0 || strcmp(name, "nodejs") == 0;
}

static void look_at_node(struct search *s, const char *path)
{
	bool is_new = false;

	file_of(s, path, &is_new);
	if (!is_new || !gc_probes_has_v8(path))
		return;
	add(s, GC_V8, path, V8_COLLECT, GC_BEGINS);
	add(s, GC_V8, path, V8_COLLECT "%return", GC_ENDS);
}

/*
 * Python of Fedora, RHEL and others, node of Debian: all of it is in a library, which those that
 * start later share.
 */
static void look_for_library(struct search *s, const char *pid, const char *begin,
			     void (*look_at)(struct search *s, const char *path))
{
	char path[UPROBE_PATH_MAX], maps_path[40];
	struct buf maps = {0};
	const char *at = NULL;
	size_t length = 0;

	snprintf(maps_path, sizeof(maps_path), "/proc/%.16s/maps", pid);
	if (os_load(maps_path, MAPS_MAX_BYTES, &maps, NULL) == 0)
		at = path_with(buf_text(&maps), begin, &length);
	if (at && (size_t)snprintf(path, sizeof(path), "/proc/%.16s/root%.*s", pid, (int)length,
				   at) < sizeof(path))
		look_at(s, path);
	buf_free(&maps);
}

static void look(struct search *s, const char *name, const char *path, const char *pid)
{
	if (strncmp(name, "python", 6) == 0) {
		look_at_python(s, path);
		if (pid)
			look_for_library(s, pid, "/libpython", look_at_python);
	} else if (gc_probes_is_node(name)) {
		look_at_node(s, path);
		if (pid)
			look_for_library(s, pid, "/libnode.so", look_at_node);
	}
}

/* A JVM, running for a while, whose performance data is nowhere to be read. */
static bool is_blind_jvm(uint32_t pid, char *library, size_t n, uint64_t *start_ns)
{
	static const char deleted[] = " (deleted)";
	struct buf maps = {0};
	struct proc_pid process;
	size_t length, ndeleted = sizeof(deleted) - 1;
	char path[40];
	const char *at;
	bool blind = false;

	if (!proc_pid_read(pid, &process) || os_now_ns() - process.start_ns < STARTING_NS)
		return false;
	*start_ns = process.start_ns;
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	if (os_load(path, MAPS_MAX_BYTES, &maps, NULL) == 0) {
		at = path_with(buf_text(&maps), "/hsperfdata_", &length);
		blind = !at || (length > ndeleted &&
				memcmp(at + length - ndeleted, deleted, ndeleted) == 0);
		at = path_with(buf_text(&maps), "/libjvm.so\n", &length);
		blind &= at && (size_t)snprintf(library, n, "/proc/%u/root%.*s", pid, (int)length,
						at) < n;
	}
	buf_free(&maps);
	return blind;
}

static void look_at_jvm(struct search *s, uint32_t pid)
{
	char library[UPROBE_PATH_MAX];
	struct gc_probe *begin;
	bool is_new = false;
	uint64_t start_ns;
	unsigned file;

	if (!is_blind_jvm(pid, library, sizeof(library), &start_ns))
		return;
	file = file_of(s, library, &is_new);
	if (is_new && gc_probes_has_hotspot(library)) {
		s->first[file] = s->n;
		add(s, GC_HOTSPOT, library, "hotspot:gc__begin", GC_BEGINS);
		add(s, GC_HOTSPOT, library, "hotspot:gc__end", GC_ENDS);
	}
	if (file == GC_PROGRAMS_MAX || s->first[file] == NO_PROBES)
		return;
	begin = &s->probes[s->first[file]];
	if (begin->npids == GC_JVMS_MAX)
		return;
	begin->starts_ns[begin->npids] = start_ns;
	begin->pids[begin->npids++] = pid;
	begin[1] = *begin;
	begin[1].edge = GC_ENDS;
}

bool gc_probe_is_of(const struct gc_probe *probe, uint32_t pid, uint64_t start_ns)
{
	unsigned i;

	for (i = 0; i < probe->npids; i++)
		if (probe->pids[i] == pid &&
		    (!start_ns || start_ns <= probe->starts_ns[i] + NS_PER_SEC))
			return true;
	return probe->program != GC_HOTSPOT;
}

unsigned gc_probes_find(struct need_event events[2 * GC_PROGRAMS_MAX],
			struct gc_probe probes[2 * GC_PROGRAMS_MAX])
{
	struct search s = {.events = events, .probes = probes};
	char path[64], target[UPROBE_PATH_MAX];
	struct dirent *entry;
	DIR *proc = opendir("/proc");
	ssize_t n;

	look(&s, "python3", "/usr/bin/python3", NULL);
	look(&s, "node", "/usr/bin/node", NULL);
	while (proc && (entry = readdir(proc)) != NULL) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9')
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/exe", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		if (n > 0) {
			target[n] = '\0';
			look(&s, text_base_name(target), path, entry->d_name);
			if (strcmp(text_base_name(target), "java") == 0)
				look_at_jvm(&s, (uint32_t)strtoul(entry->d_name, NULL, 10));
		}
	}
	if (proc)
		closedir(proc);
	return s.n;
}

/* ---- what they say --------------------------------------------------------------------------- */

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

static uint64_t generation(enum gc_program program, const struct event_field *arguments, unsigned n)
{
	switch (program) {
	case GC_HOTSPOT:
		return argument(arguments, n, "Arg1") ? 2 : 0;
	case GC_V8:
		return argument(arguments, n, "Arg2") == V8_MARK_COMPACT ? 2 : 0;
	default:
		return argument(arguments, n, "Arg1");
	}
}

void gc_probe_event(const struct gc_probe *probe, const struct event_field *arguments,
		    unsigned narguments, uint32_t tid, struct gc_generations *generations,
		    struct event_field fields[GC_PROBE_FIELDS], struct event *out)
{
	static const char *const providers[] = {"CPython", "V8", "JVM"};
	static const char *const collectors[] = {"CPython", "V8", "HotSpot (probes)"};
	bool ends = probe->edge == GC_ENDS;
	unsigned at = tid % GC_THREADS;
	uint64_t depth = ends ? generations->last[at].depth
			      : generation(probe->program, arguments, narguments);

	fields[0] = (struct event_field){.name = "Reason", .type = FIELD_UINT, .v.u = 1};
	fields[1] = (struct event_field){.name = "Type", .type = FIELD_UINT};
	fields[2] = (struct event_field){.name = "Collector", .type = FIELD_TEXT,
					 .v.text = collectors[probe->program]};
	fields[3] = (struct event_field){.name = "Depth", .type = FIELD_UINT, .v.u = depth};
	out->provider = providers[probe->program];
	out->name = names[ends][0];
	out->fields = fields;
	out->nfields =
		ends && generations->last[at].tid != tid ? GC_PROBE_FIELDS - 1 : GC_PROBE_FIELDS;
	out->hex_fields = 0;
	generations->last[at].tid = ends ? 0 : tid;
	generations->last[at].depth = (uint8_t)depth;
}
