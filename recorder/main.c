/*
 * The program: arguments, conf file, command, exit code.
 */
#include "cli/cmd.h"
#include "listing/sheet.h"
#include "options/config.h"
#include "base/version.h"

#include "base/os.h"
#include "source/dotnet/streams.h"
#include "source/jvm/reader.h"
#include "symbol/sandbox.h"

#include <stddef.h>
#include <string.h>

enum exit_codes { EXIT_DONE, EXIT_FAILED, EXIT_WRONG_USAGE, EXIT_NOTHING_FOUND };

static int (*const run[COMMANDS])(const struct options *o, struct err *err) = {
	[CMD_COLLECT] = cmd_collect,
	[CMD_START] = cmd_start,
	[CMD_RUN] = cmd_run,
	[CMD_TOP] = cmd_top,
	[CMD_STATUS] = cmd_control,
	[CMD_SNAPSHOT] = cmd_control,
	[CMD_MARK] = cmd_control,
	[CMD_RELOAD] = cmd_control,
	[CMD_LIST_SESSIONS] = cmd_list_sessions,
	[CMD_STOP] = cmd_control,
	[CMD_ABORT] = cmd_control,
	[CMD_LIST] = cmd_list,
	[CMD_HISTORY] = cmd_history,
	[CMD_SHOW] = cmd_show,
	[CMD_REPORT] = cmd_report,
	[CMD_EXPORT] = cmd_export,
	[CMD_DIFF] = cmd_diff,
	[CMD_DELETE] = cmd_edit,
	[CMD_PIN] = cmd_edit,
	[CMD_NOTE] = cmd_remark,
	[CMD_UNPIN] = cmd_edit,
	[CMD_VERIFY] = cmd_verify,
	[CMD_SALVAGE] = cmd_salvage,
	[CMD_SYMBOLIZE] = cmd_symbolize,
	[CMD_SHIP] = cmd_ship,
	[CMD_FLEET] = cmd_fleet,
	[CMD_EVENTS] = cmd_events,
	[CMD_COUNTERS] = cmd_counters,
	[CMD_STACKS] = cmd_stacks,
	[CMD_CHECK] = cmd_check,
	[CMD_BACKTEST] = cmd_backtest,
	[CMD_SERVICE] = cmd_service,
	[CMD_HELP] = cmd_help,
};

/* The one place where errors become exit codes; the README lists them. */
static int exit_code(int rc)
{
	if (rc >= CMD_EXITS)
		return rc - CMD_EXITS;
	switch (rc) {
	case 0:
		return EXIT_DONE;
	case ERR_USAGE:
		return EXIT_WRONG_USAGE;
	case ERR_NOT_FOUND:
		return EXIT_NOTHING_FOUND;
	default:
		return EXIT_FAILED;
	}
}

static int print_version(struct err *err)
{
	struct buf text = {0};
	int rc;

	buf_puts(&text, "recorder " RECORDER_VERSION "\n");
	rc = print_text(&text, err);
	buf_free(&text);
	return rc;
}

/* A program file that lends rights takes no orders from its caller's environment. */
static void say_hidden(const char *variable, const char *option)
{
	if (os_env_hidden(variable))
		cmd_note("$%s is not read, because this program's file has capabilities; use %s",
			 variable, option);
}

static int command(struct options *o, struct err *err)
{
	int rc;

	if (o->version)
		return print_version(err);
	if (o->help)
		return cmd_help(o, err);
	if (o->command == CMD_NONE)
		return err_set(err, ERR_USAGE, "no command was given; 'recorder help' lists them");
	say_hidden("RECORDER_STORE", "--store");
	say_hidden("RECORDER_CONFIG", "--config");
	rc = sheet_check_color(o, err);
	if (!rc && o->command != CMD_HELP)
		rc = config_load_named(o, err);
	if (!rc && o->command != CMD_HELP)
		rc = cmd_fetch_stores(o, err);
	return rc ? rc : run[o->command](o, err);
}

int main(int argc, char **argv)
{
	char **args = os_args(argc, argv);
	struct cmd_words words = {0};
	struct options o;
	struct err err = {0};
	int rc = 0;

	os_guard_streams();
	if (argc == 2 && strcmp(args[1], SANDBOX_WORD) == 0)
		return sandbox_serve();
	if (argc == 2 && strcmp(args[1], DOTNET_STREAMS_WORD) == 0)
		return dotnet_streams_serve();
	if (argc == 2 && strcmp(args[1], JVM_READER_WORD) == 0)
		return jvm_reader_serve();
	os_rights_lower();
	if (argc > 1 && strcmp(args[1], "complete") == 0) {
		os_rights_give_up();
		cmd_complete(argc - 2, args + 2);
		return EXIT_DONE;
	}
	options_init(&o);
	if (argc > 0 && cmd_is_dtrace(args[0]))
		rc = cmd_dtrace_words(argc - 1, args + 1, &words, &err);
	if (!rc && words.n)
		rc = options_parse(&o, words.n, words.words, &err);
	else if (!rc)
		rc = options_parse(&o, argc - 1, args + 1, &err);
	if (o.command != CMD_COLLECT && o.command != CMD_START && o.command != CMD_CHECK &&
	    o.command != CMD_RUN && o.command != CMD_TOP)
		os_rights_give_up();
	if (!rc)
		rc = command(&o, &err);
	if (rc && rc < CMD_EXITS)
		options_at_option(&o, &err);
	options_free(&o);
	cmd_words_free(&words);
	/* ERR_STOPPED: the reader of the output has seen enough ("| head"). */
	if (rc && rc < CMD_EXITS && rc != ERR_STOPPED)
		cmd_note("%s", *err.text ? err.text : "failed without an error message");
	return exit_code(rc);
}
