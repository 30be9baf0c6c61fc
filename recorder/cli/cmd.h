/*
 * Commands: one function per verb, called by main.c.
 *
 * Each gets the options as they were parsed and checked, conf file included, prints its data to
 * standard output and remarks to standard error, and returns 0 or an error whose sentence main.c
 * prints. main.c makes the exit code of the error code; see exit_code() there.
 */
#pragma once

#include "base/out.h"
#include "options/options.h"
#include "source/source.h"
#include "store/store.h"
#include "triggers/trigger.h"

int cmd_collect(const struct options *o, struct err *err);
int cmd_service(const struct options *o, struct err *err);
int cmd_control(const struct options *o, struct err *err);   /* status, snapshot, stop, abort */
int cmd_list(const struct options *o, struct err *err);
int cmd_show(const struct options *o, struct err *err);
int cmd_report(const struct options *o, struct err *err);
int cmd_export(const struct options *o, struct err *err);
int cmd_diff(const struct options *o, struct err *err);
int cmd_delete(const struct options *o, struct err *err);
int cmd_pin(const struct options *o, struct err *err);       /* pin, unpin */
int cmd_events(const struct options *o, struct err *err);
int cmd_counters(const struct options *o, struct err *err);
int cmd_stacks(const struct options *o, struct err *err);
int cmd_check(const struct options *o, struct err *err);
int cmd_backtest(const struct options *o, struct err *err);
int cmd_help(const struct options *o, struct err *err);
void cmd_complete(int n, char *const *words);

/* The i-th topic of help, until it says that there are no more; both texts until the next call. */
bool help_topic(unsigned i, const char **name, const char **summary);

/* ---- what the commands share: cli/common.c --------------------------------------------------- */

/*
 * Where the store is: --store, $RECORDER_STORE, the conf file, the user's own. A reader (mode not
 * STORE_RECORD) who has none of these is given the system's store when there is one.
 */
int cmd_store_path(const struct options *o, enum store_mode mode, struct buf *path,
		   struct err *err);

/* The store that was named: on the command line, in the environment, in the conf file; or NULL. */
const char *cmd_named_store(const struct options *o);

/* Open it; when it is somebody else's the sentence says whose, and how to read it. */
int cmd_store_open(const struct options *o, enum store_mode mode, struct store **out,
		   struct err *err);

/* The same for the store at a path. */
int cmd_store_open_at(const struct options *o, const char *path, enum store_mode mode,
		      struct store **out, struct err *err);

/*
 * The whole of the one incident that was asked for: --id, else the newest, with a note that says
 * which.
 */
int cmd_load(const struct options *o, struct incident *out, struct err *err);

/* --metric; ERR_USAGE with the list. */
int cmd_stream(const struct options *o, enum stream *out, struct err *err);

/* In place: what --process, --thread, --from, --to and --no-kernel leave; incident_filter(). */
int cmd_filter(const struct options *o, struct incident *in, struct err *err);

/*
 * The same, then --group, --fold, --inc and --exc; ask cmd_check_patterns() before the store is
 * read.
 */
int cmd_narrow(const struct options *o, struct incident *in, struct err *err);
int cmd_check_patterns(const struct options *o, struct err *err);

/*
 * ERR_ACCESS with a sentence that says whose the thing is and how to get at it ("sudo recorder
 * list").
 */
int cmd_not_ours(const struct options *o, const char *path, struct err *err);

/*
 * Open one rule and add what it needs to needs. collect and check call this alike.
 *
 * out  close with its ops->close(); untouched on failure
 */
int cmd_rule_open(const struct options *o, const struct rule_spec *rule, struct needs *needs,
		  struct trigger **out, struct err *err);

/* The live sources that take part, ending in NULL. */
#define CMD_SOURCES_MAX 8u
struct cmd_sources {
	const struct source_ops *all[CMD_SOURCES_MAX + 1];
};
/* Those of this system, the one of --source for stacks. ERR_USAGE: it gives none here. */
int cmd_sources(const struct options *o, struct cmd_sources *out, struct err *err);
/* What --runtime-events, --gc-collect-only and --enable-perf-map ask for. */
int cmd_runtime_needs(const struct options *o, struct needs *needs, struct err *err);
/*
 * What --buffer-mb and --max-rss-mb come to: everything as by default without a limit. ERR_USAGE:
 * too low.
 */
struct memory_share;
int cmd_memory(const struct options *o, struct memory_share *out, struct err *err);

/*
 * Whether these sources can meet what rules ask: the sentence says which name they do not know, or
 * what none of them delivers.
 */
int cmd_check_live(const struct cmd_sources *from, const struct needs *needs, struct err *err);

/*
 * Whether a trace file can be read and can meet what rules ask: counters and logs it has none of,
 * and a rule that silently never fires is worse than none.
 */
int cmd_check_file(const char *path, const struct needs *needs, struct err *err);

/*
 * What rules that saw nothing name and the file does not have, a line each; reads it once more if
 * any.
 */
void cmd_tell_file(const char *path, struct trigger *const *rules, uint32_t n, struct buf *out);

/*
 * Why a rule has not fired, as status says it: "; nearest 10.83 ms at 4.755 s; 264 seen, 1 dropped
 * by a filter". Times are from zero_ns.
 */
void put_why_silent(struct buf *out, const struct trigger_status *s, uint64_t zero_ns);

/*
 * What of a rule may not have been meant, though it is no error: a pid that no process has now, a
 * misspelled log. Sentences
 * with "; " between, or "".
 */
void cmd_rule_doubts(const struct trigger *t, struct buf *out);

/*
 * Which processes the names of a rule, or of a filter, mean now: "'sh' now means sh [dash] (12), sh
 * [dash] (34)". Nothing without names, or where the system does not tell.
 */
void cmd_rule_meant(const struct trigger *t, struct buf *out);
void cmd_put_meant(const struct process_filter *filter, struct buf *out);

/* Whether --process is a list of names and pids, also when no rule asks. */
int cmd_check_process(const struct options *o, struct err *err);

/*
 * One line about names of --rule that no expression uses, and a --process that no rule asks; or "".
 */
void cmd_unused_rules(const struct options *o, struct buf *out);

/*
 * Whether a file can be read. One that is missing is a failure (exit 1), not "nothing found" (3).
 */
int cmd_file_there(const char *path, struct err *err);

/* A remark on standard error: "recorder: ..." and a line feed. */
void cmd_note(const char *format, ...) PRINTF_LIKE(1, 2);

/* Standard output, whole: what a command printed into a buf. */
int cmd_print(const struct buf *text, struct err *err);
/* The same with colour, where it is wanted (color.h). */
int cmd_print_colored(const struct options *o, const struct buf *text, struct err *err);
/*
 * The same; on a terminal, and without --json, lines that are too long for it are broken
 * (base/fit.h).
 */
int cmd_print_fitted(const struct options *o, const struct buf *text, struct err *err);

/* ---- files of other programs: cli/output.c --------------------------------------------------- */

/* What can be refused before the store is even read; path "-" = standard output. */
struct exporter;
int cmd_check_output(const struct options *o, const char *path, const struct exporter *e,
		     struct err *err);

/*
 * Have write() put what e stands for into a file, whole or not at all; packed when its name ends in
 * ".gz". After a second it is said on standard error how far it is, if that is a terminal.
 */
int cmd_write_output(const struct options *o, const char *path, const struct exporter *e,
		     int (*write)(void *ctx, struct out *out, struct err *err), void *ctx,
		     struct err *err);

/* Numbers for people: "12,345"; "1.2 MB"; "61.2 s", "2.5 h". */
#define CMD_NUMBER_BYTES 32
const char *text_count(uint64_t n, char out[CMD_NUMBER_BYTES]);
const char *text_bytes(uint64_t bytes, char out[CMD_NUMBER_BYTES]);
const char *text_seconds(double seconds, char out[CMD_NUMBER_BYTES]);

/* An incident's window from its trigger: "120 s before to 5 s after the trigger". */
void put_span(struct buf *out, const struct incident_head *h);

/*
 * Append at most `columns` characters of text, cut with an ellipsis, control characters as blanks.
 */
void put_cut(struct buf *out, const char *text, size_t columns);
