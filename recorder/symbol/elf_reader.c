/*
 * Names for frames in ELF objects: finds the file that a process maps, makes sure that it is that
 * file, and looks offsets up in its index.
 *
 * Wrong names are worse than none. A path alone proves nothing: the file may have been replaced, or
 * be another one in another mount namespace. With a build id in the key the file must have the
 * same; without one the inode must be the same.
 */
#include "symbol/elf.h"
#include "symbol/reader.h"
#include "symbol/symbol_open.h"

#include <stdlib.h>
#include <string.h>

struct elf_table {
	struct symbol_table base;
	const struct object *object;
	uint32_t pid;
	struct os_file *file;         /* open while names are read from it */
	struct bytes bytes;
	uint64_t mtime_ns;
	bool separate;                /* file is the debug file, not the one that is mapped */
	struct elf_head head;         /* of the one that is mapped */
	struct elf_index *index;
	char name[FUNCTION_NAME_MAX + 1];
};

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_ELF;
}

/* ---- which file ------------------------------------------------------------------------------ */

static bool same_build_id(const struct object_key *key, const struct elf_head *head)
{
	return key->build_id_bytes == head->build_id_bytes &&
	       !memcmp(key->build_id, head->build_id, head->build_id_bytes);
}

/*
 * btrfs and overlayfs report another device to stat() than to mappings (an anonymous one for each
 * subvolume or layer), so the device counts only when the path is looked up in our own namespace,
 * where nothing else ties it to the process.
 */
static bool same_inode(const struct object_key *key, const struct os_file_info *info,
		       bool same_root)
{
	return key->ino && key->ino == info->ino && (same_root || key->dev == info->dev);
}

static int check_info(const char *path, const struct os_file_info *info, struct err *err)
{
	if (!info->regular)
		return err_set(err, ERR_FORMAT, "%s is no regular file", path);
	if (info->size_bytes > ELF_FILE_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "%s is larger than %u GB", path,
			       (unsigned)(ELF_FILE_MAX_BYTES >> 30));
	return 0;
}

/* A table that reopens its file must find the very bytes that it was indexed from. */
static bool changed(const struct elf_table *t, const struct os_file_info *info)
{
	return t->index &&
	       (t->mtime_ns != info->mtime_ns || t->bytes.size != info->size_bytes);
}

static int check_file(struct elf_table *t, const char *path, bool same_root, struct err *err)
{
	const struct object_key *key = &t->object->key;
	struct os_file_info info;
	struct elf_head head;
	struct bytes in;
	int rc = os_file_info(t->file, &info, err);

	if (!rc)
		rc = check_info(path, &info, err);
	if (rc)
		return rc;
	in = bytes_of_file(t->file, info.size_bytes);
	rc = elf_head_read(&in, &head, err);
	if (rc) {
		err_prefix(err, "%s", path);
		return rc == ERR_FORMAT ? ERR_UNSUPPORTED : rc;   /* another format: Wine maps PE */
	}
	if (changed(t, &info) || (key->build_id_bytes ? !same_build_id(key, &head)
						      : !same_inode(key, &info, same_root)))
		return err_set(err, ERR_FORMAT, "the file at %s is another one than was mapped",
			       path);
	t->bytes = in;
	if (!t->separate)
		t->head = head;
	t->mtime_ns = info.mtime_ns;
	return 0;
}

/* The path is looked at before it is opened: a pipe would wait, a device may do anything. */
static int open_candidate(struct elf_table *t, const char *path, bool same_root, struct err *err)
{
	struct os_file_info info;
	int rc = os_path_info(path, &info, err);

	if (!rc)
		rc = check_info(path, &info, err);
	if (!rc)
		rc = os_open(path, OS_READ, &t->file, err);
	if (!rc)
		rc = check_file(t, path, same_root, err);
	if (rc) {
		os_close(t->file);
		t->file = NULL;
	}
	return rc;
}

static int open_file(struct elf_table *t, struct err *err)
{
	struct buf path = {.max_bytes = 8192};
	struct err why = {0};
	int rc = ERR_NOT_FOUND;
	unsigned which;
	bool same_root;

	for (which = 0; rc && which < SYMBOL_CANDIDATES; which++) {
		struct err one = {0};

		if (!(t->separate ? symbol_debug_path : symbol_path)(t->object, t->pid, which, &path,
								     &same_root))
			continue;
		rc = open_candidate(t, buf_text(&path), same_root, &one);
		one.code = rc;
		/* Of several reasons the first is told, unless it is only that nothing is there. */
		if (rc && (!why.code || why.code == ERR_NOT_FOUND))
			why = one;
	}
	buf_free(&path);
	t->base.holds_file = !rc;
	if (rc && !why.code)
		return err_set(err, ERR_NOT_FOUND, "%s is no path to a file", t->object->key.path);
	return rc ? err_set(err, why.code, "%s", why.text) : 0;
}

static bool is_vdso(const struct object *object)
{
	return strcmp(object->key.path, "[vdso]") == 0;
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void rest(struct symbol_table *table)
{
	struct elf_table *t = (struct elf_table *)table;

	os_close(t->file);
	t->file = NULL;
	table->holds_file = false;
}

static void close_elf(struct symbol_table *table)
{
	struct elf_table *t = (struct elf_table *)table;

	rest(table);
	elf_index_free(t->index);
	free(t);
}

/*
 * Distributions strip programs and put the full .symtab into a file of its own, found by build id.
 * Where it is installed it names what .dynsym does not. Its addresses are those of the program.
 */
static void use_debug_file(struct elf_table *t)
{
	struct elf_table debug = {.object = t->object, .pid = t->pid, .separate = true};

	if (!t->object->key.build_id_bytes || open_file(&debug, NULL) ||
	    elf_head_read(&debug.bytes, &debug.head, NULL) ||
	    elf_index_new(&debug.bytes, &debug.head, &debug.index, NULL) ||
	    elf_index_count(debug.index) <= elf_index_count(t->index)) {
		elf_index_free(debug.index);
		os_close(debug.file);
		return;
	}
	elf_index_free(t->index);
	os_close(t->file);
	t->index = debug.index;
	t->file = debug.file;
	t->bytes = debug.bytes;
	t->mtime_ns = debug.mtime_ns;
	t->separate = true;
}

static int open_elf(const struct object *object, uint32_t pid, struct symbol_table **out,
		    struct err *err)
{
	struct elf_table *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_set(err, ERR_MEMORY, "out of memory for its symbols");
	t->base.reader = &elf_reader;
	t->object = object;
	t->pid = pid;
	if (is_vdso(object)) {
		rc = symbol_vdso(&t->bytes, err);
		if (!rc)
			rc = elf_head_read(&t->bytes, &t->head, err);
	} else {
		rc = open_file(t, err);
	}
	if (!rc)
		rc = elf_index_new(&t->bytes, &t->head, &t->index, err);
	if (rc) {
		close_elf(&t->base);
		return rc;
	}
	use_debug_file(t);
	/* Nothing more to read: an open file would only keep its disk space and mount busy. */
	if (elf_index_has_names(t->index))
		rest(&t->base);
	*out = &t->base;
	return 0;
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	struct elf_table *t = (struct elf_table *)table;
	struct elf_function function;
	uint64_t vaddr, start;

	if (!elf_vaddr(&t->head, offset, &vaddr) || !elf_find(t->index, vaddr, &function))
		return false;
	if (!elf_index_has_names(t->index) && !t->file && open_file(t, NULL))
		return false;
	if (elf_function_name(t->index, &t->bytes, &function, t->name, sizeof(t->name), NULL) ||
	    !t->name[0])
		return false;
	if (!elf_offset(&t->head, function.vaddr, &start))
		start = offset - (vaddr - function.vaddr);
	*out = (struct symbol){start, t->name, NULL};
	return true;
}

static size_t bytes(const struct symbol_table *table)
{
	const struct elf_table *t = (const struct elf_table *)table;

	return sizeof(*t) + elf_index_bytes(t->index);
}

const struct symbol_reader elf_reader = {
	.name = "elf",
	.reads = reads,
	.open = open_elf,
	.find = find,
	.bytes = bytes,
	.rest = rest,
	.close = close_elf,
};
