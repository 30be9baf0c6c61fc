/*
 * The kernel's functions, from the text of /proc/kallsyms.
 *
 * Parsing is portable; obtaining the text is host code (kallsyms_linux.c). The text of 122,000
 * lines becomes a sorted index of its 80,000 functions; each reaches to the next one. A frame's
 * offset is address - _text, so that it means the same after a reboot with another random base.
 */
#ifndef SYMBOL_KALLSYMS_H
#define SYMBOL_KALLSYMS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define KALLSYMS_MAX_BYTES ((size_t)64 << 20)
#define KALLSYMS_FUNCTIONS_MAX (1u << 20)
#define KALLSYMS_FUNCTION_MAX_BYTES (1u << 20)  /* farther from the last symbol is a gap */

struct kallsyms;

/*
 * returns  0; ERR_ACCESS when all addresses are zero, with what to do; ERR_FORMAT when the text is
 *          something else; ERR_LIMIT, ERR_MEMORY
 */
int kallsyms_parse(const char *text, size_t n, struct kallsyms **out, struct err *err);
void kallsyms_free(struct kallsyms *k);              /* NULL allowed */

/* Address of _text (or _stext where there is none): what offsets count from. */
uint64_t kallsyms_base(const struct kallsyms *k);
uint32_t kallsyms_count(const struct kallsyms *k);
size_t kallsyms_bytes(const struct kallsyms *k);

struct kernel_function {
	uint64_t address;             /* of its first byte */
	const char *name;             /* borrowed from the index */
	const char *module;           /* "ext4"; NULL = the kernel proper */
};

bool kallsyms_find(const struct kallsyms *k, uint64_t address, struct kernel_function *out);

/*
 * Host: the text, at most KALLSYMS_MAX_BYTES; 28 ms on a kernel with 122,000 symbols.
 * Host: only the base, for a source that computes offsets; 0.1 ms. ERR_ACCESS with a sentence, and
 * *base = 0, when the kernel hides its addresses. ERR_UNSUPPORTED where there is no such kernel.
 */
int kallsyms_read(struct buf *out, struct err *err);
/* Host: a number that changes when modules come or go (of /proc/modules); 10 us; 0 = none is known. */
uint64_t kallsyms_modules(void);
int kallsyms_text_base(uint64_t *base, struct err *err);

/* One line, for kallsyms_text_base(); text, name and module stay inside the line. */
struct kallsyms_line {
	uint64_t address;
	char type;
	const char *name, *module;    /* not NUL-terminated; module NULL = none */
	size_t name_bytes, module_bytes;
};
/* The line at *at (moves on, behind its LF); false at the end. type 0 = it is not a symbol. */
bool kallsyms_next(const char **at, const char *end, struct kallsyms_line *out);

/* The sentence for hidden addresses. */
int kallsyms_hidden(struct err *err);

#endif
