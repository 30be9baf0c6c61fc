#include "source/etw/stacks.h"

#include "base/bytes.h"
#include "base/array.h"
#include "base/slots.h"
#include "base/table.h"
#include "source/etw/guids.h"
#include "source/etw/stack_queue.h"
#include "source/etw/stack_store.h"

#include <stdlib.h>
#include <string.h>

#define NONE SLOTS_NONE

/* A part of a stack as it arrives. */
struct fragment {
	uint64_t key;
	const uint8_t *addresses;
	uint32_t n, pointer_bytes;
	bool is_key, whole;                  /* whole: kernel and user part together */
};

struct thread {
	uint32_t tid;
	uint32_t first, last;                /* its pending parts */
	uint64_t runtime[3];                 /* by provider: 1 + last record without a stack */
};

struct pending {
	uint64_t target;
	uint32_t next;
};

struct late {
	uint64_t target, position, key;
	uint32_t stack;
	uint8_t which;
	bool is_key;
};

struct etw_stacks {
	enum etw_stacks_pass pass;
	int64_t wait_ticks, now_ticks;
	struct stack_queue queue;
	bool ended;
	uint32_t os_pointer_bytes;           /* of the system, not of the record's program */
	struct slots threads, pending;
	struct table by_tid;
	struct etw_stack_store *store;
	struct late *late;                   /* sorted by target after the survey */
	uint32_t nlate, max_late, late_at;
	struct etw_stacks_count count;
	struct etw_record out_record;
	struct etw_whole out;
	uint64_t addresses[2 * ETW_STORE_FRAMES_MAX];
};

/* ---- what a record is ------------------------------------------------------------------------ */

static const struct etw_guid runtime_guids[3] = {CLR_GUID, CLR_PRIVATE_GUID, CLR_RUNDOWN_GUID};
static const struct etw_guid user_part_guid = STACK_USER_GUID;

bool etw_is_kernel_address(uint64_t address, uint32_t os_pointer_bytes)
{
	return address >= (os_pointer_bytes == 8 ? 0xFFFF000000000000u : 0x80000000u);
}

/* 0 runtime, 1 private, 2 rundown; 3 = not a provider of the CLR. */
static uint32_t runtime_provider(const struct etw_record *r)
{
	uint32_t i = 0;

	while (i < 3 && !guid_same(&r->guid, &runtime_guids[i]))
		i++;
	return i;
}

/* ---- leaving the queue ----------------------------------------------------------------------- */

static bool may_leave(struct etw_stacks *s)
{
	if (s->queue.first == s->queue.next)
		return false;
	return s->ended || stack_queue_is_full(&s->queue) ||
	       (s->pass == ETW_STACKS_LIVE &&
		stack_queue_known(&s->queue, s->queue.first)->ticks <=
			s->now_ticks - s->wait_ticks);
}

/* ---- threads --------------------------------------------------------------------------------- */

static bool same_tid(const void *ctx, uint32_t value, const void *key)
{
	const struct etw_stacks *s = ctx;

	return ((const struct thread *)slots_get(&s->threads, value))->tid ==
	       *(const uint32_t *)key;
}

static uint32_t thread_number(const struct etw_stacks *s, uint32_t tid)
{
	return table_find(&s->by_tid, hash_u64(tid), same_tid, s, &tid);
}

static struct thread *find_thread(const struct etw_stacks *s, uint32_t tid)
{
	uint32_t number = thread_number(s, tid);

	return number == TABLE_NONE ? NULL : slots_get(&s->threads, number);
}

static struct thread *get_thread(struct etw_stacks *s, uint32_t tid)
{
	struct thread *t = find_thread(s, tid);
	uint32_t number;

	if (t)
		return t;
	number = table_add_slot(&s->by_tid, hash_u64(tid), &s->threads, NONE);
	if (number == NONE) {
		s->count.refused++;
		return NULL;
	}
	t = slots_get(&s->threads, number);
	*t = (struct thread){.tid = tid, .first = NONE, .last = NONE};
	return t;
}

static void push_pending(struct etw_stacks *s, uint32_t tid, uint64_t target)
{
	struct thread *t = get_thread(s, tid);
	uint32_t number = t ? slots_add(&s->pending) : NONE;

	if (number == NONE) {
		s->count.refused += t != NULL;
		return;
	}
	*(struct pending *)slots_get(&s->pending, number) = (struct pending){target, NONE};
	if (t->last == NONE)
		t->first = number;
	else
		((struct pending *)slots_get(&s->pending, t->last))->next = number;
	t->last = number;
}

/* The oldest pending target of a thread. */
static bool pop_pending(struct etw_stacks *s, struct thread *t, uint64_t *target)
{
	struct pending *p;
	uint32_t number = t->first;

	if (number == NONE)
		return false;
	p = slots_get(&s->pending, number);
	*target = p->target;
	t->first = p->next;
	if (t->first == NONE)
		t->last = NONE;
	slots_free_one(&s->pending, number);
	return true;
}

/* A thread started or ended: its pending parts must not get another thread's stack. */
static void forget_thread(struct etw_stacks *s, uint32_t tid)
{
	uint32_t number = thread_number(s, tid);
	struct thread *t;
	uint64_t target;

	if (number == TABLE_NONE)
		return;
	t = slots_get(&s->threads, number);
	while (pop_pending(s, t, &target))
		;
	table_remove(&s->by_tid, hash_u64(tid), number);
	slots_free_one(&s->threads, number);
}

/* ---- binding --------------------------------------------------------------------------------- */

/* Count a part that belongs to no event; in a file, the survey has counted it. */
static void count_orphan(struct etw_stacks *s)
{
	s->count.orphans += s->pass != ETW_STACKS_DELIVER;
}

static void note_late(struct etw_stacks *s, uint64_t target, int which, const struct fragment *f)
{
	if (s->nlate == ETW_STACKS_LATE_MAX || ARRAY_ROOM(s->late, s->max_late, s->nlate + 1)) {
		s->count.refused++;
		return;
	}
	s->late[s->nlate] = (struct late){target,	  s->queue.next - 1, f->key,
					  ETW_STACK_NONE, (uint8_t)which,    f->is_key};
	if (!f->is_key) {
		s->late[s->nlate].stack = etw_stack_keep(s->store, f->addresses, f->n,
							 f->pointer_bytes);
		s->count.refused += s->late[s->nlate].stack == ETW_STACK_NONE;
	}
	s->nlate++;
}

static struct part kept_part(uint32_t stack)
{
	return (struct part){.kind = stack == ETW_STACK_NONE ? PART_NO_KEY : PART_KEPT,
			     .at = stack};
}

static struct part part_of(struct etw_stacks *s, int which, const struct fragment *f)
{
	if (f->is_key)
		return kept_part(
			etw_stack_resolve(s->store, which == KERNEL, f->key, s->queue.next - 1));
	return (struct part){.kind = PART_COPY, .pointer_bytes = (uint8_t)f->pointer_bytes,
			     .n = (uint16_t)f->n,
			     .at = (uint32_t)(f->addresses - (const uint8_t *)s->queue.ring)};
}

/* Bind a part to an event. false = the event has such a part already. */
static bool bind(struct etw_stacks *s, uint64_t target, int which, const struct fragment *f)
{
	struct known *k = stack_queue_known(&s->queue, target);

	if (target >= s->queue.known) {
		if (k->flags & (HAS << which))
			return false;
		k->flags |= (uint16_t)(HAS << which | (f->whole ? HAS << USER : 0));
	}
	if (target < s->queue.first) {
		if (s->pass == ETW_STACKS_SURVEY)
			note_late(s, target, which, f);
		else
			count_orphan(s);
	} else if (s->pass != ETW_STACKS_SURVEY) {
		stack_queue_at(&s->queue, target)->part[which] = part_of(s, which, f);
	}
	return true;
}

static void bind_kernel(struct etw_stacks *s, uint64_t target, uint32_t pid, uint32_t tid,
			const struct fragment *f)
{
	if (!bind(s, target, KERNEL, f) || f->whole || pid == 0 || pid == 4)
		return;
	if (target >= s->queue.known)
		stack_queue_known(&s->queue, target)->flags |= WANTS_USER;
	push_pending(s, tid, target);
}

/* One walk on the return to user mode is the user part of all events since the kernel entry. */
static void bind_user(struct etw_stacks *s, bool has_own, uint64_t own, uint32_t tid,
		      const struct fragment *f)
{
	struct thread *t = find_thread(s, tid);
	uint64_t target;
	bool any = false;

	while (t && pop_pending(s, t, &target)) {
		bind(s, target, USER, f);
		has_own &= target != own;
		any = true;
	}
	if (has_own)
		bind(s, own, USER, f);
	else if (!any)
		count_orphan(s);
}

/* ---- records that are stacks ----------------------------------------------------------------- */

static uint64_t address(const struct fragment *f, uint32_t i)
{
	return le_sized(f->addresses + (size_t)i * f->pointer_bytes, f->pointer_bytes);
}

static bool is_kernel(const struct etw_stacks *s, const struct fragment *f, uint32_t i)
{
	return etw_is_kernel_address(address(f, i), s->os_pointer_bytes);
}

/* Bind a part of the event with this record's ticks, pid and tid. */
static void bind_found(struct etw_stacks *s, const struct etw_record *r, int which,
		       const struct fragment *f)
{
	uint32_t pid = le32(r->payload + 8), tid = le32(r->payload + 12);
	uint64_t own = 0;
	bool found =
		stack_queue_find(&s->queue, (int64_t)le64(r->payload), tid, r->cpu, which, &own);

	if (which == USER)
		bind_user(s, found, own, tid, f);
	else if (found)
		bind_kernel(s, own, pid, tid, f);
	else
		count_orphan(s);
}

/* Opcode 32: ticks, pid, tid, addresses. */
static void put_stack(struct etw_stacks *s, const struct etw_record *r)
{
	struct fragment f = {.pointer_bytes = r->pointer_bytes};
	bool kernel;

	f.addresses = r->payload + 16;
	f.n = (r->payload_bytes - 16) / r->pointer_bytes;
	kernel = is_kernel(s, &f, f.n - 1);
	f.whole = !kernel && is_kernel(s, &f, 0);
	bind_found(s, r, kernel || f.whole ? KERNEL : USER, &f);
}

/* Opcodes 37 and 38: ticks, pid, tid, key. */
static void put_key(struct etw_stacks *s, const struct etw_record *r, int which)
{
	struct fragment f = {.is_key = true, .pointer_bytes = r->pointer_bytes};

	f.key = le_sized(r->payload + 16, r->pointer_bytes);
	bind_found(s, r, which, &f);
}

/* Opcodes 35 and 36: key, addresses. */
static void put_definition(struct etw_stacks *s, const struct etw_record *r)
{
	struct fragment f = {.pointer_bytes = r->pointer_bytes};
	uint32_t stack;

	if (s->pass != ETW_STACKS_SURVEY)
		return;
	if (r->payload_bytes < 2u * r->pointer_bytes) {
		count_orphan(s);
		return;
	}
	f.addresses = r->payload + r->pointer_bytes;
	f.n = r->payload_bytes / r->pointer_bytes - 1;
	stack = etw_stack_keep(s->store, f.addresses, f.n, f.pointer_bytes);
	/*
	 * Defined even if its stack was refused: uses must not get the stack of a later
	 * definition.
	 */
	if (!etw_stack_define(s->store, is_kernel(s, &f, f.n - 1),
			      le_sized(r->payload, f.pointer_bytes), s->queue.next - 1, stack) ||
	    stack == ETW_STACK_NONE)
		s->count.refused++;
}

/* A stack walk of the CLR: two u16, count, addresses. It belongs to the thread's last record. */
static void put_runtime_stack(struct etw_stacks *s, const struct etw_record *r, uint32_t provider)
{
	struct fragment f = {.pointer_bytes = r->pointer_bytes};
	struct thread *t = find_thread(s, r->tid);
	uint64_t target;

	if (r->payload_bytes < 8u + r->pointer_bytes || !t || !t->runtime[provider]) {
		count_orphan(s);
		return;
	}
	f.addresses = r->payload + 8;
	f.n = (r->payload_bytes - 8) / r->pointer_bytes;
	if (le32(r->payload + 4) < f.n)
		f.n = le32(r->payload + 4);
	target = t->runtime[provider] - 1;
	t->runtime[provider] = 0;
	if (bind(s, target, USER, &f) && target >= s->queue.known)
		stack_queue_known(&s->queue, target)->flags |= RUNTIME;
}

static void put_runtime_event(struct etw_stacks *s, const struct etw_record *r, uint32_t provider)
{
	struct thread *t = get_thread(s, r->tid);

	if (t &&
	    !(stack_queue_known(&s->queue, s->queue.next - 1)->flags &
	      (HAS << KERNEL | HAS << USER)))
		t->runtime[provider] = s->queue.next;
}

/* ---- stacks in extended items ---------------------------------------------------------------- */

/* Items 5, 6: match id, addresses; 17, 18: match id, key. */
static bool item_fragment(const struct etw_item *item, struct fragment *f, uint64_t *match)
{
	bool stack = item->type == 5 || item->type == 6, key = item->type == 17 || item->type == 18;

	memset(f, 0, sizeof(*f));
	f->pointer_bytes = item->type == 6 || item->type == 18 ? 8 : 4;
	if ((!stack && !key) || item->nbytes < 8u + f->pointer_bytes)
		return false;
	*match = le64(item->bytes);
	f->is_key = key;
	if (key) {
		f->key = le_sized(item->bytes + 8, f->pointer_bytes);
	} else {
		f->addresses = item->bytes + 8;
		f->n = (item->nbytes - 8u) / f->pointer_bytes;
	}
	return true;
}

static void put_items(struct etw_stacks *s, const struct etw_record *r)
{
	bool is_user_part = guid_same(&r->guid, &user_part_guid) && r->id == 18;
	uint64_t self = s->queue.next - 1, match;
	struct fragment f;
	uint32_t i;

	for (i = 0; i < r->nitems; i++) {
		if (!item_fragment(&r->items[i], &f, &match))
			continue;
		if (is_user_part) {
			bind_user(s, false, 0, r->tid, &f);
		} else if (match || (!f.is_key && is_kernel(s, &f, f.n - 1))) {
			bind_kernel(s, self, r->pid, r->tid, &f);
		} else {
			f.whole = true;      /* with user frames, perhaps below kernel frames */
			bind(s, self, f.is_key ? USER : KERNEL, &f);
		}
	}
}

/* ---- the module ------------------------------------------------------------------------------ */

/* A queued record may be a stack, or say something about other records. */
static void interpret(struct etw_stacks *s, const struct etw_record *r,
		      const struct etw_class *class)
{
	uint32_t provider = r->header == ETW_MANIFEST ? runtime_provider(r) : 3;

	if (r->nitems)
		put_items(s, r);
	switch (class ? class->id : ETW_OTHER) {
	case ETW_STACK:
	case ETW_STACK_KEY_KERNEL:
	case ETW_STACK_KEY_USER:
		if (r->payload_bytes < 16u + r->pointer_bytes)
			count_orphan(s);
		else if (class->id == ETW_STACK)
			put_stack(s, r);
		else
			put_key(s, r, class->id == ETW_STACK_KEY_USER ? USER : KERNEL);
		break;
	case ETW_STACK_KEY_DELETE:
	case ETW_STACK_KEY_RUNDOWN:
		put_definition(s, r);
		break;
	case ETW_CLR_STACK:
		if (provider < 3)
			put_runtime_stack(s, r, provider);
		break;
	case ETW_THREAD_START:
	case ETW_THREAD_STOP:
		forget_thread(s, etw_payload_u32(r, 4));
		break;
	case ETW_HEADER:
		if (etw_payload_u32(r, 44) == 4)
			s->os_pointer_bytes = 4;
		break;
	default:
		if (provider < 3)
			put_runtime_event(s, r, provider);
	}
}

void etw_stacks_put(struct etw_stacks *s, const struct etw_record *record,
		    const struct etw_class *class)
{
	struct etw_record r;
	bool fits;

	memcpy(&r, record, etw_record_bytes(record));
	fits = stack_queue_append(&s->queue, &r, class);

	s->count.refused += !fits && s->pass != ETW_STACKS_DELIVER;
	if (record->ticks > s->now_ticks || s->queue.next == 1)
		s->now_ticks = record->ticks;
	if (fits)
		interpret(s, &r, class);
	while (s->pass == ETW_STACKS_SURVEY && stack_queue_is_full(&s->queue))
		stack_queue_pop(&s->queue, NULL);
}

/* Append a part's addresses to the result; the kernel part comes first. */
static void give_part(struct etw_stacks *s, const struct part *p)
{
	uint32_t n = p->n;

	if (p->kind == PART_KEPT) {
		const uint64_t *kept = etw_stack_kept(s->store, p->at, &n);

		memcpy(s->addresses + s->out.naddresses, kept, n * sizeof(*kept));
	} else if (p->kind == PART_COPY) {
		const uint8_t *at = (const uint8_t *)s->queue.ring + p->at;

		if (n > ETW_STORE_FRAMES_MAX)
			n = ETW_STORE_FRAMES_MAX;
		le_sized_each(at, p->pointer_bytes, n, s->addresses + s->out.naddresses);
	} else {
		n = 0;
	}
	s->out.naddresses += n;
}

static void take_late(struct etw_stacks *s, uint64_t number)
{
	struct queued *h = stack_queue_at(&s->queue, number);

	while (s->late_at < s->nlate && s->late[s->late_at].target < number)
		s->late_at++;
	for (; s->late_at < s->nlate && s->late[s->late_at].target == number; s->late_at++) {
		const struct late *late = &s->late[s->late_at];

		if (h->part[late->which].kind == PART_NONE)
			h->part[late->which] = kept_part(late->stack);
		stack_queue_known(&s->queue, number)->flags |= (uint16_t)(HAS << late->which);
	}
}

static void give_stack(struct etw_stacks *s, const struct queued *h, uint16_t flags)
{
	bool has_user = h->part[USER].kind != PART_NONE || (flags & (HAS << USER));
	bool no_key = h->part[KERNEL].kind == PART_NO_KEY || h->part[USER].kind == PART_NO_KEY;

	s->out.addresses = s->addresses;
	s->out.naddresses = 0;
	s->out.os_pointer_bytes = s->os_pointer_bytes;
	s->out.from_runtime = (flags & RUNTIME) != 0;
	give_part(s, &h->part[KERNEL]);
	give_part(s, &h->part[USER]);
	s->out.state = ETW_STACK_WHOLE;
	if (no_key)
		s->out.state = ETW_STACK_NO_KEY;
	else if (h->part[KERNEL].kind == PART_NONE && h->part[USER].kind == PART_NONE)
		s->out.state = ETW_STACK_ABSENT;
	else if ((flags & WANTS_USER) && !has_user)
		s->out.state = ETW_STACK_NO_USER;
	s->count.unresolved += no_key;
	s->count.no_user += s->out.state == ETW_STACK_NO_USER;
}

const struct etw_whole *etw_stacks_next(struct etw_stacks *s)
{
	uint64_t number = s->queue.first;
	struct queued *h = stack_queue_at(&s->queue, number);

	if (!may_leave(s))
		return NULL;
	take_late(s, number);
	stack_queue_pop(&s->queue, &s->out_record);
	s->out.record = &s->out_record;
	s->out.class = h->class;
	s->out.tid = etw_effective_tid(&s->out_record, h->class);
	give_stack(s, h, stack_queue_known(&s->queue, number)->flags);
	return &s->out;
}

void etw_stacks_end(struct etw_stacks *s)
{
	s->ended = true;
}

void etw_stacks_time(struct etw_stacks *s, int64_t now_ticks)
{
	if (now_ticks > s->now_ticks)
		s->now_ticks = now_ticks;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int init_threads(struct etw_stacks *s)
{
	return slots_init(&s->threads, sizeof(struct thread), ETW_STACKS_THREADS_MAX) ||
	       slots_init(&s->pending, sizeof(struct pending), ETW_STACKS_PENDING_MAX);
}

static void free_threads(struct etw_stacks *s)
{
	slots_free(&s->threads);
	slots_free(&s->pending);
	table_free(&s->by_tid);
}

int etw_stacks_new(enum etw_stacks_pass pass, int64_t ticks_per_sec, struct etw_stacks **out,
		   struct err *err)
{
	struct etw_stacks *s = calloc(1, sizeof(*s));

	if (!s)
		return err_memory(err, "for binding stacks to events");
	s->pass = pass;
	s->queue.survey = pass == ETW_STACKS_SURVEY;
	s->os_pointer_bytes = 8;
	s->wait_ticks = ticks_per_sec / 1000 * ETW_STACKS_WAIT_MS;
	s->store = etw_stack_store_new();
	if (pass != ETW_STACKS_SURVEY)
		s->queue.ring = malloc(QUEUE_RING_BYTES);
	if (!s->store || (pass != ETW_STACKS_SURVEY && !s->queue.ring) || init_threads(s)) {
		etw_stacks_free(s);
		return err_memory(err, "for binding stacks to events");
	}
	*out = s;
	return 0;
}

void etw_stacks_free(struct etw_stacks *s)
{
	if (!s)
		return;
	etw_stack_store_free(s->store);
	free_threads(s);
	free(s->late);
	free(s->queue.ring);
	free(s);
}

static int by_target(const void *a_arg, const void *b_arg)
{
	const struct late *a = a_arg, *b = b_arg;

	if (a->target != b->target)
		return a->target < b->target ? -1 : 1;
	return (a->which > b->which) - (a->which < b->which);
}

int etw_stacks_deliver(struct etw_stacks *s, struct err *err)
{
	uint32_t i;

	s->queue.ring = malloc(QUEUE_RING_BYTES);
	if (!s->queue.ring)
		return err_memory(err, "for binding stacks to events");
	etw_stack_rewind(s->store);
	for (i = 0; i < s->nlate; i++)       /* in the order of their positions */
		if (s->late[i].is_key)
			s->late[i].stack = etw_stack_resolve(s->store, s->late[i].which == KERNEL,
							     s->late[i].key, s->late[i].position);
	if (s->nlate)
		qsort(s->late, s->nlate, sizeof(*s->late), by_target);
	etw_stack_rewind(s->store);
	free_threads(s);
	if (init_threads(s))
		return err_memory(err, "for binding stacks to events");
	s->queue.first = s->queue.next = s->queue.known = 0;
	s->queue.held_bytes = 0;
	s->queue.survey = false;
	s->now_ticks = 0;
	s->pass = ETW_STACKS_DELIVER;
	return 0;
}

const struct etw_stacks_count *etw_stacks_counts(const struct etw_stacks *s)
{
	return &s->count;
}

size_t etw_stacks_bytes(const struct etw_stacks *s)
{
	return sizeof(*s) + (s->queue.ring ? QUEUE_RING_BYTES : 0) + slots_bytes(&s->threads) +
	       slots_bytes(&s->pending) + table_bytes(&s->by_tid) + s->max_late * sizeof(*s->late) +
	       etw_stack_store_bytes(s->store);
}
