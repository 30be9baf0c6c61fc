/*
 *  header             0 "MDMP"   4 u16 0xa793   8 u32 streams   12 u32 place of the directory
 *                     20 u32 time
 *  directory          12 bytes: 0 u32 type   4 u32 bytes   8 u32 place
 *
 *   3 threads         u32 count, then 48 bytes: 0 u32 tid   16 u64 TEB   24 u64 stack's address
 *                       32 u32 bytes  36 u32 place   40 u32 bytes  44 u32 place of the CONTEXT
 *   4 modules         u32 count, then 108 bytes: 0 u64 base   8 u32 bytes   12 u32 checksum
 *                       16 u32 timestamp   20 u32 place of the path   76 u32 bytes  80 u32 place of
 *                       the CodeView record: "RSDS", GUID, u32 age
 *   5 memory          u32 count, then 16 bytes: u64 address   u32 bytes   u32 place
 *   6 exception       0 u32 tid   8 u32 code   24 u64 address   32 u32 parameters   40 u64 each
 *                       160 u32 bytes  164 u32 place of the CONTEXT
 *   7 system          0 u16 processor: 0 x86, 9 x64   20 u32 platform: 2 Windows
 *   9 all memory      u64 count   u64 place, then 16 bytes: u64 address   u64 bytes
 *  15 process         4 u32 flags, 1: pid is valid   8 u32 pid
 *  16 regions         0 u32 header's bytes   4 u32 entry's bytes   8 u64 count, then entries: 0 u64
 *                       address   24 u64 bytes   32 u32 state   36 u32 protection
 *  24 thread names    u32 count, then 12 bytes: u32 tid   u64 place of the name
 *
 * A text is u32 bytes, then UTF-16. Places are counted from the beginning of the file.
 */
#include "source/dump/minidump.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/text.h"
#include "base/utf8.h"

#include <stdlib.h>
#include <string.h>

enum {
	STREAMS_MAX = 1024,
	THREADS = 3, MODULES, MEMORY, EXCEPTION, SYSTEM, MEMORY_64 = 9, PROCESS = 15, REGIONS,
	THREAD_NAMES = 24,
	HEADER_BYTES = 32, ENTRY_BYTES = 12,
	THREAD_BYTES = 48, MODULE_BYTES = 108, EXCEPTION_BYTES = 168,
	X86 = 0, X64 = 9, WINDOWS_NT = 2,
	TEXT_MAX_BYTES = 1 << 16,
	CONTEXT_BYTES = 0x100, CONTEXT_BYTES_32 = 0xc8,
	PARAMETERS_AT = 40, CONTEXT_CS = 0x38, CS_32_BIT = 0x23,
	/* of the TEB, x64; of what its slot 1 points to: flags, machine, CONTEXT of x86 */
	TEB_WOW64_SLOT = 0x1488, CPU_AREA_CONTEXT = 4,
};

/* Where each of DUMP_REGS_MASK stands in a CONTEXT. */
static const uint16_t reg_64[DUMP_REGISTERS] = {0x78, 0x90, 0x80, 0x88, 0xa8, 0xb0, 0xa0, 0x98,
						0xf8, 0xb8, 0xc0, 0xc8, 0xd0, 0xd8, 0xe0, 0xe8,
						0xf0};
static const uint16_t reg_32[9] = {0xb0, 0xa4, 0xac, 0xa8, 0xa0, 0x9c, 0xb4, 0xc4, 0xb8};

struct place {
	uint64_t at, n;
};

struct origin {
	uint64_t teb;
	uint16_t cs;                         /* of x64: which kind of code runs */
};

struct reading {
	struct dump *d;
	struct place streams[THREAD_NAMES + 1];   /* of each type; n 0 = none */
	bool x64;
	struct origin *origins;              /* of the threads */
	struct buf names;
};


bool minidump_is(const struct bytes *in)
{
	uint8_t head[6];

	return bytes_read(in, 0, head, sizeof(head), "its header", NULL) == 0 &&
	       memcmp(head, "MDMP", 4) == 0 && le16(head + 4) == 0xa793;
}

/* ---- streams --------------------------------------------------------------------------------- */

static bool read_at(const struct reading *r, uint64_t at, void *to, size_t n)
{
	return bytes_read(&r->d->in, at, to, n, "a part of it", NULL) == 0;
}

static int read_directory(struct reading *r, struct err *err)
{
	uint8_t head[HEADER_BYTES], entry[ENTRY_BYTES];
	uint32_t n, i;
	int rc = bytes_read(&r->d->in, 0, head, sizeof(head), "its header", err);

	if (rc)
		return rc;
	n = le32(head + 8);
	if (n > STREAMS_MAX)
		return err_set(err, ERR_FORMAT, "its directory is damaged");
	for (i = 0; i < n; i++) {
		if (!read_at(r, le32(head + 12) + (uint64_t)i * ENTRY_BYTES, entry, sizeof(entry)))
			return err_set(err, ERR_FORMAT, "its directory is cut off");
		if (le32(entry) <= THREAD_NAMES && !r->streams[le32(entry)].n)
			r->streams[le32(entry)] = (struct place){le32(entry + 8), le32(entry + 4)};
	}
	return 0;
}

/*
 * The entries of a list: u32 count, entries. A list whose count says that 4 bytes of padding follow
 * is one of old dbghelps. What lies beyond the end of the file is not counted.
 */
static struct place list_of(const struct reading *r, unsigned type, uint32_t entry_bytes,
			    uint32_t max)
{
	struct place list = r->streams[type];
	uint8_t count[4];
	uint64_t n;

	if (list.n < 4 || !read_at(r, list.at, count, sizeof(count)))
		return (struct place){0, 0};
	n = le32(count);
	list.at += list.n == n * entry_bytes + 8 ? 8 : 4;
	if (list.at > r->d->in.size || n > (r->d->in.size - list.at) / entry_bytes)
		n = list.at > r->d->in.size ? 0 : (r->d->in.size - list.at) / entry_bytes;
	return (struct place){list.at, n < max ? n : max};
}

/* A text, for free(); NULL = none that can be read. */
static char *text_at(const struct reading *r, uint64_t at)
{
	uint8_t head[4], *units;
	struct buf text = {0};
	char one[4];
	size_t i = 0, n;

	if (!at || !read_at(r, at, head, sizeof(head)) || le32(head) > TEXT_MAX_BYTES)
		return NULL;
	n = le32(head) / 2;
	units = malloc(n * 2 + 1);
	if (units && read_at(r, at + 4, units, n * 2)) {
		while (i < n) {
			uint32_t c = utf16_next(units, n, &i);

			buf_put(&text, one, utf8_encode(c ? c : '?', one));
		}
		buf_putc(&text, '\0');
	}
	free(units);
	if (text.failed)
		buf_free(&text);
	return text.data;
}

static int read_system(struct reading *r, struct err *err)
{
	uint8_t system[24];
	unsigned machine;

	if (r->streams[SYSTEM].n < sizeof(system) ||
	    !read_at(r, r->streams[SYSTEM].at, system, sizeof(system)))
		return err_set(err, ERR_FORMAT, "it does not say of which system it is");
	machine = le16(system);
	if (le32(system + 20) != WINDOWS_NT)
		return err_set(err, ERR_UNSUPPORTED, "it is a minidump of another system than "
			       "Windows");
	if (machine != X86 && machine != X64)
		return err_set(err, ERR_UNSUPPORTED, "it is of another machine (processor %u): x64 "
			       "and x86 are read", machine);
	r->x64 = machine == X64;
	r->d->is_32_bit = !r->x64;
	return 0;
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int add_range(struct reading *r, uint64_t start, uint64_t n, uint64_t at, struct err *err)
{
	struct dump *d = r->d;
	uint64_t had = at > d->in.size ? 0 : d->in.size - at;

	if (!n || start > UINT64_MAX - n)
		return 0;
	if (had < n)
		d->missing_bytes += n - had;
	if (d->nranges == DUMP_RANGES_MAX)
		return err_set(err, ERR_LIMIT, "it has more than %u pieces of memory",
			       DUMP_RANGES_MAX);
	if (ARRAY_ROOM(d->ranges, d->ranges_room, d->nranges + 1))
		return err_memory(err, "for the memory of a minidump");
	d->ranges[d->nranges++] = (struct dump_range){
		.start = start, .end = start + n, .offset = at, .nbytes = n < had ? n : had,
		.executable = true, .writable = true};
	return 0;
}

static int read_memory(struct reading *r, struct err *err)
{
	struct place list = list_of(r, MEMORY, 16, UINT32_MAX);
	uint8_t entry[16];
	uint64_t i;
	int rc = 0;

	for (i = 0; !rc && i < list.n; i++) {
		if (!read_at(r, list.at + i * 16, entry, sizeof(entry)))
			break;
		rc = add_range(r, le64(entry), le32(entry + 8), le32(entry + 12), err);
	}
	return rc;
}

/* The pieces follow each other in the file. */
static int read_memory_64(struct reading *r, struct err *err)
{
	struct place list = r->streams[MEMORY_64];
	uint8_t entry[16];
	uint64_t n, at, i;
	int rc = 0;

	if (list.n < 16 || !read_at(r, list.at, entry, sizeof(entry)))
		return 0;
	n = le64(entry);
	at = le64(entry + 8);
	for (i = 1; !rc && i <= n; i++) {
		if (!read_at(r, list.at + i * 16, entry, sizeof(entry)))
			break;
		rc = add_range(r, le64(entry), le64(entry + 8), at, err);
		at = at > UINT64_MAX - le64(entry + 8) ? UINT64_MAX : at + le64(entry + 8);
	}
	return rc;
}

/* Pieces may overlap: the later of two is cut. The caller sorted them. */
static void separate(struct dump *d)
{
	uint64_t until = 0;
	uint32_t i, kept = 0;

	for (i = 0; i < d->nranges; i++) {
		struct dump_range r = d->ranges[i];
		uint64_t cut = r.start < until ? until - r.start : 0;

		if (r.start + cut >= r.end)
			continue;
		r.start += cut;
		r.offset += cut;
		r.nbytes = r.nbytes > cut ? r.nbytes - cut : 0;
		until = r.end;
		d->ranges[kept++] = r;
	}
	d->nranges = kept;
}

/* Which memory outside of modules is code; without this stream, all that was dumped may be. */
static int read_regions(struct reading *r, struct err *err)
{
	struct place list = r->streams[REGIONS];
	struct dump *d = r->d;
	uint8_t head[16], entry[48];
	uint64_t i;

	if (list.n < sizeof(head) || !read_at(r, list.at, head, sizeof(head)) ||
	    le32(head) < sizeof(head) || le32(head + 4) < sizeof(entry))
		return 0;
	for (i = 0; i < le64(head + 8) && d->nregions < DUMP_RANGES_MAX; i++) {
		if (!read_at(r, list.at + le32(head) + i * le32(head + 4), entry, sizeof(entry)))
			break;
		/* MEM_COMMIT; PAGE_EXECUTE to PAGE_EXECUTE_WRITECOPY, no PAGE_GUARD */
		if (le32(entry + 32) != 0x1000 || !(le32(entry + 36) & 0xf0) ||
		    le32(entry + 36) & 0x100 || le64(entry) > UINT64_MAX - le64(entry + 24))
			continue;
		if (ARRAY_ROOM(d->regions, d->regions_room, d->nregions + 1))
			return err_memory(err, "for the regions of a minidump");
		d->regions[d->nregions++] = (struct dump_range){
			.start = le64(entry), .end = le64(entry) + le64(entry + 24)};
	}
	d->has_regions = true;
	return 0;
}

/* ---- modules --------------------------------------------------------------------------------- */

static void read_code_view(const struct reading *r, const uint8_t *module, struct dump_module *m)
{
	uint8_t view[24];

	if (le32(module + 76) < sizeof(view) ||
	    !read_at(r, le32(module + 80), view, sizeof(view)) || memcmp(view, "RSDS", 4) != 0)
		return;
	memcpy(m->guid, view + 4, sizeof(m->guid));
	m->age = le32(view + 20);
}

/* A 32-bit program names system32, and is given the files of SysWOW64. */
static void redirect(char *path)
{
	static const char usual[] = "\\system32\\", real[] = "\\SysWOW64\\";
	char part[sizeof(usual)] = "", *at;
	size_t n = strlen(path);

	for (at = path; (size_t)(at - path) + sizeof(usual) <= n + 1; at++) {
		memcpy(part, at, sizeof(usual) - 1);
		if (text_same_fold(part, usual)) {
			memcpy(at, real, sizeof(real) - 1);
			return;
		}
	}
}

/* The paths stand one after another, and may move until the last is there. */
static int read_modules(struct reading *r, struct err *err)
{
	struct place list = list_of(r, MODULES, MODULE_BYTES, DUMP_MODULES_MAX);
	uint8_t module[MODULE_BYTES];
	struct dump *d = r->d;
	uint64_t i;

	for (i = 0; i < list.n; i++) {
		struct dump_module m = {0};
		char *path;

		if (!read_at(r, list.at + i * MODULE_BYTES, module, sizeof(module)))
			break;
		m.start = le64(module);
		m.end = m.start + le32(module + 8);
		m.checksum = le32(module + 12);
		m.timestamp = le32(module + 16);
		path = text_at(r, le32(module + 20));
		if (m.start >= m.end || !path ||
		    r->names.len + strlen(path) >= DUMP_NAMES_MAX_BYTES) {
			free(path);
			continue;
		}
		if (!r->x64)
			redirect(path);
		read_code_view(r, module, &m);
		m.name_at = (uint32_t)r->names.len;
		buf_put(&r->names, path, strlen(path) + 1);
		free(path);
		if (ARRAY_ROOM(d->modules, d->modules_room, d->nmodules + 1) || r->names.failed)
			return err_memory(err, "for the modules of a minidump");
		d->modules[d->nmodules++] = m;
	}
	d->names = r->names.data;
	r->names = (struct buf){0};
	for (i = 0; i < d->nmodules; i++)
		d->modules[i].path = d->names + d->modules[i].name_at;
	if (d->nmodules) {                   /* the program is the first */
		d->entry = d->modules[0].start;
		strncat(d->program, text_base_name(d->modules[0].path), sizeof(d->program) - 1);
	}
	return 0;
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool take_context(struct dump_thread *t, const uint8_t *context, bool x64)
{
	unsigned i, n = x64 ? DUMP_REGISTERS : COUNT_OF(reg_32);

	t->abi = x64 ? 2 : 1;
	memset(t->regs, 0, sizeof(t->regs));
	for (i = 0; i < n; i++)
		t->regs[i] = x64 ? le64(context + reg_64[i]) : le32(context + reg_32[i]);
	return t->regs[DUMP_IP] != 0;
}

static bool read_context(const struct reading *r, struct dump_thread *t, struct origin *o,
			 uint32_t nbytes, uint32_t at)
{
	uint8_t context[CONTEXT_BYTES];
	size_t need = r->x64 ? CONTEXT_BYTES : CONTEXT_BYTES_32;

	if (nbytes < need || !read_at(r, at, context, need))
		return false;
	o->cs = le16(context + CONTEXT_CS);
	return take_context(t, context, r->x64);
}

static int read_threads(struct reading *r, struct err *err)
{
	struct place list = list_of(r, THREADS, THREAD_BYTES, DUMP_THREADS_MAX);
	uint8_t entry[THREAD_BYTES];
	struct dump *d = r->d;
	uint64_t i;
	int rc = 0;

	d->threads = list.n ? calloc(list.n, sizeof(*d->threads)) : NULL;
	r->origins = list.n ? calloc(list.n, sizeof(*r->origins)) : NULL;
	if (list.n && (!d->threads || !r->origins))
		return err_memory(err, "for the threads of a minidump");
	for (i = 0; !rc && i < list.n; i++) {
		struct dump_thread t = {.call = -1};
		struct origin o;

		if (!read_at(r, list.at + i * THREAD_BYTES, entry, sizeof(entry)))
			break;
		t.tid = le32(entry);
		rc = add_range(r, le64(entry + 24), le32(entry + 32), le32(entry + 36), err);
		o.teb = le64(entry + 16);
		if (rc || !read_context(r, &t, &o, le32(entry + 40), le32(entry + 44)))
			continue;
		r->origins[d->nthreads] = o;
		d->threads[d->nthreads++] = t;
	}
	return rc;
}

/*
 * The thread that ended it comes first, as it was then: by now it may be in the code that wrote the
 * dump.
 */
static void read_exception(struct reading *r)
{
	struct place place = r->streams[EXCEPTION];
	uint8_t e[EXCEPTION_BYTES];
	struct dump *d = r->d;
	struct dump_thread t;
	struct origin o;
	uint32_t i;

	if (place.n < sizeof(e) || !read_at(r, place.at, e, sizeof(e)) || !le32(e + 8))
		return;
	for (i = 0; i < d->nthreads && d->threads[i].tid != le32(e); i++)
		;
	if (i == d->nthreads)
		return;
	t = d->threads[i];
	o = r->origins[i];
	read_context(r, &t, &o, le32(e + 160), le32(e + 164));
	d->threads[i] = d->threads[0];
	r->origins[i] = r->origins[0];
	d->threads[0] = t;
	r->origins[0] = o;
	d->signal = le32(e + 8);
	if ((d->signal == 0xc0000005 || d->signal == 0xc0000006) && le32(e + 32) >= 2) {
		d->has_fault_address = true;
		d->signal_code = (int32_t)le64(e + PARAMETERS_AT);
		d->fault_address = le64(e + PARAMETERS_AT + 8);
	}
}

/* The first, or one of those behind it, which are sorted. */
static struct dump_thread *thread_of(struct dump *d, uint32_t tid)
{
	uint32_t low = 1, high = d->nthreads, middle;

	if (d->threads[0].tid == tid)
		return &d->threads[0];
	while (low < high) {
		middle = low + (high - low) / 2;
		if (d->threads[middle].tid < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return low < d->nthreads && d->threads[low].tid == tid ? &d->threads[low] : NULL;
}

static void read_names(struct reading *r)
{
	struct place list = list_of(r, THREAD_NAMES, 12, DUMP_THREADS_MAX);
	struct dump_thread *t;
	uint8_t entry[12];
	uint64_t i;

	for (i = 0; i < list.n && read_at(r, list.at + i * 12, entry, sizeof(entry)); i++) {
		t = thread_of(r->d, le32(entry));
		if (t && !t->name)
			t->name = text_at(r, le64(entry + 4));
	}
}

static void read_process(struct reading *r)
{
	uint8_t misc[12];

	if (r->streams[PROCESS].n >= sizeof(misc) &&
	    read_at(r, r->streams[PROCESS].at, misc, sizeof(misc)) && le32(misc + 4) & 1)
		r->d->pid = le32(misc + 8);
}

static bool starts_with_wow64(const char *name)
{
	return (name[0] | 0x20) == 'w' && (name[1] | 0x20) == 'o' && (name[2] | 0x20) == 'w' &&
	       name[3] == '6' && name[4] == '4';
}

static bool is_wow64(const struct dump *d)
{
	uint32_t i;

	for (i = 0; i < d->nmodules; i++)
		if (text_same_fold(text_base_name(d->modules[i].path), "wow64cpu.dll"))
			return true;
	return false;
}

/*
 * Only once memory is sorted. A thread that is in 32-bit code has its registers already. Others
 * stay in 64-bit code if the registers of their 32-bit side were not dumped, or it has none.
 */
static void enter_32_bit(struct reading *r)
{
	uint8_t slot[8], context[CONTEXT_BYTES_32];
	uint32_t i;

	if (!r->x64 || !is_wow64(r->d))
		return;
	r->d->is_32_bit = true;
	for (i = 0; i < r->d->nmodules; i++)         /* wow64cpu.dll and its like are 64-bit */
		if (r->d->modules[i].end <= UINT32_MAX &&
		    !starts_with_wow64(text_base_name(r->d->modules[i].path)))
			redirect(r->d->names + r->d->modules[i].name_at);
	for (i = 0; i < r->d->nthreads; i++) {
		struct dump_thread *t = &r->d->threads[i], was = *t;

		if (r->origins[i].cs == CS_32_BIT)
			t->abi = 1;
		else if (dump_memory(r->d, r->origins[i].teb + TEB_WOW64_SLOT, slot, 8) == 8 &&
			 dump_memory(r->d, le64(slot) + CPU_AREA_CONTEXT, context,
				     sizeof(context)) == sizeof(context) &&
			 !take_context(t, context, false))
			*t = was;
	}
}

/* ---- all of it ------------------------------------------------------------------------------- */

static int read_all(struct reading *r, struct err *err)
{
	int rc = read_directory(r, err);

	if (!rc)
		rc = read_system(r, err);
	if (!rc)
		rc = read_modules(r, err);
	if (!rc)
		rc = read_threads(r, err);
	if (!rc)
		rc = read_memory(r, err);
	if (!rc)
		rc = read_memory_64(r, err);
	if (!rc)
		rc = read_regions(r, err);
	if (rc)
		return rc;
	read_exception(r);
	read_process(r);
	return 0;
}

int minidump_read(const struct bytes *in, struct dump **out, struct err *err)
{
	struct reading r = {.d = calloc(1, sizeof(*r.d))};
	int rc;

	if (!r.d)
		return err_memory(err, "for a minidump");
	r.d->in = *in;
	r.d->windows = true;
	rc = minidump_is(in) ? read_all(&r, err)
			     : err_set(err, ERR_FORMAT, "it is no minidump of Windows");
	if (!rc) {
		dump_sort(r.d);
		separate(r.d);
		enter_32_bit(&r);
		rc = dump_settle(r.d, err);
	}
	if (!rc)
		read_names(&r);
	buf_free(&r.names);
	free(r.origins);
	if (rc) {
		dump_free(r.d);
		return rc;
	}
	*out = r.d;
	return 0;
}
