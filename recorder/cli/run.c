/*
 * run: start a program, record it and all that it starts until it ends, then show or export that;
 * or record processes that run already. Also collect's program, with its rules.
 *
 * The program is there before the recording begins, so that the kernel can be asked for it alone,
 * and executes its file once everything is recorded.
 */
#include "base/os.h"
#include "cli/cmd.h"
#include "source/list/heap.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_NS (10 * NS_PER_MS)
#define PIDS_MAX 16u
#define INCIDENTS_MAX 1000000u               /* of a program that collect has started */

struct run {
	char **argv;                         /* NULL: processes that run already */
	uint32_t pids[PIDS_MAX], npids;      /* these */
	struct buf pid_list;                 /* with ',' between */
	struct buf probes;                   /* --force: on their malloc, as --providers */
	struct heap_java *java[PIDS_MAX];    /* those of them that are JVMs; NULL = not */
	struct os_child *child;
	struct err failure;                  /* it could not be executed */
	uint64_t start_ns;
	bool begun, ended;
	int code;
};

/* Everything is recorded now. */
static void begun(void *ctx)
{
	struct run *r = ctx;

	r->begun = true;
	r->start_ns = os_now_ns();
	if (r->child)
		os_child_go(r->child, &r->failure);
}

static bool all_ended(const struct run *r)
{
	uint32_t i;

	for (i = 0; i < r->npids; i++)
		if (os_process_exists(r->pids[i]))
			return false;
	return true;
}

static bool over(void *ctx, struct buf *why)
{
	struct run *r = ctx;
	int code = 0;

	if (!r->child && all_ended(r))
		buf_printf(why, "process %s ended", buf_text(&r->pid_list));
	if (!r->child)
		return why->len != 0;
	if (!os_child_ended(r->child, &code))
		return false;
	r->ended = true;
	r->code = code;
	buf_printf(why, "%.200s ended with exit code %d after %.3f s", r->argv[0], code,
		   (double)(os_now_ns() - r->start_ns) / 1e9);
	return true;
}

/*
 * The recording was stopped before. A signal of the terminal has reached the program as well. Where
 * it has failed instead, what collect has started goes on.
 */
static void wait_for_end(struct run *r, bool goes_on)
{
	if (!r->child || !r->begun || r->ended)
		return;
	if (!goes_on)
		os_child_stop(r->child);
	while (!os_child_ended(r->child, &r->code))
		os_sleep_ns(LOOK_NS);
	r->ended = true;
}

/* "4711,nginx" */
static int take_processes(const char *list, struct run *r, struct err *err)
{
	struct buf one = {0};
	size_t n;
	int rc = 0;

	for (; !rc && *list; list += n + (list[n] == ',')) {
		n = strcspn(list, ",");
		buf_reset(&one);
		buf_put(&one, list, n);
		rc = buf_check(&one, "the list of processes", err);
		if (!rc && r->npids == PIDS_MAX)
			rc = err_set(err, ERR_LIMIT, "run records %u processes at most", PIDS_MAX);
		if (!rc)
			rc = cmd_one_process(buf_text(&one), &r->pids[r->npids], err);
		if (!rc)
			buf_printf(&r->pid_list, "%s%u", r->npids ? "," : "",
				   (unsigned)r->pids[r->npids]);
		r->npids += !rc;
	}
	buf_free(&one);
	return rc ? rc : buf_check(&r->pid_list, "the list of processes", err);
}

/* The words after "run", ending in NULL. */
static int take_words(const struct options *o, struct run *r, struct err *err)
{
	size_t n = (size_t)o->nprogram;

	if (n && o->process && o->command == CMD_RUN)
		return err_set(err, ERR_USAGE, "run records a program that it starts, or the "
			       "process of --process, not both");
	if (n && o->capture.file)
		return err_set(err, ERR_USAGE, "--from reads what was recorded: omit it to record "
			       "a program");
	if (n && o->command == CMD_COLLECT &&
	    (options_origin(o, "collect-multiple") == FROM_ARGS ||
	     options_origin(o, "max-collect-sec") == FROM_ARGS))
		return err_set(err, ERR_USAGE, "'-- %.80s' is recorded until it ends: omit "
			       "--collect-multiple and --max-collect-sec", o->program[0]);
	if (!n && o->process)
		return take_processes(o->process, r, err);
	if (!n)
		return err_set(err, ERR_USAGE, "which program? 'recorder run make -j8' runs make");
	if (!os_finds_program(o->program[0]))
		return err_set(err, ERR_NOT_FOUND, "there is no program '%.200s' in PATH or at "
			       "that path; nothing was recorded%s", o->program[0],
			       o->program[0][strspn(o->program[0], "0123456789")] ? "" :
			       " (a process that runs is recorded by -p PID)");
	r->argv = calloc(n + 1, sizeof(*r->argv));
	if (!r->argv)
		return err_memory(err, "to start a program");
	memcpy(r->argv, o->program, n * sizeof(*r->argv));
	return 0;
}

/* Recording options of a conf file that are about machines, not about one program. */
void cmd_leave_out_rules(const struct options *o, struct options *part)
{
	struct capture *c = &part->capture;

	*part = *o;
	part->rules.n = 0;
	part->monitors.n = 0;
	part->stop_command = part->on_failure = NULL;
	part->history_mb = 0;                /* its incident is all of it */
	part->runtime_events = part->enable_perf_map = false;
	c->only_process = c->file = c->data_file = c->heap_process = c->heap_next = NULL;
	c->providers = c->only_providers = c->kernel_events = c->clr_events = NULL;
	c->gc_collect_only = false;
	c->max_collect_ns = 0;
	c->incidents = 1;
}

/* Before the program runs for an hour. */
static int check_export(const struct options *o, struct err *err)
{
	const char *path = o->output ? o->output : "-";
	const struct exporter *e = NULL;
	int rc = cmd_choose_format(o, path, false, &e, err);

	return rc ? rc : cmd_check_output(o, path, e, err);
}

static int newest(const struct options *o, int64_t *id, struct err *err)
{
	struct store *store = NULL;
	int rc = cmd_store_open(o, STORE_READ, &store, err);

	if (!rc)
		rc = store_newest(store, id, err);
	store_close(store);
	return rc;
}

/*
 * Record into the store, or, when the machine's own recorder has the usual one, into one beside it.
 *
 * beside  keeps the other store's name
 */
static int record(struct options *part, struct run *r, struct buf *beside, struct err *err)
{
	bool rules = part->command == CMD_COLLECT;
	const struct cmd_recorded of = {.begun = begun, .over = over, .ctx = r, .logs = rules};
	struct buf usual = {0};
	int rc = cmd_record(part, &of, err);

	if (rules || rc != ERR_BUSY || r->begun || cmd_named_store(part))
		return rc;
	rc = cmd_store_path(part, STORE_RECORD, &usual, err);
	if (!rc) {
		os_dirname(buf_text(&usual), beside);
		buf_puts(beside, "/runs.db");
		rc = buf_check(beside, "the store's name", err);
	}
	if (!rc) {
		cmd_note("a recorder is running on %s; this run is kept in %s", buf_text(&usual),
			 buf_text(beside));
		part->store = beside->data;
		rc = cmd_record(part, &of, err);
	}
	buf_free(&usual);
	return rc;
}

/*
 * The heap of processes that run already: what they were started with, or page faults instead.
 * Probes on malloc would make each call slower, in all processes that share its file: they need
 * --force.
 */
static int choose_evidence(struct run *r, struct options *part, struct err *err)
{
	static const char *const also[] = {
		[HEAP_SAMPLER_JEMALLOC] = "; its jemalloc has a profile of its own, where it is "
			"started with MALLOC_CONF=prof:true,lg_prof_sample:19, which 'recorder "
			"collect --from jeprof...heap' reads",
		[HEAP_SAMPLER_TCMALLOC] = "; its tcmalloc has a profile of its own, where it is "
			"started with HEAPPROFILE=NAME, which 'recorder collect --from "
			"NAME.0001.heap' reads",
		[HEAP_SAMPLER_GO] = "; it looks like a Go program, whose own profile 'recorder "
			"collect --from FILE' reads: http://HOST/debug/pprof/heap of "
			"net/http/pprof, or what its pprof.WriteHeapProfile() wrote",
	};
	enum heap_sampler is;
	struct err why;
	uint32_t i, without = 0;
	int rc = 0;

	for (i = 0; !rc && i < r->npids; i++) {
		rc = heap_sampler_of(r->pids[i], &is, err);
		if (rc || is == HEAP_SAMPLER_OURS)
			continue;
		without++;
		if (is == HEAP_SAMPLER_JAVA && !heap_java_begin(r->pids[i], &r->java[i], &why))
			continue;
		if (is == HEAP_SAMPLER_JAVA)
			cmd_note("%s; so the page faults of process %u are recorded, whose stacks "
				 "are mostly the collector's", why.text, (unsigned)r->pids[i]);
		if (part->force)
			rc = heap_probe_malloc(r->pids[i], &r->probes, err);
		else if (is != HEAP_SAMPLER_JAVA)
			cmd_note("process %u was not started with librecorder-heap.so, so its page "
				 "faults tell who made it grow (probes on its malloc would cost "
				 "0.5 us a call: --force)%s", (unsigned)r->pids[i],
				 also[is] ? also[is] : "");
	}
	if (!rc && r->probes.len) {
		cmd_note("probes on malloc: each call takes 0.5 us longer, in all programs that "
			 "share the file; 1,000 calls a second are recorded at most ('recorder "
			 "report --metric event')");
		part->capture.providers = buf_text(&r->probes);
	}
	if (rc || !without)
		return rc;
	part->heap = without < r->npids;
	if (!part->capture.memory_period)
		part->capture.memory_period = MEMORY_PERIOD;
	return 0;
}

/*
 * What JVMs have recorded of their objects becomes an incident each.
 *
 * objects  the last of them; stays if there is none
 */
static void take_recordings(const struct options *o, struct run *r, int64_t *objects)
{
	const struct cmd_recorded quiet = {0};
	struct options part = *o;
	struct err why;
	const char *path;
	uint32_t i;
	int rc;

	part.capture.only_process = NULL;
	for (i = 0; i < r->npids; i++) {
		if (!r->java[i])
			continue;
		rc = heap_java_end(r->java[i], &path, &why);
		part.capture.file = path;
		if (!rc)
			rc = cmd_record(&part, &quiet, &why);
		if (!rc)
			rc = newest(&part, objects, &why);
		if (rc)
			cmd_note("%s", why.text);
		else
			cmd_note("what process %u allocated (--metric alloc), and objects that "
				 "have outlived a collection (heap-net), by its JVM's own "
				 "recording: incident %" PRId64, (unsigned)r->pids[i], *objects);
	}
}

/* Show or export the recording, or what a JVM told if the metric is of that. */
static int show(struct options *part, struct run *r, struct err *err)
{
	const char *metric = part->metric ? part->metric : "";
	bool of_objects = !strncmp(metric, "heap", 4) || !strcmp(metric, "alloc");
	int64_t id = 0, objects = 0;
	int rc = newest(part, &id, err);

	if (rc)
		return rc;
	take_recordings(part, r, &objects);
	if (of_objects && objects)
		id = objects;
	part->ids = (struct id_list){&id, 1};
	if (part->output || part->format)
		return cmd_export(part, err);
	return part->metric ? cmd_report(part, err) : cmd_show(part, err);
}

int cmd_run(const struct options *o, struct err *err)
{
	struct options part = *o;            /* borrows all of it */
	struct run r = {0};
	struct buf beside = {0};
	struct heap_environment heap = {0};
	uint32_t i;
	int rc = take_words(o, &r, err);

	if (!rc && o->heap && r.argv)
		rc = heap_environment((uint64_t)o->heap_kb * 1024, &heap, err);
	if (!rc && (o->output || o->format))
		rc = check_export(o, err);
	if (!rc && r.argv)
		rc = os_child_start(r.argv, heap.variables, &r.child, err);
	if (!rc) {
		if (o->command == CMD_RUN) {
			cmd_leave_out_rules(o, &part);
			if (options_origin(o, "max-cpu-percent") != FROM_ARGS)
				part.max_cpu_pct = 0;
			part.process = NULL; /* all that is recorded is shown */
		} else {
			part.capture.incidents = INCIDENTS_MAX;
			part.capture.max_collect_ns = 0;
		}
		part.capture.heap_ring = heap.ring;
		if (r.child)
			part.capture.root_pid = os_child_pid(r.child);
		else
			part.capture.only_process = buf_text(&r.pid_list);
		part.capture.only_its_events = !r.child;
		rc = o->heap && !r.child ? choose_evidence(&r, &part, err) : 0;
	}
	if (!rc) {
		rc = record(&part, &r, &beside, err);
	}
	wait_for_end(&r, rc && o->command == CMD_COLLECT);
	if (!rc && r.failure.code) {
		*err = r.failure;
		rc = r.failure.code;
	}
	if (!rc && o->command == CMD_RUN)
		rc = show(&part, &r, err);
	if (rc && rc != ERR_STOPPED && r.ended && r.code)
		cmd_note("%s", err->text);
	if (r.ended && (r.code || !rc))
		rc = CMD_EXITS + r.code;
	os_child_free(r.child);
	heap_environment_free(&heap);
	buf_free(&beside);
	buf_free(&r.pid_list);
	buf_free(&r.probes);
	for (i = 0; i < r.npids; i++)
		heap_java_free(r.java[i]);
	free(r.argv);
	return rc;
}
