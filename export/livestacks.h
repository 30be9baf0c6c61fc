/* Folded stacks as LiveStacks writes them. */
#pragma once

#include "export/export.h"

/* "NAME (PID);module!function+0xOFF 42", the heaviest first, without threads. */
int livestacks_write_folded(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err);
