#include "symbol/demangle.h"

#include <libiberty/demangle.h>
#include <setjmp.h>
#include <string.h>

struct text {
	char *at;
	size_t len, room;
	jmp_buf full;
};

static bool has_high_byte(const char *bytes, size_t n)
{
	while (n--) {
		if (bytes[n] & 0x80)
			return true;
	}
	return false;
}

/*
 * A name of 100 bytes can expand to gigabytes through back references, and a callback cannot tell
 * the demangler to stop, so it leaves by longjmp. That is safe because both demanglers keep their
 * state in automatic storage (libiberty 20230104, cp-demangle.c and rust-demangle.c), with one
 * exception: while Rust prints an identifier decoded from Punycode, the only one with bytes over
 * 0x7f. There the callback waits for the next piece.
 */
static void append_piece(const char *piece, size_t n, void *ctx)
{
	struct text *text = ctx;
	size_t take = n < text->room - text->len ? n : text->room - text->len;

	if (take)                              /* an empty piece may be NULL */
		memcpy(text->at + text->len, piece, take);
	text->len += take;
	if (take < n && !has_high_byte(piece, n))
		longjmp(text->full, 1);
}

static bool demangle_either(const char *name, struct text *text)
{
	if (setjmp(text->full))
		return true;
	/* Rust first: its legacy names are well-formed C++ names too. */
	if (rust_demangle_callback(name, DMGL_NO_OPTS, append_piece, text) && text->len)
		return true;
	text->len = 0;
	return cplus_demangle_v3_callback(name, DMGL_NO_OPTS, append_piece, text) && text->len;
}

bool demangle(const char *raw, char *out, size_t n)
{
	size_t len = strnlen(raw, DEMANGLE_MAX_BYTES + 1);
	const char *version = memchr(raw, '@', len);
	char name[DEMANGLE_MAX_BYTES + 1];
	struct text text = {.at = out, .room = n - 1};
	/* A stub of a call (elf_plt.h) is no version of the function. */
	const char *after = version && strcmp(version, "@plt") == 0 ? version : "";

	if (len > DEMANGLE_MAX_BYTES)
		return false;
	/* In names of Microsoft's compilers, '@' is not followed by a version. */
	if (version && version > raw && *raw != '?')
		len = (size_t)(version - raw);
	memcpy(name, raw, len);
	name[len] = '\0';
	if (name[0] == '_' && demangle_either(name, &text)) {
		out[text.len] = '\0';
		strncat(out, after, n - 1 - text.len);
		return true;
	}
	if (!raw[len] || *after || len >= n)
		return false;
	memcpy(out, name, len + 1);
	return true;
}
