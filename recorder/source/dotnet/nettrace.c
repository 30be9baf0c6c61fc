#include "source/dotnet/nettrace_private.h"

#include "base/array.h"
#include "base/varint.h"

#include <stdlib.h>
#include <string.h>

#define TAG_NONE 1
#define TAG_OBJECT 5
#define TAG_END 6
#define NAME_MAX 32u
#define BLOCK_HEADER_MIN 20u
#define BLOCK_IS_SHORT 1u
#define TRACE_BYTES 48u
#define LOST_MAX 1000000000u                 /* a larger gap is not a loss */

enum short_flag {
	HAS_META = 1,
	HAS_CAPTURE = 2,
	HAS_THREAD = 4,
	HAS_STACK = 8,
	HAS_ACTIVITY = 16,
	HAS_RELATED = 32,
	HAS_LENGTH = 128,
};

/* ---- state ----------------------------------------------------------------------------------- */

struct sequence {
	uint64_t thread;
	uint32_t last;
};

struct nettrace {
	struct buf pending;                  /* bytes received and not freed yet */
	size_t used;                         /* how many of them are parsed */
	uint64_t begin;                      /* offset in the stream of the first that is not */
	bool head_read;
	int failed;                          /* ERR_FORMAT or ERR_LIMIT: nothing more is read */
	struct nettrace_facts facts;
	struct nettrace_metas metas;
	struct nettrace_stacks stacks;
	struct shares *pending_shares;       /* NULL = none */
	struct share pending_share;
	struct sequence *sequences;
	uint32_t nsequences, sequences_room;
	uint32_t last_sequence;              /* of the last event */
	struct table by_thread;
};

/* The last event's header; a short header gives only what differs from it. */
struct header {
	uint32_t meta, sequence, cpu, stack, payload_bytes;
	uint64_t capture, thread, ticks;
	const uint8_t *activity, *related;
};

int nettrace_new(struct nettrace **out, struct err *err)
{
	struct nettrace *t = calloc(1, sizeof(*t));

	if (!t)
		return err_memory(err, "for reading events of a .NET program");
	t->pending.max_bytes = NETTRACE_OBJECT_MAX_BYTES + NETTRACE_PORTION_BYTES;
	*out = t;
	return 0;
}

void nettrace_use_shares(struct nettrace *t, struct nettrace_shares *shares, uint32_t uid)
{
	t->pending_shares = &shares->pending;
	t->pending_share = (struct share){.uid = uid};
	t->metas.shares = &shares->kinds;
	t->metas.share = (struct share){.uid = uid};
	t->stacks.shares = &shares->pending;
	t->stacks.share = (struct share){.uid = uid};
}

void nettrace_skip_stacks(struct nettrace *t)
{
	t->stacks.skipped = true;
}

static void free_pending(struct nettrace *t)
{
	size_t max_bytes = t->pending.max_bytes;

	buf_free(&t->pending);
	t->pending.max_bytes = max_bytes;
	t->used = 0;
	if (t->pending_shares)
		shares_hold(t->pending_shares, &t->pending_share, 0);
}

void nettrace_free(struct nettrace *t)
{
	if (!t)
		return;
	nettrace_metas_free(&t->metas);
	nettrace_stacks_free(&t->stacks);
	free_pending(t);
	free(t->sequences);
	table_free(&t->by_thread);
	free(t);
}

const struct nettrace_facts *nettrace_facts(const struct nettrace *t)
{
	return &t->facts;
}

const struct nettrace_meta *nettrace_kind(const struct nettrace *t, uint32_t i)
{
	return i < t->metas.n ? t->metas.all[i] : NULL;
}

bool nettrace_facts_are_sound(const struct nettrace_facts *f)
{
	return f->ticks_per_sec && f->ticks_per_sec <= 1000000000000u &&
	       (f->pointer_bytes == 4 || f->pointer_bytes == 8);
}

/* ---- losses ---------------------------------------------------------------------------------- */

static bool same_thread(const void *ctx, uint32_t value, const void *key)
{
	const struct nettrace *t = ctx;

	return t->sequences[value].thread == *(const uint64_t *)key;
}

/* A thread's last sequence number; NULL beyond the ceiling, where losses are not counted. */
static struct sequence *sequence_of(struct nettrace *t, uint64_t thread)
{
	uint32_t at = t->last_sequence;

	if (at < t->nsequences && t->sequences[at].thread == thread)
		return &t->sequences[at];
	at = table_find(&t->by_thread, hash_u64(thread), same_thread, t, &thread);
	if (at != TABLE_NONE) {
		t->last_sequence = at;
		return &t->sequences[at];
	}
	if (t->nsequences == NETTRACE_THREADS_MAX ||
	    (t->metas.shares &&
	     !shares_take(t->metas.shares, &t->metas.share, NETTRACE_ENTRY_BYTES)) ||
	    ARRAY_ROOM(t->sequences, t->sequences_room, t->nsequences + 1))
		return NULL;
	if (table_add(&t->by_thread, hash_u64(thread), t->nsequences))
		return NULL;
	t->sequences[t->nsequences] = (struct sequence){.thread = thread};
	return &t->sequences[t->nsequences++];
}

/* A thread's sequence number is `now`; `arrived` of its numbers since the last one were read. */
static void advance_sequence(struct nettrace *t, uint64_t thread, uint32_t now, uint32_t arrived)
{
	struct sequence *s = sequence_of(t, thread);
	uint32_t gap;

	if (!s)
		return;
	gap = now - s->last - arrived;
	if (gap < LOST_MAX)
		t->facts.lost += gap;
	s->last = now;
}

static void take_sequence_point(struct nettrace *t, struct nettrace_in *in)
{
	uint32_t n;
	uint64_t thread;

	in_number(in, 8);
	for (n = (uint32_t)in_number(in, 4); n && !in->bad; n--) {
		thread = in_number(in, 8);
		advance_sequence(t, thread, (uint32_t)in_number(in, 4), 0);
	}
}

/* ---- events ---------------------------------------------------------------------------------- */

static inline uint64_t in_varint(struct nettrace_in *in)
{
	uint64_t v = 0;

	if (in->at < in->end && *in->at < 0x80)      /* most are */
		return *in->at++;
	if (!varint_get(&in->at, in->end, &v)) {
		in->bad = true;
		in->at = in->end;
		return 0;
	}
	return v;
}

static void take_short_header(struct header *h, struct nettrace_in *in)
{
	unsigned flags = (unsigned)in_number(in, 1);

	if (flags & HAS_META)
		h->meta = (uint32_t)in_varint(in);
	if (flags & HAS_CAPTURE) {
		h->sequence += (uint32_t)in_varint(in);
		h->capture = in_varint(in);
		h->cpu = (uint32_t)in_varint(in);
	}
	h->sequence += h->meta != 0;
	if (flags & HAS_THREAD)
		h->thread = in_varint(in);
	if (flags & HAS_STACK)
		h->stack = (uint32_t)in_varint(in);
	h->ticks += in_varint(in);
	if (flags & HAS_ACTIVITY)
		h->activity = in_bytes(in, 16);
	if (flags & HAS_RELATED)
		h->related = in_bytes(in, 16);
	if (flags & HAS_LENGTH)
		h->payload_bytes = (uint32_t)in_varint(in);
}

static void take_long_header(struct header *h, struct nettrace_in *in)
{
	in_number(in, 4);                    /* its length, which is constant */
	h->meta = (uint32_t)in_number(in, 4) & 0x7fffffff;
	h->sequence = (uint32_t)in_number(in, 4);
	h->thread = in_number(in, 8);
	h->capture = in_number(in, 8);
	h->cpu = (uint32_t)in_number(in, 4);
	h->stack = (uint32_t)in_number(in, 4);
	h->ticks = in_number(in, 8);
	h->activity = in_bytes(in, 16);
	h->related = in_bytes(in, 16);
	h->payload_bytes = (uint32_t)in_number(in, 4);
}

static const uint8_t *unless_zero(const uint8_t *guid)
{
	static const uint8_t zero[16];

	return guid && memcmp(guid, zero, 16) != 0 ? guid : NULL;
}

static int set_damaged(struct nettrace *t, const char *what, struct err *err)
{
	t->failed = ERR_FORMAT;
	return err_set(err, ERR_FORMAT, "a nettrace stream is damaged %s byte %llu", what,
		       (unsigned long long)t->begin);
}

static int deliver_event(struct nettrace *t, const struct header *h, const uint8_t *payload,
			 nettrace_each *each, void *ctx, struct err *err)
{
	struct nettrace_meta *meta = nettrace_metas_find(&t->metas, h->meta);
	struct nettrace_event e;
	int rc;

	advance_sequence(t, h->capture, h->sequence, 1);
	if (meta && meta->dull)
		return 0;
	if (!meta && t->metas.nrefused) {
		t->facts.lost++;
		return 0;
	}
	if (!meta)
		return set_damaged(t, "by an event of an unknown kind after", err);
	e = (struct nettrace_event){
		.meta = meta, .ticks = h->ticks, .tid = h->thread, .cpu = h->cpu,
		.activity = unless_zero(h->activity), .related = unless_zero(h->related),
		.payload = payload, .payload_bytes = h->payload_bytes,
	};
	e.stack = nettrace_stacks_get(&t->stacks, h->stack, &e.stack_bytes, &e.stack_hash);
	rc = each(ctx, &e);
	meta->dull = rc == NETTRACE_DULL;
	return meta->dull ? 0 : rc;
}

static int take_events(struct nettrace *t, struct nettrace_in *in, bool metadata,
		       nettrace_each *each, void *ctx, struct err *err)
{
	const uint8_t *begin = in->at, *payload;
	unsigned n = (unsigned)in_number(in, 2), flags = (unsigned)in_number(in, 2);
	struct header h = {.cpu = UINT32_MAX};
	int rc = 0;

	if (n < BLOCK_HEADER_MIN || !in_bytes(in, n - 4))
		return set_damaged(t, "in a block after", err);
	while (!rc && in->at < in->end) {
		if (flags & BLOCK_IS_SHORT)
			take_short_header(&h, in);
		else
			take_long_header(&h, in);
		payload = in_bytes(in, h.payload_bytes);
		if (in->bad)
			return set_damaged(t, "in an event after", err);
		if (metadata || !h.meta)
			rc = nettrace_metas_add(&t->metas, payload, h.payload_bytes, err);
		else
			rc = deliver_event(t, &h, payload, each, ctx, err);
		while (!(flags & BLOCK_IS_SHORT) && in->at < in->end && (in->at - begin) % 4)
			in->at++;
	}
	t->facts.refused_kinds = t->metas.nrefused;
	if (rc == ERR_FORMAT || rc == ERR_LIMIT)
		t->failed = rc;
	return rc;
}

/* ---- objects --------------------------------------------------------------------------------- */

static int take_trace(struct nettrace *t, struct nettrace_in *in, struct err *err)
{
	struct nettrace_facts f = t->facts;
	unsigned i;

	for (i = 0; i < 8; i++)
		f.utc[i] = (uint16_t)in_number(in, 2);
	f.ticks = in_number(in, 8);
	f.ticks_per_sec = in_number(in, 8);
	f.pointer_bytes = (uint32_t)in_number(in, 4);
	f.pid = (uint32_t)in_number(in, 4);
	f.ncpus = (uint32_t)in_number(in, 4);
	in_number(in, 4);
	if (!nettrace_facts_are_sound(&f))
		return set_damaged(t, "in its first object, after", err);
	f.known = true;
	t->facts = f;
	return 0;
}

static bool is_named(const uint8_t *name, uint32_t n, const char *wanted)
{
	return strlen(wanted) == n && memcmp(name, wanted, n) == 0;
}

static int take_body(struct nettrace *t, const uint8_t *name, uint32_t n, struct nettrace_in *in,
		     nettrace_each *each, void *ctx, struct err *err)
{
	if (is_named(name, n, "Trace"))
		return take_trace(t, in, err);
	if (!t->facts.known)
		return set_damaged(t, "(events before the Trace object) after", err);
	if (is_named(name, n, "EventBlock"))
		return take_events(t, in, false, each, ctx, err);
	if (is_named(name, n, "MetadataBlock"))
		return take_events(t, in, true, each, ctx, err);
	if (is_named(name, n, "StackBlock") && nettrace_stacks_take(&t->stacks, in))
		return set_damaged(t, "in a block of stacks after", err);
	if (is_named(name, n, "SPBlock")) {
		take_sequence_point(t, in);
		nettrace_stacks_forget(&t->stacks);
	}
	return 0;                            /* objects of later versions */
}

/* Take the first pending object: 1 and its length, 0 when it is incomplete, or an error. */
static int take_object(struct nettrace *t, size_t *length, nettrace_each *each, void *ctx,
		       struct err *err)
{
	const uint8_t *first = (const uint8_t *)t->pending.data + t->used, *name;
	struct nettrace_in in = {.at = first,
				 .end = (const uint8_t *)t->pending.data + t->pending.len};
	struct nettrace_in body;
	uint32_t nname, nbody = TRACE_BYTES;
	int rc;

	if (in.at < in.end && *in.at == TAG_NONE) {
		t->facts.ended = true;
		*length = 1;
		return 1;
	}
	if (in.end - in.at < 15)
		return 0;
	if (in_number(&in, 3) != (TAG_OBJECT | TAG_OBJECT << 8 | TAG_NONE << 16))
		return set_damaged(t, "at", err);
	in_bytes(&in, 8);
	nname = (uint32_t)in_number(&in, 4);
	if (!nname || nname > NAME_MAX)
		return set_damaged(t, "at", err);
	name = in_bytes(&in, nname);
	if (in_number(&in, 1) != TAG_END && !in.bad)
		return set_damaged(t, "at", err);
	if (!in.bad && !is_named(name, nname, "Trace")) {
		nbody = (uint32_t)in_number(&in, 4);
		if (!in.bad && nbody > NETTRACE_OBJECT_MAX_BYTES)
			return set_damaged(t, "(a block is too long) after", err);
		in_bytes(&in, (4 - (t->begin + (uint64_t)(in.at - first)) % 4) % 4);
	}
	body = (struct nettrace_in){.at = in.at, .end = in.at};
	if (!in.bad && in_bytes(&in, nbody))
		body.end = in.at;
	if (in_number(&in, 1) != TAG_END && !in.bad)
		return set_damaged(t, "in an object after", err);
	if (in.bad)
		return 0;
	*length = (size_t)(in.at - first);
	rc = take_body(t, name, nname, &body, each, ctx, err);
	return rc ? rc : 1;
}

static int take_head(struct nettrace *t, size_t *length, struct err *err)
{
	static const char head[] = "Nettrace\x14\0\0\0!FastSerialization.1";
	size_t n = sizeof(head) - 1, have = t->pending.len < n ? t->pending.len : n;

	if (have && memcmp(t->pending.data, head, have) != 0) {
		t->failed = ERR_FORMAT;
		return err_set(err, ERR_FORMAT, "not a nettrace stream of version 4%s",
			       have > 8 && memcmp(t->pending.data, head, 8) == 0
				       ? " but of a later one"
				       : "");
	}
	if (have < n)
		return 0;
	t->head_read = true;
	*length = n;
	return 1;
}

/* ---- bytes that wait for the rest of their object -------------------------------------------- */

static int put_pending(struct nettrace *t, const void *bytes, size_t n, struct err *err)
{
	size_t need = t->pending.len + n;

	/* A buffer grows by half of its size. */
	if (t->pending_shares && need >= t->pending.cap &&
	    !shares_hold(t->pending_shares, &t->pending_share, need + need / 2 + 128)) {
		t->failed = ERR_LIMIT;
		return err_set(err, ERR_LIMIT,
			       "its blocks of events exceed its share of the memory for .NET "
			       "programs");
	}
	buf_put(&t->pending, bytes, n);
	if (t->pending.failed)
		return err_memory(err, "for events of a .NET program");
	if (t->pending_shares)
		shares_hold(t->pending_shares, &t->pending_share, t->pending.cap);
	return 0;
}

/* Drop what is parsed; with a share, a buffer that is mostly empty is made smaller. */
static void trim_pending(struct nettrace *t)
{
	char *smaller;

	t->pending.len -= t->used;
	memmove(t->pending.data, t->pending.data + t->used, t->pending.len);
	t->used = 0;
	if (!t->pending_shares || t->pending.len >= t->pending.cap / 4)
		return;
	if (!t->pending.len) {
		free_pending(t);
		return;
	}
	smaller = realloc(t->pending.data, t->pending.len + 1);
	if (!smaller)
		return;
	t->pending.data = smaller;
	t->pending.cap = t->pending.len + 1;
	shares_hold(t->pending_shares, &t->pending_share, t->pending.cap);
}

/* Take the objects that are pending whole. */
static int take_objects(struct nettrace *t, nettrace_each *each, void *ctx, struct err *err)
{
	size_t length = 0;
	int rc;

	do {
		rc = t->head_read ? take_object(t, &length, each, ctx, err)
				  : take_head(t, &length, err);
		t->used += rc == 1 ? length : 0;
		t->begin += rc == 1 ? length : 0;
	} while (rc == 1 && !t->facts.ended && t->used < t->pending.len);
	if (!rc || rc == 1)
		trim_pending(t);
	return rc == 1 ? 0 : rc;
}

static int set_failed_before(struct nettrace *t, struct err *err)
{
	return err_set(err, (enum err_code)t->failed, "a nettrace stream was damaged before");
}

char *nettrace_room(struct nettrace *t)
{
	return buf_reserve(&t->pending, NETTRACE_PORTION_BYTES);
}

int nettrace_read(struct nettrace *t, size_t n, nettrace_each *each, void *ctx, struct err *err)
{
	int rc;

	if (t->failed)
		return set_failed_before(t, err);
	buf_advance(&t->pending, n);
	rc = take_objects(t, each, ctx, err);
	if (t->failed)
		free_pending(t);
	return rc;
}

int nettrace_feed(struct nettrace *t, const void *bytes, size_t n, nettrace_each *each, void *ctx,
		  struct err *err)
{
	size_t done = 0, portion;
	int rc = 0;

	if (t->failed)
		return set_failed_before(t, err);
	while (!rc && !t->facts.ended && done < n) {
		/* In portions, so that at most one object and one portion are kept. */
		portion = n - done < NETTRACE_PORTION_BYTES ? n - done : NETTRACE_PORTION_BYTES;
		rc = put_pending(t, (const char *)bytes + done, portion, err);
		done += portion;
		if (!rc)
			rc = take_objects(t, each, ctx, err);
	}
	if (t->failed)
		free_pending(t);
	return rc;
}
