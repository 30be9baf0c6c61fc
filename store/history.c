/* The history, written: one file at a time, ended by size; the oldest leave whole. */
#include "store/history_private.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_PART 16u                        /* of all files together */
#define FILE_LEAST ((uint64_t)16 << 20)
#define FILE_MOST ((uint64_t)64 << 20)
#define FLOOR_BYTES ((uint64_t)1000 << 20)   /* or a 10th of the disk: twice that of incidents */
#define ROOM_BYTES ((uint64_t)2 << 20)       /* the log, room ahead, what a first segment lists */
#define ASKED_MAX_NS ((uint64_t)1 << 62)     /* a file ends when it ends */

/* A file that is written. */
struct writing {
	struct store *s;                     /* NULL = none is */
	struct incident_head head;           /* its incident; texts are borrowed from the history */
	char reason[80];
	uint32_t number;
	uint64_t first_segment;              /* segments before it are in another file */
};

struct history {
	struct history_config cfg;
	char *store_path, *host, *host_text, *version, *boot_id, *kills;
	struct buf dir;
	struct history_files files;          /* the oldest first; .bytes is kept up to date */
	struct writing now;                  /* the last one of files */
	struct writing ended;                /* the one before, until its last put is over */
	const char *end;                     /* of that one */
	uint32_t next_number;
	uint64_t put_bytes;
};

/* ---- opening --------------------------------------------------------------------------------- */

/* It may be a link to a directory on another disk: what counts is where it leads. */
static int check_dir(const char *dir, struct err *err)
{
	struct os_file_info info;
	int rc = os_path_info(dir, &info, err);

	if (rc)
		return rc;
	if (!info.directory)
		return err_set(err, ERR_ACCESS, "%s is not a directory: move it away, or record "
			       "without history (--history-mb 0)", dir);
	if (info.uid != os_uid() || (info.mode & 022))
		return err_set(err, ERR_ACCESS, "%s belongs to somebody else, or others may write "
			       "there: remove it, or record without history (--history-mb 0)", dir);
	return 0;
}

static uint64_t file_bytes(const struct history_config *cfg)
{
	uint64_t bytes = cfg->max_bytes / FILE_PART;

	if (cfg->file_bytes)
		return cfg->file_bytes;
	bytes = bytes > FILE_LEAST ? bytes : FILE_LEAST;
	bytes = bytes < FILE_MOST ? bytes : FILE_MOST;
	return bytes < cfg->max_bytes / 4 ? bytes : cfg->max_bytes / 4;
}

static bool copy_texts(struct history *h)
{
	h->store_path = text_dup(h->cfg.store_path, SIZE_MAX);
	h->host = text_dup(h->cfg.host, SIZE_MAX);
	h->host_text = text_dup(h->cfg.host_text, SIZE_MAX);
	h->version = text_dup(h->cfg.version, SIZE_MAX);
	h->boot_id = text_dup(h->cfg.boot_id, SIZE_MAX);
	h->kills = text_dup(h->cfg.kills, SIZE_MAX);
	return h->store_path && h->host && h->host_text && h->version && h->boot_id && h->kills;
}

static void history_free(struct history *h)
{
	history_files_free(&h->files);
	buf_free(&h->dir);
	free(h->store_path);
	free(h->host);
	free(h->host_text);
	free(h->version);
	free(h->boot_id);
	free(h->kills);
	free(h);
}

static void forget_file(struct history *h, uint32_t i)
{
	free(h->files.all[i].path);
	memmove(h->files.all + i, h->files.all + i + 1,
		(h->files.n - i - 1) * sizeof(*h->files.all));
	h->files.n--;
}

/* Files whose recorder was killed before it took their lock: nobody else makes files here. */
static void drop_empty(struct history *h)
{
	struct os_file_info info;
	uint32_t i = 0;

	while (i < h->files.n) {
		const char *path = h->files.all[i].path;

		if (os_path_info(path, &info, NULL) || info.size_bytes ||
		    history_remove(path, NULL))
			i++;
		else
			forget_file(h, i);
	}
}

int history_open(const struct history_config *cfg, struct history **out, struct err *err)
{
	struct history *h = calloc(1, sizeof(*h));
	uint32_t i;
	int rc;

	if (!h)
		return err_memory(err, "for the history");
	h->cfg = *cfg;
	h->cfg.file_bytes = file_bytes(cfg);
	rc = copy_texts(h) ? 0 : err_memory(err, "for the history");
	if (!rc)
		rc = history_dir(cfg->store_path, &h->dir, err);
	if (!rc)
		rc = os_mkdirs(h->dir.data, err);
	if (!rc)
		rc = check_dir(h->dir.data, err);
	if (!rc)
		rc = history_list(cfg->store_path, &h->files, err);
	if (rc) {
		history_free(h);
		return rc;
	}
	h->next_number = h->files.n ? h->files.all[h->files.n - 1].number + 1 : 1;
	drop_empty(h);
	for (i = 0; i < h->files.n; i++)
		h->files.all[i].bytes = history_bytes_on_disk(h->files.all[i].path);
	*out = h;
	return 0;
}

/* ---- leaving --------------------------------------------------------------------------------- */

static uint64_t all_bytes(const struct history *h)
{
	uint64_t bytes = 0;
	uint32_t i;

	for (i = 0; i < h->files.n; i++)
		bytes += h->files.all[i].bytes;
	return bytes;
}

bool history_give_up_oldest(struct history *h)
{
	if (h->files.n < 1u + (h->now.s != NULL) + (h->ended.s != NULL))
		return false;
	if (history_remove(h->files.all[0].path, NULL) && os_exists(h->files.all[0].path))
		return false;
	forget_file(h, 0);
	return true;
}

/* A file's age counts from its end, which is where the next one begins. */
static bool is_too_old(const struct history *h, uint64_t wall_ns)
{
	uint64_t age_ns = h->cfg.max_age_ns, end_ns;

	if (!age_ns || h->files.n < 2)
		return false;
	end_ns = h->files.all[1].name_wall_ns;
	return end_ns < wall_ns && wall_ns - end_ns > age_ns;
}

static void trim(struct history *h, uint64_t add_bytes, uint64_t wall_ns)
{
	while ((all_bytes(h) + add_bytes > h->cfg.max_bytes || is_too_old(h, wall_ns)) &&
	       history_give_up_oldest(h))
		;
}

static int check_floor(const struct history *h, struct err *err)
{
	uint64_t free_bytes, total_bytes, floor_bytes = h->cfg.floor_bytes;

	if (os_free_bytes(h->dir.data, &free_bytes, &total_bytes, NULL))
		return 0;                    /* writing will show */
	if (floor_bytes == UINT64_MAX)
		floor_bytes = total_bytes / 10 < FLOOR_BYTES ? total_bytes / 10 : FLOOR_BYTES;
	if (free_bytes >= floor_bytes)
		return 0;
	return err_set(err, ERR_FULL,
		       "only %.0f MB are free on the disk of %s, and the history stops at %.0f MB: "
		       "free some space", (double)free_bytes / 1048576, h->dir.data,
		       (double)floor_bytes / 1048576);
}

/* ---- the file being written ------------------------------------------------------------------ */

struct end_work {
	const char *end;                     /* NULL = it is not known */
	const char *slots;
};

static int put_end(struct store *s, void *arg, struct err *err)
{
	const struct end_work *w = arg;
	int rc = w->end ? history_meta_put(s, META_END, w->end, err) : 0;

	return rc ? rc : history_meta_put(s, META_SLOTS, w->slots, err);
}

/* What `recorder history` wants to know of a file that does not change any more. */
static int sum_up(struct store *s, const char *end, struct history_file *file, struct err *err)
{
	struct end_work work = {.end = end};
	struct buf slots = {0};
	int64_t id;
	int rc = history_read_file(s, file, &id, err);

	if (!rc)
		rc = history_count_slots(s, file, err);
	if (!rc)
		history_put_slots(file, &slots);
	if (!rc)
		rc = buf_check(&slots, "the history", err);
	work.slots = buf_text(&slots);
	if (!rc)
		rc = db_transact(s, TX_DURABLE, put_end, &work, err);
	buf_free(&slots);
	free(file->slots);
	return rc;
}

/* The incident's own end: its window is what its segments hold. */
static int complete(struct store *s, const char *end, struct incident_head *head, struct err *err)
{
	struct history_file file = {0};
	int rc = sum_up(s, end, &file, err);

	if (rc)
		return rc;
	head->t0_ns = file.t0_ns;
	head->t1_ns = file.t1_ns;
	head->asked_post_ns = file.t1_ns - file.clock_ns;
	return store_finish(s, head, NULL, 0, err);
}

static struct history_file *file_of(const struct history *h, const struct writing *w)
{
	struct history_file *file = h->files.all + h->files.n;

	while ((--file)->number != w->number)
		;
	return file;
}

/* end NULL: leave it as it is after a failure; it reads like one whose recorder died. */
static void leave_file(struct history *h, struct writing *w, const char *end)
{
	struct history_file *file;
	struct buf lock = {0};
	bool completed = false;

	if (!w->s)
		return;
	file = file_of(h, w);
	w->head.reason = w->reason;
	if (end)
		completed = !complete(w->s, end, &w->head, NULL);
	store_close(w->s);
	if (completed) {
		buf_printf(&lock, "%s.lock", file->path);
		if (!lock.failed)
			os_remove(lock.data, NULL);
		buf_free(&lock);
	}
	file->bytes = history_bytes_on_disk(file->path);
	memset(w, 0, sizeof(*w));
}

struct origin_work {
	const struct history *h;
};

static int put_origin(struct store *s, void *arg, struct err *err)
{
	const struct history *h = ((const struct origin_work *)arg)->h;
	char period[32];
	int rc = history_meta_put(s, META_BOOT, h->boot_id, err);

	snprintf(period, sizeof(period), "%" PRIu64, h->cfg.period_ns);
	if (!rc)
		rc = history_meta_put(s, META_PERIOD, period, err);
	return rc ? rc : history_meta_put(s, META_KILLS, h->kills, err);
}

static int fill_file(struct history *h, struct writing *w, const struct segment *first,
		     const struct history_now *now, struct err *err)
{
	struct origin_work work = {h};
	char time[OS_TIME_TEXT_BYTES];
	int rc;

	w->head = (struct incident_head){
		.rule = (char *)(uintptr_t)HISTORY_RULE, .reason = w->reason, .host = h->host,
		.host_text = h->host_text, .recorder_version = h->version,
		.value = NAN, .limit = NAN, .trigger_ns = first->t0_ns,
		.trigger_wall_ns = now->wall_ns - (now->clock_ns - first->t0_ns),
		.asked_post_ns = ASKED_MAX_NS,
	};
	os_time_text(w->head.trigger_wall_ns, time);
	snprintf(w->reason, sizeof(w->reason), "the history from %s on", time);
	rc = db_transact(w->s, TX_NORMAL, put_origin, &work, err);
	if (!rc)
		rc = store_begin(w->s, &w->head, err);
	return rc;
}

static int begin_file(struct history *h, const struct segment *first,
		      const struct history_now *now, struct err *err)
{
	uint64_t wall_ns = now->wall_ns - (now->clock_ns - first->t0_ns);
	struct history_file file = {.number = h->next_number, .name_wall_ns = wall_ns};
	struct writing *w = &h->now;
	char name[HISTORY_NAME_BYTES];
	struct buf path = {0};
	int rc;

	history_name(file.number, wall_ns, name);
	buf_printf(&path, "%s/%s", h->dir.data, name);
	if (path.failed || !(file.path = text_dup(path.data, SIZE_MAX)) ||
	    ARRAY_NEXT(h->files.all, h->files.n)) {
		free(file.path);
		buf_free(&path);
		return err_memory(err, "for the history");
	}
	buf_free(&path);
	rc = store_open_history(file.path, &w->s, err);
	if (!rc)
		rc = fill_file(h, w, first, now, err);
	if (rc) {
		store_close(w->s);
		w->s = NULL;
		history_remove(file.path, NULL);
		h->next_number += os_exists(file.path);      /* the disk kept what is begun */
		free(file.path);
		return rc;
	}
	w->number = h->next_number++;
	w->first_segment = first->number;
	h->files.all[h->files.n++] = file;
	return 0;
}

/* ---- putting --------------------------------------------------------------------------------- */

/* The wall clock was set, or the machine slept: another pair of clocks is right from now on. */
static bool clocks_moved(const struct history *h, const struct history_now *now)
{
	const struct incident_head *head = &h->now.head;
	uint64_t wall_ns = head->trigger_wall_ns + (now->clock_ns - head->trigger_ns);

	return now->wall_ns > wall_ns ? now->wall_ns - wall_ns > HISTORY_CLOCKS_AGREE_NS
				      : wall_ns - now->wall_ns > HISTORY_CLOCKS_AGREE_NS;
}

/* Why the file ends; NULL = it goes on. */
static const char *why_end(const struct history *h, const struct history_now *now)
{
	if (clocks_moved(h, now))
		return "the wall clock was set, or the machine slept; recording went on";
	if (store_bytes(h->now.s) >= h->cfg.file_bytes)
		return HISTORY_WENT_ON;
	return NULL;
}

/*
 * Have a file for these segments. One that ends is left for the time when they are on the disk: to
 * complete it takes a while, and what waits is lost with a kill. The first ones may be in it.
 */
static int have_file(struct history *h, struct segment *const *segments, uint32_t n,
		     const struct history_now *now, struct err *err)
{
	uint32_t first = 0;

	if (h->now.s && (store_damaged(h->now.s) || store_in_place(h->now.s, NULL)))
		leave_file(h, &h->now, NULL);
	while (h->now.s && first < n && segments[first]->store_id)
		first++;
	if (first < n && h->now.s && (h->end = why_end(h, now)) != NULL) {
		h->ended = h->now;
		memset(&h->now, 0, sizeof(h->now));
	}
	if (h->now.s)
		return 0;
	/* The directory may have gone with its disk, and come back. */
	if (!os_exists(h->dir.data))
		os_mkdirs(h->dir.data, NULL);
	return begin_file(h, segments[first], now, err);
}

/* Those that are in the file before got names since. */
static uint32_t count_before(const struct history *h, struct segment *const *segments, uint32_t n)
{
	uint32_t i = 0;

	while (i < n && segments[i]->number < h->now.first_segment)
		i++;
	return i;
}

static void complete_ended(struct history *h, struct segment *const *segments, uint32_t nbefore)
{
	if (h->ended.s && nbefore)
		store_put_segments(h->ended.s, h->ended.head.id, segments, nbefore, NULL);
	leave_file(h, &h->ended, h->end);
}

int history_put(struct history *h, struct segment *const *segments, uint32_t n,
		const struct history_now *now, struct err *err)
{
	uint64_t add_bytes = ROOM_BYTES;
	uint32_t i, before = 0;
	int rc;

	if (!n)
		return 0;
	for (i = 0; i < n; i++)
		add_bytes += 2 * segments[i]->nbytes;        /* as much for what they list */
	trim(h, add_bytes, now->wall_ns);
	rc = check_floor(h, err);
	if (!rc)
		rc = have_file(h, segments, n, now, err);
	if (!rc)
		before = count_before(h, segments, n);
	if (!rc)
		rc = store_put_segments(h->now.s, h->now.head.id, segments + before, n - before,
					err);
	complete_ended(h, segments, before);
	if (rc) {
		/* A full or busy disk may be writable later; after anything else, another file. */
		if (rc != ERR_FULL && rc != ERR_BUSY && rc != ERR_MEMORY)
			leave_file(h, &h->now, NULL);
		return rc;
	}
	for (i = before; i < n; i++)
		h->put_bytes += segments[i]->nbytes;
	file_of(h, &h->now)->bytes = history_bytes_on_disk(file_of(h, &h->now)->path);
	return 0;
}

void history_put_names(struct history *h, struct segment *const *segments, uint32_t n)
{
	uint32_t before = count_before(h, segments, n);

	if (h->now.s && before < n)
		store_put_segments(h->now.s, h->now.head.id, segments + before, n - before, NULL);
}

void history_close(struct history *h, const char *end)
{
	if (!h)
		return;
	leave_file(h, &h->now, end);
	history_free(h);
}

void history_discard(const char *store_path)
{
	struct history_files files = {0};
	struct buf dir = {0};
	uint32_t i;

	if (!history_dir(store_path, &dir, NULL) && os_exists(dir.data) &&
	    !check_dir(dir.data, NULL) && !history_list(store_path, &files, NULL)) {
		for (i = 0; i < files.n; i++)
			history_remove(files.all[i].path, NULL);
		os_remove_dir(dir.data);
	}
	history_files_free(&files);
	buf_free(&dir);
}

void history_limit(struct history *h, uint64_t max_bytes, uint64_t max_age_ns)
{
	h->cfg.max_bytes = max_bytes;
	h->cfg.max_age_ns = max_age_ns;
}

void history_rate(struct history *h, uint64_t period_ns, const char *end)
{
	leave_file(h, &h->now, end);
	h->cfg.period_ns = period_ns;
}

void history_use(const struct history *h, struct history_use *out)
{
	*out = (struct history_use){
		.files = h->files.n, .bytes = all_bytes(h), .max_bytes = h->cfg.max_bytes,
		.oldest_wall_ns = h->files.n ? h->files.all[0].name_wall_ns : 0,
		.put_bytes = h->put_bytes,
	};
}

/* ---- what dead recorders left ---------------------------------------------------------------- */

static int lock_name(const char *path, struct buf *out, struct err *err)
{
	buf_printf(out, "%s.lock", path);
	return buf_check(out, "a file name", err);
}

bool history_is_left(const char *path)
{
	struct buf lock = {0};
	bool there = !lock_name(path, &lock, NULL) && os_exists(lock.data);

	buf_free(&lock);
	return there;
}

/* Opening it for recording makes its incident partial, with the sums that readers want. */
int history_settle(const char *path, const char *end, struct err *err)
{
	struct history_file found = {0};
	struct store *s = NULL;
	struct buf lock = {0};
	int rc = store_open_history(path, &s, err);

	if (!rc)
		rc = sum_up(s, end, &found, err);
	store_close(s);
	if (!rc)
		rc = lock_name(path, &lock, err);
	if (!rc)
		os_remove(lock.data, NULL);
	buf_free(&lock);
	return rc;
}
