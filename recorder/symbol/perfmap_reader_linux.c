/*
 * Names for jitted frames, from the perf map that the process writes while it runs.
 *
 * The file may appear, grow and be replaced at any time, so opening always succeeds and every
 * question may look at it again. It is held open: after the process has ended, and /proc/PID/root
 * with it, its last contents can still be read.
 */
#include "base/os.h"
#include "symbol/perfmap.h"
#include "symbol/reader.h"
#include "symbol/sandbox.h"
#include "symbol/symbol_open.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_EVERY_NS NS_PER_SEC
#define LOOK_ABSENT_NS (100 * NS_PER_MS)     /* while there is no map: costs two small reads */

enum { LOAD_SHARE = 10 };                    /* re-reading takes at most a tenth of the time */

struct jit_table {
	struct symbol_table base;
	struct sandbox *sandbox;
	uint32_t pid;
	uint64_t identity;                 /* of the program whose code this is; 0 = it had ended */
	struct os_file *file;
	struct os_file_info seen;             /* of the file that map was made of */
	struct perfmap *map;                  /* NULL = none was read */
	uint64_t look_ns;                     /* do not look before this time */
	bool noted;
	char note[400];
};

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_JIT && strcmp(object->key.path, "[java]") != 0 &&
	       strcmp(object->key.path, "[python]") != 0;
}

static void set_note(struct jit_table *t, const char *what)
{
	if (t->noted)
		return;
	t->noted = true;
	snprintf(t->note, sizeof(t->note), "jitted code in process %" PRIu32 ": %.300s", t->pid,
		 what);
	t->base.note = t->note;
}

static bool is_same_file(const struct os_file_info *a, const struct os_file_info *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->size_bytes == b->size_bytes &&
	       a->mtime_ns == b->mtime_ns;
}

/* Read the open file, unless map is up to date. On failure the old map stays. */
static void load_map(struct jit_table *t)
{
	struct perfmap *map = NULL;
	struct os_file_info info;
	struct err err;

	if (os_file_info(t->file, &info, NULL) || !info.size_bytes ||
	    (t->map && is_same_file(&info, &t->seen)))
		return;
	if (sandbox_perfmap(t->sandbox, t->file, info.size_bytes, &map, &err)) {
		set_note(t, err.text);
	} else {
		perfmap_free(t->map);
		t->map = map;
		t->base.bytes = sizeof(*t) + perfmap_bytes(map);
		t->seen = info;
		if (info.size_bytes > PERFMAP_MAX_BYTES)
			set_note(t, "its perf map is larger than 64 MB; only the first 64 MB are "
				 "read");
		else if (perfmap_full(map))
			set_note(t,
			     "its perf map has more than 1,048,576 lines; only the first are read");
	}
}

/*
 * Try the path first, because the file may have been replaced; when it has gone, the open file. A
 * path that belongs to another program by now (pid reused, exec) counts as gone.
 */
static void refresh_map(struct jit_table *t)
{
	uint64_t start_ns = os_now_ns(), now_ns, wait_ns;
	struct os_file *file = NULL;
	struct err err = {0};
	int rc = ERR_NOT_FOUND;

	if (start_ns < t->look_ns)
		return;
	if (t->identity && t->identity == symbol_process_identity(t->pid))
		rc = symbol_perf_map(t->pid, &file, &err);
	if (!rc) {
		os_close(t->file);
		t->file = file;
		t->base.holds_file = true;
	} else if (rc != ERR_NOT_FOUND && rc != ERR_UNSUPPORTED) {
		set_note(t, err.text);
	}
	if (t->file)
		load_map(t);
	now_ns = os_now_ns();
	wait_ns = (now_ns - start_ns) * LOAD_SHARE;
	if (wait_ns < LOOK_EVERY_NS)
		wait_ns = t->file ? LOOK_EVERY_NS : LOOK_ABSENT_NS;
	t->look_ns = now_ns + wait_ns;
}

static int open_jit(const struct symbol_env *env, const struct object *object, uint32_t pid,
		    struct symbol_table **out, struct err *err)
{
	struct jit_table *t = calloc(1, sizeof(*t));

	(void)pid;                            /* a forked child runs its parent's code */
	if (!t)
		return err_memory(err, "for its names");
	t->base.reader = &perfmap_reader;
	t->base.bytes = sizeof(*t);
	t->sandbox = env->sandbox;
	t->pid = object->key.pid;
	t->identity = symbol_process_identity(t->pid);
	refresh_map(t);
	*out = &t->base;
	return 0;
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	struct jit_table *t = (struct jit_table *)table;
	struct perfmap_function function;

	refresh_map(t);
	if (!t->map || !perfmap_find(t->map, offset, &function))
		return false;
	*out = (struct symbol){.offset = function.start, .name = function.name};
	return true;
}

static void rest(struct symbol_table *table)
{
	struct jit_table *t = (struct jit_table *)table;

	os_close(t->file);
	t->file = NULL;
	table->holds_file = false;
}

static void close_jit(struct symbol_table *table)
{
	struct jit_table *t = (struct jit_table *)table;

	rest(table);
	perfmap_free(t->map);
	free(t);
}

const struct symbol_reader perfmap_reader = {
	.live = true,
	.reads = reads,
	.open = open_jit,
	.find = find,
	.rest = rest,
	.close = close_jit,
};
