/* Folded stacks as LiveStacks writes them: exports-and-store.md, section 2.1, `--offsets` variant. */
#ifndef EXPORT_LIVESTACKS_H
#define EXPORT_LIVESTACKS_H

#include "export/export.h"

/* "NAME (PID);module!function+0xOFF 42", most first, no thread frame. */
int livestacks_write_folded(const struct incident *in, const struct export_options *opt,
			    struct out *out, struct err *err);

#endif
