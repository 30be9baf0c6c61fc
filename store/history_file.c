/* One file of the history: its name, and what it says of itself. */
#include "store/history_private.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ----------------------------------------------------------------------------------- */

int history_dir(const char *store_path, struct buf *out, struct err *err)
{
	buf_reset(out);
	buf_printf(out, "%s%s", store_path, HISTORY_SUFFIX);
	return buf_check(out, "the history's directory", err);
}

void history_name(uint32_t number, uint64_t wall_ns, char out[HISTORY_NAME_BYTES])
{
	char time[OS_TIME_TEXT_BYTES];

	os_time_text(wall_ns, time);
	snprintf(out, HISTORY_NAME_BYTES, "%06" PRIu32 "-%.4s%.2s%.2s-%.2s%.2s%.2s.db", number,
		 time, time + 5, time + 8, time + 11, time + 14, time + 17);
}

/* Days since 1970 of a date of the Gregorian calendar (H. Hinnant, days_from_civil). */
static int64_t days_from_civil(int64_t y, unsigned m, unsigned d)
{
	int64_t era;
	unsigned yoe, doy, doe;

	y -= m <= 2;
	era = (y >= 0 ? y : y - 399) / 400;
	yoe = (unsigned)(y - era * 400);
	doy = (153 * (m + (m > 2 ? -3u : 9u)) + 2) / 5 + d - 1;
	doe = yoe * 365 + yoe / 4 - yoe / 100 + doy;
	return era * 146097 + (int64_t)doe - 719468;
}

bool history_name_parse(const char *name, uint32_t *number, uint64_t *wall_ns)
{
	unsigned n, y, mo, d, h, mi, s;
	int end = 0;

	if (strlen(name) >= HISTORY_NAME_BYTES ||
	    strspn(name, "0123456789") < 6 ||
	    sscanf(name, "%9u-%4u%2u%2u-%2u%2u%2u.db%n", &n, &y, &mo, &d, &h, &mi, &s, &end) != 7 ||
	    !end || name[end] || mo < 1 || mo > 12 || d < 1 || d > 31 || h > 23 || mi > 59 ||
	    s > 60 || y < 1970)
		return false;
	*number = n;
	*wall_ns = ((uint64_t)days_from_civil(y, mo, d) * 86400 + h * 3600u + mi * 60u + s) *
		   NS_PER_SEC;
	return true;
}

static const char *const parts[] = {"", "-wal", "-shm", "-journal", REDO_SUFFIX, ".lock"};

uint64_t history_bytes_on_disk(const char *path)
{
	struct os_file_info info;
	struct buf name = {0};
	uint64_t bytes = 0;
	size_t i;

	for (i = 0; i < COUNT_OF(parts); i++) {
		buf_reset(&name);
		buf_printf(&name, "%s%s", path, parts[i]);
		if (!name.failed && !os_path_info(name.data, &info, NULL))
			bytes += info.size_bytes;
	}
	buf_free(&name);
	return bytes;
}

/* The file first: what is left of it after a kill in between is no store any more. */
int history_remove(const char *path, struct err *err)
{
	struct buf name = {0};
	int rc = os_remove(path, err);
	size_t i;

	for (i = 1; i < COUNT_OF(parts); i++) {
		buf_reset(&name);
		buf_printf(&name, "%s%s", path, parts[i]);
		if (!name.failed)
			os_remove(name.data, NULL);
	}
	buf_free(&name);
	return rc == ERR_NOT_FOUND ? 0 : rc;
}

/* ---- the list -------------------------------------------------------------------------------- */

struct listing {
	struct history_files *files;
	const char *dir;
	bool no_memory;
};

static int list_name(void *ctx, const char *name)
{
	struct listing *l = ctx;
	struct history_file file = {0};
	struct buf path = {0};

	if (!history_name_parse(name, &file.number, &file.name_wall_ns) ||
	    l->files->n >= HISTORY_FILES_MAX)
		return 0;
	buf_printf(&path, "%s/%s", l->dir, name);
	if (!path.failed)
		file.path = text_dup(path.data, SIZE_MAX);
	buf_free(&path);
	l->no_memory = !file.path || ARRAY_NEXT(l->files->all, l->files->n);
	if (l->no_memory) {
		free(file.path);
		return 1;
	}
	l->files->all[l->files->n++] = file;
	return 0;
}

static int by_number(const void *a, const void *b)
{
	const struct history_file *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

int history_list(const char *store_path, struct history_files *out, struct err *err)
{
	struct history_files files = {0};
	struct listing l = {.files = &files};
	struct buf dir = {0};
	int rc = history_dir(store_path, &dir, err);

	l.dir = rc ? NULL : dir.data;
	if (!rc && os_exists(dir.data))
		rc = os_list(dir.data, list_name, &l, err);
	if (!rc && l.no_memory)
		rc = err_memory(err, "while looking at %s", dir.data);
	buf_free(&dir);
	if (rc) {
		history_files_free(&files);
		return rc;
	}
	if (files.n)
		qsort(files.all, files.n, sizeof(*files.all), by_number);
	*out = files;
	return 0;
}

void history_files_free(struct history_files *f)
{
	while (f->n) {
		free(f->all[--f->n].path);
		free(f->all[f->n].slots);
	}
	free(f->all);
	f->all = NULL;
}

/* ---- what a file says of itself -------------------------------------------------------------- */

int history_meta_put(struct store *s, const char *key, const char *text, struct err *err)
{
	return db_run(s, "INSERT OR REPLACE INTO meta(key, value) VALUES(?, ?)",
		      ARGS(arg_text(key), arg_text(text)), err);
}

static void meta_get(struct store *s, const char *key, char *out, size_t n)
{
	struct query q = db_query(s, "SELECT value FROM meta WHERE key=?", ARGS(arg_text(key)),
				  NULL);
	const char *text = query_step(&q) > 0 ? column_text(&q, 0) : NULL;

	snprintf(out, n, "%s", text ? text : "");
	query_reset(&q);
}

/* An open one has no window yet: its segments tell. The last ones may overlap by a moment. */
static int open_window(struct store *s, struct history_file *out, struct err *err)
{
	struct query q = db_query(s,
				  "SELECT max(t1_ns), (SELECT sum(samples) FROM segment) FROM"
				  " (SELECT t1_ns FROM segment ORDER BY id DESC LIMIT 4)",
				  NO_ARGS, err);
	int rc = query_step(&q);

	if (rc > 0 && column_is_null(&q, 0)) {
		query_reset(&q);
		rc = 0;
	}
	if (!rc)
		return err_set(err, ERR_NOT_FOUND, "nothing was put into %s", s->path);
	if (rc < 0)
		return rc;
	out->t0_ns = out->clock_ns;
	out->t1_ns = column_u64(&q, 0);
	if (out->t1_ns < out->t0_ns)
		out->t1_ns = out->t0_ns;
	out->samples = column_u64(&q, 1);
	query_reset(&q);
	return 0;
}

int history_read_file(struct store *s, struct history_file *out, int64_t *incident_id,
		      struct err *err)
{
	struct query q = db_query(s,
				  "SELECT id, state, trigger_ns, trigger_wall_ns, t0_ns, t1_ns,"
				  " coalesce(samples, 0), coalesce(lost, 0),"
				  " (SELECT pid FROM session ORDER BY id LIMIT 1)"
				  " FROM incident WHERE rule='" HISTORY_RULE "'"
				  " ORDER BY id LIMIT 1",
				  NO_ARGS, err);
	char period[32];
	int rc = query_step(&q);

	if (!rc)
		return err_set(err, ERR_NOT_FOUND, "%s holds no history", s->path);
	if (rc < 0)
		return rc;
	*incident_id = column_int(&q, 0);
	out->open = column_is_null(&q, 4);
	out->clock_ns = column_u64(&q, 2);
	out->wall_ns = column_u64(&q, 3);
	out->t0_ns = column_u64(&q, 4);
	out->t1_ns = column_u64(&q, 5);
	out->samples = column_u64(&q, 6);
	out->lost = column_u64(&q, 7);
	out->pid = (uint32_t)column_int(&q, 8);
	query_reset(&q);
	meta_get(s, META_PERIOD, period, sizeof(period));
	out->period_ns = strtoull(period, NULL, 10);
	meta_get(s, META_BOOT, out->boot_id, sizeof(out->boot_id));
	meta_get(s, META_KILLS, out->kills, sizeof(out->kills));
	meta_get(s, META_END, out->end, sizeof(out->end));
	return out->open ? open_window(s, out, err) : 0;
}

/* ---- samples by ten minutes ------------------------------------------------------------------ */

static int add_to_slot(struct history_file *file, uint64_t wall_ns, uint32_t samples)
{
	uint64_t at = wall_ns / HISTORY_SLOT_NS - file->first_slot;
	uint32_t *more;

	if (wall_ns / HISTORY_SLOT_NS < file->first_slot || at >= HISTORY_SLOTS_MAX)
		return 0;
	if (at >= file->nslots) {
		more = realloc(file->slots, (at + 1) * sizeof(*more));
		if (!more)
			return ERR_MEMORY;
		memset(more + file->nslots, 0, (at + 1 - file->nslots) * sizeof(*more));
		file->slots = more;
		file->nslots = (uint32_t)at + 1;
	}
	file->slots[at] += samples;
	return 0;
}

int history_count_slots(struct store *s, struct history_file *file, struct err *err)
{
	int64_t says_cpu = 0;
	int rc = db_int(s, "SELECT count(*) FROM pragma_table_info('segment')"
			" WHERE name='cpu_samples'", NO_ARGS, &says_cpu, err);
	struct query q;

	if (rc)
		return rc;
	q = db_query(s, says_cpu ? "SELECT t0_ns, t1_ns, cpu_samples FROM segment ORDER BY id"
				 : "SELECT t0_ns, t1_ns, samples FROM segment ORDER BY id",
		     NO_ARGS, err);
	file->first_slot = file->wall_ns / HISTORY_SLOT_NS;
	while ((rc = query_step(&q)) > 0) {
		uint64_t t0 = column_u64(&q, 0), t1 = column_u64(&q, 1);

		if (add_to_slot(file, history_wall_ns(file, t0 + (t1 - t0) / 2),
				(uint32_t)column_int(&q, 2))) {
			query_reset(&q);
			return err_memory(err, "while reading %s", s->path);
		}
	}
	return rc;
}

void history_put_slots(const struct history_file *file, struct buf *out)
{
	uint32_t i;

	buf_printf(out, "%" PRIu64 ":", file->first_slot);
	for (i = 0; i < file->nslots; i++)
		buf_printf(out, "%s%" PRIu32, i ? "," : "", file->slots[i]);
}

/* Anybody may have written it. */
int history_parse_slots(const char *text, struct history_file *out)
{
	char *end;

	if (strspn(text, "0123456789") == 0)
		return ERR_FORMAT;
	out->first_slot = strtoull(text, &end, 10);
	if (*end != ':' || out->first_slot > UINT64_MAX / HISTORY_SLOT_NS - HISTORY_SLOTS_MAX)
		return ERR_FORMAT;
	while (*end && end[1] >= '0' && end[1] <= '9' && out->nslots < HISTORY_SLOTS_MAX) {
		uint64_t n = strtoull(end + 1, &end, 10);
		uint64_t at_ns = (out->first_slot + out->nslots) * HISTORY_SLOT_NS;

		if (n > UINT32_MAX || add_to_slot(out, at_ns, (uint32_t)n))
			return ERR_FORMAT;
	}
	return 0;
}

static int look_at_slots(struct store *s, struct history_file *file, struct err *err)
{
	struct query q = db_query(s, "SELECT value FROM meta WHERE key='" META_SLOTS "'", NO_ARGS,
				  err);
	const char *text = query_step(&q) > 0 ? column_text(&q, 0) : NULL;
	int rc = text ? history_parse_slots(text, file) : ERR_NOT_FOUND;

	query_reset(&q);
	return rc ? history_count_slots(s, file, err) : 0;
}

/* Somebody holds the lock of a file: its recorder lives. */
static bool is_locked(const char *path)
{
	struct os_file *lock = NULL;
	struct buf name = {0};
	bool locked;

	buf_printf(&name, "%s.lock", path);
	locked = !name.failed && os_exists(name.data) &&
		 !os_open(name.data, OS_READ_NO_LINK, &lock, NULL) && !os_try_lock(lock);
	os_close(lock);
	buf_free(&name);
	return locked;
}

void history_drop_blank(const struct history_file *file)
{
	if (file->blank && history_is_left(file->path) && !is_locked(file->path))
		history_remove(file->path, NULL);
}

void history_look(struct history_file *file, bool slots)
{
	struct store *s = NULL;
	int64_t incident;
	int rc;

	file->bytes = history_bytes_on_disk(file->path);
	rc = store_open(file->path, STORE_READ, &s, NULL);
	if (!rc)
		rc = history_read_file(s, file, &incident, NULL);
	file->readable = !rc;
	if (file->readable && slots)
		look_at_slots(s, file, NULL);
	store_close(s);
	/* "It is empty", "it holds no history", or "nothing was put into it". */
	file->blank = rc == ERR_NOT_FOUND && os_exists(file->path);
	if (file->readable && file->open)
		file->locked = is_locked(file->path);
}

uint64_t history_wall_ns(const struct history_file *file, uint64_t clock_ns)
{
	return file->wall_ns + (clock_ns - file->clock_ns);
}
