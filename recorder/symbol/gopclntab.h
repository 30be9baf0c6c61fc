/*
 * The functions of a Go program, from the table that its runtime needs to print a traceback: a
 * program that is stripped, or linked with -ldflags -s, still has it. Go 1.16 and later. Any
 * thread.
 */
#pragma once

#include "symbol/elf.h"

#define GOPCLNTAB_BLOCK_BYTES 65536u

/* A part of the file in memory, moved to what is asked for. */
struct gopclntab_block {
	uint64_t at;                  /* offset in the file */
	size_t nbytes;                /* 0 = nothing is read yet */
	uint8_t *bytes;
};

struct gopclntab {
	uint64_t names_at, names_bytes;       /* NUL-terminated names, by offset in the file */
	/* private */
	const struct bytes *in;
	uint64_t functions_at, end, text;     /* functions_at, end: offsets in the file */
	uint64_t next, nfunctions;
	unsigned word, entry_word;
	struct gopclntab_block entries, functions;
};

struct gopclntab_function {
	uint64_t vaddr, bytes;
	uint32_t name;                /* offset in names_at */
};

/*
 * out      on success; close it with gopclntab_close()
 * returns  0; ERR_NOT_FOUND when it is no Go program, or does not say where its code starts;
 *          ERR_FORMAT, ERR_IO, ERR_MEMORY
 */
int gopclntab_open(const struct bytes *in, const struct elf_head *head, struct gopclntab *out,
		   struct err *err);
/* The next function, by ascending address. Returns 0; ERR_NOT_FOUND after the last; as above. */
int gopclntab_next(struct gopclntab *table, struct gopclntab_function *out, struct err *err);
/* The address of a function of the runtime; 0 = there is none. gopclntab_next() starts anew. */
uint64_t gopclntab_find(struct gopclntab *table, const char *name, uint64_t *bytes);
void gopclntab_close(struct gopclntab *table);
