/*
 * Commands: one function per verb, called by main.c.
 *
 * Each gets the options as they were parsed and checked, conf file included, prints its data to
 * standard output and remarks to standard error, and returns 0 or an error whose sentence main.c
 * prints. main.c derives the exit code from the error code; see exit_code() there.
 */
#pragma once

#include "base/out.h"
#include "listing/numbers.h"
#include "options/options.h"
#include "source/source.h"
#include "store/store.h"
#include "triggers/trigger.h"

int cmd_collect(const struct options *o, struct err *err);
int cmd_start(const struct options *o, struct err *err);
int cmd_run(const struct options *o, struct err *err);
int cmd_top(const struct options *o, struct err *err);
int cmd_service(const struct options *o, struct err *err);
int cmd_control(const struct options *o, struct err *err);   /* status to abort */
int cmd_list_sessions(const struct options *o, struct err *err);
int cmd_list(const struct options *o, struct err *err);
int cmd_history(const struct options *o, struct err *err);
int cmd_show(const struct options *o, struct err *err);
int cmd_report(const struct options *o, struct err *err);
int cmd_export(const struct options *o, struct err *err);
int cmd_diff(const struct options *o, struct err *err);
int cmd_edit(const struct options *o, struct err *err);      /* delete, pin, unpin */
int cmd_verify(const struct options *o, struct err *err);
int cmd_remark(const struct options *o, struct err *err);
int cmd_salvage(const struct options *o, struct err *err);
int cmd_symbolize(const struct options *o, struct err *err);
int cmd_ship(const struct options *o, struct err *err);
int cmd_fleet(const struct options *o, struct err *err);
int cmd_events(const struct options *o, struct err *err);
int cmd_counters(const struct options *o, struct err *err);
int cmd_stacks(const struct options *o, struct err *err);
int cmd_check(const struct options *o, struct err *err);
int cmd_backtest(const struct options *o, struct err *err);
int cmd_help(const struct options *o, struct err *err);
void cmd_complete(int n, char *const *words);

/*
 * Whether the program was called as recorder-dtrace, a stand-in for dtrace(1); its arguments then
 * become the words of a command line of run.
 */
struct cmd_words {
	char **words;                        /* into text, the arguments and hz */
	int n;
	char *text, hz[8];
	struct buf pids;
};
bool cmd_is_dtrace(const char *program);
int cmd_dtrace_words(int n, char *const *arguments, struct cmd_words *out, struct err *err);
void cmd_words_free(struct cmd_words *w);

/* The i-th help topic; false past the last one. Both texts are valid until the next call. */
bool help_topic(unsigned i, const char **name, const char **summary);

/* A command that ends with another program's exit code returns CMD_EXITS + that code. */
#define CMD_EXITS 1000
/* Exit codes of status; of collect that --on-failure exit has ended: CMD_FAILING. */
#define CMD_DEGRADED (CMD_EXITS + 4)
#define CMD_FAILING (CMD_EXITS + 5)

/* Record what somebody else begins and ends; see struct engine_config. */
struct cmd_recorded {
	bool logs;                           /* as collect does; else warnings only */
	bool aside;                          /* on a thread; signals are somebody else's */
	void (*begun)(void *ctx);            /* NULL allowed */
	bool (*over)(void *ctx, struct buf *why);
	void *ctx;
};
/* What collect does; of NULL = until it is told to end. */
int cmd_record(const struct options *o, const struct cmd_recorded *of, struct err *err);
/* A copy, which borrows all of it, without what a conf file says of rules, stores and machines. */
void cmd_leave_out_rules(const struct options *o, struct options *part);

/*
 * Send a line to the running recorder of --store, else the user's own, else the system's.
 * store: NULL, or gets the one that was asked. The other one asks the recorder of one store.
 */
int cmd_ask(const struct options *o, const char *question, struct buf *answer, struct buf *store,
	    struct err *err);
int cmd_ask_at(const char *store, const char *question, struct buf *answer, struct err *err);

/* ---- what the commands share: cli/common.c --------------------------------------------------- */

/*
 * The store's path: --store, else $RECORDER_STORE, the conf file, the user's own store. A reader
 * (mode other than STORE_RECORD) falls back to the system's store if there is one.
 */
int cmd_store_path(const struct options *o, enum store_mode mode, struct buf *path,
		   struct err *err);
/* Give a recorder without a terminal a log: unless --log-file names one, the store's and '.log'. */
int cmd_own_log(struct options *o, struct buf *path, struct err *err);

/* The store named on the command line, in the environment or in the conf file; or NULL. */
const char *cmd_named_store(const struct options *o);

/* Open it. If it belongs to somebody else, the error says to whom, and how to read it. */
int cmd_store_open(const struct options *o, enum store_mode mode, struct store **out,
		   struct err *err);

/* The same for the store at a path. */
int cmd_store_open_at(const struct options *o, const char *path, enum store_mode mode,
		      struct store **out, struct err *err);

/* Load one incident whole: --id, else the newest, with a note that says which. */
int cmd_load(const struct options *o, struct incident *out, struct err *err);

/* ---- several files: cli/scenarios.c ---------------------------------------------------------- */

/*
 * Make incidents of each file of --from: a directory, or a set of scenarios
 * (source/stackfile/scenario.h). *is_set false: it is neither, and nothing has been done.
 */
int cmd_collect_set(const struct options *o, bool *is_set, struct err *err);

/* ---- several incidents: cli/several.c -------------------------------------------------------- */

/* Whether several were asked for: --id 3,5-9, --all, --rule, more than one --store. */
bool cmd_several(const struct options *o);
/*
 * Load them one after the other, oldest first: those of `ids` (with none, all), --rule and --since,
 * in one store or, of NULL, in each --store. A number that is not there is noted.
 */
typedef int cmd_incident(void *ctx, const char *store, struct incident *in, struct err *err);
int cmd_each_incident(const struct options *o, const char *store, const struct id_list *ids,
		      cmd_incident *each, void *ctx, struct err *err);
/*
 * All as one (model/incident_join.h), each filtered before. Those where the filter finds nothing
 * (ERR_NOT_FOUND) are left out, and counted in a note.
 */
typedef int cmd_filter_incident(const struct options *o, struct incident *in, struct err *err);
int cmd_load_several(const struct options *o, cmd_filter_incident *filter, struct incident *out,
		     struct err *err);

/* ---- groups: cli/several.c ------------------------------------------------------------------- */

/* Have --peers keep the window of an incident; id 0: only check that they can be asked. */
int cmd_ask_peers(const struct options *o, const char *store, int64_t id, struct err *err);
int cmd_show_group(const struct options *o, struct err *err);

/* ---- windows of the history: cli/window.c ---------------------------------------------------- */

struct cmd_window {
	uint64_t from_ns, to_ns;             /* of the wall clock */
};

/* Whether --last, --at, or --from with a time ask for one. */
bool cmd_window_asked(const struct options *o);
/* Which. ERR_USAGE: the options contradict each other, or it ends before it begins. */
int cmd_window(const struct options *o, struct cmd_window *out, struct err *err);
/* Load it as an incident whose trigger is its beginning; a note says it in local time and UTC. */
int cmd_load_window(const struct options *o, const struct cmd_window *w, struct incident *out,
		    struct err *err);
struct trace;
/*
 * Let t->each have the events of --id or of a window of the history; sets t->events and t->origin.
 * The recorder clock of a window is the wall clock.
 */
int cmd_kept_events(const struct options *o, struct trace *t, struct err *err);
/* Where --from is a file or a time: a time, unless there is a file of that name. */
struct options cmd_from_time(const struct options *o);
/*
 * Read the events of a window of any length in pieces of an hour, one after the other; hours
 * without anything are passed over. Its beginning moves to that of the history. `each` returns 0
 * to go on.
 */
typedef int cmd_piece(void *ctx, const struct incident *in, struct err *err);
int cmd_each_piece(const struct options *o, struct cmd_window *w, cmd_piece *each, void *ctx,
		   struct err *err);
/* diff --against; diff of two sets of incidents. */
int cmd_against(const struct options *o, struct err *err);
int cmd_diff_sets(const struct options *o, struct err *err);
/*
 * What is different in an incident from the same hour of other days, or from what was just before
 * it, in lines; nothing where the history has neither, or nothing exceeds their spread.
 */
int cmd_put_changed(const struct options *o, const struct incident *in, struct buf *out);
/* A moment of --from or --to as ns from this wall clock; OPTION_NO_TIME when it was not given. */
int cmd_moment(const struct moment_option *m, uint64_t zero_wall_ns, uint64_t before_ns,
	       int64_t *out, struct err *err);

/*
 * Look whether a recorder has ended without saying so, and make an incident of its last minutes.
 * Quiet where nothing is to be done, or we may not write there.
 */
void cmd_settle_deaths(const char *store);

/* The one running process that --process names. ERR_NOT_FOUND; ERR_USAGE: there are several. */
int cmd_one_process(const char *name, uint32_t *pid, struct err *err);

/* The stream of --metric. Any other name is an event's, and cmd_filter() chooses its samples. */
enum stream cmd_stream(const struct options *o);
/* The same where --activities without --metric is thread time, if it was recorded. */
enum stream cmd_stream_of(const struct options *o, const struct incident *in);

/* With --metric event, alloc or an event's name: events with stacks as samples. Again: nothing. */
int cmd_event_samples(const struct options *o, struct incident *in, struct err *err);

/* Filter in place by --process, --thread, --from, --to and --no-kernel; see incident_filter(). */
int cmd_filter(const struct options *o, struct incident *in, struct err *err);
bool cmd_of_home(const struct options *o);       /* whether --container, --unit... choose */

/* The same, then --group, --fold, --inc and --exc. Call cmd_check_patterns() before all this. */
int cmd_filter_and_group(const struct options *o, struct incident *in, struct err *err);
int cmd_check_patterns(const struct options *o, struct err *err);

/* ERR_ACCESS; the sentence names the path's owner and the way in ("sudo recorder list"). */
int cmd_not_ours(const struct options *o, const char *path, struct err *err);

/*
 * Open one rule and add what it needs to needs. collect and check call this alike.
 *
 * out  close with trigger_close(); untouched on failure
 */
int cmd_rule_open(const struct options *o, const struct rule_spec *rule, struct needs *needs,
		  struct trigger **out, struct err *err);
int cmd_check_on_fire(const struct options *o, struct err *err);     /* with and without a rule */

/* The live sources that take part, ending in NULL. */
#define CMD_SOURCES_MAX 12u
struct cmd_sources {
	const struct source_ops *all[CMD_SOURCES_MAX + 1];
};
/* This system's live sources; --source chooses the one for stacks. ERR_USAGE: it has none here. */
int cmd_sources(const struct options *o, struct cmd_sources *out, struct err *err);
/* Add what --runtime-events, --gc-collect-only and --enable-perf-map need. */
int cmd_runtime_needs(const struct options *o, struct needs *needs, struct err *err);
/* Divide the memory that --buffer-mb and --max-rss-mb allow. ERR_USAGE: the limit is too low. */
struct memory_share;
int cmd_memory(const struct options *o, struct memory_share *out, struct err *err);

/*
 * Check that these sources meet the rules' needs. The error names what they do not know, or what
 * none of them delivers.
 */
int cmd_check_live(const struct cmd_sources *from, const struct needs *needs, struct err *err);

/*
 * Check that a trace file is readable and meets the rules' needs. It has no counters and no logs: a
 * rule on them is refused, because it would silently never fire.
 */
int cmd_check_file(const char *path, const struct needs *needs, struct err *err);

/* For rules that saw nothing: a line for each name that the file lacks. May read the file again. */
void cmd_find_unknown_names(const char *path, struct trigger *const *rules, uint32_t n,
			    struct buf *out);

/*
 * Why a rule has not fired, as status says it: its text, then "; nearest 10.83 ms at 4.755 s; 264
 * seen, 1 dropped by a filter". Times are from zero_ns.
 */
void put_why_silent(struct buf *out, const struct trigger *t, uint64_t zero_ns);

/* What became of a rule's events, by their keys in the recorder's status: "5 seen, 1 matched". */
#define RULE_COUNTS 9
extern const char *const rule_count_keys[RULE_COUNTS];
void put_rule_counts(struct buf *out, const double counts[RULE_COUNTS]);

/*
 * Likely mistakes in a rule that are no errors: a pid that no process has now, a misspelled log.
 * Sentences joined by "; ", or "".
 */
void cmd_rule_doubts(const struct trigger *t, struct buf *out);

/*
 * Which processes the names of a rule, or of a filter, mean now: "'sh' now means sh [dash] (12), sh
 * [dash] (34)". Nothing without names, or where the system does not tell.
 */
void cmd_rule_meant(const struct trigger *t, struct buf *out);
void cmd_put_meant(const struct process_filter *filter, struct buf *out);

/* Check that --stack-kb is a size that can be recorded: not every number in its range is. */
int cmd_check_stack_kb(const struct options *o, struct err *err);

/* Check that --process is a list of names and pids, even if no rule uses it. */
int cmd_check_process(const struct options *o, struct err *err);

/* Check --data-file; a word without the option must end like a file for incidents. */
int cmd_check_data_file(const struct options *o, struct err *err);

struct command_line;
/* Check --stop-command; --on-failure (out stays empty unless it is a command). */
int cmd_stop_command(const struct options *o, struct command_line *out, struct err *err);
int cmd_on_failure(const struct options *o, bool *exits, struct command_line *out, struct err *err);

struct http_config;
/* What --http and its like say, without store and log. false: there is no --http. */
bool cmd_http(const struct options *o, struct http_config *out);
/* Check it, and --textfile. */
int cmd_check_http(const struct options *o, struct err *err);
/* Bring stores that are buckets (s3://...) here, and name their copies in their place. */
int cmd_fetch_stores(struct options *o, struct err *err);
/* Check --ship. */
int cmd_check_ship(const struct options *o, struct err *err);
struct engine_config;
struct follow_config;
struct follow;
/* Send what e stores, with --ship; nothing without. cfg and *out: for follow_close(). */
int cmd_follow(const struct options *o, struct engine_config *e, struct follow_config *cfg,
	       struct follow **out, struct err *err);

/* One line about each unused name of --rule and an unused --process; or "". */
void cmd_unused_rules(const struct options *o, struct buf *out);

/* Check that a file is readable. A missing one is a failure (exit 1), not "nothing found" (3). */
int cmd_file_there(const char *path, struct err *err);

/* A remark on standard error: "recorder: ..." and a line feed. */
void cmd_note(const char *format, ...) PRINTF_LIKE(1, 2);
/* One for each line. */
void cmd_notes(const struct buf *lines);

/* ---- files of other programs: cli/output.c --------------------------------------------------- */

struct exporter;

/*
 * The format that --format names, or that the suffix of path has; path "-" = standard output.
 * ERR_USAGE lists the formats. of_diff: one that diff writes.
 */
int cmd_choose_format(const struct options *o, const char *path, bool of_diff,
		      const struct exporter **out, struct err *err);

/* Refuse what can be refused before the store is read. */
int cmd_check_output(const struct options *o, const char *path, const struct exporter *e,
		     struct err *err);

/*
 * Have write() write e's format into a file, whole or not at all; a name in ".gz" packs it. After
 * one second, progress is shown on standard error if that is a terminal.
 */
int cmd_write_output(const struct options *o, const char *path, const struct exporter *e,
		     int (*write)(void *ctx, struct out *out, struct err *err), void *ctx,
		     struct err *err);

