/*
 * export: one incident in another program's format.
 */
#include "cli/cmd.h"
#include "cli/source_lines.h"

#include "base/text.h"
#include "base/os.h"
#include "export/export.h"
#include "listing/report_requests.h"
#include "listing/report_runtimes.h"
#include "listing/report_source.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* Say why an incident has no samples of the stream, or which other streams it has. */
static void put_why_none(const struct incident *in, struct buf *out)
{
	struct buf metrics = {0};

	if (incident_put_metrics(in, &metrics)) {
		buf_printf(out, "it has samples of --metric %s", buf_text(&metrics));
		buf_free(&metrics);
		return;
	}
	buf_puts(out, in->head.gap_reason ? in->head.gap_reason :
		      in->nevents ? "it has events only" : "its window is empty");
	if (in->nevents)
		buf_puts(out, "; write its events with --format events-csv or jsonl");
}

/* Runs before the filter. A named stream without samples is an error, not an empty file. */
static int check_stream(const struct options *o, const struct incident *in, enum stream stream,
			const uint64_t has[], struct err *err)
{
	struct buf why = {0};
	int rc = 0;

	if (has[stream])
		return 0;
	put_why_none(in, &why);
	if (o->metric)
		rc = err_set(err, ERR_NOT_FOUND, "incident %" PRId64 " holds no samples of %s: %s",
			     in->head.id, o->metric, buf_text(&why));
	else
		cmd_note("incident %" PRId64 " holds no samples%s%s: %s", in->head.id,
			 in->nsamples ? " of " : "", in->nsamples ? stream_text(stream) : "",
			 buf_text(&why));
	buf_free(&why);
	return rc;
}

#define PAGE_ROWS 1000u                      /* of each table of a page */

/* Tell an empty part from an empty incident. */
static void remark(const struct incident *in, enum stream stream, bool had_samples)
{
	uint32_t i;

	for (i = 0; i < in->nsamples && in->samples[i].stream != stream; i++)
		;
	if (had_samples && i == in->nsamples)
		cmd_note("the requested part of incident %" PRId64 " has no samples", in->head.id);
	if (in->several_periods)
		cmd_note("the sampling rate changed within incident %" PRId64
			 ": its values are CPU time (microseconds in folded stacks), not samples",
			 in->head.id);
	if (in->nparts && in->head.state != INCIDENT_COMPLETE)
		cmd_note("not all of the incidents are complete: what was stored of them is "
			 "written");
	else if (in->head.state != INCIDENT_COMPLETE)
		cmd_note("incident %" PRId64 " is %s: the part that was stored is written",
			 in->head.id, incident_state_text(in->head.state));
}

static void options_of(const struct options *o, const char *path, enum stream stream,
		       struct export_options *out)
{
	*out = (struct export_options){
		.stream = stream, .annotate = !o->no_annotate, .ids = !o->no_ids,
		.addresses = o->addresses, .offsets = o->livestacks, .evented = o->evented,
		.excel = o->excel, .top = o->livestacks ? 0 : o->top, .min_weight = o->min_count,
		.file_name = strcmp(path, "-") == 0 ? NULL : os_base_name(path),
	};
}

struct job {
	const struct exporter *e;
	const struct incident *in;
	struct export_options options;
};

static int write_job(void *ctx, struct out *out, struct err *err)
{
	const struct job *j = ctx;

	return j->e->write(j->in, &j->options, out, err);
}

static int write_out(const struct options *o, const char *path, const struct exporter *e,
		     const struct incident *in, enum stream stream, const char *runtimes,
		     struct err *err)
{
	struct job job = {.e = e, .in = in};
	struct buf changed = {0};
	int rc;

	options_of(o, path, stream, &job.options);
	job.options.runtimes = runtimes;
	if (strcmp(e->name, "html") == 0 && !cmd_put_changed(o, in, &changed) && changed.len)
		job.options.changed = buf_text(&changed);
	rc = cmd_write_output(o, path, e, write_job, &job, err);
	buf_free(&changed);
	return rc;
}

/* The first pass refuses what can be refused, the second writes. */
static int write_in_pass(const struct options *o, const char *path, const struct exporter *e,
			 const struct incident *in, enum stream stream, const char *runtimes,
			 unsigned pass, struct err *err)
{
	int rc = pass ? write_out(o, path, e, in, stream, runtimes, err)
		      : cmd_check_output(o, path, e, err);

	if (!rc && pass)
		cmd_note("%s", path);
	return rc;
}

/* ---- the usual set --------------------------------------------------------------------------- */

/*
 * DIR/incident-7.folded and others. Each file appears whole or not at all. If one of them exists
 * already, none is written.
 */
static int write_all(const struct options *o, const struct incident *in, enum stream stream,
		     const char *runtimes, struct err *err)
{
	struct buf path = {0};
	unsigned pass, i;
	int rc = os_mkdirs(o->all_dir, err);

	for (pass = 0; pass < 2; pass++) {
		for (i = 0; exporters[i] && !rc; i++) {
			const struct exporter *e = exporters[i];

			if (!e->usual)
				continue;
			buf_reset(&path);
			buf_printf(&path, "%s/incident-%" PRId64 "%s", o->all_dir, in->head.id,
				   e->suffix);
			rc = buf_check(&path, "a file's name", err);
			if (!rc)
				rc = write_in_pass(o, path.data, e, in, stream, runtimes, pass,
						   err);
		}
	}
	buf_free(&path);
	return rc;
}

/* ---- a file for each process ----------------------------------------------------------------- */

enum { NAME_IN_PATH_MAX = 60 };

/* "nginx-100"; characters that are special in a path become '_'. */
static void put_process(const struct incident_process *p, struct buf *out)
{
	uint32_t i;

	for (i = 0; p->name[i] && i < NAME_IN_PATH_MAX; i++) {
		bool plain = isalnum((unsigned char)p->name[i]) || strchr("._-", p->name[i]);

		buf_putc(out, plain ? p->name[i] : '_');
	}
	buf_printf(out, "-%" PRIu32, p->pid);
}

/* How many earlier processes have the same name in a path, ignoring case; may set out->failed. */
static uint32_t namesakes(const struct incident *in, uint32_t process, struct buf *out)
{
	struct buf name = {0}, other = {0};
	uint32_t i, n = 0;

	put_process(&in->processes[process], &name);
	for (i = 0; i < process; i++) {
		if (in->processes[i].pid != in->processes[process].pid)
			continue;
		buf_reset(&other);
		put_process(&in->processes[i], &other);
		n += text_same_fold(buf_text(&name), buf_text(&other));
	}
	if (name.failed || other.failed)
		out->failed = ERR_MEMORY;
	buf_free(&name);
	buf_free(&other);
	return n;
}

/*
 * "cpu.pb.gz" of process 100 "nginx" is cpu-nginx-100.pb.gz; of a second one cpu-nginx-100.2.pb.gz
 */
static int path_of_process(const char *path, const struct exporter *e, const struct incident *in,
			   uint32_t process, struct buf *out, struct err *err)
{
	size_t end = strlen(path), suffix = e->suffix ? strlen(e->suffix) : 0;
	uint32_t before;

	if (exporter_packs(e, path))
		end -= strlen(".gz");
	if (exporter_by_path(path) == e)
		end -= suffix;
	buf_reset(out);
	buf_put(out, path, end);
	buf_putc(out, '-');
	put_process(&in->processes[process], out);
	before = namesakes(in, process, out);
	if (before)
		buf_printf(out, ".%" PRIu32, before + 1);
	buf_puts(out, path + end);
	return buf_check(out, "a file's name", err);
}

/* Copy one process's samples and events into part's arrays; part shares the tables of in. */
static void take_process(const struct incident *in, uint32_t process, struct incident *part)
{
	uint32_t i;

	part->nsamples = part->nevents = 0;
	for (i = 0; i < in->nsamples; i++) {
		uint32_t thread = in->samples[i].thread;

		if (thread != THREAD_NONE && in->threads[thread].process == process)
			part->samples[part->nsamples++] = in->samples[i];
	}
	for (i = 0; i < in->nevents; i++) {
		uint32_t thread = in->events[i].thread;

		if (thread != THREAD_NONE && in->threads[thread].process == process)
			part->events[part->nevents++] = in->events[i];
	}
	incident_count(part);
}

/* For each process, whether it has samples of the stream; NULL when out of memory. */
static bool *with_samples(const struct incident *in, enum stream stream)
{
	bool *has = calloc((size_t)in->nprocesses + 1, sizeof(*has));
	uint32_t i;

	for (i = 0; has && i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];

		if (s->stream == stream && s->thread != THREAD_NONE)
			has[in->threads[s->thread].process] = true;
	}
	return has;
}

/* If one of the files exists already, none is written. Samples without a process are left out. */
static int write_processes(const struct options *o, const char *path, const struct exporter *e,
			   const struct incident *in, enum stream stream, struct err *err)
{
	bool *has = with_samples(in, stream);
	struct incident part = *in;
	struct buf name = {0};
	uint32_t pass, i, n = 0;
	int rc = 0;

	part.samples = malloc(((size_t)in->nsamples + 1) * sizeof(*part.samples));
	part.events = malloc(((size_t)in->nevents + 1) * sizeof(*part.events));
	if (!has || !part.samples || !part.events)
		rc = err_memory(err, "while taking an incident apart");
	for (pass = 0; pass < 2; pass++) {
		for (i = 0; i < in->nprocesses && !rc; i++) {
			if (!has[i])
				continue;
			n++;
			rc = path_of_process(path, e, in, i, &name, err);
			if (!rc && pass)
				take_process(in, i, &part);
			if (!rc)
				rc = write_in_pass(o, name.data, e, &part, stream, NULL, pass, err);
		}
	}
	if (!rc && !n)
		rc = err_set(err, ERR_NOT_FOUND,
			     "no process of incident %" PRId64
			     " has such samples; no file was written",
			     in->head.id);
	free(has);
	free(part.samples);
	free(part.events);
	buf_free(&name);
	return rc;
}

/* ---- export ---------------------------------------------------------------------------------- */

/* Whether several incidents can be written as one: in this format, and into one file. */
static int check_set(const struct options *o, const struct exporter *e, struct err *err)
{
	struct buf names = {0};
	size_t i;
	int rc = 0;

	if (o->all_dir || o->per_process)
		return err_set(err, ERR_USAGE, "several incidents are written into one file: omit "
			       "--%s", o->all_dir ? "all" : "per-process");
	for (i = 0; exporters[i]; i++)
		if (exporters[i]->sets)
			buf_printf(&names, "%s%s", names.len ? ", " : "", exporters[i]->name);
	if (!e->sets || o->livestacks)
		rc = err_set(err, ERR_USAGE, "%s holds one incident; several as one are written as "
			     "%s", o->livestacks ? "--livestacks" : e->name, buf_text(&names));
	buf_free(&names);
	return rc;
}

static int check_request(const struct options *o, const char *path, const struct exporter **e,
			 struct err *err)
{
	int rc;

	if (o->all_dir) {
		if (o->output || o->format || o->sqlite_flat)
			return err_set(err, ERR_USAGE, "--all chooses files and formats itself: "
				       "omit -o and --format");
		return o->per_process ? err_set(err, ERR_USAGE,
						"--all and --per-process cannot be combined")
				      : 0;
	}
	if (o->per_process && strcmp(path, "-") == 0)
		return err_set(err, ERR_USAGE,
			       "--per-process writes one file per process: give -o FILE");
	rc = cmd_choose_format(o, path, false, e, err);
	return rc || o->per_process ? rc : cmd_check_output(o, path, *e, err);
}

/* The default stream: CPU time, else the only one there is (stored stacks have only events). */
static enum stream only_stream(const uint64_t has[])
{
	enum stream found = STREAM_CPU;
	unsigned i, n = 0;

	for (i = 0; i < STREAMS_MAX; i++) {
		if (!has[i])
			continue;
		if (i == STREAM_CPU)
			return STREAM_CPU;
		found = (enum stream)i;
		n++;
	}
	return n == 1 ? found : STREAM_CPU;
}

/*
 * Those of what is chosen of the incident; a request that began before it is none of them. Where
 * --activities has put requests in place of threads, those of the incident as it was.
 */
static int put_requests(struct sheet *sheet, const struct options *o, struct incident *in,
			struct err *err)
{
	bool again = o->activities && !in->nparts;
	struct options plain = *o;
	struct incident threads = {0};
	struct activities a = {0};
	int rc = 0;

	plain.activities = false;
	if (again) {
		rc = cmd_load(&plain, &threads, err);
		if (!rc)
			rc = cmd_filter(&plain, &threads, err);
		in = &threads;
	}
	if (!rc)
		rc = activities_find(in, o->pairs.items, o->pairs.n, &a, err);
	if (!rc)
		rc = activities_measure(in, &a, err);
	if (!rc)
		rc = report_requests(sheet, o, in, &a, err);
	activities_free(&a);
	incident_free(&threads);
	return rc;
}

/*
 * What a page has beside the stream: requests, and what runtimes tell, as an array of the rows that
 * report prints; nothing there for other formats.
 */
static int for_page(const struct options *o, const struct exporter *e, struct incident *in,
		    enum stream stream, struct buf *runtimes, struct err *err)
{
	struct buf notes = {0};
	struct options rows = *o;
	struct sheet sheet;
	struct err why;
	size_t i;
	struct source_texts texts = {in, o->capture.symbol_path};
	const struct source_finder finder = {source_text_find, &texts};
	int rc = 0;

	if (o->per_process || !(o->all_dir || strcmp(e->name, "html") == 0))
		return 0;
	rows.json = true;
	rows.rows = PAGE_ROWS;
	sheet_init(&sheet, &rows);
	if (put_requests(&sheet, &rows, in, &why) == ERR_MEMORY ||
	    report_runtimes(&sheet, &rows, in, &why) == ERR_MEMORY)
		rc = err_set(err, ERR_MEMORY, "%s", why.text);
	if (!rc && o->source_of)
		rc = report_source(&sheet, &rows, in, stream, &finder, &notes, err);
	if (!rc && sheet.out.len) {
		buf_putc(runtimes, '[');
		buf_put(runtimes, sheet.out.data, sheet.out.len - 1);
		buf_putc(runtimes, ']');
		for (i = 0; !runtimes->failed && i < runtimes->len; i++)
			if (runtimes->data[i] == '\n')
				runtimes->data[i] = ',';
		rc = buf_check(runtimes, "what runtimes tell", err);
	}
	sheet_free(&sheet);
	cmd_notes(&notes);
	buf_free(&notes);
	return rc;
}

int cmd_export(const struct options *o, struct err *err)
{
	const char *path = o->output ? o->output : "-";
	const struct exporter *e = NULL;
	struct incident in = {0};
	struct buf runtimes = {0};
	enum stream stream = cmd_stream(o);
	uint64_t has[STREAMS_MAX] = {0};
	int rc;

	rc = check_request(o, path, &e, err);
	if (!rc && cmd_several(o)) {
		rc = check_set(o, e, err);
		if (!rc)
			rc = cmd_load_several(o, cmd_filter, &in, err);
	} else if (!rc) {
		rc = cmd_load(o, &in, err);
	}
	if (!rc && o->metric)
		rc = cmd_event_samples(o, &in, err);
	if (!rc) {
		incident_count_streams(&in, has);
		stream = o->metric ? stream : only_stream(has);
		rc = check_stream(o, &in, stream, has, err);
	}
	if (!rc && !in.nparts)
		rc = cmd_filter(o, &in, err);
	if (!rc) {
		remark(&in, stream, has[stream] > 0);
		if (o->inlines || o->source_of)
			rc = source_lines_add(&in, o->capture.symbol_path, err);
	}
	if (!rc)
		rc = for_page(o, e, &in, stream, &runtimes, err);
	if (!rc)
		rc = o->all_dir ? write_all(o, &in, stream, runtimes.data, err) :
		     o->per_process ? write_processes(o, path, e, &in, stream, err)
				    : write_out(o, path, e, &in, stream, runtimes.data, err);
	buf_free(&runtimes);
	if (!rc)                             /* the file is written; report what is missing */
		rc = incident_whole(&in, err);
	incident_free(&in);
	return rc;
}
