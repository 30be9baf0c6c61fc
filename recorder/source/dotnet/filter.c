#include "source/dotnet/filter.h"

#include "base/text.h"
#include "model/process_name.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLR "Microsoft-Windows-DotNETRuntime"

struct dotnet_filter {
	struct need_provider *providers;
	uint32_t nproviders;
	struct need_event *asked;
	uint32_t nasked;
};

const char *dotnet_provider_name(const char *name)
{
	if (text_same_fold(name, "{e13c0d23-ccbc-4e12-931b-d9cc2eee27e4}") ||
	    text_same_fold(name, "e13c0d23-ccbc-4e12-931b-d9cc2eee27e4") ||
	    text_same_fold(name, CLR))
		return CLR;
	return name + (*name == '*');
}

int dotnet_filter_new(const struct needs *needs, struct dotnet_filter **out, struct err *err)
{
	struct dotnet_filter *f = calloc(1, sizeof(*f));
	uint32_t i;

	if (f)
		f->providers = calloc(needs->nproviders + 1u, sizeof(*f->providers));
	if (f)
		f->asked = calloc(needs->nevents + 1u, sizeof(*f->asked));
	if (!f || !f->providers || !f->asked) {
		dotnet_filter_free(f);
		return err_memory(err, "for the events of .NET programs");
	}
	for (i = 0; i < needs->nproviders; i++)
		f->providers[f->nproviders++] = needs->providers[i];
	for (i = 0; i < needs->nevents; i++)
		if (needs->events[i].asked)
			f->asked[f->nasked++] = needs->events[i];
	*out = f;
	return 0;
}

void dotnet_filter_free(struct dotnet_filter *f)
{
	if (!f)
		return;
	free(f->providers);
	free(f->asked);
	free(f);
}

/* One of the words of a list; *text moves behind it. */
static bool next_word(const char **text, const char *separators, char *word, size_t size)
{
	size_t n;

	*text += strspn(*text, separators);
	n = strcspn(*text, separators);
	snprintf(word, size, "%.*s", (int)n, *text);
	*text += n;
	return n > 0;
}

static bool is_event(const char *word, const struct event *e)
{
	char *end;
	unsigned long id = strtoul(word, &end, 10);

	if (*end)
		return e->name && event_name_is(word, e->name);
	return e->flags & EVENT_FLAG_ID && e->flags >> EVENT_ID_SHIFT == id;
}

/* list: "*", "5 7 GC/Start" or "!3" */
static bool passes_name(const char *list, const struct event *e)
{
	bool left_out = *list == '!';
	char word[EVENT_NAME_MAX];

	if (strcmp(list, "*") == 0)
		return true;
	list += left_out;
	while (next_word(&list, " ", word, sizeof(word)))
		if (is_event(word, e))
			return !left_out;
	return left_out;
}

static bool passes_process(const char *list, const struct event *e)
{
	struct process_names names;
	char word[EVENT_PROCESSES_MAX];

	if (!*list)
		return true;
	if (!e->process)
		return false;
	names = process_names_of(e->process);
	while (next_word(&list, ";", word, sizeof(word)))
		if (process_names_mean(&names, e->process->pid, word))
			return true;
	return false;
}

bool dotnet_filter_pass(const struct dotnet_filter *f, const struct event *e)
{
	const char *provider = e->provider ? e->provider : "";
	uint32_t i;

	for (i = 0; i < f->nproviders; i++)
		if (f->providers[i].unfiltered &&
		    text_same_fold(dotnet_provider_name(f->providers[i].name), provider))
			return true;
	for (i = 0; i < f->nasked; i++)
		if (text_same_fold(dotnet_provider_name(f->asked[i].provider), provider) &&
		    passes_name(f->asked[i].name, e) && passes_process(f->asked[i].processes, e))
			return true;
	return false;
}
