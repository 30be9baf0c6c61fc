/*
 * help: the tables of options/table.c for people.
 */
#include "cli/cmd.h"
#include "export/export.h"

static void put_formats(struct buf *out)
{
	size_t i;

	buf_puts(out, "\nFormats, and the suffixes of -o that choose them:\n");
	for (i = 0; exporters[i]; i++)
		buf_printf(out, "  %-17s %-18s %s\n", exporters[i]->name,
			   exporters[i]->suffix ? exporters[i]->suffix : "", exporters[i]->summary);
}

int cmd_help(const struct options *o, struct err *err)
{
	enum command about = o->command == CMD_HELP ? o->help_about : o->command;
	struct buf text = {0};
	int rc;

	options_help(about, &text);
	if (about == CMD_EXPORT)
		put_formats(&text);
	rc = cmd_print(&text, err);
	buf_free(&text);
	return rc;
}
