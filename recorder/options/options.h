/*
 * Options: one table for the command line, PerfView's spelling of it, the conf file and --help.
 *
 * A row of option_table[] says what an option is called, what it takes, within which bounds, and where
 * in struct options its value goes. Parsing, checking, help and the conf file are loops over it, so
 * a new option is one row and one field. Names are compared without case and dashes:
 * --max-collect-sec 60, --max-collect-sec=60, /MaxCollectSec:60, -maxcollectsec:60 and
 * "max-collect-sec = 60" are one option. One thread.
 *
 * Grammar of an argument (issue 2; triggers.md, head):
 *
 *	--name VALUE  --name=VALUE     long; yes/no options take a value only by '='
 *	-x VALUE  -xVALUE              short options, see short_options[]; -f is --format folded
 *	/Name:VALUE  -Name:VALUE       PerfView's form; '=' does as well, a blank does not
 *	/path                          an operand, when it is no option and exists
 *	--                             only operands follow
 *
 * An en or em dash at the start (documents make them of '-') counts as '-'. A scalar given twice is
 * an error; what the command line gives wins over the conf file, lists included.
 */
#ifndef OPTIONS_H
#define OPTIONS_H

#include "base/buf.h"
#include "base/err.h"
#include "model/capture.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum command {
	CMD_NONE,
	CMD_COLLECT,
	CMD_STATUS,
	CMD_SNAPSHOT,
	CMD_STOP,
	CMD_ABORT,
	CMD_LIST,
	CMD_SHOW,
	CMD_REPORT,
	CMD_EXPORT,
	CMD_DIFF,
	CMD_DELETE,
	CMD_PIN,
	CMD_UNPIN,
	CMD_EVENTS,
	CMD_COUNTERS,
	CMD_STACKS,
	CMD_CHECK,
	CMD_BACKTEST,
	CMD_SERVICE,
	CMD_HELP,
	COMMANDS,
};

/* What a command's operands are. */
enum operand_kind {
	OPERAND_NONE,
	OPERAND_IDS,            /* incident numbers: like --id */
	OPERAND_PAIR,           /* two incident numbers: like --base and --test */
	OPERAND_PATTERN,        /* at most one */
	OPERAND_DATA_FILE,      /* at most one: PerfView's name for its output */
};

struct command_info {
	const char *name;
	enum operand_kind operands;
	const char *operand_text;            /* "[PATTERN]" in the usage line; "" */
	const char *summary;                 /* one line */
	const char *about;                   /* a paragraph or two for its --help; lines <= 78 */
	const char *examples;                /* lines as they are typed, ending in LF */
};

extern const struct command_info command_table[COMMANDS];   /* [CMD_NONE] is empty */

/* The command of this name, or CMD_NONE. */
enum command command_by_name(const char *name);

struct text_list {
	char **items;
	uint32_t n;
};

struct id_list {
	int64_t *items;
	uint32_t n;
};

/* One rule: kind is the option's name and that of its trigger_ops. */
struct rule_spec {
	const char *kind;                    /* from the table, not owned */
	char *spec;
};

struct rule_list {
	struct rule_spec *items;
	uint32_t n;
};

enum {
	OPTIONS_MAX = 160,
	OPTION_VALUE_MAX = 4096,             /* bytes of one value */
};

enum option_origin { FROM_DEFAULT, FROM_CONF, FROM_ARGS };

#define OPTION_NO_TIME INT64_MIN             /* --from and --to when they were not given */

struct options {
	enum command command;
	bool help, version;

	/* everywhere */
	char *store;                         /* NULL: see cmd_store_path() */
	char *config;
	bool json;
	char *color;                         /* auto, always, never; NULL = auto */

	/* what makes an incident */
	struct rule_list rules;
	struct text_list named_rules;        /* NAME=SPEC, parts of rules made of rules */
	struct text_list monitors;           /* CATEGORY:COUNTER:INSTANCE[@SEC] */
	double min_sec;                      /* MinSecForTrigger */
	double poll_sec;                     /* period of the rules' counters */
	double decay_hours;                  /* 0 = off */
	char *sweep;                         /* FROM:TO:STEP of backtest; NULL = none */
	char *stop_command;                  /* run for each stored incident; NULL = none */
	uint32_t max_per_hour, max_per_day;  /* incidents of one rule */

	/* what is recorded, and how much */
	struct capture capture;
	uint32_t buffer_mb;
	double max_cpu_pct;                  /* of one CPU; 0 = no limit; < 0 = the default */
	uint32_t max_rss_mb;                 /* 0 = no limit */
	char *source;                        /* which one gives the stacks; NULL = the usual */
	bool runtime_events, enable_perf_map;
	uint32_t store_mb, keep_days;
	uint32_t symbol_cache_mb;            /* 0 = none */
	char *log_file;                      /* NULL = stderr */
	char *service_name;                  /* NULL = "recorder" */

	/* which incident, which part of it */
	struct id_list ids;
	char *process;                       /* name or pid; NULL = all */
	uint32_t tid;                        /* 0 = all */
	uint32_t base_id, test_id;           /* of diff; 0 = not given */
	char *base_store;                    /* of the base; NULL = the same */
	int64_t from_ns, to_ns;              /* relative to the trigger, or OPTION_NO_TIME */
	bool kernel, no_kernel, no_idle;
	char *provider, *event_name;         /* of events; NULL = all */
	char *live;                          /* of events: watch these; NULL = none */
	int64_t seconds_ns;                  /* for so long */

	/* what comes out */
	char *format;
	char *output;
	bool plan;                           /* of check: measure how far back the ring will reach */
	bool force, no_annotate, no_ids, addresses, losses, count;
	char *metric;                        /* of export: a stream's name; NULL = cpu */
	char *all_dir;                       /* of export: write the usual set there; NULL = one file */
	uint32_t top, min_count;             /* of livestacks */
	bool livestacks, evented, excel, sqlite_flat;
	bool inlines, lines;                 /* source lines: of export, of show */
	char *reason;                        /* of a snapshot */
	char *group, *fold, *include, *exclude;   /* patterns of report; NULL = none */
	double fold_percent;                 /* of report */
	bool by_name, tree;                  /* views of report */
	char *callers, *callees;             /* of this function */
	uint32_t rows;                       /* lines of a table */
	char *normalize;                     /* of diff; NULL = duration */
	bool per_process;                    /* of export, diff */

	/* operands */
	char *pattern;                       /* of counters, events (NULL = all), service, help */

	/* accepted for PerfView's sake */
	uint32_t ignored_int;
	bool ignored_bool;

	uint8_t origin[OPTIONS_MAX];         /* enum option_origin, by row */
	uint32_t conf_line[OPTIONS_MAX];     /* where the conf file set it */
};

enum option_type {
	OPTION_BOOL,            /* bool */
	OPTION_INT,             /* uint32_t, decimal or 0x */
	OPTION_FLOAT,           /* double */
	OPTION_SECONDS,         /* int64_t ns; a number of seconds, or with ms, s, m, h, d behind it */
	OPTION_PERIOD_MS,       /* uint32_t Hz, given as milliseconds between samples */
	OPTION_TEXT,            /* char * */
	OPTION_LIST,            /* struct text_list; repeatable; cut at ',' before a further spec */
	OPTION_TEXTS,           /* struct text_list; repeatable, never cut */
	OPTION_RULE,            /* like a list, appended to options.rules with the option's name */
	OPTION_RULE_EVENT,      /* the same for PROVIDER/EVENT;Key=Value */
	OPTION_RULE_TEXT,       /* a rule whose spec is never cut; repeatable */
	OPTION_RULE_FLAG,       /* a rule that needs no spec: true, false, or one behind ':' or '=' */
	OPTION_IDS,             /* struct id_list; repeatable, and cut at ',' */
	OPTION_LATER,           /* PerfView has it, this program not yet: refused, with .later */
};

enum option_group {
	GROUP_TRIGGER,
	GROUP_RECORD,
	GROUP_SELECT,
	GROUP_OUTPUT,
	GROUP_STORE,
	GROUP_PERFVIEW,
	GROUP_LATER,
	OPTION_GROUPS,
};

struct option_info {
	const char *name;                    /* kebab: --name, and the conf file's key */
	const char *other_names;             /* PerfView's (small letters: of its viewer), blanks between; or NULL */
	const char *value;                   /* placeholder: "MB"; NULL for yes/no options */
	const char *help;                    /* a sentence or more */
	const char *unit;                    /* of a number: "MB"; or NULL */
	const char *later;                   /* OPTION_LATER: what to do meanwhile */
	const char *same_as;                 /* sets the same value as this option; or NULL */
	enum option_type type;
	enum option_group group;
	uint32_t commands;                   /* 1 << enum command, each that takes it */
	uint32_t no_effect;                  /* commands that accept it without any effect */
	size_t offset;                       /* in struct options */
	double def, min, max;                /* numbers; seconds in seconds */
	bool conf;                           /* may stand in the conf file */
};

extern const struct option_info option_table[];       /* ends in a row without a name */
extern const char *const option_groups[OPTION_GROUPS];   /* headings */

struct short_option {
	char letter;
	const char *name;
	const char *value;                   /* fixed, so that it takes none; or NULL */
};

extern const struct short_option short_options[];        /* ends in letter 0 */

/* Every value at its default. */
void options_init(struct options *o);
void options_free(struct options *o);

/*
 * Parse the arguments behind the program's name. Options and command come in any order.
 *
 * o        from options_init(); free it also after an error
 * returns  0; ERR_USAGE: which argument, what was found, what is allowed; ERR_MEMORY
 */
int options_parse(struct options *o, int argc, char *const *argv, struct err *err);

/*
 * Set one key of a conf file, checked like an option of the command line; a key that the command
 * line gave is checked and left alone.
 *
 * line     for "was set already on line N"
 * returns  as options_parse(); the sentence starts with the key
 */
int options_set_conf(struct options *o, const char *key, const char *value, uint32_t line,
		     struct err *err);

/* One line naming the options that were accepted and do nothing here, "" when there are none. */
void options_no_effect(const struct options *o, struct buf *out);

/*
 * The row of a name in any spelling, n bytes long; or NULL. Two rows may have one name, for different
 * commands (--from is a file or a moment): this gives the first, and the parser the command's own.
 */
const struct option_info *option_by_name(const char *name, size_t n);

/* Who set this option. name: as in the table. */
enum option_origin options_origin(const struct options *o, const char *name);

/*
 * Whether text is one spec on its own, so that a ',' before it separates: two ':' and, for a rule,
 * a comparison with a number at its end; for a rule on events a name, '/' and a name, then ';' or
 * the end.
 */
bool piece_is_spec(enum option_type type, const char *text, size_t n);

/* A number without exponent where it is whole: 600, 0.1. */
void option_number_text(double v, char *out, size_t n);

/* Help about the program (CMD_NONE) or a command, in Markdown (cli/markdown.h). */
void options_help(enum command about, struct buf *out);
/* Every key of the conf file, in the same way. */
void options_keys(struct buf *out);
/* Append text as it must stand in a cell of a table. */
void help_put_cell(struct buf *out, const char *text);

#endif
