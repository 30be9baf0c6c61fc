/*
 * Sections, index and the heads of CIEs and FDEs.
 *
 *   .eh_frame_hdr                          .eh_frame, a list of
 *    0  u8   version 1                      0  u32  length of what follows; 0 = end of the list;
 *    1  u8   encoding of the pointer                ffffffff = a u64 length follows
 *    2  u8   encoding of the count          4  u32  0 = CIE; else FDE: distance from here back to
 *    3  u8   encoding of the table                  its CIE
 *    4       pointer to .eh_frame
 *            number of FDEs                 CIE: u8 version (1, 3, 4), text augmentation,
 *            table: address, FDE; sorted      [v4: u8 address size, u8 segment size], uleb code
 *                                             alignment, sleb data alignment, return column (v1 u8,
 *                                             else uleb), ['z': uleb length, data], instructions
 *                                           FDE: start, bytes, ['z': uleb length, data],
 *                                             instructions
 */
#include "unwind/elf_eh_private.h"

#include "base/sort.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

enum {
	LEB_MAX_BYTES = 16,
	AUGMENTATION_MAX = 16,          /* letters; compilers use up to 6 */
	PAIR = 8,                       /* bytes of an index entry */
	CLONE_GAP = 32,                 /* bytes; glibc 2.36 has 10 */
};

/* ---- numbers --------------------------------------------------------------------------------- */

static uint64_t get_leb(struct eh_cursor *c, bool is_signed)
{
	uint64_t v = 0;
	unsigned shift = 0, n;

	for (n = 0; n < LEB_MAX_BYTES; n++, shift += 7) {
		uint64_t byte = eh_get(c, 1);

		if (shift < 64)
			v |= (byte & 0x7f) << shift;
		if (byte & 0x80)
			continue;
		if (is_signed && (byte & 0x40) && shift + 7 < 64)
			v |= UINT64_MAX << (shift + 7);
		return v;
	}
	c->bad = true;
	return 0;
}

uint64_t eh_get_uleb(struct eh_cursor *c)
{
	return get_leb(c, false);
}

int64_t eh_get_sleb(struct eh_cursor *c)
{
	return (int64_t)get_leb(c, true);
}

static uint64_t get_form(struct eh_cursor *c, unsigned form)
{
	switch (form) {
	case 0x0:
		return eh_get(c, c->is_32_bit ? 4 : 8);
	case 0x4:
	case 0xc:
		return eh_get(c, 8);
	case 0x1:
		return eh_get_uleb(c);
	case 0x2:
		return eh_get(c, 2);
	case 0x3:
		return eh_get(c, 4);
	case 0x9:
		return (uint64_t)eh_get_sleb(c);
	case 0xa:
		return (uint64_t)eh_get_signed(c, 2);
	case 0xb:
		return (uint64_t)eh_get_signed(c, 4);
	}
	c->bad = true;
	return 0;
}

uint64_t eh_get_pointer(struct eh_cursor *c, unsigned encoding, uint64_t data_vaddr)
{
	uint64_t here = c->vaddr + c->at;
	uint64_t v = get_form(c, encoding & EH_ENCODING_FORM);

	switch (encoding & ~(unsigned)EH_ENCODING_FORM) {
	case 0:
		return eh_address(c->is_32_bit, v);
	case EH_ENCODING_PCREL:
		return eh_address(c->is_32_bit, here + v);
	case EH_ENCODING_DATAREL:
		return eh_address(c->is_32_bit, data_vaddr + v);
	}
	c->bad = true;
	return 0;
}

/* ---- CIE and FDE ----------------------------------------------------------------------------- */

static struct eh_cursor cursor_at(const struct eh_frame *t, size_t at, size_t end)
{
	return (struct eh_cursor){.bytes = t->in.frames, .at = at, .end = end,
				  .vaddr = t->in.frames_vaddr, .is_32_bit = t->in.is_32_bit,
				  .bad = at > end};
}

/*
 * Read the length at `at`; returns a cursor over what follows, up to the end of the entry, bad when
 * that lies outside. A zero length gives an empty cursor.
 */
static struct eh_cursor open_entry(const struct eh_frame *t, size_t at)
{
	struct eh_cursor c = cursor_at(t, at, t->in.frames_bytes);
	uint64_t n = eh_get(&c, 4);

	if (n == 0xffffffff)
		n = eh_get(&c, 8);
	if (c.bad || n > c.end - c.at) {
		c.bad = true;
		return c;
	}
	c.end = c.at + (size_t)n;
	return c;
}

/* Read the letters after the 'z'. An unknown one ends it: the data's length skips the rest. */
static void read_augmentation(struct eh_cursor *c, const char *letters, struct eh_cie *cie)
{
	unsigned encoding;

	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->pointers = (uint8_t)eh_get(c, 1);
			break;
		case 'P':
			encoding = (unsigned)eh_get(c, 1);
			if (encoding != EH_ENCODING_OMIT)
				get_form(c, encoding & EH_ENCODING_FORM);
			break;
		case 'L':
			eh_get(c, 1);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':                /* pointer authentication of another machine */
			break;
		default:
			return;
		}
	}
}

static bool read_letters(struct eh_cursor *c, char letters[AUGMENTATION_MAX])
{
	unsigned i;

	for (i = 0; i < AUGMENTATION_MAX; i++) {
		letters[i] = (char)eh_get(c, 1);
		if (!letters[i])
			return !c->bad;
	}
	return false;
}

/* Read what is between the letters and the instructions. */
static bool read_cie_body(struct eh_cursor *c, unsigned version, const char *letters,
			  struct eh_cie *cie)
{
	unsigned word = c->is_32_bit ? 4 : 8;
	uint64_t column, n;
	size_t data;

	if (!strncmp(letters, "eh", 2)) {       /* GCC 2: a pointer */
		eh_get(c, word);
		letters += 2;
	}
	if (version == 4 && (eh_get(c, 1) != word || eh_get(c, 1) != 0))
		return false;
	cie->code_align = eh_get_uleb(c);
	cie->data_align = eh_get_sleb(c);
	column = version == 1 ? eh_get(c, 1) : eh_get_uleb(c);
	cie->return_column = (uint8_t)eh_register(c->is_32_bit, column);
	if (cie->return_column == EH_REGISTERS)
		return false;
	if (!*letters)
		return true;
	if (*letters != 'z')
		return false;
	cie->augmented = true;
	n = eh_get_uleb(c);
	if (c->bad || n > c->end - c->at)
		return false;
	data = c->at;
	read_augmentation(c, letters + 1, cie);
	c->at = data + (size_t)n;
	return true;
}

static bool read_cie(const struct eh_frame *t, size_t at, struct eh_cie *out)
{
	struct eh_cursor c = open_entry(t, at);
	struct eh_cie cie = {.at = at};
	char letters[AUGMENTATION_MAX];
	uint64_t version;

	if (eh_get(&c, 4) != 0)
		return false;
	version = eh_get(&c, 1);
	if ((version != 1 && version != 3 && version != 4) || !read_letters(&c, letters) ||
	    !read_cie_body(&c, (unsigned)version, letters, &cie) || c.bad)
		return false;
	cie.program = c.at;
	cie.end = c.end;
	*out = cie;
	return true;
}

/* fde->cie may be that of the FDE before, which is often the same. */
static bool read_fde(const struct eh_frame *t, size_t at, struct eh_fde *fde)
{
	struct eh_cursor c = open_entry(t, at);
	size_t distance_at = c.at;
	uint64_t distance = eh_get(&c, 4), n;

	if (c.bad || !distance || distance > distance_at)
		return false;
	if (fde->cie.at != distance_at - distance &&
	    !read_cie(t, distance_at - (size_t)distance, &fde->cie)) {
		fde->cie.at = SIZE_MAX;
		return false;
	}
	fde->start = eh_get_pointer(&c, fde->cie.pointers, t->in.header_vaddr);
	n = get_form(&c, fde->cie.pointers & EH_ENCODING_FORM);
	fde->end = fde->start + n;
	if (fde->cie.augmented) {
		n = eh_get_uleb(&c);
		if (c.bad || n > c.end - c.at)
			return false;
		c.at += (size_t)n;
	}
	fde->program = c.at;
	fde->program_end = c.end;
	return !c.bad && fde->end > fde->start;
}

/* ---- index ----------------------------------------------------------------------------------- */

/* The distance of an entry's address from the base. */
static int32_t entry_start(const struct eh_frame *t, uint32_t n)
{
	return (int32_t)le32(t->index + (size_t)n * PAIR);
}

static bool entry_fde(const struct eh_frame *t, uint32_t n, struct eh_fde *out)
{
	uint64_t at = t->base + (uint64_t)(int64_t)(int32_t)le32(t->index + (size_t)n * PAIR + 4) -
		      t->in.frames_vaddr;

	out->cie.at = SIZE_MAX;
	return at < t->in.frames_bytes && read_fde(t, (size_t)at, out);
}

static struct eh_cursor open_header(const uint8_t *header, size_t n, uint64_t vaddr)
{
	struct eh_cursor c = {.bytes = header, .end = n, .vaddr = vaddr};

	c.bad = !header || n < 4 || header[0] != 1;
	c.at = c.bad ? 0 : 4;
	return c;
}

bool eh_frame_pointer(const uint8_t *header, size_t header_bytes, uint64_t header_vaddr,
		      uint64_t *frames_vaddr)
{
	struct eh_cursor c = open_header(header, header_bytes, header_vaddr);
	uint64_t pointer = c.bad ? 0 : eh_get_pointer(&c, header[1], header_vaddr);

	if (!c.bad)
		*frames_vaddr = pointer;
	return !c.bad;
}

/* Use the file's index if it is sorted and has the encoding that every linker writes. */
static bool use_file_index(struct eh_frame *t)
{
	const uint8_t *header = t->in.header;
	struct eh_cursor c = open_header(header, t->in.header_bytes, t->in.header_vaddr);
	uint64_t n;
	uint32_t i;

	if (c.bad || header[3] != EH_ENCODING_TABLE)
		return false;
	eh_get_pointer(&c, header[1], t->in.header_vaddr);
	n = eh_get_pointer(&c, header[2], t->in.header_vaddr);
	if (c.bad || !n || n > EH_FRAME_MAX_FDES || n > (c.end - c.at) / PAIR)
		return false;
	for (i = 1; i < n; i++) {
		const uint8_t *at = header + c.at + (size_t)i * PAIR;

		if ((int32_t)le32(at - PAIR) > (int32_t)le32(at))
			return false;
	}
	t->index = header + c.at;
	t->count = (uint32_t)n;
	t->base = t->in.header_vaddr;
	return true;
}

/*
 * Visit each FDE that has a sane range within reach of the base: count them, or write items. Their
 * keys are addresses, as distances from the start of .eh_frame, + 2^31; the value is the FDE's.
 */
static uint32_t scan_fdes(const struct eh_frame *t, uint32_t max, struct sort_item *items)
{
	struct eh_fde fde = {.cie.at = SIZE_MAX};
	uint32_t n = 0;
	size_t at = 0;

	while (n < max) {
		struct eh_cursor c = open_entry(t, at);
		uint64_t start, id;
		size_t next = c.end;

		if (c.bad || c.at == c.end)
			break;
		id = eh_get(&c, 4);
		if (!c.bad && id && at <= INT32_MAX && read_fde(t, at, &fde)) {
			start = fde.start - t->in.frames_vaddr + 0x80000000u;
			if (start <= UINT32_MAX) {
				if (items)
					items[n] = (struct sort_item){start, {(uint32_t)at, 0}};
				n++;
			}
		}
		at = next;
	}
	return n;
}

/* Write the pairs that .eh_frame_hdr would have. */
static int build_index(struct eh_frame *t, struct err *err)
{
	uint32_t n = scan_fdes(t, EH_FRAME_MAX_FDES, NULL), i;
	struct sort_item *items;

	if (!n)
		return err_set(err, ERR_FORMAT, "its .eh_frame describes no functions");
	items = malloc((size_t)n * 2 * sizeof(*items));
	t->own_index = malloc((size_t)n * PAIR);
	if (!items || !t->own_index) {
		free(items);
		return err_memory(err, "for an index of %u functions", n);
	}
	t->count = scan_fdes(t, n, items);
	sort_items(items, items + n, n);
	for (i = 0; i < n; i++) {
		put_le32(t->own_index + (size_t)i * PAIR, (uint32_t)items[i].key - 0x80000000u);
		put_le32(t->own_index + (size_t)i * PAIR + 4, items[i].value[0]);
	}
	free(items);
	t->index = t->own_index;
	t->base = t->in.frames_vaddr;
	return 0;
}

/*
 * .debug_frame: a length, which does not count itself; 0xffffffff of a CIE, else the place of the
 * FDE's CIE (DWARF 5, section 7.24). .eh_frame has 0, and the distance back from this number.
 */
void eh_frame_of_debug_frame(uint8_t *bytes, size_t n)
{
	size_t at = 0, length;
	uint32_t id;

	while (n - at >= 8) {
		length = le32(bytes + at);
		if (length < 4 || length > n - at - 4)       /* 0xffffffff: 64-bit DWARF */
			break;
		id = le32(bytes + at + 4);
		/* Not before it: no CIE is that far away. */
		put_le32(bytes + at + 4, id == UINT32_MAX  ? 0
					 : id < at	   ? (uint32_t)(at + 4 - id)
							   : UINT32_MAX);
		at += 4 + length;
	}
	memset(bytes + at, 0, n - at < 4 ? n - at : 4);
}

/* ---- life and lookup ------------------------------------------------------------------------- */

int eh_frame_new(const struct eh_sections *in, struct eh_frame **out, struct err *err)
{
	static _Atomic uint32_t ids;
	struct eh_frame *t = calloc(1, sizeof(*t));
	int rc = 0;

	if (!t) {
		free(in->header);
		free(in->frames);
		return err_memory(err, "for unwind tables");
	}
	t->in = *in;
	t->id = atomic_fetch_add(&ids, 1) + 1;
	if (in->frames_bytes > EH_FRAME_MAX_BYTES || in->header_bytes > EH_FRAME_MAX_BYTES)
		rc = err_set(err, ERR_LIMIT, "its unwind tables have %zu bytes, the limit is %zu",
			     in->frames_bytes + in->header_bytes, EH_FRAME_MAX_BYTES);
	else if (!in->frames || !in->frames_bytes)
		rc = err_set(err, ERR_FORMAT, "its .eh_frame is empty");
	else if (!use_file_index(t))
		rc = build_index(t, err);
	if (rc) {
		eh_frame_free(t);
		return rc;
	}
	t->first = t->base + (uint64_t)(int64_t)entry_start(t, 0);
	*out = t;
	return 0;
}

void eh_frame_free(struct eh_frame *t)
{
	if (!t)
		return;
	free(t->in.header);
	free(t->in.frames);
	free(t->own_index);
	free(t);
}

uint32_t eh_frame_id(const struct eh_frame *t)
{
	return t->id;
}

uint64_t eh_frame_first(const struct eh_frame *t)
{
	return t->first;
}

bool eh_frame_is_32_bit(const struct eh_frame *t)
{
	return t->in.is_32_bit;
}

bool eh_frame_cfa_only(const struct eh_frame *t)
{
	return t->in.cfa_only;
}

size_t eh_frame_bytes(const struct eh_frame *t)
{
	return sizeof(*t) + t->in.header_bytes + t->in.frames_bytes +
	       (t->own_index ? (size_t)t->count * PAIR : 0);
}

uint32_t eh_frame_count(const struct eh_frame *t)
{
	return t->count;
}

bool eh_frame_range(const struct eh_frame *t, uint32_t n, uint64_t *start, uint64_t *end)
{
	struct eh_fde fde;

	if (n >= t->count || !entry_fde(t, n, &fde))
		return false;
	*start = fde.start;
	*end = fde.end;
	return true;
}

/*
 * How many entries start at or before the address; the last of these is the one before that index.
 */
static uint32_t count_before(const struct eh_frame *t, uint64_t vaddr)
{
	int64_t distance = (int64_t)(vaddr - t->base);
	uint32_t low = 0, high = t->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (entry_start(t, middle) <= distance)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

bool eh_frame_start(const struct eh_frame *t, uint64_t vaddr, uint64_t *start)
{
	uint32_t n = count_before(t, vaddr);
	uint64_t end;

	return n && eh_frame_range(t, n - 1, start, &end) && vaddr >= *start && vaddr < end;
}

enum eh_result eh_frame_row(const struct eh_frame *t, uint64_t vaddr, uint32_t *budget,
			    struct eh_row *out)
{
	uint32_t n = count_before(t, vaddr);
	struct eh_fde fde;

	if (!n)
		return EH_NONE;
	if (!entry_fde(t, n - 1, &fde))
		return EH_BAD;
	if (vaddr < fde.start || vaddr >= fde.end)
		return EH_NONE;
	return eh_program_run(t, &fde, vaddr, budget, out);
}

enum eh_result eh_frame_clone_row(const struct eh_frame *t, uint64_t vaddr, uint32_t *budget,
				  struct eh_row *out)
{
	uint32_t n = count_before(t, vaddr);
	struct eh_fde before, after;
	enum eh_result result;

	if (!n || n == t->count)
		return EH_NONE;
	if (!entry_fde(t, n - 1, &before) || !entry_fde(t, n, &after))
		return EH_BAD;
	if (vaddr < before.end || vaddr - before.end >= CLONE_GAP || vaddr >= after.start ||
	    after.start - vaddr > CLONE_GAP)
		return EH_NONE;
	result = eh_program_run(t, &after, after.start, budget, out);
	if (result != EH_OK || out->regs[out->return_column].how != EH_UNDEFINED)
		return result == EH_OK ? EH_NONE : result;
	return eh_program_run(t, &before, before.end - 1, budget, out);
}

bool eh_frame_expression(const struct eh_frame *t, int32_t value, const uint8_t **bytes, size_t *n)
{
	struct eh_cursor c = cursor_at(t, (size_t)value, t->in.frames_bytes);
	uint64_t length = value < 0 ? 0 : eh_get_uleb(&c);

	if (value < 0 || c.bad || length > c.end - c.at)
		return false;
	*bytes = t->in.frames + c.at;
	*n = (size_t)length;
	return true;
}
