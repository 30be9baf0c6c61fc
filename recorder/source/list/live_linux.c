#include "source/source.h"

extern const struct source_ops perf_source;   /* perf_linux.c */
extern const struct source_ops proc_source;   /* proc_linux.c */
extern const struct source_ops scrape_source; /* scrape_linux.c */
extern const struct source_ops log_source;    /* log_linux.c */
extern const struct source_ops exit_source;   /* exit_linux.c */
extern const struct source_ops jvm_source;    /* jvm_linux.c */
extern const struct source_ops dotnet_source; /* dotnet_linux.c */
extern const struct source_ops threads_source;       /* threads.c */

const struct source_ops *const live_sources[] = {
	&perf_source,
	&proc_source,
	&scrape_source,
	&log_source,
	&exit_source,
	&jvm_source,
	&dotnet_source,
	&threads_source,
	NULL,
};
