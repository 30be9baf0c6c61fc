/* Taking callers from a thread's last complete stack. */
#include "unwind/unwind.h"

#include <string.h>

void unwind_remember(struct unwind_memory *memory, const struct unwind_pair *pairs, uint32_t n,
		     bool remote)
{
	uint32_t skip = n > UNWIND_MEMORY_PAIRS ? n - UNWIND_MEMORY_PAIRS : 0;

	memory->npairs = n - skip;
	memory->remote = remote;
	memcpy(memory->pairs, pairs + skip, (n - skip) * sizeof(*pairs));
}

const struct unwind_pair *unwind_stitch(const struct unwind_memory *memory,
					const struct unwind_pair *pair, uint64_t cfa, uint32_t *n)
{
	uint32_t i;

	for (i = 0; i < memory->npairs; i++) {
		const struct unwind_pair *p = &memory->pairs[i];

		if (p->cfa != pair->cfa || p->ip != pair->ip || p->interrupted != pair->interrupted)
			continue;
		/* Either the same frame ends at the same place, or the pair is equal by chance. */
		if (cfa && i + 1 < memory->npairs && p[1].cfa != cfa)
			continue;
		*n = memory->npairs - i - 1;
		return p + 1;
	}
	return NULL;
}
