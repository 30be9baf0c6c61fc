#include "source/dotnet/streams.h"

#include "base/confined_linux.h"
#include "source/dotnet/nettrace_records.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_MAX_BYTES ((uint64_t)256 << 20)
#define ANSWER_MAX_NS (5 * NS_PER_SEC)

struct request {
	uint32_t slot, uid;
	uint32_t begins;                     /* 1: a new stream in this slot */
	uint32_t nbytes;                     /* of it, which follow; 0 = it ends, no answer */
};

/* ---- the process ----------------------------------------------------------------------------- */

struct server {
	struct nettrace_writing all[DOTNET_STREAMS_MAX];
	struct nettrace_shares shares;
	struct buf out;
	uint8_t portion[DOTNET_PORTION_MAX_BYTES];
};

/* A stream that began before this process did has none here, and gets an answer that says so. */
static bool serve_one(struct server *s, const struct request *r)
{
	struct nettrace_writing *w = &s->all[r->slot];

	if (r->begins || !r->nbytes) {
		nettrace_free(w->stream);
		*w = (struct nettrace_writing){
			.send = confined_answer, .out = &s->out, .shares = &s->shares};
	}
	if (!r->nbytes)
		return true;
	if (r->begins && !nettrace_new(&w->stream, NULL))
		nettrace_use_shares(w->stream, &s->shares, r->uid);
	return w->stream ? nettrace_records_write(w, s->portion, r->nbytes)
			 : nettrace_records_refuse(&s->out, confined_answer);
}

int dotnet_streams_serve(void)
{
	struct server *s = calloc(1, sizeof(*s));
	bool goes_on = s != NULL;
	struct request r;

	if (s) {
		shares_init(&s->shares.kinds, NETTRACE_ALL_KINDS_MAX_BYTES, os_uid());
		shares_init(&s->shares.pending, NETTRACE_ALL_PENDING_MAX_BYTES, os_uid());
	}
	if (!s || !confined_begin("recorder-events", MEMORY_MAX_BYTES))
		return CONFINED_NOT;
	while (goes_on && confined_take(&r, sizeof(r), NULL))
		goes_on = r.slot < DOTNET_STREAMS_MAX && r.nbytes <= sizeof(s->portion) &&
			  (!r.nbytes || confined_take(s->portion, r.nbytes, NULL)) &&
			  serve_one(s, &r);
	return 0;
}

/* ---- its owner ------------------------------------------------------------------------------- */

struct dotnet_streams {
	struct confined process;
	struct dotnet_stream *all[DOTNET_STREAMS_MAX];
	struct shares kinds;                 /* of what is kept here */
	uint64_t refused_kinds, refused_blocks, spent_ns;
	struct buf in;
};

struct dotnet_stream {
	struct dotnet_streams *streams;
	uint32_t slot, uid;
	bool begun;
	struct nettrace_reading reading;
};

int dotnet_streams_new(uint32_t own_uid, struct dotnet_streams **out, struct err *err)
{
	struct dotnet_streams *s = calloc(1, sizeof(*s));

	if (!s)
		return err_memory(err, "for reading events of .NET programs");
	s->process = (struct confined){.word = DOTNET_STREAMS_WORD, .reads = "events",
				       .from = "stream", .max_ns = ANSWER_MAX_NS, .fd = -1};
	shares_init(&s->kinds, NETTRACE_ALL_KINDS_MAX_BYTES, own_uid);
	s->in.max_bytes = NETTRACE_RECORD_MAX_BYTES;
	*out = s;
	return 0;
}

void dotnet_streams_free(struct dotnet_streams *s)
{
	if (!s)
		return;
	confined_end(&s->process);
	buf_free(&s->in);
	free(s);
}

void dotnet_streams_refused(const struct dotnet_streams *s, uint64_t *kinds, uint64_t *blocks)
{
	*kinds = s->refused_kinds;
	*blocks = s->refused_blocks;
}

uint64_t dotnet_streams_kind_bytes(const struct dotnet_streams *s)
{
	return s->kinds.used;
}

uint64_t dotnet_streams_spent_ns(struct dotnet_streams *s)
{
	uint64_t before_ns = s->spent_ns;

	s->spent_ns = confined_cpu_ns(&s->process);
	return s->spent_ns > before_ns ? s->spent_ns - before_ns : 0;
}

void dotnet_streams_add_usage(const struct dotnet_streams *s, uint64_t *cpu_ns,
			      uint64_t *rss_bytes)
{
	confined_add_usage(&s->process, cpu_ns, rss_bytes);
}

int dotnet_stream_new(struct dotnet_streams *s, uint32_t uid, struct dotnet_stream **out,
		      struct err *err)
{
	struct dotnet_stream *t = calloc(1, sizeof(*t));
	uint32_t slot;

	for (slot = 0; slot < DOTNET_STREAMS_MAX && s->all[slot]; slot++)
		;
	if (!t)
		return err_memory(err, "for reading events of a .NET program");
	if (slot == DOTNET_STREAMS_MAX) {
		free(t);
		return err_set(err, ERR_LIMIT, "more than %u streams of .NET programs", slot);
	}
	t->streams = s;
	t->slot = slot;
	t->uid = t->reading.metas.share.uid = uid;
	t->reading.metas.shares = &s->kinds;
	*out = s->all[slot] = t;
	return 0;
}

static int ask(struct dotnet_stream *t, const void *bytes, size_t n, struct err *err)
{
	struct request r = {.slot = t->slot, .uid = t->uid, .begins = !t->begun,
			    .nbytes = (uint32_t)n};
	const struct iovec parts[2] = {{&r, sizeof(r)}, {(void *)(uintptr_t)bytes, n}};

	return confined_ask(&t->streams->process, parts, n ? 2 : 1, -1, err);
}

void dotnet_stream_free(struct dotnet_stream *t)
{
	if (!t)
		return;
	if (t->begun && t->streams->process.fd >= 0)
		ask(t, NULL, 0, NULL);
	nettrace_metas_free(&t->reading.metas);
	t->streams->all[t->slot] = NULL;
	free(t);
}

/* What has come of the answer, and what is complete of it. */
static int receive_records(struct dotnet_stream *t, uint64_t end_ns, struct nettrace_end *end,
			   bool *ended, nettrace_each *each, void *ctx, struct err *err)
{
	struct dotnet_streams *s = t->streams;
	size_t room = NETTRACE_RECORD_MAX_BYTES - s->in.len, got, taken;
	char *to;
	int rc;

	room = room < DOTNET_PORTION_MAX_BYTES ? room : DOTNET_PORTION_MAX_BYTES;
	to = room ? buf_reserve(&s->in, room) : NULL;
	if (!to)
		return err_memory(err, "for events of a .NET program");
	rc = confined_receive_some(&s->process, to, 1, room, end_ns, &got, err);
	if (rc)
		return rc;
	buf_advance(&s->in, got);
	rc = nettrace_records_take(&t->reading, (const uint8_t *)s->in.data, s->in.len, &taken,
				   end, ended, each, ctx, err);
	if (rc == ERR_FORMAT || (*ended && taken != s->in.len))
		return confined_distrust(&s->process, err);
	s->in.len -= taken;
	memmove(s->in.data, s->in.data + taken, s->in.len);
	return rc;
}

int dotnet_stream_feed(struct dotnet_stream *t, const void *bytes, size_t n, nettrace_each *each,
		       void *ctx, struct err *err)
{
	struct dotnet_streams *s = t->streams;
	struct nettrace_end end = {.code = 0};
	bool ended = false;
	int rc = n ? ask(t, bytes, n, err) : 0;

	if (rc || !n)
		return rc;
	t->begun = true;
	while (!rc && !ended)
		rc = receive_records(t, os_now_ns() + ANSWER_MAX_NS, &end, &ended, each, ctx, err);
	if (rc && !ended)
		confined_end(&s->process);   /* the next answer would begin in this one's middle */
	buf_reset(&s->in);
	if (rc)
		return rc;
	s->refused_kinds = end.refused_kinds;
	s->refused_blocks = end.refused_blocks;
	return end.code ? err_set(err, (enum err_code)end.code, "%s", end.why) : 0;
}

const struct nettrace_facts *dotnet_stream_facts(const struct dotnet_stream *t)
{
	return &t->reading.facts;
}
