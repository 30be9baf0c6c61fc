/*
 * The kernel's functions, from the text of /proc/kallsyms.
 *
 * Parsing is portable; obtaining the text is host code (kallsyms_linux.c). The text of 122,000
 * lines becomes a sorted index of its 80,000 functions; each reaches to the next one. A frame's
 * offset is address - _text, so that it means the same after a reboot with another random base.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define KALLSYMS_MAX_BYTES ((size_t)64 << 20)
#define KALLSYMS_FUNCTIONS_MAX (1u << 20)
#define KALLSYMS_FUNCTION_MAX_BYTES (1u << 20)  /* beyond this distance from a symbol is a gap */

struct kallsyms;

/*
 * returns  0; ERR_ACCESS when all addresses are zero, with what to do; ERR_FORMAT when it is some
 *          other text; ERR_LIMIT, ERR_MEMORY
 */
int kallsyms_parse(const char *text, size_t n, struct kallsyms **out, struct err *err);
/* The same of portions, each of whole lines: kallsyms_add() is a kallsyms_take of it. */
struct kallsyms *kallsyms_new(void);                 /* NULL without memory */
int kallsyms_add(void *k, const char *text, size_t n);
/* rc: what kallsyms_add() returned last, or the reading. On an error it is freed. */
int kallsyms_finish(struct kallsyms *k, int rc, struct err *err);
void kallsyms_free(struct kallsyms *k);              /* NULL allowed */

/* The address of _text (or _stext where there is none), from which offsets count. */
uint64_t kallsyms_base(const struct kallsyms *k);
uint32_t kallsyms_count(const struct kallsyms *k);
size_t kallsyms_bytes(const struct kallsyms *k);

struct kernel_function {
	uint64_t address;             /* of its first byte */
	const char *name;             /* borrowed from the index */
	const char *module;           /* "ext4"; NULL = the kernel proper */
};

bool kallsyms_find(const struct kallsyms *k, uint64_t address, struct kernel_function *out);

/* Takes a portion of the list, whole lines; an error ends the reading, which returns it. */
typedef int kallsyms_take(void *to, const char *text, size_t n);

/*
 * Host: read the text, at most KALLSYMS_MAX_BYTES, by portions, so that no 5 MB come and go within
 * a limit of memory; 28 ms on a kernel with 122,000 symbols. modules, unless NULL, is set to
 * kallsyms_modules() of before, so that later changes are noticed.
 * Host: read only the base, for a source that computes offsets; 0.1 ms. ERR_ACCESS with a sentence,
 * and *base = 0, when the kernel hides its addresses. ERR_UNSUPPORTED on other systems.
 */
int kallsyms_read(kallsyms_take *take, void *to, uint64_t *modules, struct err *err);
/* Host: a number that changes when modules come or go (from /proc/modules); 10 us; 0 = unknown. */
uint64_t kallsyms_modules(void);
int kallsyms_text_base(uint64_t *base, struct err *err);

/*
 * The text on its way from one user to another that needs it soon after: 5 MB, so that it is read
 * once at the start. Any thread.
 */
struct kallsyms_text;

struct kallsyms_text *kallsyms_text_new(void);       /* NULL without memory */
void kallsyms_text_free(struct kallsyms_text *t);    /* NULL allowed, also below */
void kallsyms_text_promise(struct kallsyms_text *t);         /* it is being read */
/* Takes all that kallsyms_read() read; frees it when one was given, taken or dropped before. */
void kallsyms_text_give(struct kallsyms_text *t, struct buf *text, uint64_t modules);
/*
 * Waits for what was promised, 1 s at most.
 * returns  false when there is none: read it; true: the text is the caller's
 */
bool kallsyms_text_take(struct kallsyms_text *t, struct buf *out, uint64_t *modules);
void kallsyms_text_drop(struct kallsyms_text *t);

/* One line, for kallsyms_text_base(); name and module point into it. */
struct kallsyms_line {
	uint64_t address;
	char type;
	const char *name, *module;    /* not NUL-terminated; module NULL = none */
	size_t name_bytes, module_bytes;
};
/* Read the line at *at, which moves past its LF; false at the end. type 0 = it is not a symbol. */
bool kallsyms_next(const char **at, const char *end, struct kallsyms_line *out);

/* The sentence about hidden addresses. */
int kallsyms_hidden(struct err *err);
