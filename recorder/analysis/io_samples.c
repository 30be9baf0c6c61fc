#include "analysis/io_samples.h"

#include "analysis/leaf.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What tells which beginning an end belongs to. */
enum key { BY_IRP, BY_SECTOR, BY_THREAD };

/* By the names of events; disk: io-bytes and io-time, else file-bytes and file-time. */
static const struct kind {
	const char *provider, *name;         /* provider NULL = of Windows' kernel */
	enum key key;
	bool ends, disk;
	const char *irp;
} kinds[] = {
	{NULL, "DiskIO/ReadInit", BY_IRP, .disk = true, .irp = "Irp"},
	{NULL, "DiskIO/WriteInit", BY_IRP, .disk = true, .irp = "Irp"},
	{NULL, "DiskIO/Read", BY_IRP, .ends = true, .disk = true, .irp = "Irp"},
	{NULL, "DiskIO/Write", BY_IRP, .ends = true, .disk = true, .irp = "Irp"},
	{NULL, "FileIO/Read", BY_IRP, .irp = "IrpPtr"},
	{NULL, "FileIO/Write", BY_IRP, .irp = "IrpPtr"},
	{NULL, "FileIO/OperationEnd", BY_IRP, .ends = true, .irp = "IrpPtr"},
	{"block", "block_rq_issue", BY_SECTOR, .disk = true},
	{"block", "block_rq_complete", BY_SECTOR, .ends = true, .disk = true},
	{"syscalls", "sys_enter_read", BY_THREAD, .ends = false},
	{"syscalls", "sys_enter_write", BY_THREAD, .ends = false},
	{"syscalls", "sys_exit_read", BY_THREAD, .ends = true},
	{"syscalls", "sys_exit_write", BY_THREAD, .ends = true},
};

struct reading {
	struct incident *in;
	const struct kind **of;              /* of each event; NULL = it tells of no I/O */
	struct table begun;                  /* indices of events */
	uint32_t module;
};

/* ---- pairs ----------------------------------------------------------------------------------- */

static const struct kind *kind_of(const struct incident_event *e)
{
	size_t i;

	for (i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (strcmp(e->name, kinds[i].name) == 0 &&
		    (!kinds[i].provider || strcmp(e->provider, kinds[i].provider) == 0))
			return &kinds[i];
	return NULL;
}

/* What both ends of a pair have alike. */
struct pair {
	uint64_t a, b;
	bool disk;
	enum key key;
};

static struct pair pair_of(const struct reading *r, uint32_t event)
{
	const struct incident_event *e = &r->in->events[event];
	struct pair p = {.disk = r->of[event]->disk, .key = r->of[event]->key};

	if (p.key == BY_IRP)
		p.a = incident_field_uint(r->in, e, r->of[event]->irp);
	else if (p.key == BY_THREAD)
		p.a = e->thread;
	if (p.key == BY_SECTOR) {
		p.a = incident_field_uint(r->in, e, "dev");
		p.b = incident_field_uint(r->in, e, "sector");
	}
	return p;
}

static bool same_pair(const void *ctx, uint32_t value, const void *key)
{
	const struct pair *wanted = key, found = pair_of(ctx, value);

	return found.a == wanted->a && found.b == wanted->b && found.disk == wanted->disk &&
	       found.key == wanted->key;
}

/* The beginning that an event ends or, of a new one, whose end is missing. */
static uint32_t take(struct reading *r, const struct pair *p)
{
	uint64_t hash = hash_pair(p->a, p->b);
	uint32_t found = table_find(&r->begun, hash, same_pair, r, p);

	if (found != TABLE_NONE)
		table_remove(&r->begun, hash, found);
	return found;
}

/* ---- samples --------------------------------------------------------------------------------- */

static const char *text_of(const struct incident *in, const struct incident_event *e,
			   const char *name, const char *missing)
{
	const struct event_field *f = incident_field(in, e, name);

	return f && f->type == FIELD_TEXT && *f->v.text ? f->v.text : missing;
}

/* What was done, and where: below the stack of who asked. */
static uint32_t stack_of(struct reading *r, uint32_t begin, uint32_t end)
{
	const struct incident_event *e = &r->in->events[end];
	const struct kind *kind = r->of[end];
	uint32_t stack = begin == TABLE_NONE ? STACK_NONE : r->in->events[begin].stack;
	uint64_t dev = incident_field_uint(r->in, e, "dev");
	char what[FUNCTION_NAME_MAX];

	if (kind->key == BY_SECTOR)
		snprintf(what, sizeof(what), "disk %s",
			 strchr(text_of(r->in, e, "rwbs", ""), 'W') ? "write" : "read");
	else
		snprintf(what, sizeof(what), "%s", kind->key == BY_THREAD || !kind->disk
							   ? r->in->events[begin].name : e->name);
	stack = leaf_add(r->in, r->module, stack, what);
	if (stack == STACK_NONE || kind->key == BY_THREAD)
		return stack;
	if (kind->key == BY_SECTOR)
		snprintf(what, sizeof(what), "device %" PRIu64 ":%" PRIu64, dev >> 20,
			 dev & 0xFFFFF);
	else
		snprintf(what, sizeof(what), "%s", text_of(r->in, kind->disk ? e :
			 &r->in->events[begin], "FileName", "?"));
	return leaf_add(r->in, r->module, stack, what);
}

/* Bytes and ns of what ended; false where that is not told. */
static bool measure(const struct reading *r, uint32_t begin, uint32_t end, uint64_t *bytes,
		    uint64_t *ns)
{
	const struct incident_event *e = &r->in->events[end];
	const struct event_field *f;

	*ns = begin == TABLE_NONE ? 0 : e->time_ns - r->in->events[begin].time_ns;
	if (r->of[end]->key == BY_SECTOR)
		*bytes = incident_field_uint(r->in, e, "nr_sector") * 512;
	else if (r->of[end]->key == BY_THREAD)
		*bytes = incident_field_uint(r->in, e, "ret");
	else if (!r->of[end]->disk)
		*bytes = incident_field_uint(r->in, e, "ExtraInfo");
	else
		*bytes = incident_field_uint(r->in, e, "TransferSize");
	if (r->of[end]->key != BY_IRP || !r->of[end]->disk)
		return begin != TABLE_NONE;
	/* The disk's part, without the queue before it. */
	f = incident_field(r->in, e, "DiskServiceTimeMSec");
	*ns = f && f->type == FIELD_DOUBLE && f->v.d >= 0 && f->v.d < 1e12
		      ? (uint64_t)(f->v.d * 1e6) : 0;
	return true;
}

static int add_ended(struct reading *r, uint32_t begin, uint32_t end)
{
	const struct incident_event *e = &r->in->events[end];
	const struct incident_event *who = begin == TABLE_NONE ? e : &r->in->events[begin];
	struct incident_sample s = {.time_ns = e->time_ns, .thread = who->thread, .cpu = e->cpu,
				    .quality = QUALITY_NONE};
	bool disk = r->of[end]->disk;
	uint64_t bytes, ns;
	int rc = 0;

	if (!measure(r, begin, end, &bytes, &ns))
		return 0;
	s.stack = stack_of(r, begin, end);
	if (s.stack == STACK_NONE)
		return ERR_MEMORY;
	s.stream = disk ? STREAM_IO_BYTES : STREAM_FILE_BYTES;
	s.weight = bytes;
	if (bytes)
		rc = incident_add_sample(r->in, &s);
	s.stream = disk ? STREAM_IO_TIME : STREAM_FILE_TIME;
	s.weight = ns;
	return rc || !ns ? rc : incident_add_sample(r->in, &s);
}

static int add_event(struct reading *r, uint32_t event)
{
	struct pair p = pair_of(r, event);
	uint32_t begun = take(r, &p);

	return r->of[event]->ends ? add_ended(r, begun, event)
				  : table_add(&r->begun, hash_pair(p.a, p.b), event);
}

int io_samples_add(struct incident *in, uint32_t module)
{
	struct reading r = {.in = in, .module = module};
	uint32_t i;
	int rc;

	r.of = calloc((size_t)in->nevents + 1, sizeof(*r.of));
	rc = r.of ? 0 : ERR_MEMORY;
	for (i = 0; !rc && i < in->nevents; i++)
		r.of[i] = kind_of(&in->events[i]);
	for (i = 0; !rc && i < in->nevents; i++)
		rc = r.of[i] ? add_event(&r, i) : 0;
	table_free(&r.begun);
	free(r.of);
	return rc;
}
