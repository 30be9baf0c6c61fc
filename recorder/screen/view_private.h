/* What the files of the view share. */
#pragma once

#include "screen/view.h"

#include "base/buf.h"
#include "model/stack_tree.h"

enum pane { PANE_PROCESSES, PANE_FUNCTIONS, PANE_STACK, PANES };

struct view_row {
	const char *text;                    /* the tree's; "" = all processes */
	uint64_t self, inclusive;            /* weights; of a process both are the same */
	uint32_t node;                       /* of a stack: its leaf */
};

struct view_list {
	struct view_row *rows;
	uint32_t n, room;
	uint32_t at, top;                    /* the row at the cursor; the first drawn */
	struct buf filter;                   /* only rows with this text */
};

#define VIEW_LOADS 60u                       /* refreshes whose load is shown */

enum view_asks { ASKS_NOTHING, ASKS_FILTER, ASKS_REASON };

struct view {
	struct incident in;
	struct stack_tree tree;              /* processes, below them frames; the root is node 0 */
	uint64_t *own, *all;                 /* of each node: its own weight; with those below */
	uint32_t *process_of;                /* of each node: the one of its process */
	uint64_t *self, *inclusive;          /* of each text: scratch */
	bool loaded;

	uint64_t span_ns, lost, samples;
	uint64_t whole;                      /* weight of all samples */
	uint64_t stack_weight;               /* of all stacks in the stack pane */
	uint64_t scope_weight;               /* of the process that is chosen; of all */
	unsigned ncpus;
	struct buf clock, from;
	double busy;                         /* CPUs, on average */
	double loads[VIEW_LOADS];            /* the same of each refresh; the newest last */
	unsigned nloads;

	enum stream stream;
	struct view_list lists[PANES];
	struct buf chosen[PANES];            /* text of the row at the cursor: "" = the first */
	enum pane focus;
	bool by_inclusive, by_name, paused, kernel, zoomed, helps;
	unsigned span;                       /* number in view_spans */
	uint32_t scroll;                     /* first frame of the stack that is drawn */
	unsigned page_rows[PANES];           /* rows that were drawn last */

	enum view_asks asks;
	struct buf answer, reason;
	struct buf said;
	bool said_bad;
};

/* Make the rows again, of a window or of another stream: 0 or ERR_MEMORY. */
int view_count_window(struct view *v);
/* The same after another choice, order or filter. */
int view_count(struct view *v);
void view_drop_window(struct view *v);       /* what was made of it; not its samples */
