#include "engine/data_file.h"

#include "base/os.h"
#include "base/text.h"
#include "export/export.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <string.h>

#define DEFAULT_FORMAT "perfview-xml-zip"

struct parts {
	const struct exporter *exporter;
	const char *suffix;
	size_t base_len;                     /* of the name, without the suffix */
};

bool data_file_has_suffix(const char *name)
{
	return exporter_by_path(name) || text_ends_fold(name, ".etl") ||
	       text_ends_fold(name, ".etl.zip");
}

static void split_name(const char *name, struct parts *out)
{
	out->exporter = exporter_by_path(name);
	out->base_len = strlen(name);
	if (out->exporter) {
		out->base_len -= strlen(out->exporter->suffix);
		out->suffix = name + out->base_len;
		return;
	}
	out->exporter = exporter_by_name(DEFAULT_FORMAT);
	out->suffix = out->exporter->suffix;
	if (text_ends_fold(name, ".etl.zip"))
		out->base_len -= strlen(".etl.zip");
	else if (text_ends_fold(name, ".etl"))
		out->base_len -= strlen(".etl");
}

/* The length of a name without the ".123" at its end, unless that leaves nothing. */
static size_t without_number(const char *name, size_t n)
{
	size_t digits = n, start = (size_t)(os_base_name(name) - name);

	while (digits > start && name[digits - 1] >= '0' && name[digits - 1] <= '9')
		digits--;
	return digits < n && digits > start + 1 && name[digits - 1] == '.' ? digits - 1 : n;
}

static void put_name(const char *name, const struct parts *p, uint32_t number, struct buf *out)
{
	buf_reset(out);
	if (number) {
		buf_put(out, name, without_number(name, p->base_len));
		buf_printf(out, ".%" PRIu32, number);
	} else {
		buf_put(out, name, p->base_len);
	}
	buf_puts(out, p->suffix);
}

void data_file_first(const char *name, struct buf *out)
{
	struct parts p;

	split_name(name, &p);
	put_name(name, &p, 0, out);
}

int data_file_check(const char *name, struct err *err)
{
	struct os_file_info info;
	struct buf dir = {0};
	struct parts p;
	int rc;

	split_name(name, &p);
	if (!p.base_len || !*os_base_name(name) || strchr("/\\", name[p.base_len - 1]))
		return err_set(err, ERR_USAGE, "--data-file: '%.200s' names no file", name);
	os_dirname(name, &dir);
	rc = os_path_info(buf_text(&dir), &info, err);
	if (rc)
		rc = err_set(err, ERR_USAGE, "--data-file: there is no directory %.200s",
			     buf_text(&dir));
	buf_free(&dir);
	return rc;
}

static void count_progress(void *ctx)
{
	_Atomic uint64_t *progress = ctx;

	if (progress)
		atomic_fetch_add(progress, 1);
}

static int write_file(const struct incident *in, const struct parts *p, const char *path,
		      _Atomic uint64_t *progress, struct err *err)
{
	struct export_options options = {.stream = STREAM_CPU, .annotate = true, .ids = true,
					 .top = 10, .file_name = os_base_name(path)};
	struct out *out = NULL;
	int rc = out_open(path, false, &out, err);

	if (rc)
		return rc;
	out_watch(out, count_progress, progress);
	rc = p->exporter->write(in, &options, out, err);
	if (rc) {
		out_abandon(out);
		return rc;
	}
	return out_close(out, err);
}

static int write_free(const struct incident *in, const char *name, _Atomic uint64_t *progress,
		      struct buf *path, struct err *err)
{
	struct parts p;
	uint32_t number;
	int rc;

	split_name(name, &p);
	for (number = 0; number < DATA_FILES_MAX; number++) {
		put_name(name, &p, number, path);
		rc = buf_check(path, "the name of the data file", err);
		if (rc)
			return rc;
		if (os_exists(buf_text(path)))
			continue;
		rc = write_file(in, &p, buf_text(path), progress, err);
		if (rc != ERR_EXISTS)        /* another program took this name meanwhile */
			return rc;
	}
	return err_set(err, ERR_LIMIT, "there are over %u data files already: %s and so on",
		       DATA_FILES_MAX, name);
}

int data_file_write(const char *store_path, int64_t incident, const char *name,
		    _Atomic uint64_t *progress, struct buf *path, struct err *err)
{
	struct store *store = NULL;
	struct incident in = {0};
	int rc = store_open(store_path, STORE_READ, &store, err);

	buf_reset(path);
	if (!rc)
		store_set_progress(store, progress);
	if (!rc)
		rc = store_load(store, incident, &in, err);
	if (!rc)
		rc = incident_whole(&in, err);
	if (!rc)
		rc = write_free(&in, name, progress, path, err);
	if (rc)
		buf_reset(path);
	incident_free(&in);
	store_close(store);
	return rc;
}
