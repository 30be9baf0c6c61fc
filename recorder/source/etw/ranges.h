/*
 * Address ranges of processes over time: images, and generated code.
 *
 * A range is [start, end) in one process during a time. An address may lie in several ranges, even
 * at the same time; then the range that began last counts.
 *
 * Ranges may be added and closed at any time. Lookups use binary search, except for the latest
 * additions before etw_ranges_settle(), which are searched one by one. One thread at a time;
 * after a settle, any threads may call etw_ranges_find() together until something is added.
 */
#pragma once

#include "base/slots.h"
#include "base/table.h"

#include <stdbool.h>

#define ETW_RANGES_MAX (1u << 22)
#define ETW_RANGE_NONE SLOTS_NONE
#define ETW_EVER INT64_MAX                        /* "until" of a range that has not ended */
#define ETW_ALWAYS INT64_MIN                      /* "from" of a range older than the trace */
#define ETW_LAYERS_MAX 64u                        /* ranges with one address, at any time */

struct etw_range {
	uint64_t start, end;
	int64_t from, until;                 /* ticks, both included */
	uint32_t pid;
	uint32_t value;                      /* the owner's */
	uint32_t older;                      /* the previous range of this process and start */
	uint32_t layer;                      /* see etw_range_layer() */
};

struct etw_ranges {
	struct slots items;
	struct slots spaces;                 /* of processes */
	struct table by_start, by_pid;
	bool settled;                        /* additions are sorted as they come */
	uint64_t refused;
};

int etw_ranges_init(struct etw_ranges *r);        /* 0 or ERR_MEMORY */
void etw_ranges_free(struct etw_ranges *r);
size_t etw_ranges_bytes(const struct etw_ranges *r);

/* Add a range. Returns its number; ETW_RANGE_NONE at a ceiling, without memory, or if empty. */
uint32_t etw_ranges_add(struct etw_ranges *r, const struct etw_range *range);
struct etw_range *etw_range(const struct etw_ranges *r, uint32_t number);
/* The range last added with this start; follow .older to earlier ones. */
uint32_t etw_ranges_at(const struct etw_ranges *r, uint32_t pid, uint64_t start);
/* End all open ranges of a process. */
void etw_ranges_close(struct etw_ranges *r, uint32_t pid, int64_t ticks);

/*
 * The range's layer: a small number that no overlapping range of its process has, at any time;
 * ETW_LAYERS_MAX if there are too many. Assigned once, here or by etw_ranges_settle().
 */
uint32_t etw_range_layer(struct etw_ranges *r, uint32_t number);

/* Sort the additions, and assign layers. */
void etw_ranges_settle(struct etw_ranges *r);

/*
 * The range with the address at that time, or ETW_RANGE_NONE.
 *
 * from, until  narrowed to the time in which the answer is the same
 */
uint32_t etw_ranges_find(const struct etw_ranges *r, uint32_t pid, uint64_t address, int64_t ticks,
			 int64_t *from, int64_t *until);
/* Visit all ranges by process; ranges with one start in the order of their addition. */
typedef void etw_range_fn(void *ctx, const struct etw_range *range);
void etw_ranges_each(const struct etw_ranges *r, etw_range_fn *fn, void *ctx);
/* The range with the address in this layer. */
uint32_t etw_ranges_layer(const struct etw_ranges *r, uint32_t pid, uint64_t address,
			  uint32_t layer);
