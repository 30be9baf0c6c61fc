#include "managed/exports.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAM_HEADERS_MAX 64u
#define DYNAMIC_MAX 256u
#define STRINGS_MAX ((uint64_t)8 << 20)
#define SYMBOLS_MAX 262144u
#define HASH_BUCKETS_MAX 262144u
#define BATCH 256u                           /* symbols read at once */

enum {
	PHDR_BYTES = 56, DYN_BYTES = 16, SYM_BYTES = 24,
	PT_LOAD_TYPE = 1, PT_DYNAMIC_TYPE = 2,
	DT_STRTAB_TAG = 5, DT_SYMTAB_TAG = 6, DT_STRSZ_TAG = 10,
};
#define DT_GNU_HASH_TAG UINT64_C(0x6ffffef5)

struct dynamic {
	uint64_t strings, nstrings, symbols, hash;
};

/* Where PT_DYNAMIC is in memory, and what to add to the file's addresses. */
static bool find_dynamic(const struct managed_memory *m, uint64_t base, uint64_t *dynamic,
			 uint64_t *bias)
{
	uint8_t head[64], programs[PROGRAM_HEADERS_MAX * PHDR_BYTES];
	uint64_t first = UINT64_MAX, at = 0;
	uint64_t phoff;
	unsigned n, i;

	if (!managed_read(m, base, head, sizeof(head)) || memcmp(head, "\177ELF\2\1", 6) != 0)
		return false;
	phoff = le64(head + 32);
	n = le16(head + 56);
	if (!n || n > PROGRAM_HEADERS_MAX || le16(head + 54) != PHDR_BYTES || phoff > 4096 ||
	    !managed_read(m, base + phoff, programs, n * (size_t)PHDR_BYTES))
		return false;
	for (i = 0; i < n; i++) {
		const uint8_t *p = programs + (size_t)i * PHDR_BYTES;
		uint64_t vaddr = le64(p + 16);

		if (le32(p) == PT_LOAD_TYPE && vaddr < first)
			first = vaddr;
		if (le32(p) == PT_DYNAMIC_TYPE)
			at = vaddr;
	}
	if (first == UINT64_MAX || !at)
		return false;
	*bias = base - (first & ~(uint64_t)4095);
	*dynamic = *bias + at;
	return true;
}

static bool read_dynamic(const struct managed_memory *m, uint64_t base, struct dynamic *out)
{
	uint8_t bytes[DYNAMIC_MAX * DYN_BYTES];
	uint64_t at, bias;
	size_t got, i;

	memset(out, 0, sizeof(*out));
	if (!find_dynamic(m, base, &at, &bias))
		return false;
	got = m->read(m->ctx, at, bytes, sizeof(bytes)) / DYN_BYTES;
	for (i = 0; i < got && le64(bytes + i * DYN_BYTES); i++) {
		uint64_t tag = le64(bytes + i * DYN_BYTES);
		uint64_t value = le64(bytes + i * DYN_BYTES + 8);
		uint64_t address = value < base ? bias + value : value;

		if (tag == DT_STRTAB_TAG)
			out->strings = address;
		else if (tag == DT_SYMTAB_TAG)
			out->symbols = address;
		else if (tag == DT_STRSZ_TAG)
			out->nstrings = value;
		else if (tag == DT_GNU_HASH_TAG)
			out->hash = address;
	}
	return out->strings && out->symbols && out->nstrings && out->nstrings <= STRINGS_MAX &&
	       out->hash;
}

/*
 * The number of symbols: DT_GNU_HASH has none, but its last chain ends at the last symbol. Layout:
 * u32 buckets, first symbol, bloom words, shift; u64 bloom[]; u32 buckets[]; u32 chains[].
 */
static uint32_t count_symbols(const struct managed_memory *m, uint64_t hash)
{
	uint8_t head[16], *buckets;
	uint32_t nbuckets, first, last = 0, i;
	uint64_t at;

	if (!managed_read(m, hash, head, sizeof(head)))
		return 0;
	nbuckets = le32(head);
	first = le32(head + 4);
	at = hash + 16 + 8 * (uint64_t)le32(head + 8);
	if (!nbuckets || nbuckets > HASH_BUCKETS_MAX)
		return 0;
	buckets = malloc((size_t)nbuckets * 4);
	if (!buckets || !managed_read(m, at, buckets, (size_t)nbuckets * 4)) {
		free(buckets);
		return 0;
	}
	for (i = 0; i < nbuckets; i++) {
		uint32_t symbol = le32(buckets + (size_t)i * 4);

		last = symbol > last ? symbol : last;
	}
	free(buckets);
	at += 4 * (uint64_t)nbuckets;
	for (; last >= first && last < SYMBOLS_MAX; last++) {
		uint8_t chain[4];

		if (!managed_read(m, at + 4 * (uint64_t)(last - first), chain, sizeof(chain)))
			return 0;
		if (chain[0] & 1)
			return last + 1;
	}
	return 0;
}

static void take_symbol(const char *strings, uint64_t nstrings, const uint8_t *symbol,
			uint64_t bias, struct managed_export *wanted, unsigned nwanted)
{
	uint32_t name = le32(symbol);
	unsigned i;

	/* Section 0: this file does not define it. */
	if (name >= nstrings || !le16(symbol + 6))
		return;
	for (i = 0; i < nwanted; i++) {
		if (strcmp(strings + name, wanted[i].name) != 0)
			continue;
		wanted[i].at = bias + le64(symbol + 8);
		wanted[i].size = le64(symbol + 16);
	}
}

static bool read_symbols(const struct managed_memory *m, const struct dynamic *d, uint64_t bias,
			 char *strings, struct managed_export *wanted, unsigned nwanted)
{
	uint32_t n = count_symbols(m, d->hash), at, i;
	uint8_t batch[BATCH * SYM_BYTES];

	if (!n || !managed_read(m, d->strings, strings, (size_t)d->nstrings))
		return false;
	strings[d->nstrings] = '\0';
	for (at = 0; at < n; at += BATCH) {
		uint32_t part = n - at < BATCH ? n - at : BATCH;

		if (!managed_read(m, d->symbols + (uint64_t)at * SYM_BYTES, batch,
				  (size_t)part * SYM_BYTES))
			return false;
		for (i = 0; i < part; i++)
			take_symbol(strings, d->nstrings, batch + (size_t)i * SYM_BYTES,
				    bias, wanted, nwanted);
	}
	return true;
}

int managed_exports_read(const struct managed_memory *memory, uint64_t base,
			 struct managed_export *wanted, unsigned nwanted, struct err *err)
{
	struct dynamic d;
	uint64_t dynamic, bias;
	char *strings;
	bool read;

	if (!find_dynamic(memory, base, &dynamic, &bias) || !read_dynamic(memory, base, &d))
		return err_set(err, ERR_IO, "its file cannot be read in memory");
	strings = malloc((size_t)d.nstrings + 1);
	if (!strings)
		return err_memory(err, "for the symbols of a runtime");
	read = read_symbols(memory, &d, bias, strings, wanted, nwanted);
	free(strings);
	return read ? 0 : err_set(err, ERR_IO, "the symbols of its file cannot be read");
}
