#include "source/source.h"

const struct source_ops *const file_sources[] = {&etl_source, NULL};
