/* Small operations on NUL-terminated texts. Any thread. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A copy of at most max_bytes (SIZE_MAX = no limit), from malloc; NULL = no memory. */
char *text_dup(const char *text, size_t max_bytes);

/* What follows the last separator that something follows; points into the path. */
const char *text_last_part(const char *path, const char *separators);
/*
 * The base name in a recorded path. A path that begins with '/' is a Unix one, where '\' is an
 * ordinary character; in others both separate. For files of this host use os_base_name().
 */
const char *text_base_name(const char *path);

/* Are two texts equal, ignoring the case of ASCII letters? */
bool text_same_fold(const char *a, const char *b);
/* Does a text end in the other one, ignoring the same? */
bool text_ends_fold(const char *text, const char *end);
bool text_starts_fold(const char *text, const char *start);
/* Is it somewhere in a text, ignoring the same? */
bool text_has_fold(const char *text, const char *part);

/*
 * Arguments as /proc/PID/cmdline has them, a NUL after each, joined by blanks in place. Returns the
 * length without what ends them.
 */
size_t text_join_arguments(char *bytes, size_t n);

/*
 * The length of a decimal number at the start of text: sign, digits with at most one point,
 * exponent; 0 = there is none. strtod() would also take "inf", "nan" and hexadecimal.
 */
size_t text_number_length(const char *text);

/* The value of a hexadecimal digit of either case; -1 = not a digit. */
static inline int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Write base64 (RFC 4648, section 4) without a NUL. returns 4 characters for each 3 bytes begun. */
size_t text_base64(const void *bytes, size_t n, char *to);

/*
 * Write decimal digits without a NUL to memory with room for UINT_MAX_BYTES; returns where they
 * end. Exports put millions of numbers.
 */
#define UINT_MAX_BYTES 20
char *uint_write(char *to, uint64_t v);
