/*
 * Tables of types and methods of a .NET module (ECMA-335 II.22, II.24): names of methods by their
 * number. Every byte is hostile. Pure; one thread.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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

#define CLR_ROOT_BYTES 512u                  /* the root, which lists the streams, is not longer */
/*
 * How large metadata are that begin with these bytes, and where in them their heap of strings is.
 * 0 = they are none.
 */
uint32_t clr_metadata_bytes(const uint8_t *root, uint32_t n, uint32_t *strings_at,
			    uint32_t *strings_bytes);
/* The number of the type whose method this is; 0 = none. */
uint32_t clr_type_of_method(const struct clr_metadata *m, uint32_t method);
#define CLR_NAME_BYTES 1023u
/* Append "Namespace.Outer+Inner.Method", CLR_NAME_BYTES at most; false = no such method. */
bool clr_put_method_name(const struct clr_metadata *m, uint32_t method, struct buf *out);
#define CLR_MODULE_BYTES 200u
/* Append what the file is called, without ".dll", CLR_MODULE_BYTES at most; nothing = none. */
void clr_put_module_name(const struct clr_metadata *m, struct buf *out);
