/*
 * What several commands share: finding the store and the incident, checking rules, numbers as text.
 */
#include "cli/cmd.h"

#include "analysis/activities.h"
#include "analysis/event_samples.h"
#include "analysis/group.h"
#include "analysis/managed_view.h"
#include "analysis/wait_names.h"
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"
#include "engine/command_line.h"
#include "engine/data_file.h"
#include "engine/engine.h"
#include "http/server.h"
#include "http/textfile.h"
#include "model/memory_budget.h"
#include "source/stopped/thread_stacks.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PROCESSES_TRIED 8u

void cmd_note(const char *format, ...)
{
	struct buf text = {0}, line = {0};
	va_list args;

	va_start(args, format);
	buf_vprintf(&text, format, args);
	va_end(args);
	/* The text holds names from outside, which must not send commands to the terminal. */
	buf_puts(&line, "recorder: ");
	utf8_put_clean(&line, buf_text(&text), text.len, SIZE_MAX);
	buf_putc(&line, '\n');
	buf_free(&text);
	if (!line.failed)
		os_write(os_stderr(), line.data, line.len, NULL);
	buf_free(&line);
}

void cmd_notes(const struct buf *lines)
{
	const char *at;
	size_t n;

	for (at = buf_text(lines); *at; at += n + (at[n] == '\n')) {
		n = strcspn(at, "\n");
		cmd_note("%.*s", (int)n, at);
	}
}

int cmd_stop_command(const struct options *o, struct command_line *out, struct err *err)
{
	int rc = command_line_parse(o->stop_command, out, err);

	return rc ? err_prefix(err, "--stop-command") : 0;
}

int cmd_on_failure(const struct options *o, bool *exits, struct command_line *out, struct err *err)
{
	static const char command[] = "command:";
	const char *how = o->on_failure ? o->on_failure : "log";
	int rc = 0;

	*exits = strcmp(how, "exit") == 0;
	if (strncmp(how, command, strlen(command)) == 0)
		rc = command_line_parse(how + strlen(command), out, err);
	else if (!*exits && strcmp(how, "log") != 0)
		rc = err_set(err, ERR_USAGE, "'%.60s' is not log, exit or command:CMD", how);
	return rc ? err_prefix(err, "--on-failure") : 0;
}

int cmd_check_data_file(const struct options *o, struct err *err)
{
	const char *name = o->capture.data_file;

	if (name && o->bare_data_file && !data_file_has_suffix(name))
		return err_set(err, ERR_USAGE, "unexpected word '%.100s': the name of a file for "
			       "the incidents ends in .html, .folded or another format's suffix; "
			       "--data-file %.100s takes any name", name, name);
	return name ? data_file_check(name, err) : 0;
}

bool cmd_http(const struct options *o, struct http_config *out)
{
	*out = (struct http_config){
		.address = o->http, .token_file = o->http_token, .cert_file = o->http_cert,
		.key_file = o->http_key, .pre_ns = o->capture.pre_ns,
		.post_ns = o->capture.post_ns,
	};
	return o->http != NULL;
}

int cmd_check_http(const struct options *o, struct err *err)
{
	struct http_config cfg;
	int rc = cmd_http(o, &cfg) ? http_server_check(&cfg, err) : 0;

	if (rc)
		return options_at_line(o, options_line(o, "http"), err);
	rc = o->textfile ? textfile_check(o->textfile, err) : 0;
	return rc ? options_at_line(o, options_line(o, "textfile"), err) : 0;
}

/* ---- the store ------------------------------------------------------------------------------- */

/* Whether a file exists; one in a directory that is closed to us counts as existing. */
static bool may_exist(const char *path)
{
	struct os_file_info info;
	int rc = os_path_info(path, &info, NULL);

	return rc == 0 || rc == ERR_ACCESS;
}

const char *cmd_named_store(const struct options *o)
{
	const char *env = os_env("RECORDER_STORE");

	if (options_origin(o, "store") == FROM_ARGS)
		return o->store;
	return env && *env ? env : o->store;
}

int cmd_store_path(const struct options *o, enum store_mode mode, struct buf *path, struct err *err)
{
	const char *named = cmd_named_store(o);
	struct buf system = {0};
	int rc = 0;

	buf_reset(path);
	if (named)
		buf_puts(path, named);
	else
		rc = os_default_store(path, err);
	if (!rc && !named && mode != STORE_RECORD && !may_exist(buf_text(path))) {
		os_system_store(&system);
		if (may_exist(buf_text(&system))) {
			buf_reset(path);
			buf_puts(path, buf_text(&system));
		}
		rc = buf_check(&system, "the store's name", err);
	}
	buf_free(&system);
	return rc ? rc : buf_check(path, "the store's name", err);
}

int cmd_not_ours(const struct options *o, const char *path, struct err *err)
{
	struct os_file_info info;
	struct buf dir = {0};
	const char *env = os_env("RECORDER_STORE");
	char owner[40] = "another user";
	bool from_env;
	int rc = os_path_info(path, &info, NULL);

	if (rc) {
		os_dirname(path, &dir);
		rc = os_path_info(buf_text(&dir), &info, NULL);
		buf_free(&dir);
	}
	if (!rc && info.uid != os_uid())
		snprintf(owner, sizeof(owner), info.uid ? "user number %" PRIu32 : "root",
			 info.uid);
	/* sudo drops the environment, and root's store may be another one. */
	from_env = env && *env && options_origin(o, "store") != FROM_ARGS;
	return err_set(err, ERR_ACCESS,
		       "%s belongs to %s and is closed to others; run the same command with "
		       "sudo%s%s", path, owner, from_env ? " and --store " : "",
		       from_env ? env : "");
}

/* store_open() found nothing: is there no store, or may we not see it? */
static int no_store(const struct options *o, const char *path, struct err *err)
{
	struct os_file_info info;

	switch (os_path_info(path, &info, NULL)) {
	case 0:
		return ERR_NOT_FOUND;        /* an empty file: store_open() has said so */
	case ERR_ACCESS:
		return cmd_not_ours(o, path, err);
	default:
		return err_set(err, ERR_NOT_FOUND, "there is no store at %s; 'recorder collect' "
			       "creates one, --store names another", path);
	}
}

int cmd_store_open_at(const struct options *o, const char *path, enum store_mode mode,
		      struct store **out, struct err *err)
{
	int rc = store_open(path, mode, out, err);

	if (rc == ERR_ACCESS && !os_is_admin())
		rc = cmd_not_ours(o, path, err);
	else if (rc == ERR_NOT_FOUND)
		rc = no_store(o, path, err);
	return rc;
}

int cmd_own_log(struct options *o, struct buf *path, struct err *err)
{
	int rc;

	if (o->log_file)
		return 0;
	rc = cmd_store_path(o, STORE_RECORD, path, err);
	buf_puts(path, ".log");
	if (!rc)
		rc = buf_check(path, "the log's name", err);
	if (!rc)
		o->log_file = path->data;
	return rc;
}

int cmd_store_open(const struct options *o, enum store_mode mode, struct store **out,
		   struct err *err)
{
	struct buf path = {0};
	int rc = cmd_store_path(o, mode, &path, err);

	if (!rc)
		rc = cmd_store_open_at(o, buf_text(&path), mode, out, err);
	buf_free(&path);
	return rc;
}

/* --id, else the newest, with a note that says which. */
static int which_incident(const struct options *o, struct store *store, int64_t *id,
			  struct err *err)
{
	int rc;

	if (o->ids.n > 1)
		return err_set(err, ERR_USAGE, "%s takes one incident at a time",
			       command_table[o->command].name);
	if (o->ids.n) {
		*id = o->ids.items[0];
		return 0;
	}
	rc = store_newest(store, id, err);
	if (!rc)
		cmd_note("incident %" PRId64 ", the newest; --id chooses another", *id);
	return rc;
}

int cmd_load(const struct options *o, struct incident *out, struct err *err)
{
	struct cmd_window window;
	struct store *store = NULL;
	int64_t id = 0;
	int rc;

	if (!o->ids.n && cmd_window_asked(o)) {
		rc = cmd_window(o, &window, err);
		return rc ? rc : cmd_load_window(o, &window, out, err);
	}
	rc = cmd_store_open(o, STORE_READ, &store, err);

	if (!rc)
		rc = which_incident(o, store, &id, err);
	if (!rc)
		rc = store_load(store, id, out, err);
	store_close(store);
	return rc;
}

/* ---- the part of an incident that was asked for ---------------------------------------------- */

enum stream cmd_stream_of(const struct options *o, const struct incident *in)
{
	uint64_t has[STREAMS_MAX];

	incident_count_streams(in, has);
	return o->activities && !o->metric && has[STREAM_OFF_CPU] ? STREAM_OFF_CPU : cmd_stream(o);
}

enum stream cmd_stream(const struct options *o)
{
	enum stream named = o->metric ? stream_from_text(o->metric) : STREAM_CPU;

	return named == STREAMS_MAX ? STREAM_EVENT : named;
}

#define EVENT_PREFIX "event:"

/* The event that --metric names, also as event:NAME; NULL = it names a stream. */
static const char *metric_event(const struct options *o)
{
	if (!o->metric || stream_from_text(o->metric) != STREAMS_MAX)
		return NULL;
	return strncmp(o->metric, EVENT_PREFIX, strlen(EVENT_PREFIX)) == 0
		       ? o->metric + strlen(EVENT_PREFIX) : o->metric;
}

bool cmd_of_home(const struct options *o)
{
	unsigned key;

	for (key = 0; key < HOME_KEYS && !o->home[key]; key++)
		;
	return key < HOME_KEYS;
}

int cmd_event_samples(const struct options *o, struct incident *in, struct err *err)
{
	enum stream stream = cmd_stream(o);

	return stream == STREAM_EVENT || stream == STREAM_ALLOC || stream == STREAM_HEAP ||
			       stream == STREAM_HEAP_NET || stream >= STREAM_VM
		       ? event_samples_add(in, err) : 0;
}

static int filter_samples(const struct options *o, struct incident *in, struct err *err)
{
	struct incident_filter f = {
		.process = o->process, .tid = o->tid, .no_kernel = o->no_kernel,
		.managed_only = o->managed_only, .no_idle = o->no_idle, .event = metric_event(o),
	};
	uint64_t zero_ns = in->head.trigger_wall_ns;
	/* Of a window they have chosen the window. */
	bool all = !o->ids.n && cmd_window_asked(o);
	struct moment_option none = {.ns = OPTION_NO_TIME};
	const struct managed_view view = {.parameters = o->signatures, .kinds = o->frame_kinds};
	int rc = managed_view_apply(in, &view, err);

	if (!rc && !o->interpreter_frames)
		rc = incident_fold_interpreters(in, err);
	if (!rc)
		rc = cmd_event_samples(o, in, err);
	if (!rc)
		rc = cmd_moment(all ? &none : &o->from, zero_ns, 0, &f.from_ns, err);
	f.has_from = f.from_ns != OPTION_NO_TIME;
	if (!rc)
		rc = cmd_moment(all ? &none : &o->to, zero_ns,
				f.has_from ? zero_ns + (uint64_t)f.from_ns : 0, &f.to_ns, err);
	if (rc)
		return rc;
	f.has_to = f.to_ns != OPTION_NO_TIME;
	memcpy(f.home, o->home, sizeof(f.home));
	if (!f.process && !cmd_of_home(o) && !f.tid && !f.no_kernel && !f.managed_only &&
	    !f.no_idle && !f.has_from && !f.has_to && !f.event)
		return 0;
	return incident_filter(in, &f, err);
}

int cmd_filter(const struct options *o, struct incident *in, struct err *err)
{
	struct activities a = {0};
	int rc = 0;

	if (wait_names_add(in))
		return err_memory(err, "for what threads waited for");
	/* Those that began before the part that was asked for are in it, too. */
	if (o->activities)
		rc = activities_find(in, o->pairs.items, o->pairs.n, &a, err);
	if (!rc)
		rc = filter_samples(o, in, err);
	if (!rc && o->activities)
		rc = activities_measure(in, &a, err);
	if (!rc && o->activities && !a.n)
		cmd_note("there are no activities: no event of a start and its stop; --activity "
			 "names such a pair, 'recorder events' lists what is there");
	if (!rc && o->activities)
		rc = activities_group(in, &a, err);
	activities_free(&a);
	return rc;
}

int cmd_check_patterns(const struct options *o, struct err *err)
{
	if (o->addresses && (o->group || o->fold || o->include || o->exclude))
		return err_set(err, ERR_USAGE, "--addresses cannot be combined with patterns on "
			       "names: use one or the other");
	return 0;
}

/* The patterns that --group stands for: those of a --group-preset of that name, else itself. */
static const char *group_of(const struct options *o)
{
	size_t n = o->group ? strlen(o->group) : 0;
	uint32_t i;

	for (i = 0; n && i < o->group_presets.n; i++) {
		const char *preset = o->group_presets.items[i];

		if (strncmp(preset, o->group, n) == 0 && preset[n] == '=')
			return preset + n + 1;
	}
	return o->group;
}

/* This may be intended, or a preset's name is misspelled, or its patterns are. */
static void note_unmatched(const struct options *o, const struct incident *in)
{
	const char *patterns = group_of(o);
	struct buf more = {0};
	uint32_t i;

	if (patterns != o->group)
		buf_printf(&more, "; it stands for %.200s", patterns);
	else
		group_put_presets(o->group, &more);
	for (i = 0; patterns == o->group && more.len && i < o->group_presets.n; i++)
		buf_printf(&more, ", %.*s", (int)strcspn(o->group_presets.items[i], "="),
			   o->group_presets.items[i]);
	cmd_note("--group '%.200s' matches no frame of incident %" PRId64 "%s", o->group,
		 in->head.id, buf_text(&more));
	buf_free(&more);
}

int cmd_filter_and_group(const struct options *o, struct incident *in, struct err *err)
{
	bool unmatched = false;
	struct group_options group = {group_of(o), o->fold, o->include, o->exclude, &unmatched};
	int rc = cmd_filter(o, in, err);

	/* Even without patterns, a module's unnamed frames in a row are one, as in PerfView. */
	if (!rc && !o->addresses)
		rc = group_incident(in, &group, err);
	if (!rc && unmatched)
		note_unmatched(o, in);
	if (!rc && !in->nsamples && (o->include || o->exclude))
		rc = err_set(err, ERR_NOT_FOUND, "--inc and --exc leave no samples");
	return rc;
}

int cmd_memory(const struct options *o, struct memory_share *out, struct err *err)
{
	const struct memory_share wanted = {
		.ring_bytes = (uint64_t)o->buffer_mb << 20, .pinned_bytes = ENGINE_PINNED_BYTES,
		.table_bytes = ENGINE_TABLE_BYTES, .symbol_bytes = SYMBOL_CACHE_BYTES,
	};

	return memory_share(o->capture.file ? 0 : (uint64_t)o->max_rss_mb << 20, &wanted, out, err);
}

int cmd_one_process(const char *name, uint32_t *pid, struct err *err)
{
	uint32_t pids[PROCESSES_TRIED], n, i;
	struct buf text = {0};
	int rc = 0;

	n = thread_stacks_find(name, pids, PROCESSES_TRIED);
	if (!n)
		return err_set(err, ERR_NOT_FOUND, "there is no process '%.200s'", name);
	for (i = 0; i < n; i++)
		buf_printf(&text, "%s%u", i ? ", " : "", (unsigned)pids[i]);
	if (n > 1)
		rc = err_set(err, ERR_USAGE,
			     "there are several processes '%.200s': %s; give the number of one",
			     name, buf_text(&text));
	buf_free(&text);
	*pid = pids[0];
	return rc;
}
