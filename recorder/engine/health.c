#include "engine/health.h"

#include "base/os.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define LOSSES_WINDOW_NS (60 * NS_PER_SEC)
#define LOSSES_OF_MIN 1000u                  /* a share of fewer samples says nothing */

const char *health_word(enum health_level level)
{
	static const char *const words[] = {"ok", "degraded", "failing"};

	return words[level];
}

const char *health_kind_text(enum health_kind kind)
{
	static const char *const texts[HEALTH_KINDS] = {
		[HEALTH_STALL] = "stall",
		[HEALTH_SOURCE_ENDED] = "source",
		[HEALTH_LOSSES] = "losses",
		[HEALTH_STORE] = "store",
		[HEALTH_DISK_FULL] = "disk-full",
		[HEALTH_STORE_REPLACED] = "store-replaced",
		[HEALTH_HISTORY] = "history",
		[HEALTH_NAMES] = "names",
		[HEALTH_READERS] = "readers",
	};

	return texts[kind];
}

void health_clear(struct health *h)
{
	h->level = HEALTH_OK;
	memset(h->reasons, 0, sizeof(h->reasons));
}

void health_add(struct health *h, enum health_kind kind, enum health_level level,
		const char *text)
{
	if (level < h->reasons[kind].level)
		return;
	h->reasons[kind].level = level;
	snprintf(h->reasons[kind].text, HEALTH_TEXT_BYTES, "%s", text);
	h->level = level > h->level ? level : h->level;
}

void health_add_losses(struct health *h, uint64_t now_ns, uint64_t samples, uint64_t lost)
{
	struct health_losses *l = &h->losses;
	uint64_t nsamples, nlost;
	char text[200];
	double pct;

	if (!l->from[1].ns || now_ns - l->from[1].ns >= LOSSES_WINDOW_NS) {
		l->from[0] = l->from[1];
		l->from[1].ns = now_ns;
		l->from[1].samples = samples;
		l->from[1].lost = lost;
	}
	nsamples = samples - l->from[0].samples;
	nlost = lost - l->from[0].lost;
	pct = nlost ? 100.0 * (double)nlost / (double)(nsamples + nlost) : 0;
	if (nsamples + nlost < LOSSES_OF_MIN || pct < HEALTH_LOSSES_PCT)
		return;
	snprintf(text, sizeof(text), "%.0f %% of what was to be recorded in the last minutes is "
		 "lost: %" PRIu64 " of %" PRIu64 "; `recorder show --losses` of an incident says "
		 "where", pct, nlost, nsamples + nlost);
	health_add(h, HEALTH_LOSSES, pct >= HEALTH_FAILING_LOSSES_PCT ? HEALTH_FAILING
		   : HEALTH_DEGRADED, text);
}

bool health_next_failure(struct health *h, uint64_t now_ns, enum health_kind *kind)
{
	int k;

	for (k = 0; k < HEALTH_KINDS; k++) {
		if (h->reasons[k].level != HEALTH_FAILING ||
		    (h->told_ns[k] && now_ns - h->told_ns[k] < HEALTH_AGAIN_S * NS_PER_SEC))
			continue;
		h->told_ns[k] = now_ns;
		h->told = true;
		*kind = (enum health_kind)k;
		return true;
	}
	return false;
}

bool health_recovered(struct health *h)
{
	bool recovered = h->told && h->level != HEALTH_FAILING;

	h->told &= !recovered;
	return recovered;
}
