#include "source/counter/pdh_name.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The counter of a category that holds the pid of an instance. */
static const char *id_counter(const char *category)
{
	static const char clr[] = ".NET CLR";

	if (text_same_fold(category, "Process"))
		return "ID Process";
	return strncmp(category, clr, sizeof(clr) - 1) == 0 ? "Process ID" : NULL;
}

static void put_path(const struct counter_name *name, const char *counter, const char *instance,
		     char *out)
{
	if (*instance)
		snprintf(out, PDH_PATH_MAX, "\\%s(%s)\\%s", name->category, instance, counter);
	else
		snprintf(out, PDH_PATH_MAX, "\\%s\\%s", name->category, counter);
}

static bool read_pid(const char *instance, uint32_t *pid)
{
	unsigned long long v;
	char *end;

	if (strncmp(instance, "pid=", 4) || instance[4] < '0' || instance[4] > '9')
		return false;
	v = strtoull(instance + 4, &end, 10);
	*pid = (uint32_t)v;
	return !*end && v <= UINT32_MAX;
}

static size_t all_numbers(const char *instance)
{
	size_t n = strlen(instance);

	return n > 2 && strcmp(instance + n - 2, "#*") == 0 ? n - 2 : 0;
}

int pdh_name_read(const char *text, struct pdh_name *out, struct err *err)
{
	struct counter_name *name = &out->name;
	char instance[COUNTER_NAME_MAX];
	const char *id;
	int rc;

	memset(out, 0, sizeof(*out));
	rc = counter_name_split(text, name, err);
	if (rc)
		return rc;
	if (strpbrk(name->category, "\\()*") || strpbrk(name->counter, "\\*"))
		return err_set(err, ERR_USAGE,
			       "the counter '%s': only the instance may contain '*', and the "
			       "category no bracket", text);
	id = id_counter(name->category);
	snprintf(instance, sizeof(instance), "%s", name->instance);
	if (read_pid(name->instance, &out->pid)) {
		if (!id)
			return err_set(err, ERR_USAGE,
				       "the counter '%s': instances of %s have no pid", text,
				       name->category);
		out->want = PDH_PID;
		strcpy(instance, "*");
	} else if (all_numbers(instance)) {
		out->want = PDH_SUM;
		strcpy(instance + all_numbers(instance), "*");
	} else if (strchr(instance, '*')) {
		out->want = PDH_SUM;
	}
	put_path(name, name->counter, instance, out->path);
	if (id && *instance && out->want != PDH_SUM)
		put_path(name, id, instance, out->id_path);
	return 0;
}

bool pdh_name_takes(const struct pdh_name *name, const char *instance)
{
	size_t n = all_numbers(name->name.instance);
	char wanted[COUNTER_NAME_MAX], base[COUNTER_NAME_MAX];

	/* PDH has matched it; _Total is not part of the sum */
	if (!n)
		return !text_same_fold(instance, "_Total");
	/* "java" and "java#1"; not "javaw". */
	if (strcspn(instance, "#") != n)
		return false;
	snprintf(wanted, sizeof(wanted), "%.*s", (int)n, name->name.instance);
	snprintf(base, sizeof(base), "%.*s", (int)n, instance);
	return text_same_fold(wanted, base);
}
