/*
 * A SQLite database of plain rows, for queries: the incident's head as keys and values, processes,
 * threads, frames, stacks, samples of all streams, events and counters. Times are ns from the
 * window's start. The database is made in memory and written as one file.
 */
#include "export/event_json.h"
#include "export/names.h"

#include "export/export.h"

#include <sqlite3.h>
#include <stdio.h>
#include <string.h>

static const char schema[] =
	"PRAGMA page_size = 4096;"
	"PRAGMA secure_delete = ON;"         /* zero free space, so that bytes are equal */
	"CREATE TABLE incident(key TEXT PRIMARY KEY, value);"
	"CREATE TABLE process(id INTEGER PRIMARY KEY, pid INT, parent_pid INT, name TEXT, "
		"cmdline TEXT, cgroup TEXT, container TEXT, unit TEXT, pod TEXT, service TEXT);"
	"CREATE TABLE thread(id INTEGER PRIMARY KEY, process INT, tid INT, name TEXT);"
	"CREATE TABLE frame(id INTEGER PRIMARY KEY, module TEXT, function TEXT, address INT, "
		"offset INT, kernel INT, inlined INT, jitted INT, file TEXT, line INT, code TEXT);"
	"CREATE TABLE stack(id INTEGER PRIMARY KEY, caller INT, frame INT);"
	"CREATE TABLE sample(t_ns INT, stream TEXT, weight INT, thread INT, cpu INT, stack INT, "
		"quality TEXT);"
	"CREATE TABLE event(t_ns INT, kind TEXT, provider TEXT, name TEXT, thread INT, cpu INT, "
		"stack INT, value REAL, payload TEXT);"
	"CREATE TABLE counter(t_ns INT, name TEXT, value REAL);"
	"CREATE VIEW v_sample AS SELECT sample.t_ns, stream, weight, process.name AS process, pid, "
		"thread.name AS thread, tid, cpu, frame.module, frame.function, quality "
		"FROM sample "
		"LEFT JOIN thread ON thread.id = sample.thread "
		"LEFT JOIN process ON process.id = thread.process "
		"LEFT JOIN stack ON stack.id = sample.stack "
		"LEFT JOIN frame ON frame.id = stack.frame;";

struct flat {
	const struct incident *in;
	sqlite3 *db;
	sqlite3_stmt *row;
	int column;                          /* the last that was bound */
	int failed;                          /* an SQLite code */
};

static void begin(struct flat *f, const char *sql)
{
	if (!f->failed)
		f->failed = sqlite3_prepare_v2(f->db, sql, -1, &f->row, NULL);
}

static void end(struct flat *f)
{
	sqlite3_finalize(f->row);
	f->row = NULL;
}

static void put_int(struct flat *f, int64_t v)
{
	if (!f->failed)
		f->failed = sqlite3_bind_int64(f->row, ++f->column, v);
}

/* An index, or NULL for none. */
static void put_ref(struct flat *f, uint32_t v)
{
	if (v == UINT32_MAX)
		f->column++;
	else
		put_int(f, v);
}

static void put_num(struct flat *f, double v)
{
	if (!f->failed)
		f->failed = sqlite3_bind_double(f->row, ++f->column, v);
}

/* A cleaned text; NULL stays NULL. */
static void put_text(struct flat *f, const char *text)
{
	struct buf clean = {0};

	++f->column;
	if (!text || f->failed)
		return;
	name_put(&clean, text);
	f->failed = clean.failed ? SQLITE_NOMEM :
		    sqlite3_bind_text(f->row, f->column, buf_text(&clean), (int)clean.len,
				      SQLITE_TRANSIENT);
	buf_free(&clean);
}

/* A text of the program itself: clean, and never freed. */
static void put_constant(struct flat *f, const char *text)
{
	if (!f->failed)
		f->failed = sqlite3_bind_text(f->row, ++f->column, text, -1, SQLITE_STATIC);
}

static void put_row(struct flat *f)
{
	if (!f->failed && sqlite3_step(f->row) != SQLITE_DONE)
		f->failed = sqlite3_errcode(f->db);
	if (f->row) {                                /* NULL when it could not be prepared */
		sqlite3_reset(f->row);
		sqlite3_clear_bindings(f->row);
	}
	f->column = 0;
}

static void put_fact(struct flat *f, const char *key, const char *text, int64_t number)
{
	put_text(f, key);
	if (text)
		put_text(f, text);
	else
		put_int(f, number);
	put_row(f);
}

static void put_head(struct flat *f)
{
	const struct incident_head *h = &f->in->head;

	begin(f, "INSERT INTO incident VALUES(?, ?)");
	put_fact(f, "id", NULL, h->id);
	put_fact(f, "uuid", h->uuid, 0);
	put_fact(f, "state", incident_state_text(h->state), 0);
	put_fact(f, "host", h->host ? h->host : "", 0);
	put_fact(f, "rule", h->rule ? h->rule : "", 0);
	put_fact(f, "reason", h->reason ? h->reason : "", 0);
	put_fact(f, "trigger_wall_ns", NULL, (int64_t)h->trigger_wall_ns);
	put_fact(f, "trigger_ns", NULL, (int64_t)(h->trigger_ns - h->t0_ns));
	put_fact(f, "window_ns", NULL, (int64_t)(h->t1_ns - h->t0_ns));
	put_fact(f, "cpu_period_ns", NULL, (int64_t)h->period_ns[STREAM_CPU]);
	put_fact(f, "lost", NULL, (int64_t)h->lost);
	put_fact(f, "flooded", NULL, (int64_t)h->lost_by_kind[LOSS_FLOOD]);
	end(f);
}

/* NULL where it is not known. */
static void put_home(struct flat *f, const char *text)
{
	size_t n = home_cgroup_bytes(text);
	char cgroup[HOME_TEXT_MAX + 1];
	struct home home;
	unsigned key;

	home_read(text, &home);
	snprintf(cgroup, sizeof(cgroup), "%.*s", (int)n, text);
	put_text(f, *cgroup ? cgroup : NULL);
	for (key = HOME_NONE + 1; key < HOME_KEYS; key++)
		put_text(f, *home.of[key] ? home.of[key] : NULL);
}

static void put_who(struct flat *f)
{
	uint32_t i;

	begin(f, "INSERT INTO process VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	for (i = 0; i < f->in->nprocesses && !f->failed; i++) {
		put_int(f, i);
		put_int(f, f->in->processes[i].pid);
		put_int(f, f->in->processes[i].parent_pid);
		put_text(f, f->in->processes[i].name);
		put_text(f, f->in->processes[i].cmdline);
		put_home(f, f->in->processes[i].home);
		put_row(f);
	}
	end(f);
	begin(f, "INSERT INTO thread VALUES(?, ?, ?, ?)");
	for (i = 0; i < f->in->nthreads && !f->failed; i++) {
		put_int(f, i);
		put_int(f, f->in->threads[i].process);
		put_int(f, f->in->threads[i].tid);
		put_text(f, f->in->threads[i].name);
		put_row(f);
	}
	end(f);
}

static void put_stacks(struct flat *f)
{
	uint32_t i;

	begin(f, "INSERT INTO frame VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
	for (i = 0; i < f->in->nframes && !f->failed; i++) {
		const struct incident_frame *frame = &f->in->frames[i];

		put_int(f, i);
		put_text(f, incident_frame_module(f->in, i));
		put_text(f, frame->function);
		put_int(f, (int64_t)frame_address(f->in, i));
		put_int(f, (int64_t)frame_offset(f->in, i));
		put_int(f, (frame->flags & FRAME_KERNEL) != 0);
		put_int(f, (frame->flags & FRAME_INLINED) != 0);
		put_int(f, (frame->flags & FRAME_JIT) != 0);
		put_text(f, frame->file);
		put_int(f, frame->line);
		put_text(f, code_kind_text(incident_frame_code(f->in, i)));
		put_row(f);
	}
	end(f);
	begin(f, "INSERT INTO stack VALUES(?, ?, ?)");
	for (i = 0; i < f->in->nstacks && !f->failed; i++) {
		put_int(f, i);
		put_ref(f, f->in->stacks[i].parent);
		put_int(f, f->in->stacks[i].frame);
		put_row(f);
	}
	end(f);
}

static void put_samples(struct flat *f)
{
	uint32_t i;

	begin(f, "INSERT INTO sample VALUES(?, ?, ?, ?, ?, ?, ?)");
	for (i = 0; i < f->in->nsamples && !f->failed; i++) {
		const struct incident_sample *s = &f->in->samples[i];

		put_int(f, (int64_t)(s->time_ns - f->in->head.t0_ns));
		put_constant(f, stream_text(s->stream));
		put_int(f, (int64_t)s->weight);
		put_ref(f, s->thread);
		put_ref(f, s->cpu == CPU_NONE ? UINT32_MAX : s->cpu);
		put_ref(f, s->stack);
		put_constant(f, stack_quality_text(s->quality));
		put_row(f);
	}
	end(f);
}

static void put_event(struct flat *f, const struct incident_event *e)
{
	struct buf payload = {0};
	struct json j = {.out = &payload};

	event_json_fields(&j, f->in->fields + e->first_field, e->nfields, 0);
	put_int(f, (int64_t)(e->time_ns - f->in->head.t0_ns));
	put_constant(f, event_kind_text(e->kind));
	put_text(f, e->provider);
	put_text(f, e->name);
	put_ref(f, e->thread);
	put_ref(f, e->cpu == CPU_NONE ? UINT32_MAX : e->cpu);
	put_ref(f, e->stack);
	put_num(f, e->value);
	if (!f->failed)
		f->failed = payload.failed ? SQLITE_NOMEM :
			    sqlite3_bind_text(f->row, ++f->column, buf_text(&payload),
					      (int)payload.len, SQLITE_TRANSIENT);
	put_row(f);
	buf_free(&payload);
}

static void put_events(struct flat *f)
{
	uint32_t i;

	begin(f, "INSERT INTO event VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
	for (i = 0; i < f->in->nevents && !f->failed; i++) {
		if (f->in->events[i].kind != EVENT_COUNTER)
			put_event(f, &f->in->events[i]);
	}
	end(f);
	begin(f, "INSERT INTO counter VALUES(?, ?, ?)");
	for (i = 0; i < f->in->nevents && !f->failed; i++) {
		const struct incident_event *e = &f->in->events[i];

		if (e->kind != EVENT_COUNTER)
			continue;
		put_int(f, (int64_t)(e->time_ns - f->in->head.t0_ns));
		put_text(f, e->name);
		if (!(e->flags & EVENT_FLAG_ABSENT))
			put_num(f, e->value);
		put_row(f);
	}
	end(f);
}

static void put_all(struct flat *f)
{
	f->failed = sqlite3_open(":memory:", &f->db);
	if (!f->failed)
		f->failed = sqlite3_exec(f->db, schema, NULL, NULL, NULL);
	if (!f->failed)
		f->failed = sqlite3_exec(f->db, "BEGIN", NULL, NULL, NULL);
	put_head(f);
	put_who(f);
	put_stacks(f);
	put_samples(f);
	put_events(f);
	if (!f->failed)
		f->failed = sqlite3_exec(f->db, "COMMIT", NULL, NULL, NULL);
}

static int flat_write(const struct incident *in, const struct export_options *opt,
		      struct out *out, struct err *err)
{
	struct flat f = {.in = in};
	unsigned char *bytes;
	sqlite3_int64 n = 0;
	int rc = 0;

	(void)opt;                           /* no option applies: all is in columns */
	put_all(&f);
	bytes = f.failed ? NULL : sqlite3_serialize(f.db, "main", &n, 0);
	if (bytes)
		out_put(out, bytes, (size_t)n);
	else
		rc = err_set(err, ERR_MEMORY, "cannot make the database: %s",
			     sqlite3_errstr(f.failed ? f.failed : SQLITE_NOMEM));
	sqlite3_free(bytes);
	sqlite3_close(f.db);
	return rc;
}

const struct exporter sqlite_flat_exporter = {
	.name = "sqlite-flat",
	.suffix = ".flat.db",
	.summary = "a SQLite database of plain rows",
	.binary = true,
	.write = flat_write,
};
