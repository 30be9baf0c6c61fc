/*
 * What the headers of a loaded x64 image say, for who wants to unwind it: how large it is, where its
 * exception directory is, where the UNWIND_INFO lies that this points to, and which PDB belongs to it.
 *
 * The bytes come from another process's memory and may be anything: the caller reads what the calls ask
 * for, a piece at a time. Portable, nothing allocated, any thread.
 * Source: Microsoft's "PE Format"; the RSDS record: LLVM's "CodeView" of lib/Object/COFF.
 */
#ifndef UNWIND_PE_LOADED_H
#define UNWIND_PE_LOADED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PE_LOADED_HEAD_BYTES 4096u           /* from the image's base; less will often do */
#define PE_LOADED_DEBUG_MAX_BYTES 448u       /* 16 entries */
#define PE_LOADED_RSDS_BYTES 24u
#define PE_LOADED_INFO_MAX_BYTES 544u        /* an UNWIND_INFO with all that may follow it */

struct pe_loaded {
	uint32_t timestamp, image_bytes;
	uint32_t pdata_rva, pdata_bytes;     /* 0 = none */
	uint32_t debug_rva, debug_bytes;     /* the debug directory; 0 = none */
};

/* From the first n bytes of the image; false: no x64 image, or cut off. What lies outside of it is 0. */
bool pe_loaded_head(const uint8_t *head, size_t n, struct pe_loaded *out);

/* From the debug directory: the RVA of PE_LOADED_RSDS_BYTES that name the PDB; 0 = there are none. */
uint32_t pe_loaded_rsds_at(const uint8_t *directory, size_t n, uint32_t image_bytes);

/* From these: GUID (as it stands there) and age. */
bool pe_loaded_rsds(const uint8_t bytes[PE_LOADED_RSDS_BYTES], uint8_t guid[16], uint32_t *age);

/* From the exception directory: the part of the image that holds all UNWIND_INFO; false = none is there. */
bool pe_loaded_info_span(const uint8_t *pdata, size_t n, uint32_t image_bytes, uint32_t *rva, uint32_t *nbytes);

#endif
