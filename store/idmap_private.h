/* A map from one integer to another, for one thread at a time. {0} is empty and valid. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct idmap {
	struct idslot {
		uint64_t key;
		int64_t value;
	} * slots;                           /* open addressing, at most half full */
	uint32_t nslots, used;
};

bool idmap_get(const struct idmap *m, uint64_t key, int64_t *value);
/* Add or replace; any value but INT64_MIN. Returns 0 or ERR_MEMORY, without a sentence. */
int idmap_set(struct idmap *m, uint64_t key, int64_t value);
void idmap_clear(struct idmap *m);           /* keeps its memory */
void idmap_free(struct idmap *m);
