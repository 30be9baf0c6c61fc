/*
 * Options: one table for the command line, PerfView's spelling of it, the conf file, help, manual
 * pages and completion.
 *
 * A row of option_table[] gives an option's name, the kind and the bounds of its value, and where
 * in struct options the value goes. Parsing, checking, help and the conf file are loops over the
 * table, so a new option is one row and one field. Case and dashes of names do not count:
 * --max-collect-sec 60, --max-collect-sec=60, /MaxCollectSec:60, -maxcollectsec:60 and
 * "max-collect-sec = 60" are the same option. One thread.
 *
 * Grammar of an argument:
 *
 *	--name VALUE  --name=VALUE     long; a yes/no option takes a value only after '='
 *	-x VALUE  -xVALUE              short, see short_options[]; -f is --format folded
 *	/Name:VALUE  -Name:VALUE       PerfView's form; '=' works too, a blank does not
 *	/path                          an operand, if it is not an option and exists
 *	--                             only operands follow
 *
 * An en or em dash at the start (word processors make them from '-') counts as '-'. A scalar given
 * twice is an error. The command line wins over the conf file, lists included.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"
#include "model/capture.h"
#include "model/home.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum command {
	CMD_NONE,
	CMD_COLLECT,
	CMD_START,
	CMD_RUN,
	CMD_TOP,
	CMD_STATUS,
	CMD_SNAPSHOT,
	CMD_MARK,
	CMD_RELOAD,
	CMD_LIST_SESSIONS,
	CMD_STOP,
	CMD_ABORT,
	CMD_LIST,
	CMD_HISTORY,
	CMD_SHOW,
	CMD_REPORT,
	CMD_EXPORT,
	CMD_DIFF,
	CMD_DELETE,
	CMD_PIN,
	CMD_NOTE,
	CMD_UNPIN,
	CMD_VERIFY,
	CMD_SALVAGE,
	CMD_SYMBOLIZE,
	CMD_SHIP,
	CMD_FLEET,
	CMD_EVENTS,
	CMD_COUNTERS,
	CMD_STACKS,
	CMD_CHECK,
	CMD_BACKTEST,
	CMD_SERVICE,
	CMD_HELP,
	COMMANDS,
};

/* What the operands of a command are. */
enum operand_kind {
	OPERAND_NONE,
	OPERAND_IDS,            /* numbers of incidents, like --id */
	OPERAND_PAIR,           /* two numbers, like --base and --test */
	OPERAND_PATTERN,        /* at most one */
	OPERAND_DATA_FILE,      /* at most one: --data-file */
	OPERAND_STORE,          /* at most one, like a pattern; a file */
	OPERAND_COMMAND,        /* a program and its arguments: all that follows the first */
};

struct command_info {
	const char *name;
	enum operand_kind operands;
	const char *operand_text;            /* "[PATTERN]" in the usage line; "" */
	const char *summary;                 /* one line */
	const char *about;                   /* paragraphs for its help, in Markdown */
	const char *examples;                /* lines as they are typed, ending in LF */
};

extern const struct command_info command_table[COMMANDS];   /* [CMD_NONE] is empty */

/* The command of this name, or CMD_NONE. */
enum command command_by_name(const char *name);

struct text_list {
	char **items;
	uint32_t *lines;                     /* of the conf file; 0 = from the command line */
	uint32_t n;
};

struct id_list {
	int64_t *items;
	uint32_t n;
};

/* One rule. kind is the name of the option and of its trigger_ops. */
struct rule_spec {
	const char *kind;                    /* from the table, not owned */
	char *spec;
	uint32_t line;                       /* of the conf file; 0 = from the command line */
};

struct rule_list {
	struct rule_spec *items;
	uint32_t n;
};

enum {
	OPTIONS_MAX = 256,                   /* rows of the table */
	OPTION_VALUE_MAX = 4096,             /* bytes of one value */
	OPTION_IDS_MAX = 4096,               /* numbers of one list */
};

enum option_origin { FROM_DEFAULT, FROM_CONF, FROM_ARGS };

#define OPTION_NO_TIME INT64_MIN             /* --from and --to when they were not given */

/* A moment of an incident, or one of the wall clock (base/moment.h). */
struct moment_option {
	int64_t ns;                          /* from the trigger; or OPTION_NO_TIME */
	char *text;                          /* NULL = seconds, or nothing was given */
};

struct options {
	enum command command;
	bool help, version;

	/* everywhere */
	char *store;                         /* NULL: see cmd_store_path() */
	struct text_list more_stores;        /* --store given again: of report and export */
	char *config;
	bool json;
	char *color;                         /* auto, always, never; NULL = auto */

	/* when an incident is kept */
	struct rule_list rules;
	struct text_list named_rules;        /* NAME=SPEC of --rule */
	struct text_list group_presets;      /* NAME=PATTERNS of report and diff */
	struct text_list monitors;           /* CATEGORY:COUNTER:INSTANCE[@SEC] */
	double min_sec;                      /* MinSecForTrigger */
	double poll_sec;                     /* period of the rules' counters */
	double decay_hours;                  /* 0 = off */
	char *sweep;                         /* FROM:TO:STEP of backtest; NULL = none */
	char *stop_command;                  /* runs for each stored incident; NULL = none */
	char *on_failure;                    /* log, exit, command:...; NULL = log */
	uint32_t max_per_hour, max_per_day;  /* incidents of one rule */

	/* what is recorded, and how much */
	struct capture capture;
	uint32_t buffer_mb;
	double max_cpu_pct;                  /* of one CPU; 0 = no limit; < 0 = the default */
	uint32_t max_rss_mb;                 /* 0 = no limit */
	char *source;                        /* of stacks; NULL = the host's default */
	bool assume_exists;                  /* rules may name what only later programs have */
	bool runtime_events, enable_perf_map, no_dotnet_names;
	bool heap;
	uint32_t heap_kb;
	uint32_t store_mb, keep_days;
	uint32_t history_mb, history_days;   /* 0 MB = none */
	int64_t history_sync_ns;
	uint32_t symbol_cache_mb;            /* 0 = none */
	char *log_file;                      /* NULL = stderr */
	char *http;                          /* address; NULL = none */
	char *textfile;                      /* NULL = none */
	char *http_token, *http_cert, *http_key;     /* files; or NULL */
	struct text_list ship, ship_to;      /* targets: of the recorder; of ship */
	bool due;                            /* of ship: as the recorder does it */
	char *host;                          /* of list, report...; NULL = any */
	char *release, *cluster;             /* of fleet */
	bool clickhouse, postgresql;         /* of fleet schema: which */
	uint32_t ttl_days;
	char *service_name;                  /* NULL = "recorder" */

	/* which incident, and which part of it */
	struct id_list ids;
	bool all_incidents;                  /* --all of report and diff, else --all-incidents */
	char *rule_text;                     /* those whose rule has it; NULL = any */
	char *process;                       /* name or pid; NULL = all */
	char *home[HOME_KEYS];               /* container, unit...; NULL = all */
	uint32_t tid;                        /* 0 = all */
	struct id_list base_ids, test_ids;   /* of diff; none = not given */
	char *base_store;                    /* of the base; NULL = the same */
	struct moment_option from, to;
	char *at;                            /* a moment; NULL = none */
	char *against;                       /* of diff: other windows; NULL = none */
	int64_t last_ns, for_ns;             /* OPTION_NO_TIME = not given */
	bool history;                        /* of backtest: all of it, or the window of it */
	bool kernel, no_kernel, managed_only, interpreter_frames, no_idle, pmu;
	char *provider, *event_name, *event_text, *columns;      /* of events; NULL = all */
	double start_ms, end_ms;
	char *live;                          /* of events: the spec to watch; NULL = none */
	int64_t seconds_ns;                  /* how long to watch */

	/* output */
	char *format;
	char *output;
	bool plan;                           /* of check: measure how far back the buffer reaches */
	bool force, no_annotate, no_ids, addresses, losses, threads, count, histogram;
	char *metric;                        /* of export: a stream's name; NULL = cpu */
	char *all_dir;                       /* of export --all and help --man; NULL = not given */
	uint32_t top, min_count;             /* of livestacks */
	bool livestacks, evented, excel, sqlite_flat;
	bool inlines, lines;                 /* source lines: of export, of show */
	bool signatures, frame_kinds;        /* of managed frames */
	char *reason, *peers;                /* of a snapshot */
	char *group_id;                      /* of incidents of several machines; NULL = any */
	char *group, *fold, *include, *exclude;   /* patterns of report; NULL = none */
	double fold_percent;                 /* of report */
	char *by;                            /* of report: a home_key_text(); NULL = process */
	bool by_name, tree, memory, runtimes, requests;      /* views of report */
	bool activities;                     /* report, export: group by them */
	struct text_list pairs;              /* --activity: more of them */
	char *source_of, *source_path;       /* of report: a function's lines; NULL = none */
	bool no_stop;                        /* of stacks */
	bool group_threads;                  /* of stacks: those with the same stack once */
	bool all_processes;                  /* stacks of every process */
	char *core, *dump, *exe;             /* of stacks: a dump, its program; NULL = it lives */
	uint32_t repeat, every_ms;           /* of stacks: pictures, and the time between them */
	double interval_s;                   /* of top; < 0: until it is stopped */
	uint32_t times;                      /* of top: summaries; 0 = no limit */
	bool clear;                          /* of top: the screen before each */
	char *callers, *callees, *caller_callee;     /* of this function; NULL = none */
	uint32_t rows;                       /* lines of a table */
	char *normalize;                     /* of diff; NULL = duration */
	bool per_process;                    /* of export, diff */

	/* operands */
	bool bare_data_file;                 /* capture.data_file is a word without --data-file */
	char *pattern;                       /* of counters, events (NULL = all), service, help */
	char *const *program;                /* of run and collect, with its arguments; of argv */
	int nprogram;                        /* 0 = none */

	/* accepted from PerfView's command lines */
	uint32_t ignored_int;
	bool ignored_bool;
	char *ignored_text;

	uint8_t origin[OPTIONS_MAX];         /* enum option_origin, by row */
	uint32_t conf_line[OPTIONS_MAX];     /* the conf file's line that set it */
	char *conf_path;                     /* of the conf file that was read; or NULL */
	int argc;                            /* what was parsed, for `recorder reload`; borrowed */
	char *const *argv;
};

enum option_type {              /* those before OPTION_LIST have one value */
	OPTION_BOOL,            /* bool */
	OPTION_INT,             /* uint32_t, decimal or 0x */
	OPTION_FLOAT,           /* double */
	OPTION_SECONDS,         /* int64_t ns; seconds, or a number with ms, s, m, h, d */
	OPTION_MOMENT,          /* struct moment_option: seconds, or a moment of the wall clock */
	OPTION_PERIOD_MS,       /* uint32_t Hz, given as milliseconds between samples */
	OPTION_TEXT,            /* char * */
	OPTION_LIST,            /* struct text_list; repeatable; split at ',' before a spec */
	OPTION_TEXTS,           /* struct text_list; repeatable, never split */
	OPTION_RULE,            /* as a list, appended to options.rules with this name */
	OPTION_RULE_EVENT,      /* the same for PROVIDER/EVENT;Key=Value */
	OPTION_RULE_TEXT,       /* a rule whose spec is never split; repeatable */
	OPTION_RULE_FLAG,       /* a rule without a spec: true, false, or after ':' or '=' */
	OPTION_IDS,             /* struct id_list: 3,5-9; repeatable */
};

enum option_group {
	GROUP_TRIGGER,
	GROUP_RECORD,
	GROUP_SELECT,
	GROUP_OUTPUT,
	GROUP_STORE,
	GROUP_PERFVIEW,
	OPTION_GROUPS,
};

struct option_info {
	const char *name;                    /* kebab: --name, and the conf file's key */
	const char *value;                   /* placeholder: "MB", or "auto|never"; NULL: yes/no */
	const char *help;                    /* a sentence or more */
	enum option_type type;
	enum option_group group;
	uint64_t commands;                   /* bits 1 << enum command that take it */
	uint64_t no_effect;                  /* those that accept it without effect */
	bool conf;                           /* allowed in the conf file */
	bool live;                           /* `recorder reload` takes it without a restart */
	size_t offset;                       /* in struct options */
	double def, min, max;                /* of numbers; times in seconds */
	const char *unit;                    /* of a number: "MB"; or NULL */
	const char *other_names;             /* PerfView's, separated by blanks; or NULL */
	const char *same_as;                 /* sets the same value as this option; or NULL */
};

extern const struct option_info option_table[];       /* ends with a row without a name */
extern const char *const option_groups[OPTION_GROUPS];   /* headings */

struct short_option {
	char letter;
	const char *name;
	const char *value;                   /* fixed, so it takes none; or NULL */
};

extern const struct short_option short_options[];        /* ends with letter 0 */

/* Set every value to its default. */
void options_init(struct options *o);
void options_free(struct options *o);

/*
 * Parse the arguments after the program's name. Options and the command come in any order.
 *
 * o        from options_init(); free it after an error, too
 * returns  0; ERR_USAGE: which argument, what was found, what is allowed; ERR_MEMORY
 */
int options_parse(struct options *o, int argc, char *const *argv, struct err *err);

/*
 * Set one key of a conf file. The value is checked like one of the command line; if the command
 * line set the key, its value stays.
 *
 * line     for "already set on line N"
 * returns  as options_parse(); the sentence starts with the key
 */
int options_set_conf(struct options *o, const char *key, const char *value, uint32_t line,
		     struct err *err);

/* Append a line that names the options without effect here; nothing if there are none. */
void options_no_effect(const struct options *o, struct buf *out);

/*
 * The row of a name in any spelling, n bytes long; or NULL. Two rows may have the same name for
 * different commands (--from is a file or a moment); this returns the first one.
 */
const struct option_info *option_by_name(const char *name, size_t n);

/* What set this option. name: as in the table. */
enum option_origin options_origin(const struct options *o, const char *name);

/* The conf file's line that set this option; 0 = none did, or the command line won. */
uint32_t options_line(const struct options *o, const char *name);

/*
 * Append the names of what differs and cannot change while a recorder runs, with ", " between;
 * nothing when there is nothing.
 */
void options_needing_restart(const struct options *now, const struct options *next,
			     struct buf *out);

/*
 * For what is found wrong after the conf file was read: put its path and this line before the
 * sentence; nothing if line is 0. The other one takes the line of the option with which the
 * sentence begins ("--source: ..."). Both return the sentence's code.
 */
int options_at_line(const struct options *o, uint32_t line, struct err *err);
int options_at_option(const struct options *o, struct err *err);

/* A number as text, without an exponent if it is whole: 600, 0.1. */
void option_number_text(double v, char *out, size_t n);

/* Help about the program (CMD_NONE) or a command, in Markdown (cli/markdown.h). */
void options_help(enum command about, struct buf *out);
/* Append every key of the conf file as tables of the same kind. */
void options_keys(struct buf *out);
/* Append text, escaped for a cell of a table. */
void help_put_cell(struct buf *out, const char *text);
