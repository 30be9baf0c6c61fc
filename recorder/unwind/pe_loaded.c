/*
 *  image             0 "MZ"   60 u32 offset of the next
 *  NT headers        0 "PE\0\0"   4 u16 machine   8 u32 timestamp
 *                    20 u16 bytes of the optional header
 *  optional header   0 u16 0x20b   56 u32 SizeOfImage   108 u32 directories
 *                    112 directories: u32 RVA, u32 bytes
 *                    directory 3: exceptions   6: debug
 *  debug entry       28 bytes: 12 u32 type, 2 = CodeView   16 u32 bytes   20 u32 RVA
 *  RSDS              0 "RSDS"   4 GUID   20 u32 age
 */
#include "unwind/pe_loaded.h"

#include "base/bytes.h"

#include <string.h>

enum {
	NT_BYTES = 24, OPTIONAL_BYTES = 112, DIRECTORY_BYTES = 8, EXCEPTIONS = 3, DEBUG = 6,
	MACHINE_X64 = 0x8664, PE32_PLUS = 0x20b,
	DEBUG_ENTRY_BYTES = 28, CODE_VIEW = 2,
	FUNCTION_BYTES = 12,
};

/* Read a directory; one outside the image counts as absent. */
static void get_directory(const uint8_t *optional, size_t n, uint32_t which, uint32_t image_bytes,
			  uint32_t *rva, uint32_t *nbytes)
{
	const uint8_t *at = optional + OPTIONAL_BYTES + which * DIRECTORY_BYTES;

	*rva = *nbytes = 0;
	if (which >= le32(optional + 108) || n < OPTIONAL_BYTES + (which + 1) * DIRECTORY_BYTES)
		return;
	if (le32(at) >= image_bytes || le32(at + 4) > image_bytes - le32(at))
		return;
	*rva = le32(at);
	*nbytes = le32(at + 4);
}

bool pe_loaded_head(const uint8_t *head, size_t n, struct pe_loaded *out)
{
	const uint8_t *nt, *optional;
	size_t at;

	if (n < 64 || memcmp(head, "MZ", 2))
		return false;
	at = le32(head + 60);
	if (at > n || n - at < NT_BYTES + OPTIONAL_BYTES)
		return false;
	nt = head + at;
	optional = nt + NT_BYTES;
	if (memcmp(nt, "PE\0\0", 4) || le16(nt + 4) != MACHINE_X64 || le16(optional) != PE32_PLUS ||
	    le16(nt + 20) < OPTIONAL_BYTES)
		return false;
	n -= at + NT_BYTES;
	if (n > le16(nt + 20))
		n = le16(nt + 20);
	out->timestamp = le32(nt + 8);
	out->image_bytes = le32(optional + 56);
	get_directory(optional, n, EXCEPTIONS, out->image_bytes, &out->pdata_rva,
		      &out->pdata_bytes);
	get_directory(optional, n, DEBUG, out->image_bytes, &out->debug_rva, &out->debug_bytes);
	return true;
}

uint32_t pe_loaded_rsds_at(const uint8_t *directory, size_t n, uint32_t image_bytes)
{
	for (; n >= DEBUG_ENTRY_BYTES; directory += DEBUG_ENTRY_BYTES, n -= DEBUG_ENTRY_BYTES) {
		uint32_t rva = le32(directory + 20);

		if (le32(directory + 12) == CODE_VIEW &&
		    le32(directory + 16) >= PE_LOADED_RSDS_BYTES && rva < image_bytes &&
		    image_bytes - rva >= PE_LOADED_RSDS_BYTES)
			return rva;
	}
	return 0;
}

bool pe_loaded_rsds(const uint8_t bytes[PE_LOADED_RSDS_BYTES], uint8_t guid[16], uint32_t *age)
{
	if (memcmp(bytes, "RSDS", 4))
		return false;
	memcpy(guid, bytes + 4, 16);
	*age = le32(bytes + 20);
	return true;
}

bool pe_loaded_info_span(const uint8_t *pdata, size_t n, uint32_t image_bytes, uint32_t *rva,
			 uint32_t *nbytes)
{
	uint32_t low = UINT32_MAX, high = 0, info;

	for (; n >= FUNCTION_BYTES; pdata += FUNCTION_BYTES, n -= FUNCTION_BYTES) {
		info = le32(pdata + 8);
		/* Bit 0: it points to another entry of this directory. */
		if (!info || info & 1 || info >= image_bytes)
			continue;
		if (info < low)
			low = info;
		if (info > high)
			high = info;
	}
	if (low > high)
		return false;
	*rva = low;
	*nbytes = image_bytes - low;
	if (image_bytes - high > PE_LOADED_INFO_MAX_BYTES)
		*nbytes = high - low + PE_LOADED_INFO_MAX_BYTES;
	return true;
}
