/*
 * Groups, folds and filters an incident's stacks by the names of their frames, as PerfView's stack
 * viewer does. Patterns (name_pattern.h) are separated by ';'.
 *
 *	group    PATTERN->NAME   frames that match are one frame NAME; calls within it vanish
 *	         PATTERN=>NAME   the same, but the frame through which a group is entered keeps its
 *	                         name: "NAME <<module!function>>"
 *	         PATTERN         the group is named after the text that matched
 *	         PATTERN->        with an empty NAME: frames that match stay as they are
 *	         Patterns apply in turn, each to the name that the one before it gave; => is
 *	         the last to apply. A "[comment]" in front is ignored.
 *	fold     frames that match vanish; their cost goes to the caller
 *	include  keep samples whose stack, process or thread matches at least one of these
 *	exclude  drop samples whose stack, process or thread matches any of these
 *
 * A pattern of a group that has a / or \ also matches "PATH!function", the path being the module's:
 * ^/usr/lib/->OS, \system32\->OS. Fold, include and exclude look at names after grouping. Frames
 * without a function are grouped by module, and a function that calls itself directly becomes one
 * frame. Grouping and folding never change totals. Processes are called "Process NAME (PID)",
 * threads "Thread (TID) NAME".
 * Source: PerfView's guide, "Grouping and Filtering", and its FilterStacks.cs.
 */
#pragma once

#include "model/incident.h"

#define GROUP_PATTERNS_MAX 64u       /* of each kind */

struct group_options {
	const char *group, *fold, *include, *exclude;   /* NULL or "" = none */
	bool *unmatched;                     /* out: no frame matched the group; or NULL */
};

/*
 * Works in place: stacks, samples, events, head.samples and head.quality change, tables keep their
 * entries.
 *
 * returns  0; ERR_USAGE with the option and the column; ERR_MEMORY
 */
int group_incident(struct incident *in, const struct group_options *o, struct err *err);

/*
 * The patterns of a preset: "module", "module-entry", "class", "class-entry", "just-my-code", with
 * or without brackets, as "[module]". Returns text itself when it names no preset.
 */
const char *group_preset(const char *text);
/*
 * For a group that matched nothing because a preset was misspelled: append "; presets are module,
 * ...; near is 'module'". Append nothing when text is a pattern or a preset.
 */
void group_put_presets(const char *text, struct buf *out);
