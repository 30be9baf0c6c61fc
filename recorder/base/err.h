/*
 * Errors: a code for programs, a sentence for people.
 *
 * A function that can fail returns 0 or a negative enum err_code and takes a struct err * last.
 * The layer that knows the thing's name writes the sentence: what was tried, on what, and what to
 * do next. Layers above pass it on; only main.c and cli/ print it. A NULL err is allowed
 * everywhere and drops the sentence. Any thread; no allocation.
 */
#pragma once

#include <stdarg.h>

enum err_code {
	ERR_NONE = 0,
	ERR_MEMORY = -1,      /* no memory */
	ERR_USAGE = -2,       /* wrong option, spec or configuration: exit 2 */
	ERR_NOT_FOUND = -3,   /* the named thing is not there: exit 3 */
	ERR_EXISTS = -4,      /* it is there already */
	ERR_ACCESS = -5,      /* a privilege is missing */
	ERR_IO = -6,          /* the system refused a read or write */
	ERR_FULL = -7,        /* the disk is full */
	ERR_FORMAT = -8,      /* bytes from outside are not what they should be */
	ERR_LIMIT = -9,       /* a ceiling of ours was reached */
	ERR_BUSY = -10,       /* another process or thread holds it */
	ERR_UNSUPPORTED = -11,/* not on this system */
	ERR_STOPPED = -12,    /* asked to end */
};

struct err {
	int code;             /* enum err_code */
	char text[600];       /* one sentence, UTF-8, no line feed */
};

#if defined(__MINGW32__)
#define PRINTF_LIKE(f, a) __attribute__((format(gnu_printf, f, a)))
#else
#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#endif

/* Write the sentence; returns the code, so that failing is one line. */
int err_set(struct err *err, enum err_code code, const char *format, ...) PRINTF_LIKE(3, 4);

/*
 * ERR_MEMORY with "out of memory " and the rest of the sentence, which says what for or while doing
 * what: err_memory(err, "for the names of %s", path).
 */
int err_memory(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* err_set() with ": <what the system said>" appended; code from errno or GetLastError(). */
int err_os(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);

/* The same for a known errno value (Linux) or error code (Windows). */
int err_os_code(struct err *err, int os_error, const char *format, ...) PRINTF_LIKE(3, 4);

/* Put "<format>: " in front of the present sentence, keeping its code; returns the code. */
int err_prefix(struct err *err, const char *format, ...) PRINTF_LIKE(2, 3);
