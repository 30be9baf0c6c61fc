#include "triggers/event_name.h"

#include "base/array.h"
#include "base/text.h"

#include <ctype.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Providers with several names, and the usual one. */
static const char *const usual_names[][2] = {
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

static bool same_name(const char *a, const char *b)
{
	size_t na, nb;

	if (text_same_fold(a, b))
		return true;
	a = guid_without_braces(a, &na);
	b = guid_without_braces(b, &nb);
	return na == 36 && nb == 36 && strncasecmp(a, b, 36) == 0;
}

static const char *usual_name(const char *provider)
{
	size_t i;

	for (i = 0; i < COUNT_OF(usual_names); i++)
		if (same_name(provider, usual_names[i][0]))
			return usual_names[i][1];
	return provider;
}

bool provider_is(const char *wanted, const char *provider)
{
	return same_name(usual_name(wanted + (*wanted == '*')), usual_name(provider));
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
