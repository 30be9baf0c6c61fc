#include "source/source.h"

extern const struct source_ops etw_source;    /* etw_windows.c */
extern const struct source_ops sampler_source;        /* sampler_windows.c */
extern const struct source_ops pdh_source;    /* pdh_windows.c */
extern const struct source_ops eventlog_source;       /* eventlog_windows.c */
extern const struct source_ops process_list_source;   /* process_list_windows.c */
extern const struct source_ops threads_source;       /* threads.c */

const struct source_ops *const live_sources[] = {
	&etw_source,
	&sampler_source,
	&pdh_source,
	&eventlog_source,
	&process_list_source,
	&threads_source,
	NULL,
};
