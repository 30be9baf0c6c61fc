/*
 * Any text as a perf map: each start address of a line has a name, ranges are as long as they
 * claim, and nothing is found behind the last function.
 */
#include "symbol/perfmap.h"

#include "model/frame.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_at(const struct perfmap *map, uint64_t address)
{
	struct perfmap_function f;

	if (!perfmap_find(map, address, &f))
		return;
	if (address < f.start || address - f.start >= f.bytes || !f.name[0] ||
	    strlen(f.name) > FUNCTION_NAME_MAX)
		__builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf text = {0}, copy = {0};
	struct perfmap *map = NULL;
	char *at, *end;

	buf_put(&text, data, size);
	buf_put(&copy, data, size);
	if (perfmap_parse(&text, &map, NULL))
		__builtin_trap();
	for (at = copy.data; at && (end = strchr(at, '\n')) != NULL; at = end + 1) {
		uint64_t start = strtoull(at, NULL, 16);

		check_at(map, start);
		check_at(map, start - 1);
		check_at(map, start + 1);
	}
	if (!perfmap_is_sound(map) || perfmap_bytes(map) < perfmap_count(map))
		__builtin_trap();
	check_at(map, 0);
	check_at(map, UINT64_MAX);
	perfmap_free(map);
	buf_free(&text);
	buf_free(&copy);
	return 0;
}
