#include "symbol/elf_file.h"

#include "symbol/symbol_open.h"
#include "symbol/symbol_path.h"

#include <string.h>

void elf_file_close(struct elf_file *f)
{
	os_close(f->file);
	f->file = NULL;
	buf_free(&f->memory);
}

static int dll_head(const struct bytes *in, struct elf_head *out, struct err *err)
{
	char magic[2];
	int rc = bytes_read(in, 0, magic, sizeof(magic), "its first bytes", err);

	if (!rc && memcmp(magic, "MZ", 2) != 0)
		rc = err_set(err, ERR_FORMAT, "not a PE file");
	*out = (struct elf_head){.is64 = true, .machine = ELF_X86_64, .nsegments = 1};
	out->segments[0] = (struct elf_segment){.file_bytes = in->size, .memory_bytes = in->size,
						.executable = true};
	return rc;
}

typedef int head_reader(const struct bytes *in, struct elf_head *out, struct err *err);

static int open_path(const char *path, head_reader *read_head, struct elf_file *out,
		     struct err *err)
{
	struct elf_file f = {0};
	struct os_file_info info;
	int rc = os_open(path, OS_READ_PLAIN, &f.file, err);

	if (!rc)
		rc = os_file_info(f.file, &info, err);
	if (!rc && info.size_bytes > ELF_FILE_MAX_BYTES)
		rc = err_set(err, ERR_LIMIT, "%s is larger than %u GB", path,
			     (unsigned)(ELF_FILE_MAX_BYTES >> 30));
	if (!rc) {
		f.bytes = bytes_of_file(f.file, info.size_bytes);
		f.dev = info.dev;
		f.ino = info.ino;
		f.mtime_ns = info.mtime_ns;
		rc = read_head(&f.bytes, &f.head, err);
		if (rc)
			err_prefix(err, "%s", path);
	}
	if (rc)
		elf_file_close(&f);
	else
		*out = f;
	return rc;
}

int elf_file_open_path(const char *path, struct elf_file *out, struct err *err)
{
	return open_path(path, elf_head_read, out, err);
}

bool elf_file_same(const struct elf_file *a, const struct elf_file *b)
{
	return a->mtime_ns == b->mtime_ns && a->bytes.size == b->bytes.size;
}

void elf_file_keep_reason(struct err *why, const struct err *one)
{
	if (!why->code || (why->code == ERR_NOT_FOUND && one->code != ERR_NOT_FOUND))
		*why = *one;
}

/*
 * btrfs and overlayfs report another device to stat() than to mappings (an anonymous one for each
 * subvolume or layer). So the device counts only when the path is looked up in our own namespace,
 * where nothing else ties it to the process.
 */
static bool is_mapped_file(const struct object_key *key, const struct elf_file *f, bool same_root)
{
	if (key->build_id_bytes)
		return key->build_id_bytes == f->head.build_id_bytes &&
		       !memcmp(key->build_id, f->head.build_id, key->build_id_bytes);
	return key->ino && key->ino == f->ino && (same_root || key->dev == f->dev);
}

static int open_candidate(const struct object_key *key, const char *path, bool same_root,
			  head_reader *read_head, struct elf_file *out, struct err *err)
{
	struct elf_file f;
	int rc = open_path(path, read_head, &f, err);

	if (rc)                                  /* another format: Wine maps PE */
		return rc == ERR_FORMAT ? ERR_UNSUPPORTED : rc;
	if (is_mapped_file(key, &f, same_root)) {
		*out = f;
		return 0;
	}
	elf_file_close(&f);
	return err_set(err, ERR_FORMAT, "%s is no longer the file that was mapped: if an upgrade "
		       "replaced it, restart the processes that still run the old one", path);
}

static int open_vdso(bool is_32_bit, struct elf_file *out, struct err *err)
{
	struct elf_file f = {0};
	int rc = is_32_bit ? symbol_vdso32(&f.memory, err) : symbol_vdso(&f.bytes, err);

	if (!rc && is_32_bit)
		f.bytes = bytes_of_memory(f.memory.data, f.memory.len);
	if (!rc)
		rc = elf_head_read(&f.bytes, &f.head, err);
	if (rc)
		elf_file_close(&f);
	else
		*out = f;
	return rc;
}

static int open_one_of(const struct object *object, uint32_t pid, bool debug,
		       head_reader *read_head, struct elf_file *out, struct err *err)
{
	struct buf path = {.max_bytes = 8192};
	struct err why = {0};
	int rc = ERR_NOT_FOUND;
	unsigned which;
	bool same_root;

	for (which = 0; rc && which < SYMBOL_CANDIDATES; which++) {
		struct err one = {0};

		if (!symbol_path(object, pid, debug, which, &path, &same_root))
			continue;
		rc = open_candidate(&object->key, buf_text(&path), same_root, read_head, out, &one);
		one.code = rc;
		/* A library is never the process's program, so that is no reason. */
		if (rc && !(rc == ERR_FORMAT && which == SYMBOL_PROGRAM))
			elf_file_keep_reason(&why, &one);
	}
	buf_free(&path);
	if (!rc)
		return 0;
	if (!why.code)               /* mapped by the kernel: no file, nobody's fault */
		return err_set(err, object->key.path[0] == '[' ? ERR_UNSUPPORTED : ERR_NOT_FOUND,
			       "%s is not the path of a file", object->key.path);
	if (err)
		*err = why;
	return why.code;
}

int elf_file_open(const struct object *object, uint32_t pid, bool debug, struct elf_file *out,
		  struct err *err)
{
	if (elf_file_is_vdso(object))
		return debug ? ERR_NOT_FOUND
			     : open_vdso(strcmp(object->key.path, "[vdso]") != 0, out, err);
	return open_one_of(object, pid, debug, elf_head_read, out, err);
}

int elf_file_open_dll(const struct object *object, uint32_t pid, struct elf_file *out,
		      struct err *err)
{
	return open_one_of(object, pid, false, dll_head, out, err);
}

/* ---- a symbol path --------------------------------------------------------------------------- */

static void put_id(struct buf *out, const struct object_key *key, const char *after_first)
{
	unsigned i;

	for (i = 0; i < key->build_id_bytes; i++)
		buf_printf(out, "%02x%s", key->build_id[i], i ? "" : after_first);
}

enum { PLACES = 5 };

/* The which-th place below a directory, behind what path holds; false = there are no more. */
static bool put_place(const struct object *object, bool debug, unsigned which, struct buf *path)
{
	switch (which) {
	case 0:
		buf_putc(path, '/');
		put_id(path, &object->key, "");
		buf_puts(path, debug ? "/debuginfo" : "/executable");
		return true;
	case 1:
		buf_puts(path, "/.build-id/");
		put_id(path, &object->key, "/");
		buf_puts(path, debug ? ".debug" : "");
		return true;
	case 2:
		if (!debug) {
			buf_printf(path, "/%s", object->key.path);
			return true;
		}
		buf_puts(path, "/usr/lib/debug/.build-id/");
		put_id(path, &object->key, "/");
		buf_puts(path, ".debug");
		return true;
	case 3:
		buf_printf(path, "/%s%s", object->name, debug ? ".debug" : "");
		return true;
	default:
		buf_printf(path, "/%s", object->name);
		return debug && which < PLACES;
	}
}

/* What has only debug information does not say where its code lies in the program's file. */
static bool has_code(const struct elf_head *head)
{
	uint32_t i;

	for (i = 0; i < head->nsegments; i++)
		if (head->segments[i].executable && head->segments[i].file_bytes)
			return true;
	return false;
}

static bool open_in_directory(const struct symbol_element *dir, const struct object *object,
			      bool debug, struct buf *found, struct elf_file *out)
{
	unsigned which;

	for (which = 0; which < PLACES; which++) {
		buf_reset(found);
		buf_put(found, dir->text, dir->nbytes);
		if (!put_place(object, debug, which, found) || found->failed ||
		    open_candidate(&object->key, buf_text(found), false, elf_head_read, out, NULL))
			continue;
		if (debug || has_code(&out->head))
			return true;
		elf_file_close(out);
	}
	return false;
}

int elf_file_open_in(const char *path, const struct object *object, bool debug, struct buf *found,
		     struct elf_file *out)
{
	struct symbol_element element, dir;
	unsigned i;

	while (object->key.build_id_bytes && symbol_path_next(&path, &element))
		for (i = 0; symbol_path_directory(&element, i, &dir); i++)
			if (open_in_directory(&dir, object, debug, found, out))
				return 0;
	buf_reset(found);
	return ERR_NOT_FOUND;
}
