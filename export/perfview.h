/*
 * Parts of the PerfView formats. The viewer reads XML element by element, so their order matters:
 * frames, then stacks, then the samples that refer to them, then its settings.
 */
#pragma once

#include "export/diff.h"

/* Names as the viewer wants them, escaped for XML. */
extern const struct stack_tree_style perfview_style;

/* A file that is being written. */
struct perfview {
	const struct incident *in;
	const struct diff *diff;             /* NULL = one incident */
	struct stack_tree tree;
	uint64_t divisor;                    /* of weights */
	struct rounding {
		double sum;                  /* of all weights until now, in thousandths */
		int64_t printed;
	} base, test;                        /* of a diff */
	uint32_t nput;                       /* samples */
	struct buf text;                     /* on its way to the file */
};

/* What makes one format different from the others. */
struct perfview_form {
	const char *what;                    /* for errors: "the XML" */
	bool json;
	/* What XML has before its samples; NULL = nothing. */
	void (*put_lists)(struct perfview *w, struct out *out);
	/* Append a sample, which ends in a node, to w->text. */
	void (*put_sample)(struct perfview *w, const struct incident_sample *s, uint32_t node);
};

/* Write an incident, or a diff (d, else NULL), whose incident is `in`. */
int perfview_write(const struct perfview_form *form, const struct incident *in,
		   const struct diff *d, const struct export_options *opt, struct out *out,
		   struct err *err);

/* The compact form; the zip holds the same bytes. */
int perfview_xml_write(const struct incident *in, const struct export_options *opt,
		       struct out *out, struct err *err);

/* Append a sample's time in ms from the start of the window: "12.345". */
void perfview_put_time(struct perfview *w, const struct incident_sample *s);

/* Append a sample's weight, divided: an integer if it is one, else with 3 decimals. */
void perfview_put_metric(struct perfview *w, const struct incident_sample *s);
