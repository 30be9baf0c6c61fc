#include "source/source.h"

/* Live capture comes with the Windows source; until then there is nothing to list. */
const struct source_ops *const live_sources[] = {
	NULL,
};
