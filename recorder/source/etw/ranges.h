/*
 * Address ranges of processes over time: images, and code that was generated.
 *
 * A range is [start, end) of one process from one moment to another; an address may belong to several
 * at different times. Where two hold it at one moment, the one that began last is meant.
 *
 * Ranges may be added and closed at any time; found ranges are looked for by binary search, the
 * latest additions one by one until etw_ranges_settle(). One thread at a time; after a settle any
 * threads may call etw_ranges_find() together, as long as nobody adds. Memory: one item each.
 */
#ifndef SOURCE_ETW_RANGES_H
#define SOURCE_ETW_RANGES_H

#include "base/slots.h"
#include "base/table.h"

#include <stdbool.h>

#define ETW_RANGES_MAX (1u << 22)
#define ETW_RANGE_NONE SLOTS_NONE
#define ETW_EVER INT64_MAX                        /* "until": it has not ended */
#define ETW_ALWAYS INT64_MIN                      /* "from": since before the trace */
#define ETW_LAYERS_MAX 64u                        /* ranges that hold one address, over all time */

struct etw_range {
	uint64_t start, end;
	int64_t from, until;                 /* ticks, both included */
	uint32_t pid;
	uint32_t value;                      /* the owner's */
	uint32_t older;                      /* the one before at this start in this process */
	uint32_t layer;                      /* see etw_range_layer() */
};

struct etw_ranges {
	struct slots items;
	struct slots spaces;                 /* of processes */
	struct table by_start, by_pid;
	bool settled;                        /* from then on additions are sorted as they come */
	uint64_t refused;
};

int etw_ranges_init(struct etw_ranges *r);        /* 0 or ERR_MEMORY */
void etw_ranges_free(struct etw_ranges *r);
size_t etw_ranges_bytes(const struct etw_ranges *r);

/* Its number, or ETW_RANGE_NONE at a ceiling, without memory, or when it is empty. */
uint32_t etw_ranges_add(struct etw_ranges *r, const struct etw_range *range);
struct etw_range *etw_range(const struct etw_ranges *r, uint32_t number);
/* The last one added at this start; follow .older for those before. */
uint32_t etw_ranges_at(const struct etw_ranges *r, uint32_t pid, uint64_t start);
/* Everything of a process that has not ended ends now. */
void etw_ranges_close(struct etw_ranges *r, uint32_t pid, int64_t ticks);

/*
 * A small number that tells it from all others of its process which ever hold one of its addresses;
 * ETW_LAYERS_MAX when there are too many. Given once, here or by etw_ranges_settle().
 */
uint32_t etw_range_layer(struct etw_ranges *r, uint32_t number);

/* Sort what was added, and give layers. */
void etw_ranges_settle(struct etw_ranges *r);

/*
 * The range that holds the address at that moment, or ETW_RANGE_NONE.
 *
 * from, until  narrowed to the time for which the answer is the same
 */
uint32_t etw_ranges_find(const struct etw_ranges *r, uint32_t pid, uint64_t address, int64_t ticks,
			 int64_t *from, int64_t *until);
/* Each range, of one process after the other, those of one start in the order in which they came. */
typedef void etw_range_fn(void *ctx, const struct etw_range *range);
void etw_ranges_each(const struct etw_ranges *r, etw_range_fn *fn, void *ctx);
/* The range that holds the address in this layer. */
uint32_t etw_ranges_layer(const struct etw_ranges *r, uint32_t pid, uint64_t address, uint32_t layer);

#endif
