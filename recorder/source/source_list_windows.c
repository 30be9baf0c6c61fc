#include "source/source.h"

extern const struct source_ops etw_source;    /* etw_windows.c */
extern const struct source_ops pdh_source;    /* pdh_windows.c */

const struct source_ops *const live_sources[] = {
	&etw_source,
	&pdh_source,
	NULL,
};
