#include "source/etw/state.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NONE SLOTS_NONE
#define RECENT 1024u                         /* power of two */

struct file {
	struct etw_life life;
	const char *path;
};

/* All owners of numbers of one kind. */
struct owners {
	struct slots items;                  /* each begins with a struct etw_life */
	struct table latest;                 /* the latest owner of each number */
	/* A cache: a long trace reuses numbers often, and is read in time order. */
	struct etw_life *recent[RECENT];
};

struct volume {
	const char *nt, *dos;
};

struct etw_state {
	struct etw_texts texts;
	struct owners processes, threads, files;
	struct volume volumes[ETW_VOLUMES_MAX];
	uint32_t nvolumes;
	uint64_t refused;
};

static void free_owners(struct owners *o)
{
	slots_free(&o->items);
	table_free(&o->latest);
}

static size_t owners_bytes(const struct owners *o)
{
	return slots_bytes(&o->items) + table_bytes(&o->latest);
}

int etw_state_new(struct etw_state **out, struct err *err)
{
	struct etw_state *s = calloc(1, sizeof(*s));

	if (!s || etw_texts_init(&s->texts) ||
	    slots_init(&s->processes.items, sizeof(struct etw_process), ETW_PROCESSES_MAX) ||
	    slots_init(&s->threads.items, sizeof(struct etw_thread), ETW_THREADS_MAX) ||
	    slots_init(&s->files.items, sizeof(struct file), ETW_FILES_MAX)) {
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
	free_owners(&s->processes);
	free_owners(&s->threads);
	free_owners(&s->files);
	free(s);
}

struct etw_texts *etw_state_texts(struct etw_state *s)
{
	return &s->texts;
}

uint64_t etw_state_refused(const struct etw_state *s, size_t *bytes)
{
	*bytes += sizeof(*s) + etw_texts_bytes(&s->texts) + owners_bytes(&s->processes) +
		  owners_bytes(&s->threads) + owners_bytes(&s->files);
	return s->refused + s->texts.refused;
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

/* ---- owners ---------------------------------------------------------------------------------- */

static bool same_number(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_life *life = slots_get(&((const struct owners *)ctx)->items, value);

	return life->number == *(const uint64_t *)key;
}

static void *owner_at(const struct owners *o, uint32_t i)
{
	return i == NONE ? NULL : slots_get(&o->items, i);
}

static void *latest_owner(const struct owners *o, uint64_t number)
{
	return owner_at(o, table_find(&o->latest, hash_u64(number), same_number, o, &number));
}

/* NULL at the ceiling or without memory. */
static void *add_owner(struct etw_state *s, struct owners *o, uint64_t number, int64_t from,
		       int64_t until)
{
	uint64_t hash = hash_u64(number);
	uint32_t older = table_find(&o->latest, hash, same_number, o, &number);
	uint32_t i = table_add_slot(&o->latest, hash, &o->items, older);
	struct etw_life *life = owner_at(o, i);

	if (!life) {
		s->refused++;
		return NULL;
	}
	*life = (struct etw_life){number, from, until, older};
	o->recent[number % RECENT] = NULL;
	return life;
}

static bool is_alive(const struct etw_life *life, int64_t ticks)
{
	return ticks >= life->from && ticks <= life->until;
}

/* The owner at that time, else the last one that ended before. */
static void *find_owner(struct owners *o, uint64_t number, int64_t ticks)
{
	struct etw_life *life = o->recent[number % RECENT], *ended = NULL;

	/* Not at its end itself, which may be the start of the number's next owner. */
	if (life && life->number == number && ticks >= life->from && ticks < life->until)
		return life;
	life = latest_owner(o, number);
	for (; life && !is_alive(life, ticks); life = owner_at(o, life->older))
		if (!ended && life->until < ticks)
			ended = life;
	if (life)
		o->recent[number % RECENT] = life;
	return life ? life : ended;
}

/* ---- processes ------------------------------------------------------------------------------- */

struct etw_process *etw_state_process(struct etw_state *s, uint32_t pid, int64_t ticks)
{
	return find_owner(&s->processes, pid, ticks);
}

struct etw_process *etw_state_need_process(struct etw_state *s, uint32_t pid, int64_t ticks)
{
	struct etw_process *p = etw_state_process(s, pid, ticks);

	return p ? p : add_owner(s, &s->processes, pid, ETW_ALWAYS, ETW_EVER);
}

int etw_state_root(struct etw_state *s, uint32_t pid, struct err *err)
{
	struct etw_process *p = etw_state_need_process(s, pid, 0);

	if (!p)
		return err_memory(err, "for the processes of a trace");
	p->in_tree = true;
	return 0;
}

/*
 * The process that a start, an end or a snapshot is about. A snapshot or an end of an unknown
 * process means that it existed since the number's previous process ended.
 */
static struct etw_process *process_of_record(struct etw_state *s, uint32_t pid, uint32_t id,
					     int64_t ticks)
{
	struct etw_process *p = latest_owner(&s->processes, pid);
	bool open = p && p->life.until == ETW_EVER;

	if (id == ETW_PROCESS_START) {
		if (open)
			p->life.until = ticks;
		return add_owner(s, &s->processes, pid, ticks, ETW_EVER);
	}
	if (id == ETW_PROCESS_DEFUNCT && p)          /* ended before, but still referenced */
		return p;
	if (!open)
		p = add_owner(s, &s->processes, pid, p ? p->life.until : ETW_ALWAYS, ETW_EVER);
	if (p && (id == ETW_PROCESS_STOP || id == ETW_PROCESS_DEFUNCT))
		p->life.until = ticks;
	return p;
}

static void learn_process(struct etw_state *s, const struct etw_record *r,
			  const struct etw_class *class)
{
	struct etw_value v[AT_PROCESS_FIELDS];
	struct etw_process *p, *parent;

	etw_class_read(class, r, v, AT_PROCESS_FIELDS);
	if (!etw_value_is(&v[AT_PROCESS_EXIT]))
		return;
	p = process_of_record(s, (uint32_t)v[AT_PROCESS_PID].u, class->id, r->ticks);
	if (!p)
		return;
	p->parent = (uint32_t)v[AT_PROCESS_PARENT].u;
	/* Only at its start is that number surely its parent's, which may end and leave it. */
	if (class->id == ETW_PROCESS_START) {
		parent = etw_state_process(s, p->parent, r->ticks);
		p->in_tree = parent && parent->in_tree;
	}
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

static struct etw_thread *add_thread(struct etw_state *s, uint32_t tid, uint32_t pid, int64_t from)
{
	struct etw_thread *t = add_owner(s, &s->threads, tid, from, ETW_EVER);

	if (t)
		t->pid = pid;
	return t;
}

/* From t to older ones: the first that a thread event has named, at this time if it is not 0. */
static struct etw_thread *skip_assumed(struct etw_state *s, struct etw_thread *t, int64_t ticks)
{
	while (t && (t->assumed || (ticks && !is_alive(&t->life, ticks))))
		t = owner_at(&s->threads, t->life.older);
	return t;
}

/*
 * Who writes about others' images at the end of a trace does so in their name: the head has the
 * image's process and the writer's thread. So an assumed thread is the last resort.
 */
struct etw_thread *etw_state_thread(struct etw_state *s, uint32_t tid, int64_t ticks)
{
	struct etw_thread *t = find_owner(&s->threads, tid, ticks), *known;

	if (!t || !t->assumed)
		return t;
	known = skip_assumed(s, latest_owner(&s->threads, tid), ticks);
	return known ? known : t;
}

struct etw_thread *etw_state_need_thread(struct etw_state *s, uint32_t tid, uint32_t pid,
					 int64_t ticks)
{
	struct etw_thread *t = etw_state_thread(s, tid, ticks);

	if (t && t->pid != pid) {
		t = latest_owner(&s->threads, tid);
		while (t && (!is_alive(&t->life, ticks) || t->pid != pid))
			t = owner_at(&s->threads, t->life.older);
	}
	if (!t && (t = add_thread(s, tid, pid, ETW_ALWAYS)) != NULL)
		t->assumed = true;
	return t;
}

static void learn_thread(struct etw_state *s, const struct etw_record *r,
			 const struct etw_class *class)
{
	struct etw_value v[AT_THREAD_FIELDS];
	struct etw_thread *t;
	uint32_t tid, pid;
	bool open;

	etw_class_read(class, r, v, AT_THREAD_FIELDS);
	if (!etw_value_is(&v[AT_THREAD_TID]))
		return;
	tid = (uint32_t)v[AT_THREAD_TID].u;
	pid = (uint32_t)v[AT_THREAD_PID].u;
	t = skip_assumed(s, latest_owner(&s->threads, tid), 0);
	open = t && t->life.until == ETW_EVER;
	if (open && (class->id == ETW_THREAD_START || t->pid != pid)) {
		/* All CPUs' idle threads are thread 0; others end before their tid is reused. */
		t->life.until = r->ticks;
		open = false;
	}
	if (class->id == ETW_THREAD_START)
		t = add_thread(s, tid, pid, r->ticks);
	else if (!open)
		t = add_thread(s, tid, pid, t ? t->life.until : ETW_ALWAYS);
	if (!t)
		return;
	if (class->id == ETW_THREAD_STOP)
		t->life.until = r->ticks;
	if (!t->name && etw_value_is(&v[AT_THREAD_NAME]))
		t->name = etw_keep_text(&s->texts, &v[AT_THREAD_NAME], true);
}

/* ---- names of files and registry keys ------------------------------------------------------- */

static struct file *add_file(struct etw_state *s, uint64_t key, const char *path, int64_t from)
{
	struct file *f = add_owner(s, &s->files, key, from, ETW_EVER);

	if (f)
		f->path = path;
	return f;
}

enum moment { BEGINS, IS_THERE, ENDS };

/* At its beginning a key gets a new name; at its end, or while it is there, it already had it. */
static void learn_name(struct etw_state *s, uint64_t key, const struct etw_value *name,
		       enum moment moment, int64_t ticks)
{
	const char *path = etw_keep_text(&s->texts, name, true);
	struct file *f = latest_owner(&s->files, key);
	bool open = f && f->life.until == ETW_EVER;

	if (!path)
		return;
	if (moment == BEGINS || !open || f->path != path) {
		if (open)
			f->life.until = ticks;
		f = add_file(s, key, path,
			     moment == BEGINS ? ticks : f ? f->life.until : ETW_ALWAYS);
	}
	if (f && moment == ENDS)
		f->life.until = ticks;
}

static void learn_file(struct etw_state *s, const struct etw_record *r,
		       const struct etw_class *class)
{
	struct etw_value v[AT_FILE_FIELDS];

	etw_class_read(class, r, v, AT_FILE_FIELDS);
	learn_name(s, v[AT_FILE_KEY].u, &v[AT_FILE_PATH],
		   class->id == ETW_FILE_NAME || class->id == ETW_FILE_CREATE ? BEGINS
		   : class->id == ETW_FILE_DELETE			      ? ENDS
									      : IS_THERE,
		   r->ticks);
}

static void learn_key(struct etw_state *s, const struct etw_record *r,
		      const struct etw_class *class)
{
	struct etw_value v[AT_KEY_FIELDS];

	etw_class_read(class, r, v, AT_KEY_FIELDS);
	learn_name(s, v[AT_KEY_HANDLE].u, &v[AT_KEY_NAME],
		   class->id == ETW_KEY_CREATE	 ? BEGINS
		   : class->id == ETW_KEY_DELETE ? ENDS
						 : IS_THERE,
		   r->ticks);
}

static void learn_open(struct etw_state *s, const struct etw_record *r,
		       const struct etw_class *class)
{
	struct etw_value v[AT_OPEN_FIELDS];

	etw_class_read(class, r, v, AT_OPEN_FIELDS);
	learn_name(s, v[AT_OPEN_OBJECT].u, &v[AT_OPEN_PATH], BEGINS, r->ticks);
}

static void learn_close(struct etw_state *s, const struct etw_record *r,
			const struct etw_class *class)
{
	struct etw_value v[AT_CLOSE_FIELDS];
	struct file *f;

	etw_class_read(class, r, v, AT_CLOSE_FIELDS);
	f = latest_owner(&s->files, v[AT_CLOSE_OBJECT].u);
	if (f && f->life.until == ETW_EVER)
		f->life.until = r->ticks;
}

const char *etw_state_file(const struct etw_state *s, uint64_t key, int64_t ticks)
{
	const struct file *f = latest_owner(&s->files, key), *nearest = NULL;

	for (; f && !is_alive(&f->life, ticks); f = owner_at(&s->files, f->life.older))
		if (!nearest || nearest->life.from > ticks)
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
	add_volume(s, etw_texts_copy(&s->texts, nt), etw_texts_copy(&s->texts, dos));
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

size_t etw_state_path(const struct etw_state *s, const char *path, char *out, size_t max)
{
	const char *dos = "";
	uint32_t i;
	size_t n;

	for (i = 0; i < s->nvolumes; i++) {
		if (starts_with(path, s->volumes[i].nt)) {
			dos = s->volumes[i].dos;
			path += strlen(s->volumes[i].nt);
			break;
		}
	}
	n = (size_t)snprintf(out, max, "%s%s", dos, path);
	return n < max ? n : max - 1;
}

/* ---- garbage collections --------------------------------------------------------------------- */

bool etw_state_gc_twin(struct etw_state *s, const struct etw_record *r,
		       const struct etw_class *class)
{
	struct etw_process *p = etw_state_need_process(s, r->pid, r->ticks);
	struct etw_value v[AT_GC_START_FIELDS];
	uint32_t clr, i;
	uint64_t count;
	bool twin;

	etw_class_read(class, r, v, AT_GC_START_FIELDS);
	if (!p || !etw_value_is(&v[AT_GC_START_COUNT]))
		return false;
	clr = (uint32_t)v[AT_GC_START_CLR].u;
	count = v[AT_GC_START_COUNT].u + 1;
	i = clr % ETW_RUNTIMES_MAX;
	twin = p->gc[i].clr == clr && p->gc[i].count == count;
	p->gc[i].clr = clr;
	p->gc[i].count = count;
	return twin;
}

/* ---- renewing -------------------------------------------------------------------------------- */

#define CHAIN_MAX 64u                        /* kept owners of one number */
#define RENEWED_FILES_MAX 100000u            /* names of more files are dropped */

static void renew_process(struct etw_state *to, const void *owner)
{
	const struct etw_process *old = owner;
	struct etw_process *p = add_owner(to, &to->processes, old->life.number, old->life.from,
					  old->life.until);

	struct etw_life life;

	if (!p)
		return;
	life = p->life;
	*p = *old;
	p->life = life;
	p->image = etw_texts_copy(&to->texts, old->image);
	p->command_line = etw_texts_copy(&to->texts, old->command_line);
}

static void renew_thread(struct etw_state *to, const void *owner)
{
	const struct etw_thread *old = owner;
	struct etw_thread *t = add_owner(to, &to->threads, old->life.number, old->life.from,
					 old->life.until);

	if (!t)
		return;
	t->pid = old->pid;
	t->name = etw_texts_copy(&to->texts, old->name);
	t->model = old->model;
}

/* Each number's owners since then, oldest first, so that the table gets the latest. */
static void renew_owners(struct etw_state *to, const struct owners *o, int64_t since,
			 void (*renew)(struct etw_state *to, const void *owner))
{
	const struct etw_life *chain[CHAIN_MAX], *life;
	uint32_t i, n;

	for (i = 0; i < o->latest.nslots; i++) {
		life = owner_at(o, o->latest.slots[i].value);
		for (n = 0; life && life->until >= since && n < CHAIN_MAX;
		     life = owner_at(o, life->older))
			chain[n++] = life;
		while (n-- > 0)
			renew(to, chain[n]);
	}
}

static void renew_files(struct etw_state *to, const struct owners *from, int64_t since)
{
	uint32_t i;

	for (i = 0; from->items.used <= RENEWED_FILES_MAX && i < from->latest.nslots; i++) {
		const struct file *f = owner_at(from, from->latest.slots[i].value);
		const char *path = f && f->life.until >= since
					   ? etw_texts_copy(&to->texts, f->path) : NULL;

		if (path)
			add_file(to, f->life.number, path, f->life.from);
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
	renew_owners(s, &old->processes, since, renew_process);
	renew_owners(s, &old->threads, since, renew_thread);
	renew_files(s, &old->files, since);
	*out = s;
	return 0;
}

/* ---- records --------------------------------------------------------------------------------- */

void etw_state_learn(struct etw_state *s, const struct etw_record *r, const struct etw_class *class)
{
	switch (class ? class->topic : ETW_TOPIC_OTHER) {
	case ETW_TOPIC_PROCESS:
		learn_process(s, r, class);
		break;
	case ETW_TOPIC_THREAD:
		learn_thread(s, r, class);
		break;
	case ETW_TOPIC_FILE:
		learn_file(s, r, class);
		break;
	case ETW_TOPIC_OPEN:
		learn_open(s, r, class);
		break;
	case ETW_TOPIC_CLOSE:
		learn_close(s, r, class);
		break;
	case ETW_TOPIC_KEY:
		learn_key(s, r, class);
		break;
	default:
		if (class && class->id == ETW_VOLUME)
			learn_volume(s, r, class);
		break;
	}
}
