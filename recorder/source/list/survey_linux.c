/* Formats: proc(5), maps, stat, exe; ELF notes of Go: cmd/internal/buildid, "Go\0\0" of type 4. */
#include "source/list/survey.h"

#include "base/array.h"
#include "base/os.h"
#include "base/table.h"
#include "base/text.h"
#include "model/process_name.h"
#include "source/dotnet/find_linux.h"
#include "source/probe/gc_probes_linux.h"
#include "source/jvm/options.h"
#include "source/host/maps.h"
#include "source/host/proc_pid_linux.h"
#include "symbol/elf_file.h"
#include "symbol/elf_section.h"
#include "symbol/symbol_open.h"

#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define MAPS_MAX_BYTES ((size_t)16 << 20)
#define GRACE_NS 300000000ULL            /* for the process looked at when time runs out */
#define FIRST_BYTES 4096u
#define SOCKETS_MAX 1024u
#define KERNEL_THREAD_FLAG 0x00200000u   /* PF_KTHREAD */

/* ---- files, each looked at once -------------------------------------------------------------- */

struct known_file {
	uint64_t dev, ino;
	bool is_elf, has_tables, is_go, is_native_image;
};

struct work {
	struct os_mutex *lock;               /* guards what follows, and nothing else is shared */
	struct os_cond *done;
	struct survey survey;
	bool finished, abandoned;

	uint64_t end_ns;                     /* from here on the thread's own */
	uint32_t sockets[SOCKETS_MAX], nsockets;     /* pids of .NET programs */
	struct known_file *files;
	uint32_t nfiles, room;
	struct table index;
	struct buf maps;
	/* the last one: a symbol table takes 15 ms, and nodes are many */
	struct known_v8 {
		uint64_t dev, ino;
		bool has_probes;
	} v8;
};

static bool same_file(const void *ctx, uint32_t value, const void *key)
{
	const struct work *w = ctx;
	const struct known_file *k = key;

	return w->files[value].dev == k->dev && w->files[value].ino == k->ino;
}

/* The Go linker puts this note into the first page. */
static bool has_go_note(const struct bytes *in)
{
	static const char note[] = "\4\0\0\0Go\0\0";       /* its type, its name */
	char first[FIRST_BYTES];
	size_t n = in->size < sizeof(first) ? (size_t)in->size : sizeof(first), i;

	if (bytes_read(in, 0, first, n, "its first page", NULL))
		return false;
	for (i = 0; i + sizeof(note) - 1 <= n; i++) {
		if (memcmp(first + i, note, sizeof(note) - 1) == 0)
			return true;
	}
	return false;
}

static void read_file(const char *path, struct known_file *out)
{
	struct elf_file *file = malloc(sizeof(*file));
	struct elf_section section;

	if (file && elf_file_open_path(path, file, NULL) == 0) {
		out->is_elf = true;
		out->has_tables = file->head.unwind.file_bytes != 0 ||
				  elf_section_find(&file->bytes, &file->head, ".eh_frame",
						   &section, NULL) == 0;
		out->is_go = has_go_note(&file->bytes);
		/* where native-image puts the objects that it made while it compiled */
		out->is_native_image = elf_section_find(&file->bytes, &file->head, ".svm_heap",
							&section, NULL) == 0;
		elf_file_close(file);
	}
	free(file);
}

/* Look at a mapped file as far as it can be read; an unreadable one is not called bad. */
static struct known_file find_file(struct work *w, const char *path, uint64_t dev, uint64_t ino)
{
	struct known_file file = {.dev = dev, .ino = ino};
	uint64_t hash = hash_pair(dev, ino);
	uint32_t at = table_find(&w->index, hash, same_file, w, &file);

	if (at != TABLE_NONE)
		return w->files[at];
	read_file(path, &file);
	if (ARRAY_ROOM(w->files, w->room, w->nfiles + 1))
		return file;
	w->files[w->nfiles] = file;
	if (table_add(&w->index, hash, w->nfiles) == 0)
		w->nfiles++;
	return file;
}

/* ---- one process ----------------------------------------------------------------------------- */

struct process_view {
	uint32_t pid;
	char name[SURVEY_NAME_BYTES];
	char exe[4096];                      /* "" = not to be seen */
	char library[SURVEY_NAME_BYTES];     /* the first one without tables */
	char jvm_library[4200];              /* its libjvm.so */
	struct survey_facts facts;
};

/* Whether it is a live user process: no kernel thread, and not ended. */
static bool is_process(uint32_t pid)
{
	struct proc_stat stat;
	uint64_t start_ns;

	return proc_pid_stat(pid, &stat, &start_ns) && stat.state != 'Z' && stat.state != 'X' &&
	       !(stat.flags & KERNEL_THREAD_FLAG);
}

static bool ends_with(const char *text, const char *end)
{
	size_t n = strlen(text), m = strlen(end);

	return n >= m && strcmp(text + n - m, end) == 0;
}

static void read_name(struct process_view *v)
{
	if (proc_pid_exe(v->pid, v->exe, sizeof(v->exe))) {
		snprintf(v->name, sizeof(v->name), "%s", text_base_name(v->exe));
		if (ends_with(v->name, " (deleted)"))
			v->name[strlen(v->name) - strlen(" (deleted)")] = '\0';
	} else if (!symbol_comm(v->pid, v->name)) {
		snprintf(v->name, sizeof(v->name), "?");
	}
}

static bool begins_with(const char *text, const char *start)
{
	return strncmp(text, start, strlen(start)) == 0;
}

/* Code that is in memory only, under any name, was made at run time. */
static bool is_generated(const char *path)
{
	static const char *const starts[] = {"[anon",     "//anon", "/memfd:", "/dev/zero",
					     "/dev/shm/", "/SYSV",  "[heap]",  "[stack"};
	size_t i = 0;

	while (i < COUNT_OF(starts) && !begins_with(path, starts[i]))
		i++;
	return !*path || i < COUNT_OF(starts);
}

static bool has_v8(struct work *w, const char *path, uint64_t dev, uint64_t ino)
{
	if (w->v8.dev != dev || w->v8.ino != ino)
		w->v8 = (struct known_v8){
			.dev = dev, .ino = ino, .has_probes = gc_probes_has(GC_V8, path)};
	return w->v8.has_probes;
}

static void look_at_file(struct work *w, struct process_view *v, const char *path, uint64_t dev,
		     uint64_t ino)
{
	const char *name = text_base_name(path);
	struct survey_facts *f = &v->facts;
	bool is_exe = strcmp(path, v->exe) == 0;
	struct buf at = {0};
	struct known_file file;

	if (!is_exe && ends_with(path, " (deleted)")) {
		f->replaced = true;
		return;
	}
	if (is_exe)
		buf_printf(&at, "/proc/%" PRIu32 "/exe", v->pid);
	else
		buf_printf(&at, "/proc/%" PRIu32 "/root%s", v->pid, path);
	file = find_file(w, buf_text(&at), dev, ino);
	f->is_python |= is_exe && begins_with(v->name, "python");
	if (f->is_python && !f->has_gc_probes && (is_exe || begins_with(name, "libpython")))
		f->has_gc_probes = gc_probes_has(GC_CPYTHON, buf_text(&at));
	f->is_unread |= (is_exe && process_unread_language(v->name)) ||
			begins_with(name, "libphp");
	f->is_node |= is_exe && gc_probes_is_node(v->name);
	if (f->is_node && !f->has_gc_probes && (is_exe || begins_with(name, "libnode.so")))
		f->has_gc_probes = has_v8(w, buf_text(&at), dev, ino);
	buf_free(&at);
	f->is_go |= is_exe && file.is_go;
	f->is_native_image |= file.is_native_image;
	if (strcmp(name, "libjvm.so") == 0) {
		f->is_jvm = true;
		snprintf(v->jvm_library, sizeof(v->jvm_library), "/proc/%" PRIu32 "/root%s", v->pid,
			 path);
	}
	f->is_openj9 |= begins_with(name, "libj9vm");
	f->is_dotnet |= strcmp(name, "libcoreclr.so") == 0;
	f->runtime |= f->is_dotnet || (is_exe && begins_with(v->name, "node"));
	if (!file.is_elf || file.has_tables)
		return;
	f->without_tables = true;
	if (!is_exe && !v->library[0])
		snprintf(v->library, sizeof(v->library), "%s", name);
}

static void look_at_mapping(struct work *w, struct process_view *v, char *line)
{
	struct maps_line l;

	if (!maps_line_read(line, &l) || !l.executable)
		return;
	v->facts.is_dotnet |= begins_with(l.path, "/memfd:doublemapper");
	if (is_generated(l.path))
		v->facts.jit_bytes += l.end - l.start;
	else if (l.path[0] == '/')
		look_at_file(w, v, l.path, makedev(l.major, l.minor), l.ino);
}

static void look_at_maps(struct work *w, struct process_view *v)
{
	char path[64], *line, *next;
	int rc;

	snprintf(path, sizeof(path), "/proc/%" PRIu32 "/maps", v->pid);
	buf_reset(&w->maps);
	rc = os_load(path, MAPS_MAX_BYTES, &w->maps, NULL);
	v->facts.unreadable = rc == ERR_ACCESS;
	for (line = rc || !w->maps.len ? NULL : w->maps.data; line && *line; line = next) {
		next = strchr(line, '\n');
		if (!next)
			break;
		*next++ = '\0';
		look_at_mapping(w, v, line);
	}
}

static void note_socket(void *ctx, const struct dotnet_socket *socket)
{
	struct work *w = ctx;

	if (w->nsockets < SOCKETS_MAX)
		w->sockets[w->nsockets++] = socket->pid;
}

static bool has_perf_data(uint32_t pid)
{
	char path[60];
	glob_t found;
	bool any;

	if (!ns_tmp_is_here(pid))
		return ns_tmp_has(pid, &ns_tmp_jvm);
	snprintf(path, sizeof(path), "/tmp/hsperfdata_*/%" PRIu32, pid);
	any = glob(path, GLOB_NOSORT, NULL, &found) == 0;
	if (any)
		globfree(&found);
	return any;
}

static void look_at_runtime(const struct work *w, struct process_view *v)
{
	struct survey_facts *f = &v->facts;
	struct os_file *file = NULL;
	uint32_t i;

	for (i = 0; i < w->nsockets; i++)
		f->has_diagnostics |= w->sockets[i] == v->pid;
	f->is_dotnet |= f->has_diagnostics;
	if (f->is_dotnet && !f->has_diagnostics && !ns_tmp_is_here(v->pid))
		f->has_diagnostics = ns_tmp_has(v->pid, &dotnet_socket_kind);
	if (f->is_jvm) {
		f->has_perf_data = has_perf_data(v->pid);
		f->has_gc_probes = !f->has_perf_data && strcmp(v->name, "java") == 0 &&
				   gc_probes_has(GC_HOTSPOT, v->jvm_library);
	}
	if (f->jit_bytes && symbol_perf_map(v->pid, &file, NULL) == 0)
		f->has_perf_map = true;
	os_close(file);
}

static void count_process(struct survey *s, const struct process_view *v)
{
	uint32_t bits = survey_judge(&v->facts);
	char name[SURVEY_NAME_BYTES];
	unsigned i;

	for (i = 0; i < SURVEY_CAUSES; i++) {
		if (!(bits & 1u << i))
			continue;
		if (i == SURVEY_NO_TABLES && v->library[0])
			snprintf(name, sizeof(name), "%.30s (%.30s)", v->name, v->library);
		else
			snprintf(name, sizeof(name), "%s", v->name);
		survey_add(s, (enum survey_cause)i, name, v->pid);
	}
	s->looked_at++;
	s->affected += (bits & ~SURVEY_FINE) != 0;
}

/* ---- all of them: the thread ----------------------------------------------------------------- */

/* returns  false when the caller no longer waits */
static bool look_at_process(void *ctx, uint32_t pid)
{
	struct process_view *v;
	struct work *w = ctx;
	bool wanted;

	if (!is_process(pid))
		return true;
	v = calloc(1, sizeof(*v));
	if (!v)
		return false;
	v->pid = pid;
	read_name(v);
	os_mutex_lock(w->lock);
	w->survey.processes++;
	snprintf(w->survey.stuck_at, sizeof(w->survey.stuck_at), "%s (%" PRIu32 ")", v->name, pid);
	wanted = !w->abandoned && w->survey.looked_at < SURVEY_PROCESSES_MAX &&
		 os_now_ns() < w->end_ns;
	os_mutex_unlock(w->lock);
	if (wanted) {
		look_at_maps(w, v);
		look_at_runtime(w, v);
	}
	os_mutex_lock(w->lock);
	if (wanted)
		count_process(&w->survey, v);
	w->survey.stuck_at[0] = '\0';
	wanted = !w->abandoned;
	os_mutex_unlock(w->lock);
	free(v);
	return wanted;
}

static void work_free(struct work *w)
{
	os_cond_free(w->done);
	os_mutex_free(w->lock);
	free(w->files);
	table_free(&w->index);
	buf_free(&w->maps);
	free(w);
}

static void survey_main(void *ctx)
{
	struct work *w = ctx;
	bool abandoned;

	dotnet_find_all(note_socket, w);
	proc_each("/proc", look_at_process, w);
	os_mutex_lock(w->lock);
	w->finished = true;
	abandoned = w->abandoned;
	os_cond_signal(w->done);
	os_mutex_unlock(w->lock);
	if (abandoned)
		work_free(w);
}

int survey_run(uint64_t limit_ns, struct survey *out, struct err *err)
{
	struct work *w = calloc(1, sizeof(*w));
	struct os_thread *thread = NULL;
	uint64_t last_ns = os_now_ns() + limit_ns + GRACE_NS, now_ns;
	bool finished;
	int rc = ERR_MEMORY;

	if (w) {
		w->lock = os_mutex_new();
		w->done = os_cond_new();
		w->end_ns = last_ns - GRACE_NS;
	}
	if (w && w->lock && w->done)
		rc = os_thread_start("survey", survey_main, w, &thread, err);
	else
		err_memory(err, "for looking at processes");
	if (rc) {
		if (w)
			work_free(w);
		return rc;
	}
	os_mutex_lock(w->lock);
	while (!w->finished && (now_ns = os_now_ns()) < last_ns)
		os_cond_wait(w->done, w->lock, last_ns - now_ns);
	*out = w->survey;
	finished = w->finished;
	w->abandoned = !finished;
	os_mutex_unlock(w->lock);
	if (finished) {                      /* else the thread frees it, should it come back */
		os_thread_join(thread);
		work_free(w);
	}
	return 0;
}
