#include "source/dotnet/providers_linux.h"

#include "source/counter_name.h"
#include "source/dotnet/known.h"
#include "source/etw/known.h"
#include "source/probe/throw_linux.h"
#include "source/probe/tracepoint_linux.h"
#include "source/runtime/pause_list.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

bool dotnet_provider_is(const char *name)
{
	return !tracepoint_provider(name) && !throw_provider(name) && !strchr(name, ':') &&
	       *name != '{' && (*name == '*' || strchr(name, '-') || strchr(name, '.'));
}

/* IIS exists on Windows only, but the rule on requests names it besides ASP.NET Core. */
static bool is_iis(const char *name)
{
	return strcasecmp(name, "{DE4649C9-15E8-4FEA-9D85-1CDDA520C334}") == 0;
}

const char *dotnet_provider_exact(const char *name)
{
	const char *known = dotnet_known(name + (*name == '*'));

	return etw_is_clr(name) ? DOTNET_CLR : known ? known : name;
}

static int refuse_throws(struct err *err)
{
	return err_set(err, ERR_USAGE,
		       "a rule on exceptions of C++ or Java is StopOnException:TYPE;Process=NAME "
		       "(of Java also without a process)");
}

/* A provider that no source knows, with what comes near. */
static int refuse_provider(const char *name, struct err *err)
{
	const char *instead = dotnet_instead(name);
	struct buf near = {0};

	if (!instead)
		dotnet_known_near(name, &near);
	if (instead)
		err_set(err, ERR_USAGE, "%s is a provider of Windows, so a rule on it could never "
			"fire here; use %s", name, instead);
	else
		err_set(err, ERR_USAGE,
			"no source on this system delivers events of %s, so a rule on them could "
			"never fire%s%s (write *%s for a .NET EventSource)", name,
			near.len ? "; the nearest are " : "", buf_text(&near), name);
	buf_free(&near);
	return ERR_USAGE;
}

/* Whether .NET itself, a common library or a program that runs has it. */
static bool has_event_source(const char *name)
{
	enum dotnet_found found;

	if (dotnet_known(name))
		return true;
	found = dotnet_find_provider(name);
	return found == DOTNET_FOUND || found == DOTNET_NOT_SURE;
}

static int check_event_source(const char *name, struct err *err)
{
	struct buf near = {0};

	name += *name == '*';
	if (has_event_source(name))
		return 0;
	dotnet_known_near(name, &near);
	err_set(err, ERR_USAGE,
		"no .NET program that runs now has an EventSource '%s', nor does .NET itself%s%s; "
		"--assume-exists takes rules on programs that come later", name,
		near.len ? "; the nearest are " : "", buf_text(&near));
	buf_free(&near);
	return ERR_USAGE;
}

bool dotnet_asked_unknown(const char *name, struct buf *out)
{
	struct buf near = {0};

	name = dotnet_provider_exact(name);
	name += *name == '*';
	if (!dotnet_provider_is(name) || has_event_source(name))
		return false;
	buf_printf(out, "no .NET program that runs now has an EventSource '%.100s', nor does .NET "
		   "itself: its events are recorded once a program has it", name);
	dotnet_known_near(name, &near);
	if (near.len)
		buf_printf(out, "; the nearest are %s", buf_text(&near));
	buf_free(&near);
	return true;
}

static int check_provider(const char *name, bool assumed, struct err *err)
{
	if (throw_provider(name))
		return refuse_throws(err);
	if (tracepoint_provider(name) || is_iis(name) || pause_provider(name) != PAUSE_PROVIDERS)
		return 0;
	if (!dotnet_provider_is(name) ||
	    (*name != '*' && dotnet_instead(name) && !dotnet_known(name)))
		return refuse_provider(name, err);
	return assumed ? 0 : check_event_source(name, err);
}

/* The name of an EventCounter stands in a program's files as a constant. */
static int check_event_counter(const char *full, struct err *err)
{
	enum dotnet_found found;
	struct counter_name name;
	struct buf near = {0};
	int rc = counter_name_split(full, &name, err);

	if (!rc)
		rc = check_event_source(name.category, err);
	if (rc)
		return rc;
	if (!dotnet_known_counter(name.category, name.counter, &near)) {
		found = dotnet_find_provider(name.counter);
		if (found != DOTNET_FOUND && found != DOTNET_NOT_SURE)
			rc = err_set(err, ERR_USAGE,
				     "'%.200s': no .NET program that runs now has a counter "
				     "'%.100s'%s%s; --assume-exists takes rules on programs that "
				     "come later", full, name.counter,
				     near.len ? "; the nearest are " : "", buf_text(&near));
	}
	buf_free(&near);
	return rc;
}

int dotnet_providers_check(const struct needs *needs, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->nproviders; i++)
		rc = check_provider(dotnet_provider_exact(needs->providers[i].name),
				    needs->assume_exists || needs->providers[i].asked, err);
	for (i = 0; !rc && i < needs->ncounters && !needs->assume_exists; i++)
		if (event_counter_is(needs->counters[i].name))
			rc = check_event_counter(needs->counters[i].name, err);
	if (!rc)
		rc = etw_known_check(needs, err);
	return rc ? rc : pause_check(needs, err);
}
