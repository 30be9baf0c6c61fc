/*
 * Texts that a rule reads from a program's memory where its probe is hit: ";Text=URL:+8(Arg4)".
 *
 *	NAME:+OFFSET(ArgN)           the text that stands there
 *	NAME:+OFFSET(+OFFSET(ArgN))  the same, behind a pointer that stands at the inner place
 *	                             (as in the kernel: Documentation/trace/uprobetracer)
 *
 * In a Go program a pointer and a length stand there (a string), in all others the text itself, up
 * to its NUL. The memory is read some milliseconds after the hit, on a busy machine tenths of a
 * second. A rule that fires for what lasts 500 ms has it when it was read within them, because it
 * was still there; others when it was read within UPROBE_TEXT_LATE_NS. Several are separated by
 * commas.
 */
#pragma once

#include "source/probe/uprobe_linux.h"

#define UPROBE_TEXT_LATE_NS (50 * 1000000ULL)

struct proc_reader;

/*
 * Add the texts of a rule to probe->texts; "" = none. lasting_ms: how long at least lasts what
 * they are told of, 0 = unknown; the least of all rules counts. ERR_USAGE with the form.
 */
int uprobe_texts_parse(struct uprobe *probe, const char *texts, uint32_t lasting_ms,
		       struct err *err);

/*
 * Append them to the n fields; what cannot be read, or is read too late, is left out.
 *
 * bytes    where the fields' texts live
 * returns  how many fields there are
 */
unsigned uprobe_texts_read(const struct uprobe *probe, struct proc_reader *reader,
			   const struct perf_record *r, uint64_t now_ns,
			   char bytes[UPROBE_TEXTS_MAX][UPROBE_TEXT_BYTES],
			   struct event_field *fields, unsigned n);
