#include "symbol/elf_file.h"

#include "symbol/symbol_open.h"

#include <string.h>

/* ---- is it the right file? ------------------------------------------------------------------- */

static bool same_build_id(const struct object_key *key, const struct elf_head *head)
{
	return key->build_id_bytes == head->build_id_bytes &&
	       !memcmp(key->build_id, head->build_id, head->build_id_bytes);
}

/*
 * btrfs and overlayfs report another device to stat() than to mappings (an anonymous one for each
 * subvolume or layer). So the device counts only when the path is looked up in our own namespace,
 * where nothing else ties it to the process.
 */
static bool same_inode(const struct object_key *key, const struct os_file_info *info,
		       bool same_root)
{
	return key->ino && key->ino == info->ino && (same_root || key->dev == info->dev);
}

int elf_file_check_size(const char *path, const struct os_file_info *info, struct err *err)
{
	if (info->size_bytes > ELF_FILE_MAX_BYTES)
		return err_set(err, ERR_LIMIT, "%s is larger than %u GB", path,
			       (unsigned)(ELF_FILE_MAX_BYTES >> 30));
	return 0;
}

static int check_file(const struct object_key *key, const char *path, bool same_root,
		      const struct elf_file *again, struct elf_file *f, struct err *err)
{
	struct os_file_info info;
	int rc = os_file_info(f->file, &info, err);

	if (!rc)
		rc = elf_file_check_size(path, &info, err);
	if (rc)
		return rc;
	f->bytes = bytes_of_file(f->file, info.size_bytes);
	f->mtime_ns = info.mtime_ns;
	rc = elf_head_read(&f->bytes, &f->head, err);
	if (rc) {
		err_prefix(err, "%s", path);
		return rc == ERR_FORMAT ? ERR_UNSUPPORTED : rc;   /* another format: Wine maps PE */
	}
	if ((again && (again->mtime_ns != info.mtime_ns || again->bytes.size != info.size_bytes)) ||
	    (key->build_id_bytes ? !same_build_id(key, &f->head)
				 : !same_inode(key, &info, same_root)))
		return err_set(err, ERR_FORMAT, "the file at %s is not the one that was mapped",
			       path);
	return 0;
}

static int open_candidate(const struct object_key *key, const char *path, bool same_root,
			  const struct elf_file *again, struct elf_file *f, struct err *err)
{
	int rc = os_open(path, OS_READ_PLAIN, &f->file, err);

	if (!rc)
		rc = check_file(key, path, same_root, again, f, err);
	if (rc)
		elf_file_close(f);
	return rc;
}

int elf_file_open(const struct object *object, uint32_t pid, bool debug,
		  const struct elf_file *again, struct elf_file *out, struct err *err)
{
	struct buf path = {.max_bytes = 8192};
	struct elf_file f = {0};
	struct err why = {0};
	int rc = ERR_NOT_FOUND;
	unsigned which;
	bool same_root;

	for (which = 0; rc && which < SYMBOL_CANDIDATES; which++) {
		struct err one = {0};

		if (!(debug ? symbol_debug_path : symbol_path)(object, pid, which, &path,
							       &same_root))
			continue;
		rc = open_candidate(&object->key, buf_text(&path), same_root, again, &f, &one);
		one.code = rc;
		/* Of several reasons report the first, unless it is only that nothing is there. */
		if (rc && (!why.code || why.code == ERR_NOT_FOUND))
			why = one;
	}
	buf_free(&path);
	if (!rc)
		*out = f;
	else if (!why.code)          /* mapped by the kernel ([vdso32]): no file, nobody's fault */
		return err_set(err, object->key.path[0] == '[' ? ERR_UNSUPPORTED : ERR_NOT_FOUND,
			       "%s is not the path of a file", object->key.path);
	else if (err)
		*err = why;
	return rc ? why.code : 0;
}

void elf_file_close(struct elf_file *f)
{
	os_close(f->file);
	f->file = NULL;
}
