/* Any bytes as the body of an alert, and as a duration. */
#include "http/alert.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const uint64_t now_ns = UINT64_C(1795230600000000000);
	struct alerts *all = malloc(sizeof(*all));
	struct buf body = {0};
	uint64_t ns = 0;
	uint32_t i;

	if (!all)
		abort();
	buf_put(&body, data, n);
	if (!alerts_parse(&body, now_ns, all, NULL)) {
		if (all->n > ALERTS_MAX)
			abort();
		for (i = 0; i < all->n; i++) {
			const struct alert *a = &all->items[i];

			if (strlen(a->name) >= sizeof(a->name) || !strstr(a->key, " since ") ||
			    strlen(a->summary) >= sizeof(a->summary) ||
			    strlen(a->labels) >= sizeof(a->labels) || !a->starts_ns)
				abort();
		}
	}
	if (alert_duration(buf_text(&body), &ns) && ns > ALERT_FOR_MAX_NS)
		abort();
	buf_free(&body);
	free(all);
	return 0;
}
