#include "source/dotnet/nettrace_records.h"

#include "base/utf8.h"
#include "source/dotnet/event_queue.h"

#include <stdio.h>

#define SEND_BYTES 65536u
#define PORTION_MAX_BYTES ((size_t)32 << 20)   /* the queue of events holds 16 MB */

enum what { KIND = 1, FACTS, EVENT, END };

struct record {
	uint32_t what, nbytes;
};

struct told_kind {
	uint64_t keywords;
	uint32_t number, event_id, version, level, nfields;
	uint8_t opcode, types[NETTRACE_FIELDS_MAX];
};

struct told_event {
	uint64_t ticks, tid;
	uint32_t kind, cpu, payload_bytes, stack_bytes;
	uint8_t has_activity, has_related;   /* 0 or 1 */
	uint8_t activity[16], related[16];
};

struct told_end {
	struct nettrace_facts facts;
	struct nettrace_end how;
};

/* ---- the writer ------------------------------------------------------------------------------ */

static void put_record(struct buf *out, enum what what, const void *bytes, size_t n, size_t more)
{
	struct record record = {what, (uint32_t)(n + more)};

	buf_put(out, &record, sizeof(record));
	buf_put(out, bytes, n);
}

static void put_kind(struct buf *out, const struct nettrace_meta *m)
{
	struct told_kind kind = {
		.keywords = m->keywords, .number = m->number, .event_id = m->event_id,
		.version = m->version, .level = m->level, .nfields = m->nfields,
		.opcode = m->opcode,
	};
	size_t ntext = strlen(m->provider) + strlen(m->name) + 2;
	uint32_t i;

	for (i = 0; i < m->nfields; i++) {
		kind.types[i] = m->fields[i].type;
		ntext += strlen(m->fields[i].name) + 1;
	}
	put_record(out, KIND, &kind, sizeof(kind), ntext);
	buf_put(out, m->provider, strlen(m->provider) + 1);
	buf_put(out, m->name, strlen(m->name) + 1);
	for (i = 0; i < m->nfields; i++)
		buf_put(out, m->fields[i].name, strlen(m->fields[i].name) + 1);
}

static void put_event(struct buf *out, const struct nettrace_event *e)
{
	struct told_event event = {
		.ticks = e->ticks, .tid = e->tid, .kind = e->meta->number, .cpu = e->cpu,
		.payload_bytes = e->payload_bytes < DOTNET_PAYLOAD_MAX ? e->payload_bytes
								       : DOTNET_PAYLOAD_MAX,
		.stack_bytes = e->stack ? e->stack_bytes : 0,
		.has_activity = e->activity != NULL, .has_related = e->related != NULL,
	};

	if (e->activity)
		memcpy(event.activity, e->activity, 16);
	if (e->related)
		memcpy(event.related, e->related, 16);
	put_record(out, EVENT, &event, sizeof(event), event.payload_bytes + event.stack_bytes);
	buf_put(out, e->payload, event.payload_bytes);
	buf_put(out, e->stack, event.stack_bytes);
}

static bool send_all(struct nettrace_writing *w)
{
	bool sent = !w->out->failed && w->send(w->out->data, w->out->len);

	w->portion_bytes += w->out->len;
	buf_reset(w->out);
	return sent;
}

static void put_facts(struct nettrace_writing *w)
{
	const struct nettrace_facts *facts = nettrace_facts(w->stream);

	if (!w->facts_told && facts->known)
		put_record(w->out, FACTS, facts, sizeof(*facts), 0);
	w->facts_told = facts->known;
}

static int write_event(void *ctx, const struct nettrace_event *e)
{
	struct nettrace_writing *w = ctx;
	const struct nettrace_meta *meta;

	if (w->portion_bytes > PORTION_MAX_BYTES) {
		w->lost++;
		return 0;
	}
	put_facts(w);
	for (; (meta = nettrace_kind(w->stream, w->nkinds)) != NULL; w->nkinds++)
		put_kind(w->out, meta);
	put_event(w->out, e);
	return w->out->len < SEND_BYTES || send_all(w) ? 0 : ERR_STOPPED;
}

bool nettrace_records_write(struct nettrace_writing *w, const void *bytes, size_t n)
{
	struct told_end end = {.how.code = 0};
	struct err err = {0};
	int rc;

	w->portion_bytes = 0;
	rc = nettrace_feed(w->stream, bytes, n, write_event, w, &err);

	if (rc == ERR_STOPPED)
		return false;
	end.facts = *nettrace_facts(w->stream);
	end.facts.lost += w->lost;
	end.how.code = rc;
	end.how.refused_kinds = w->shares->kinds.refused;
	end.how.refused_blocks = w->shares->pending.refused;
	memcpy(end.how.why, err.text, sizeof(end.how.why));
	put_record(w->out, END, &end, sizeof(end), 0);
	return send_all(w);
}

bool nettrace_records_refuse(struct buf *out, bool (*send)(const void *bytes, size_t n))
{
	struct told_end end = {.how.code = ERR_STOPPED};
	struct nettrace_writing w = {.out = out, .send = send};

	snprintf(end.how.why, sizeof(end.how.why),
		 "the process that reads events had to be started again");
	put_record(out, END, &end, sizeof(end), 0);
	return send_all(&w);
}

/* ---- the reader ------------------------------------------------------------------------------ */

/* Looked at as bytes, as a bool that is neither may not be read. */
static bool take_facts(struct nettrace_reading *r, const uint8_t *bytes)
{
	struct nettrace_facts f;

	if (bytes[offsetof(struct nettrace_facts, known)] > 1 ||
	    bytes[offsetof(struct nettrace_facts, ended)] > 1)
		return false;
	memcpy(&f, bytes, sizeof(f));
	if (f.known && !nettrace_facts_are_sound(&f))
		return false;
	if (!f.known && r->facts.known)      /* of a process that was started again */
		return true;
	r->facts = f;
	r->facts.lost += r->dropped;
	return true;
}

static bool is_clean(const uint8_t *text, size_t n)
{
	const char *at = (const char *)text, *end = at + n;
	size_t length;

	for (; at < end; at += length) {
		length = utf8_char(at, end);
		if (!length || (uint8_t)*at < 0x20 || *at == 0x7f)
			return false;
	}
	return true;
}

/* The next text of n bytes at *at, which moves past its NUL; false = there is none. */
static bool take_text(const uint8_t *texts, size_t n, size_t *at, size_t *out)
{
	const uint8_t *nul = *at < n ? memchr(texts + *at, 0, n - *at) : NULL;

	*out = *at;
	if (!nul || !is_clean(texts + *at, (size_t)(nul - texts) - *at))
		return false;
	*at = (size_t)(nul - texts) + 1;
	return true;
}

static int set_bad(struct err *err)
{
	return err_set(err, ERR_FORMAT, "records of a nettrace stream cannot be");
}

static int take_kind(struct nettrace_reading *r, const uint8_t *bytes, size_t n, struct err *err)
{
	struct nettrace_draft d = {0};
	struct told_kind k;
	size_t at = 0;
	bool good;
	int rc;

	if (n < sizeof(k))
		return set_bad(err);
	memcpy(&k, bytes, sizeof(k));
	bytes += sizeof(k);
	n -= sizeof(k);
	good = k.nfields <= NETTRACE_FIELDS_MAX && take_text(bytes, n, &at, &d.provider) &&
	       take_text(bytes, n, &at, &d.name);
	for (; good && d.meta.nfields < k.nfields; d.meta.nfields++) {
		d.types[d.meta.nfields] = k.types[d.meta.nfields];
		good = nettrace_type_is_plain(k.types[d.meta.nfields]) &&
		       take_text(bytes, n, &at, &d.names[d.meta.nfields]);
	}
	if (!good || at != n)
		return set_bad(err);
	d.meta.keywords = k.keywords;
	d.meta.number = k.number;
	d.meta.event_id = k.event_id;
	d.meta.version = k.version;
	d.meta.level = k.level;
	d.meta.opcode = k.opcode;
	d.texts = (struct buf){.data = (char *)(uintptr_t)bytes, .len = n};
	rc = nettrace_metas_put(&r->metas, &d, err);
	r->metas.nrefused += rc != 0;        /* its events are known to have none */
	return rc;
}

static int take_event(struct nettrace_reading *r, const uint8_t *bytes, size_t n,
		      nettrace_each *each, void *ctx, struct err *err)
{
	struct nettrace_event out;
	struct told_event e;

	if (n < sizeof(e))
		return set_bad(err);
	memcpy(&e, bytes, sizeof(e));
	if (!r->facts.known || e.payload_bytes > DOTNET_PAYLOAD_MAX ||
	    e.stack_bytes > NETTRACE_STACK_MAX_BYTES ||
	    n - sizeof(e) != (size_t)e.payload_bytes + e.stack_bytes)
		return set_bad(err);
	out = (struct nettrace_event){
		.meta = nettrace_metas_find(&r->metas, e.kind), .ticks = e.ticks, .tid = e.tid,
		.cpu = e.cpu, .activity = e.has_activity ? e.activity : NULL,
		.related = e.has_related ? e.related : NULL, .payload = bytes + sizeof(e),
		.payload_bytes = e.payload_bytes, .stack_bytes = e.stack_bytes,
		.stack = e.stack_bytes ? bytes + sizeof(e) + e.payload_bytes : NULL,
	};
	if (out.stack)
		out.stack_hash = nettrace_stack_hash(out.stack, out.stack_bytes);
	if (out.meta)
		each(ctx, &out);
	else if (r->metas.nrefused)
		r->dropped++;
	else
		return set_bad(err);
	return 0;
}

static int take_end(struct nettrace_reading *r, const uint8_t *bytes, struct nettrace_end *end,
		    struct err *err)
{
	memcpy(end, bytes + offsetof(struct told_end, how), sizeof(*end));
	end->why[sizeof(end->why) - 1] = '\0';
	return end->code <= 0 && end->code >= ERR_STOPPED &&
	       take_facts(r, bytes + offsetof(struct told_end, facts)) ? 0 : set_bad(err);
}

int nettrace_records_take(struct nettrace_reading *r, const uint8_t *bytes, size_t n, size_t *taken,
			  struct nettrace_end *end, bool *ended, nettrace_each *each, void *ctx,
			  struct err *err)
{
	struct record record;
	int rc = 0, one;

	for (*taken = 0; rc != ERR_FORMAT && n - *taken >= sizeof(record);
	     *taken += record.nbytes) {
		const uint8_t *body = bytes + *taken + sizeof(record);

		memcpy(&record, bytes + *taken, sizeof(record));
		if (record.nbytes > NETTRACE_RECORD_MAX_BYTES - sizeof(record) || *ended)
			return set_bad(err);
		if (record.nbytes > n - *taken - sizeof(record))
			return rc;
		*taken += sizeof(record);
		if (record.what == KIND)
			one = take_kind(r, body, record.nbytes, err);
		else if (record.what == EVENT)
			one = take_event(r, body, record.nbytes, each, ctx, err);
		else if (record.what == FACTS && record.nbytes == sizeof(struct nettrace_facts))
			one = take_facts(r, body) ? 0 : set_bad(err);
		else if (record.what == END && record.nbytes == sizeof(struct told_end))
			one = take_end(r, body, end, err);
		else
			one = set_bad(err);
		*ended = record.what == END;
		rc = rc && one != ERR_FORMAT ? rc : one;
	}
	return rc;
}
