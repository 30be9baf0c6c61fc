/*
 * What the live screen of `recorder top` shows, without a terminal: it gets windows of what
 * happens, and keys, and draws a page. Three panes: the processes, the functions of the process
 * that is chosen, and a stack of the function that is chosen. One thread.
 *
 * A cost is per second of the window: CPU time as a share of one CPU (two busy CPUs are 200 %), off
 * the CPU as threads that waited on average (in % too), memory in bytes, events in number.
 */
#pragma once

#include "model/incident.h"
#include "screen/page.h"

/* Keys are Unicode characters, and these. */
enum view_key {
	VIEW_KEY_ESCAPE = 27,
	VIEW_KEY_ENTER = '\n',
	VIEW_KEY_TAB = '\t',
	VIEW_KEY_BACKSPACE = 8,
	VIEW_KEY_UP = 0x110000, VIEW_KEY_DOWN, VIEW_KEY_LEFT, VIEW_KEY_RIGHT, VIEW_KEY_PAGE_UP,
	VIEW_KEY_PAGE_DOWN, VIEW_KEY_HOME, VIEW_KEY_END, VIEW_KEY_BACK_TAB, VIEW_KEY_HELP,
};

/* What a key asks of the caller; the page has to be drawn anew after each. */
enum view_wish {
	VIEW_WISH_NONE,
	VIEW_WISH_QUIT,
	VIEW_WISH_LOAD,                      /* load it again, with other frames or span */
	VIEW_WISH_KEEP,                      /* an incident with view_reason() */
};

/* About a window, beside its samples. Texts are borrowed for the call. */
struct view_facts {
	uint64_t span_ns;                    /* its length */
	unsigned ncpus;
	const char *clock;                   /* when it ended: "14:39:11" */
	const char *from;                    /* who records: "recorder 4711", "recording 99 Hz" */
	uint64_t lost;
};

struct view;

struct view *view_new(enum stream first);    /* NULL = no memory */
void view_free(struct view *v);              /* NULL allowed */

/*
 * Show another window. Takes the incident's contents and leaves it empty; after an error too.
 * returns  0 or ERR_MEMORY: nothing is shown until the next one
 */
int view_load(struct view *v, struct incident *in, const struct view_facts *facts,
	      struct err *err);

enum view_wish view_key(struct view *v, uint32_t key);

bool view_paused(const struct view *v);      /* no other window is wanted */
bool view_kernel(const struct view *v);      /* kernel frames are wanted */
uint64_t view_span_ns(const struct view *v); /* how long a window is wanted */
const char *view_reason(const struct view *v);

/* A sentence for the last line, until the next key; NULL = none. */
void view_say(struct view *v, bool bad, const char *text);

/* Needs a page of any size; returns 0 or ERR_MEMORY. */
int view_draw(struct view *v, struct page *p, unsigned columns, unsigned rows);
