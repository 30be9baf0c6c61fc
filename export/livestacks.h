/* Folded stacks as LiveStacks writes them: exports-and-store.md, section 2.1, `--offsets`. */
#pragma once

#include "export/export.h"

/* "NAME (PID);module!function+0xOFF 42", the heaviest first, without threads. */
int livestacks_write_folded(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err);
