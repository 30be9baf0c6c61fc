#include "source/etw/state.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define NONE SLOTS_NONE
#define RECENT 1024u                         /* power of two */

struct file {
	uint64_t key;
	int64_t from, until;
	const char *path;
	uint32_t older;
};

struct volume {
	const char *nt, *dos;
};

/* The last GC that a runtime started. */
struct runtime {
	uint32_t pid, clr, count;
};

struct etw_state {
	struct etw_texts texts;
	/*
	 * Caches of the last results: a long trace reuses numbers often, and is read in time
	 * order.
	 */
	struct etw_process *recent_processes[RECENT];
	struct etw_thread *recent_threads[RECENT];
	struct slots processes, threads, files, runtimes;
	struct table by_pid, by_tid, by_file, by_runtime;  /* the latest of each number */
	struct volume volumes[ETW_VOLUMES_MAX];
	uint32_t nvolumes;
	uint64_t refused;
};

int etw_state_new(struct etw_state **out, struct err *err)
{
	struct etw_state *s = calloc(1, sizeof(*s));

	if (!s || etw_texts_init(&s->texts) ||
	    slots_init(&s->processes, sizeof(struct etw_process), ETW_PROCESSES_MAX) ||
	    slots_init(&s->threads, sizeof(struct etw_thread), ETW_THREADS_MAX) ||
	    slots_init(&s->files, sizeof(struct file), ETW_FILES_MAX) ||
	    slots_init(&s->runtimes, sizeof(struct runtime), ETW_RUNTIMES_MAX)) {
		etw_state_free(s);
		return err_memory(err, "for the processes of a trace");
	}
	*out = s;
	return 0;
}

void etw_state_free(struct etw_state *s)
{
	if (!s)
		return;
	etw_texts_free(&s->texts);
	slots_free(&s->processes);
	slots_free(&s->threads);
	slots_free(&s->files);
	slots_free(&s->runtimes);
	table_free(&s->by_pid);
	table_free(&s->by_tid);
	table_free(&s->by_file);
	table_free(&s->by_runtime);
	free(s);
}

struct etw_texts *etw_state_texts(struct etw_state *s)
{
	return &s->texts;
}

void etw_state_use(const struct etw_state *s, struct etw_state_use *out)
{
	out->processes = s->processes.used;
	out->threads = s->threads.used;
	out->files = s->files.used;
	out->volumes = s->nvolumes;
	out->bytes = sizeof(*s) + etw_texts_bytes(&s->texts) + slots_bytes(&s->processes) +
		     slots_bytes(&s->threads) + slots_bytes(&s->files) + slots_bytes(&s->runtimes) +
		     table_bytes(&s->by_pid) + table_bytes(&s->by_tid) + table_bytes(&s->by_file) +
		     table_bytes(&s->by_runtime);
	out->refused = s->refused + s->texts.refused;
}

const char *etw_keep_text(struct etw_texts *texts, const struct etw_value *value, bool utf16)
{
	char text[ETW_TEXT_MAX + 1];
	size_t n;

	if (!value->bytes || !value->nbytes)
		return NULL;
	if (!utf16)
		return etw_texts_keep(texts, (const char *)value->bytes,
				      strnlen((const char *)value->bytes, value->nbytes));
	n = etw_utf16(value->bytes, value->nbytes / 2, text, sizeof(text));
	return n ? etw_texts_keep(texts, text, n) : NULL;
}

/* Make a new item the latest of its number; false without memory. */
static bool link_latest(struct table *t, uint64_t hash, uint32_t older, uint32_t number)
{
	if (older != NONE)
		table_remove(t, hash, older);
	return table_add(t, hash, number) == 0;
}

/* ---- processes ------------------------------------------------------------------------------- */

static bool same_pid(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_state *s = ctx;
	const struct etw_process *p = slots_get(&s->processes, value);

	return p->pid == *(const uint32_t *)key;
}

static uint32_t latest_process(const struct etw_state *s, uint32_t pid)
{
	return table_find(&s->by_pid, hash_u64(pid), same_pid, s, &pid);
}

static struct etw_process *process_at(const struct etw_state *s, uint32_t number)
{
	return number == NONE ? NULL : slots_get(&s->processes, number);
}

static struct etw_process *add_process(struct etw_state *s, uint32_t pid, int64_t from,
				       int64_t until)
{
	uint32_t older = latest_process(s, pid), number = slots_add(&s->processes);
	struct etw_process *p;

	if (number == NONE) {
		s->refused++;
		return NULL;
	}
	p = process_at(s, number);
	p->pid = pid;
	p->from = from;
	p->until = until;
	p->older = older;
	if (!link_latest(&s->by_pid, hash_u64(pid), older, number)) {
		slots_free_one(&s->processes, number);
		s->refused++;
		return NULL;
	}
	s->recent_processes[pid % RECENT] = NULL;
	return p;
}

struct etw_process *etw_state_process(struct etw_state *s, uint32_t pid, int64_t ticks)
{
	struct etw_process *p = s->recent_processes[pid % RECENT], *ended = NULL;

	/* Not at its end itself, which may be the start of the number's next process. */
	if (p && p->pid == pid && ticks >= p->from && ticks < p->until)
		return p;
	p = process_at(s, latest_process(s, pid));
	for (; p && (ticks < p->from || ticks > p->until); p = process_at(s, p->older))
		if (!ended && p->until < ticks)
			ended = p;
	if (p)
		s->recent_processes[pid % RECENT] = p;
	return p ? p : ended;
}

struct etw_process *etw_state_need_process(struct etw_state *s, uint32_t pid, int64_t ticks)
{
	struct etw_process *p = etw_state_process(s, pid, ticks);

	return p ? p : add_process(s, pid, ETW_ALWAYS, ETW_EVER);
}

/*
 * The process that a start, an end or a snapshot is about. A snapshot or an end of an unknown
 * process means that it existed since the number's previous process ended.
 */
static struct etw_process *process_of_record(struct etw_state *s, uint32_t pid, uint32_t id,
					     int64_t ticks)
{
	struct etw_process *p = process_at(s, latest_process(s, pid));
	bool open = p && p->until == ETW_EVER;

	if (id == ETW_PROCESS_START) {
		if (open)
			p->until = ticks;
		return add_process(s, pid, ticks, ETW_EVER);
	}
	if (id == ETW_PROCESS_DEFUNCT && p)
		return p;
	if (!open)
		p = add_process(s, pid, p ? p->until : ETW_ALWAYS, ETW_EVER);
	if (p && (id == ETW_PROCESS_STOP || id == ETW_PROCESS_DEFUNCT))
		p->until = ticks;
	return p;
}

static void learn_process(struct etw_state *s, const struct etw_record *r,
			  const struct etw_class *class)
{
	struct etw_value v[ETW_CLASS_MAX_FIELDS];
	struct etw_process *p;

	etw_class_read(class, r, v, ETW_CLASS_MAX_FIELDS);
	if (!etw_value_is(&v[AT_PROCESS_EXIT]))
		return;
	p = process_of_record(s, (uint32_t)v[AT_PROCESS_PID].u, class->id, r->ticks);
	if (!p)
		return;
	p->parent = (uint32_t)v[AT_PROCESS_PARENT].u;
	if (class->id == ETW_PROCESS_STOP) {
		p->has_exit = true;
		p->exit_code = (int32_t)v[AT_PROCESS_EXIT].u;
	}
	if (!p->image)
		p->image = etw_keep_text(&s->texts, &v[AT_PROCESS_IMAGE], false);
	if (!p->command_line)
		p->command_line = etw_keep_text(&s->texts, &v[AT_PROCESS_COMMAND_LINE], true);
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool same_tid(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_state *s = ctx;
	const struct etw_thread *t = slots_get(&s->threads, value);

	return t->tid == *(const uint32_t *)key;
}

static uint32_t latest_thread(const struct etw_state *s, uint32_t tid)
{
	return table_find(&s->by_tid, hash_u64(tid), same_tid, s, &tid);
}

static struct etw_thread *thread_at(const struct etw_state *s, uint32_t number)
{
	return number == NONE ? NULL : slots_get(&s->threads, number);
}

static struct etw_thread *add_thread(struct etw_state *s, uint32_t tid, uint32_t pid, int64_t from,
				     int64_t until)
{
	uint32_t older = latest_thread(s, tid), number = slots_add(&s->threads);
	struct etw_thread *t;

	if (number == NONE) {
		s->refused++;
		return NULL;
	}
	t = thread_at(s, number);
	t->tid = tid;
	t->pid = pid;
	t->from = from;
	t->until = until;
	t->older = older;
	if (!link_latest(&s->by_tid, hash_u64(tid), older, number)) {
		slots_free_one(&s->threads, number);
		s->refused++;
		return NULL;
	}
	s->recent_threads[tid % RECENT] = NULL;
	return t;
}

struct etw_thread *etw_state_thread(struct etw_state *s, uint32_t tid, int64_t ticks)
{
	struct etw_thread *t = s->recent_threads[tid % RECENT], *ended = NULL;

	if (t && t->tid == tid && ticks >= t->from && ticks < t->until)
		return t;
	t = thread_at(s, latest_thread(s, tid));
	for (; t && (ticks < t->from || ticks > t->until); t = thread_at(s, t->older))
		if (!ended && t->until < ticks)
			ended = t;
	if (t)
		s->recent_threads[tid % RECENT] = t;
	return t ? t : ended;
}

struct etw_thread *etw_state_need_thread(struct etw_state *s, uint32_t tid, uint32_t pid,
					 int64_t ticks)
{
	struct etw_thread *t = etw_state_thread(s, tid, ticks);

	if (t && t->pid != pid) {
		t = thread_at(s, latest_thread(s, tid));
		while (t && (ticks < t->from || ticks > t->until || t->pid != pid))
			t = thread_at(s, t->older);
	}
	return t ? t : add_thread(s, tid, pid, ETW_ALWAYS, ETW_EVER);
}

static void learn_thread(struct etw_state *s, const struct etw_record *r,
			 const struct etw_class *class)
{
	struct etw_value v[ETW_CLASS_MAX_FIELDS];
	struct etw_thread *t;
	uint32_t tid, pid;
	bool open;

	etw_class_read(class, r, v, ETW_CLASS_MAX_FIELDS);
	if (!etw_value_is(&v[AT_THREAD_TID]))
		return;
	tid = (uint32_t)v[AT_THREAD_TID].u;
	pid = (uint32_t)v[AT_THREAD_PID].u;
	t = thread_at(s, latest_thread(s, tid));
	open = t && t->until == ETW_EVER;
	if (open && (class->id == ETW_THREAD_START || t->pid != pid)) {
		/*
		 * All CPUs' idle threads are thread 0; other threads end before their number is
		 * reused.
		 */
		t->until = r->ticks;
		open = false;
	}
	if (class->id == ETW_THREAD_START)
		t = add_thread(s, tid, pid, r->ticks, ETW_EVER);
	else if (!open)
		t = add_thread(s, tid, pid, t ? t->until : ETW_ALWAYS, ETW_EVER);
	if (!t)
		return;
	if (class->id == ETW_THREAD_STOP)
		t->until = r->ticks;
	if (!t->name && etw_value_is(&v[AT_THREAD_NAME]))
		t->name = etw_keep_text(&s->texts, &v[AT_THREAD_NAME], true);
}

/* ---- names of files -------------------------------------------------------------------------- */

static bool same_key(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_state *s = ctx;
	const struct file *f = slots_get(&s->files, value);

	return f->key == *(const uint64_t *)key;
}

static uint32_t latest_file(const struct etw_state *s, uint64_t key)
{
	return table_find(&s->by_file, hash_u64(key), same_key, s, &key);
}

static struct file *file_at(const struct etw_state *s, uint32_t number)
{
	return number == NONE ? NULL : slots_get(&s->files, number);
}

static struct file *add_file(struct etw_state *s, uint64_t key, const char *path, int64_t from)
{
	uint32_t older = latest_file(s, key), number = slots_add(&s->files);
	struct file *f;

	if (number == NONE) {
		s->refused++;
		return NULL;
	}
	f = file_at(s, number);
	*f = (struct file){key, from, ETW_EVER, path, older};
	if (!link_latest(&s->by_file, hash_u64(key), older, number)) {
		slots_free_one(&s->files, number);
		s->refused++;
		return NULL;
	}
	return f;
}

/* A create gives the key a new name; a delete or a snapshot says its name until then. */
static void learn_file(struct etw_state *s, const struct etw_record *r,
		       const struct etw_class *class)
{
	struct etw_value v[AT_FILE_FIELDS];
	bool created = class->id == ETW_FILE_NAME || class->id == ETW_FILE_CREATE;
	struct file *f;
	const char *path;
	uint64_t key;

	etw_class_read(class, r, v, AT_FILE_FIELDS);
	path = etw_keep_text(&s->texts, &v[AT_FILE_PATH], true);
	if (!path)
		return;
	key = v[AT_FILE_KEY].u;
	f = file_at(s, latest_file(s, key));
	if (!created && f && f->until == ETW_EVER && f->path == path) {
		if (class->id == ETW_FILE_DELETE)
			f->until = r->ticks;
		return;
	}
	if (f && f->until == ETW_EVER)
		f->until = r->ticks;
	f = add_file(s, key, path, created ? r->ticks : f ? f->until : ETW_ALWAYS);
	if (f && class->id == ETW_FILE_DELETE)
		f->until = r->ticks;
}

const char *etw_state_file(const struct etw_state *s, uint64_t key, int64_t ticks)
{
	const struct file *f = file_at(s, latest_file(s, key)), *nearest = NULL;

	for (; f && (ticks < f->from || ticks > f->until); f = file_at(s, f->older))
		if (!nearest || nearest->from > ticks)
			nearest = f;
	f = f ? f : nearest;
	return f ? f->path : NULL;
}

/* ---- volumes --------------------------------------------------------------------------------- */

static void add_volume(struct etw_state *s, const char *nt, const char *dos)
{
	uint32_t i;

	if (!nt || !dos)
		return;
	for (i = 0; i < s->nvolumes; i++)
		if (s->volumes[i].nt == nt && s->volumes[i].dos == dos)
			return;
	if (s->nvolumes == ETW_VOLUMES_MAX)
		s->refused++;
	else
		s->volumes[s->nvolumes++] = (struct volume){nt, dos};
}

static void learn_volume(struct etw_state *s, const struct etw_record *r,
			 const struct etw_class *class)
{
	struct etw_value v[AT_VOLUME_FIELDS];

	etw_class_read(class, r, v, AT_VOLUME_FIELDS);
	add_volume(s, etw_keep_text(&s->texts, &v[AT_VOLUME_NT], true),
		   etw_keep_text(&s->texts, &v[AT_VOLUME_DOS], true));
}

void etw_state_add_volume(struct etw_state *s, const char *nt, const char *dos)
{
	add_volume(s, etw_texts_keep(&s->texts, nt, strlen(nt)),
		   etw_texts_keep(&s->texts, dos, strlen(dos)));
}

/* Case is ignored for ASCII letters; volumes' names have no others. */
static bool starts_with(const char *text, const char *prefix)
{
	while (*prefix && tolower((unsigned char)*text) == tolower((unsigned char)*prefix)) {
		text++;
		prefix++;
	}
	return !*prefix;
}

static size_t put(char *out, size_t n, size_t max, const char *text)
{
	size_t k = strlen(text), left = max - 1 - n;

	if (k > left)
		k = left;
	memcpy(out + n, text, k);
	return n + k;
}

size_t etw_state_path(const struct etw_state *s, const char *path, char *out, size_t max)
{
	size_t n = 0;
	uint32_t i;

	for (i = 0; i < s->nvolumes; i++) {
		if (starts_with(path, s->volumes[i].nt)) {
			n = put(out, 0, max, s->volumes[i].dos);
			path += strlen(s->volumes[i].nt);
			break;
		}
	}
	n = put(out, n, max, path);
	out[n] = '\0';
	return n;
}

/* ---- garbage collections --------------------------------------------------------------------- */

static bool same_runtime(const void *ctx, uint32_t value, const void *key_arg)
{
	const struct etw_state *s = ctx;
	const struct runtime *a = slots_get(&s->runtimes, value), *b = key_arg;

	return a->pid == b->pid && a->clr == b->clr;
}

bool etw_state_gc_twin(struct etw_state *s, const struct etw_record *r,
		       const struct etw_class *class)
{
	struct etw_value v[AT_GC_START_SEQUENCE];
	struct runtime key = {.pid = r->pid};
	struct runtime *last;
	uint64_t hash;
	uint32_t number;
	bool twin;

	etw_class_read(class, r, v, AT_GC_START_SEQUENCE);
	if (!etw_value_is(&v[AT_GC_START_COUNT]))
		return false;
	key.clr = (uint32_t)v[AT_GC_START_CLR].u;
	key.count = (uint32_t)v[AT_GC_START_COUNT].u;
	hash = hash_pair(key.pid, key.clr);
	number = table_find(&s->by_runtime, hash, same_runtime, s, &key);
	if (number != TABLE_NONE) {
		last = slots_get(&s->runtimes, number);
		twin = last->count == key.count;
		*last = key;
		return twin;
	}
	number = slots_add(&s->runtimes);
	if (number == NONE || table_add(&s->by_runtime, hash, number)) {
		if (number != NONE)
			slots_free_one(&s->runtimes, number);
		s->refused++;
		return false;
	}
	*(struct runtime *)slots_get(&s->runtimes, number) = key;
	return false;
}

/* ---- renewing -------------------------------------------------------------------------------- */

#define CHAIN_MAX 64u                        /* kept owners of one number */
#define RENEWED_FILES_MAX 100000u            /* names of more files are dropped */

static const char *keep(struct etw_state *s, const char *text)
{
	return text ? etw_texts_keep(&s->texts, text, strlen(text)) : NULL;
}

/* Added oldest first, so that the table has the latest. */
static void renew_processes(struct etw_state *to, struct etw_process *latest,
			    const struct etw_state *from, int64_t since)
{
	struct etw_process *chain[CHAIN_MAX], *p;
	uint32_t n = 0;

	for (p = latest; p && p->until >= since && n < CHAIN_MAX; p = process_at(from, p->older))
		chain[n++] = p;
	while (n-- > 0) {
		p = add_process(to, chain[n]->pid, chain[n]->from, chain[n]->until);
		if (!p)
			return;
		p->parent = chain[n]->parent;
		p->has_exit = chain[n]->has_exit;
		p->exit_code = chain[n]->exit_code;
		p->image = keep(to, chain[n]->image);
		p->command_line = keep(to, chain[n]->command_line);
		p->model = chain[n]->model;
	}
}

static void renew_threads(struct etw_state *to, struct etw_thread *latest,
			  const struct etw_state *from, int64_t since)
{
	struct etw_thread *chain[CHAIN_MAX], *t;
	uint32_t n = 0;

	for (t = latest; t && t->until >= since && n < CHAIN_MAX; t = thread_at(from, t->older))
		chain[n++] = t;
	while (n-- > 0) {
		t = add_thread(to, chain[n]->tid, chain[n]->pid, chain[n]->from, chain[n]->until);
		if (!t)
			return;
		t->name = keep(to, chain[n]->name);
		t->model = chain[n]->model;
	}
}

static void renew_tables(struct etw_state *to, const struct etw_state *from, int64_t since)
{
	uint32_t i, value;

	for (i = 0; i < from->by_pid.nslots; i++) {
		value = from->by_pid.slots[i].value;
		if (value != TABLE_NONE)
			renew_processes(to, process_at(from, value), from, since);
	}
	for (i = 0; i < from->by_tid.nslots; i++) {
		value = from->by_tid.slots[i].value;
		if (value != TABLE_NONE)
			renew_threads(to, thread_at(from, value), from, since);
	}
	for (i = 0; from->files.used <= RENEWED_FILES_MAX && i < from->by_file.nslots; i++) {
		const struct file *f = file_at(from, from->by_file.slots[i].value);
		const char *path = f && f->until >= since ? keep(to, f->path) : NULL;

		if (path)
			add_file(to, f->key, path, f->from);
	}
}

int etw_state_renew(struct etw_state *old, int64_t since, struct etw_state **out, struct err *err)
{
	struct etw_state *s;
	uint32_t i;
	int rc = etw_state_new(&s, err);

	if (rc)
		return rc;
	for (i = 0; i < old->nvolumes; i++)
		etw_state_add_volume(s, old->volumes[i].nt, old->volumes[i].dos);
	renew_tables(s, old, since);
	*out = s;
	return 0;
}

/* ---- records --------------------------------------------------------------------------------- */

void etw_state_learn(struct etw_state *s, const struct etw_record *r, const struct etw_class *class)
{
	switch (class ? class->id : ETW_OTHER) {
	case ETW_PROCESS_START:
	case ETW_PROCESS_STOP:
	case ETW_PROCESS_DCSTART:
	case ETW_PROCESS_DCSTOP:
	case ETW_PROCESS_DEFUNCT:            /* ended before, but still referenced */
		learn_process(s, r, class);
		break;
	case ETW_THREAD_START:
	case ETW_THREAD_STOP:
	case ETW_THREAD_DCSTART:
	case ETW_THREAD_DCSTOP:
		learn_thread(s, r, class);
		break;
	case ETW_FILE_NAME:
	case ETW_FILE_CREATE:
	case ETW_FILE_DELETE:
	case ETW_FILE_RUNDOWN:
		learn_file(s, r, class);
		break;
	case ETW_VOLUME:
		learn_volume(s, r, class);
		break;
	default:
		break;
	}
}
