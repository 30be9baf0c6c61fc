/*
 * ncurses (6, for wide characters), loaded when somebody wants a screen: the program does not need
 * it. Never unloaded. One thread.
 */
#pragma once

#include "base/err.h"
#include "base/library_linux.h"

#define NCURSES_NOMACROS 1
#define NCURSES_WIDECHAR 1
#include <ncurses.h>

/* As <term.h> has it, which defines macros of names like `columns`. */
extern int setupterm(const char *term, int fd, int *state);

#define NCURSES(F) \
	F(setupterm) F(tigetstr) F(newterm) F(delscreen) F(newwin) F(endwin) F(isendwin) F(cbreak) \
	F(noecho) F(nonl) F(keypad) F(nodelay) F(curs_set) F(has_colors) F(start_color) \
	F(use_default_colors) F(init_pair) F(wattr_set) F(wmove) F(waddnwstr) F(wnoutrefresh) \
	F(doupdate) F(redrawwin) F(wget_wch) F(resizeterm) F(wresize) F(set_escdelay)

struct ncurses {
	NCURSES(LIBRARY_MEMBER)
};

/* ERR_UNSUPPORTED: it is missing, and the sentence names the package. */
int ncurses_load(struct ncurses *out, struct err *err);
