/*
 * What the headers of a loaded x64 or x86 image say about unwinding it: its size, its exception
 * directory, the place of the UNWIND_INFO that this points to, and the PDB that belongs to it. x86
 * images have no exception directory, but those of mingw have .eh_frame.
 *
 * The bytes come from another process's memory and may be anything. The caller reads what the calls
 * ask for, a piece at a time. Portable, nothing allocated, any thread.
 * Source: Microsoft's "PE Format"; the RSDS record: LLVM's "CodeView" of lib/Object/COFF.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PE_LOADED_HEAD_BYTES 4096u           /* from the image's base; fewer are often enough */
#define PE_LOADED_DEBUG_MAX_BYTES 448u       /* 16 entries */
#define PE_LOADED_RSDS_BYTES 24u
#define PE_LOADED_INFO_MAX_BYTES 544u        /* an UNWIND_INFO with everything that may follow it */

struct pe_loaded {
	uint32_t timestamp, image_bytes;
	uint32_t pdata_rva, pdata_bytes;     /* 0 = none */
	uint32_t debug_rva, debug_bytes;     /* the debug directory; 0 = none */
	bool is_32_bit;                      /* x86 */
	uint32_t eh_rva, eh_bytes;           /* x86: what may be .eh_frame; 0 = none */
};

/*
 * Read the first n bytes of the image; false: another kind of image, or cut off. Directories
 * outside are 0.
 */
bool pe_loaded_head(const uint8_t *head, size_t n, struct pe_loaded *out);

/* Search the debug directory: the RVA of PE_LOADED_RSDS_BYTES that name the PDB; 0 = none. */
uint32_t pe_loaded_rsds_at(const uint8_t *directory, size_t n, uint32_t image_bytes);

/* Read GUID (byte order as stored) and age from those bytes. */
bool pe_loaded_rsds(const uint8_t bytes[PE_LOADED_RSDS_BYTES], uint8_t guid[16], uint32_t *age);

/* Search the exception directory: the part of the image with all UNWIND_INFO; false = none. */
bool pe_loaded_info_span(const uint8_t *pdata, size_t n, uint32_t image_bytes, uint32_t *rva,
			 uint32_t *nbytes);
