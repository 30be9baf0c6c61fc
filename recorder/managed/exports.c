#include "managed/exports.h"

#include "base/bytes.h"
#include "managed/elf.h"

#include <string.h>

#define DYNAMIC_MAX 256u
#define HASH_BUCKETS_MAX 262144u
#define CHAIN_MAX 1024u                      /* symbols of one bucket */
#define NAME_MAX_BYTES 128u

enum {
	DYN_BYTES = 16, SYM_BYTES = 24,
	DT_STRTAB_TAG = 5, DT_SYMTAB_TAG = 6,
};
#define DT_GNU_HASH_TAG UINT64_C(0x6ffffef5)

struct dynamic {
	uint64_t strings, symbols, hash;
};

static bool read_dynamic(const struct managed_memory *m, uint64_t base,
			 const struct managed_elf *elf, struct dynamic *out)
{
	uint8_t bytes[DYNAMIC_MAX * DYN_BYTES];
	uint64_t at = managed_elf_segment(elf, MANAGED_PT_DYNAMIC);
	size_t got, i;

	memset(out, 0, sizeof(*out));
	if (!at)
		return false;
	got = m->read(m->ctx, at, bytes, sizeof(bytes)) / DYN_BYTES;
	for (i = 0; i < got && le64(bytes + i * DYN_BYTES); i++) {
		uint64_t tag = le64(bytes + i * DYN_BYTES);
		uint64_t value = le64(bytes + i * DYN_BYTES + 8);
		uint64_t address = value < base ? elf->bias + value : value;

		if (tag == DT_STRTAB_TAG)
			out->strings = address;
		else if (tag == DT_SYMTAB_TAG)
			out->symbols = address;
		else if (tag == DT_GNU_HASH_TAG)
			out->hash = address;
	}
	return out->strings && out->symbols && out->hash;
}

/*
 * The look-up of the dynamic linker. Layout: u32 buckets, first symbol, bloom words, shift; u64
 * bloom[]; u32 buckets[]: the first symbol of each; u32 chains[]: a hash for each symbol from the
 * first on, bit 0 set at the end of a bucket.
 * Source: https://flapenguin.me/elf-dt-gnu-hash
 */
struct hash_table {
	uint32_t nbuckets, first;
	uint64_t buckets, chains;
};

static bool read_hash_table(const struct managed_memory *m, uint64_t at, struct hash_table *out)
{
	uint8_t head[16];

	if (!managed_read(m, at, head, sizeof(head)))
		return false;
	out->nbuckets = le32(head);
	out->first = le32(head + 4);
	out->buckets = at + sizeof(head) + 8 * (uint64_t)le32(head + 8);
	out->chains = out->buckets + 4 * (uint64_t)out->nbuckets;
	return out->nbuckets && out->nbuckets <= HASH_BUCKETS_MAX;
}

static uint32_t hash_of(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (unsigned char)*name;
	return h;
}

static bool read_u32(const struct managed_memory *m, uint64_t at, uint32_t *out)
{
	uint8_t bytes[4];

	if (!managed_read(m, at, bytes, sizeof(bytes)))
		return false;
	*out = le32(bytes);
	return true;
}

/* Whether this symbol has that name, and is defined: takes it. */
static bool take_symbol(const struct managed_memory *m, const struct dynamic *d, uint64_t bias,
			uint32_t number, struct managed_export *wanted)
{
	size_t n = strlen(wanted->name) + 1;
	uint8_t symbol[SYM_BYTES];
	char name[NAME_MAX_BYTES];

	if (n > sizeof(name) ||
	    !managed_read(m, d->symbols + (uint64_t)number * SYM_BYTES, symbol, sizeof(symbol)) ||
	    !le16(symbol + 6) ||             /* section 0: this file does not define it */
	    !managed_read(m, d->strings + le32(symbol), name, n) ||
	    memcmp(name, wanted->name, n) != 0)
		return false;
	wanted->at = bias + le64(symbol + 8);
	wanted->size = le64(symbol + 16);
	return true;
}

/* returns  false: the tables cannot be read */
static bool find_symbol(const struct managed_memory *m, const struct dynamic *d,
			const struct hash_table *t, uint64_t bias, struct managed_export *wanted)
{
	uint32_t hash = hash_of(wanted->name), number, chain, i;

	if (!read_u32(m, t->buckets + 4 * (uint64_t)(hash % t->nbuckets), &number))
		return false;
	if (number < t->first)
		return true;                 /* the bucket is empty */
	for (i = 0; i < CHAIN_MAX; i++, number++) {
		if (!read_u32(m, t->chains + 4 * (uint64_t)(number - t->first), &chain))
			return false;
		if ((chain | 1) == (hash | 1) && take_symbol(m, d, bias, number, wanted))
			break;
		if (chain & 1)
			break;
	}
	return true;
}

int managed_exports_read(const struct managed_memory *memory, uint64_t base,
			 struct managed_export *wanted, unsigned nwanted, struct err *err)
{
	struct hash_table table;
	struct managed_elf elf;
	struct dynamic d;
	unsigned i;

	if (!managed_elf_read(memory, base, &elf) || !read_dynamic(memory, base, &elf, &d))
		return err_set(err, ERR_IO, "its file cannot be read in memory");
	if (!read_hash_table(memory, d.hash, &table))
		return err_set(err, ERR_IO, "the symbols of its file cannot be read");
	for (i = 0; i < nwanted; i++)
		if (!find_symbol(memory, &d, &table, elf.bias, &wanted[i]))
			return err_set(err, ERR_IO, "the symbols of its file cannot be read");
	return 0;
}
