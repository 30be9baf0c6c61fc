/*
 * Reads PerfView XML the way PerfView does: an element named Frame, Stack or Sample counts wherever
 * it stands, attributes in any order, a frame's text must follow its start tag, a sample without
 * StackID has its stack as lines of text, leaf first. What PerfView's reader throws at, or takes
 * for something else without a word, fails the test.
 */
#pragma once

#include "base/buf.h"

struct perfview_totals {
	uint32_t frames, stacks, samples;
	double metric, last_time_ms;
};

/*
 * Read a whole file. Each sample's stack is appended to stacks (when not NULL) as a line, root
 * first, joined by " / ".
 */
void perfview_read(const char *xml, struct perfview_totals *out, struct buf *stacks);
