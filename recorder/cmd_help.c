/*
 * help: the tables of options_table.c for people.
 */
#include "cmd.h"

int cmd_help(const struct options *o, struct err *err)
{
	enum command about = o->command == CMD_HELP ? o->help_about : o->command;
	struct buf text = {0};
	int rc;

	options_help(about, &text);
	rc = cmd_print(&text, err);
	buf_free(&text);
	return rc;
}
