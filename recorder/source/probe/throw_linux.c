#include "source/probe/throw_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "source/host/proc_pid_linux.h"
#include "symbol/demangle.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

enum { REG_SI = 4, NAME_BYTES = 400 };

#define MAPS_MAX_BYTES ((size_t)4 << 20)

bool throw_provider(const char *provider)
{
	return strcmp(provider, THROW_PROVIDER) == 0;
}

/* ---- where ----------------------------------------------------------------------------------- */

#define FILES_MAX THROW_LIBRARIES_MAX
_Static_assert(THROW_PROGRAMS_MAX <= FILES_MAX, "both are files");

struct files {
	char (*paths)[UPROBE_PATH_MAX];
	uint64_t dev[FILES_MAX], ino[FILES_MAX];
	unsigned n;
};

static void add(struct files *l, const char *path)
{
	struct os_file_info info;
	unsigned i;

	if (l->n == FILES_MAX || strlen(path) >= UPROBE_PATH_MAX || strchr(path, ':') ||
	    os_path_info(path, &info, NULL) != 0 || !info.regular)
		return;
	for (i = 0; i < l->n; i++)
		if (l->dev[i] == info.dev && l->ino[i] == info.ino)
			return;
	l->dev[l->n] = info.dev;
	l->ino[l->n] = info.ino;
	snprintf(l->paths[l->n++], UPROBE_PATH_MAX, "%s", path);
}

static void add_mapped(struct files *l, const char *pid, const struct buf *maps, const char *name)
{
	char path[UPROBE_PATH_MAX + 64];
	const char *at = buf_text(maps), *slash, *end;

	while ((at = strstr(at, name)) != NULL) {
		for (slash = at; slash > buf_text(maps) && slash[-1] != ' '; slash--)
			;
		end = at + strcspn(at, "\n");
		snprintf(path, sizeof(path), "/proc/%.16s/root%.*s", pid,
			 (int)(end - slash < 300 ? end - slash : 300), slash);
		add(l, path);
		at = end;
	}
}

static void add_of_process(struct files *l, const char *pid, struct buf *maps)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%.16s/maps", pid);
	buf_reset(maps);
	if (os_load(path, MAPS_MAX_BYTES, maps, NULL) != 0)
		return;
	add_mapped(l, pid, maps, "/libstdc++.so");
	add_mapped(l, pid, maps, "/libc++abi.so");
}

unsigned throw_libraries(char paths[THROW_LIBRARIES_MAX][UPROBE_PATH_MAX])
{
	static const char *const usual[] = {
		"/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib64/libstdc++.so.6",
		"/usr/lib/libstdc++.so.6",
	};
	struct files l = {.paths = paths};
	struct buf maps = {0};
	struct dirent *entry;
	size_t i;
	DIR *proc;

	for (i = 0; i < COUNT_OF(usual); i++)
		add(&l, usual[i]);
	proc = opendir("/proc");
	while (proc && l.n < THROW_LIBRARIES_MAX && (entry = readdir(proc)) != NULL)
		if (entry->d_name[0] >= '1' && entry->d_name[0] <= '9')
			add_of_process(&l, entry->d_name, &maps);
	if (proc)
		closedir(proc);
	buf_free(&maps);
	return l.n;
}

/*
 * Use its own path, which remains when the process ends, unless that is another file by now or on
 * another file system.
 */
static void add_program(struct files *l, const char *pid, const char *target)
{
	struct os_file_info running, named;
	char exe[64];

	snprintf(exe, sizeof(exe), "/proc/%.16s/exe", pid);
	if (os_path_info(exe, &running, NULL) == 0)
		add(l, os_path_info(target, &named, NULL) == 0 && named.dev == running.dev &&
				       named.ino == running.ino
			       ? target
			       : exe);
}

static const char *after(const char *text, const char *head)
{
	return strncmp(text, head, strlen(head)) == 0 ? text + strlen(head) : NULL;
}

static bool is_called(const char *pid, const char *name)
{
	struct proc_names p;

	return proc_names_read((uint32_t)strtoul(pid, NULL, 10), &p) &&
	       process_names_match(&p.is, name);
}

unsigned throw_programs(const char *filter, char paths[THROW_PROGRAMS_MAX][UPROBE_PATH_MAX])
{
	const char *name = after(filter, "ProcessName="), *wanted = after(filter, "ProcessID=");
	char path[64], target[UPROBE_PATH_MAX];
	struct files l = {.paths = paths};
	struct dirent *entry;
	DIR *proc = name || wanted ? opendir("/proc") : NULL;
	ssize_t n;

	while (proc && l.n < THROW_PROGRAMS_MAX && (entry = readdir(proc)) != NULL) {
		if (entry->d_name[0] < '1' || entry->d_name[0] > '9' ||
		    (wanted && strcmp(wanted, entry->d_name) != 0))
			continue;
		snprintf(path, sizeof(path), "/proc/%.16s/exe", entry->d_name);
		n = readlink(path, target, sizeof(target) - 1);
		target[n > 0 ? n : 0] = '\0';
		if (n > 0 && (wanted || is_called(entry->d_name, name)))
			add_program(&l, entry->d_name, target);
	}
	if (proc)
		closedir(proc);
	return l.n;
}

/* ---- what was thrown ------------------------------------------------------------------------- */

static size_t peek(uint32_t pid, uint64_t at, void *to, size_t n)
{
	struct iovec here = {to, n}, there = {(void *)(uintptr_t)at, n};
	ssize_t got = process_vm_readv((pid_t)pid, &here, 1, &there, 1, 0);

	return got > 0 ? (size_t)got : 0;
}

/* Read a text at an address: in one step to the end of its page, then from the next page. */
static bool peek_text(uint32_t pid, uint64_t at, char *to, size_t room)
{
	size_t first = 4096 - (size_t)(at & 4095), got;

	first = first < room ? first : room;
	got = peek(pid, at, to, first);
	if (got == first && first < room && !memchr(to, 0, got))
		got += peek(pid, at + first, to + first, room - first);
	return memchr(to, 0, got) != NULL;
}

void throw_read(const struct perf_record *r, struct throw_text *out)
{
	static const char prefix[] = "typeinfo for ";
	char name[NAME_BYTES], raw[NAME_BYTES + 8], readable[THROW_TYPE_BYTES + sizeof(prefix)];
	uint64_t type_info, words[2];

	snprintf(out->type, sizeof(out->type), "?");
	if (!perf_record_register(r, REG_SI, &type_info) ||
	    peek(r->pid, type_info, words, sizeof(words)) != sizeof(words) ||
	    !peek_text(r->pid, words[1], name, sizeof(name)) || !name[0])
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
