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

/* Room for texts, or NULL. PDH needs either a null pointer with length 0, or room. */
static wchar_t *texts_new(DWORD chars)
{
	return chars <= TEXTS_MAX_CHARS ? calloc((size_t)chars + 2, sizeof(wchar_t)) : NULL;
}

int pdh_categories(wchar_t **out, struct err *err)
{
	DWORD chars = 0;
	PDH_STATUS status = PdhEnumObjectsW(NULL, NULL, NULL, &chars, DETAIL, TRUE);

	*out = NULL;
	if (status == (PDH_STATUS)PDH_MORE_DATA) {
		*out = texts_new(chars);
		if (!*out)
			return err_memory(err, "for the categories of counters");
		status = PdhEnumObjectsW(NULL, NULL, *out, &chars, DETAIL, FALSE);
	}
	if (!status && *out)
		return 0;
	free(*out);
	*out = NULL;
	return err_set(err, ERR_UNSUPPORTED,
		       "PDH does not list its counters (0x%08lx); if its registry is damaged, "
		       "'lodctr /r' rebuilds it", (unsigned long)status);
}

int pdh_items(const wchar_t *category, wchar_t **counters, wchar_t **instances, struct err *err)
{
	DWORD ncounters = 0, ninstances = 0;
	PDH_STATUS status = PdhEnumObjectItemsW(NULL, NULL, category, NULL, &ncounters, NULL,
						&ninstances, DETAIL, 0);
	int rc = 0;

	*counters = *instances = NULL;
	if (status == (PDH_STATUS)PDH_MORE_DATA || !status) {
		ninstances += 4096;          /* instances may be added meanwhile */
		*counters = texts_new(ncounters);
		*instances = texts_new(ninstances);
		if (*counters && *instances)
			status = PdhEnumObjectItemsW(NULL, NULL, category, *counters, &ncounters,
						     *instances, &ninstances, DETAIL, 0);
		else
			rc = err_memory(err, "for the names of counters");
	}
	if (!rc && status)
		rc = err_set(err, ERR_NOT_FOUND, "PDH returned 0x%08lx", (unsigned long)status);
	if (rc) {
		free(*counters);
		free(*instances);
		*counters = *instances = NULL;
	}
	return rc;
}

/* Offer all texts; they are kept in `names`, which the offers borrow. true: one matches exactly. */
static bool offer_texts(const wchar_t *texts, struct nearest *closest, struct buf *names)
{
	bool same = false;
	size_t i, n;

	for (; *texts; texts += wcslen(texts) + 1) {
		wide_put(names, texts);
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
	wchar_t *category = wide_text(name->name.category);
	wchar_t *all = NULL, *of = NULL, *instances = NULL;
	struct buf names = {0};
	bool has_category = false;

	if (category && !pdh_categories(&all, NULL) && offer_texts(all, &categories, &names)) {
		has_category = true;
		buf_reset(&names);
		if (!pdh_items(category, &of, &instances, NULL))
			offer_texts(of, &counters, &names);
	}
	nearest_put(has_category ? &counters : &categories, "'", "'", out);
	wide_free(category);
	free(all);
	free(of);
	free(instances);
	buf_free(&names);
	return has_category;
}
