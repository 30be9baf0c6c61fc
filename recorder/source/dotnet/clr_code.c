#include "source/dotnet/clr_code.h"

#include "base/array.h"
#include "base/bytes.h"
#include "managed/exports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVELS 5
#define LEVEL_BITS 8
#define LEVEL_MASK 255u
#define LAST_BITS 17                         /* of an address that the levels do not look at */
#define FRAGMENTS_MAX 64
#define SECTION_GENERATED 2u                 /* and no other flag: 1 = it may be given back */
#define BLOCK_BYTES 32u
#define WORDS 128u                           /* of a map that are read at once: 32 KB of code */
#define WORDS_MAX (64u * WORDS)              /* a method is not longer: 2 MB */
#define STUBS_LAST 15u                       /* smaller headers say what stub it is */
#define MODULE_BYTES 0x200u
#define STEP_BYTES 65536u
#define PAGE_BYTES 4096u

enum { KIND_PLAIN = 0, KIND_GENERIC = 5 };   /* of a MethodDesc: the low 3 bits of u16 6 */

struct clr_module {
	uint64_t address;
	uint8_t *bytes;                      /* NULL = not read now */
	struct clr_metadata metadata;
	uint64_t root;                       /* where it is in memory; 0 = it has none */
	uint32_t nbytes;
};

bool clr_code_open(struct clr_code *c, const struct managed_memory *memory, uint64_t base)
{
	struct managed_export table = {.name = "g_dacTable"};

	*c = (struct clr_code){0};
	if (managed_exports_read(memory, base, &table, 1, NULL) || !table.at ||
	    !managed_read_u64(memory, table.at, &c->ranges))
		c->ranges = 0;
	return c->ranges != 0;
}

/* ---- from an address to its method ----------------------------------------------------------- */

static bool find_section(const struct clr_code *c, const struct managed_memory *m,
			 uint64_t address, uint64_t *section)
{
	uint64_t at = c->ranges;
	uint8_t fragment[32];
	int i;

	for (i = LEVELS - 1; i >= 0; i--) {
		uint64_t number = address >> (LAST_BITS + LEVEL_BITS * i) & LEVEL_MASK;

		if (!managed_read_u64(m, at + 8 * number, &at) || !(at &= ~1ULL))
			return false;
	}
	for (i = 0; at && i < FRAGMENTS_MAX; i++) {
		if (!managed_read(m, at, fragment, sizeof(fragment)))
			return false;
		*section = le64(fragment + 24);
		if (le64(fragment + 8) <= address && address < le64(fragment + 16))
			return true;
		at = le64(fragment) & ~1ULL;
	}
	return false;
}

/* The last method that begins at or before a place of its heap, by the map of them. */
static bool find_start(const struct managed_memory *m, uint64_t begin, uint64_t map, uint64_t pc,
		       uint64_t *start)
{
	uint64_t block = (pc - begin) / BLOCK_BYTES, first, at;
	uint8_t words[4 * WORDS];
	uint32_t seen, word, nibble;

	for (seen = 0; seen < WORDS_MAX; seen += WORDS) {
		first = block / 8 - block / 8 % WORDS;
		if (m->read(m->ctx, map + 4 * first, words, sizeof(words)) <
		    4 * (block / 8 - first + 1))
			return false;
		for (;; block--) {
			word = le32(words + 4 * (block / 8 - first));
			nibble = word >> (28 - 4 * (block % 8)) & 15;
			at = begin + block * BLOCK_BYTES + 4 * (uint64_t)(nibble - 1);
			if (nibble && at <= pc) {
				*start = at;
				return true;
			}
			if (block == 8 * first)
				break;
		}
		if (!block--)
			return false;
	}
	return false;
}

struct found {
	uint64_t start, module;
	uint32_t method, type;               /* numbers in the module's metadata */
	uint32_t wide_type;                  /* as later versions have it */
};

static bool find_method(const struct clr_code *c, const struct managed_memory *m, uint64_t pc,
			struct found *out)
{
	uint64_t section, header, desc;
	uint8_t s[0x30], heap[0x30], d[8], chunk[0x18], type[0x20];

	if (!find_section(c, m, pc, &section) || !managed_read(m, section, s, sizeof(s)) ||
	    le32(s + 0x10) != SECTION_GENERATED ||
	    !managed_read(m, le64(s + 0x28), heap, sizeof(heap)) || le64(heap + 0x20) > pc ||
	    pc - le64(heap + 0x20) > UINT32_MAX ||
	    !find_start(m, le64(heap + 0x20), le64(heap + 0x28), pc, &out->start) ||
	    !managed_read_u64(m, out->start - 8, &header) || header <= STUBS_LAST ||
	    !managed_read_u64(m, header + 0x18, &desc) || !managed_read(m, desc, d, sizeof(d)))
		return false;
	if ((d[6] & 7) != KIND_PLAIN && (d[6] & 7) != KIND_GENERIC)
		return false;
	if (!managed_read(m, desc - 8 * (uint64_t)d[2] - sizeof(chunk), chunk, sizeof(chunk)) ||
	    !managed_read(m, le64(chunk), type, sizeof(type)))
		return false;
	out->method = (le16(chunk + 0x12) & 0xfffu) << 12 | (le16(d) & 0xfffu);
	out->type = le16(type + 0xa);
	out->wide_type = le32(type + 8) >> 8;
	out->module = le64(type + 0x18);
	return true;
}

/* ---- a module's metadata --------------------------------------------------------------------- */

static void drop_bytes(struct clr_code *c, struct clr_module *m)
{
	if (!m->bytes)
		return;
	clr_metadata_free(&m->metadata);
	free(m->bytes);
	m->bytes = NULL;
	c->bytes -= m->nbytes;
}

/* A name: text between NULs. */
static bool is_name(const struct managed_memory *m, uint64_t at)
{
	uint8_t text[CLR_MODULE_BYTES];
	size_t n, i;

	n = at ? m->read(m->ctx, at - 1, text, sizeof(text)) : 0;
	if (n < 3 || text[0])
		return false;
	for (i = 1; i < n && text[i]; i++)
		if (text[i] <= ' ' || text[i] == 0x7f)
			return false;
	return i > 1 && i < n;
}

/* Is it the root of metadata, which have a string at this address? */
static bool is_root(const struct managed_memory *m, uint64_t at, uint64_t string, uint32_t *nbytes)
{
	uint8_t root[CLR_ROOT_BYTES];
	uint32_t strings_at, strings_bytes;
	size_t n = m->read(m->ctx, at, root, sizeof(root));

	*nbytes = clr_metadata_bytes(root, (uint32_t)n, &strings_at, &strings_bytes);
	return *nbytes && *nbytes <= CLR_METADATA_MAX_BYTES && string - at >= strings_at &&
	       string - at - strings_at < strings_bytes;
}

/* The root of the metadata that a string is in: it is the nearest before it. */
static uint64_t find_root(const struct managed_memory *m, uint64_t string, uint32_t *nbytes)
{
	uint8_t *bytes = malloc(STEP_BYTES);
	uint64_t end = string & ~3ULL, from, root = 0;
	size_t step = STEP_BYTES, i;

	while (bytes && !root && end > PAGE_BYTES && string - end < CLR_METADATA_MAX_BYTES) {
		/* Steps end at pages: what is before may not be readable. */
		from = (end - 1) - (end - 1) % step;
		if (m->read(m->ctx, from, bytes, (size_t)(end - from)) < end - from) {
			if (step == PAGE_BYTES)
				break;
			step = PAGE_BYTES;
			continue;
		}
		for (i = (size_t)(end - from) & ~(size_t)3; i && !root; i -= 4)
			if (memcmp(bytes + i - 4, "BSJB", 4) == 0 &&
			    is_root(m, from + i - 4, string, nbytes))
				root = from + i - 4;
		end = from;
	}
	free(bytes);
	return root;
}

static void find_metadata(struct clr_module *module, const struct managed_memory *m)
{
	uint8_t bytes[MODULE_BYTES];
	size_t n = m->read(m->ctx, module->address, bytes, sizeof(bytes)), at;

	for (at = 0; at + 8 <= n && !module->root; at += 8)
		if (is_name(m, le64(bytes + at)))
			module->root = find_root(m, le64(bytes + at), &module->nbytes);
}

static bool read_metadata(struct clr_code *c, struct clr_module *module,
			  const struct managed_memory *m)
{
	uint32_t i;

	if (module->bytes || !module->root)
		return module->bytes != NULL;
	for (i = 0; i < c->nmodules && c->bytes + module->nbytes > CLR_CODE_BYTES_MAX; i++)
		drop_bytes(c, &c->modules[i]);
	module->bytes = malloc(module->nbytes);
	if (!module->bytes)
		return false;
	c->bytes += module->nbytes;
	if (managed_read(m, module->root, module->bytes, module->nbytes) &&
	    clr_metadata_open(&module->metadata, module->bytes, module->nbytes))
		return true;
	drop_bytes(c, module);
	module->root = 0;
	return false;
}

static struct clr_module *module_at(struct clr_code *c, const struct managed_memory *m,
				    uint64_t address)
{
	struct clr_module *module;
	uint32_t i;

	for (i = 0; i < c->nmodules; i++)
		if (c->modules[i].address == address)
			return &c->modules[i];
	if (c->nmodules == CLR_CODE_MODULES_MAX ||
	    ARRAY_ROOM(c->modules, c->room, c->nmodules + 1))
		return NULL;
	module = &c->modules[c->nmodules++];
	*module = (struct clr_module){.address = address};
	find_metadata(module, m);
	return module;
}

/* ---- together -------------------------------------------------------------------------------- */

bool clr_code_find(struct clr_code *c, const struct managed_memory *memory, uint64_t address,
		   struct clr_method *out)
{
	struct clr_module *module;
	struct buf name = {0}, module_name = {0};
	struct found f;
	uint32_t type;
	bool named;

	if (!c->ranges || !find_method(c, memory, address, &f))
		return false;
	module = module_at(c, memory, f.module);
	if (!module || !read_metadata(c, module, memory))
		return false;
	type = clr_type_of_method(&module->metadata, f.method);
	if (!type || (type != f.type && type != f.wide_type))
		return false;
	named = clr_put_method_name(&module->metadata, f.method, &name);
	clr_put_module_name(&module->metadata, &module_name);
	out->start = f.start;
	snprintf(out->name, sizeof(out->name), "%s", buf_text(&name));
	snprintf(out->module, sizeof(out->module), "%s", buf_text(&module_name));
	buf_free(&name);
	buf_free(&module_name);
	return named;
}

void clr_code_free(struct clr_code *c)
{
	uint32_t i;

	for (i = 0; i < c->nmodules; i++)
		drop_bytes(c, &c->modules[i]);
	free(c->modules);
	*c = (struct clr_code){0};
}
