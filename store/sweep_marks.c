#include "store/sweep_marks_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* 64 MB of bits. Ids grow for ever, but old rows leave: this is months of new frames. */
#define MARK_RANGE_MAX ((uint64_t)1 << 29)

bool any_marked(const struct marks *m, int kind, int64_t id, int64_t last)
{
	uint64_t at;

	while (id < last && !is_marked(m, kind, id)) {
		at = (uint64_t)id - (uint64_t)m->min[kind];
		id += at % 8 || m->bits[kind][at / 8] || (uint64_t)last - (uint64_t)id < 8 ? 1 : 8;
	}
	return is_marked(m, kind, id);
}

static int mark_lists(struct marks *m, const struct blob *blob)
{
	struct lists lists;
	uint32_t i;
	int rc = lists_unpack(blob, &lists, NULL);

	if (rc)
		return rc;
	for (i = 0; i < lists.nthreads; i++)
		mark(m, MARK_THREADS, lists.ids[i]);
	for (; i < lists.nthreads + lists.nframes; i++)
		mark(m, MARK_FRAMES, lists.ids[i]);
	free(lists.ids);
	return 0;
}

bool sweep_called_off(const struct store *s)
{
	return s->call_off && s->call_off(s->call_off_ctx);
}

int mark_segments(struct marks *m)
{
	struct query q = db_query(m->s, "SELECT id, lists FROM segment WHERE id > ? ORDER BY id",
				  ARGS(arg_int(m->last_segment)), NULL);
	struct blob blob;
	int step = 0, rc = 0;

	while (!rc && (step = query_step(&q)) > 0) {
		blob = column_blob(&q, 1);
		rc = mark_lists(m, &blob);
		m->last_segment = column_int(&q, 0);
		if (!rc && sqlite3_get_autocommit(m->s->db) && sweep_called_off(m->s))
			rc = ERR_STOPPED;
	}
	query_reset(&q);
	return rc ? rc : step;
}

int mark_incident(struct marks *m, int64_t incident_id, uint32_t *nsegments)
{
	struct query q = db_query(m->s, "SELECT s.lists FROM incident_segment x JOIN segment s"
				  " ON s.id = x.segment_id WHERE x.incident_id=?",
				  ARGS(arg_int(incident_id)), NULL);
	struct blob blob;
	int step = 0, rc = 0;

	for (*nsegments = 0; !rc && (step = query_step(&q)) > 0; ++*nsegments) {
		blob = column_blob(&q, 0);
		rc = mark_lists(m, &blob);
	}
	query_reset(&q);
	return rc ? rc : step;
}

static int marks_init_one(struct marks *m, int kind, const char *sql)
{
	struct query q = db_query(m->s, sql, NO_ARGS, NULL);
	uint64_t range;

	if (query_step(&q) <= 0)
		return ERR_FORMAT;
	m->min[kind] = column_int(&q, 0);
	m->max[kind] = column_int(&q, 1);
	query_reset(&q);
	range = (uint64_t)m->max[kind] - (uint64_t)m->min[kind];
	if (range > MARK_RANGE_MAX) {
		/* An empty range: nothing of this kind is swept, but the others are. */
		m->min[kind] = 0;
		m->max[kind] = -1;
		return 0;
	}
	m->bits[kind] = calloc((size_t)range / 8 + 1, 1);
	return m->bits[kind] ? 0 : ERR_MEMORY;
}

/* An empty table has the range 0 to 0. */
#define RANGE_OF(table) "SELECT coalesce(min(id), 0), coalesce(max(id), 0) FROM " table
#define RANGE_OF_PAGES(table) \
	"SELECT coalesce(min(first_id), 0), coalesce((SELECT last_id FROM " table \
	" ORDER BY first_id DESC LIMIT 1), 0) FROM " table

int marks_init(struct marks *m)
{
	static const char *const ranges[MARKS] = {
		[MARK_THREADS] = RANGE_OF("thread"),
		[MARK_FRAMES] = RANGE_OF_PAGES("frame_page"),
		[MARK_FUNCTIONS] = RANGE_OF_PAGES("function_page"),
		[MARK_MODULES] = RANGE_OF("module"),
		[MARK_TEXTS] = RANGE_OF_PAGES("text_page"),
	};
	int kind, rc = 0;

	for (kind = 0; !rc && kind < MARKS; kind++)
		rc = marks_init_one(m, kind, ranges[kind]);
	return rc;
}

/* SQL: thread_listed(id) */
static void sql_thread_listed(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const struct marks *m = sqlite3_user_data(ctx);

	(void)argc;
	sqlite3_result_int(ctx, is_marked(m, MARK_THREADS, sqlite3_value_int64(argv[0])));
}

/* SQL: module_listed(id) */
static void sql_module_listed(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const struct marks *m = sqlite3_user_data(ctx);

	(void)argc;
	sqlite3_result_int(ctx, is_marked(m, MARK_MODULES, sqlite3_value_int64(argv[0])));
}

/* SQL: any_text(first, last): whether a process has one of these texts */
static void sql_any_text(sqlite3_context *ctx, int argc, sqlite3_value **argv)
{
	const struct marks *m = sqlite3_user_data(ctx);

	(void)argc;
	sqlite3_result_int(ctx, any_marked(m, MARK_TEXTS, sqlite3_value_int64(argv[0]),
					   sqlite3_value_int64(argv[1])));
}

int marks_in_sql(struct store *s, struct marks *m)
{
	static const struct {
		const char *name;
		int arguments;
		void (*call)(sqlite3_context *ctx, int argc, sqlite3_value **argv);
	} functions[] = {
		{"thread_listed", 1, sql_thread_listed},
		{"module_listed", 1, sql_module_listed},
		{"any_text", 2, sql_any_text},
	};
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && i < COUNT_OF(functions); i++)
		rc = sqlite3_create_function_v2(s->db, functions[i].name, functions[i].arguments,
						SQLITE_UTF8 | SQLITE_DIRECTONLY, m,
						m ? functions[i].call : NULL, NULL, NULL, NULL);
	return rc;
}

void marks_free(struct marks *m)
{
	unsigned kind;

	for (kind = 0; kind < MARKS; kind++)
		free(m->bits[kind]);
}
