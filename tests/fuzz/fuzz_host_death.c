/* Any bytes as a record of the kernel's log, a file of control groups, and wtmp. */
#include "source/host/death.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char path[DEATH_KILLS_BYTES], *text = malloc(n + 1);
	uint8_t *copy = malloc(n ? n : 1);
	char why[DEATH_WHY_BYTES];
	struct buf said = {0};
	struct death_boots boots;
	uint64_t number;

	if (!text || !copy)
		abort();
	memcpy(copy, data, n);
	memcpy(text, data, n);
	text[n] = '\0';
	death_parse_events(text, &number);
	if (death_parse_kills(text, path, &number) && !memchr(path, '\0', sizeof(path)))
		abort();
	death_parse_kmsg((const char *)copy, n, 4711, &number);
	if (death_parse_pstore(text, why) && !memchr(why, '\0', sizeof(why)))
		abort();
	death_put_exit(text, &said);
	buf_free(&said);
	death_parse_wtmp(copy, n, 1795230600, &boots);
	free(text);
	free(copy);
	return 0;
}
