/*
 * The core: a PT_NOTE (PRSTATUS of each thread, PRPSINFO, AUXV, FILE; see dump/core.c for layouts),
 * and a PT_LOAD for each piece of a mapping, with or without bytes. Bytes are there of: stacks, as
 * they were copied; the first page of each mapped file, for build ids; the program's headers and
 * dynamic section, and the loader's list of libraries (r_debug and link_map of link.h), by which
 * gdb finds them.
 *
 * Source: core(5), elf(5), fs/binfmt_elf.c (elf_core_dump()), sys/procfs.h, link.h of glibc and of
 * musl.
 */
#include "source/stopped/process_dump.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/os.h"
#include "source/host/proc_pid_linux.h"
#include "source/stopped/target_threads_linux.h"

#include <elf.h>
#include <inttypes.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/procfs.h>

#define PAGE 4096u
#define MAPS_BYTES ((size_t)32 << 20)
#define AUXV_BYTES 4096u
#define LIBRARIES_MAX 4096u
#define PIECES_MAX 65536u
#define FUTEX_CALL 202u

const char process_dump_kind[] = PROCESS_DUMP_KIND_LINUX;
const char process_dump_suffix[] = ".core";

struct map {
	uint64_t start, end, offset;
	uint32_t flags;
	const char *path;                    /* NULL = no file */
	bool hidden;                         /* madvise(2): MADV_DONTDUMP */
};

struct piece {
	uint64_t start, n;
	uint8_t *bytes;                      /* NULL = none are written */
	uint32_t flags;
};

struct process_dump {
	uint32_t pid;
	struct buf text, auxv, notes;
	struct map *maps;
	uint32_t nmaps, maps_room;
	struct piece *pieces;
	uint32_t npieces, pieces_room;
	uint64_t nbytes;
	bool failed;
};

/* ---- opting out ------------------------------------------------------------------------------ */

static int refuse(uint32_t pid, const char *why, struct err *err)
{
	return err_set(err, ERR_ACCESS, "process %u opted out of dumps: %s", (unsigned)pid, why);
}

/* A process that is not dumpable has files of root in /proc, whoever runs it (proc(5)). */
static bool is_dumpable(uint32_t pid)
{
	struct os_file_info info;
	struct buf text = {0};
	const char *at;
	unsigned uid = 0;
	char path[40];

	if (proc_pid_load(pid, "status", 8192, &text) &&
	    (at = strstr(buf_text(&text), "\nUid:")) != NULL)
		sscanf(at, " Uid: %*u %u", &uid);
	buf_free(&text);
	snprintf(path, sizeof(path), "/proc/%u/environ", (unsigned)pid);
	return !uid || (!os_path_info(path, &info, NULL) && info.uid == uid);
}

static int check_consent(uint32_t pid, struct err *err)
{
	struct buf text = {0};
	unsigned long filter = 1;
	const char *at;
	char hard[32] = "";

	if (proc_pid_load(pid, "coredump_filter", 64, &text))
		filter = strtoul(buf_text(&text), NULL, 16);
	buf_reset(&text);
	if (proc_pid_load(pid, "limits", 8192, &text) &&
	    (at = strstr(buf_text(&text), "Max core file size")) != NULL)
		sscanf(at, "Max core file size %*s %31s", hard);
	buf_free(&text);
	if (!(filter & 1))
		return refuse(pid, "its coredump_filter leaves out private memory", err);
	if (strcmp(hard, "0") == 0)
		return refuse(pid, "its hard limit of core files is 0", err);
	return is_dumpable(pid) ? 0 : refuse(pid, "it is not dumpable", err);
}

/* ---- what is mapped -------------------------------------------------------------------------- */

static void add_map(struct process_dump *d, char *line)
{
	struct map m = {0};
	char mode[5] = "";
	int path = 0;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %n", &m.start, &m.end,
		   mode, &m.offset, &path) < 4 || m.start >= m.end || m.start >> 63)
		return;
	if (path && line[path] == '/')
		m.path = line + path;
	m.flags = (mode[0] == 'r' ? PF_R : 0u) | (mode[1] == 'w' ? PF_W : 0u) |
		  (mode[2] == 'x' ? PF_X : 0u);
	if (ARRAY_ROOM(d->maps, d->maps_room, d->nmaps + 1))
		d->failed = true;
	else
		d->maps[d->nmaps++] = m;
}

/* The lines of maps, each with others behind it: "VmFlags: rd wr dd" (proc_pid_smaps(5)). */
static void read_maps(struct process_dump *d)
{
	char *line, *rest;

	if (!proc_pid_load(d->pid, "smaps", MAPS_BYTES, &d->text))
		return;
	buf_putc(&d->text, '\0');
	for (line = d->text.failed ? NULL : strtok_r(d->text.data, "\n", &rest); line;
	     line = strtok_r(NULL, "\n", &rest))
		if (strncmp(line, "VmFlags:", 8) != 0)
			add_map(d, line);
		else if (d->nmaps && strstr(line, " dd"))
			d->maps[d->nmaps - 1].hidden = true;
}

/* NULL = nothing is mapped there */
static const struct map *map_at(const struct process_dump *d, uint64_t address)
{
	uint32_t i;

	for (i = 0; i < d->nmaps; i++)
		if (address >= d->maps[i].start && address < d->maps[i].end)
			return &d->maps[i];
	return NULL;
}

/* ---- pieces ---------------------------------------------------------------------------------- */

/* Takes the bytes. */
static void add_piece(struct process_dump *d, uint64_t start, uint64_t n, uint8_t *bytes,
		      uint32_t flags)
{
	if (bytes && d->nbytes > PROCESS_DUMP_MAX_BYTES - n) {
		free(bytes);
		d->failed = true;            /* said when it is written */
		return;
	}
	if (d->npieces == PIECES_MAX || ARRAY_ROOM(d->pieces, d->pieces_room, d->npieces + 1)) {
		free(bytes);
		d->failed = true;
		return;
	}
	d->nbytes += bytes ? n : 0;
	d->pieces[d->npieces++] = (struct piece){start, n, bytes, flags};
}

/* The pages that hold these bytes, as they are now. */
static void add_pages(struct process_dump *d, uint64_t address, uint64_t n)
{
	uint64_t start = address & ~(uint64_t)(PAGE - 1);
	uint64_t end = (address + n + PAGE - 1) & ~(uint64_t)(PAGE - 1);
	uint8_t *bytes;
	uint32_t i;

	for (; start < end; start += PAGE) {
		const struct map *map = map_at(d, start);

		if (map && map->hidden)
			continue;
		for (i = 0; i < d->npieces; i++)
			if (d->pieces[i].start == start && d->pieces[i].n == PAGE)
				break;
		bytes = i < d->npieces ? NULL : malloc(PAGE);
		if (bytes && proc_pid_memory(d->pid, start, bytes, PAGE) == PAGE)
			add_piece(d, start, PAGE, bytes, 0);
		else
			free(bytes);
	}
}

static bool read_words(const struct process_dump *d, uint64_t address, uint64_t *to, unsigned n)
{
	return proc_pid_memory(d->pid, address, to, n * 8) == n * 8;
}

/* The libraries that the loader lists, each with its path; and their dynamic sections. */
static void add_libraries(struct process_dump *d, uint64_t r_debug)
{
	uint64_t map[5], debug[3], at;
	uint32_t n = 0;

	if (!read_words(d, r_debug, debug, 3))
		return;
	add_pages(d, r_debug, sizeof(struct r_debug));
	for (at = debug[1]; at && n < LIBRARIES_MAX && read_words(d, at, map, 5); n++) {
		add_pages(d, at, sizeof(map));
		add_pages(d, map[1], 256);           /* l_name */
		add_pages(d, map[2], 512);           /* l_ld */
		at = map[3];
	}
}

static uint64_t auxv_value(const struct process_dump *d, uint64_t tag)
{
	size_t i;

	for (i = 0; i + 16 <= d->auxv.len; i += 16)
		if (le64(d->auxv.data + i) == tag)
			return le64(d->auxv.data + i + 8);
	return 0;
}

static void add_program(struct process_dump *d)
{
	uint64_t at = auxv_value(d, AT_PHDR), n = auxv_value(d, AT_PHNUM), base = 0, pair[2], i;
	Elf64_Phdr p;
	Elf64_Phdr dynamic = {0};

	for (i = 0; i < n && i < 128; i++) {
		if (proc_pid_memory(d->pid, at + i * sizeof(p), &p, sizeof(p)) != sizeof(p))
			return;
		if (p.p_type == PT_PHDR)
			base = at - p.p_vaddr;
		else if (p.p_type == PT_DYNAMIC)
			dynamic = p;
	}
	add_pages(d, at, n * sizeof(p));
	if (!dynamic.p_memsz || dynamic.p_memsz > 65536)
		return;
	add_pages(d, base + dynamic.p_vaddr, dynamic.p_memsz);
	for (i = 0; i + 16 <= dynamic.p_memsz; i += 16) {
		if (!read_words(d, base + dynamic.p_vaddr + i, pair, 2) || pair[0] == DT_NULL)
			return;
		if (pair[0] == DT_DEBUG && pair[1])
			add_libraries(d, pair[1]);
	}
}

/* ---- notes ----------------------------------------------------------------------------------- */

static void put_note(struct process_dump *d, uint32_t type, const void *bytes, size_t n)
{
	static const char padding[4];

	buf_put_le(&d->notes, 5, 4);
	buf_put_le(&d->notes, n, 4);
	buf_put_le(&d->notes, type, 4);
	buf_put(&d->notes, "CORE\0\0\0", 8);
	buf_put(&d->notes, bytes, n);
	buf_put(&d->notes, padding, -n & 3);
}

static void put_files(struct process_dump *d)
{
	struct buf note = {0};
	uint32_t i, n = 0;

	for (i = 0; i < d->nmaps; i++)
		n += d->maps[i].path != NULL;
	buf_put_le(&note, n, 8);
	buf_put_le(&note, PAGE, 8);
	for (i = 0; i < d->nmaps; i++) {
		if (!d->maps[i].path)
			continue;
		buf_put_le(&note, d->maps[i].start, 8);
		buf_put_le(&note, d->maps[i].end, 8);
		buf_put_le(&note, d->maps[i].offset / PAGE, 8);
	}
	for (i = 0; i < d->nmaps; i++)
		if (d->maps[i].path)
			buf_put(&note, d->maps[i].path, strlen(d->maps[i].path) + 1);
	put_note(d, NT_FILE, note.data, note.len);
	d->failed |= note.failed;
	buf_free(&note);
}

static void put_process(struct process_dump *d)
{
	struct elf_prpsinfo info = {.pr_pid = (int)d->pid};
	struct buf text = {0};
	size_t i;

	if (proc_pid_load(d->pid, "comm", 64, &text))
		snprintf(info.pr_fname, sizeof(info.pr_fname), "%.*s",
			 (int)strcspn(buf_text(&text), "\n"), buf_text(&text));
	buf_reset(&text);
	if (proc_pid_load(d->pid, "cmdline", 4096, &text))
		for (i = 0; i + 1 < text.len && i + 1 < sizeof(info.pr_psargs); i++)
			info.pr_psargs[i] = text.data[i] ? text.data[i] : ' ';
	buf_free(&text);
	put_note(d, NT_PRPSINFO, &info, sizeof(info));
	put_note(d, NT_AUXV, d->auxv.data, d->auxv.len);
	put_files(d);
}

void process_dump_thread(struct process_dump *d, const struct thread_stack *stack)
{
	const struct stack_copy *copy = stack->copy;
	uint64_t sp = copy->user[USER_SP], n = copy->nbytes;
	const struct map *map = map_at(d, sp);
	struct elf_prstatus status = {.pr_pid = (int)stack->tid};
	uint8_t *bytes;

	if (copy->abi != 2)
		return;
	memcpy(status.pr_reg, copy->user, sizeof(status.pr_reg));
	put_note(d, NT_PRSTATUS, &status, sizeof(status));
	if (map && map->hidden)
		map = NULL;
	if (map && n > map->end - sp)                /* what was copied beyond the stack */
		n = map->end - sp;
	bytes = map && n ? malloc(n) : NULL;
	if (bytes) {
		memcpy(bytes, copy->bytes, n);
		add_piece(d, sp, n, bytes, 0);
	}
	if (copy->user[USER_CALL] == FUTEX_CALL)             /* its word, and a mutex's owner */
		add_pages(d, copy->user[USER_ARGUMENT], 40);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int by_start(const void *a, const void *b)
{
	return compare_u64(((const struct piece *)a)->start, ((const struct piece *)b)->start);
}

/* Fill what lies between pieces and in no piece, and cut those that overlap. */
static void settle(struct process_dump *d)
{
	struct piece *all = d->pieces;
	uint32_t n = d->npieces, i, m;
	uint64_t at;

	qsort(all, n, sizeof(*all), by_start);
	d->pieces = NULL;
	d->npieces = d->pieces_room = 0;
	d->nbytes = 0;
	for (m = 0, i = 0; m < d->nmaps; m++) {
		const struct map *map = &d->maps[m];

		for (at = map->start; at < map->end;) {
			uint64_t end;

			while (i < n && all[i].start + all[i].n <= at)
				free(all[i++].bytes);
			if (i < n && all[i].start < at) {
				uint64_t cut = at - all[i].start;

				memmove(all[i].bytes, all[i].bytes + cut, all[i].n - cut);
				all[i].start += cut;
				all[i].n -= cut;
			}
			if (i < n && all[i].start == at && all[i].n <= map->end - at) {
				add_piece(d, at, all[i].n, all[i].bytes, map->flags);
				at += all[i++].n;
				continue;
			}
			end = i < n && all[i].start > at && all[i].start < map->end
				      ? all[i].start : map->end;
			add_piece(d, at, end - at, NULL, map->flags);
			at = end;
		}
	}
	for (; i < n; i++)
		free(all[i].bytes);
	free(all);
}

static int put_headers(struct process_dump *d, struct os_file *file, struct err *err)
{
	const Elf64_Ehdr head = {
		.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
		.e_type = ET_CORE, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_phoff = sizeof(head), .e_ehsize = sizeof(head),
		.e_phentsize = sizeof(Elf64_Phdr), .e_phnum = (uint16_t)(d->npieces + 1)};
	uint64_t at = sizeof(head) + (uint64_t)(d->npieces + 1) * sizeof(Elf64_Phdr);
	struct buf out = {0};
	Elf64_Phdr p = {.p_type = PT_NOTE, .p_offset = at, .p_filesz = d->notes.len, .p_align = 4};
	uint32_t i;
	int rc;

	buf_put(&out, &head, sizeof(head));
	buf_put(&out, &p, sizeof(p));
	at += d->notes.len;
	for (i = 0; i < d->npieces; i++) {
		const struct piece *piece = &d->pieces[i];

		p = (Elf64_Phdr){.p_type = PT_LOAD, .p_flags = piece->flags, .p_offset = at,
				 .p_vaddr = piece->start, .p_memsz = piece->n, .p_align = 1,
				 .p_filesz = piece->bytes ? piece->n : 0};
		at += p.p_filesz;
		buf_put(&out, &p, sizeof(p));
	}
	buf_put(&out, d->notes.data, d->notes.len);
	rc = buf_check(&out, "a core", err);
	if (!rc)
		rc = os_write(file, out.data, out.len, err);
	buf_free(&out);
	d->nbytes = at;
	return rc;
}

int process_dump_write(struct process_dump *d, const char *path, uint64_t *nbytes,
		       struct err *err)
{
	struct os_file *file = NULL;
	const struct map *map;
	uint32_t i;
	int rc = 0;

	for (i = 0; i < d->nmaps; i++)
		if (d->maps[i].path && !d->maps[i].offset)
			add_pages(d, d->maps[i].start, PAGE);
	map = map_at(d, auxv_value(d, AT_SYSINFO_EHDR));
	if (map)                             /* the kernel's own library has no file */
		add_pages(d, map->start, map->end - map->start);
	add_program(d);
	put_process(d);
	settle(d);
	if (d->failed || d->notes.failed || d->npieces >= PN_XNUM - 1)
		return err_set(err, ERR_LIMIT, "the dump of process %u would be larger than %u MB, "
			       "or memory is short", (unsigned)d->pid,
			       (unsigned)(PROCESS_DUMP_MAX_BYTES >> 20));
	rc = os_open(path, OS_CREATE, &file, err);
	if (!rc)
		rc = put_headers(d, file, err);
	for (i = 0; !rc && i < d->npieces; i++)
		if (d->pieces[i].bytes)
			rc = os_write(file, d->pieces[i].bytes, d->pieces[i].n, err);
	os_close(file);
	if (rc)
		os_remove(path, NULL);
	*nbytes = d->nbytes;
	return rc;
}

/* ---- life ------------------------------------------------------------------------------------ */

int process_dump_open(uint32_t pid, struct process_dump **out, struct err *err)
{
	struct process_dump *d = calloc(1, sizeof(*d));
	int rc = check_consent(pid, err);

	if (!rc && !d)
		rc = err_memory(err, "for a dump");
	if (!rc) {
		d->pid = pid;
		read_maps(d);
		proc_pid_load(pid, "auxv", AUXV_BYTES, &d->auxv);
		if (!d->nmaps || d->auxv.len < 16 || auxv_value(d, AT_PHENT) != sizeof(Elf64_Phdr))
			rc = err_set(err, ERR_UNSUPPORTED, "process %u is no 64-bit program, or "
				     "its mappings cannot be read: no dump is written",
				     (unsigned)pid);
	}
	if (rc)
		process_dump_close(d);
	else
		*out = d;
	return rc;
}

void process_dump_close(struct process_dump *d)
{
	uint32_t i;

	if (!d)
		return;
	for (i = 0; i < d->npieces; i++)
		free(d->pieces[i].bytes);
	free(d->pieces);
	free(d->maps);
	buf_free(&d->text);
	buf_free(&d->auxv);
	buf_free(&d->notes);
	free(d);
}
