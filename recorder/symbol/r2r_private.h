/*
 * What reading .NET images needs of their metadata. One thread.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes with a place; taking behind their end gives 0 and sets `bad`. */
struct r2r_bytes {
	const uint8_t *b;
	uint32_t n, at;
	bool bad;
};

uint32_t r2r_take(struct r2r_bytes *r, unsigned nbytes);   /* 1, 2 or 4; little-endian */

#define CLR_TABLES 45u

struct clr_metadata {
	const uint8_t *strings;
	uint32_t strings_bytes, nmethods, ntypes;
	/* private */
	struct clr_table {
		const uint8_t *rows;
		uint32_t nrows, row_bytes;
		uint8_t at[12];                      /* of its columns in a row */
		uint8_t width[12];
	} tables[CLR_TABLES];
	uint32_t *type_of_method, *outer_of_type;    /* by number from 1; 0 = none */
};

/* bytes: borrowed for its life. False: malformed, or no memory; clr_metadata_free() it anyway. */
bool clr_metadata_open(struct clr_metadata *m, const uint8_t *bytes, uint32_t n);
void clr_metadata_free(struct clr_metadata *m);
#define CLR_NAME_BYTES 1023u
/* Append "Namespace.Outer+Inner.Method", CLR_NAME_BYTES at most; false = no such method. */
bool clr_put_method_name(const struct clr_metadata *m, uint32_t method, struct buf *out);
#define CLR_MODULE_BYTES 200u
/* Append what the file is called, without ".dll", CLR_MODULE_BYTES at most; nothing = none. */
void clr_put_module_name(const struct clr_metadata *m, struct buf *out);
