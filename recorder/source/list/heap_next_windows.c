#include "source/list/heap_next.h"

#include "base/os_windows.h"
#include "base/text.h"
#include "model/process_name.h"
#include "source/etw/interval_windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROGRAMS "SOFTWARE\\Microsoft\\Windows NT\\CurrentVersion\\Image File Execution Options"
#define OWNERS "SOFTWARE\\recorder-heap-next"
#define MUTEX L"Global\\recorder-heap-next"
#define FLAG L"TracingFlags"
#define HEAPS 1L                             /* of its bits */
#define KEY_CHARS 300u
#define NAME_CHARS 100u
#define OWNERS_MAX 64u

/*
 * The key of owners has a value for each recorder, by its name (etw_owner_name()): what the flag
 * was before, a blank, and the program.
 */
enum { NO_KEY = -2, NO_FLAG = -1 };          /* before */
#define VALUE L"%ld %ls"

struct heap_next {
	wchar_t programs[KEY_CHARS], owners[KEY_CHARS];
	wchar_t owner[ETW_OWNER_CHARS];
};

struct value {
	long before;
	wchar_t program[NAME_CHARS];
};

static void set_places(struct heap_next *n, const char *programs, const char *owners)
{
	MultiByteToWideChar(CP_UTF8, 0, programs ? programs : PROGRAMS, -1, n->programs,
			    KEY_CHARS);
	MultiByteToWideChar(CP_UTF8, 0, owners ? owners : OWNERS, -1, n->owners, KEY_CHARS);
	etw_owner_name(n->owner);
}

/* ---- who set what ---------------------------------------------------------------------------- */

static bool read_value(HKEY owners, const wchar_t *owner, struct value *out)
{
	wchar_t text[NAME_CHARS + 20];
	DWORD bytes = sizeof(text);
	int at = 0;

	if (RegGetValueW(owners, NULL, owner, RRF_RT_REG_SZ, NULL, text, &bytes) ||
	    swscanf(text, L"%ld %n", &out->before, &at) != 1 || !at ||
	    wcslen(text + at) >= NAME_CHARS)
		return false;
	wcscpy(out->program, text + at);
	return true;
}

/* Whether another owner has this program; then *v becomes the other's. */
static bool is_shared(HKEY owners, const wchar_t *owner, struct value *v)
{
	wchar_t name[ETW_OWNER_CHARS];
	DWORD chars = ETW_OWNER_CHARS, i;
	struct value other;

	for (i = 0; !RegEnumValueW(owners, i, name, &chars, NULL, NULL, NULL, NULL); i++) {
		chars = ETW_OWNER_CHARS;
		if (wcscmp(name, owner) && read_value(owners, name, &other) &&
		    !_wcsicmp(other.program, v->program)) {
			*v = other;
			return true;
		}
	}
	return false;
}

/* ---- the flag -------------------------------------------------------------------------------- */

static LSTATUS open_program(const struct heap_next *n, const struct value *v, bool create,
			    HKEY *out, DWORD *is_new)
{
	wchar_t path[KEY_CHARS + NAME_CHARS + 1];

	_snwprintf(path, KEY_CHARS + NAME_CHARS, L"%ls\\%ls", n->programs, v->program);
	path[KEY_CHARS + NAME_CHARS] = L'\0';
	return create ? RegCreateKeyExW(HKEY_LOCAL_MACHINE, path, 0, NULL, 0, KEY_READ | KEY_WRITE,
					NULL, out, is_new)
		      : RegOpenKeyExW(HKEY_LOCAL_MACHINE, path, 0, KEY_READ | KEY_WRITE, out);
}

/* Without a flag it is NO_FLAG. */
static long read_flag(HKEY program)
{
	DWORD v = 0, bytes = sizeof(v);

	return RegGetValueW(program, NULL, FLAG, RRF_RT_REG_DWORD, NULL, &v, &bytes) ? NO_FLAG
										     : (long)v;
}

static LSTATUS write_flag(HKEY program, long flag)
{
	DWORD v = (DWORD)flag;

	return flag < 0 ? RegDeleteValueW(program, FLAG)
			: RegSetValueExW(program, FLAG, 0, REG_DWORD, (const BYTE *)&v, sizeof(v));
}

/* A flag that others have changed since stays. */
static void put_flag_back(const struct heap_next *n, const struct value *v)
{
	DWORD values = 1, keys = 1;
	HKEY program;

	if (open_program(n, v, false, &program, NULL))
		return;
	if (read_flag(program) == ((v->before < 0 ? 0 : v->before) | HEAPS))
		write_flag(program, v->before);
	RegQueryInfoKeyW(program, NULL, NULL, NULL, &keys, NULL, NULL, &values, NULL, NULL, NULL,
			 NULL);
	RegCloseKey(program);
	if (v->before == NO_KEY && !values && !keys) {
		wchar_t path[KEY_CHARS + NAME_CHARS + 1];

		_snwprintf(path, KEY_CHARS + NAME_CHARS, L"%ls\\%ls", n->programs, v->program);
		path[KEY_CHARS + NAME_CHARS] = L'\0';
		RegDeleteKeyW(HKEY_LOCAL_MACHINE, path);
	}
}

/* The owner's value goes after the flag, in case of a kill in between. */
static void put_back(const struct heap_next *n, HKEY owners, const wchar_t *owner)
{
	struct value v, shared;

	if (read_value(owners, owner, &v)) {
		shared = v;
		if (!is_shared(owners, owner, &shared))
			put_flag_back(n, &v);
	}
	RegDeleteValueW(owners, owner);
}

static void put_back_gone(const struct heap_next *n, HKEY owners)
{
	wchar_t gone[OWNERS_MAX][ETW_OWNER_CHARS], name[ETW_OWNER_CHARS];
	DWORD chars = ETW_OWNER_CHARS, i, ngone = 0;

	for (i = 0; !RegEnumValueW(owners, i, name, &chars, NULL, NULL, NULL, NULL); i++) {
		if (ngone < OWNERS_MAX && etw_owner_is_gone(name))
			wcscpy(gone[ngone++], name);
		chars = ETW_OWNER_CHARS;
	}
	for (i = 0; i < ngone; i++)
		put_back(n, owners, gone[i]);
}

/* ---- what others call ------------------------------------------------------------------------ */

static int read_name(const char *name, struct value *out, struct err *err)
{
	size_t length = process_name_length(name);
	char file[NAME_CHARS];
	int n = snprintf(file, sizeof(file), "%.*s.exe", (int)(length < NAME_CHARS ? length : 0),
			 name);

	if (length && n > 4 && n < (int)sizeof(file) && !name[strcspn(name, "\\/:*?\"<>|\n")] &&
	    MultiByteToWideChar(CP_UTF8, MB_ERR_INVALID_CHARS, file, -1, out->program,
				NAME_CHARS) > 0)
		return 0;
	return err_set(err, ERR_USAGE, "--heap-next '%.100s' is not the name of a program's file, "
		       "without its folder", name);
}

/* First who set the flag, then the flag. */
static LSTATUS set_flag(const struct heap_next *n, HKEY owners, struct value *v)
{
	wchar_t text[NAME_CHARS + 20];
	struct value shared = *v;
	DWORD is_new = 0;
	HKEY program;
	LSTATUS error = open_program(n, v, true, &program, &is_new);
	long flag;

	if (error)
		return error;
	flag = read_flag(program);
	v->before = is_shared(owners, n->owner, &shared)   ? shared.before
		    : is_new == REG_CREATED_NEW_KEY	    ? NO_KEY
		    : flag > INT32_MAX			    ? INT32_MAX : flag;
	_snwprintf(text, NAME_CHARS + 19, VALUE, v->before, v->program);
	text[NAME_CHARS + 19] = L'\0';
	error = RegSetValueExW(owners, n->owner, 0, REG_SZ, (const BYTE *)text,
			       (DWORD)((wcslen(text) + 1) * sizeof(*text)));
	if (!error)
		error = write_flag(program, (flag < 0 ? 0 : flag) | HEAPS);
	RegCloseKey(program);
	return error;
}

int heap_next_begin_at(const char *file, const char *folder, const char *library, const char *name,
		       uint64_t mean_bytes, struct heap_next **out, struct err *err)
{
	struct heap_next *n = calloc(1, sizeof(*n));
	struct value v = {0};
	void *lock;
	HKEY owners;
	LSTATUS error;
	int rc;

	(void)library;
	(void)mean_bytes;
	if (!n)
		return err_memory(err, "for --heap-next");
	rc = read_name(name, &v, err);
	if (rc) {
		free(n);
		return rc;
	}
	set_places(n, file, folder);
	lock = etw_setting_lock(MUTEX);
	error = RegCreateKeyExW(HKEY_LOCAL_MACHINE, n->owners, 0, NULL, 0, KEY_READ | KEY_WRITE,
				NULL, &owners, NULL);
	if (!error) {
		put_back_gone(n, owners);
		error = set_flag(n, owners, &v);
		RegCloseKey(owners);
	}
	etw_setting_unlock(lock);
	*out = n;
	if (!error)
		return 0;
	rc = err_os_code(err, (int)error, "setting TracingFlags for --heap-next, which needs an "
			 "administrator");
	heap_next_end(n);
	*out = NULL;
	return rc;
}

/* owner: NULL = those that have ended */
static void leave(const struct heap_next *n, const wchar_t *owner)
{
	HANDLE lock = etw_setting_lock(MUTEX);
	DWORD values = 1;
	HKEY owners;

	if (!RegOpenKeyExW(HKEY_LOCAL_MACHINE, n->owners, 0, KEY_READ | KEY_WRITE, &owners)) {
		if (owner)
			put_back(n, owners, owner);
		put_back_gone(n, owners);
		RegQueryInfoKeyW(owners, NULL, NULL, NULL, NULL, NULL, NULL, &values, NULL, NULL,
				 NULL, NULL);
		RegCloseKey(owners);
		if (!values)
			RegDeleteKeyW(HKEY_LOCAL_MACHINE, n->owners);
	}
	etw_setting_unlock(lock);
}

void heap_next_end(struct heap_next *n)
{
	if (!n)
		return;
	leave(n, n->owner);
	free(n);
}

void heap_next_tidy(const char *file, const char *folder)
{
	struct heap_next n;

	set_places(&n, file, folder);
	leave(&n, NULL);
}
