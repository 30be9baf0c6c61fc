/* One reading of a metric that a service tells by HTTP: what counter_read_once() is for others. */
#pragma once

#include "source/source.h"

/* Waits a second where the value is an increase a second. ERR_USAGE, ERR_UNSUPPORTED. */
int scrape_read_once(const char *name, struct counter_value *out, struct err *err);
