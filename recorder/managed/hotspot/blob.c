#include "managed/hotspot/blob.h"

#include "base/array.h"
#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

/* Ceilings; in brackets the largest seen. */
#define HOPS_MAX 4096u                       /* in the segment map (9) */
#define BLOB_BYTES_MAX (16u << 20)           /* (167 KB, stubs apart) */
#define CODE_BYTES_MAX (1u << 20)            /* copied */
#define FRAME_WORDS_MAX (1u << 17)           /* (96) */
#define TABLE_BYTES_MAX (1u << 20)           /* metadata, scopes (65 KB) */
#define PCS_MAX 65536u                       /* (916) */
#define HEAD_BYTES_MAX 4096u                 /* (376) */
#define BLOCK_BYTES_MAX 64u                  /* of a block before its blob (16) */

#define SEGMAP_BATCH 1024u
#define PC_DESC_BYTES 16u

/* ---- from an address to its blob ------------------------------------------------------------- */

/*
 * The segment in which the block of a segment begins: an entry of the map says how far back to go,
 * 0 = it begins here, 255 = the segment is free.
 */
static bool find_block(const struct hotspot_heap *h, const struct managed_memory *m, uint64_t seg,
		       uint64_t *out)
{
	uint8_t map[SEGMAP_BATCH];
	uint64_t first = 1, n = 0;
	unsigned hops;

	for (hops = 0; hops < HOPS_MAX; hops++) {
		uint8_t step;

		if (seg < first || seg - first >= n) {
			first = seg + 1 > SEGMAP_BATCH ? seg + 1 - SEGMAP_BATCH : 0;
			n = seg + 1 - first;
			if (!managed_read(m, h->segmap + first, map, (size_t)n))
				return false;
		}
		step = map[seg - first];
		if (step == 0) {
			*out = seg;
			return true;
		}
		if (step == 255 || step > seg)
			return false;
		seg -= step;
	}
	return false;
}

static bool find_start(const struct hotspot_layout *l, const struct managed_memory *m,
		       const struct hotspot_heap *h, uint64_t pc, uint64_t *start)
{
	uint64_t seg = 0, block, high, used;

	if (!hotspot_read(l, m, F_SPACE_HIGH, h->address + l->fields[F_HEAP_MEMORY].at, &high) ||
	    pc >= high || high > h->high_boundary)
		return false;
	if (!find_block(h, m, (pc - h->low) >> h->log2_segment, &seg))
		return false;
	block = h->low + (seg << h->log2_segment);
	if (!hotspot_read(l, m, F_BLOCK_USED, block + l->fields[F_BLOCK_HEADER].at, &used) ||
	    !(used & 0xff))
		return false;
	*start = block + l->sizes[T_HEAP_BLOCK];
	return true;
}

/* ---- its header ------------------------------------------------------------------------------ */

static enum hotspot_kind kind_of(const char *name, uint64_t frame_words)
{
	static const struct { const char *prefix; enum hotspot_kind kind; } kinds[] = {
		{"nmethod", BLOB_NMETHOD}, {"native nmethod", BLOB_NATIVE},
		{"Interpreter", BLOB_INTERPRETER}, {"StubRoutines", BLOB_STUBS},
		{"Stub Generator", BLOB_STUBS}, {"vtable chunks", BLOB_VTABLE},
		{"I2C/C2I adapters", BLOB_ADAPTER}, {"MethodHandles adapters", BLOB_MH_ADAPTER},
		{"native signature handlers", BLOB_SIGNATURE}, {"upcall_stub", BLOB_UPCALL},
		{"ExceptionBlob", BLOB_EXCEPTION}, {"_rethrow_Java", BLOB_EXCEPTION},
		{"SafepointBlob", BLOB_SAFEPOINT},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(kinds); i++)
		if (strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0)
			return kinds[i].kind;
	return frame_words ? BLOB_RUNTIME : BLOB_OTHER;
}

struct head {
	const struct hotspot_layout *l;
	uint64_t start;
	size_t n;
	uint8_t bytes[HEAD_BYTES_MAX];
};

static uint64_t get(const struct head *h, enum hotspot_field_id id)
{
	return hotspot_get(h->l, id, h->bytes, h->n);
}

/* A pointer in some versions, an offset from the blob's start in others. */
static uint64_t place(const struct head *h, enum hotspot_field_id pointer,
		      enum hotspot_field_id offset)
{
	int64_t from_start;

	if (hotspot_has(h->l, pointer))
		return get(h, pointer);
	if (!hotspot_has(h->l, offset))
		return 0;
	from_start = hotspot_int(get(h, offset));
	return from_start > 0 ? h->start + (uint64_t)from_start : 0;
}

static size_t head_bytes(const struct hotspot_layout *l)
{
	return l->sizes[T_NMETHOD] < HEAD_BYTES_MAX ? l->sizes[T_NMETHOD] : HEAD_BYTES_MAX;
}

static bool read_head(const struct hotspot_layout *l, const struct managed_memory *m,
		      uint64_t start, struct head *h)
{
	h->l = l;
	h->start = start;
	/* A small blob at the heap's end is shorter than an nmethod's header. */
	h->n = m->read(m->ctx, start, h->bytes, head_bytes(l));
	return h->n >= l->sizes[T_BLOB];
}

static void identify(const struct head *h, bool compiled, struct hotspot_identity *out)
{
	*out = (struct hotspot_identity){.name = get(h, F_BLOB_NAME),
					 .size = (uint32_t)get(h, F_BLOB_SIZE)};
	if (compiled) {
		out->method = get(h, F_METHOD);
		out->compile_id = (uint32_t)get(h, F_COMPILE_ID);
	}
}

static bool has_method(enum hotspot_kind kind)
{
	return kind == BLOB_NMETHOD || kind == BLOB_NATIVE;
}

static void read_name(const struct managed_memory *m, uint64_t at, char out[BLOB_NAME_BYTES])
{
	size_t got = at ? m->read(m->ctx, at, out, BLOB_NAME_BYTES - 1) : 0;

	out[got] = '\0';
}

void hotspot_identity_ahead(const struct hotspot_layout *l, struct managed_ahead *ahead,
			    uint64_t start)
{
	uint64_t block = l->sizes[T_HEAP_BLOCK];

	managed_ahead_add(ahead, start - block, (size_t)block + head_bytes(l));
}

bool hotspot_identity_read(const struct hotspot_layout *l, const struct managed_memory *memory,
			   uint64_t start, bool compiled, struct hotspot_identity *out)
{
	uint64_t block = l->sizes[T_HEAP_BLOCK], used_at;
	uint8_t bytes[HEAD_BYTES_MAX + BLOCK_BYTES_MAX];
	struct head h = {.l = l, .start = start};
	size_t n = head_bytes(l);

	used_at = l->fields[F_BLOCK_HEADER].at + l->fields[F_BLOCK_USED].at;
	if (block > BLOCK_BYTES_MAX || used_at >= block)
		return false;
	/* A small blob at the heap's end is shorter than an nmethod's header. */
	n = memory->read(memory->ctx, start - block, bytes, (size_t)block + n);
	if (n < block + l->sizes[T_BLOB])
		return false;
	h.n = n - (size_t)block;
	memcpy(h.bytes, bytes + block, h.n);
	identify(&h, compiled, out);
	if (!bytes[used_at])
		out->name = 0;
	return true;
}

static bool take_head(struct hotspot_blob *b, const struct head *h, const struct managed_memory *m)
{
	int32_t complete, words = hotspot_int(get(h, F_BLOB_FRAME_SIZE));

	b->start = h->start;
	b->frame_words = words > 0 ? (uint64_t)words : 0;    /* -1: a stub without a frame */
	read_name(m, get(h, F_BLOB_NAME), b->name);
	b->kind = kind_of(b->name, b->frame_words);
	identify(h, has_method(b->kind), &b->identity);
	b->code_begin = place(h, F_BLOB_CODE_BEGIN, F_BLOB_CODE_OFFSET);
	b->code_end = place(h, F_BLOB_CODE_END, F_BLOB_DATA_OFFSET);
	complete = h->l->fields[F_BLOB_FRAME_COMPLETE].bytes == 2
			   ? (int16_t)(uint16_t)get(h, F_BLOB_FRAME_COMPLETE)
			   : hotspot_int(get(h, F_BLOB_FRAME_COMPLETE));
	b->frame_complete = complete > 0 ? (uint64_t)complete : 0;
	return b->name[0] && b->frame_words <= FRAME_WORDS_MAX &&
	       b->identity.size >= h->l->sizes[T_BLOB] && b->identity.size <= BLOB_BYTES_MAX &&
	       b->code_begin >= b->start && b->code_end >= b->code_begin &&
	       b->code_end <= b->start + b->identity.size;
}

/* ---- an nmethod's tables --------------------------------------------------------------------- */

struct range {
	uint64_t begin, end;
};

/* Copy a range that has at most max bytes; NULL when it is empty or makes no sense. */
static uint8_t *copy_range(const struct managed_memory *m, struct range r, uint64_t max,
			   uint32_t *n)
{
	uint8_t *bytes;

	*n = 0;
	if (!r.begin || r.end <= r.begin || r.end - r.begin > max)
		return NULL;
	bytes = malloc((size_t)(r.end - r.begin));
	if (bytes && !managed_read(m, r.begin, bytes, (size_t)(r.end - r.begin))) {
		free(bytes);
		return NULL;
	}
	if (bytes)
		*n = (uint32_t)(r.end - r.begin);
	return bytes;
}

/* Where scopes, PcDescs and metadata are: in the blob (8-22), or beside it. */
static void find_tables(const struct head *h, const struct hotspot_blob *b, struct range *scopes,
			struct range *pcs, struct range *metadata)
{
	uint64_t immutable = get(h, F_IMMUTABLE_DATA), end;

	if (hotspot_has(h->l, F_IMMUTABLE_DATA)) {
		end = get(h, F_IMMUTABLE_BYTES);
		if (hotspot_has(h->l, F_IMMUTABLE_REFS) && get(h, F_IMMUTABLE_REFS) < end)
			end = get(h, F_IMMUTABLE_REFS);
		scopes->begin = immutable + get(h, F_SCOPES_OFFSET);
		scopes->end = immutable + end;
		pcs->begin = immutable + get(h, F_PCS_OFFSET);
		pcs->end = scopes->begin;
	} else {
		pcs->begin = b->start + get(h, F_PCS_OFFSET);
		pcs->end = b->start + get(h, F_DEPENDENCIES_OFFSET);
		scopes->begin = place(h, F_SCOPES_BEGIN, F_SCOPES_OFFSET);
		scopes->end = pcs->begin;
	}
	if (hotspot_has(h->l, F_BLOB_MUTABLE_DATA)) {
		uint64_t data = get(h, F_BLOB_MUTABLE_DATA);

		metadata->begin = data + get(h, F_BLOB_RELOCATION_BYTES);
		metadata->end = data + get(h, F_BLOB_MUTABLE_BYTES);
	} else if (hotspot_has(h->l, F_IMMUTABLE_DATA)) {
		metadata->begin = place(h, F_BLOB_CODE_END, F_BLOB_DATA_OFFSET) +
				  get(h, F_METADATA_OFFSET);
		metadata->end = b->start + b->identity.size;
	} else {
		metadata->begin = b->start + get(h, F_METADATA_OFFSET);
		metadata->end = scopes->begin;
	}
}

/* PcDesc: four int32, pc offset, scope, objects, flags. They must rise, or none counts. */
static bool take_pcs(struct hotspot_blob *b, const uint8_t *bytes, uint32_t n)
{
	uint32_t i;

	b->npcs = n / PC_DESC_BYTES;
	b->pcs = malloc(b->npcs * sizeof(*b->pcs) + 1);
	if (!b->pcs)
		return false;
	for (i = 0; i < b->npcs; i++) {
		const uint8_t *at = bytes + (size_t)i * PC_DESC_BYTES;

		b->pcs[i] = (struct hotspot_pc){hotspot_int(le32(at)), hotspot_int(le32(at + 4))};
		if (i && b->pcs[i].pc < b->pcs[i - 1].pc) {
			b->npcs = 0;
			return true;
		}
	}
	return true;
}

static bool take_metadata(struct hotspot_blob *b, const uint8_t *bytes, uint32_t n)
{
	uint32_t i;

	b->nmetadata = n / 8;
	b->metadata = malloc(b->nmetadata * sizeof(*b->metadata) + 1);
	b->numbers = malloc(b->nmetadata * sizeof(*b->numbers) + 1);
	if (!b->metadata || !b->numbers)
		return false;
	for (i = 0; i < b->nmetadata; i++) {
		b->metadata[i] = le64(bytes + (size_t)i * 8);
		b->numbers[i] = NUMBER_UNKNOWN;
	}
	return true;
}

static bool take_tables(struct hotspot_blob *b, const struct head *h,
			const struct managed_memory *m)
{
	struct range scopes = {0}, pcs = {0}, metadata = {0};
	uint8_t *bytes;
	uint32_t n;
	bool taken;

	find_tables(h, b, &scopes, &pcs, &metadata);
	b->scopes = copy_range(m, scopes, TABLE_BYTES_MAX, &b->nscopes);
	bytes = copy_range(m, pcs, (uint64_t)PCS_MAX * PC_DESC_BYTES, &n);
	taken = take_pcs(b, bytes, n);
	free(bytes);
	if (!taken)
		return false;
	bytes = copy_range(m, metadata, TABLE_BYTES_MAX, &n);
	taken = take_metadata(b, bytes, n);
	free(bytes);
	return taken;
}

static void take_nmethod(struct hotspot_blob *b, const struct head *h)
{
	int32_t orig_pc = hotspot_int(get(h, F_ORIG_PC));

	b->level = (unsigned)get(h, F_COMP_LEVEL) & 0xff;
	b->verified_entry = hotspot_has(h->l, F_VERIFIED_ENTRY)
				    ? get(h, F_VERIFIED_ENTRY)
				    : b->code_begin + get(h, F_VERIFIED_ENTRY_OFFSET);
	b->osr_entry = get(h, F_OSR_ENTRY);
	b->deopt = place(h, F_DEOPT_BEGIN, F_DEOPT_OFFSET);
	b->deopt_mh = place(h, F_DEOPT_MH_BEGIN, F_DEOPT_MH_OFFSET);
	b->orig_pc = orig_pc > 0 ? (uint64_t)orig_pc : 0;
	b->method_number = NUMBER_UNKNOWN;
}

struct hotspot_blob *hotspot_blob_read(const struct hotspot_layout *l,
				       const struct managed_memory *memory, uint64_t pc)
{
	const struct hotspot_heap *heap = hotspot_heap_of(l, pc);
	struct hotspot_blob *b;
	struct range code;
	uint64_t start;
	struct head h;

	if (!heap || !find_start(l, memory, heap, pc, &start) || !read_head(l, memory, start, &h))
		return NULL;
	b = calloc(1, sizeof(*b));
	if (!b || !take_head(b, &h, memory) || pc < b->start ||
	    pc >= b->start + b->identity.size || b->start + b->identity.size > heap->high_boundary)
		goto refused;
	if (has_method(b->kind))
		take_nmethod(b, &h);
	if (b->kind == BLOB_NMETHOD && !take_tables(b, &h, memory))
		goto refused;
	code = (struct range){b->code_begin, b->code_end};
	b->code = copy_range(memory, code, CODE_BYTES_MAX, &b->ncode);
	b->bytes = sizeof(*b) + b->ncode + b->nscopes + b->npcs * sizeof(*b->pcs) +
		   b->nmetadata * (sizeof(*b->metadata) + sizeof(*b->numbers));
	return b;
refused:
	hotspot_blob_free(b);
	return NULL;
}

void hotspot_blob_free(struct hotspot_blob *b)
{
	if (!b)
		return;
	free(b->pcs);
	free(b->scopes);
	free(b->metadata);
	free(b->numbers);
	free(b->code);
	free(b);
}

/* ---- inlined methods ------------------------------------------------------------------------- */

/* The first record whose pc offset is at least that. */
static uint32_t first_from(const struct hotspot_blob *b, int64_t offset)
{
	uint32_t low = 0, high = b->npcs;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (b->pcs[middle].pc < offset)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

const struct hotspot_pc *hotspot_pc_exact(const struct hotspot_blob *b, uint64_t pc)
{
	int64_t offset = (int64_t)(pc - b->code_begin);
	uint32_t i = first_from(b, offset);

	return i < b->npcs && b->pcs[i].pc == offset ? &b->pcs[i] : NULL;
}

const struct hotspot_pc *hotspot_pc_next(const struct hotspot_blob *b, uint64_t pc)
{
	uint32_t i = first_from(b, (int64_t)(pc - b->code_begin) + 1);

	return i < b->npcs ? &b->pcs[i] : NULL;
}

bool hotspot_unsigned5(const uint8_t *bytes, uint32_t n, unsigned min, uint32_t *at, uint32_t *out)
{
	uint32_t sum = 0;
	unsigned i;

	for (i = 0; i < 5; i++) {
		uint8_t b;

		if (*at >= n || bytes[*at] < min)
			return false;
		b = bytes[(*at)++];
		sum += (uint32_t)(b - min) << (6 * i);
		if (b < 192)
			break;
	}
	*out = sum;
	return true;
}

uint32_t hotspot_scopes(const struct hotspot_layout *l, const struct hotspot_blob *b,
			const struct hotspot_pc *pc, struct hotspot_scope out[HOTSPOT_INLINE_MAX])
{
	uint32_t offset = pc && pc->scope > 0 ? (uint32_t)pc->scope : 0, n = 0;

	while (offset && n < HOTSPOT_INLINE_MAX) {
		uint32_t at = offset, sender, method, bci;

		if (!hotspot_unsigned5(b->scopes, b->nscopes, l->unsigned5_min, &at, &sender) ||
		    !hotspot_unsigned5(b->scopes, b->nscopes, l->unsigned5_min, &at, &method) ||
		    !hotspot_unsigned5(b->scopes, b->nscopes, l->unsigned5_min, &at, &bci) ||
		    sender >= offset || method > b->nmetadata) {
			n = 0;
			break;
		}
		out[n].metadata = method ? method - 1 : UINT32_MAX;
		out[n].bci = (int32_t)bci - 1;
		n++;
		offset = sender;
	}
	if (n)
		return n;
	out[0] = (struct hotspot_scope){UINT32_MAX, -1};
	return 1;
}
