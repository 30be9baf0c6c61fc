/* What files have in common on all systems: see os.h. */
#include "base/os_file_private.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define READ_STEP_BYTES 16384

int os_file_cannot(struct err *err, const char *format, const char *path)
{
	int os_error = os_error_last();

	err_os_code(err, os_error, format, path);
	if (os_error_code(os_error) != ERR_NOT_FOUND)
		return os_error_code(os_error);
	if (err)
		err->code = ERR_IO;
	return ERR_IO;
}

/* Takes the handle. */
static int make_file(intptr_t handle, const char *path, const char *doing, struct os_file **out,
		     struct err *err)
{
	size_t n = strlen(path) + 1;
	struct os_file *file = calloc(1, sizeof(*file) + n);

	if (!file) {
		os_file_close(handle);
		return err_memory(err, "while %s %s", doing, path);
	}
	file->handle = handle;
	file->path = memcpy(file + 1, path, n);
	os_file_init(file);
	*out = file;
	return 0;
}

int os_open(const char *path, enum os_open how, struct os_file **out, struct err *err)
{
	intptr_t handle;
	int rc = os_file_open(path, how, &handle, err);

	return rc ? rc : make_file(handle, path, "opening", out, err);
}

int os_temp(struct os_file **out, struct err *err)
{
	intptr_t handle;
	int rc = os_file_open_temp(&handle, err);

	return rc ? rc : make_file(handle, "a temporary file", "creating", out, err);
}

void os_close(struct os_file *file)
{
	if (!file || file->standard)
		return;
	os_file_close(file->handle);
	free(file);
}

int os_pread(struct os_file *file, void *to, size_t n, uint64_t offset, size_t *got,
	     struct err *err)
{
	size_t done = 0, part = 1;

	for (; done < n && part; done += part)
		if (!os_file_read(file, (char *)to + done, n - done, offset + done, &part))
			return err_os(err, "cannot read %s", file->path);
	*got = done;
	return 0;
}

int os_read_next(struct os_file *file, void *to, size_t n, size_t *got, struct err *err)
{
	return os_file_read(file, to, n, OS_FILE_NEXT, got)
		       ? 0 : err_os(err, "cannot read %s", file->path);
}

int os_read_all(struct os_file *file, size_t max_bytes, struct buf *out, struct err *err)
{
	size_t total = 0, part;

	for (;;) {
		char *to = buf_reserve(out, READ_STEP_BYTES);

		if (!to)
			return buf_check(out, file->path, err);
		if (!os_file_read(file, to, READ_STEP_BYTES, OS_FILE_NEXT, &part))
			return err_os(err, "cannot read %s", file->path);
		if (part == 0)
			return 0;
		total += part;
		if (total > max_bytes)
			return err_set(err, ERR_LIMIT, "%s is larger than its limit of %zu bytes",
				       file->path, max_bytes);
		buf_advance(out, part);
	}
}

int os_load(const char *path, size_t max_bytes, struct buf *out, struct err *err)
{
	struct os_file *file = NULL;
	int rc = os_open(path, OS_READ, &file, err);

	if (!rc)
		rc = os_read_all(file, max_bytes, out, err);
	os_close(file);
	return rc;
}

static int write_all(struct os_file *file, const char *bytes, size_t n, uint64_t offset,
		     struct err *err)
{
	size_t done = 0, part;

	for (; done < n; done += part)
		if (!os_file_write(file, bytes + done, n - done,
				   offset == OS_FILE_NEXT ? offset : offset + done, &part))
			return err_os(err, "cannot write %s", file->path);
	return 0;
}

int os_write(struct os_file *file, const void *bytes, size_t n, struct err *err)
{
	return write_all(file, bytes, n, OS_FILE_NEXT, err);
}

int os_pwrite(struct os_file *file, const void *bytes, size_t n, uint64_t offset, struct err *err)
{
	return write_all(file, bytes, n, offset, err);
}

/* The file holds the owner's pid as decimal text, for the error that others get. */
int os_lock(const char *path, struct os_file **out, struct err *err)
{
	intptr_t handle = os_file_open_lock(path);
	struct os_file *file = NULL;
	bool held = false;
	char text[24] = "";
	size_t n;
	int rc;

	if (handle == -1)
		return os_file_cannot(err, "cannot write the lock file %s", path);
	rc = make_file(handle, path, "locking", &file, err);
	if (rc)
		return rc;
	if (os_file_lock(file, &held)) {
		os_file_empty(file);
		snprintf(text, sizeof(text), "%u\n", os_pid());
		os_write(file, text, strlen(text), NULL);
		*out = file;
		return 0;
	}
	if (held) {
		os_pread(file, text, sizeof(text) - 1, 0, &n, NULL);
		text[strspn(text, "0123456789")] = '\0';
		rc = err_set(err, ERR_BUSY, "%s is held by process %s", path, *text ? text : "?");
	} else {
		rc = err_os(err, "cannot lock %s", path);
	}
	os_close(file);
	return rc;
}

bool os_try_lock(struct os_file *file)
{
	bool held;

	return os_file_lock(file, &held);
}

int os_file_info(struct os_file *file, struct os_file_info *out, struct err *err)
{
	return os_handle_info(file->handle, out) ? 0 : err_os(err, "cannot look at %s", file->path);
}
