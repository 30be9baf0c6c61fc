#include "source/probe/gc_probes_linux.h"

#include "base/os.h"
#include "base/text.h"
#include "source/host/proc_pid_linux.h"
#include "source/probe/programs_linux.h"
#include "source/runtime/pause_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLR "Microsoft-Windows-DotNETRuntime"
#define CLR_KEYWORD_GC 1u
#define V8_COLLECT "_ZN2v88internal4Heap24PerformGarbageCollection*"
#define V8_MARK_COMPACT 1u
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

static const struct {
	const char *kind;                    /* of its probes: "uprobe" or "usdt" */
	const char *begins, *ends;
	const char *library;                 /* in the path of the library that may have them */
	const char *provider, *collector;    /* in its events */
} programs[] = {
	[GC_CPYTHON] = {"usdt", "python:gc__start", "python:gc__done", "/libpython", "CPython",
			"CPython"},
	[GC_V8] = {"uprobe", V8_COLLECT, V8_COLLECT "%return", "/libnode.so", "V8", "V8"},
	[GC_HOTSPOT] = {"usdt", "hotspot:gc__begin", "hotspot:gc__end", "/libjvm.so\n", "JVM",
			"HotSpot (probes)"},
};

struct search {
	struct programs *of;
	struct need_event *events;
	struct gc_probe *probes;
	unsigned n;
	struct program_files files;
	unsigned first[PROGRAM_FILES_MAX];   /* each file's first probe; NO_PROBES */
	struct buf maps;                     /* of the process that is looked at */
};

static void put_name(enum gc_program program, const char *path, char *out, size_t n)
{
	snprintf(out, n, "%s:%s", path, programs[program].begins);
}

bool gc_probes_has(enum gc_program program, const char *path)
{
	char name[UPROBE_PATH_MAX + 80];
	struct uprobe *probe = malloc(sizeof(*probe));
	bool has;

	put_name(program, path, name, sizeof(name));
	has = probe && uprobe_resolve(programs[program].kind, name, probe, NULL) == 0;
	if (has)
		close(probe->file);
	free(probe);
	return has;
}

static void add_probe(struct search *s, enum gc_program program, enum gc_edge edge,
		      const char *path)
{
	struct need_event *e = &s->events[s->n];

	*e = (struct need_event){0};
	snprintf(e->provider, sizeof(e->provider), "%s", programs[program].kind);
	snprintf(e->name, sizeof(e->name), "%.300s:%s", path,
		 edge == GC_BEGINS ? programs[program].begins : programs[program].ends);
	s->probes[s->n++] = (struct gc_probe){.edge = edge, .program = program};
}

/* Add the probes of a file, unless it was added before. returns  the first; NO_PROBES = none */
static unsigned add_file(struct search *s, enum gc_program program, const struct program_file *f)
{
	char name[UPROBE_PATH_MAX + 80];
	bool is_new;
	unsigned file = program_files_add(&s->files, s->of, f, &is_new);

	put_name(program, f->path, name, sizeof(name));
	if (is_new && programs_have(s->of, f, programs[program].kind, name)) {
		s->first[file] = s->n;
		add_probe(s, program, GC_BEGINS, f->path);
		add_probe(s, program, GC_ENDS, f->path);
	} else if (is_new) {
		s->first[file] = NO_PROBES;
	}
	return file == PROGRAM_FILES_MAX ? NO_PROBES : s->first[file];
}

bool gc_probes_is_node(const char *name)
{
	return strcmp(name, "node") == 0 || strcmp(name, "nodejs") == 0;
}

/*
 * Python of Fedora, RHEL and others, node of Debian: all of it is in a library, which those that
 * start later share.
 */
static void look_at_program(struct search *s, enum gc_program program, uint32_t pid,
			    const char *target)
{
	struct program_file file;
	const char *at;

	programs_maps(s->of, pid, &s->maps);
	program_exe(pid, buf_text(&s->maps), target, &file);
	add_file(s, program, &file);
	at = buf_text(&s->maps);
	if (program_mapped(pid, &at, programs[program].library, &file))
		add_file(s, program, &file);
}

/* A JVM, running for a while, whose performance data is nowhere to be read. */
static bool is_blind_jvm(struct search *s, uint32_t pid, struct program_file *library,
			 uint64_t *start_ns)
{
	struct proc_stat stat;
	struct program_file data;
	const char *at;

	if (!proc_pid_stat(pid, &stat, start_ns) || os_now_ns() - *start_ns < STARTING_NS)
		return false;
	if (!programs_maps(s->of, pid, &s->maps))
		return false;
	at = buf_text(&s->maps);
	if (program_mapped(pid, &at, "/hsperfdata_", &data) &&
	    !text_ends_fold(data.path, " (deleted)"))
		return false;
	at = buf_text(&s->maps);
	return program_mapped(pid, &at, programs[GC_HOTSPOT].library, library);
}

static void look_at_jvm(struct search *s, uint32_t pid)
{
	struct program_file library;
	struct gc_probe *begin;
	uint64_t start_ns;
	unsigned first;

	if (!is_blind_jvm(s, pid, &library, &start_ns))
		return;
	first = add_file(s, GC_HOTSPOT, &library);
	if (first == NO_PROBES || s->probes[first].npids == GC_JVMS_MAX)
		return;
	begin = &s->probes[first];
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

/* The link /proc/PID/exe can always be read; its file may hang. */
static bool look_at_process(void *ctx, uint32_t pid)
{
	char target[UPROBE_PATH_MAX];
	const char *name = target;

	if (proc_pid_exe(pid, target, sizeof(target)))
		name = text_base_name(target);
	if (gc_probes_is_node(name))
		look_at_program(ctx, GC_V8, pid, target);
	else if (strncmp(name, "python", 6) == 0)
		look_at_program(ctx, GC_CPYTHON, pid, target);
	else if (strcmp(name, "java") == 0)
		look_at_jvm(ctx, pid);
	return true;
}

unsigned gc_probes_find(struct programs *of, struct need_event events[2 * GC_PROGRAMS_MAX],
			struct gc_probe probes[2 * GC_PROGRAMS_MAX])
{
	struct search s = {.of = of, .events = events, .probes = probes};

	add_file(&s, GC_CPYTHON, &(struct program_file){.path = "/usr/bin/python3"});
	add_file(&s, GC_V8, &(struct program_file){.path = "/usr/bin/node"});
	proc_each("/proc", look_at_process, &s);
	buf_free(&s.maps);
	return s.n;
}

/* ---- what they say --------------------------------------------------------------------------- */

static const char *const event_names[2][2] = {
	{"GC/SuspendEEStart", "GC/Start"},
	{"GC/Stop", "GC/RestartEEStop"},
};

const char *gc_probe_second_name(const struct gc_probe *probe)
{
	return event_names[probe->edge == GC_ENDS][1];
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
	bool ends = probe->edge == GC_ENDS;
	unsigned at = tid % GC_THREADS;
	uint64_t depth = ends ? generations->last[at].depth
			      : generation(probe->program, arguments, narguments);

	fields[0] = (struct event_field){.name = "Reason", .type = FIELD_UINT, .v.u = 1};
	fields[1] = (struct event_field){.name = "Type", .type = FIELD_UINT};
	fields[2] = (struct event_field){.name = "Collector", .type = FIELD_TEXT,
					 .v.text = programs[probe->program].collector};
	fields[3] = (struct event_field){.name = "Depth", .type = FIELD_UINT, .v.u = depth};
	out->provider = programs[probe->program].provider;
	out->name = event_names[ends][0];
	out->fields = fields;
	out->nfields = GC_PROBE_FIELDS - (ends && generations->last[at].tid != tid);
	out->hex_fields = 0;
	generations->last[at].tid = ends ? 0 : tid;
	generations->last[at].depth = (uint8_t)depth;
}
