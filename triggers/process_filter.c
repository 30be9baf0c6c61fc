#include "triggers/process_filter.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

static bool same_name(const char *a, const char *b)
{
	for (; *a && *b; a++, b++)
		if (tolower((unsigned char)*a) != tolower((unsigned char)*b))
			return false;
	return !*a && !*b;
}

static size_t without_exe(const char *text, size_t len)
{
	return len > 4 && text[len - 4] == '.' && tolower((unsigned char)text[len - 3]) == 'e' &&
	       tolower((unsigned char)text[len - 2]) == 'x' && tolower((unsigned char)text[len - 1]) == 'e'
		       ? len - 4 : len;
}

static int parse_item(const char *text, size_t len, struct process_filter *f, struct err *err)
{
	if (!len)
		return err_set(err, ERR_USAGE, "an empty process name; allowed are names and pids, "
			       "like nginx or 1234,nginx");
	if (f->n == PROCESS_FILTER_MAX)
		return err_set(err, ERR_USAGE, "over %u processes in a list", PROCESS_FILTER_MAX);
	if (len < 10 && strspn(text, "0123456789") >= len) {
		f->items[f->n].pid = (uint32_t)strtoul(text, NULL, 10);
		/* Events without a process pass no filter: pid 0 is written by name. */
		if (f->items[f->n].pid) {
			f->n++;
			return 0;
		}
	}
	len = without_exe(text, len);
	if (len >= sizeof(f->items[0].name))
		return err_set(err, ERR_USAGE, "'%.40s...' is too long for a process name", text);
	memcpy(f->items[f->n].name, text, len);
	f->items[f->n].name[len] = '\0';
	f->items[f->n++].pid = 0;
	return 0;
}

int process_filter_parse(const char *text, size_t len, struct process_filter *out, struct err *err)
{
	struct process_filter f = {0};
	size_t at = 0, n;
	int rc = 0;

	do {
		for (n = 0; at + n < len && text[at + n] != ','; n++)
			;
		rc = parse_item(text + at, n, &f, err);
		at += n + 1;
	} while (!rc && at <= len);
	if (!rc)
		*out = f;
	return rc;
}

bool process_filter_pass_named(const struct process_filter *f, uint32_t pid, const char *name)
{
	unsigned i;

	if (!f->n)
		return true;
	for (i = 0; i < f->n; i++) {
		if (f->items[i].pid ? f->items[i].pid == pid : same_name(f->items[i].name, name))
			return true;
	}
	return false;
}

bool process_filter_pass(const struct process_filter *f, const struct process *process)
{
	return !f->n || (process && process_filter_pass_named(f, process->pid, process_name(process)));
}
