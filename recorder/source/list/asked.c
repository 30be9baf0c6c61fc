#include "source/list/asked.h"

#include "base/text.h"
#include "model/event.h"
#include "source/etw/kernel.h"
#include "source/etw/wanted.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define CLR_NAME "Microsoft-Windows-DotNETRuntime"

/* what: a keyword, or "DiskIO/Read"; name: of the event */
static bool is_kernel_event(const char *what, const char *name)
{
	uint64_t wanted = 0;
	uint32_t flags = 0;

	if (strchr(what, '/'))
		return event_name_is(what, name);
	if (etw_wanted_kernel_keyword("--event", what, &wanted, NULL) ||
	    etw_kernel_event(name, &flags, NULL))
		return false;
	/* Names of files come with each event that has some. */
	return (flags & wanted & ~(uint64_t)ETW_FLAG_DISK_FILE_IO) != 0;
}

bool asked_event(const char *list, const char *provider, const char *name)
{
	char *copy = list ? text_dup(list, SIZE_MAX) : NULL, *part = copy, *next;
	bool kernel = etw_is_kernel(provider), is = false;

	for (; !is && part; part = next) {
		next = strchr(part, ',');
		if (next)
			*next++ = '\0';
		if (kernel && strncasecmp(part, "kernel:", 7) == 0)
			is = is_kernel_event(part + 7, name);
		if (strncasecmp(part, "clr:", 4) == 0 && text_same_fold(provider, CLR_NAME)) {
			const char *event = strchr(part + 4, ':');

			is = !event || !event[1] || event_name_is(event + 1, name);
		}
	}
	free(copy);
	return is;
}
