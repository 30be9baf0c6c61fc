#include "source/etw/list.h"

#include "base/array.h"
#include "source/counter_name.h"
#include "source/etw/computed.h"
#include "source/etw/kernel.h"
#include "source/runtime/pause_list.h"

#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"

static bool is_listed(const struct etw_class *class)
{
	uint32_t flags = 0;

	return strcmp(class->provider, CLR) == 0 ||
	       (etw_is_kernel(class->provider) && !etw_kernel_event(class->name, &flags, NULL));
}

static void put_class(const struct etw_class *class, bool json, struct buf *lines)
{
	const char *fields[ETW_CLASS_MAX_FIELDS + ETW_COMPUTED_MAX + 1];
	uint32_t i, n = 0;

	for (i = 0; i < class->nfields; i++)
		if (class->fields[i].name)
			fields[n++] = class->fields[i].name;
	n += etw_computed_names(class, fields + n);
	fields[n] = NULL;
	event_list_put(class->provider, class->name, fields, json, lines);
}

int etw_list_events(const char *pattern, bool json, struct out *out, struct err *err)
{
	const struct etw_class *classes;
	struct buf lines = {0}, name = {0};
	struct etw_guid guid;
	uint32_t t, i, n;
	int rc;

	for (t = 0; (classes = etw_class_table(t, &n, &guid)) != NULL; t++)
		for (i = 0; i < n; i++) {
			buf_reset(&name);
			buf_printf(&name, "%s/%s", classes[i].provider, classes[i].name);
			if (is_listed(&classes[i]) && name_matches(pattern, buf_text(&name)))
				put_class(&classes[i], json, &lines);
		}
	rc = lines.len ? buf_check(&lines, "the list of events", err)
		       : err_set(err, ERR_NOT_FOUND,
				 "no event of the kernel or of .NET matches '%.200s'; "
				 "'logman query providers' lists the other providers",
				 pattern ? pattern : "");
	if (!rc)
		out_put(out, lines.data, lines.len);
	buf_free(&lines);
	buf_free(&name);
	return rc;
}
