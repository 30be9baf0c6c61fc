/*
 * A core is an ELF file of type 4 with a PT_LOAD for each mapping and a PT_NOTE (elf_format.h draws
 * these). Notes named "CORE", a "word" being 8 bytes in ELF64 and 4 in ELF32:
 *
 *   1 PRSTATUS, one for each thread,        ELF32  ELF64     3 PRPSINFO         ELF32  ELF64
 *     that of the one that ended it first                      pid        u32      12     24
 *     signal    u16                            12     12       name      [16]      28     40
 *     tid       u32                            24     32
 *     registers words, in reg_*[]              72    112     0x53494749 SIGINFO
 *     (bytes)                                 144    336       signal     u32       0      0
 *   6 AUXV: pairs of words                                     code       i32       8      8
 *   0x46494c45 FILE: words: count, page size, then             address    word     12     16
 *     (start, end, offset in pages) each; then the paths, NUL after each
 */
#include "source/dump/core.h"

#include "base/array.h"
#include "base/bytes.h"
#include "symbol/elf_format.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum {
	TYPE_AT = 16,
	TYPE_CORE = 4,
	SECTION_INFO_AT32 = 28, SECTION_INFO_AT64 = 44,
	NOTES_MAX = 1 << 20,
	NT_PRSTATUS = 1, NT_PRPSINFO = 3, NT_AUXV = 6,
	NT_FILE = 0x46494c45, NT_SIGINFO = 0x53494749,
	AT_ENTRY_ = 9, AT_SYSINFO_EHDR_ = 33,
	PF_W_ = 2,
	AUXV_MAX_BYTES = 4096,
};

/* Where each of DUMP_REGS_MASK stands among the registers of PRSTATUS. */
static const uint8_t reg_64[DUMP_REGISTERS] = {10, 5, 11, 12, 13, 14, 4, 19, 16,
					       9, 8, 7, 6, 3, 2, 1, 0};
static const uint8_t reg_32[9] = {6, 0, 1, 2, 3, 4, 5, 15, 12};

struct prstatus {
	unsigned word, tid, regs, bytes, call, result;
};
static const struct prstatus status_64 = {8, 32, 112, 336, 15, 10},
			     status_32 = {4, 24, 72, 144, 11, 6};

struct reading {
	struct dump *d;
	const struct elf_layout *l;
	const struct prstatus *status;
	uint32_t nnotes;
	bool has_siginfo;
};

bool core_is(const struct bytes *in)
{
	uint8_t head[18];

	return bytes_read(in, 0, head, sizeof(head), "its header", NULL) == 0 &&
	       memcmp(head, "\177ELF", 4) == 0 && head[5] == 1 && le16(head + TYPE_AT) == TYPE_CORE;
}

/* ---- notes ----------------------------------------------------------------------------------- */

/*
 * A thread that was in a system call has its number in orig_rax, and what the call returns in rax:
 * -ENOSYS while it runs, -EINTR or an -ERESTART once a signal ended it (include/linux/errno.h).
 */
static int64_t call_of(const struct prstatus *p, const uint8_t *regs)
{
	int64_t call = (int64_t)le_sized(regs + p->call * p->word, p->word);
	int64_t result = (int64_t)le_sized(regs + p->result * p->word, p->word);

	if (p->word == 4) {
		call = (int32_t)call;
		result = (int32_t)result;
	}
	return call >= 0 && call < 4096 &&
	       (result == -38 || result == -4 || (result <= -512 && result >= -516)) ? call : -1;
}

static int add_thread(struct reading *r, const uint8_t *note, struct err *err)
{
	const struct prstatus *p = r->status;
	const uint8_t *regs = note + p->regs;
	struct dump *d = r->d;
	struct dump_thread *t;
	unsigned i;

	if (d->nthreads == DUMP_THREADS_MAX)
		return err_set(err, ERR_LIMIT, "it has more than %u threads", DUMP_THREADS_MAX);
	if (ARRAY_ROOM(d->threads, d->threads_room, d->nthreads + 1))
		return err_memory(err, "for the threads of a core");
	t = &d->threads[d->nthreads++];
	*t = (struct dump_thread){.tid = le32(note + p->tid), .abi = p->word == 8 ? 2 : 1,
				  .call = call_of(p, regs)};
	for (i = 0; i < (p->word == 8 ? DUMP_REGISTERS : sizeof(reg_32)); i++)
		t->regs[i] = le_sized(regs + (p->word == 8 ? reg_64[i] : reg_32[i]) * p->word,
				      p->word);
	if (d->nthreads == 1)
		d->signal = le16(note + 12);
	return 0;
}

static int add_files(struct reading *r, uint8_t *note, size_t n, struct err *err)
{
	struct cursor c = cursor_over(note, n), names;
	struct dump *d = r->d;
	unsigned word = r->l->word;
	uint64_t count, page, i;

	if (d->names)
		return 0;
	if (!cursor_number(&c, word, &count) || !cursor_number(&c, word, &page) ||
	    count > DUMP_MODULES_MAX || cursor_left(&c) / (3 * word) < count)
		return err_set(err, ERR_FORMAT, "its list of mapped files is damaged");
	names = c;
	cursor_skip(&names, count * 3 * word);
	for (i = 0; i < count; i++) {
		struct dump_module m = {0};

		cursor_number(&c, word, &m.start);
		cursor_number(&c, word, &m.end);
		cursor_number(&c, word, &m.offset);
		m.path = cursor_text(&names);
		if (!m.path || m.start >= m.end || (page && m.offset > UINT64_MAX / page))
			return err_set(err, ERR_FORMAT, "its list of mapped files is damaged");
		m.offset *= page;
		if (ARRAY_ROOM(d->modules, d->modules_room, d->nmodules + 1))
			return err_memory(err, "for the mapped files of a core");
		d->modules[d->nmodules++] = m;
	}
	d->names = (char *)note;
	return 0;
}

static void add_auxv(struct reading *r, const uint8_t *note, size_t n)
{
	struct cursor c = cursor_over(note, n);
	uint64_t tag, value;

	while (cursor_number(&c, r->l->word, &tag) && cursor_number(&c, r->l->word, &value)) {
		if (tag == AT_ENTRY_)
			r->d->entry = value;
		else if (tag == AT_SYSINFO_EHDR_)
			r->d->vdso = value;
	}
}

/* Sent signals have no address; si_code of the others is positive (sigaction(2)). */
static void add_siginfo(struct reading *r, const uint8_t *note, size_t n)
{
	struct dump *d = r->d;
	size_t at = r->l->word == 8 ? 16 : 12;

	if (r->has_siginfo || n < at + r->l->word)
		return;
	r->has_siginfo = true;
	d->signal_code = (int32_t)le32(note + 8);
	d->fault_address = le_sized(note + at, r->l->word);
	d->has_fault_address = d->signal_code > 0 && d->signal_code != 128 &&
			       (d->signal == 11 || d->signal == 7 || d->signal == 8 ||
				d->signal == 4);
}

/* Most is bytes enough for the note; others are not read. */
static size_t wanted_bytes(const struct reading *r, uint32_t type)
{
	switch (type) {
	case NT_PRSTATUS: return r->status->bytes;
	case NT_PRPSINFO: return 136;
	case NT_SIGINFO: return 128;
	case NT_AUXV: return AUXV_MAX_BYTES;
	case NT_FILE: return DUMP_NAMES_MAX_BYTES;
	}
	return 0;
}

static int take_note(struct reading *r, uint32_t type, uint8_t *note, size_t n, bool *kept,
		     struct err *err)
{
	struct dump *d = r->d;
	size_t name_at = r->l->word == 8 ? 40 : 28, pid_at = r->l->word == 8 ? 24 : 12;
	int rc = 0;

	switch (type) {
	case NT_PRSTATUS:
		if (n >= r->status->bytes)
			rc = add_thread(r, note, err);
		break;
	case NT_PRPSINFO:
		if (n >= name_at + 16) {
			d->pid = le32(note + pid_at);
			memcpy(d->program, note + name_at, 16);
		}
		break;
	case NT_SIGINFO:
		add_siginfo(r, note, n);
		break;
	case NT_AUXV:
		add_auxv(r, note, n);
		break;
	case NT_FILE:
		rc = add_files(r, note, n, err);
		*kept = d->names == (char *)note;
		break;
	}
	return rc;
}

static uint64_t padded(uint64_t n)
{
	return (n + 3) & ~(uint64_t)3;
}

static int read_note(struct reading *r, const uint8_t head[20], uint64_t at, struct err *err)
{
	size_t wanted = memcmp(head + 12, "CORE", 5) ? 0 : wanted_bytes(r, le32(head + 8));
	size_t n = le32(head + 4);
	bool kept = false;
	uint8_t *note;
	int rc;

	if (le32(head + 8) == NT_FILE && n > wanted)
		return wanted ? err_set(err, ERR_LIMIT, "its list of mapped files has over %u MB",
					DUMP_NAMES_MAX_BYTES >> 20) : 0;
	if (n > wanted)
		n = wanted;
	if (!n)
		return 0;
	note = malloc(n);
	if (!note)
		return err_memory(err, "for a note of a core");
	rc = bytes_read(&r->d->in, at, note, n, "a note", err);
	if (!rc)
		rc = take_note(r, le32(head + 8), note, n, &kept, err);
	if (!kept)
		free(note);
	return rc;
}

/* Notes behind the end of a core that was cut off are lost; so is what is damaged. */
static int read_notes(struct reading *r, uint64_t at, uint64_t n, struct err *err)
{
	uint64_t end = at + n < at || at + n > r->d->in.size ? r->d->in.size : at + n, desc;
	uint8_t head[20];
	int rc = 0;

	while (!rc && at < end && end - at >= sizeof(head)) {
		if (r->nnotes++ == NOTES_MAX)
			return err_set(err, ERR_LIMIT, "it has more than %d notes", NOTES_MAX);
		rc = bytes_read(&r->d->in, at, head, sizeof(head), "a note", err);
		if (rc)
			break;
		desc = at + 12 + padded(le32(head));
		if (desc > end || end - desc < le32(head + 4))
			break;
		rc = read_note(r, head, desc, err);
		at = desc + padded(le32(head + 4));
	}
	return rc;
}

/* ---- program headers ------------------------------------------------------------------------- */

static int add_range(struct reading *r, const struct elf_segment *s, bool writable, struct err *err)
{
	struct dump *d = r->d;
	struct dump_range range = {.start = s->vaddr, .end = s->vaddr + s->memory_bytes,
				   .offset = s->offset, .nbytes = s->file_bytes,
				   .executable = s->executable, .writable = writable};

	if (range.end <= range.start)
		return 0;
	if (range.nbytes > s->memory_bytes)
		range.nbytes = s->memory_bytes;
	if (range.offset > d->in.size)
		range.offset = d->in.size;
	if (range.nbytes > d->in.size - range.offset) {
		d->missing_bytes += range.nbytes - (d->in.size - range.offset);
		range.nbytes = d->in.size - range.offset;
	}
	if (ARRAY_ROOM(d->ranges, d->ranges_room, d->nranges + 1))
		return err_memory(err, "for the mappings of a core");
	d->ranges[d->nranges++] = range;
	return 0;
}

static int read_program(struct reading *r, const uint8_t *at, struct err *err)
{
	const struct elf_layout *l = r->l;
	uint32_t flags = le32(at + l->program.flags);
	const struct elf_segment s = {
		.offset = le_sized(at + l->program.offset, l->word),
		.vaddr = le_sized(at + l->program.vaddr, l->word),
		.file_bytes = le_sized(at + l->program.filesz, l->word),
		.memory_bytes = le_sized(at + l->program.memsz, l->word),
		.executable = flags & ELF_PF_X,
	};

	if (le32(at) == ELF_PT_LOAD)
		return add_range(r, &s, flags & PF_W_, err);
	return le32(at) == ELF_PT_NOTE ? read_notes(r, s.offset, s.file_bytes, err) : 0;
}

/* More than 65,534 mappings: the number stands in the first section header. */
static int count_programs(const struct reading *r, const uint8_t *header, uint32_t *count,
			  struct err *err)
{
	const struct elf_layout *l = r->l;
	uint8_t info[4];
	int rc;

	*count = le16(header + l->header.phnum);
	if (*count == ELF_EXTENDED) {
		uint64_t at = le_sized(header + l->header.shoff, l->word);

		at += l->word == 8 ? SECTION_INFO_AT64 : SECTION_INFO_AT32;
		rc = bytes_read(&r->d->in, at, info, 4, "the number of its mappings", err);
		if (rc)
			return rc;
		*count = le32(info);
	}
	if (!*count || le16(header + l->header.phentsize) != l->program.bytes)
		return err_set(err, ERR_FORMAT, "its program headers are damaged");
	if (*count > DUMP_RANGES_MAX)
		return err_set(err, ERR_LIMIT, "it has more than %u mappings", DUMP_RANGES_MAX);
	return 0;
}

static int read_programs(struct reading *r, const uint8_t *header, struct err *err)
{
	uint64_t at = le_sized(header + r->l->header.phoff, r->l->word);
	unsigned each = r->l->program.bytes;
	uint32_t count = 0, i;
	uint8_t *table;
	int rc = count_programs(r, header, &count, err);

	if (rc)
		return rc;
	table = malloc((size_t)count * each);
	if (!table)
		return err_memory(err, "for the mappings of a core");
	rc = bytes_read(&r->d->in, at, table, (size_t)count * each, "its list of mappings", err);
	for (i = 0; !rc && i < count; i++)
		rc = read_program(r, table + (size_t)i * each, err);
	free(table);
	return rc;
}

int core_read(const struct bytes *in, struct dump **out, struct err *err)
{
	struct reading r = {.d = calloc(1, sizeof(*r.d))};
	uint8_t header[64] = {0};
	int rc;

	if (!r.d)
		return err_memory(err, "for a core");
	r.d->in = *in;
	rc = core_is(in) ? 0 : err_set(err, ERR_FORMAT, "it is not a core dump of Linux");
	if (!rc)
		rc = bytes_read(in, 0, header, elf_layout32.header.bytes, "its header", err);
	if (!rc) {
		r.d->is_32_bit = header[4] == 1;
		r.l = r.d->is_32_bit ? &elf_layout32 : &elf_layout64;
		r.status = r.d->is_32_bit ? &status_32 : &status_64;
		rc = bytes_read(in, 0, header, r.l->header.bytes, "its header", err);
	}
	if (!rc && le16(header + ELF_MACHINE_AT) != (r.d->is_32_bit ? ELF_386 : ELF_X86_64))
		rc = err_set(err, ERR_UNSUPPORTED, "it is the core of a program for another "
			     "processor (ELF machine %u)", (unsigned)le16(header + ELF_MACHINE_AT));
	if (!rc)
		rc = read_programs(&r, header, err);
	if (!rc)
		rc = dump_settle(r.d, err);
	if (rc)
		dump_free(r.d);
	else
		*out = r.d;
	return rc;
}
