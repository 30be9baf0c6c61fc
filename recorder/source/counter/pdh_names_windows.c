#include "source/counter/pdh_names_windows.h"

#include "base/nearest.h"
#include "base/os_windows.h"
#include "base/text.h"

#include <stdlib.h>

#include <pdh.h>
#include <pdhmsg.h>
#include <winperf.h>

#define TEXTS_MAX_CHARS (4u << 20)
#define DETAIL 400u                          /* PERF_DETAIL_WIZARD: all */

void pdh_texts_free(struct pdh_texts *texts)
{
	free(texts->at);
	texts->at = NULL;
}

/* PDH needs either a null pointer with length 0, or room. */
static bool room(struct pdh_texts *texts, DWORD chars)
{
	free(texts->at);
	texts->at = chars <= TEXTS_MAX_CHARS ? calloc((size_t)chars + 2, sizeof(*texts->at)) : NULL;
	return texts->at != NULL;
}

int pdh_categories(struct pdh_texts *out, struct err *err)
{
	DWORD chars = 0;
	PDH_STATUS status = PdhEnumObjectsW(NULL, NULL, NULL, &chars, DETAIL, TRUE);

	out->at = NULL;
	if (status == (PDH_STATUS)PDH_MORE_DATA) {
		if (!room(out, chars))
			return err_memory(err, "for the categories of counters");
		status = PdhEnumObjectsW(NULL, NULL, out->at, &chars, DETAIL, FALSE);
	}
	if (!status && out->at)
		return 0;
	pdh_texts_free(out);
	return err_set(err, ERR_UNSUPPORTED,
		       "PDH does not list its counters (0x%08lx); if its registry is damaged, "
		       "'lodctr /r' rebuilds it",
		       (unsigned long)status);
}

int pdh_items(const wchar_t *category, struct pdh_texts *counters, struct pdh_texts *instances,
	      struct err *err)
{
	DWORD ncounters = 0, ninstances = 0;
	PDH_STATUS status = PdhEnumObjectItemsW(NULL, NULL, category, NULL, &ncounters, NULL,
						&ninstances, DETAIL, 0);

	counters->at = instances->at = NULL;
	if (status == (PDH_STATUS)PDH_MORE_DATA || !status) {
		ninstances += 4096;          /* instances may be added meanwhile */
		if (!room(counters, ncounters) || !room(instances, ninstances)) {
			pdh_texts_free(counters);
			return err_memory(err, "for the names of counters");
		}
		status = PdhEnumObjectItemsW(NULL, NULL, category, counters->at, &ncounters,
					     instances->at, &ninstances, DETAIL, 0);
	}
	if (!status)
		return 0;
	pdh_texts_free(counters);
	pdh_texts_free(instances);
	return err_set(err, ERR_NOT_FOUND, "PDH returned 0x%08lx", (unsigned long)status);
}

/* Offer all texts; they are kept in `names`, which the offers borrow. true: one matches exactly. */
static bool offer(const struct pdh_texts *texts, struct nearest *closest, struct buf *names)
{
	const wchar_t *at;
	bool same = false;
	size_t i, n;

	for (at = texts->at; at && *at; at += wcslen(at) + 1) {
		wide_put(names, at);
		buf_putc(names, '\0');
	}
	for (i = 0; !names->failed && i < names->len; i += n + 1) {
		n = strlen(names->data + i);
		same |= text_same_fold(names->data + i, closest->wanted);
		nearest_offer(closest, names->data + i);
	}
	return same;
}

bool pdh_nearest(const struct pdh_name *name, struct buf *out)
{
	struct nearest categories = {.wanted = name->name.category},
		       counters = {.wanted = name->name.counter};
	struct pdh_texts all = {0}, of = {0}, instances = {0};
	struct buf names = {0};
	wchar_t *category = wide_text(name->name.category);
	bool has_category = false;

	if (category && !pdh_categories(&all, NULL) && offer(&all, &categories, &names)) {
		has_category = true;
		buf_reset(&names);
		if (!pdh_items(category, &of, &instances, NULL))
			offer(&of, &counters, &names);
	}
	nearest_put(has_category ? &counters : &categories, "'", "'", out);
	wide_free(category);
	pdh_texts_free(&all);
	pdh_texts_free(&of);
	pdh_texts_free(&instances);
	buf_free(&names);
	return has_category;
}
