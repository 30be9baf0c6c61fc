#include "ship/past.h"

#include "base/os.h"
#include "net/sha256.h"
#include "store/history.h"

#include <stdio.h>
#include <string.h>

#define ROUND_S 10u                          /* how often the history is written */
#define MISSED_NS (15 * NS_PER_SEC)          /* shorter gaps are between two rounds */

static uint64_t begin_of(const struct history_file *f)
{
	return history_wall_ns(f, f->t0_ns);
}

static uint64_t end_of(const struct history_file *f)
{
	return history_wall_ns(f, f->t1_ns) + 1;
}

/*
 * A file that cannot be read is passed over: *unreadable; and so is one in which nothing follows.
 * Numbers that are all lower are those of a history that was begun anew.
 */
static struct history_file *find_file(struct history_files *files, struct ship_past *at,
				      const char **unreadable)
{
	uint32_t i;

	if (files->n && files->all[files->n - 1].number < at->file)
		at->file = 0;

	for (i = 0; i < files->n; i++) {
		struct history_file *f = &files->all[i];

		if (f->number < at->file)
			continue;
		history_look(f, false);
		if (f->readable && (f->number > at->file || end_of(f) > at->next_wall_ns))
			return f;
		if (!f->readable && !f->blank && os_exists(f->path))
			*unreadable = f->path;
	}
	return NULL;
}

int past_next(const char *store_path, const struct ship_past *past, uint64_t length_ns,
	      uint64_t now_ns, struct past_interval *out, uint32_t *wait_s, struct err *err)
{
	struct ship_past at = *past;
	struct history_files files = {0};
	const struct history_file *f;
	const char *unreadable = NULL;
	uint64_t from_ns, until_ns, ready_ns;
	int rc = history_list(store_path, &files, err);

	if (rc)
		return rc;
	*wait_s = (uint32_t)(length_ns / NS_PER_SEC);
	f = find_file(&files, &at, &unreadable);
	if (!f) {
		history_files_free(&files);
		return ERR_NOT_FOUND;
	}
	from_ns = f->number == at.file ? at.next_wall_ns : begin_of(f);
	until_ns = (from_ns / length_ns + 1) * length_ns;
	ready_ns = until_ns + PAST_MARGIN_NS;
	if (!f->locked) {
		until_ns = until_ns < end_of(f) ? until_ns : end_of(f);
	} else if (end_of(f) < ready_ns) {
		*wait_s = ROUND_S;
		if (ready_ns > now_ns)
			*wait_s += (uint32_t)((ready_ns - now_ns) / NS_PER_SEC);
		rc = ERR_NOT_FOUND;
	}
	if (!rc)
		*out = (struct past_interval){.from_ns = from_ns, .until_ns = until_ns,
					      .file = f->number};
	if (!rc && unreadable)
		snprintf(out->unreadable, sizeof(out->unreadable), "%s", os_base_name(unreadable));
	/* The file that was being sent has left: nobody knows what else was in it. */
	if (!rc && past->file && (files.all[0].number > at.file || unreadable) &&
	    from_ns > past->next_wall_ns + MISSED_NS)
		out->missed_from_ns = past->next_wall_ns;
	history_files_free(&files);
	return rc;
}

int past_load(const char *store_path, const struct ship_past *at, const struct past_interval *i,
	      struct incident *out, struct err *err)
{
	char text[80], hex[SHA256_HEX];
	int rc = history_load_of_file(store_path, i->file, i->from_ns, i->until_ns - 1, out, err);

	if (rc)
		return rc;
	snprintf(text, sizeof(text), "%s %u %llu", at->series, (unsigned)i->file,
		 (unsigned long long)i->from_ns);
	sha256_text(text, strlen(text), hex);
	snprintf(out->head.uuid, sizeof(out->head.uuid), "%.8s-%.4s-%.4s-%.4s-%.12s", hex, hex + 8,
		 hex + 12, hex + 16, hex + 20);
	return 0;
}
