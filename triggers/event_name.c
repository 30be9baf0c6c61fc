#include "triggers/event_name.h"

#include "base/array.h"
#include "base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Providers with several names. Sources: triggers.md sections 4 and 6. */
static const char *const same_providers[][2] = {
	{"Windows Kernel Trace", KERNEL_PROVIDER},
	{"{9e814aad-3204-11d2-9a82-006008a86939}", KERNEL_PROVIDER},
	{"{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}", "Microsoft-Windows-DotNETRuntime"},
	{"{a669021c-c450-4609-a035-5af59af4df18}", "Microsoft-Windows-DotNETRuntimeRundown"},
	{"{763fd754-7086-4dfe-95eb-c01a46faf4ca}", "Microsoft-Windows-DotNETRuntimePrivate"},
	{"{de4649c9-15e8-4fea-9d85-1cdda520c334}", "Microsoft-Windows-IIS"},
};

const char *guid_without_braces(const char *guid, size_t *len)
{
	*len = strlen(guid);
	if (*len == 38 && guid[0] == '{')
		guid++, *len -= 2;
	return guid;
}

static bool same_guid(const char *a, const char *b)
{
	size_t na, nb, i;

	a = guid_without_braces(a, &na);
	b = guid_without_braces(b, &nb);
	if (na != 36 || nb != 36)
		return false;
	for (i = 0; i < na; i++)
		if (tolower((unsigned char)a[i]) != tolower((unsigned char)b[i]))
			return false;
	return true;
}

bool provider_is(const char *wanted, const char *provider)
{
	size_t i;

	if (text_same_fold(wanted + (*wanted == '*'), provider) || same_guid(wanted, provider))
		return true;
	for (i = 0; i < COUNT_OF(same_providers); i++) {
		const char *const *same = same_providers[i];

		if ((text_same_fold(wanted, same[0]) || same_guid(wanted, same[0]) ||
		     text_same_fold(wanted, same[1])) &&
		    (text_same_fold(provider, same[0]) || same_guid(provider, same[0]) ||
		     text_same_fold(provider, same[1])))
			return true;
	}
	return false;
}

int event_id_of(const char *name)
{
	unsigned long id;
	char *end;

	if (strncasecmp(name, "EventID(", 8) != 0 || !isdigit((unsigned char)name[8]))
		return -1;
	id = strtoul(name + 8, &end, 10);
	return strcmp(end, ")") == 0 && id <= UINT16_MAX ? (int)id : -1;
}
