#include "source/stopped/target_images_windows.h"

#include "base/array.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "unwind/pe_loaded.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <tlhelp32.h>
#include <psapi.h>

#define PAGE 4096u
#define CODE_CHUNKS 16u                      /* of an image; the oldest is replaced first */
#define CODE_BYTES (PAGE + 256u)             /* an epilogue may cross the end of a page */
#define REGIONS_MAX 16u
#define LIST_TRIES 10u                       /* the list may change during the call */
#define PATH_CHARS 1024u

struct image {
	uint64_t base;
	uint32_t nbytes;
	uint32_t round;                      /* the last refresh that listed it */
	char *path;
	struct object *object;               /* NULL until a frame needs it */
	bool read;                           /* its tables were read, or could not be */
	struct pe_loaded head;
	size_t held_bytes;                   /* of its tables */
	uint8_t *pdata, *info, *code;        /* code: CODE_CHUNKS of CODE_BYTES */
	uint32_t next_chunk;
	struct eh_frame *eh;                 /* x86: by addresses; NULL = none */
	struct pe_range ranges[2 + CODE_CHUNKS];
	struct pe_tables tables;
};

struct region {
	uint64_t from, to;
	enum target_place place;
};

struct target_images {
	HANDLE process;
	uint32_t pid;
	bool is_wow64;
	struct frames *frames;
	struct image **all;                  /* by base, ascending */
	uint32_t n, room, round;
	size_t nbytes;                       /* of all tables */
	struct object *generated;
	struct region regions[REGIONS_MAX];
	uint32_t nregions, next_region;
};

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

/* Copy nbytes of an image, up to the first unreadable page. */
static uint8_t *read_part(struct target_images *t, struct image *image, uint32_t rva,
			  uint32_t *nbytes)
{
	uint8_t *bytes = NULL;

	if (rva < image->nbytes && *nbytes > image->nbytes - rva)
		*nbytes = image->nbytes - rva;
	if (*nbytes && rva < image->nbytes && *nbytes <= IMAGES_MAX_BYTES - t->nbytes)
		bytes = malloc(*nbytes);
	if (!bytes) {
		*nbytes = 0;
		return NULL;
	}
	*nbytes = (uint32_t)target_read(t->process, image->base + rva, bytes, *nbytes);
	t->nbytes += *nbytes;
	image->held_bytes += *nbytes;
	return bytes;
}

/* ---- one image ------------------------------------------------------------------------------- */

static void read_head(struct target_images *t, struct image *image)
{
	uint8_t head[PE_LOADED_HEAD_BYTES];
	size_t got = target_read(t->process, image->base, head, sizeof(head));

	if (!pe_loaded_head(head, got, &image->head))
		memset(&image->head, 0, sizeof(image->head));
}

static void read_eh_frame(struct target_images *t, struct image *image)
{
	struct eh_sections in = {.frames_vaddr = image->base + image->head.eh_rva,
				 .is_32_bit = true};
	uint32_t nbytes = image->head.eh_bytes;

	if (nbytes)
		in.frames = read_part(t, image, image->head.eh_rva, &nbytes);
	in.frames_bytes = nbytes;
	if (in.frames)
		eh_frame_new(&in, &image->eh, NULL);
}

static void read_tables(struct target_images *t, struct image *image)
{
	struct pe_range *pdata = &image->ranges[0], *info = &image->ranges[1];

	image->read = true;
	image->tables.ranges = image->ranges;
	image->tables.pdata_rva = pdata->rva = image->head.pdata_rva;
	pdata->nbytes = image->head.pdata_bytes;
	pdata->bytes = image->pdata = read_part(t, image, pdata->rva, &pdata->nbytes);
	image->tables.nranges = 2;
	read_eh_frame(t, image);
	/* A cut directory is useless: its last entry would cover the missing functions. */
	if (pdata->nbytes < image->head.pdata_bytes)
		pdata->nbytes = 0;
	image->tables.pdata_bytes = pdata->nbytes;
	if (pdata->nbytes && pe_loaded_info_span(pdata->bytes, pdata->nbytes, image->nbytes,
						 &info->rva, &info->nbytes))
		info->bytes = image->info = read_part(t, image, info->rva, &info->nbytes);
}

static void free_image(struct target_images *t, struct image *image, uint64_t now_ns)
{
	t->nbytes -= image->held_bytes;
	if (image->object)
		object_drop(image->object, now_ns);
	eh_frame_free(image->eh);
	free(image->pdata);
	free(image->info);
	free(image->code);
	free(image->path);
	free(image);
}

/* Identify an image like pe_reader.c does: by PDB if it has one, else by timestamp and size. */
static void identify(struct target_images *t, const struct image *image, struct object_key *key)
{
	uint8_t directory[PE_LOADED_DEBUG_MAX_BYTES], rsds[PE_LOADED_RSDS_BYTES];
	size_t n = image->head.debug_bytes < sizeof(directory) ? image->head.debug_bytes
							       : sizeof(directory);
	uint32_t at = 0, age;

	n = target_read(t->process, image->base + image->head.debug_rva, directory, n);
	at = pe_loaded_rsds_at(directory, n, image->nbytes);
	if (at && target_read(t->process, image->base + at, rsds, sizeof(rsds)) == sizeof(rsds) &&
	    pe_loaded_rsds(rsds, key->build_id, &age)) {
		memcpy(key->build_id + 16, &age, sizeof(age));
		key->build_id_bytes = 20;
		return;
	}
	key->dev = image->head.timestamp;
	key->ino = image->head.image_bytes;
}

static struct object *object_of(struct target_images *t, struct image *image)
{
	struct object_key key = {.kind = OBJECT_PE, .path = image->path};

	if (!image->object) {
		identify(t, image, &key);
		image->object = objects_get(t->frames, &key, t->pid);
	}
	return image->object;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* How many images begin at or below an address. */
static uint32_t upper_bound(const struct target_images *t, uint64_t address)
{
	uint32_t low = 0, high = t->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->all[middle]->base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct image *image_at(const struct target_images *t, uint64_t address)
{
	uint32_t at = upper_bound(t, address);

	return at && address - t->all[at - 1]->base < t->all[at - 1]->nbytes ? t->all[at - 1]
									     : NULL;
}

/* Whether another image was loaded at the same base: its headers differ. */
static bool is_changed(struct target_images *t, const struct image *image)
{
	struct image now = {.base = image->base};

	read_head(t, &now);
	return memcmp(&now.head, &image->head, sizeof(now.head)) != 0;
}

/*
 * A 32-bit program names system32, and is given the files of SysWOW64 ("File System Redirector").
 * returns  a path for free(); NULL = no memory
 */
static char *path_of(const wchar_t *given, bool is_32_bit)
{
	wchar_t system[MAX_PATH], system32[MAX_PATH];
	UINT n = GetSystemDirectoryW(system, MAX_PATH);
	struct buf path = {0};

	if (is_32_bit && n && n < MAX_PATH && !_wcsnicmp(given, system, n) && given[n] == '\\' &&
	    GetSystemWow64DirectoryW(system32, MAX_PATH)) {
		wide_put(&path, system32);
		given += n;
	}
	wide_put(&path, given);
	if (!path.failed && path.data)
		return path.data;
	buf_free(&path);
	return NULL;
}

static int note_image(struct target_images *t, uint64_t base, uint32_t nbytes, const wchar_t *path,
		      struct err *err)
{
	uint32_t at = upper_bound(t, base);
	struct image *image;

	/* Another image loaded at the same base follows the old one until that is dropped. */
	if (at && t->all[at - 1]->base == base && !is_changed(t, t->all[at - 1])) {
		t->all[at - 1]->round = t->round;
		return 0;
	}
	if (t->n >= IMAGES_MAX)
		return 0;
	image = ARRAY_ROOM(t->all, t->room, t->n + 1) ? NULL : calloc(1, sizeof(*image));
	if (!image)
		return err_memory(err, "for the list of images");
	image->base = base;
	image->nbytes = nbytes;
	image->round = t->round;
	read_head(t, image);
	image->path = path_of(path, image->head.is_32_bit);
	if (!image->path) {
		free(image);
		return err_memory(err, "for the list of images");
	}
	memmove(&t->all[at + 1], &t->all[at], (t->n - at) * sizeof(*t->all));
	t->all[at] = image;
	t->n++;
	return 0;
}

/* Drop the images that the last refresh did not list. */
static void drop_unlisted(struct target_images *t)
{
	uint32_t i, kept = 0;

	for (i = 0; i < t->n; i++) {
		if (t->all[i]->round != t->round)
			free_image(t, t->all[i], os_now_ns());
		else
			t->all[kept++] = t->all[i];
	}
	t->n = kept;
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
			rc = note_image(t, (uint64_t)(uintptr_t)info.lpBaseOfDll, info.SizeOfImage,
					path, err);
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
	t->round++;
	for (more = Module32FirstW(list, &entry); more && !rc; more = Module32NextW(list, &entry))
		rc = note_image(t, (uint64_t)(uintptr_t)entry.modBaseAddr, entry.modBaseSize,
				entry.szExePath, err);
	CloseHandle(list);
	if (!rc && t->is_wow64)
		rc = list_images_32(t, err);
	if (!rc)
		drop_unlisted(t);
	target_images_forget(t);
	return rc;
}

int target_images_open(void *process, uint32_t pid, bool is_wow64, struct frames *frames,
		       struct target_images **out, struct err *err)
{
	struct target_images *t = calloc(1, sizeof(*t));

	if (!t)
		return err_memory(err, "for the images of process %u", (unsigned)pid);
	t->process = process;
	t->pid = pid;
	t->is_wow64 = is_wow64;
	t->frames = frames;
	*out = t;
	return 0;
}

void target_images_close(struct target_images *t, uint64_t now_ns)
{
	uint32_t i;

	if (!t)
		return;
	for (i = 0; i < t->n; i++)
		free_image(t, t->all[i], now_ns);
	if (t->generated)
		object_drop(t->generated, now_ns);
	free(t->all);
	free(t);
}

/* ---- addresses ------------------------------------------------------------------------------- */

const struct pe_tables *target_images_find(void *ctx, uint64_t address, uint32_t *rva)
{
	struct target_images *t = ctx;
	struct image *image = image_at(t, address);

	if (!image)
		return NULL;
	if (!image->read)
		read_tables(t, image);
	*rva = (uint32_t)(address - image->base);
	return &image->tables;
}

static bool is_executable(const MEMORY_BASIC_INFORMATION *m)
{
	return m->State == MEM_COMMIT && !(m->Protect & (PAGE_GUARD | PAGE_NOACCESS)) &&
	       m->Protect & (PAGE_EXECUTE | PAGE_EXECUTE_READ | PAGE_EXECUTE_READWRITE |
			     PAGE_EXECUTE_WRITECOPY);
}

static struct region ask_region(const struct target_images *t, uint64_t address)
{
	struct region region = {address, address + 1, TARGET_NOWHERE};
	MEMORY_BASIC_INFORMATION m;

	if (VirtualQueryEx(t->process, (const void *)address, &m, sizeof(m)) != sizeof(m))
		return region;
	region.from = (uint64_t)(uintptr_t)m.BaseAddress;
	region.to = region.from + m.RegionSize;
	if (is_executable(&m))
		region.place = m.Type == MEM_IMAGE ? TARGET_UNLISTED : TARGET_GENERATED;
	return region;
}

/* What an address outside of listed images is, or would be if its image was not listed. */
static enum target_place find_region(struct target_images *t, uint64_t address)
{
	struct region *region;
	uint32_t i;

	for (i = 0; i < t->nregions; i++)
		if (address >= t->regions[i].from && address < t->regions[i].to)
			return t->regions[i].place;
	region = &t->regions[t->next_region];
	*region = ask_region(t, address);
	t->next_region = (t->next_region + 1) % REGIONS_MAX;
	if (t->nregions < REGIONS_MAX)
		t->nregions++;
	return region->place;
}

enum target_place target_images_place(struct target_images *t, uint64_t address)
{
	return image_at(t, address) ? TARGET_IMAGE : find_region(t, address);
}

void target_images_code(struct target_images *t, uint64_t address)
{
	struct image *image = image_at(t, address);
	uint32_t rva, i, nbytes = CODE_BYTES;
	uint8_t *code;

	if (!image)
		return;
	if (!image->read)
		read_tables(t, image);
	rva = (uint32_t)(address - image->base) & ~(PAGE - 1);
	for (i = 2; i < image->tables.nranges; i++)
		if (image->ranges[i].rva == rva)
			return;
	if (find_region(t, image->base + rva) == TARGET_NOWHERE)
		return;
	if (!image->code)
		image->code = malloc((size_t)CODE_CHUNKS * CODE_BYTES);
	if (!image->code)
		return;
	code = image->code + (size_t)image->next_chunk * CODE_BYTES;
	if (nbytes > image->nbytes - rva)
		nbytes = image->nbytes - rva;
	image->ranges[2 + image->next_chunk] = (struct pe_range){
		.rva = rva, .bytes = code,
		.nbytes = (uint32_t)target_read(t->process, image->base + rva, code, nbytes)};
	if (image->tables.nranges < 2 + CODE_CHUNKS)
		image->tables.nranges++;
	image->next_chunk = (image->next_chunk + 1) % CODE_CHUNKS;
}

const struct eh_frame *target_images_eh_frame(void *ctx, uint64_t address)
{
	struct target_images *t = ctx;
	struct image *image = image_at(t, address);

	if (image && !image->read)
		read_tables(t, image);
	return image ? image->eh : NULL;
}

bool target_images_read_code(void *ctx, uint64_t address, uint8_t *to, size_t n)
{
	struct target_images *t = ctx;
	struct image *image = image_at(t, address);
	uint32_t rva, i;

	if (!image)
		return target_images_place(t, address) == TARGET_GENERATED &&
		       target_read(t->process, address, to, n) == n;
	rva = (uint32_t)(address - image->base);
	target_images_code(t, address);
	for (i = 2; i < image->tables.nranges; i++) {
		const struct pe_range *code = &image->ranges[i];

		if (rva - code->rva < code->nbytes && n <= code->nbytes - (rva - code->rva)) {
			memcpy(to, code->bytes + (rva - code->rva), n);
			return true;
		}
	}
	return false;
}

bool target_images_is_named(const struct target_images *t, uint64_t address, const char *name)
{
	const struct image *image = image_at(t, address);
	const char *base = image ? strrchr(image->path, '\\') : NULL;

	return base && !_stricmp(base + 1, name);
}

void target_images_forget(struct target_images *t)
{
	t->nregions = t->next_region = 0;
}

void target_images_frame(struct target_images *t, const struct pe_frame *frame,
			 enum target_place place, struct frame_ref *out)
{
	struct object_key key = {.kind = OBJECT_JIT, .pid = t->pid, .path = "[jit]"};
	uint64_t address = frame->address - frame->returns;
	struct image *image = place == TARGET_IMAGE ? image_at(t, address) : NULL;

	out->object = NULL;
	out->offset = address;
	out->flags = frame->returns ? FRAME_RETURN_ADDRESS : 0u;
	if (image) {
		out->object = object_of(t, image);
		out->offset = address - image->base;
	} else if (place == TARGET_GENERATED) {
		if (!t->generated)
			t->generated = objects_get(t->frames, &key, t->pid);
		out->object = t->generated;
		out->flags |= FRAME_JIT;
	}
	if (!out->object) {
		out->object = objects_unknown(t->frames);
		out->offset = address;
	}
}
