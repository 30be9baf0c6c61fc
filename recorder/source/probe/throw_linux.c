#include "source/probe/throw_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"
#include "source/host/proc_reader_linux.h"
#include "symbol/demangle.h"

#include <glob.h>
#include <stdio.h>
#include <string.h>

enum { REG_SI = 4, REG_DI = 5, NAME_BYTES = 400 };

#define CXX "C++"
#define JAVA "Java"
#define JAVA_LIBRARY "/libjvm.so\n"
#define USUAL_CXX "/usr/{lib/x86_64-linux-gnu,lib64,lib}/libstdc++.so.6"
#define USUAL_JVMS "/usr/lib/jvm/*/{jre/,}lib/{amd64/,}server/libjvm.so"

#define STACK_ERROR "throw_StackOverflowErrorEP10JavaThread"

static const struct {
	enum throw_kind kind;
	const char *provider, *function;
} places[] = {
	{THROW_CXX, CXX, "__cxa_throw"},
	{THROW_JAVA, JAVA, "JVM_FillInStackTrace"},
	{THROW_JAVA_MEMORY, JAVA, "_Z25report_java_out_of_memoryPKc"},
	{THROW_JAVA_STACK, JAVA, "_ZN13SharedRuntime24" STACK_ERROR},
	{THROW_JAVA_STACK, JAVA, "_ZN18InterpreterRuntime24" STACK_ERROR},
	{THROW_JAVA_STACK, JAVA,
	 "_ZN10Exceptions30throw_stack_overflow_exceptionEP10JavaThreadPKciRK12methodHandle"},
};

bool throw_is_java(const char *provider)
{
	return strcmp(provider, JAVA) == 0;
}

bool throw_provider(const char *provider)
{
	return throw_is_java(provider) || strcmp(provider, CXX) == 0;
}

const char *throw_function(const char *provider, unsigned i)
{
	size_t at;

	for (at = 0; at < COUNT_OF(places); at++)
		if (strcmp(places[at].provider, provider) == 0 && i-- == 0)
			return places[at].function;
	return NULL;
}

enum throw_kind throw_kind_of(const char *provider, const char *name)
{
	const char *colon = strrchr(name, ':');
	size_t at;

	for (at = 0; colon && at < COUNT_OF(places); at++)
		if (strcmp(places[at].provider, provider) == 0 &&
		    strcmp(places[at].function, colon + 1) == 0)
			return places[at].kind;
	return THROW_NONE;
}

unsigned throw_fields(const char *type, const char *message, struct event_field *out)
{
	unsigned n = 0;

	if (*type)
		out[n++] = (struct event_field){.name = "ExceptionType", .type = FIELD_TEXT,
						.v.text = type};
	if (*message)
		out[n++] = (struct event_field){.name = "ExceptionMessage", .type = FIELD_TEXT,
						.v.text = message};
	return n;
}

/* ---- where ----------------------------------------------------------------------------------- */

struct search {
	struct programs *of;
	char (*paths)[UPROBE_PATH_MAX];      /* room for PROGRAM_FILES_MAX */
	struct program_files files;
	struct buf maps;
	const char *name;                    /* of the programs that are meant */
	bool java;                           /* libraries of it are meant */
};

static void add_file(struct search *s, const struct program_file *file)
{
	bool is_new;
	unsigned at = program_files_add(&s->files, s->of, file, &is_new);

	if (at < PROGRAM_FILES_MAX && is_new)
		strcpy(s->paths[at], file->path);
}

static bool add_libraries(void *ctx, uint32_t pid)
{
	static const char *const of_cxx[] = {"/libstdc++.so", "/libc++abi.so", NULL};
	static const char *const of_java[] = {JAVA_LIBRARY, NULL};
	struct search *s = ctx;
	const char *const *name = s->java ? of_java : of_cxx;
	struct program_file file;
	const char *at;

	if (!programs_maps(s->of, pid, &s->maps))
		return true;
	for (; *name; name++)
		for (at = buf_text(&s->maps); program_mapped(pid, &at, *name, &file);)
			add_file(s, &file);
	return s->files.n < THROW_LIBRARIES_MAX;
}

static void add_usual(struct search *s, const char *pattern)
{
	struct program_file file = {0};
	glob_t found;
	size_t i;

	if (glob(pattern, GLOB_BRACE, NULL, &found) != 0)
		return;
	for (i = 0; i < found.gl_pathc; i++)
		if (snprintf(file.path, sizeof(file.path), "%s", found.gl_pathv[i]) <
		    (int)sizeof(file.path))
			add_file(s, &file);
	globfree(&found);
}

unsigned throw_libraries(struct programs *of, const char *provider,
			 char paths[THROW_LIBRARIES_MAX][UPROBE_PATH_MAX],
			 struct program_files *files)
{
	struct search s = {.of = of, .paths = paths, .java = throw_is_java(provider)};

	proc_each("/proc", add_libraries, &s);
	add_usual(&s, s.java ? USUAL_JVMS : USUAL_CXX);
	buf_free(&s.maps);
	*files = s.files;
	return s.files.n;
}

void throw_java_library(struct program_library *out)
{
	unsigned i;

	*out = (struct program_library){.part = JAVA_LIBRARY};
	for (i = 0; i < PROGRAM_FUNCTIONS_MAX; i++)
		out->functions[i] = throw_function(JAVA, i);
}

/*
 * Use its own path, which remains when the process ends, unless that is another file by now or on
 * another file system.
 */
static void add_program(struct search *s, uint32_t pid)
{
	struct os_file_info running, named;
	struct program_file exe, own;
	char target[UPROBE_PATH_MAX];

	if (!proc_pid_exe(pid, target, sizeof(target)))
		return;
	programs_maps(s->of, pid, &s->maps);
	program_exe(pid, buf_text(&s->maps), target, &exe);
	own = (struct program_file){.pid = pid, .dev = exe.dev};
	strcpy(own.path, target);
	if (programs_info(s->of, &exe, &running))
		add_file(s, programs_info(s->of, &own, &named) && named.dev == running.dev &&
			 named.ino == running.ino ? &own : &exe);
}

static bool add_program_by_name(void *ctx, uint32_t pid)
{
	struct search *s = ctx;
	struct proc_names p;

	if (programs_names(s->of, pid, &p) && process_names_match(&p.is, s->name))
		add_program(s, pid);
	return s->files.n < THROW_PROGRAMS_MAX;
}

unsigned throw_programs(struct programs *of, const char *filter,
			char paths[THROW_PROGRAMS_MAX][UPROBE_PATH_MAX])
{
	struct search s = {.of = of, .paths = paths};
	unsigned pid;
	char rest;

	if (strncmp(filter, "ProcessName=", 12) == 0) {
		s.name = filter + 12;
		proc_each("/proc", add_program_by_name, &s);
	} else if (sscanf(filter, "ProcessID=%u%c", &pid, &rest) == 1) {
		add_program(&s, pid);
	}
	buf_free(&s.maps);
	return s.files.n;
}

/* ---- what was thrown ------------------------------------------------------------------------- */

/* Read a text at an address: in one step to the end of its page, then from the next page. */
static bool read_text(struct proc_reader *reader, uint32_t pid, uint64_t at, char *to,
		      size_t room)
{
	size_t first = 4096 - (size_t)(at & 4095), got;

	first = first < room ? first : room;
	got = proc_reader_memory(reader, pid, at, to, first);
	if (got == first && first < room && !memchr(to, 0, got))
		got += proc_reader_memory(reader, pid, at + first, to + first, room - first);
	return memchr(to, 0, got) != NULL;
}

static void read_type_info(struct proc_reader *reader, const struct perf_record *r,
			   struct throw_text *out)
{
	static const char prefix[] = "typeinfo for ";
	char name[NAME_BYTES], raw[NAME_BYTES + 8], readable[THROW_TYPE_BYTES + sizeof(prefix)];
	uint64_t type_info, words[2];

	snprintf(out->type, sizeof(out->type), "?");
	if (!perf_record_register(r, REG_SI, &type_info) ||
	    proc_reader_memory(reader, r->pid, type_info, words, sizeof(words)) != sizeof(words) ||
	    !read_text(reader, r->pid, words[1], name, sizeof(name)) || !name[0])
		return;
	/* '*' marks types that are compared by address only */
	snprintf(raw, sizeof(raw), "_ZTI%s", name + (name[0] == '*'));
	if (demangle(raw, readable, sizeof(readable)) &&
	    strncmp(readable, prefix, sizeof(prefix) - 1) == 0)
		snprintf(out->type, sizeof(out->type), "%.500s", readable + sizeof(prefix) - 1);
	else
		snprintf(out->type, sizeof(out->type), "%.399s", name);
}

/* Its argument is one of a few texts of libjvm's own; NULL = none. */
static void read_reason(struct proc_reader *reader, const struct perf_record *r,
			struct throw_text *out)
{
	uint64_t text;

	if (!perf_record_register(r, REG_DI, &text) || !text ||
	    !read_text(reader, r->pid, text, out->message, sizeof(out->message)))
		out->message[0] = '\0';
}

void throw_read(enum throw_kind kind, struct proc_reader *reader, const struct perf_record *r,
		struct throw_text *out)
{
	out->message[0] = '\0';
	if (kind == THROW_CXX) {
		read_type_info(reader, r, out);
		return;
	}
	snprintf(out->type, sizeof(out->type), "java.lang.%s",
		 kind == THROW_JAVA_MEMORY ? "OutOfMemoryError" : "StackOverflowError");
	if (kind == THROW_JAVA_MEMORY)
		read_reason(reader, r, out);
}

bool throw_java_object(const struct perf_record *r, uint64_t *object)
{
	uint64_t handle;

	return perf_record_register(r, REG_SI, &handle) &&
	       perf_record_stack(r, handle, object, sizeof(*object));
}

bool throw_is_of_runtime(const struct throw_text *thrown)
{
	return strcmp(thrown->type, "PAL_SEHException") == 0;
}
