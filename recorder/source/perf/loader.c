#include "source/perf/loader.h"

#include "base/os.h"
#include "source/jvm/options.h"
#include "symbol/elf_file.h"
#include "symbol/symbol_open.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define HOT_NS (10 * NS_PER_SEC)             /* used within this time: in constant use */

enum entry_state {
	ENTRY_QUEUED,                        /* owned by a loader thread */
	ENTRY_READY,                         /* immutable from here on; tables may be NULL */
};

/* A file or a JVM's options to read; in the queue only while ENTRY_QUEUED. */
struct entry {
	struct object *object;               /* referenced; NULL = the options of a JVM */
	struct process *jvm;                 /* referenced */
	uint32_t pid;
	uint64_t used_ns;                    /* the source's */
	struct entry *next;                  /* in the queue; under the lock */
	_Atomic int state;
	struct eh_frame *tables;
	struct elf_head head;
	bool has_head;
	size_t without_bytes;                /* the source's: size of tables left out; 0 = none */
};

struct worker {
	struct loader *loader;
	struct os_thread *thread;
	_Atomic uint64_t busy_since_ns;      /* 0 = idle */
	bool given_up;                       /* the source's: another thread took over */
};

struct loader {
	struct log *log;
	struct entry **entries;              /* by object number; the source's */
	uint32_t end;                        /* above the highest object number of an entry */
	_Atomic size_t bytes, max_bytes;
	_Atomic bool full_logged;
	bool without_logged;                 /* the source's */

	struct worker workers[LOADER_THREADS_MAX];
	uint32_t nworkers;                   /* the source's */

	struct os_mutex *lock;               /* guards what follows */
	struct os_cond *wake;
	struct entry *first, *last;
	bool stopping;
};

/* ---- loading: a loader thread ---------------------------------------------------------------- */

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

static void read_tables(struct loader *l, struct entry *e, const struct bytes *in)
{
	const struct elf_segment *unwind = &e->head.unwind;
	struct eh_sections sections = {
		.header = read_part(in, unwind->offset, unwind->file_bytes),
		.header_bytes = (size_t)unwind->file_bytes,
		.header_vaddr = unwind->vaddr,
	};
	uint64_t offset, n;

	if (sections.header &&
	    eh_frame_pointer(sections.header, sections.header_bytes, sections.header_vaddr,
			     &sections.frames_vaddr) &&
	    find_frames(&e->head, sections.frames_vaddr, &offset, &n)) {
		sections.frames = read_part(in, offset, n);
		sections.frames_bytes = (size_t)n;
	}
	if (!sections.frames) {
		free(sections.header);
		return;
	}
	if (eh_frame_new(&sections, &e->tables, NULL))
		return;
	describe_called(e, in);
	atomic_fetch_add(&l->bytes, eh_frame_bytes(e->tables));
}

static void load(struct loader *l, struct entry *e)
{
	struct elf_file f = {0};

	if (atomic_load(&l->bytes) >= LOADER_MAX_BYTES) {
		if (!atomic_exchange(&l->full_logged, true))
			log_line(l->log, LOG_WARN,
				 "unwind tables have reached their ceiling of %u MB: stacks "
				 "through %s and later files follow frame pointers",
				 (unsigned)(LOADER_MAX_BYTES >> 20), e->object->key.path);
		return;
	}
	if (elf_file_open(e->object, e->pid, false, &f, NULL))
		return;
	e->head = f.head;
	e->has_head = true;
	if (f.head.is64)
		read_tables(l, e, &f.bytes);
	elf_file_close(&f);
}

static void read_jvm_options(struct process *process)
{
	bool kept = jvm_options_keep_frame_pointers(process->pid);

	atomic_store(&process->frame_pointers, kept ? FRAME_POINTERS_KEPT : FRAME_POINTERS_NONE);
}

/* Wait for the next entry of the queue. returns  NULL when the loader stops */
static struct entry *next_entry(struct loader *l)
{
	struct entry *e;

	os_mutex_lock(l->lock);
	while (!l->first && !l->stopping)
		os_cond_wait(l->wake, l->lock, UINT64_MAX);
	e = l->stopping ? NULL : l->first;
	if (e) {
		l->first = e->next;
		if (!l->first)
			l->last = NULL;
	}
	os_mutex_unlock(l->lock);
	return e;
}

static void jvm_entry_free(struct entry *e)
{
	process_unref(e->jvm);
	free(e);
}

static void loader_main(void *ctx)
{
	struct worker *w = ctx;
	struct entry *e;

	/* Samples wait for this thread, so it must not wait for a busy CPU. */
	os_thread_priority(OS_PRIORITY_HIGH);
	while ((e = next_entry(w->loader)) != NULL) {
		atomic_store(&w->busy_since_ns, os_now_ns());
		if (e->jvm)
			read_jvm_options(e->jvm);
		else
			load(w->loader, e);
		atomic_store(&w->busy_since_ns, 0);
		if (e->jvm)
			jvm_entry_free(e);
		else
			atomic_store_explicit(&e->state, ENTRY_READY, memory_order_release);
	}
}

/* ---- the source's thread --------------------------------------------------------------------- */

static int start_worker(struct loader *l, struct err *err)
{
	struct worker *w = &l->workers[l->nworkers];
	int rc;

	w->loader = l;
	rc = os_thread_start("loader", loader_main, w, &w->thread, err);
	if (!rc)
		l->nworkers++;
	return rc;
}

int loader_new(struct log *log, struct loader **out, struct err *err)
{
	struct loader *l = calloc(1, sizeof(*l));
	int rc = ERR_MEMORY;

	if (l) {
		l->log = log;
		atomic_store(&l->max_bytes, LOADER_MAX_BYTES);
		l->entries = calloc(OBJECTS_MAX, sizeof(*l->entries));
		l->lock = os_mutex_new();
		l->wake = os_cond_new();
	}
	if (l && l->entries && l->lock && l->wake)
		rc = start_worker(l, err);
	else
		err_memory(err, "for the loader of unwind tables");
	if (rc) {
		loader_free(l);
		return rc;
	}
	*out = l;
	return 0;
}

static void entry_free(struct loader *l, struct entry *e, uint64_t now_ns)
{
	if (e->tables)
		atomic_fetch_sub(&l->bytes, eh_frame_bytes(e->tables));
	eh_frame_free(e->tables);
	object_drop(e->object, now_ns);
	free(e);
}

void loader_free(struct loader *l)
{
	struct entry *e;
	uint32_t i;
	bool hangs = false;                  /* a thread, which may come back to this memory */

	if (!l)
		return;
	if (l->lock) {
		os_mutex_lock(l->lock);
		l->stopping = true;
		os_cond_broadcast(l->wake);
		os_mutex_unlock(l->lock);
	}
	for (i = 0; i < l->nworkers; i++) {
		uint64_t since_ns = atomic_load(&l->workers[i].busy_since_ns);

		if (since_ns && os_now_ns() - since_ns > LOADER_STUCK_NS)
			hangs = true;
		else
			os_thread_join(l->workers[i].thread);
	}
	if (hangs)
		return;
	while ((e = l->first) != NULL) {
		l->first = e->next;
		if (e->jvm)
			jvm_entry_free(e);   /* all others are in l->entries */
	}
	for (i = 0; l->entries && i < l->end; i++) {
		if (l->entries[i])
			entry_free(l, l->entries[i], os_now_ns());
	}
	free(l->entries);
	os_mutex_free(l->lock);
	os_cond_free(l->wake);
	free(l);
}

static void enqueue(struct loader *l, struct entry *e)
{
	os_mutex_lock(l->lock);
	if (l->last)
		l->last->next = e;
	else
		l->first = e;
	l->last = e;
	os_cond_signal(l->wake);
	os_mutex_unlock(l->lock);
}

static struct entry *add_entry(struct loader *l, struct object *object, uint32_t pid)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return NULL;
	object_ref(object);
	e->object = object;
	e->pid = pid;
	l->entries[object->number] = e;
	if (object->number >= l->end)
		l->end = object->number + 1;
	enqueue(l, e);
	return e;
}

void loader_jvm(struct loader *l, struct process *process)
{
	struct entry *e = calloc(1, sizeof(*e));

	if (!e)
		return;
	process_ref(process);
	e->jvm = process;
	enqueue(l, e);
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
	if (atomic_load_explicit(&e->state, memory_order_acquire) != ENTRY_READY) {
		out->pending = true;
		return;
	}
	out->tables = e->tables;
	out->head = e->has_head ? &e->head : NULL;
}

static void replace_stuck(struct loader *l, uint64_t now_ns)
{
	uint32_t i, n = l->nworkers;

	for (i = 0; i < n; i++) {
		struct worker *w = &l->workers[i];
		uint64_t since_ns = atomic_load(&w->busy_since_ns);

		if (w->given_up || !since_ns || now_ns < since_ns + LOADER_STUCK_NS)
			continue;
		w->given_up = true;
		log_line(l->log, LOG_WARN,
			 "a mapped file could not be opened for 2 s (a file system that hangs?): "
			 "its stacks follow frame pointers%s",
			 l->nworkers < LOADER_THREADS_MAX ? "" : "; no further tables are loaded");
		if (l->nworkers < LOADER_THREADS_MAX)
			start_worker(l, NULL);
	}
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
	return e && atomic_load(&e->state) == ENTRY_READY;
}

static void forget(struct loader *l, uint32_t i, uint64_t now_ns)
{
	struct entry *e = l->entries[i];

	l->entries[i] = NULL;
	entry_free(l, e, now_ns);
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
	uint32_t i;

	replace_stuck(l, now_ns);
	keep_to_max(l, now_ns);
	for (i = 0; i < l->end; i++) {
		const struct entry *e = l->entries[i];
		bool unmapped = is_ready(e) && atomic_load(&e->object->refs) == 1;   /* ours */

		if (is_ready(e) &&
		    now_ns >= e->used_ns + (unmapped ? LOADER_STUCK_NS : LOADER_IDLE_NS))
			forget(l, i, now_ns);
	}
}
