#include "managed/hotspot/layout.h"

#include "base/array.h"
#include "base/bytes.h"
#include "managed/exports.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX 8192u                    /* of a table; the largest seen has 837 */
#define STRIDE_MAX 256u
#define TEXT_MAX 512u

/* ---- reading by pages ------------------------------------------------------------------------ */

#define PAGE_BYTES 4096u
#define PAGES 64u

/* The tables and their texts: some thousand reads of a few bytes, in a few places. */
struct paged {
	const struct managed_memory *memory;
	struct {
		uint64_t start;              /* 0 = empty */
		uint8_t bytes[PAGE_BYTES];
	} pages[PAGES];
};

static const uint8_t *page_of(struct paged *p, uint64_t address)
{
	uint64_t start = address & ~(uint64_t)(PAGE_BYTES - 1);
	unsigned i = (unsigned)(start / PAGE_BYTES % PAGES);

	if (!start)
		return NULL;
	if (p->pages[i].start == start)
		return p->pages[i].bytes;
	p->pages[i].start = 0;
	if (!managed_read(p->memory, start, p->pages[i].bytes, PAGE_BYTES))
		return NULL;
	p->pages[i].start = start;
	return p->pages[i].bytes;
}

static size_t read_paged(void *ctx, uint64_t address, void *to, size_t n)
{
	size_t done = 0;

	while (done < n) {
		const uint8_t *page = page_of(ctx, address + done);
		size_t at = (size_t)((address + done) % PAGE_BYTES), part = PAGE_BYTES - at;

		if (!page || address + done < address)
			break;
		part = part < n - done ? part : n - done;
		memcpy((uint8_t *)to + done, page + at, part);
		done += part;
	}
	return done;
}

/* A text of the target; "" when it is NULL or cannot be read, cut when it is too long. */
static void read_text(const struct managed_memory *m, uint64_t address, char *out, size_t n)
{
	size_t got = address ? m->read(m->ctx, address, out, n - 1) : 0;

	out[got] = '\0';
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static const struct wanted_field {
	enum hotspot_field_id id;
	const char *type, *field;
} wanted_fields[] = {
	{F_HEAP_SINGLE, "CodeCache", "_heap"},
	{F_HEAPS, "CodeCache", "_heaps"},
	{F_ARRAY_LENGTH, "GenericGrowableArray", "_len"},
	{F_ARRAY_LENGTH, "GrowableArrayBase", "_len"},
	{F_ARRAY_DATA, "GrowableArray<int>", "_data"},
	{F_HEAP_MEMORY, "CodeHeap", "_memory"},
	{F_HEAP_SEGMAP, "CodeHeap", "_segmap"},
	{F_HEAP_LOG2, "CodeHeap", "_log2_segment_size"},
	{F_SPACE_LOW, "VirtualSpace", "_low"},
	{F_SPACE_HIGH, "VirtualSpace", "_high"},
	{F_SPACE_HIGH_BOUNDARY, "VirtualSpace", "_high_boundary"},
	{F_BLOCK_HEADER, "HeapBlock", "_header"},
	{F_BLOCK_USED, "HeapBlock::Header", "_used"},
	{F_CALL_STUB_RETURN, "StubRoutines", "_call_stub_return_address"},
	{F_MAJOR, "Abstract_VM_Version", "_vm_major_version"},
	{F_RELEASE, "Abstract_VM_Version", "_s_vm_release"},
	{F_BLOB_NAME, "CodeBlob", "_name"},
	{F_BLOB_SIZE, "CodeBlob", "_size"},
	{F_BLOB_FRAME_SIZE, "CodeBlob", "_frame_size"},
	{F_BLOB_FRAME_COMPLETE, "CodeBlob", "_frame_complete_offset"},
	{F_BLOB_CODE_BEGIN, "CodeBlob", "_code_begin"},
	{F_BLOB_CODE_END, "CodeBlob", "_code_end"},
	{F_BLOB_CODE_OFFSET, "CodeBlob", "_code_offset"},
	{F_BLOB_DATA_OFFSET, "CodeBlob", "_data_offset"},
	{F_BLOB_MUTABLE_DATA, "CodeBlob", "_mutable_data"},
	{F_BLOB_MUTABLE_BYTES, "CodeBlob", "_mutable_data_size"},
	{F_BLOB_RELOCATION_BYTES, "CodeBlob", "_relocation_size"},
	{F_COMPILE_ID, "nmethod", "_compile_id"},
	{F_COMP_LEVEL, "nmethod", "_comp_level"},
	{F_METHOD, "nmethod", "_method"},
	{F_METHOD, "CompiledMethod", "_method"},
	{F_ORIG_PC, "nmethod", "_orig_pc_offset"},
	{F_OSR_ENTRY, "nmethod", "_osr_entry_point"},
	{F_VERIFIED_ENTRY, "nmethod", "_verified_entry_point"},
	{F_VERIFIED_ENTRY_OFFSET, "nmethod", "_verified_entry_offset"},
	{F_DEOPT_BEGIN, "CompiledMethod", "_deopt_handler_begin"},
	{F_DEOPT_MH_BEGIN, "CompiledMethod", "_deopt_mh_handler_begin"},
	{F_DEOPT_OFFSET, "nmethod", "_deoptimize_offset"},
	{F_DEOPT_OFFSET, "nmethod", "_deopt_handler_offset"},
	{F_DEOPT_OFFSET, "nmethod", "_deopt_handler_entry_offset"},
	{F_DEOPT_MH_OFFSET, "nmethod", "_deoptimize_mh_offset"},
	{F_DEOPT_MH_OFFSET, "nmethod", "_deopt_mh_handler_offset"},
	{F_SCOPES_BEGIN, "CompiledMethod", "_scopes_data_begin"},
	{F_SCOPES_OFFSET, "nmethod", "_scopes_data_offset"},
	{F_PCS_OFFSET, "nmethod", "_scopes_pcs_offset"},
	{F_DEPENDENCIES_OFFSET, "nmethod", "_dependencies_offset"},
	{F_METADATA_OFFSET, "nmethod", "_metadata_offset"},
	{F_IMMUTABLE_DATA, "nmethod", "_immutable_data"},
	{F_IMMUTABLE_BYTES, "nmethod", "_immutable_data_size"},
	{F_IMMUTABLE_REFS, "nmethod", "_immutable_data_ref_count_offset"},
	{F_CONST_METHOD, "Method", "_constMethod"},
	{F_CONSTANTS, "ConstMethod", "_constants"},
	{F_CODE_BYTES, "ConstMethod", "_code_size"},
	{F_NAME_INDEX, "ConstMethod", "_name_index"},
	{F_SIGNATURE_INDEX, "ConstMethod", "_signature_index"},
	{F_CM_FLAGS, "ConstMethod", "_flags"},
	{F_CM_FLAGS, "ConstMethod", "_flags._flags"},
	{F_POOL_HOLDER, "ConstantPool", "_pool_holder"},
	{F_POOL_LENGTH, "ConstantPool", "_length"},
	{F_KLASS_NAME, "Klass", "_name"},
	{F_SOURCE_OF_CLASS, "InstanceKlass", "_source_file_name_index"},
	{F_SOURCE_OF_POOL, "ConstantPool", "_source_file_name_index"},
	{F_SYMBOL_LENGTH, "Symbol", "_length"},
	{F_SYMBOL_LENGTH_AND_REFS, "Symbol", "_length_and_refcount"},
	{F_SYMBOL_BODY, "Symbol", "_body"},
	{F_SYMBOL_BODY, "Symbol", "_body[0]"},
	{F_NARROW_BASE, "Universe", "_narrow_oop._base"},
	{F_NARROW_BASE, "CompressedOops", "_narrow_oop._base"},
	{F_NARROW_BASE, "CompressedOops", "_base"},
	{F_NARROW_SHIFT, "Universe", "_narrow_oop._shift"},
	{F_NARROW_SHIFT, "CompressedOops", "_narrow_oop._shift"},
	{F_NARROW_SHIFT, "CompressedOops", "_shift"},
	{F_NARROW_CLASS_BASE, "Universe", "_narrow_klass._base"},
	{F_NARROW_CLASS_BASE, "CompressedKlassPointers", "_narrow_klass._base"},
	{F_NARROW_CLASS_BASE, "CompressedKlassPointers", "_base"},
	{F_NARROW_CLASS_SHIFT, "Universe", "_narrow_klass._shift"},
	{F_NARROW_CLASS_SHIFT, "CompressedKlassPointers", "_narrow_klass._shift"},
	{F_NARROW_CLASS_SHIFT, "CompressedKlassPointers", "_shift"},
	{F_CLASS_SUPER, "Klass", "_super"},
	{F_CLASS_LAYOUT, "Klass", "_layout_helper"},
	{F_CLASS_POOL, "InstanceKlass", "_constants"},
	{F_CLASS_FIELDS, "InstanceKlass", "_fields"},
	{F_CLASS_NFIELDS, "InstanceKlass", "_java_fields_count"},
	{F_CLASS_FIELD_STREAM, "InstanceKlass", "_fieldinfo_stream"},
	{F_HEAP_OF_OBJECTS, "Universe", "_collectedHeap"},
	{F_COLLECTIONS, "CollectedHeap", "_total_collections"},
	{F_PERF_DATA, "PerfMemory", "_start"},
	{F_MAY_REDEFINE, "JvmtiExport", "_can_hotswap_or_post_breakpoint"},
};

static const char *const wanted_types[HOTSPOT_TYPES] = {
	[T_HEAP_BLOCK] = "HeapBlock", [T_CONST_METHOD] = "ConstMethod",
	[T_CONSTANT_POOL] = "ConstantPool", [T_NMETHOD] = "nmethod", [T_BLOB] = "CodeBlob",
};

/* Needed in every version. */
static const enum hotspot_field_id needed[] = {
	F_HEAP_MEMORY, F_HEAP_SEGMAP, F_HEAP_LOG2, F_SPACE_LOW, F_SPACE_HIGH,
	F_SPACE_HIGH_BOUNDARY, F_BLOCK_USED, F_CALL_STUB_RETURN, F_BLOB_NAME, F_BLOB_SIZE,
	F_BLOB_FRAME_SIZE, F_BLOB_FRAME_COMPLETE, F_COMPILE_ID, F_COMP_LEVEL, F_METHOD, F_ORIG_PC,
	F_OSR_ENTRY, F_PCS_OFFSET, F_CONST_METHOD, F_CONSTANTS, F_CODE_BYTES, F_NAME_INDEX,
	F_SIGNATURE_INDEX, F_POOL_HOLDER, F_POOL_LENGTH, F_KLASS_NAME, F_SYMBOL_BODY,
};

/* Of each of these at least one is needed. */
static const struct { enum hotspot_field_id one, other; } either[] = {
	{F_HEAP_SINGLE, F_HEAPS},
	{F_BLOB_CODE_BEGIN, F_BLOB_CODE_OFFSET},
	{F_BLOB_CODE_END, F_BLOB_DATA_OFFSET},
	{F_VERIFIED_ENTRY, F_VERIFIED_ENTRY_OFFSET},
	{F_DEOPT_BEGIN, F_DEOPT_OFFSET},
	{F_SCOPES_BEGIN, F_SCOPES_OFFSET},
	{F_DEPENDENCIES_OFFSET, F_IMMUTABLE_DATA},
	{F_METADATA_OFFSET, F_BLOB_MUTABLE_DATA},
	{F_SYMBOL_LENGTH, F_SYMBOL_LENGTH_AND_REFS},
};

/* ---- the tables ------------------------------------------------------------------------------ */

/* The width of a field, from its C type as text; static ones are read as pointers or ints. */
static uint8_t width_of(const char *type)
{
	static const struct { const char *text; uint8_t bytes; } widths[] = {
		{"int", 4}, {"u4", 4}, {"uint32_t", 4}, {"juint", 4}, {"jint", 4},
		{"unsigned int", 4}, {"u2", 2}, {"int16_t", 2}, {"uint16_t", 2}, {"bool", 1},
		{"u1", 1},
		{"CompLevel", 1}, {"CodeBlobKind", 1}, {"uint8_t", 1},
	};
	size_t i;

	for (i = 0; i < COUNT_OF(widths); i++)
		if (strcmp(type, widths[i].text) == 0)
			return widths[i].bytes;
	return 8;
}

static void take_field(struct hotspot_layout *l, const char *type, const char *field,
		       const char *ctype, uint64_t at)
{
	size_t i;

	for (i = 0; i < COUNT_OF(wanted_fields); i++) {
		const struct wanted_field *w = &wanted_fields[i];

		if (strcmp(w->field, field) != 0 || strcmp(w->type, type) != 0)
			continue;
		l->fields[w->id] =
			(struct hotspot_field){.found = true, .bytes = width_of(ctype), .at = at};
	}
}

/* Variables that libjvm exports for debuggers. */
enum hotspot_export {
	X_STRUCTS, X_STRUCT_STRIDE, X_STRUCT_TYPE, X_STRUCT_FIELD, X_STRUCT_STRING,
	X_STRUCT_STATIC, X_STRUCT_OFFSET, X_STRUCT_ADDRESS,
	X_TYPES, X_TYPE_STRIDE, X_TYPE_NAME, X_TYPE_SIZE,
	HOTSPOT_EXPORTS_NEEDED,
	X_INTS = HOTSPOT_EXPORTS_NEEDED, X_INT_STRIDE, X_INT_NAME, X_INT_VALUE,
	HOTSPOT_EXPORTS
};

static const struct managed_export hotspot_exports[HOTSPOT_EXPORTS] = {
	[X_STRUCTS] = {.name = "gHotSpotVMStructs"},
	[X_STRUCT_STRIDE] = {.name = "gHotSpotVMStructEntryArrayStride"},
	[X_STRUCT_TYPE] = {.name = "gHotSpotVMStructEntryTypeNameOffset"},
	[X_STRUCT_FIELD] = {.name = "gHotSpotVMStructEntryFieldNameOffset"},
	[X_STRUCT_STRING] = {.name = "gHotSpotVMStructEntryTypeStringOffset"},
	[X_STRUCT_STATIC] = {.name = "gHotSpotVMStructEntryIsStaticOffset"},
	[X_STRUCT_OFFSET] = {.name = "gHotSpotVMStructEntryOffsetOffset"},
	[X_STRUCT_ADDRESS] = {.name = "gHotSpotVMStructEntryAddressOffset"},
	[X_TYPES] = {.name = "gHotSpotVMTypes"},
	[X_TYPE_STRIDE] = {.name = "gHotSpotVMTypeEntryArrayStride"},
	[X_TYPE_NAME] = {.name = "gHotSpotVMTypeEntryTypeNameOffset"},
	[X_TYPE_SIZE] = {.name = "gHotSpotVMTypeEntrySizeOffset"},
	[X_INTS] = {.name = "gHotSpotVMIntConstants"},
	[X_INT_STRIDE] = {.name = "gHotSpotVMIntConstantEntryArrayStride"},
	[X_INT_NAME] = {.name = "gHotSpotVMIntConstantEntryNameOffset"},
	[X_INT_VALUE] = {.name = "gHotSpotVMIntConstantEntryValueOffset"},
};

struct table_at {
	uint64_t entries, stride;
};

static bool find_table(const struct managed_memory *m, const struct managed_export *x,
		       enum hotspot_export table, enum hotspot_export stride, struct table_at *out)
{
	return managed_read_u64(m, x[table].at, &out->entries) && out->entries &&
	       managed_read_u64(m, x[stride].at, &out->stride) && out->stride >= 8 &&
	       out->stride <= STRIDE_MAX;
}

/* The field of an entry at the offset that an exported variable gives. */
static bool entry_word(const struct managed_memory *m, uint64_t entry, uint64_t offset,
		       uint64_t *out)
{
	return offset <= STRIDE_MAX - 8 && managed_read_u64(m, entry + offset, out);
}

static bool read_structs(struct hotspot_layout *l, const struct managed_memory *m,
			 const struct managed_export *x)
{
	static const enum hotspot_export which[6] = {
		X_STRUCT_TYPE, X_STRUCT_FIELD, X_STRUCT_STRING, X_STRUCT_STATIC, X_STRUCT_OFFSET,
		X_STRUCT_ADDRESS};
	uint64_t offsets[6], value[6];
	struct table_at t;
	unsigned i, k;

	if (!find_table(m, x, X_STRUCTS, X_STRUCT_STRIDE, &t))
		return false;
	for (k = 0; k < 6; k++)
		if (!managed_read_u64(m, x[which[k]].at, &offsets[k]))
			return false;
	for (i = 0; i < ENTRIES_MAX; i++) {
		char type[TEXT_MAX], field[TEXT_MAX], ctype[TEXT_MAX];
		bool is_static;

		for (k = 0; k < 6; k++)
			if (!entry_word(m, t.entries + i * t.stride, offsets[k], &value[k]))
				return false;
		if (!value[0])
			return true;
		read_text(m, value[0], type, sizeof(type));
		read_text(m, value[1], field, sizeof(field));
		read_text(m, value[2], ctype, sizeof(ctype));
		is_static = (uint32_t)value[3] != 0;
		take_field(l, type, field, ctype, is_static ? value[5] : value[4]);
	}
	return false;
}

/* Values by name, from a table of both; *out of those that it lacks is left as it is. */
static bool read_values(const struct managed_memory *m, const struct table_at *t, uint64_t name_at,
			uint64_t value_at, const char *const *wanted, unsigned nwanted,
			uint64_t *out)
{
	uint64_t name, value;
	char text[TEXT_MAX];
	unsigned i, k;

	for (i = 0; i < ENTRIES_MAX; i++) {
		if (!entry_word(m, t->entries + i * t->stride, name_at, &name) ||
		    !entry_word(m, t->entries + i * t->stride, value_at, &value))
			return false;
		if (!name)
			return true;
		read_text(m, name, text, sizeof(text));
		for (k = 0; k < nwanted; k++)
			if (strcmp(text, wanted[k]) == 0)
				out[k] = value;
	}
	return false;
}

static bool read_types(struct hotspot_layout *l, const struct managed_memory *m,
		       const struct managed_export *x)
{
	uint64_t name_at, size_at;
	struct table_at t;

	return find_table(m, x, X_TYPES, X_TYPE_STRIDE, &t) &&
	       managed_read_u64(m, x[X_TYPE_NAME].at, &name_at) &&
	       managed_read_u64(m, x[X_TYPE_SIZE].at, &size_at) &&
	       read_values(m, &t, name_at, size_at, wanted_types, HOTSPOT_TYPES, l->sizes);
}

/* Which flags of a field say that it has one more number: as 21 to 27 have it, or as it says. */
static void read_field_flags(struct hotspot_layout *l, const struct managed_memory *m,
			     const struct managed_export *x)
{
	static const char *const names[HOTSPOT_FIELD_FLAGS] = {
		"FieldInfo::FieldFlags::_ff_initialized", "FieldInfo::FieldFlags::_ff_generic",
		"FieldInfo::FieldFlags::_ff_contended"};
	uint64_t bits[HOTSPOT_FIELD_FLAGS] = {0, 2, 4}, name_at, value_at;
	struct table_at t;
	unsigned i;

	if (find_table(m, x, X_INTS, X_INT_STRIDE, &t) &&
	    managed_read_u64(m, x[X_INT_NAME].at, &name_at) &&
	    managed_read_u64(m, x[X_INT_VALUE].at, &value_at))
		read_values(m, &t, name_at, value_at, names, HOTSPOT_FIELD_FLAGS, bits);
	for (i = 0; i < HOTSPOT_FIELD_FLAGS; i++)
		l->field_flags[i] = bits[i] & 31;
}

static const char *name_of(enum hotspot_field_id id)
{
	size_t i;

	for (i = 0; i < COUNT_OF(wanted_fields); i++)
		if (wanted_fields[i].id == id)
			return wanted_fields[i].field;
	return "?";
}

static int check_fields(const struct hotspot_layout *l, struct err *err)
{
	enum hotspot_field_id missing = HOTSPOT_FIELDS;
	size_t i;

	for (i = 0; i < COUNT_OF(needed); i++)
		if (!hotspot_has(l, needed[i]))
			missing = needed[i];
	for (i = 0; i < COUNT_OF(either); i++)
		if (!hotspot_has(l, either[i].one) && !hotspot_has(l, either[i].other))
			missing = either[i].other;
	if (missing != HOTSPOT_FIELDS)
		return err_set(err, ERR_UNSUPPORTED,
			       "its tables lack the field %s: this version is not known",
			       name_of(missing));
	for (i = 0; i < HOTSPOT_TYPES; i++)
		if (!l->sizes[i] || l->sizes[i] > 4096)
			return err_set(err, ERR_UNSUPPORTED, "its tables lack the size of %s",
				       wanted_types[i]);
	return 0;
}

/* ---- fields ---------------------------------------------------------------------------------- */

uint64_t hotspot_get(const struct hotspot_layout *l, enum hotspot_field_id id,
		     const uint8_t *bytes, size_t n)
{
	const struct hotspot_field *f = &l->fields[id];

	if (!f->found || n < f->bytes || f->at > n - f->bytes)
		return 0;
	return le_sized(bytes + f->at, f->bytes);
}

bool hotspot_read(const struct hotspot_layout *l, const struct managed_memory *memory,
		  enum hotspot_field_id id, uint64_t address, uint64_t *out)
{
	const struct hotspot_field *f = &l->fields[id];
	uint8_t bytes[8];

	if (!f->found || !address || !managed_read(memory, address + f->at, bytes, f->bytes))
		return false;
	*out = le_sized(bytes, f->bytes);
	return true;
}

bool hotspot_read_static(const struct hotspot_layout *l, const struct managed_memory *memory,
			 enum hotspot_field_id id, uint64_t *out)
{
	uint8_t bytes[8];

	if (!hotspot_has(l, id) ||
	    !managed_read(memory, l->fields[id].at, bytes, l->fields[id].bytes))
		return false;
	*out = le_sized(bytes, l->fields[id].bytes);
	return true;
}

/* ---- the code cache -------------------------------------------------------------------------- */

static bool read_heap(struct hotspot_layout *l, const struct managed_memory *m, uint64_t address)
{
	struct hotspot_heap *h = &l->heaps[l->nheaps];
	uint64_t memory = address + l->fields[F_HEAP_MEMORY].at;
	uint64_t segmap = address + l->fields[F_HEAP_SEGMAP].at, log2;

	h->address = address;
	if (!hotspot_read(l, m, F_SPACE_LOW, memory, &h->low) ||
	    !hotspot_read(l, m, F_SPACE_HIGH_BOUNDARY, memory, &h->high_boundary) ||
	    !hotspot_read(l, m, F_SPACE_LOW, segmap, &h->segmap) ||
	    !hotspot_read(l, m, F_HEAP_LOG2, address, &log2))
		return false;
	if (!h->low || h->high_boundary <= h->low || !h->segmap || log2 < 4 || log2 > 16)
		return false;
	h->log2_segment = (unsigned)log2;
	l->nheaps++;
	return true;
}

/* One heap (8), or an array of them. false: they are not there yet. */
static bool read_heaps(struct hotspot_layout *l, const struct managed_memory *m)
{
	uint64_t array, data, n, i, heap;

	if (hotspot_has(l, F_HEAP_SINGLE))
		return hotspot_read_static(l, m, F_HEAP_SINGLE, &heap) && heap &&
		       read_heap(l, m, heap);
	if (!hotspot_read_static(l, m, F_HEAPS, &array) ||
	    !hotspot_read(l, m, F_ARRAY_LENGTH, array, &n) ||
	    !hotspot_read(l, m, F_ARRAY_DATA, array, &data) || !n || n > HOTSPOT_HEAPS_MAX)
		return false;
	for (i = 0; i < n; i++)
		if (!managed_read_u64(m, data + 8 * i, &heap) || !heap || !read_heap(l, m, heap))
			return false;
	return true;
}

static void read_version(struct hotspot_layout *l, const struct managed_memory *m)
{
	uint64_t v = 0;

	if (hotspot_read_static(l, m, F_RELEASE, &v))
		read_text(m, v, l->release, sizeof(l->release));
	/* 8 says 25 in its major version; and it alone has one heap in this field. */
	l->major = 8;
	if (!hotspot_has(l, F_HEAP_SINGLE) && hotspot_read_static(l, m, F_MAJOR, &v))
		l->major = (unsigned)(uint32_t)v;
	l->unsigned5_min = l->major >= 20;
}

const struct hotspot_heap *hotspot_heap_of(const struct hotspot_layout *l, uint64_t pc)
{
	uint32_t i;

	for (i = 0; i < l->nheaps; i++)
		if (pc >= l->heaps[i].low && pc < l->heaps[i].high_boundary)
			return &l->heaps[i];
	return NULL;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int read_all(struct hotspot_layout *l, const struct managed_memory *m, uint64_t base,
		    struct err *err)
{
	struct managed_export exports[HOTSPOT_EXPORTS];
	unsigned i;
	int rc;

	memcpy(exports, hotspot_exports, sizeof(exports));
	rc = managed_exports_read(m, base, exports, HOTSPOT_EXPORTS, err);
	for (i = 0; !rc && i < HOTSPOT_EXPORTS_NEEDED; i++)
		if (!exports[i].at)
			rc = err_set(err, ERR_UNSUPPORTED,
				     "its libjvm.so has no tables of HotSpot (%s)",
				     exports[i].name);
	if (rc)
		return rc;
	if (!read_structs(l, m, exports) || !read_types(l, m, exports))
		return err_set(err, ERR_UNSUPPORTED, "its tables cannot be read");
	rc = check_fields(l, err);
	if (rc)
		return rc;
	read_field_flags(l, m, exports);
	read_version(l, m);
	if (!hotspot_read_static(l, m, F_CALL_STUB_RETURN, &l->call_stub_return) ||
	    !l->call_stub_return || !read_heaps(l, m))
		return err_set(err, ERR_BUSY, "it is still starting");
	return 0;
}

int hotspot_layout_read(const struct managed_memory *memory, uint64_t base,
			struct hotspot_layout **out, struct err *err)
{
	struct hotspot_layout *l = calloc(1, sizeof(*l));
	struct paged *paged = calloc(1, sizeof(*paged));
	struct managed_memory by_page = {.read = read_paged, .ctx = paged};
	int rc;

	if (!l || !paged) {
		rc = err_memory(err, "for a JVM's tables");
	} else {
		paged->memory = memory;
		atomic_store(&l->refs, 1);
		rc = read_all(l, &by_page, base, err);
	}
	free(paged);
	if (rc)
		free(l);
	else
		*out = l;
	return rc;
}

struct hotspot_layout *hotspot_layout_ref(struct hotspot_layout *l)
{
	atomic_fetch_add(&l->refs, 1);
	return l;
}

void hotspot_layout_drop(struct hotspot_layout *l)
{
	if (l && atomic_fetch_sub(&l->refs, 1) == 1)
		free(l);
}
