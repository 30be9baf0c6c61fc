#include "source/etw/known.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/text.h"
#include "model/event.h"
#include "source/conditions.h"
#include "source/etw/computed.h"
#include "source/etw/kernel.h"
#include "source/etw/wanted.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CLR_NAME "Microsoft-Windows-DotNETRuntime"
#define FIELDS_MAX 160u                      /* of all versions of one event */

bool etw_is_clr(const char *provider)
{
	struct etw_guid guid;

	return text_same_fold(provider, CLR_NAME) ||
	       (etw_guid_read(provider, &guid) && guid_same(&guid, &etw_clr_guid));
}

/* Class i of the kernel or of the CLR, counted from 0 through all tables; NULL after the last. */
static const struct etw_class *class_at(bool clr, uint32_t i)
{
	const struct etw_class *classes;
	struct etw_guid guid;
	uint32_t t, k, n;

	for (t = 0; (classes = etw_class_table(t, &n, &guid)) != NULL; t++)
		for (k = 0; k < n; k++)
			if ((clr ? strcmp(classes[k].provider, CLR_NAME) == 0
				 : etw_is_kernel(classes[k].provider)) && i-- == 0)
				return &classes[k];
	return NULL;
}

/* ---- names ----------------------------------------------------------------------------------- */

static int no_event(const char *name, struct err *err)
{
	struct nearest nearest = {.wanted = name};
	const struct etw_class *class;
	struct buf near = {0};
	uint32_t i;

	for (i = 0; (class = class_at(true, i)) != NULL; i++)
		nearest_offer(&nearest, class->name);
	nearest_put(&nearest, "'", "'", &near);
	err_set(err, ERR_USAGE,
		"the .NET runtime has no known event '%.100s'%s%s; 'recorder events %s' lists "
		"them, and EventID(n) names one of a newer runtime", name,
		near.len ? "; the nearest are " : "", buf_text(&near), CLR_NAME);
	buf_free(&near);
	return ERR_USAGE;
}

static bool is_number(const struct etw_field *field)
{
	return field->type <= ETW_POINTER || field->type == ETW_SIZE;
}

static void add_field(struct known_field *all, uint32_t *n, const char *name, bool number)
{
	uint32_t i;

	for (i = 0; i < *n && strcmp(all[i].name, name) != 0; i++)
		;
	if (i == FIELDS_MAX)
		return;
	if (i == *n)
		all[(*n)++] = (struct known_field){name, number};
	else
		all[i].is_number &= number;
}

/* Several classes may share a name. returns  how many fields; *found: it has the event */
static uint32_t fields_of(bool clr, const char *name, struct known_field *all, bool *found)
{
	const char *computed[ETW_COMPUTED_MAX];
	const struct etw_class *class;
	uint32_t i, k, n = 0;

	*found = false;
	for (i = 0; (class = class_at(clr, i)) != NULL; i++) {
		if (!event_name_is(name, class->name))
			continue;
		*found = true;
		for (k = 0; k < class->nfields; k++)
			if (class->fields[k].name)
				add_field(all, &n, class->fields[k].name,
					  is_number(&class->fields[k]));
		for (k = etw_computed_names(class, computed); k-- > 0;)
			add_field(all, &n, computed[k], false);
	}
	return n;
}

/* ---- what brings an event of .NET ------------------------------------------------------------ */

/* Source: ClrEtwAll.man. The first one whose name begins so. */
static const struct {
	const char *name;
	uint64_t keyword;
	uint8_t level;
} bringers[] = {
	{"GC/AllocationTick", 0x1, 5}, {"GC/PinObjectAtGCTime", 0x1, 5},
	{"GC/FinalizeObject", 0x1, 5}, {"GC/Start", 0x1, 4}, {"GC/Stop", 0x1, 4},
	{"GC/RestartEE", 0x1, 4}, {"GC/SuspendEE", 0x1, 4}, {"GC/HeapStats", 0x1, 4},
	{"GC/CreateSegment", 0x1, 4}, {"GC/Triggered", 0x1, 4}, {"GC/Finalizers", 0x1, 4},
	{"Exception/", 0x8000, 2}, {"Contention/", 0x4000, 4},
	{"ThreadPoolWorkerThread", 0x10000, 4},
};

static int check_brought(const struct needs *needs, const struct need_event *e, struct err *err)
{
	const struct need_provider *p = NULL;
	size_t i;
	uint32_t k;

	for (k = 0; k < needs->nproviders; k++)
		if (etw_is_clr(needs->providers[k].name))
			p = &needs->providers[k];
	for (i = 0; i < COUNT_OF(bringers); i++) {
		size_t n = strlen(bringers[i].name);

		/* GCStart is another spelling of GC/Start. */
		if (strncasecmp(bringers[i].name, e->name, n) == 0 ||
		    event_name_is(e->name, bringers[i].name))
			break;
	}
	if (!p || i == COUNT_OF(bringers))
		return 0;
	if (p->keywords && !(p->keywords & bringers[i].keyword))
		return err_set(err, ERR_USAGE,
			       "%s needs the keyword 0x%" PRIx64 ", which Keywords=0x%" PRIx64
			       " leaves out", e->name, bringers[i].keyword, p->keywords);
	if (p->level && p->level < bringers[i].level)
		return err_set(err, ERR_USAGE, "%s comes at Level=%u and above only; the rule asks "
			       "for %u", e->name, bringers[i].level, p->level);
	return 0;
}

/* ---- an event -------------------------------------------------------------------------------- */

static int check_event(const struct needs *needs, const struct need_event *e, bool clr,
		       struct err *err)
{
	struct known_field fields[FIELDS_MAX];
	char name[PROVIDER_NAME_MAX + EVENT_NAME_MAX];
	bool found;
	uint32_t n = fields_of(clr, e->name, fields, &found);
	int rc;

	if (!found)
		return clr ? no_event(e->name, err) : 0;     /* wanted.c refuses the kernel's */
	snprintf(name, sizeof(name), "%s/%s", e->provider, e->name);
	rc = conditions_check(fields, n, true, name, e->filter, err);
	if (!rc)
		rc = conditions_check_field(fields, n, true, name, e->id_field, err);
	return rc || !clr ? rc : check_brought(needs, e, err);
}

int etw_known_check(const struct needs *needs, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < needs->nevents; i++) {
		const struct need_event *e = &needs->events[i];
		bool clr = etw_is_clr(e->provider);

		/* Of --event and --providers come numbers, which are known to be right. */
		if (e->asked)
			continue;
		if ((clr || etw_is_kernel(e->provider)) && strncasecmp(e->name, "EventID(", 8) != 0)
			rc = check_event(needs, e, clr, err);
	}
	return rc;
}
