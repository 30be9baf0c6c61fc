#include "source/etw/kernel.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/text.h"
#include "model/event.h"
#include "source/etw/guids.h"
#include "source/etw/wanted.h"

#include <string.h>

#define KERNEL "Windows Kernel"

bool etw_is_kernel(const char *provider)
{
	static const struct etw_guid kernel = KERNEL_TRACE_GUID;
	struct etw_guid guid;

	return text_same_fold(provider, KERNEL) || text_same_fold(provider, KERNEL " Trace") ||
	       (etw_guid_read(provider, &guid) && guid_same(&guid, &kernel));
}

/* The kernel class i, counted from 0 through all tables; NULL after the last. */
static const struct etw_class *class_at(uint32_t i, struct etw_guid *guid)
{
	const struct etw_class *classes;
	uint32_t t, n;

	for (t = 0; (classes = etw_class_table(t, &n, guid)) != NULL; t++) {
		if (strcmp(classes->provider, KERNEL) != 0)
			continue;
		if (i < n)
			return &classes[i];
		i -= n;
	}
	return NULL;
}

static bool has_names_of_files(const struct etw_class *class)
{
	uint32_t i = 0;

	while (i < class->nfields && (class->fields[i].type != ETW_NAME_KEY ||
				      class->fields[i].n == ETW_NAMES_REGISTRY_KEY))
		i++;
	return i < class->nfields;
}

/* Whether the event reaches rules; else say why it does not. */
static int check_class(const struct etw_class *class, struct err *err)
{
	if (class->id == ETW_SAMPLE)
		return err_set(err, ERR_UNSUPPORTED,
			       "'%s' is every sample of a CPU, on which no rule fires; a rule on "
			       "'Processor:%% Processor Time:_Total' watches the load",
			       class->name);
	if (class->id == ETW_PMC_SAMPLE)
		return err_set(err, ERR_UNSUPPORTED,
			       "no rule fires on '%s'; --cpu-counters records its stacks",
			       class->name);
	if (class->describes)
		return err_set(err, ERR_UNSUPPORTED,
			       "no rule fires on '%s': it only describes other events",
			       class->name);
	if (!class->flag)
		return err_set(err, ERR_UNSUPPORTED,
			       "'%s' is written into trace files only; a live session has no such "
			       "event", class->name);
	return 0;
}

static int unknown(const char *name, struct err *err)
{
	struct nearest near = {.wanted = name};
	struct buf text = {0};
	const struct etw_class *class;
	struct etw_guid guid;
	uint32_t i;
	int rc;

	for (i = 0; (class = class_at(i, &guid)) != NULL; i++)
		if (!check_class(class, NULL))
			nearest_offer(&near, class->name);
	nearest_put(&near, "'", "'", &text);
	rc = err_set(err, ERR_NOT_FOUND,
		     "the kernel of Windows has no event '%s'%s%s; 'recorder events' lists them",
		     name, text.len ? "; near is " : "", buf_text(&text));
	buf_free(&text);
	return rc;
}

int etw_kernel_event(const char *name, uint32_t *flags, struct err *err)
{
	const struct etw_class *class;
	struct etw_guid guid;
	uint32_t i;
	int rc;

	for (i = 0; (class = class_at(i, &guid)) != NULL; i++)
		if (event_name_is(name, class->name))
			break;
	if (!class)
		return unknown(name, err);
	rc = check_class(class, err);
	if (!rc)
		*flags |= class->flag | (has_names_of_files(class) ? ETW_FLAG_DISK_FILE_IO : 0u);
	return rc;
}

uint32_t etw_kernel_stacks(uint32_t flags, struct etw_class_event *out, uint32_t max)
{
	const struct etw_class *class;
	struct etw_guid guid;
	uint32_t i, n = 0;

	for (i = 0; (class = class_at(i, &guid)) != NULL && n < max; i++)
		if (class->has_stack && class->flag & flags)
			out[n++] = (struct etw_class_event){guid, (uint8_t)class->key};
	return n;
}
