/*
 * Parts of the three PerfView formats. Element order, attributes, and what the viewer does with
 * them: exports-and-store.md, section 2.5.
 */
#pragma once

#include "export/export_tree.h"

/* Names as the viewer wants them, escaped for XML. */
extern const struct stack_tree_style perfview_style;

/* The compact form; the zip holds the same bytes. */
int perfview_xml_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err);

/* The beginning of either XML form, through <StackSource>. */
void perfview_put_head(struct out *out);

/* The frames and stacks that samples refer to; line has room for PERFVIEW_LINE_MAX bytes. */
#define PERFVIEW_LINE_MAX ((size_t)INCIDENT_TEXT_MAX * 8)
void perfview_put_tree(const struct stack_tree *t, struct buf *line, struct out *out);

/* </StackSource>, the viewer's settings with our notes in them, and the end of the file. */
int perfview_put_end(struct out *out, const struct incident *in, const struct export_options *opt,
		     struct err *err);

/* The same with other notes; is_time: the metric is milliseconds. */
int perfview_put_end_with(struct out *out, const struct buf *notes, bool is_time, struct err *err);

/* Append ` Time="12.345"`: ms from the start of the window. */
void perfview_put_time(struct buf *out, const struct incident *in,
		       const struct incident_sample *s);

/*
 * What to divide weights by, so that the reader's 32-bit floats hold them: times are in ms, bytes
 * in KB when some sample is over 2^24, everything else is not divided. The same for a whole file.
 */
uint64_t perfview_divisor(const struct incident *in, const struct export_options *opt);

/* Append the weight: an integer if it is one, else with 3 decimals. */
void perfview_put_metric(struct buf *out, const struct incident *in,
			 const struct incident_sample *s, uint64_t divisor);
