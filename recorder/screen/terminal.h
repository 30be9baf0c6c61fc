/*
 * The terminal as a screen: pages go out, keys come in. On Linux ncurses draws, loaded when it is
 * needed; on Windows the console's own sequences do. What the terminal was like before comes back
 * with terminal_close(), while the program is stopped (Ctrl-Z), and after a signal that ends it.
 *
 * One thread. There is one terminal: signals, and ncurses, belong to the program.
 */
#pragma once

#include "base/err.h"
#include "screen/page.h"

struct terminal;

/*
 * Look whether standard input and output are a terminal that can be drawn on; nothing is drawn yet.
 * Call it after os_signals_open() and before the first other thread starts: signals about the
 * terminal then reach only terminal_wait().
 *
 * color    else only bold and reversed text
 * returns  0; ERR_UNSUPPORTED: no screen here, and the sentence says what is missing
 */
int terminal_open(bool color, struct terminal **out, struct err *err);
void terminal_close(struct terminal *t);     /* NULL allowed */

/* Its size now; both are 0 where the system does not tell. */
void terminal_size(struct terminal *t, unsigned *columns, unsigned *rows);

/* Show a page; only what differs from the one before is sent. The first one begins the screen. */
void terminal_draw(struct terminal *t, const struct page *p);

enum terminal_event {
	TERMINAL_TIME,                       /* the time is over */
	TERMINAL_KEY,
	TERMINAL_RESIZED,                    /* draw anew */
	TERMINAL_RESUMED,                    /* the program was stopped: draw anew */
	TERMINAL_END,                        /* Ctrl-C, a signal to end, or the terminal is gone */
};

/* Wait for what comes first. key: a Unicode character or enum view_key. */
enum terminal_event terminal_wait(struct terminal *t, uint64_t timeout_ns, uint32_t *key);
