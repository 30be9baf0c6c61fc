#include "source/counter/pdh_counter_windows.h"

#include "base/nearest.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "source/counter/pdh_names_windows.h"
#include "source/counter/pdh_name.h"
#include "source/counter/system_values_windows.h"

#include <stdlib.h>
#include <string.h>

#include <pdh.h>
#include <pdhmsg.h>

/* The library has it; the header of mingw-w64 10 does not. */
PDH_FUNCTION PdhAddEnglishCounterW(PDH_HQUERY query, LPCWSTR path, DWORD_PTR user,
				   PDH_HCOUNTER *out);

#define FORMAT (PDH_FMT_DOUBLE | PDH_FMT_NOCAP100)
#define RETRY_NS NS_PER_SEC    /* how often to retry an instance that PDH refuses until it exists */
#define ITEMS_MAX_BYTES (16u << 20)

/* An array of instances, kept between readings. */
struct items {
	PDH_FMT_COUNTERVALUE_ITEM_W *at;
	DWORD bytes, n;
};

struct pdh_counter {
	struct pdh_name name;
	PDH_HQUERY query;
	PDH_HCOUNTER counter, id;            /* NULL: PDH refuses until the instance exists */
	uint64_t retry_ns;
	struct items values, ids;
	double owner;                        /* pid of its process; < 0 = not known yet */
	struct system_value fallback;        /* if open, used instead of all the above */
};

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_unknown_name(PDH_STATUS status)
{
	return status == (PDH_STATUS)PDH_CSTATUS_NO_OBJECT ||
	       status == (PDH_STATUS)PDH_CSTATUS_NO_COUNTER ||
	       status == (PDH_STATUS)PDH_CSTATUS_BAD_COUNTERNAME;
}

static PDH_STATUS add_path(struct pdh_counter *c, const char *path, PDH_HCOUNTER *out)
{
	wchar_t *wide = wide_text(path);
	PDH_STATUS status = wide ? PdhAddEnglishCounterW(c->query, wide, 0, out)
				 : (PDH_STATUS)PDH_MEMORY_ALLOCATION_FAILURE;

	wide_free(wide);
	if (status)
		*out = NULL;
	return status;
}

static PDH_STATUS add_to_query(struct pdh_counter *c)
{
	PDH_STATUS status = add_path(c, c->name.path, &c->counter);

	if (!status && c->name.id_path[0])
		add_path(c, c->name.id_path, &c->id);
	c->retry_ns = os_now_ns() + RETRY_NS;
	return status == (PDH_STATUS)PDH_CSTATUS_NO_INSTANCE ? 0 : status;
}

static int refuse_counter(const char *name, const struct pdh_name *parts, PDH_STATUS status,
		   struct err *err)
{
	struct buf text = {0};
	bool has_category = pdh_nearest(parts, &text);
	int rc;

	if (!is_unknown_name(status))
		rc = err_set(err, ERR_USAGE, "cannot read the counter '%s': PDH returned 0x%08lx",
			     name, (unsigned long)status);
	else if (has_category)
		rc = err_set(err, ERR_USAGE,
			     "the counter '%s': the category '%s' has no counter '%s'%s%s", name,
			     parts->name.category, parts->name.counter,
			     text.len ? "; the nearest are " : "", buf_text(&text));
	else
		rc = err_set(err, ERR_USAGE,
			     "the counter '%s': there is no category '%s'%s%s; 'recorder counters' "
			     "lists all", name, parts->name.category,
			     text.len ? "; the nearest are " : "", buf_text(&text));
	buf_free(&text);
	return rc;
}

int pdh_counter_open(const char *name, struct pdh_counter **out, struct err *err)
{
	struct pdh_counter *c = calloc(1, sizeof(*c));
	PDH_STATUS status;
	int rc;

	if (!c)
		return err_memory(err, "for the counter '%s'", name);
	c->owner = -1;
	rc = pdh_name_read(name, &c->name, err);
	if (rc) {
		pdh_counter_close(c);
		return rc;
	}
	status = PdhOpenQueryW(NULL, 0, &c->query);
	if (!status)
		status = add_to_query(c);
	if (status && !system_value_open(&c->fallback, &c->name))
		rc = refuse_counter(name, &c->name, status, err);
	if (rc)
		pdh_counter_close(c);
	else
		*out = c;
	return rc;
}

bool pdh_counter_is_fallback(const struct pdh_counter *c)
{
	return c->fallback.def != NULL;
}

void pdh_counter_close(struct pdh_counter *c)
{
	if (!c)
		return;
	if (c->query)
		PdhCloseQuery(c->query);
	free(c->values.at);
	free(c->ids.at);
	free(c);
}

/* ---- reading --------------------------------------------------------------------------------- */

static enum counter_result result_of(PDH_STATUS status, const PDH_FMT_COUNTERVALUE *v)
{
	switch (status ? (DWORD)status : v->CStatus) {
	case PDH_CSTATUS_VALID_DATA:
	case PDH_CSTATUS_NEW_DATA:
		return COUNTER_VALUE;
	case PDH_CSTATUS_NO_INSTANCE:
	case PDH_CSTATUS_NO_OBJECT:
	case PDH_NO_DATA:
		return COUNTER_ABSENT;
	default:
		return COUNTER_NOT_YET;
	}
}

static enum counter_result read_value(PDH_HCOUNTER counter, double *value)
{
	PDH_FMT_COUNTERVALUE v = {0};
	enum counter_result result =
		result_of(PdhGetFormattedCounterValue(counter, FORMAT, NULL, &v), &v);

	*value = v.doubleValue;
	return result;
}

static enum counter_result read_instance(struct pdh_counter *c, double *value)
{
	enum counter_result result = read_value(c->counter, value);
	double owner = 0;
	bool replaced;

	if (result == COUNTER_ABSENT || !c->id || read_value(c->id, &owner) != COUNTER_VALUE)
		return result;
	replaced = c->owner >= 0 && owner != c->owner;
	c->owner = owner;
	return replaced ? COUNTER_ABSENT : result;
}

static PDH_STATUS read_items(PDH_HCOUNTER counter, struct items *items)
{
	PDH_STATUS status;
	DWORD bytes;
	void *more;

	for (;;) {
		bytes = items->bytes;
		status = PdhGetFormattedCounterArrayW(counter, FORMAT, &bytes, &items->n,
						      items->at);
		if (status != (PDH_STATUS)PDH_MORE_DATA || bytes > ITEMS_MAX_BYTES)
			break;
		bytes += bytes / 4;          /* instances may be added meanwhile */
		more = realloc(items->at, bytes);
		if (!more)
			return (PDH_STATUS)PDH_MEMORY_ALLOCATION_FAILURE;
		items->at = more;
		items->bytes = bytes;
	}
	if (status)
		items->n = 0;
	return status;
}

static bool is_in_sum(const struct pdh_counter *c, const wchar_t *instance)
{
	char name[COUNTER_NAME_MAX];

	if (WideCharToMultiByte(CP_UTF8, 0, instance, -1, name, sizeof(name), NULL, NULL) <= 0)
		return false;
	return pdh_name_takes(&c->name, name);
}

/*
 * A sum over no instance is absent. If every instance still needs a second reading, there is no sum
 * yet.
 */
static enum counter_result read_sum(struct pdh_counter *c, double *value)
{
	PDH_STATUS status = read_items(c->counter, &c->values);
	enum counter_result one, result = COUNTER_ABSENT;
	DWORD i;

	if (status)
		return result_of(status, NULL);
	for (*value = 0, i = 0; i < c->values.n; i++) {
		const PDH_FMT_COUNTERVALUE_ITEM_W *item = &c->values.at[i];

		if (!is_in_sum(c, item->szName))
			continue;
		one = result_of(0, &item->FmtValue);
		if (one == COUNTER_VALUE)
			*value += item->FmtValue.doubleValue;
		if (one == COUNTER_VALUE || result == COUNTER_ABSENT)
			result = one;
	}
	return result;
}

/* Both arrays come from one collection, so their order is the same. */
static enum counter_result read_pid(struct pdh_counter *c, double *value)
{
	DWORD i;

	if (!c->id || read_items(c->counter, &c->values) || read_items(c->id, &c->ids))
		return COUNTER_NOT_YET;
	for (i = 0; i < c->ids.n && i < c->values.n; i++) {
		if (result_of(0, &c->ids.at[i].FmtValue) != COUNTER_VALUE ||
		    c->ids.at[i].FmtValue.doubleValue != c->name.pid)
			continue;
		*value = c->values.at[i].FmtValue.doubleValue;
		return result_of(0, &c->values.at[i].FmtValue);
	}
	return COUNTER_ABSENT;
}

enum counter_result pdh_counter_read(struct pdh_counter *c, double *value)
{
	PDH_STATUS status;

	*value = 0;
	if (c->fallback.def)
		return system_value_read(&c->fallback, value);
	if (!c->counter && os_now_ns() >= c->retry_ns)
		add_to_query(c);
	if (!c->counter)
		return COUNTER_ABSENT;
	status = PdhCollectQueryData(c->query);
	if (status)
		return result_of(status, NULL);
	switch (c->name.want) {
	case PDH_SUM:
		return read_sum(c, value);
	case PDH_PID:
		return read_pid(c, value);
	default:
		return read_instance(c, value);
	}
}
