/*
 *  image             0 "MZ"   60 u32 offset of the next
 *  NT headers        0 "PE\0\0"   4 u16 machine   8 u32 timestamp
 *                    6 u16 sections   20 u16 bytes of the optional header
 *  optional header   0 u16 0x20b x64, 0x10b x86   56 u32 SizeOfImage
 *                    108 (x86: 92) u32 directories, then these: u32 RVA, u32 bytes
 *                    directory 3: exceptions   6: debug
 *  section           40 bytes: 0 name   8 u32 bytes in memory   12 u32 RVA   36 u32 flags
 *  debug entry       28 bytes: 12 u32 type, 2 = CodeView   16 u32 bytes   20 u32 RVA
 *  RSDS              0 "RSDS"   4 GUID   20 u32 age
 */
#include "unwind/pe_loaded.h"

#include "base/bytes.h"

#include <string.h>

enum {
	NT_BYTES = 24, OPTIONAL_BYTES = 112, OPTIONAL_BYTES_32 = 96, DIRECTORY_BYTES = 8,
	EXCEPTIONS = 3, DEBUG = 6,
	MACHINE_X64 = 0x8664, PE32_PLUS = 0x20b, MACHINE_X86 = 0x14c, PE32 = 0x10b,
	SECTION_BYTES = 40,
	DEBUG_ENTRY_BYTES = 28, CODE_VIEW = 2,
	FUNCTION_BYTES = 12,
};

#define SECTION_KIND 0xe2000040u             /* write, read, execute, discardable, data */
#define SECTION_CONSTANTS 0x40000040u

/* What lies outside the image counts as absent. */
static void get_range(const uint8_t *rva_at, const uint8_t *nbytes_at, uint32_t image_bytes,
		      uint32_t *rva, uint32_t *nbytes)
{
	*rva = *nbytes = 0;
	if (le32(rva_at) >= image_bytes || le32(nbytes_at) > image_bytes - le32(rva_at))
		return;
	*rva = le32(rva_at);
	*nbytes = le32(nbytes_at);
}

/* Read a directory. start: the size of the optional header without them */
static void get_directory(const uint8_t *optional, size_t n, size_t start, uint32_t which,
			  uint32_t image_bytes, uint32_t *rva, uint32_t *nbytes)
{
	const uint8_t *at = optional + start + which * DIRECTORY_BYTES;

	*rva = *nbytes = 0;
	if (which < le32(optional + start - 4) && n >= start + (which + 1) * DIRECTORY_BYTES)
		get_range(at, at + 4, image_bytes, rva, nbytes);
}

/*
 * Find .eh_frame. Its name has nine characters, one too many: linkers cut it, or put "/" and the
 * place in a table that is not loaded. Sections of debug information are named so too, but those
 * can be discarded.
 */
static void find_eh_frame(const uint8_t *sections, size_t n, uint32_t nsections,
			  struct pe_loaded *out)
{
	for (; nsections && n >= SECTION_BYTES; nsections--, n -= SECTION_BYTES) {
		if ((!memcmp(sections, ".eh_fram", 8) || sections[0] == '/') &&
		    (le32(sections + 36) & SECTION_KIND) == SECTION_CONSTANTS) {
			get_range(sections + 12, sections + 8, out->image_bytes, &out->eh_rva,
				  &out->eh_bytes);
			return;
		}
		sections += SECTION_BYTES;
	}
}

bool pe_loaded_head(const uint8_t *head, size_t n, struct pe_loaded *out)
{
	const uint8_t *nt, *optional;
	struct pe_loaded found = {0};
	size_t at, start, noptional;

	if (n < 64 || memcmp(head, "MZ", 2))
		return false;
	at = le32(head + 60);
	if (at > n || n - at < NT_BYTES + OPTIONAL_BYTES)
		return false;
	nt = head + at;
	optional = nt + NT_BYTES;
	found.is_32_bit = le16(nt + 4) == MACHINE_X86;
	start = found.is_32_bit ? OPTIONAL_BYTES_32 : OPTIONAL_BYTES;
	noptional = le16(nt + 20);
	if (memcmp(nt, "PE\0\0", 4) || (le16(nt + 4) != MACHINE_X64 && !found.is_32_bit) ||
	    le16(optional) != (found.is_32_bit ? PE32 : PE32_PLUS) || noptional < start)
		return false;
	n -= at + NT_BYTES;
	found.timestamp = le32(nt + 8);
	found.image_bytes = le32(optional + 56);
	if (found.is_32_bit && noptional < n)
		find_eh_frame(optional + noptional, n - noptional, le16(nt + 6), &found);
	if (n > noptional)
		n = noptional;
	if (!found.is_32_bit)
		get_directory(optional, n, start, EXCEPTIONS, found.image_bytes, &found.pdata_rva,
			      &found.pdata_bytes);
	get_directory(optional, n, start, DEBUG, found.image_bytes, &found.debug_rva,
		      &found.debug_bytes);
	*out = found;
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
