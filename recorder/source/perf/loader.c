#include "source/perf/loader.h"

#include "base/bytes.h"
#include "base/deflate.h"
#include "base/os.h"
#include "base/text.h"
#include "source/jvm/options.h"
#include "symbol/elf_file.h"
#include "symbol/elf_section.h"
#include "symbol/gopclntab.h"
#include "symbol/symbol_open.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* A packed section begins with an Elf64_Chdr: type, 0, size, alignment. Source: elf(5) */
#define ELF_COMPRESSED 0x800u                /* SHF_COMPRESSED */
#define ELF_CHDR_ZLIB 1u
#define ELF_CHDR_BYTES 24u
#define START_BYTES 64u              /* of code from a program's entry on: ld.so's entry has 61 */

#define HOT_NS (10 * NS_PER_SEC)             /* used within this time: in constant use */

/* A file to read. The job has all that it needs: one that hangs may outlive everything else. */
struct entry {
	struct job job;
	struct object file;                  /* a copy of what identifies it, with its path */
	uint32_t pid;
	struct hung_devices *hung;
	bool spared;                         /* not read, because its device hangs */
	struct eh_frame *tables;
	struct elf_head head;
	bool has_head;
	struct loader_range mcall, mstart, panic;

	/* The source's: */
	struct object *object;               /* referenced */
	uint64_t used_ns;
	bool stuck;                          /* the job hangs */
	bool taken;                          /* it is done and counted; tables may be NULL */
	size_t without_bytes;                /* size of tables left out; 0 = none */
};

/* The options of a JVM to read. */
struct jvm {
	struct job job;
	uint32_t pid;
	bool kept;                           /* frame pointers */

	struct process *process;             /* the source's, as what follows; referenced */
	struct jvm *next;
};

struct loader {
	struct log *log;
	struct pool *pool;
	struct hung_devices *hung;
	struct entry **entries;              /* by object number */
	uint32_t end;                        /* above the highest object number of an entry */
	struct jvm *jvms;                    /* whose answer has not been taken */
	_Atomic size_t bytes, max_bytes;
	bool full_logged, without_logged;
};

/* ---- loading: a thread of the pool ----------------------------------------------------------- */

static uint8_t *read_part(const struct bytes *in, uint64_t offset, uint64_t n)
{
	uint8_t *part;

	if (!n || n > EH_FRAME_MAX_BYTES)
		return NULL;
	part = malloc((size_t)n);
	if (part && bytes_read(in, offset, part, (size_t)n, "its unwind tables", NULL)) {
		free(part);
		return NULL;
	}
	return part;
}

/* Up to the segment's end: only section headers, which may be stripped, give the length. */
static bool find_frames(const struct elf_head *head, uint64_t vaddr, uint64_t *offset, uint64_t *n)
{
	uint32_t i;

	for (i = 0; i < head->nsegments; i++) {
		const struct elf_segment *s = &head->segments[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr >= s->file_bytes)
			continue;
		*offset = s->offset + (vaddr - s->vaddr);
		*n = s->file_bytes - (vaddr - s->vaddr);
		return true;
	}
	return false;
}

/* No FDE describes the functions that begin and end a program: describe them by their code. */
static void describe_called(struct entry *e, const struct bytes *in)
{
	uint64_t called[ELF_CALLED_MAX], offset;
	uint32_t i, n = elf_called(in, &e->head, called);
	uint8_t code[EH_CODE_BYTES];

	for (i = 0; i < n; i++) {
		if (elf_offset(&e->head, called[i], &offset) &&
		    !bytes_read(in, offset, code, sizeof(code), "its code", NULL))
			eh_frame_add_code(e->tables, called[i], code, sizeof(code));
	}
}

/* Go's linker writes a .debug_frame, packed or not, and no .eh_frame. */
static void read_debug_frame(struct entry *e, const struct bytes *in, struct eh_sections *out)
{
	struct elf_section frames;
	uint8_t *packed;
	uint64_t n;

	if (!e->head.is64 || elf_section_find(in, &e->head, ".go.buildinfo", &frames, NULL) != 0 ||
	    elf_section_find(in, &e->head, ".debug_frame", &frames, NULL) != 0 ||
	    !(packed = read_part(in, frames.offset, frames.size)))
		return;
	if (!(frames.flags & ELF_COMPRESSED)) {
		out->frames = packed;
		out->frames_bytes = (size_t)frames.size;
	} else if (frames.size > ELF_CHDR_BYTES && le32(packed) == ELF_CHDR_ZLIB) {
		n = le64(packed + 8);
		if (n && n <= EH_FRAME_MAX_BYTES && (out->frames = malloc((size_t)n)) != NULL &&
		    inflate_bytes(packed + ELF_CHDR_BYTES, (size_t)frames.size - ELF_CHDR_BYTES,
				  out->frames, (size_t)n)) {
			free(out->frames);
			out->frames = NULL;
		}
		out->frames_bytes = (size_t)n;
	}
	if (out->frames != packed)
		free(packed);
	if (out->frames)
		eh_frame_of_debug_frame(out->frames, out->frames_bytes);
	out->cfa_only = true;
}

static struct loader_range range_of(struct gopclntab *functions, const char *name)
{
	uint64_t n = 0, start = gopclntab_find(functions, name, &n);

	return (struct loader_range){start, start + n};
}

/*
 * runtime.mcall() leaves a goroutine for the scheduler's stack, and nothing calls it there: RBP
 * still points to the goroutine, which may run elsewhere by now. runtime.mstart() is the first of a
 * thread, with the RBP of the thread that made it. A signal's handler makes a function that faults
 * look as if it had called runtime.sigpanic(), at any of its instructions.
 */
static void find_in_go(struct entry *e, const struct bytes *in)
{
	struct gopclntab functions;

	if (gopclntab_open(in, &e->head, &functions, NULL))
		return;
	e->mcall = range_of(&functions, "runtime.mcall");
	e->mstart = range_of(&functions, "runtime.mstart");
	e->panic = range_of(&functions, "runtime.sigpanic");
	gopclntab_close(&functions);
}

static void read_tables(struct entry *e, const struct bytes *in)
{
	const struct elf_segment *unwind = &e->head.unwind;
	struct eh_sections sections = {
		.header = read_part(in, unwind->offset, unwind->file_bytes),
		.header_bytes = (size_t)unwind->file_bytes,
		.header_vaddr = unwind->vaddr,
		.is_32_bit = !e->head.is64,
	};
	struct elf_section frames;
	uint64_t offset, n;

	/* The linker makes no index for a static program. */
	if (!unwind->file_bytes &&
	    elf_section_find(in, &e->head, ".eh_frame", &frames, NULL) == 0) {
		sections.frames = read_part(in, frames.offset, frames.size);
		sections.frames_bytes = (size_t)frames.size;
		sections.frames_vaddr = frames.addr;
	}
	if (sections.header &&
	    eh_frame_pointer(sections.header, sections.header_bytes, sections.header_vaddr,
			     &sections.frames_vaddr) &&
	    find_frames(&e->head, sections.frames_vaddr, &offset, &n)) {
		sections.frames = read_part(in, offset, n);
		sections.frames_bytes = (size_t)n;
	}
	if (!sections.frames && !sections.header)
		read_debug_frame(e, in, &sections);
	if (!sections.frames) {
		free(sections.header);
		return;
	}
	if (eh_frame_new(&sections, &e->tables, NULL) == 0 && e->head.is64)
		describe_called(e, in);
}

static void load(struct job *job)
{
	struct entry *e = (struct entry *)job;
	struct elf_file f = {0};

	e->spared = hung_devices_has(e->hung, e->file.key.dev);
	if (e->spared || elf_file_open(&e->file, e->pid, false, &f, NULL))
		return;
	e->head = f.head;
	e->has_head = true;
	/* Not x32, whose registers are those of x86-64 and whose addresses have 4 bytes. */
	if (f.head.machine == (f.head.is64 ? ELF_X86_64 : ELF_386))
		read_tables(e, &f.bytes);
	if (f.head.machine == ELF_X86_64 && f.head.is64)
		find_in_go(e, &f.bytes);
	elf_file_close(&f);
}

static void free_entry(struct job *job)
{
	struct entry *e = (struct entry *)job;

	eh_frame_free(e->tables);
	hung_devices_drop(e->hung);
	free((char *)(uintptr_t)e->file.key.path);
	free(e);
}

static void read_jvm(struct job *job)
{
	struct jvm *j = (struct jvm *)job;

	j->kept = jvm_options_keep_frame_pointers(j->pid);
}

static void free_jvm(struct job *job)
{
	free(job);
}

/* ---- the source's thread --------------------------------------------------------------------- */

int loader_new(struct log *log, struct hung_devices *hung, struct loader **out, struct err *err)
{
	struct loader *l = calloc(1, sizeof(*l));
	int rc = ERR_MEMORY;

	if (l) {
		l->log = log;
		l->hung = hung_devices_use(hung);
		atomic_store(&l->max_bytes, LOADER_MAX_BYTES);
		l->entries = calloc(OBJECTS_MAX, sizeof(*l->entries));
	}
	/* Samples wait for its threads, so these must not wait for a busy CPU. */
	if (l && l->entries)
		rc = pool_new("loader", 1, OS_PRIORITY_HIGH, &l->pool, err);
	else
		err_memory(err, "for the loader of unwind tables");
	if (rc) {
		loader_free(l);
		return rc;
	}
	pool_set_stuck(l->pool, HUNG_AFTER_NS);
	*out = l;
	return 0;
}

static void forget(struct loader *l, uint32_t i, uint64_t now_ns)
{
	struct entry *e = l->entries[i];

	l->entries[i] = NULL;
	if (e->taken && e->tables)
		atomic_fetch_sub(&l->bytes, eh_frame_bytes(e->tables));
	object_drop(e->object, now_ns);
	job_drop(&e->job);
}

static void forget_jvm(struct jvm **at)
{
	struct jvm *j = *at;

	*at = j->next;
	process_unref(j->process);
	job_drop(&j->job);
}

void loader_free(struct loader *l)
{
	uint32_t i;

	if (!l)
		return;
	pool_free(l->pool);
	for (i = 0; l->entries && i < l->end; i++) {
		if (l->entries[i])
			forget(l, i, os_now_ns());
	}
	while (l->jvms)
		forget_jvm(&l->jvms);
	hung_devices_drop(l->hung);
	free(l->entries);
	free(l);
}

struct pool *loader_pool(const struct loader *l)
{
	return l->pool;
}

static bool is_full(struct loader *l, const struct object *object)
{
	if (atomic_load(&l->bytes) < LOADER_MAX_BYTES)
		return false;
	if (!l->full_logged)
		log_line(l->log, LOG_WARN,
			 "unwind tables have reached their ceiling of %u MB: stacks through %s and "
			 "later files follow frame pointers",
			 (unsigned)(LOADER_MAX_BYTES >> 20), object->key.path);
	l->full_logged = true;
	return true;
}

/* NULL: not now */
static struct entry *add_entry(struct loader *l, struct object *object, uint32_t pid)
{
	struct entry *e;

	if (is_full(l, object) || hung_devices_has(l->hung, object->key.dev))
		return NULL;
	e = calloc(1, sizeof(*e));
	if (!e)
		return NULL;
	e->file.key = object->key;
	e->file.key.path = text_dup(object->key.path, SIZE_MAX);
	if (!e->file.key.path) {
		free(e);
		return NULL;
	}
	e->job = (struct job){.run = load, .free = free_entry, .what = e->file.key.path};
	job_init(&e->job);
	e->pid = pid;
	e->hung = hung_devices_use(l->hung);
	object_ref(object);
	e->object = object;
	l->entries[object->number] = e;
	if (object->number >= l->end)
		l->end = object->number + 1;
	pool_put(l->pool, &e->job);
	return e;
}

static void add_jvm(struct loader *l, struct process *process)
{
	struct jvm *j = calloc(1, sizeof(*j));

	if (!j)
		return;
	j->job = (struct job){.run = read_jvm, .free = free_jvm, .what = "the options of a JVM"};
	job_init(&j->job);
	j->pid = process->pid;
	process_ref(process);
	j->process = process;
	j->next = l->jvms;
	l->jvms = j;
	pool_put(l->pool, &j->job);
}

/* returns  whether it was done, and is gone */
static bool take_jvm(struct jvm **at)
{
	struct jvm *j = *at;

	if (!job_done(&j->job))
		return false;
	atomic_store(&j->process->frame_pointers,
		     j->kept ? FRAME_POINTERS_KEPT : FRAME_POINTERS_NONE);
	forget_jvm(at);
	return true;
}

void loader_jvm(struct loader *l, struct process *process)
{
	struct jvm **at = &l->jvms;

	while (*at && (*at)->process != process)
		at = &(*at)->next;
	if (*at)
		take_jvm(at);
	else
		add_jvm(l, process);
}

/* returns  whether it has been read */
static bool take(struct loader *l, struct entry *e)
{
	if (e->taken || !job_done(&e->job))
		return e->taken;
	e->taken = true;
	if (e->stuck)
		hung_devices_came_back(l->hung, e->file.key.dev);
	if (e->tables)
		atomic_fetch_add(&l->bytes, eh_frame_bytes(e->tables));
	return true;
}

void loader_get(struct loader *l, struct object *object, uint32_t pid, uint64_t now_ns,
		struct loaded *out)
{
	struct entry *e = l->entries[object->number];

	*out = (struct loaded){0};
	if (object->key.kind != OBJECT_ELF)
		return;
	if (!e)
		e = add_entry(l, object, pid);
	if (!e)
		return;
	e->used_ns = now_ns;
	if (!take(l, e)) {
		out->pending = !e->stuck;
		return;
	}
	if (e->spared) {
		forget(l, object->number, now_ns);
		return;
	}
	out->tables = e->tables;
	out->head = e->has_head ? &e->head : NULL;
	out->mcall = e->mcall;
	out->mstart = e->mstart;
	out->panic = e->panic;
}

static bool is_within(struct loader_range range, uint64_t vaddr)
{
	return vaddr >= range.start && vaddr < range.end;
}

void loader_place(const struct loaded *loaded, struct unwind_place *out)
{
	uint64_t entry;

	if (!loaded->head || !elf_vaddr(loaded->head, out->ref.offset, &out->vaddr))
		return;
	entry = loaded->head->entry;
	out->tables = loaded->tables;
	out->entry = entry && out->vaddr - entry < START_BYTES;
	out->top = is_within(loaded->mcall, out->vaddr) || is_within(loaded->mstart, out->vaddr);
	out->injected = is_within(loaded->panic, out->vaddr);
}

/* The job of a thread that was left behind: the file's device is left alone. */
static void take_stuck(struct loader *l, const struct job *job)
{
	struct entry *e = (struct entry *)(uintptr_t)job;

	if (job->run != load)
		return;
	e->stuck = true;
	if (hung_devices_add(l->hung, e->file.key.dev))
		log_line(l->log, LOG_WARN,
			 "the file system of %s, which process %u maps, does not answer: its files "
			 "are left alone, and their stacks follow frame pointers",
			 e->file.key.path, e->pid);
}

void loader_set_max(struct loader *l, size_t bytes)
{
	atomic_store(&l->max_bytes, bytes);
}

size_t loader_bytes(const struct loader *l, size_t *max_bytes)
{
	*max_bytes = atomic_load(&l->max_bytes);
	return atomic_load(&l->bytes);
}

static bool is_ready(const struct entry *e)
{
	return e && e->taken;
}

static uint32_t longest_unused(const struct loader *l)
{
	uint32_t i, found = UINT32_MAX;

	for (i = 0; i < l->end; i++) {
		if (is_ready(l->entries[i]) && l->entries[i]->tables &&
		    (found == UINT32_MAX || l->entries[i]->used_ns < l->entries[found]->used_ns))
			found = i;
	}
	return found;
}

/* Tables in constant use would be asked for at once again and push out others: leave them out. */
static void do_without(struct loader *l, struct entry *e)
{
	if (!l->without_logged)
		log_line(l->log, LOG_WARN,
			 "unwind tables have reached their ceiling of %.1f MB: stacks through %s "
			 "and others follow frame pointers until there is room",
			 (double)atomic_load(&l->max_bytes) / 1048576, e->object->key.path);
	l->without_logged = true;
	e->without_bytes = eh_frame_bytes(e->tables);
	atomic_fetch_sub(&l->bytes, e->without_bytes);
	eh_frame_free(e->tables);
	e->tables = NULL;
}

static void keep_to_max(struct loader *l, uint64_t now_ns)
{
	size_t max_bytes = atomic_load(&l->max_bytes), room;
	uint32_t i;

	while (atomic_load(&l->bytes) > max_bytes && (i = longest_unused(l)) != UINT32_MAX) {
		if (now_ns < l->entries[i]->used_ns + HOT_NS)
			do_without(l, l->entries[i]);
		else
			forget(l, i, now_ns);
	}
	if (!l->without_logged || atomic_load(&l->bytes) > max_bytes)
		return;
	room = max_bytes - atomic_load(&l->bytes);
	for (i = 0; i < l->end; i++) {
		const struct entry *e = l->entries[i];

		if (is_ready(e) && e->without_bytes && e->without_bytes <= room) {
			room -= e->without_bytes;
			forget(l, i, now_ns);
		}
	}
}

void loader_sweep(struct loader *l, uint64_t now_ns)
{
	const struct job *job;
	struct jvm **at = &l->jvms;
	uint32_t i;

	for (i = 0; i < l->end; i++)
		if (l->entries[i])
			take(l, l->entries[i]);
	while (*at)
		if (!take_jvm(at))
			at = &(*at)->next;
	while ((job = pool_look(l->pool, os_now_ns())) != NULL)
		take_stuck(l, job);
	keep_to_max(l, now_ns);
	for (i = 0; i < l->end; i++) {
		const struct entry *e = l->entries[i];
		bool unmapped = is_ready(e) && atomic_load(&e->object->refs) == 1;   /* ours */

		if (is_ready(e) &&
		    now_ns >= e->used_ns + (unmapped ? LOADER_UNMAPPED_NS : LOADER_IDLE_NS))
			forget(l, i, now_ns);
	}
}
