#include "source/stopped/target_images_windows.h"

#include "base/os.h"
#include "base/os_windows.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <tlhelp32.h>
#include <psapi.h>

#define PAGE 4096u
#define LIST_TRIES 10u                       /* the list may change during the call */
#define PATH_CHARS 1024u

/* ---- the process's memory -------------------------------------------------------------------- */

size_t target_read(void *process, uint64_t address, void *to, size_t n)
{
	size_t done = 0, part;
	SIZE_T got;

	if (n && ReadProcessMemory(process, (const void *)address, to, n, &got) && got == n)
		return n;
	for (; done < n; done += part) {
		part = PAGE - (size_t)((address + done) & (PAGE - 1));
		if (part > n - done)
			part = n - done;
		if (!ReadProcessMemory(process, (const void *)(address + done), (char *)to + done,
				       part, &got) || got != part)
			break;
	}
	return done;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* A 32-bit program names system32, and gets files of SysWOW64 ("File System Redirector"). */
static int note_image(struct target_images *t, const void *base, uint32_t nbytes,
		      const wchar_t *given, bool is_32_bit, struct err *err)
{
	wchar_t system[MAX_PATH], system32[MAX_PATH];
	UINT n = GetSystemDirectoryW(system, MAX_PATH);
	struct buf path = {0};
	int rc;

	if (is_32_bit && n && n < MAX_PATH && !_wcsnicmp(given, system, n) && given[n] == '\\' &&
	    GetSystemWow64DirectoryW(system32, MAX_PATH)) {
		wide_put(&path, system32);
		given += n;
	}
	wide_put(&path, given);
	rc = buf_check(&path, "the list of images", err);
	if (!rc)
		rc = pe_images_note(t->images, (uint64_t)(uintptr_t)base, nbytes, buf_text(&path),
				    NULL, err);
	buf_free(&path);
	return rc;
}

static HANDLE list_images(uint32_t pid)
{
	HANDLE list = INVALID_HANDLE_VALUE;
	unsigned i;

	for (i = 0; i < LIST_TRIES && list == INVALID_HANDLE_VALUE; i++) {
		if (i)
			os_sleep_ns(NS_PER_MS);
		list = CreateToolhelp32Snapshot(TH32CS_SNAPMODULE, pid);
		if (list == INVALID_HANDLE_VALUE && GetLastError() != ERROR_BAD_LENGTH)
			break;
	}
	return list;
}

/* A 32-bit program has two lists: above is that of its 64-bit part. */
static int list_images_32(struct target_images *t, struct err *err)
{
	const DWORD room = IMAGES_MAX * sizeof(HMODULE);
	HMODULE *all = malloc(room);
	wchar_t path[PATH_CHARS];
	MODULEINFO info;
	DWORD got = 0, i;
	int rc = 0;

	if (!all)
		return err_memory(err, "for the list of images");
	if (!K32EnumProcessModulesEx(t->process, all, room, &got, LIST_MODULES_32BIT))
		rc = err_os(err, "cannot list the 32-bit images of process %u", (unsigned)t->pid);
	for (i = 0; !rc && i < (got < room ? got : room) / sizeof(*all); i++)
		if (K32GetModuleInformation(t->process, all[i], &info, sizeof(info)) &&
		    K32GetModuleFileNameExW(t->process, all[i], path, PATH_CHARS))
			rc = note_image(t, info.lpBaseOfDll, info.SizeOfImage, path, true, err);
	free(all);
	return rc;
}

int target_images_refresh(struct target_images *t, struct err *err)
{
	HANDLE list = list_images(t->pid);
	MODULEENTRY32W entry = {.dwSize = sizeof(entry)};
	BOOL more;
	int rc = 0;

	if (list == INVALID_HANDLE_VALUE)
		return err_os(err, "cannot list the images of process %u", (unsigned)t->pid);
	pe_images_begin(t->images);
	for (more = Module32FirstW(list, &entry); more && !rc; more = Module32NextW(list, &entry))
		rc = note_image(t, entry.modBaseAddr, entry.modBaseSize, entry.szExePath, false,
				err);
	CloseHandle(list);
	if (!rc && t->is_wow64)
		rc = list_images_32(t, err);
	if (!rc)
		pe_images_end(t->images);
	pe_images_forget(t->images);
	return rc;
}

static bool is_executable(const MEMORY_BASIC_INFORMATION *m)
{
	return m->State == MEM_COMMIT && !(m->Protect & (PAGE_GUARD | PAGE_NOACCESS)) &&
	       m->Protect & (PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE |
			     PAGE_EXECUTE_WRITECOPY);
}

static struct pe_region ask_region(void *ctx, uint64_t address)
{
	struct pe_region region = {address, address + 1, PE_NOWHERE};
	const struct target_images *t = ctx;
	MEMORY_BASIC_INFORMATION m;

	if (VirtualQueryEx(t->process, (const void *)address, &m, sizeof(m)) != sizeof(m))
		return region;
	region.from = (uint64_t)(uintptr_t)m.BaseAddress;
	region.to = region.from + m.RegionSize;
	if (is_executable(&m))
		region.place = m.Type == MEM_IMAGE ? PE_UNLISTED : PE_GENERATED;
	return region;
}

/* ---- life ------------------------------------------------------------------------------------ */

static size_t read_it(void *ctx, uint64_t address, void *to, size_t n)
{
	return target_read(((const struct target_images *)ctx)->process, address, to, n);
}

int target_images_open(void *process, uint32_t pid, bool is_wow64, struct frames *frames,
		       struct target_images *out, struct err *err)
{
	const struct pe_process it = {.read = read_it, .region = ask_region, .ctx = out};

	*out = (struct target_images){.process = process, .pid = pid, .is_wow64 = is_wow64};
	return pe_images_open(&it, pid, frames, &out->images, err);
}

void target_images_close(struct target_images *t, uint64_t now_ns)
{
	pe_images_close(t->images, now_ns);
	t->images = NULL;
}
