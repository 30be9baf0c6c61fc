#include "source/source.h"

extern const struct source_ops etw_source;    /* etw_windows.c */

const struct source_ops *const live_sources[] = {
	&etw_source,
	NULL,
};
