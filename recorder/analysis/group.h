/*
 * Grouping, folding and filtering an incident's stacks by the names of their frames, as PerfView's
 * stack viewer does it, with its patterns (name_pattern.h), ';' between them.
 *
 *	group    PATTERN->NAME   frames that match are one frame NAME; calls within it vanish
 *	         PATTERN=>NAME   the same, but the frame through which a group is entered keeps its
 *	                         name: "NAME <<module!function>>"
 *	         PATTERN         the group's name is what matched; an empty NAME: not grouped after all
 *	         a name is matched by each pattern in turn, and by those that follow as its group's
 *	         name; => ends that. "[comment]" in front is left out.
 *	fold     frames that match vanish; their cost goes to the caller
 *	include  only samples whose stack, process or thread matches every one of these
 *	exclude  no samples whose stack, process or thread matches any of these
 *
 * Fold, include and exclude look at names after grouping. Frames without a function are grouped by
 * module, and a function that calls itself is one frame. Grouping and folding never change totals.
 * Processes are called "Process NAME (PID)", threads "Thread (TID) NAME".
 * Source: PerfView's guide, "Grouping and Filtering", and its FilterStacks.cs.
 */
#ifndef GROUP_H
#define GROUP_H

#include "model/incident.h"

#define GROUP_PATTERNS_MAX 64u       /* of each kind */

struct group_options {
	const char *group, *fold, *include, *exclude;   /* NULL or "" = none */
	bool *unmatched;                     /* NULL, or set: whether group was given and matched no frame */
};

/*
 * In place: stacks, samples, events, head.samples and head.quality follow; tables keep their entries.
 * returns  0; ERR_USAGE with the option and the column; ERR_MEMORY
 */
int group_incident(struct incident *in, const struct group_options *o, struct err *err);

/*
 * Patterns by name, for --group: "module", "module-entry", "class", "class-entry", "just-my-code", also
 * in brackets, "[module]". text itself when it is none of these.
 */
const char *group_preset(const char *text);
/* "module, module-entry, ..." */
const char *group_presets(void);
/*
 * Why a group's text that matches nothing does so, if it was meant to be one of these: append "; presets
 * are module, ...; nearest is 'module'". Nothing for a pattern or a preset.
 */
void group_put_presets(const char *text, struct buf *out);

#endif
