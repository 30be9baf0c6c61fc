#include "screen/terminal.h"

#include "base/array.h"
#include "base/os.h"
#include "base/utf8.h"
#include "screen/view.h"

#include <stdlib.h>
#include <string.h>
#include <windows.h>

#define SLICE_NS (100 * NS_PER_MS)

struct terminal {
	HANDLE in, out;
	DWORD in_mode;
	UINT codes;                          /* the output code page before */
	bool color, begun;
	struct page shown;
	wchar_t high;                        /* the first half of a character */
};

static void write_out(struct terminal *t, const char *bytes, size_t n)
{
	DWORD done;

	WriteFile(t->out, bytes, (DWORD)n, &done, NULL);
}

static void send_text(struct terminal *t, const char *text)
{
	write_out(t, text, strlen(text));
}

int terminal_open(bool color, struct terminal **out, struct err *err)
{
	struct terminal *t = calloc(1, sizeof(*t));

	if (!t)
		return err_memory(err, "for the screen");
	t->in = GetStdHandle(STD_INPUT_HANDLE);
	t->out = GetStdHandle(STD_OUTPUT_HANDLE);
	t->color = color;
	if (!GetConsoleMode(t->in, &t->in_mode) || !os_terminal_styles()) {
		free(t);
		return err_set(err, ERR_UNSUPPORTED, "standard input and output are no console "
			       "that obeys escape sequences (Windows 10 and later)");
	}
	*out = t;
	return 0;
}

/* Source: learn.microsoft.com, "Console Virtual Terminal Sequences": alternate buffer, cursor. */
static void begin(struct terminal *t)
{
	t->codes = GetConsoleOutputCP();
	SetConsoleOutputCP(CP_UTF8);
	/* No echo and no lines, Ctrl-C stays a signal, resizing is an event. */
	SetConsoleMode(t->in, ENABLE_PROCESSED_INPUT | ENABLE_WINDOW_INPUT | ENABLE_EXTENDED_FLAGS);
	send_text(t, "\033[?1049h\033[?25l\033[2J");
	t->begun = true;
}

void terminal_close(struct terminal *t)
{
	if (!t)
		return;
	if (t->begun) {
		send_text(t, "\033[0m\033[?25h\033[?1049l");
		SetConsoleMode(t->in, t->in_mode);
		SetConsoleOutputCP(t->codes);
	}
	page_free(&t->shown);
	free(t);
}

void terminal_size(struct terminal *t, unsigned *columns, unsigned *rows)
{
	CONSOLE_SCREEN_BUFFER_INFO info;

	*columns = *rows = 0;
	if (!GetConsoleScreenBufferInfo(t->out, &info))
		return;
	*columns = (unsigned)(info.srWindow.Right - info.srWindow.Left + 1);
	*rows = (unsigned)(info.srWindow.Bottom - info.srWindow.Top + 1);
}

/* ---- drawing --------------------------------------------------------------------------------- */

void terminal_draw(struct terminal *t, const struct page *p)
{
	struct buf out = {0};

	if (!t->begun)
		begin(t);
	if (!page_put_sequences(p, &t->shown, t->color, &out) && out.len)
		write_out(t, out.data, out.len);
	buf_free(&out);
}

/* ---- what comes ------------------------------------------------------------------------------ */

static uint32_t key_of(struct terminal *t, const KEY_EVENT_RECORD *e)
{
	static const struct {
		WORD code;
		uint32_t key;
	} keys[] = {
		{VK_UP, VIEW_KEY_UP}, {VK_DOWN, VIEW_KEY_DOWN}, {VK_LEFT, VIEW_KEY_LEFT},
		{VK_RIGHT, VIEW_KEY_RIGHT}, {VK_PRIOR, VIEW_KEY_PAGE_UP},
		{VK_NEXT, VIEW_KEY_PAGE_DOWN}, {VK_HOME, VIEW_KEY_HOME}, {VK_END, VIEW_KEY_END},
		{VK_F1, VIEW_KEY_HELP}, {VK_RETURN, VIEW_KEY_ENTER}, {VK_ESCAPE, VIEW_KEY_ESCAPE},
		{VK_BACK, VIEW_KEY_BACKSPACE},
	};
	wchar_t c = e->uChar.UnicodeChar;
	wchar_t high = t->high;
	size_t i;

	t->high = 0;
	if (e->wVirtualKeyCode == VK_TAB)
		return e->dwControlKeyState & SHIFT_PRESSED ? VIEW_KEY_BACK_TAB : VIEW_KEY_TAB;
	for (i = 0; i < COUNT_OF(keys); i++)
		if (keys[i].code == e->wVirtualKeyCode)
			return keys[i].key;
	if (c >= 0xd800 && c < 0xdc00)
		t->high = c;
	if (c >= 0xdc00 && c < 0xe000 && high)
		return 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(c - 0xdc00);
	return c >= 0xd800 && c < 0xe000 ? 0 : c;
}

/* One record of the console. false: it means nothing. */
static bool take_record(struct terminal *t, enum terminal_event *event, uint32_t *key)
{
	INPUT_RECORD r;
	DWORD n = 0;

	if (!ReadConsoleInputW(t->in, &r, 1, &n)) {
		*event = TERMINAL_END;
		return true;
	}
	if (!n)
		return false;
	if (r.EventType == WINDOW_BUFFER_SIZE_EVENT) {
		page_free(&t->shown);
		*event = TERMINAL_RESIZED;
		return true;
	}
	if (r.EventType != KEY_EVENT || !r.Event.KeyEvent.bKeyDown)
		return false;
	*key = key_of(t, &r.Event.KeyEvent);
	*event = TERMINAL_KEY;
	return *key != 0;
}

enum terminal_event terminal_wait(struct terminal *t, uint64_t timeout_ns, uint32_t *key)
{
	uint64_t until_ns = os_deadline_ns(timeout_ns), now_ns, slice_ns;
	enum terminal_event event;
	DWORD slice_ms;

	for (;;) {
		if (os_signal_wait(0) == OS_SIGNAL_STOP)
			return TERMINAL_END;
		now_ns = os_now_ns();
		slice_ns = now_ns >= until_ns ? 0 : until_ns - now_ns;
		slice_ns = slice_ns < SLICE_NS ? slice_ns : SLICE_NS;
		slice_ms = (DWORD)((slice_ns + NS_PER_MS - 1) / NS_PER_MS);
		if (WaitForSingleObject(t->in, slice_ms) == WAIT_OBJECT_0) {
			if (take_record(t, &event, key))
				return event;
		} else if (now_ns >= until_ns) {
			return TERMINAL_TIME;
		}
	}
}
