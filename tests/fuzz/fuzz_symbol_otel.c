/* Any bytes as what a program publishes about itself, and as where it lives. */
#include "model/home.h"
#include "symbol/otel.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void check_home(const char *text)
{
	struct home home;
	unsigned key;

	home_read(text, &home);
	for (key = 0; key < HOME_KEYS; key++) {
		if (strlen(home.of[key]) >= HOME_PART_BYTES)
			abort();
		/* What is read from a path is found in it. */
		if (*home.of[key] && !home_is(text, key, home.of[key]))
			abort();
	}
	home_is(text, HOME_UNIT, text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char service[HOME_PART_BYTES] = "", *text = malloc(n + 1);
	struct buf cgroup = {.max_bytes = HOME_TEXT_MAX};
	uint64_t at;
	size_t bytes;

	if (!text)
		return 0;
	memcpy(text, data, n);
	text[n] = '\0';
	if (n >= OTEL_HEADER_BYTES && otel_header(data, &at, &bytes) && (!at || !bytes))
		abort();
	if (otel_service(data, n, service, sizeof(service)) &&
	    (!*service || strpbrk(service, "\n\r\t")))
		abort();
	check_home(text);
	home_put_cgroup(text, &cgroup);
	check_home(buf_text(&cgroup));
	buf_free(&cgroup);
	free(text);
	return 0;
}
