/*
 * export: one incident in another program's format.
 */
#include "cmd.h"
#include "source_lines.h"

#include "base/text.h"
#include "base/os.h"
#include "export/export.h"

#include <inttypes.h>
#include <string.h>

static void put_formats(struct buf *out)
{
	unsigned i;

	for (i = 0; exporters[i]; i++)
		buf_printf(out, "%s%s", i ? ", " : "", exporters[i]->name);
}

static int no_format(const char *why, const char *what, struct err *err)
{
	struct buf list = {0};

	put_formats(&list);
	err_set(err, ERR_USAGE, "%s%s; --format is one of: %s", why, what, buf_text(&list));
	buf_free(&list);
	return ERR_USAGE;
}

static int choose_format(const struct options *o, const char *path, const struct exporter **out,
			 struct err *err)
{
	if (o->format) {
		*out = exporter_by_name(o->format);
		return *out ? 0 : no_format("unknown format ", o->format, err);
	}
	if (strcmp(path, "-") == 0)
		return no_format("which format is wanted", "", err);
	*out = exporter_by_path(path);
	return *out ? 0 : no_format("no format has the suffix of ", path, err);
}

/* What can be refused before the store is even read. */
static int check_output(const struct options *o, const char *path, const struct exporter *e,
			struct err *err)
{
	if (strcmp(path, "-") == 0) {
		if (e->binary && os_is_terminal(os_stdout()))
			return err_set(err, ERR_USAGE, "%s is binary and would spoil the terminal; "
				       "use -o FILE, or a pipe", e->name);
		return 0;
	}
	if (!o->force && os_exists(path))
		return err_set(err, ERR_EXISTS, "%s exists already; use --force to replace it, or "
			       "-o another name", path);
	return 0;
}

static int filter(const struct options *o, struct incident *in, struct err *err)
{
	struct incident_filter f = {
		.process = o->process, .tid = o->tid, .no_kernel = o->no_kernel,
		.from_ns = o->from_ns, .has_from = o->from_ns != OPTION_NO_TIME,
		.to_ns = o->to_ns, .has_to = o->to_ns != OPTION_NO_TIME,
	};

	if (!f.process && !f.tid && !f.no_kernel && !f.has_from && !f.has_to)
		return 0;
	return incident_filter(in, &f, err);
}

/* Before the filter: a part that is empty is told from an incident that is. */
static void remark(const struct incident *in, uint64_t samples_before)
{
	if (!samples_before)
		cmd_note("incident %" PRId64 " holds no samples: %s", in->head.id,
			 in->head.gap_reason ? in->head.gap_reason : "its window is empty");
	else if (!in->nsamples)
		cmd_note("no sample of incident %" PRId64 " is in the part that was asked for",
			 in->head.id);
	if (in->several_periods)
		cmd_note("the rate of sampling changed within incident %" PRId64 ": its values are CPU "
			 "time, in folded stacks microseconds, not samples", in->head.id);
	if (in->head.state != INCIDENT_COMPLETE)
		cmd_note("incident %" PRId64 " is %s: what there is of it is written",
			 in->head.id, incident_state_text(in->head.state));
}

static int write_out(const struct options *o, const char *path, const struct exporter *e,
		     const struct incident *in, struct err *err)
{
	struct export_options options = {
		.annotate = !o->no_annotate, .ids = !o->no_ids, .addresses = o->addresses,
		.file_name = strcmp(path, "-") == 0 ? NULL : text_base_name(path),
	};
	struct out *out = NULL;
	int rc = out_open(path, o->force, &out, err);

	if (rc)
		return rc;
	rc = e->write(in, &options, out, err);
	if (rc) {
		out_abandon(out);
		return rc;
	}
	return out_close(out, err);
}

int cmd_export(const struct options *o, struct err *err)
{
	const char *path = o->output ? o->output : "-";
	const struct exporter *e = NULL;
	struct store *store = NULL;
	struct incident in = {0};
	uint64_t samples = 0;
	int64_t id = 0;
	int rc;

	rc = choose_format(o, path, &e, err);
	if (!rc)
		rc = check_output(o, path, e, err);
	if (!rc)
		rc = cmd_store_open(o, STORE_READ, &store, err);
	if (!rc)
		rc = cmd_incident(o, store, &id, err);
	if (!rc)
		rc = store_load(store, id, &in, err);
	if (!rc) {
		samples = in.nsamples;
		rc = filter(o, &in, err);
	}
	if (!rc) {
		remark(&in, samples);
		rc = o->inlines ? source_lines_add(&in, err) : 0;
	}
	if (!rc)
		rc = write_out(o, path, e, &in, err);
	incident_free(&in);
	store_close(store);
	return rc;
}
