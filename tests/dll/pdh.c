/*
 * A stand-in for PDH, for tests under Wine: in the place of pdh.dll it gives the values of a file.
 *
 *	STANDIN_PDH     lines of a path, a tab, and what successive collections give:
 *	                "\Memory\Pages/sec<tab>? 3 5": a number; - no such instance now; ? no
 *	                value yet (a rate). The last one stays.
 *
 * A path whose instance has a '*' gives all instances that match; a category or counter that no
 * line has is not known; an instance that no line has is refused, as some providers do.
 */
#include <windows.h>
#include <pdh.h>
#include <pdhmsg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINES 64
#define EXPORT __declspec(dllexport)

struct line {
	char category[64], counter[64], instance[64], values[256];
};

struct counter {
	struct query *query;
	char category[64], counter[64], instance[64];
	struct counter *next;
};

struct query {
	int ncollected;
	struct counter *counters;
};

static struct line lines[LINES];
static int nlines;

static void split(char *path, struct line *out)
{
	char *open = strchr(path, '('), *close = open ? strrchr(path, ')') : NULL;
	char *slash = strchr(close ? close : path + 1, '\\');

	memset(out, 0, sizeof(*out));
	if (!slash || path[0] != '\\')
		return;
	snprintf(out->counter, 64, "%s", slash + 1);
	*slash = '\0';
	if (close) {
		*close = '\0';
		*open = '\0';
		snprintf(out->instance, 64, "%s", open + 1);
	}
	snprintf(out->category, 64, "%s", path + 1);
}

static void load(void)
{
	const char *name = getenv("STANDIN_PDH");
	FILE *file = name ? fopen(name, "r") : NULL;
	char text[512], *tab;

	for (nlines = 0; file && nlines < LINES && fgets(text, sizeof(text), file);) {
		text[strcspn(text, "\r\n")] = '\0';
		tab = strchr(text, '\t');
		if (!tab)
			continue;
		*tab = '\0';
		split(text, &lines[nlines]);
		snprintf(lines[nlines++].values, 256, "%s", tab + 1);
	}
	if (file)
		fclose(file);
}

static int matches(const char *pattern, const char *text)
{
	size_t n = strcspn(pattern, "*");

	return pattern[n] ? _strnicmp(pattern, text, n) == 0 : _stricmp(pattern, text) == 0;
}

static int is_line_of(const struct line *l, const struct counter *c)
{
	return _stricmp(l->category, c->category) == 0 && _stricmp(l->counter, c->counter) == 0 &&
	       matches(c->instance, l->instance);
}

static DWORD value_of(const struct line *l, int n, double *value)
{
	char copy[256], *word = NULL, *at;

	snprintf(copy, sizeof(copy), "%s", l->values);
	for (at = strtok(copy, " "); at && n-- > 0; at = strtok(NULL, " "))
		word = at;
	*value = 0;
	if (!word || *word == '?')
		return PDH_CSTATUS_INVALID_DATA;
	if (strcmp(word, "-") == 0)
		return PDH_CSTATUS_NO_INSTANCE;
	*value = strtod(word, NULL);
	return PDH_CSTATUS_VALID_DATA;
}

EXPORT PDH_STATUS WINAPI PdhOpenQueryW(LPCWSTR source, DWORD_PTR user, PDH_HQUERY *out)
{
	(void)source;
	(void)user;
	*out = calloc(1, sizeof(struct query));
	return 0;
}

EXPORT PDH_STATUS WINAPI PdhCloseQuery(PDH_HQUERY handle)
{
	struct query *q = handle;
	struct counter *c, *next;

	for (c = q->counters; c; c = next) {
		next = c->next;
		free(c);
	}
	free(q);
	return 0;
}

EXPORT PDH_STATUS WINAPI PdhAddEnglishCounterW(PDH_HQUERY handle, LPCWSTR path, DWORD_PTR user,
					       PDH_HCOUNTER *out)
{
	struct query *q = handle;
	struct counter *c = calloc(1, sizeof(*c));
	int has_category = 0, has_counter = 0, has_instance = 0, i;
	struct line wanted;
	char text[512];

	(void)user;
	WideCharToMultiByte(CP_UTF8, 0, path, -1, text, sizeof(text), NULL, NULL);
	split(text, &wanted);
	memcpy(c->category, wanted.category, 64);
	memcpy(c->counter, wanted.counter, 64);
	memcpy(c->instance, wanted.instance, 64);
	c->query = q;
	c->next = q->counters;
	q->counters = c;
	for (i = 0; i < nlines; i++) {
		has_category |= _stricmp(lines[i].category, c->category) == 0;
		has_counter |= _stricmp(lines[i].category, c->category) == 0 &&
			       _stricmp(lines[i].counter, c->counter) == 0;
		has_instance |= is_line_of(&lines[i], c);
	}
	if (!has_category || !has_counter)
		return (PDH_STATUS)(has_category ? PDH_CSTATUS_NO_COUNTER : PDH_CSTATUS_NO_OBJECT);
	if (!has_instance && !strchr(c->instance, '*'))
		return (PDH_STATUS)PDH_CSTATUS_NO_INSTANCE;
	*out = c;
	return 0;
}

EXPORT PDH_STATUS WINAPI PdhCollectQueryData(PDH_HQUERY handle)
{
	((struct query *)handle)->ncollected++;
	return 0;
}

EXPORT PDH_STATUS WINAPI PdhGetFormattedCounterValue(PDH_HCOUNTER handle, DWORD format,
						     LPDWORD type, PPDH_FMT_COUNTERVALUE out)
{
	const struct counter *c = handle;
	int i;

	(void)format;
	(void)type;
	for (i = 0; i < nlines; i++) {
		if (!is_line_of(&lines[i], c))
			continue;
		out->CStatus = value_of(&lines[i], c->query->ncollected, &out->doubleValue);
		return out->CStatus ? (PDH_STATUS)out->CStatus : 0;
	}
	return (PDH_STATUS)PDH_CSTATUS_NO_INSTANCE;
}

EXPORT PDH_STATUS WINAPI PdhGetFormattedCounterArrayW(PDH_HCOUNTER handle, DWORD format,
						      LPDWORD bytes, LPDWORD n,
						      PPDH_FMT_COUNTERVALUE_ITEM_W out)
{
	const struct counter *c = handle;
	DWORD room = *bytes;
	wchar_t *names;
	double value;
	int i;

	(void)format;
	for (*n = 0, i = 0; i < nlines; i++)
		*n += is_line_of(&lines[i], c) &&
		      value_of(&lines[i], c->query->ncollected, &value) != PDH_CSTATUS_NO_INSTANCE;
	*bytes = *n * (DWORD)(sizeof(*out) + 64 * sizeof(wchar_t)) + 1;
	if (room < *bytes)
		return (PDH_STATUS)PDH_MORE_DATA;
	names = (wchar_t *)(out + *n);
	for (*n = 0, i = 0; i < nlines; i++) {
		DWORD status = value_of(&lines[i], c->query->ncollected, &value);

		if (!is_line_of(&lines[i], c) || status == PDH_CSTATUS_NO_INSTANCE)
			continue;
		MultiByteToWideChar(CP_UTF8, 0, lines[i].instance, -1, names, 64);
		out[*n].szName = names;
		out[*n].FmtValue.CStatus = status;
		out[*n].FmtValue.doubleValue = value;
		names += 64;
		(*n)++;
	}
	return 0;
}

/* Texts with NULs between and one more at the end; each once. */
static PDH_STATUS put_texts(size_t offset, const char *category, LPWSTR out, LPDWORD chars)
{
	wchar_t text[LINES * 64], *at = text;
	DWORD room = *chars;
	int i, k;

	for (i = 0; i < nlines; i++) {
		const char *field = (const char *)&lines[i] + offset;

		if (!*field || (category && _stricmp(lines[i].category, category)))
			continue;
		for (k = 0; k < i; k++)
			if (!strcmp((const char *)&lines[k] + offset, field) &&
			    (!category || !_stricmp(lines[k].category, category)))
				break;
		if (k == i)
			at += MultiByteToWideChar(CP_UTF8, 0, field, -1, at, 64);
	}
	*at++ = 0;
	*chars = (DWORD)(at - text);
	if (!out || room < *chars)
		return (PDH_STATUS)PDH_MORE_DATA;
	memcpy(out, text, *chars * sizeof(*text));
	return 0;
}

EXPORT PDH_STATUS WINAPI PdhEnumObjectsW(LPCWSTR source, LPCWSTR machine, LPWSTR out, LPDWORD chars,
					 DWORD detail, WINBOOL refresh)
{
	(void)source;
	(void)machine;
	(void)detail;
	(void)refresh;
	return put_texts(offsetof(struct line, category), NULL, out, chars);
}

EXPORT PDH_STATUS WINAPI PdhEnumObjectItemsW(LPCWSTR source, LPCWSTR machine, LPCWSTR category,
					     LPWSTR counters, LPDWORD ncounters, LPWSTR instances,
					     LPDWORD ninstances, DWORD detail, DWORD flags)
{
	char name[64] = "";
	PDH_STATUS a, b;

	(void)source;
	(void)machine;
	(void)detail;
	(void)flags;
	WideCharToMultiByte(CP_UTF8, 0, category, -1, name, sizeof(name), NULL, NULL);
	a = put_texts(offsetof(struct line, counter), name, counters, ncounters);
	b = put_texts(offsetof(struct line, instance), name, instances, ninstances);
	return a ? a : b;
}

BOOL WINAPI DllMain(HINSTANCE self, DWORD reason, LPVOID reserved)
{
	(void)self;
	(void)reserved;
	if (reason == DLL_PROCESS_ATTACH)
		load();
	return TRUE;
}
