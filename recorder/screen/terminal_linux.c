#include "screen/terminal.h"

#include "base/array.h"
#include "base/os.h"
#include "screen/ncurses_linux.h"
#include "screen/view.h"

#include <langinfo.h>
#include <locale.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#define ESCAPE_MS 25                         /* that the rest of a key's sequence may take */
#define SLICE_NS (200 * NS_PER_MS)

struct terminal {
	struct ncurses lib;
	bool color, utf8, begun;
	locale_t locale, before;
	int signals;                         /* signalfd */
	SCREEN *screen;
	WINDOW *window;
	unsigned columns, rows;              /* as ncurses knows them */
};

/* ---- signals --------------------------------------------------------------------------------- */

/* Those that end the program are blocked already; whoever has SIGHUP ignored does not hear it. */
static int open_signals(struct terminal *t, struct err *err)
{
	struct sigaction hangup;
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	sigaddset(&set, SIGWINCH);
	if (sigprocmask(SIG_BLOCK, &set, NULL) != 0)
		return err_os(err, "cannot listen to the terminal's signals");
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGTERM);
	if (sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler != SIG_IGN)
		sigaddset(&set, SIGHUP);
	t->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return t->signals < 0 ? err_os(err, "cannot listen to the terminal's signals") : 0;
}

static void end_signals(struct terminal *t)
{
	sigset_t set;

	if (t->signals < 0)
		return;
	close(t->signals);
	sigemptyset(&set);
	sigaddset(&set, SIGTSTP);
	sigaddset(&set, SIGCONT);
	sigaddset(&set, SIGWINCH);
	sigprocmask(SIG_UNBLOCK, &set, NULL);
}

/* As the shell expects it of a program: in its own terminal, and really stopped. */
static void stop_here(struct terminal *t)
{
	if (t->begun)
		t->lib.endwin();
	kill(getpid(), SIGSTOP);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int look(struct terminal *t, struct err *err)
{
	const char *term = os_env("TERM");
	int state = 0;
	char *move;

	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))
		return err_set(err, ERR_UNSUPPORTED, "standard input and output are no terminal");
	if (ncurses_load(&t->lib, err))
		return ERR_UNSUPPORTED;
	if (!term || !*term || t->lib.setupterm(term, STDOUT_FILENO, &state) != OK)
		return err_set(err, ERR_UNSUPPORTED, "the terminal '%.60s' (TERM) is not known "
			       "here", term ? term : "");
	move = t->lib.tigetstr("cup");
	if (!move || move == (char *)-1)
		return err_set(err, ERR_UNSUPPORTED, "the terminal '%.60s' (TERM) has no cursor "
			       "that can be moved", term);
	return 0;
}

/* Characters as the user's terminal has them; for this thread alone. */
static void open_locale(struct terminal *t)
{
	t->locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	if (!t->locale)
		return;
	t->before = uselocale(t->locale);
	t->utf8 = strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

int terminal_open(bool color, struct terminal **out, struct err *err)
{
	struct terminal *t = calloc(1, sizeof(*t));
	int rc;

	if (!t)
		return err_memory(err, "for the screen");
	t->signals = -1;
	t->color = color;
	rc = look(t, err);
	if (!rc)
		rc = open_signals(t, err);
	if (rc) {
		terminal_close(t);
		return rc;
	}
	open_locale(t);
	*out = t;
	return 0;
}

static void begin_colors(struct terminal *t)
{
	static const short colors[PAGE_STYLES] = {
		[PAGE_LOSS] = COLOR_YELLOW, [PAGE_BAD] = COLOR_RED,
	};
	short i;

	t->color = t->color && t->lib.has_colors() && t->lib.start_color() == OK &&
		   t->lib.use_default_colors() == OK;
	for (i = 1; t->color && i < PAGE_STYLES; i++)
		t->lib.init_pair(i, colors[i] ? colors[i] : -1, -1);
}

static bool begin(struct terminal *t)
{
	unsigned columns, rows;

	t->screen = t->lib.newterm(NULL, stdout, stdin);
	if (!t->screen)
		return false;
	t->begun = true;
	t->lib.cbreak();
	t->lib.noecho();
	t->lib.curs_set(0);
	t->lib.set_escdelay(ESCAPE_MS);
	begin_colors(t);
	t->window = t->lib.newwin(0, 0, 0, 0);
	if (!t->window)
		return false;
	t->lib.keypad(t->window, TRUE);
	t->lib.nodelay(t->window, TRUE);
	terminal_size(t, &columns, &rows);
	t->columns = columns;
	t->rows = rows;
	return true;
}

void terminal_close(struct terminal *t)
{
	if (!t)
		return;
	if (t->begun)
		t->lib.endwin();
	if (t->screen)
		t->lib.delscreen(t->screen);         /* with its windows */
	end_signals(t);
	if (t->locale) {
		uselocale(t->before);
		freelocale(t->locale);
	}
	free(t);
}

/* ---- drawing --------------------------------------------------------------------------------- */

void terminal_size(struct terminal *t, unsigned *columns, unsigned *rows)
{
	struct winsize size = {0};

	(void)t;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		size = (struct winsize){0};
	*columns = size.ws_col;
	*rows = size.ws_row;
}

static attr_t attributes(const struct terminal *t, enum page_style style)
{
	switch (style) {
	case PAGE_BAR:
		return A_REVERSE;
	case PAGE_TITLE:
		return A_UNDERLINE;
	case PAGE_FOCUS:
		return A_UNDERLINE | A_BOLD;
	case PAGE_HOT:
		return A_BOLD;
	case PAGE_LOSS:
	case PAGE_BAD:
		return t->color ? A_NORMAL : A_BOLD;
	default:
		return A_NORMAL;
	}
}

/* Cells of one style; n of them at most. Returns how many. */
static unsigned draw_run(struct terminal *t, const struct page_cell *cells, unsigned n)
{
	wchar_t text[PAGE_COLUMNS_MAX];
	enum page_style style = cells[0].style;
	int length = 0;
	unsigned i;

	for (i = 0; i < n && cells[i].style == style; i++) {
		if (cells[i].c)
			text[length++] = cells[i].c < 0x80 || t->utf8 ? (wchar_t)cells[i].c : L'?';
	}
	t->lib.wattr_set(t->window, attributes(t, style), t->color ? (short)style : 0, NULL);
	t->lib.waddnwstr(t->window, text, length);
	return i;
}

static void fit(struct terminal *t, const struct page *p)
{
	if (p->columns == t->columns && p->rows == t->rows)
		return;
	t->columns = p->columns;
	t->rows = p->rows;
	t->lib.resizeterm((int)p->rows, (int)p->columns);
	t->lib.wresize(t->window, (int)p->rows, (int)p->columns);
	t->lib.redrawwin(t->window);
}

void terminal_draw(struct terminal *t, const struct page *p)
{
	unsigned row, column, n;

	if (!t->begun && !begin(t))
		return;
	if (!t->window)
		return;
	fit(t, p);
	for (row = 0; row < p->rows; row++) {
		const struct page_cell *cells = p->cells + (size_t)row * p->columns;

		for (column = 0; column < p->columns; column += n) {
			t->lib.wmove(t->window, (int)row, (int)column);
			n = draw_run(t, cells + column, p->columns - column);
		}
	}
	t->lib.wnoutrefresh(t->window);
	t->lib.doupdate();
}

/* ---- what comes ------------------------------------------------------------------------------ */

static bool take_signal(struct terminal *t, enum terminal_event *event)
{
	struct signalfd_siginfo info;

	if (read(t->signals, &info, sizeof(info)) != (ssize_t)sizeof(info))
		return false;
	switch (info.ssi_signo) {
	case SIGTSTP:
	case SIGCONT:
		if (info.ssi_signo == SIGTSTP)
			stop_here(t);        /* and goes on here */
		if (t->window)
			t->lib.redrawwin(t->window);
		*event = TERMINAL_RESUMED;
		return true;
	case SIGWINCH:
		*event = TERMINAL_RESIZED;
		return true;
	default:
		*event = TERMINAL_END;
		return true;
	}
}

static uint32_t key_of(wint_t c)
{
	static const struct {
		wint_t curses;
		uint32_t key;
	} keys[] = {
		{KEY_UP, VIEW_KEY_UP}, {KEY_DOWN, VIEW_KEY_DOWN}, {KEY_LEFT, VIEW_KEY_LEFT},
		{KEY_RIGHT, VIEW_KEY_RIGHT}, {KEY_PPAGE, VIEW_KEY_PAGE_UP},
		{KEY_NPAGE, VIEW_KEY_PAGE_DOWN}, {KEY_HOME, VIEW_KEY_HOME}, {KEY_END, VIEW_KEY_END},
		{KEY_BTAB, VIEW_KEY_BACK_TAB}, {KEY_F(1), VIEW_KEY_HELP},
		{KEY_BACKSPACE, VIEW_KEY_BACKSPACE}, {KEY_ENTER, VIEW_KEY_ENTER},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(keys); i++)
		if (keys[i].curses == c)
			return keys[i].key;
	return 0;
}

/* false: nothing that means a key is there. */
static bool take_key(struct terminal *t, uint32_t *key)
{
	wint_t c = 0;
	int rc = t->window ? t->lib.wget_wch(t->window, &c) : ERR;

	if (rc == ERR)
		return false;
	*key = rc == KEY_CODE_YES ? key_of(c) : c == '\r' ? VIEW_KEY_ENTER
		: c == 127 ? VIEW_KEY_BACKSPACE : (uint32_t)c;
	return *key != 0;
}

enum terminal_event terminal_wait(struct terminal *t, uint64_t timeout_ns, uint32_t *key)
{
	uint64_t until_ns = os_deadline_ns(timeout_ns), now_ns;
	enum terminal_event event;

	for (;;) {
		struct pollfd p[] = {{STDIN_FILENO, POLLIN, 0}, {t->signals, POLLIN, 0}};

		if (take_signal(t, &event))
			return event;
		if (take_key(t, key))
			return TERMINAL_KEY;
		now_ns = os_now_ns();
		if (now_ns >= until_ns)
			return TERMINAL_TIME;
		os_poll(p, 2, until_ns - now_ns < SLICE_NS ? until_ns - now_ns : SLICE_NS);
		if (p[0].revents & (POLLHUP | POLLERR | POLLNVAL))
			return TERMINAL_END;
	}
}
