/*
 * Names for frames in ELF objects, from the file that a process maps and an index of its functions.
 */
#include "symbol/debuglink.h"
#include "symbol/disk.h"
#include "symbol/elf_file.h"
#include "symbol/elf_saved.h"
#include "symbol/reader.h"
#include "symbol/sandbox.h"
#include "symbol/symbol_open.h"

#include <stdlib.h>
#include <string.h>

/*
 * Smaller indexes are not stored on disk. Below this size, opening a cache file costs about as much
 * as reading the symbols again (0.2 ms), and a build machine makes thousands of tiny programs an
 * hour, each with its own build id, which would evict what is worth keeping.
 */
enum { SAVED_FUNCTIONS_MIN = 1000 };

struct elf_table {
	struct symbol_table base;
	const struct symbol_env *env;
	const struct object *object;
	uint32_t pid;
	struct elf_head head;         /* of the mapped file */
	struct elf_file names;      /* has the names: that file, its debug file, or a saved index */
	bool separate;                /* `names` is the debug file */
	uint64_t file_bytes, mtime_ns; /* of the mapped file */
	bool is_saved;                /* `names` is the saved index, */
	uint32_t checksum;            /* which has this checksum */
	struct buf linked;            /* path of `names`, if found by a link or the symbol path */
	struct elf_index *index;
	bool is_dll;                  /* .NET: `index` has its methods */
	bool looked_for_dotnet;
	struct elf_index *dotnet;     /* methods in a single-file program; NULL = none */
	char name[FUNCTION_NAME_MAX + 1];
	struct buf note;
};

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_ELF;
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void rest(struct symbol_table *table)
{
	struct elf_table *t = (struct elf_table *)table;

	elf_file_close(&t->names);
	table->holds_file = false;
}

/* what: a format with the object's path and the reason. The first note stays. */
static void set_note(struct elf_table *t, const char *what, const char *why)
{
	if (t->note.len)
		return;
	buf_printf(&t->note, what, t->object->key.path, why);
	t->base.note = buf_text(&t->note);
}

/*
 * Distributions strip programs and put the full .symtab into a separate file. Where that is
 * installed it names what .dynsym does not. Its addresses are those of the program.
 */
static void use_debug_file(struct elf_table *t)
{
	struct elf_index *index = NULL;
	struct elf_file debug;
	struct err err;
	struct buf path = {.max_bytes = 8192};
	char note[SANDBOX_NOTE_BYTES];
	int rc = debug_file_open(t->object, t->pid, &t->names, &path, &debug, &err);

	if (rc && rc != ERR_NOT_FOUND)
		set_note(t, "%s: its debug file is not used: %s", err.text);
	if (rc)
		rc = elf_file_open_in(t->env->path, t->object, true, &path, &debug);
	if (rc) {
		buf_free(&path);
		return;
	}
	rc = sandbox_index(t->env->sandbox, &debug, SANDBOX_NAMED, &index, note, &err);
	if (rc)
		set_note(t, "%s: its debug file is not used: %s", err.text);
	if (rc || index->nentries <= t->index->nentries) {
		elf_index_free(index);
		elf_file_close(&debug);
		buf_free(&path);
		return;
	}
	elf_index_free(t->index);
	elf_file_close(&t->names);
	buf_free(&t->linked);
	t->linked = path;
	t->index = index;
	t->names = debug;
	t->separate = true;
}

static int index_file(struct elf_table *t, struct err *err)
{
	char note[SANDBOX_NOTE_BYTES];
	int rc = sandbox_index(t->env->sandbox, &t->names, SANDBOX_PACKED, &t->index, note, err);

	if (!rc && *note)
		set_note(t, "%s: %s", note);
	return rc;
}

/* ---- the cache on disk ----------------------------------------------------------------------- */

/*
 * If the object's file can be seen, it must be the one that the index was made from, because a
 * build id is easily forged. If only exported functions had names, a debug file may have been
 * installed since.
 */
static bool is_current(struct elf_table *t, const struct elf_saved *saved, bool have_file)
{
	const struct object_key *key = &t->object->key;
	struct elf_file debug;

	if (saved->build_id_bytes != key->build_id_bytes ||
	    memcmp(saved->build_id, key->build_id, key->build_id_bytes) != 0)
		return false;
	if (have_file && (saved->file_bytes != t->names.bytes.size ||
			  saved->mtime_ns != t->names.mtime_ns))
		return false;
	if (saved->complete || elf_file_open(t->object, t->pid, true, &debug, NULL))
		return true;
	elf_file_close(&debug);
	return false;
}

static int open_saved(const struct elf_table *t, struct elf_file *out)
{
	struct os_file_info info;
	int rc = symbol_disk_get(t->env->disk, &t->object->key, &out->file, NULL);

	if (!rc)
		rc = os_file_info(out->file, &info, NULL);
	if (!rc)
		out->bytes = bytes_of_file(out->file, info.size_bytes);
	return rc;
}

/* A damaged file, or one of another version, makes room for a new one. */
static bool from_disk(struct elf_table *t, bool have_file)
{
	struct elf_file file = {0};
	struct elf_saved saved;
	int rc;

	if (!t->env->disk || !t->object->key.build_id_bytes || open_saved(t, &file)) {
		elf_file_close(&file);
		return false;
	}
	rc = file.bytes.size > ELF_SAVED_MAX_BYTES ? ERR_FORMAT
						    : elf_saved_read(&file.bytes, &saved, NULL);
	if (!rc && !is_current(t, &saved, have_file)) {
		elf_index_free(saved.index);
		rc = ERR_FORMAT;
	}
	if (rc) {
		elf_file_close(&file);
		if (rc == ERR_FORMAT)
			symbol_disk_drop(t->env->disk, &t->object->key);
		return false;
	}
	elf_file_close(&t->names);
	t->names = file;
	t->head = saved.head;
	t->index = saved.index;
	t->checksum = saved.checksum;
	t->is_saved = true;
	return true;
}

static void to_disk(struct elf_table *t)
{
	const struct object_key *key = &t->object->key;
	struct buf image = {.max_bytes = ELF_SAVED_MAX_BYTES};
	struct elf_saved saved;
	struct err err;
	int rc;

	saved = (struct elf_saved){.build_id_bytes = key->build_id_bytes,
				   .file_bytes = t->file_bytes,
				   .mtime_ns = t->mtime_ns,
				   .head = t->head,
				   .index = t->index,
				   .complete = t->index->strings[0].size != 0};
	memcpy(saved.build_id, key->build_id, key->build_id_bytes);
	rc = elf_saved_write(&saved, &t->names.bytes, &image, &err);
	if (!rc)
		rc = symbol_disk_put(t->env->disk, key, image.data, image.len, &err);
	if (rc)
		set_note(t, "symbols of %s are not kept on disk: %s", err.text);
	buf_free(&image);
}

/* ---- precompiled .NET code ------------------------------------------------------------------- */

static int open_dll(struct elf_table *t)
{
	char note[SANDBOX_NOTE_BYTES];
	int rc = elf_file_open_dll(t->object, t->pid, &t->names, NULL);

	if (!rc)
		rc = sandbox_index(t->env->sandbox, &t->names, SANDBOX_DOTNET, &t->index, note,
				   NULL);
	t->head = t->names.head;
	t->is_dll = rc == 0;
	return rc;
}

/* A single-file program has its .dll files behind what its segments hold. */
static void look_for_dotnet(struct elf_table *t)
{
	char note[SANDBOX_NOTE_BYTES];
	struct elf_file file;

	if (t->looked_for_dotnet)
		return;
	t->looked_for_dotnet = true;
	if (elf_file_is_vdso(t->object) ||
	    elf_file_open(t->object, t->pid, false, &file, NULL))
		return;
	if (!sandbox_index(t->env->sandbox, &file, SANDBOX_DOTNET, &t->dotnet, note, NULL))
		t->base.bytes += elf_index_bytes(t->dotnet);
	elf_file_close(&file);
}

/* Names are "Module!Namespace.Class.Method", all in memory. */
static bool find_dotnet(struct elf_table *t, const struct elf_index *index, uint64_t offset,
			struct symbol *out)
{
	struct elf_function function;
	char *mark;

	if (!index || !elf_find(index, offset, &function) ||
	    elf_function_name(index, &t->names.bytes, &function, t->name, sizeof(t->name), NULL))
		return false;
	mark = strchr(t->name, '!');
	if (!mark)
		return false;
	*mark = '\0';
	*out = (struct symbol){.offset = function.vaddr, .name = mark + 1, .module = t->name};
	return true;
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_indexed(struct elf_table *t, bool use_disk, struct err *err)
{
	int rc = elf_file_open(t->object, t->pid, false, &t->names, err);

	if (rc == ERR_UNSUPPORTED && !elf_file_is_vdso(t->object) && open_dll(t) == 0)
		return 0;
	if (rc && elf_file_open_in(t->env->path, t->object, false, &t->linked, &t->names) == 0)
		rc = 0;
	t->file_bytes = t->names.bytes.size;
	t->mtime_ns = t->names.mtime_ns;
	t->head = t->names.head;
	if (use_disk && from_disk(t, rc == 0))
		return 0;
	if (!rc)
		rc = index_file(t, err);
	if (rc)
		return rc;
	if (elf_file_is_vdso(t->object))
		return 0;
	use_debug_file(t);
	t->base.has_idle_work = t->env->disk && t->object->key.build_id_bytes &&
				t->index->nentries >= SAVED_FUNCTIONS_MIN;
	return 0;
}

static void close_elf(struct symbol_table *table);

static int open_elf(const struct symbol_env *env, const struct object *object, uint32_t pid,
		    struct symbol_table **out, struct err *err)
{
	struct elf_table *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_memory(err, "for its symbols");
	t->base.reader = &elf_reader;
	t->env = env;
	t->object = object;
	t->pid = pid;
	rc = open_indexed(t, !elf_file_is_vdso(object), err);
	if (rc) {
		close_elf(&t->base);
		return rc;
	}
	t->base.holds_file = t->names.file != NULL;
	t->base.bytes = sizeof(*t) + elf_index_bytes(t->index);
	/* Nothing more to read: an open file would only keep its disk space and mount busy. */
	if (elf_index_has_names(t->index))
		rest(&t->base);
	*out = &t->base;
	return 0;
}

/* ---- asking ---------------------------------------------------------------------------------- */

/* The saved index may have been evicted, or deleted by hand: then use the object's own file. */
static bool reopen_saved(struct elf_table *t)
{
	struct elf_index *index = t->index;
	const struct elf_head head = t->head;
	struct elf_file file = {0};

	if (!open_saved(t, &file) && elf_saved_same(&file.bytes, t->checksum)) {
		t->names = file;
		return true;
	}
	elf_file_close(&file);
	if (open_indexed(t, false, NULL)) {
		elf_file_close(&t->names);
		t->head = head;
		return false;
	}
	elf_index_free(index);
	t->is_saved = false;
	return true;
}

/* Names are read from the file: reopen it, if it is still the same. */
static bool has_names(struct elf_table *t)
{
	struct elf_file again;
	int rc;

	if (elf_index_has_names(t->index) || t->names.file || elf_file_is_vdso(t->object))
		return true;
	if (t->is_saved) {
		bool opened = reopen_saved(t);

		t->base.holds_file = t->names.file != NULL;
		t->base.bytes = sizeof(*t) + elf_index_bytes(t->index);
		return opened;
	}
	rc = t->linked.len
		     ? elf_file_open_path(buf_text(&t->linked), &again, NULL)
		     : elf_file_open(t->object, t->pid, t->separate, &again, NULL);
	if (rc)
		return false;
	if (!elf_file_same(&t->names, &again)) {
		elf_file_close(&again);
		return false;
	}
	t->names = again;
	t->base.holds_file = true;
	return true;
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	struct elf_table *t = (struct elf_table *)table;
	struct elf_function function;
	uint64_t vaddr, start;

	if (t->is_dll)
		return find_dotnet(t, t->index, offset, out);
	if (!elf_vaddr(&t->head, offset, &vaddr)) {
		look_for_dotnet(t);
		return find_dotnet(t, t->dotnet, offset, out);
	}
	/* Names first: that may replace the index. */
	if (!has_names(t) || !elf_vaddr(&t->head, offset, &vaddr) ||
	    !elf_find(t->index, vaddr, &function))
		return false;
	if (!elf_offset(&t->head, function.vaddr, &start))
		start = offset - (vaddr - function.vaddr);
	*out = (struct symbol){.offset = start};
	if (t->env->take && t->env->take(t->env->take_ctx, start))
		return true;
	if (elf_function_name(t->index, &t->names.bytes, &function, t->name, sizeof(t->name),
			      NULL) ||
	    !t->name[0])
		return false;
	out->name = t->name;
	return true;
}

/*
 * Writing takes as long as indexing did, and the next object's process may be about to end. So
 * write when there is nothing else to do, or before the index is freed.
 */
static void idle(struct symbol_table *table)
{
	struct elf_table *t = (struct elf_table *)table;

	if (has_names(t))
		to_disk(t);
	table->has_idle_work = false;
}

static void close_elf(struct symbol_table *table)
{
	struct elf_table *t = (struct elf_table *)table;

	if (table->has_idle_work)
		idle(table);
	rest(table);
	elf_index_free(t->index);
	elf_index_free(t->dotnet);
	buf_free(&t->linked);
	buf_free(&t->note);
	free(t);
}

const struct symbol_reader elf_reader = {
	.reads = reads,
	.open = open_elf,
	.find = find,
	.rest = rest,
	.idle = idle,
	.close = close_elf,
};
