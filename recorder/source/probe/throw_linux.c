#include "source/probe/throw_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"
#include "source/host/proc_reader_linux.h"
#include "symbol/demangle.h"

#include <stdio.h>
#include <string.h>

enum { REG_SI = 4, NAME_BYTES = 400 };

bool throw_provider(const char *provider)
{
	return strcmp(provider, THROW_PROVIDER) == 0;
}

/* ---- where ----------------------------------------------------------------------------------- */

struct search {
	struct programs *of;
	char (*paths)[UPROBE_PATH_MAX];      /* room for PROGRAM_FILES_MAX */
	struct program_files files;
	struct buf maps;
	const char *name;                    /* of the programs that are meant */
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
	static const char *const names[] = {"/libstdc++.so", "/libc++abi.so"};
	struct search *s = ctx;
	struct program_file file;
	const char *at;
	size_t i;

	if (!programs_maps(s->of, pid, &s->maps))
		return true;
	for (i = 0; i < COUNT_OF(names); i++)
		for (at = buf_text(&s->maps); program_mapped(pid, &at, names[i], &file);)
			add_file(s, &file);
	return s->files.n < THROW_LIBRARIES_MAX;
}

unsigned throw_libraries(struct programs *of, char paths[THROW_LIBRARIES_MAX][UPROBE_PATH_MAX])
{
	static const struct program_file usual[] = {
		{.path = "/usr/lib/x86_64-linux-gnu/libstdc++.so.6"},
		{.path = "/usr/lib64/libstdc++.so.6"},
		{.path = "/usr/lib/libstdc++.so.6"},
	};
	struct search s = {.of = of, .paths = paths};
	size_t i;

	for (i = 0; i < COUNT_OF(usual); i++)
		add_file(&s, &usual[i]);
	proc_each("/proc", add_libraries, &s);
	buf_free(&s.maps);
	return s.files.n;
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

void throw_read(struct proc_reader *reader, const struct perf_record *r, struct throw_text *out)
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

bool throw_is_of_runtime(const struct throw_text *thrown)
{
	return strcmp(thrown->type, "PAL_SEHException") == 0;
}
