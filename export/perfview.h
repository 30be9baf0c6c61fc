/*
 * What the three PerfView formats share. Element order, attributes and what the viewer's reader
 * does with them: exports-and-store.md, section 2.5.
 */
#ifndef EXPORT_PERFVIEW_H
#define EXPORT_PERFVIEW_H

#include "export/export_tree.h"

/* Names as the viewer wants them, escaped for XML. */
extern const struct stack_tree_style perfview_style;

/* The compact form; the zip holds the same bytes. */
int perfview_xml_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err);

/* The beginning of either XML form, up to and with <StackSource>. */
void perfview_put_head(struct out *out);

/* Both lists that samples refer to; line has room for the longest line. */
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
 * What a sample weighs, in a unit that the reader's 32-bit floats hold: times in ms, bytes in
 * KB once a sample is over 2^24, all else as it is. The divisor is found once for a file.
 */
uint64_t perfview_divisor(const struct incident *in, const struct export_options *opt);

/* Append the weight: an integer where it is one, else 3 decimals. */
void perfview_put_metric(struct buf *out, const struct incident *in,
			 const struct incident_sample *s, uint64_t divisor);

#endif
