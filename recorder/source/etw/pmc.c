#include "source/etw/pmc.h"

#include "base/json.h"
#include "base/nearest.h"
#include "base/text.h"
#include "source/counter_name.h"
#include "source/source.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAME_AT 24u
#define USUAL_INTERVAL 100003u
#define LISTED_MAX 128u

static uint32_t u32_at(const uint8_t *at)
{
	return (uint32_t)at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 |
	       (uint32_t)at[3] << 24;
}

bool etw_pmc_next(const uint8_t *list, size_t n, size_t *at, struct etw_pmc *out)
{
	const uint8_t *entry = list + *at;
	size_t i, end = NAME_AT, left = *at < n ? n - *at : 0;
	uint32_t next;

	if (left < NAME_AT + 2)
		return false;
	next = u32_at(entry);
	*out = (struct etw_pmc){.id = u32_at(entry + 4), .interval = u32_at(entry + 8),
				.interval_max = u32_at(entry + 12)};
	/* Names are ASCII; another letter becomes '?'. */
	for (i = 0; i < sizeof(out->name) - 1 && end + 1 < left; i++, end += 2) {
		if (!entry[end] && !entry[end + 1])
			break;
		out->name[i] = isgraph(entry[end]) && !entry[end + 1] ? (char)entry[end] : '?';
	}
	*at = next && next < left ? *at + next : n;
	return true;
}

static int unknown(const char *name, const uint8_t *list, size_t n, struct err *err)
{
	struct etw_pmc here[LISTED_MAX];
	struct nearest nearest = {.wanted = name};
	struct buf near = {0};
	uint32_t i;
	size_t at = 0;

	for (i = 0; i < LISTED_MAX && etw_pmc_next(list, n, &at, &here[i]); i++)
		if (here[i].id != ETW_PMC_TIMER)
			nearest_offer(&nearest, here[i].name);
	if (nearest.n)
		buf_puts(&near, "; the nearest are ");
	nearest_put(&nearest, "", "", &near);
	err_set(err, ERR_USAGE,
		"--cpu-counters: this machine has no counter '%.60s'%s; 'recorder events "
		CPU_COUNTER_PROVIDER "' lists all", name, buf_text(&near));
	buf_free(&near);
	return ERR_USAGE;
}

static int read_interval(const char *text, const char *part, struct etw_pmc *p, struct err *err)
{
	uint32_t least = p->interval, most = p->interval_max;
	unsigned long long interval = USUAL_INTERVAL;
	char *end = "";

	if (!text) {
		interval = interval < least ? least : interval > most ? most : interval;
	} else {
		interval = isdigit((unsigned char)*text) ? strtoull(text, &end, 10) : 0;
		if (*end || !interval || interval < least || interval > most)
			return err_set(err, ERR_USAGE,
				       "--cpu-counters: '%.60s': the period of %s is a number "
				       "from %" PRIu32 " to %" PRIu32 ": one of so many is kept",
				       part, p->name, least, most);
	}
	p->interval = (uint32_t)interval;
	return 0;
}

static int read_one(const char *part, const uint8_t *list, size_t n, struct etw_pmc *out,
		    struct err *err)
{
	size_t at = 0, length = strcspn(part, "@:");
	char name[ETW_PMC_NAME_BYTES];

	if (!length || length >= sizeof(name))
		return err_set(err, ERR_USAGE,
			       "--cpu-counters: '%.60s': write NAME or NAME@PERIOD, as in "
			       "BranchMispredictions@100000", part);
	snprintf(name, sizeof(name), "%.*s", (int)length, part);
	while (etw_pmc_next(list, n, &at, out))
		if (out->id != ETW_PMC_TIMER && text_same_fold(out->name, name))
			return read_interval(part[length] ? part + length + 1 : NULL, part, out,
					     err);
	return unknown(name, list, n, err);
}

int etw_pmcs_read(const char *text, const uint8_t *list, size_t n, struct etw_pmcs *out,
		  struct err *err)
{
	struct etw_pmc any;
	char part[2 * ETW_PMC_NAME_BYTES];
	size_t at = 0, length;
	bool counts = false;
	int rc = 0;

	*out = (struct etw_pmcs){.n = 0};
	while (etw_pmc_next(list, n, &at, &any))
		counts |= any.id != ETW_PMC_TIMER;
	if (!counts)
		return err_set(err, ERR_UNSUPPORTED,
			       "--cpu-counters: Windows counts nothing on this machine: most "
			       "virtual machines hide the counters of the processor");
	for (; !rc && *text; text += length + (text[length] == ',')) {
		length = strcspn(text, ",");
		if (out->n == ETW_PMC_MAX)
			return err_set(err, ERR_LIMIT, "--cpu-counters: over %u counters",
				       ETW_PMC_MAX);
		snprintf(part, sizeof(part), "%.*s", (int)length, text);
		rc = read_one(part, list, n, &out->all[out->n++], err);
	}
	return rc;
}

const struct etw_pmc *etw_pmcs_find(const struct etw_pmcs *counters, uint32_t id)
{
	uint32_t i;

	for (i = 0; i < counters->n; i++)
		if (counters->all[i].id == id)
			return &counters->all[i];
	return NULL;
}

void etw_pmc_list(const char *pattern, bool json, const uint8_t *list, size_t n, struct buf *out)
{
	char full[sizeof(CPU_COUNTER_PROVIDER) + ETW_PMC_NAME_BYTES];
	struct etw_pmc p;
	size_t at = 0;

	while (etw_pmc_next(list, n, &at, &p)) {
		struct json j = {.out = out};

		snprintf(full, sizeof(full), CPU_COUNTER_PROVIDER "/%s", p.name);
		if (p.id == ETW_PMC_TIMER || !name_matches(pattern, full))
			continue;
		if (json) {
			json_open(&j, '{');
			json_key_str(&j, "provider", CPU_COUNTER_PROVIDER);
			json_key_str(&j, "name", p.name);
			json_key_uint(&j, "period_min", p.interval);
			json_key_uint(&j, "period_max", p.interval_max);
			json_close(&j, '}');
		} else {
			buf_printf(out, "%s  period %" PRIu32 " to %" PRIu32, full, p.interval,
				   p.interval_max);
		}
		buf_putc(out, '\n');
	}
}
