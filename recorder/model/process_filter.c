#include "model/process_filter.h"

#include <stdlib.h>
#include <string.h>

static int parse_item(const char *text, size_t len, struct process_filter *f, struct err *err)
{
	char whole[sizeof(f->items[0].name) + 16] = "";
	const char *name;

	if (!len)
		return err_set(err, ERR_USAGE, "an empty process name; allowed are names and pids, "
			       "like nginx or 1234,nginx");
	if (f->n == PROCESS_FILTER_MAX)
		return err_set(err, ERR_USAGE, "a list has at most %u processes",
			       PROCESS_FILTER_MAX);
	memcpy(whole, text, len < sizeof(whole) ? len : sizeof(whole) - 1);
	f->items[f->n].key = home_key_of(whole, &name);
	if (len >= sizeof(whole) || strlen(name) >= sizeof(f->items[0].name))
		return err_set(err, ERR_USAGE, "'%.40s...' is too long for a process name", text);
	if (!*name)
		return err_set(err, ERR_USAGE, "'%.40s' needs a name", whole);
	strcpy(f->items[f->n].name, name);
	/* Events without a process pass no filter: pid 0 counts as a name. */
	if (len < 10 && strspn(text, "0123456789") >= len)
		f->items[f->n].pid = (uint32_t)strtoul(text, NULL, 10);
	f->n++;
	return 0;
}

int process_filter_parse(const char *text, size_t len, struct process_filter *out, struct err *err)
{
	struct process_filter f = {0};
	const char *at = text, *end = text + len, *comma;
	int rc;

	do {
		comma = memchr(at, ',', (size_t)(end - at));
		rc = parse_item(at, (size_t)((comma ? comma : end) - at), &f, err);
		at = comma ? comma + 1 : end;
	} while (!rc && comma);
	if (!rc)
		*out = f;
	return rc;
}

static bool pass(const struct process_filter *f, uint32_t pid, const struct process_names *names,
		 const char *home)
{
	unsigned i;

	for (i = 0; i < f->n; i++) {
		if (f->items[i].key ? home_is(home, f->items[i].key, f->items[i].name)
		    : f->items[i].pid	    ? f->items[i].pid == pid
				    : process_names_match(names, f->items[i].name))
			return true;
	}
	return !f->n;
}

bool process_filter_pass_named(const struct process_filter *f, uint32_t pid,
			       const struct process_names *names)
{
	return pass(f, pid, names, "");
}

bool process_filter_pass(const struct process_filter *f, const struct process *process)
{
	struct process_names names;

	if (!f->n || !process)
		return !f->n;
	names = process_names_of(process);
	return pass(f, process->pid, &names, process_home(process));
}

bool process_filter_has_homes(const struct process_filter *f)
{
	unsigned i;

	for (i = 0; i < f->n; i++)
		if (f->items[i].key)
			return true;
	return false;
}

bool process_filter_has_names(const struct process_filter *f)
{
	unsigned i;

	for (i = 0; i < f->n; i++)
		if (!f->items[i].pid)
			return true;
	return false;
}
