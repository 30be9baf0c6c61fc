#include "tests/support/store_lab.h"

#include "base/array.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include <sqlite3.h>

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- the lab -------------------------------------------------------------------------------- */

void lab_remove(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal", ".lock", ".reserve"};
	char name[TMP_BYTES + 20];
	size_t i;

	for (i = 0; i < COUNT_OF(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		if (os_exists(name))
			os_remove(name, NULL);
	}
}

void lab_open(struct lab *lab, const char *name)
{
	static char path[TMP_BYTES];
	struct object_key key = {.kind = OBJECT_ELF, .build_id_bytes = 4, .build_id = {1, 2, 3, 4},
				 .path = "/opt/app"};

	memset(lab, 0, sizeof(*lab));
	snprintf(path, sizeof(path), "%s", tmp_path(name));
	lab->path = path;
	lab_remove(path);
	assert_int_equal(frames_new(&lab->frames, NULL), 0);
	assert_int_equal(processes_new(&lab->processes, NULL), 0);
	assert_int_equal(segment_builder_new(lab->frames, lab->processes, &lab->builder, NULL), 0);
	lab->object = objects_get(lab->frames, &key, 100);
	assert_non_null(lab->object);
	lab->app = process_add(lab->processes, 100, MS(1), 0, 1, "app");
	assert_non_null(lab->app);
	process_set_cmdline(lab->app, "app --serve");
	lab->threads[0] = thread_add(lab->processes, lab->app, 100);
	lab->threads[1] = thread_add(lab->processes, lab->app, 101);
	assert_non_null(lab->threads[0]);
	assert_non_null(lab->threads[1]);
	thread_set_name(lab->threads[0], "main");
	thread_set_name(lab->threads[1], "worker");
}

void lab_close(struct lab *lab)
{
	segment_builder_free(lab->builder);
	frames_free(lab->frames);
	processes_free(lab->processes);
	lab_remove(lab->path);
}

struct store *lab_store(struct lab *lab, enum store_mode mode)
{
	struct store *s = NULL;
	struct err err = {0};

	if (store_open(lab->path, mode, &s, &err))
		fail_msg("store_open: %s", err.text);
	store_set_floor(s, 0);
	return s;
}

struct store *lab_record(struct lab *lab, const char *name)
{
	lab_open(lab, name);
	return lab_store(lab, STORE_RECORD);
}

void lab_end(struct lab *lab, struct store *s)
{
	store_close(s);
	lab_close(lab);
}

void lab_end_sound(struct lab *lab, struct store *s)
{
	store_close(s);
	lab_check_integrity(lab->path);
	lab_close(lab);
}

const char *lab_refused(const char *path, enum store_mode mode, int code)
{
	static struct err err;
	struct store *s = NULL;

	memset(&err, 0, sizeof(err));
	assert_int_equal(store_open(path, mode, &s, &err), code);
	assert_null(s);
	assert_int_equal(err.code, code);
	/* One sentence that says which file. */
	assert_non_null(strstr(err.text, path));
	assert_null(strchr(err.text, '\n'));
	return err.text;
}

/* ---- recording ------------------------------------------------------------------------------ */

static struct frame_ref letter(const struct lab *lab, char c)
{
	struct frame_ref ref = {.object = lab->object, .offset = (uint64_t)(c - 'a' + 10) << 12};

	return ref;
}

void lab_sample(struct lab *lab, uint64_t time_ns, unsigned thread, const char *root_first)
{
	struct frame_ref leaf_first[64];
	uint32_t n = (uint32_t)strlen(root_first), i;
	struct event e = {.time_ns = time_ns, .kind = EVENT_SAMPLE, .process = lab->app,
			  .thread = lab->threads[thread], .cpu = (uint16_t)thread,
			  .quality = QUALITY_FP, .value = 1e6};

	for (i = 0; i < n; i++)
		leaf_first[i] = letter(lab, root_first[n - 1 - i]);
	e.stack = segment_stack(lab->builder, leaf_first, n, NULL, NULL);
	assert_int_equal(segment_add(lab->builder, &e), 0);
}

void lab_lost(struct lab *lab, uint64_t time_ns, uint16_t cpu, enum loss_kind kind, unsigned n)
{
	struct event e = {.time_ns = time_ns, .kind = EVENT_LOST, .cpu = cpu, .value = n,
			  .name = loss_kind_text(kind), .stack = STACK_NONE};

	assert_int_equal(segment_add(lab->builder, &e), 0);
}

void lab_name(struct lab *lab, char c)
{
	struct frame_ref ref = letter(lab, c);
	char name[] = "fn_?";
	bool fresh;
	uint32_t number = frames_intern(lab->frames, &ref, &fresh);

	name[3] = c;
	assert_int_equal(frame_set_function(lab->frames, frame_get(lab->frames, number), ref.offset,
					    name, NULL, NULL),
			 0);
}

struct segment *lab_seal(struct lab *lab)
{
	struct segment *segment = NULL;

	segment_set_period(lab->builder, STREAM_CPU, MS(1));
	assert_int_equal(segment_seal(lab->builder, &segment, NULL), 0);
	assert_non_null(segment);
	return segment;
}

/* ---- incidents ------------------------------------------------------------------------------ */

static char rule[] = "Processor:% Processor Time:_Total>80", reason[] = "81 % is above 80 %";
static char host[] = "box", host_text[] = "Linux 6.1", version[] = "1.0";

struct incident_head lab_head(uint64_t trigger_ns, uint64_t pre_ns, uint64_t post_ns)
{
	struct incident_head head = {
		.rule = rule,
		.reason = reason,
		.host = host,
		.host_text = host_text,
		.recorder_version = version,
		.value = 81,
		.limit = 80,
		.trigger_ns = trigger_ns,
		.trigger_wall_ns = LAB_WALL_NS + trigger_ns,
		.asked_pre_ns = pre_ns,
		.asked_post_ns = post_ns,
		.t0_ns = trigger_ns - pre_ns,
		.t1_ns = trigger_ns + post_ns,
		.recorder_cpu_ns = 7,
		.recorder_rss_bytes = 8,
	};

	return head;
}

struct segment *lab_begin(struct lab *lab, struct store *s, struct incident_head *head)
{
	struct segment *segment = lab_seal(lab);
	struct err err = {0};

	if (store_begin(s, head, &err))
		fail_msg("store_begin: %s", err.text);
	if (store_put_segment(s, head->id, segment, &err))
		fail_msg("store_put_segment: %s", err.text);
	return segment;
}

int64_t lab_incident(struct store *s, struct incident_head *head, struct segment *const *segments,
		     uint32_t n)
{
	struct err err = {0};
	uint32_t i;

	if (store_begin(s, head, &err))
		fail_msg("store_begin: %s", err.text);
	for (i = 0; i < n; i++) {
		if (store_put_segment(s, head->id, segments[i], &err))
			fail_msg("store_put_segment: %s", err.text);
	}
	if (store_finish(s, head, segments, n, &err))
		fail_msg("store_finish: %s", err.text);
	return head->id;
}

int64_t lab_simple(struct lab *lab, struct store *s, uint64_t start_ns, unsigned samples)
{
	struct incident_head head = lab_head(start_ns + MS(samples), MS(samples), 0);
	struct segment *segment;
	unsigned i;
	int64_t id;

	for (i = 0; i < samples; i++)
		lab_sample(lab, start_ns + MS(i), i % 2, i % 3 ? "abc" : "abd");
	segment = lab_seal(lab);
	id = lab_incident(s, &head, &segment, 1);
	segment_unref(segment);
	return id;
}

/* ---- reading back --------------------------------------------------------------------------- */

static void put_stack(const struct incident *in, uint32_t stack, struct buf *out)
{
	const struct incident_frame *f;

	if (stack == STACK_NONE)
		return;
	put_stack(in, in->stacks[stack].parent, out);
	f = &in->frames[in->stacks[stack].frame];
	assert_string_equal(in->modules[f->module].path, "/opt/app");
	if (f->function)
		assert_int_equal(f->function[3], (char)('a' + (f->offset >> 12) - 10));
	buf_putc(out, f->function ? f->function[3] : '?');
}

static void put_samples(const struct incident *in, struct buf *out)
{
	uint32_t i;

	for (i = 0; i < in->nsamples; i++) {
		const struct incident_sample *sample = &in->samples[i];

		buf_printf(out, "%.1f %s ", (double)sample->time_ns / 1e6,
			   in->threads[sample->thread].name);
		put_stack(in, sample->stack, out);
		buf_putc(out, '\n');
	}
}

static void put_head(const struct incident_head *h, struct buf *out)
{
	buf_printf(out, "%" PRId64 " %s %s pinned %d rule %s reason %s value %.17g limit %.17g\n",
		   h->id, h->uuid, incident_state_text(h->state), h->pinned, h->rule, h->reason,
		   h->value, h->limit);
	buf_printf(out,
		   "trigger %" PRIu64 " wall %" PRIu64 " asked %" PRIu64 " %" PRIu64 " got %" PRIu64
		   " %" PRIu64 " gap %s\n",
		   h->trigger_ns, h->trigger_wall_ns, h->asked_pre_ns, h->asked_post_ns, h->t0_ns,
		   h->t1_ns, h->gap_reason ? h->gap_reason : "none");
	buf_printf(out,
		   "samples %" PRIu64 " lost %" PRIu64 " kernel %" PRIu64 " fp %" PRIu64
		   " bytes %" PRIu64 " cpu %" PRIu64 " rss %" PRIu64 " period %" PRIu64 "\n",
		   h->samples, h->lost, h->lost_by_kind[LOSS_KERNEL], h->quality[QUALITY_FP],
		   h->stored_bytes, h->recorder_cpu_ns, h->recorder_rss_bytes,
		   h->period_ns[STREAM_CPU]);
	buf_printf(out, "host %s %s version %s note %s\n", h->host, h->host_text,
		   h->recorder_version, h->note ? h->note : "none");
}

static const char *dump(struct store *s, int64_t id, bool with_head)
{
	static struct buf texts[4];
	static unsigned next;
	struct buf *text = &texts[next++ % 4];
	struct incident in = {0};
	struct err err = {0};
	uint32_t i;

	buf_reset(text);
	if (store_load(s, id, &in, &err))
		fail_msg("store_load: %s", err.text);
	if (with_head) {
		put_head(&in.head, text);
		for (i = 0; i < in.nprocesses; i++)
			buf_printf(text, "process %u %u %s %s\n", in.processes[i].pid,
				   in.processes[i].parent_pid, in.processes[i].name,
				   in.processes[i].cmdline);
	}
	put_samples(&in, text);
	incident_free(&in);
	return buf_text(text);
}

const char *lab_dump(struct store *s, int64_t id)
{
	return dump(s, id, true);
}

const char *lab_samples(struct store *s, int64_t id)
{
	return dump(s, id, false);
}

int lab_delete(struct store *s, int64_t id, struct err *err)
{
	int rc = store_delete(s, id, err);

	if (!rc)
		store_clean(s);
	return rc;
}

int64_t lab_sql(const char *path, const char *sql)
{
	sqlite3_stmt *st = NULL;
	sqlite3 *db = NULL;
	int64_t value = -1;

	assert_int_equal(sqlite3_open_v2(path, &db, SQLITE_OPEN_READWRITE, NULL), 0);
	sqlite3_busy_timeout(db, 5000);
	while (*sql) {
		if (sqlite3_prepare_v2(db, sql, -1, &st, &sql))
			fail_msg("%s: %s", sql, sqlite3_errmsg(db));
		if (!st)
			break;
		if (sqlite3_step(st) == SQLITE_ROW)
			value = sqlite3_column_int64(st, 0);
		assert_int_equal(sqlite3_finalize(st), 0);
	}
	sqlite3_close(db);
	return value;
}

void lab_check_integrity(const char *path)
{
	assert_int_equal(lab_sql(path, "SELECT integrity_check = 'ok' FROM pragma_integrity_check"),
			 1);
	assert_int_equal(lab_sql(path, "SELECT count(*) FROM pragma_foreign_key_check"), 0);
}
