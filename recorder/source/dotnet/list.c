#include "model/event.h"
#include "source/counter_name.h"
#include "source/dotnet/list.h"
#include "source/etw/class.h"
#include "source/runtime/pause_list.h"

#include <string.h>
#include <strings.h>

#define RUNTIME "Microsoft-Windows-DotNETRuntime"

static void put_class(const struct etw_class *class, bool json, struct buf *lines)
{
	const char *fields[ETW_CLASS_MAX_FIELDS + 1];
	unsigned i, n = 0;

	for (i = 0; i < class->nfields; i++)
		if (class->fields[i].name)
			fields[n++] = class->fields[i].name;
	fields[n] = NULL;
	event_list_put(class->provider, class->name, fields, json, lines);
}

int dotnet_list_events(const char *pattern, bool json, struct out *out, struct err *err)
{
	const struct etw_class *classes;
	struct etw_guid guid;
	struct buf line = {0}, name = {0};
	uint32_t t, i, n;
	int rc;

	for (t = 0; (classes = etw_class_table(t, &n, &guid)) != NULL; t++)
		for (i = 0; i < n && strcmp(classes[i].provider, RUNTIME) == 0; i++) {
			buf_reset(&name);
			buf_printf(&name, "%s/%s", RUNTIME, classes[i].name);
			if (name_matches(pattern, buf_text(&name)))
				put_class(&classes[i], json, &line);
		}
	pause_list(pattern, json, &line);
	rc = line.len ? buf_check(&line, "the list of events", err)
		      : err_set(err, ERR_NOT_FOUND, "no event of the .NET runtime matches '%.200s'",
				pattern ? pattern : "");
	if (!rc)
		out_put(out, line.data, line.len);
	buf_free(&line);
	buf_free(&name);
	return rc;
}
