#include "base/os_file_private.h"
#include "base/os_windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILETIME_TO_1970 116444736000000000ULL
#define CHUNK ((size_t)16 << 20)
#define CONSOLE_CHUNK 4096            /* bytes; WriteConsoleW() refuses very long texts */

/* ---- open and close -------------------------------------------------------------------------- */

struct open_way {
	DWORD access, disposition, flags;
};

/*
 * Files that we create are opened as what stands at the path, never through a link; refuse_link()
 * then refuses the link itself. A log may be a link. Appending opens without FILE_WRITE_DATA, so
 * that every write goes to the end, whoever else writes.
 */
static const struct open_way open_ways[] = {
	[OS_READ] = {GENERIC_READ, OPEN_EXISTING, 0},
	/* Should the path be a pipe, its listener learns nothing about us. */
	[OS_READ_PLAIN] = {GENERIC_READ, OPEN_EXISTING, SECURITY_SQOS_PRESENT | SECURITY_ANONYMOUS},
	[OS_READ_NO_LINK] = {GENERIC_READ, OPEN_EXISTING,
			     FILE_FLAG_OPEN_REPARSE_POINT | SECURITY_SQOS_PRESENT |
				     SECURITY_ANONYMOUS},
	[OS_CREATE] = {GENERIC_WRITE, CREATE_NEW, FILE_FLAG_OPEN_REPARSE_POINT},
	[OS_REPLACE] = {GENERIC_WRITE, OPEN_ALWAYS, FILE_FLAG_OPEN_REPARSE_POINT},
	[OS_APPEND] = {FILE_APPEND_DATA | FILE_READ_ATTRIBUTES | SYNCHRONIZE, OPEN_ALWAYS, 0},
};

/* INVALID_HANDLE_VALUE leaves the reason in GetLastError(). */
static HANDLE open_handle(const char *path, const struct open_way *way)
{
	HANDLE handle = INVALID_HANDLE_VALUE;
	SECURITY_ATTRIBUTES owner_only;
	wchar_t *name = wide_path(path);

	if (name && private_open(PRIVATE_FILE, &owner_only)) {
		handle = CreateFileW(name, way->access,
				     FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE,
				     &owner_only, way->disposition,
				     FILE_ATTRIBUTE_NORMAL | way->flags, NULL);
		private_free(&owner_only);
	}
	wide_free(name);
	return handle;
}

static bool refuse_link(HANDLE handle)
{
	BY_HANDLE_FILE_INFORMATION info;

	if (!GetFileInformationByHandle(handle, &info) ||
	    !(info.dwFileAttributes & FILE_ATTRIBUTE_REPARSE_POINT))
		return false;
	SetLastError(ERROR_CANT_ACCESS_FILE);
	return true;
}

/* Directories cannot be opened this way (ERR_ACCESS). */
static bool is_plain(HANDLE handle, enum os_open how)
{
	return GetFileType(handle) == FILE_TYPE_DISK &&
	       (how != OS_READ_NO_LINK || !refuse_link(handle));
}

static void close_keeping_error(HANDLE handle)
{
	DWORD error = GetLastError();

	CloseHandle(handle);
	SetLastError(error);
}

/* Refuse a link by closing what was opened. */
static HANDLE unless_link(HANDLE handle)
{
	if (handle == INVALID_HANDLE_VALUE || !refuse_link(handle))
		return handle;
	close_keeping_error(handle);
	return INVALID_HANDLE_VALUE;
}

int os_file_open(const char *path, enum os_open how, intptr_t *out, struct err *err)
{
	HANDLE handle = open_handle(path, &open_ways[how]);

	if (how == OS_REPLACE)
		handle = unless_link(handle);
	if (handle != INVALID_HANDLE_VALUE && how == OS_REPLACE &&
	    GetFileType(handle) == FILE_TYPE_DISK && !SetEndOfFile(handle)) {
		close_keeping_error(handle);
		handle = INVALID_HANDLE_VALUE;
	}
	if (handle == INVALID_HANDLE_VALUE)
		return how <= OS_READ_NO_LINK ? err_os(err, "cannot open %s", path)
					      : os_file_cannot(err, "cannot write %s", path);
	if ((how == OS_READ_PLAIN || how == OS_READ_NO_LINK) && !is_plain(handle, how)) {
		CloseHandle(handle);
		return err_set(err, ERR_ACCESS, "%s is not a regular file", path);
	}
	*out = (intptr_t)handle;
	return 0;
}

void os_file_init(struct os_file *file)
{
	file->kind = GetFileType((HANDLE)file->handle);
}

void os_file_close(intptr_t handle)
{
	CloseHandle((HANDLE)handle);
}

/* ---- what a file is -------------------------------------------------------------------------- */

static uint64_t unix_ns(FILETIME t)
{
	uint64_t units = (uint64_t)t.dwHighDateTime << 32 | t.dwLowDateTime;

	return units > FILETIME_TO_1970 ? (units - FILETIME_TO_1970) * 100 : 0;
}

bool os_handle_info(intptr_t file, struct os_file_info *out)
{
	HANDLE handle = (HANDLE)file;
	BY_HANDLE_FILE_INFORMATION info;
	struct os_file_info result = {0};

	if (GetFileType(handle) == FILE_TYPE_DISK) {
		if (!GetFileInformationByHandle(handle, &info))
			return false;
		result.dev = info.dwVolumeSerialNumber;
		result.ino = (uint64_t)info.nFileIndexHigh << 32 | info.nFileIndexLow;
		result.size_bytes = (uint64_t)info.nFileSizeHigh << 32 | info.nFileSizeLow;
		result.mtime_ns = unix_ns(info.ftLastWriteTime);
		result.directory = info.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY;
		result.regular = !result.directory;
	}
	*out = result;
	return true;
}

int os_path_info(const char *path, struct os_file_info *out, struct err *err)
{
	/* Directories open with backup semantics only. */
	static const struct open_way look = {FILE_READ_ATTRIBUTES, OPEN_EXISTING,
					     FILE_FLAG_BACKUP_SEMANTICS};
	HANDLE handle = open_handle(path, &look);
	bool ok;

	if (handle == INVALID_HANDLE_VALUE)
		return err_os(err, "cannot look at %s", path);
	ok = os_handle_info((intptr_t)handle, out);
	close_keeping_error(handle);
	return ok ? 0 : err_os(err, "cannot look at %s", path);
}

bool os_exists(const char *path)
{
	wchar_t *name = wide_path(path);
	bool there = name && GetFileAttributesW(name) != INVALID_FILE_ATTRIBUTES;

	wide_free(name);
	return there;
}

int os_list(const char *dir, int (*each)(void *ctx, const char *name), void *ctx, struct err *err)
{
	struct buf pattern = {0};
	WIN32_FIND_DATAW entry;
	char name[3 * MAX_PATH + 1];
	wchar_t *wide = NULL;
	HANDLE found;
	int rc;

	buf_printf(&pattern, "%s\\*", dir);
	rc = buf_check(&pattern, "a directory name", err);
	if (!rc)
		wide = wide_path(pattern.data);
	buf_free(&pattern);
	if (rc)
		return rc;
	found = wide ? FindFirstFileW(wide, &entry) : INVALID_HANDLE_VALUE;
	wide_free(wide);
	if (found == INVALID_HANDLE_VALUE)
		return err_os(err, "cannot read the directory %s", dir);
	do {
		if (wcscmp(entry.cFileName, L".") == 0 || wcscmp(entry.cFileName, L"..") == 0 ||
		    !WideCharToMultiByte(CP_UTF8, 0, entry.cFileName, -1, name, sizeof(name), NULL,
					 NULL))
			continue;
		if (each(ctx, name))
			break;
	} while (FindNextFileW(found, &entry));
	FindClose(found);
	return 0;
}

int os_free_bytes(const char *dir, uint64_t *free_bytes, uint64_t *total_bytes, struct err *err)
{
	ULARGE_INTEGER available, total;
	wchar_t *name = wide_path(dir);
	bool ok = name && GetDiskFreeSpaceExW(name, &available, &total, NULL);

	wide_free(name);
	if (!ok)
		return err_os(err, "cannot look at the disk of %s", dir);
	*free_bytes = available.QuadPart;
	*total_bytes = total.QuadPart;
	return 0;
}

/* ---- read and write -------------------------------------------------------------------------- */

bool os_file_read(struct os_file *file, void *to, size_t n, uint64_t offset, size_t *done)
{
	uint64_t from = offset == OS_FILE_NEXT ? file->read_at : offset;
	OVERLAPPED at = {.Offset = (DWORD)from, .OffsetHigh = (DWORD)(from >> 32)};
	DWORD part = 0;
	bool ok = ReadFile((HANDLE)file->handle, to, (DWORD)(n < CHUNK ? n : CHUNK), &part,
			   file->kind == FILE_TYPE_DISK ? &at : NULL);

	*done = part;
	if (offset == OS_FILE_NEXT)
		file->read_at += part;
	/* The end of a file, or of a pipe whose writer has gone. */
	return ok || GetLastError() == ERROR_HANDLE_EOF || GetLastError() == ERROR_BROKEN_PIPE;
}

/* GetTempFileNameW() makes the name and an empty file, which is then opened for good. */
static HANDLE open_temp(void)
{
	HANDLE handle = INVALID_HANDLE_VALUE;
	SECURITY_ATTRIBUTES owner_only;
	wchar_t dir[MAX_PATH + 1], path[MAX_PATH + 1];
	DWORD error;

	if (!GetTempPathW(MAX_PATH + 1, dir) || !GetTempFileNameW(dir, L"rec", 0, path))
		return handle;
	if (private_open(PRIVATE_FILE, &owner_only)) {
		handle = CreateFileW(path, GENERIC_READ | GENERIC_WRITE, 0, &owner_only,
				     TRUNCATE_EXISTING,
				     FILE_ATTRIBUTE_TEMPORARY | FILE_FLAG_DELETE_ON_CLOSE, NULL);
		private_free(&owner_only);
	}
	if (handle == INVALID_HANDLE_VALUE) {
		error = GetLastError();
		DeleteFileW(path);
		SetLastError(error);
	}
	return handle;
}

int os_file_open_temp(intptr_t *out, struct err *err)
{
	HANDLE handle = open_temp();

	*out = (intptr_t)handle;
	if (handle != INVALID_HANDLE_VALUE)
		return 0;
	return os_file_cannot(err, "cannot create a temporary file in %s",
			      "the user's temporary folder (TMP names another one)");
}

/* How many bytes at the end of the text begin a character that is still incomplete. */
static size_t unfinished(const char *text, size_t n)
{
	size_t back;

	for (back = 1; back <= 3 && back <= n; back++) {
		unsigned char c = (unsigned char)text[n - back];

		if (c >= 0xc0)
			return back < (c >= 0xf0 ? 4u : c >= 0xe0 ? 3u : 2u) ? back : 0;
		if (c < 0x80)
			return 0;
	}
	return 0;
}

static bool write_wide(HANDLE console, const char *text, size_t n)
{
	wchar_t wide[CONSOLE_CHUNK + 4];
	const wchar_t *at = wide;
	DWORD part;
	int left = MultiByteToWideChar(CP_UTF8, 0, text, (int)n, wide, CONSOLE_CHUNK + 4);

	while (left > 0) {
		if (!WriteConsoleW(console, at, (DWORD)left, &part, NULL))
			return false;
		at += part;
		left -= (int)part;
	}
	return true;
}

/* A console shows UTF-16 whatever its code page; a character may arrive in two writes. */
static bool write_console(struct os_file *file, const char *bytes, size_t n)
{
	char text[CONSOLE_CHUNK + sizeof(file->held)];
	size_t all = file->nheld + n;

	memcpy(text, file->held, file->nheld);
	memcpy(text + file->nheld, bytes, n);
	file->nheld = unfinished(text, all);
	memcpy(file->held, text + all - file->nheld, file->nheld);
	return write_wide((HANDLE)file->handle, text, all - file->nheld);
}

bool os_file_write(struct os_file *file, const void *bytes, size_t n, uint64_t offset, size_t *done)
{
	OVERLAPPED at = {.Offset = (DWORD)offset, .OffsetHigh = (DWORD)(offset >> 32)};
	size_t most = file->console ? CONSOLE_CHUNK : CHUNK;
	DWORD part = (DWORD)(n < most ? n : most);
	bool ok = file->console ? write_console(file, bytes, part)
				: WriteFile((HANDLE)file->handle, bytes, part, &part,
					    offset == OS_FILE_NEXT ? NULL : &at);

	*done = part;
	return ok;
}

void os_file_hand_over(struct os_file *file)
{
	(void)file;
}

void os_file_show(struct os_file *file)
{
	(void)file;
}

void os_make_room(const char *path, uint64_t bytes)
{
	(void)path;
	(void)bytes;
}

int os_sync(struct os_file *file, struct err *err)
{
	/* On a pipe FlushFileBuffers() would wait until the other side has read. */
	if (file->kind == FILE_TYPE_DISK && !FlushFileBuffers((HANDLE)file->handle))
		return err_os(err, "cannot write %s to the disk", file->path);
	return 0;
}

/* Windows has no call for it. */
void os_sync_soon(struct os_file *file)
{
	(void)file;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Virus scanners and indexers hold a new file open for some milliseconds; then it works. */
static bool is_passing(DWORD error)
{
	return error == ERROR_SHARING_VIOLATION || error == ERROR_ACCESS_DENIED ||
	       error == ERROR_LOCK_VIOLATION;
}

#define PASSING_TRIES 10              /* 0 + 2 + 4 + ... + 18 ms: 90 ms in all */

/* Rename a file, or remove it when `to` is NULL. */
static bool move_or_remove(const wchar_t *from, const wchar_t *to)
{
	DWORD try;

	for (try = 0; try < PASSING_TRIES; try++) {
		Sleep(try * 2);
		if (to ? MoveFileExW(from, to, MOVEFILE_REPLACE_EXISTING | MOVEFILE_WRITE_THROUGH)
		       : DeleteFileW(from))
			return true;
		if (!is_passing(GetLastError()))
			return false;
	}
	return false;
}

int os_rename(const char *from, const char *to, struct err *err)
{
	wchar_t *old_name = wide_path(from);
	wchar_t *new_name = old_name ? wide_path(to) : NULL;
	bool ok = new_name && move_or_remove(old_name, new_name);

	wide_free(new_name);
	wide_free(old_name);
	return ok ? 0 : err_os(err, "cannot rename %s to %s", from, to);
}

int os_remove(const char *path, struct err *err)
{
	wchar_t *name = wide_path(path);
	bool ok = name && move_or_remove(name, NULL);

	wide_free(name);
	return ok ? 0 : err_os(err, "cannot remove %s", path);
}

void os_remove_dir(const char *path)
{
	wchar_t *name = wide_path(path);

	if (name)
		RemoveDirectoryW(name);
	wide_free(name);
}

static bool is_directory(const wchar_t *name)
{
	DWORD attributes = GetFileAttributesW(name);

	return attributes != INVALID_FILE_ATTRIBUTES && (attributes & FILE_ATTRIBUTE_DIRECTORY);
}

/*
 * Make each part. Those above mostly exist, or are not ours to touch, so only the last must work.
 */
static bool make_dirs(wchar_t *name, SECURITY_ATTRIBUTES *owner_only)
{
	wchar_t *at;
	DWORD error;

	for (at = name + 1; *at; at++) {
		wchar_t separator = *at;

		if ((separator != L'\\' && separator != L'/') || !at[1])
			continue;
		*at = L'\0';
		CreateDirectoryW(name, owner_only);
		*at = separator;
	}
	if (CreateDirectoryW(name, owner_only))
		return true;
	error = GetLastError();
	if (is_directory(name))
		return true;
	SetLastError(error);
	return false;
}

int os_mkdirs(const char *path, struct err *err)
{
	SECURITY_ATTRIBUTES owner_only;
	wchar_t *name = wide_path(path);
	bool ok = false;

	if (name && private_open(PRIVATE_DIRECTORY, &owner_only)) {
		ok = make_dirs(name, &owner_only);
		private_free(&owner_only);
	}
	wide_free(name);
	return ok ? 0 : os_file_cannot(err, "cannot make the directory %s", path);
}

/* Windows' calls take either. */
void os_full_path(const char *path, struct buf *out)
{
	buf_puts(out, path);
}

/* ---- standard streams and the terminal ------------------------------------------------------- */

/*
 * The streams of the process, filled at their first use. A service has none: its handles are
 * NULL and each write fails, which the log copes with.
 */
static struct {
	INIT_ONCE once;
	struct os_file in, out, error;
} standard = {
	.once = INIT_ONCE_STATIC_INIT,
	.in = {.standard = true, .path = "standard input"},
	.out = {.standard = true, .path = "standard output"},
	.error = {.standard = true, .path = "standard error"},
};

static void standard_open(struct os_file *file, DWORD which)
{
	HANDLE handle = GetStdHandle(which);
	DWORD mode;

	file->handle = (intptr_t)handle;
	file->console = GetConsoleMode(handle, &mode);
	os_file_init(file);
}

static BOOL CALLBACK standard_open_all(INIT_ONCE *once, void *parameter, void **context)
{
	(void)once;
	(void)parameter;
	(void)context;
	standard_open(&standard.in, STD_INPUT_HANDLE);
	standard_open(&standard.out, STD_OUTPUT_HANDLE);
	standard_open(&standard.error, STD_ERROR_HANDLE);
	return TRUE;
}

struct os_file *os_stdout(void)
{
	InitOnceExecuteOnce(&standard.once, standard_open_all, NULL, NULL);
	return &standard.out;
}

struct os_file *os_stdin(void)
{
	InitOnceExecuteOnce(&standard.once, standard_open_all, NULL, NULL);
	return &standard.in;
}

struct os_file *os_stderr(void)
{
	InitOnceExecuteOnce(&standard.once, standard_open_all, NULL, NULL);
	return &standard.error;
}

bool os_is_terminal(struct os_file *file)
{
	return file->console;
}

/* ---- lock ------------------------------------------------------------------------------------ */

intptr_t os_file_open_lock(const char *path)
{
	static const struct open_way way = {GENERIC_READ | GENERIC_WRITE, OPEN_ALWAYS,
					    FILE_FLAG_OPEN_REPARSE_POINT};

	return (intptr_t)unless_link(open_handle(path, &way));
}

/* Windows makes a locked range unreadable to others: lock one byte far beyond the text. */
bool os_file_lock(struct os_file *file, bool *held)
{
	OVERLAPPED place = {.Offset = 0, .OffsetHigh = 0x40000000};

	if (LockFileEx((HANDLE)file->handle, LOCKFILE_EXCLUSIVE_LOCK | LOCKFILE_FAIL_IMMEDIATELY, 0,
		       1, 0, &place))
		return true;
	*held = GetLastError() == ERROR_LOCK_VIOLATION || GetLastError() == ERROR_IO_PENDING;
	return false;
}

void os_file_empty(struct os_file *file)
{
	SetEndOfFile((HANDLE)file->handle);
}
