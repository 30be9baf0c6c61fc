#include "source/dotnet/streams.h"

#include "base/confined_linux.h"
#include "source/dotnet/nettrace_records.h"

#include <stdlib.h>
#include <string.h>

#define MEMORY_MAX_BYTES ((uint64_t)256 << 20)
#define ANSWER_MAX_NS (5 * NS_PER_SEC)
#define ANSWER_MAX_CPU_NS (200 * NS_PER_MS)  /* blocks of a runtime, under 1 MB, take some ms */
#define USERS 1024u                          /* marks; further users share them */

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

/*
 * The second process is for the users one of whose streams has ended a process: they end each
 * other's streams from then on, and nobody else's.
 */
enum {FOR_ALL, APART, PROCESSES};

struct process_of_streams {
	struct confined confined;
	uint64_t refused_kinds, refused_blocks;      /* by the present one */
};

struct dotnet_streams {
	struct process_of_streams processes[PROCESSES];
	bool apart[USERS];
	uint32_t own_uid;
	struct dotnet_stream *all[DOTNET_STREAMS_MAX];
	struct shares kinds;                 /* of what is kept here */
	uint64_t refused_kinds, refused_blocks, spent_ns;
	struct buf in;
};

struct dotnet_stream {
	struct dotnet_streams *streams;
	struct process_of_streams *process;  /* once it has begun */
	uint32_t slot, uid;
	bool begun;
	struct nettrace_reading reading;
};

/* Root and our own user share it with nobody. */
static bool *mark_of(struct dotnet_streams *s, uint32_t uid)
{
	return &s->apart[uid == 0 ? 0 : uid == s->own_uid ? 1 : 2 + uid % (USERS - 2)];
}

int dotnet_streams_new(uint32_t own_uid, struct dotnet_streams **out, struct err *err)
{
	struct dotnet_streams *s = calloc(1, sizeof(*s));
	unsigned i;

	if (!s)
		return err_memory(err, "for reading events of .NET programs");
	for (i = 0; i < PROCESSES; i++)
		s->processes[i].confined = (struct confined){
			.word = DOTNET_STREAMS_WORD, .reads = "events", .from = "stream",
			.max_ns = ANSWER_MAX_NS, .max_cpu_ns = ANSWER_MAX_CPU_NS, .fd = -1};
	s->own_uid = own_uid;
	shares_init(&s->kinds, NETTRACE_ALL_KINDS_MAX_BYTES, own_uid);
	s->in.max_bytes = NETTRACE_RECORD_MAX_BYTES;
	*out = s;
	return 0;
}

void dotnet_streams_free(struct dotnet_streams *s)
{
	unsigned i;

	if (!s)
		return;
	for (i = 0; i < PROCESSES; i++)
		confined_end(&s->processes[i].confined);
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

	s->spent_ns = confined_cpu_ns(&s->processes[FOR_ALL].confined) +
		      confined_cpu_ns(&s->processes[APART].confined);
	return s->spent_ns > before_ns ? s->spent_ns - before_ns : 0;
}

void dotnet_streams_add_usage(struct dotnet_streams *s, uint64_t *cpu_ns,
			      uint64_t *rss_bytes)
{
	confined_add_usage(&s->processes[FOR_ALL].confined, cpu_ns, rss_bytes);
	confined_add_usage(&s->processes[APART].confined, cpu_ns, rss_bytes);
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

	return confined_ask(&t->process->confined, parts, n ? 2 : 1, -1, err);
}

void dotnet_stream_free(struct dotnet_stream *t)
{
	if (!t)
		return;
	if (t->begun && t->process->confined.fd >= 0)
		ask(t, NULL, 0, NULL);
	nettrace_metas_free(&t->reading.metas);
	t->streams->all[t->slot] = NULL;
	free(t);
}

/*
 * What has come of the answer, and what is complete of it. After an error without the process's
 * death there is more of it.
 */
static int receive_records(struct dotnet_stream *t, uint64_t end_ns, struct nettrace_end *end,
			   bool *ended, nettrace_each *each, void *ctx, struct err *err)
{
	struct dotnet_streams *s = t->streams;
	struct confined *process = &t->process->confined;
	size_t room = NETTRACE_RECORD_MAX_BYTES - s->in.len, got, taken;
	char *to;
	int rc;

	room = room < DOTNET_PORTION_MAX_BYTES ? room : DOTNET_PORTION_MAX_BYTES;
	to = room ? buf_reserve(&s->in, room) : NULL;
	if (!to) {
		confined_end(process);
		return err_memory(err, "for events of a .NET program");
	}
	rc = confined_receive_some(process, to, 1, room, end_ns, &got, err);
	if (rc)
		return rc;
	buf_advance(&s->in, got);
	rc = nettrace_records_take(&t->reading, (const uint8_t *)s->in.data, s->in.len, &taken,
				   end, ended, each, ctx, err);
	if (rc == ERR_FORMAT || (*ended && taken != s->in.len))
		return confined_distrust(process, err);
	s->in.len -= taken;
	memmove(s->in.data, s->in.data + taken, s->in.len);
	return rc;
}

/* A process counts from 0. */
static void count_refused(struct dotnet_stream *t, const struct nettrace_end *end)
{
	struct process_of_streams *p = t->process;

	if (end->refused_kinds < p->refused_kinds || end->refused_blocks < p->refused_blocks)
		p->refused_kinds = p->refused_blocks = 0;
	t->streams->refused_kinds += end->refused_kinds - p->refused_kinds;
	t->streams->refused_blocks += end->refused_blocks - p->refused_blocks;
	p->refused_kinds = end->refused_kinds;
	p->refused_blocks = end->refused_blocks;
}

int dotnet_stream_feed(struct dotnet_stream *t, const void *bytes, size_t n, nettrace_each *each,
		       void *ctx, struct err *err)
{
	struct dotnet_streams *s = t->streams;
	struct nettrace_end end = {.code = 0};
	uint64_t end_ns = os_now_ns() + ANSWER_MAX_NS;
	struct err later;
	bool ended = false;
	int rc;

	if (!n)
		return 0;
	if (!t->begun)
		t->process = &s->processes[*mark_of(s, t->uid) ? APART : FOR_ALL];
	rc = ask(t, bytes, n, err);
	if (rc)
		return rc;
	t->begun = true;
	do {
		int one = receive_records(t, end_ns, &end, &ended, each, ctx, rc ? &later : err);

		rc = rc ? rc : one;
	} while (!ended && t->process->confined.fd >= 0);
	buf_reset(&s->in);
	if (t->process->confined.fd < 0)
		*mark_of(s, t->uid) = true;
	else
		count_refused(t, &end);
	return rc || !end.code ? rc : err_set(err, (enum err_code)end.code, "%s", end.why);
}

const struct nettrace_facts *dotnet_stream_facts(const struct dotnet_stream *t)
{
	return &t->reading.facts;
}
