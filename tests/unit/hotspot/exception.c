/*
 * Exceptions in the memory of a made-up JVM, whose layout is as simple as the format allows: each
 * structure is 256 bytes long, and the fields of all are at these offsets.
 */
#include "base/bytes.h"
#include "managed/hotspot/exception.h"
#include "tests/support/test.h"

#include <string.h>

enum { BASE = 0x10000, CELL = 256, CELLS = 64 };
/* Of a class; of a pool, whose symbols follow; of a symbol; static ones of the JVM. */
enum { NAME = 8, SUPER = 16, LAYOUT = 24, POOL = 32, FIELDS = 40, NFIELDS = 48, NPOOL = 8,
       POOL_BYTES = 16, BODY = 4 };
enum { STATICS = BASE, OBJECT = STATICS + CELL, CLASSES = OBJECT + 4 * CELL };

struct jvm {
	uint8_t memory[CELLS * CELL];
	struct hotspot_layout l;
	struct managed_memory m;
	uint64_t next;                       /* the next free cell */
	uint64_t high;                       /* bits that addresses may have besides */
};

static size_t read_jvm(void *ctx, uint64_t address, void *to, size_t n)
{
	struct jvm *j = ctx;

	address &= ~j->high;
	if (address < BASE || address - BASE >= sizeof(j->memory))
		return 0;
	if (n > sizeof(j->memory) - (address - BASE))
		n = sizeof(j->memory) - (size_t)(address - BASE);
	memcpy(to, j->memory + (address - BASE), n);
	return n;
}

static void put(struct jvm *j, uint64_t at, uint64_t v, unsigned bytes)
{
	unsigned i;

	for (i = 0; i < bytes; i++)
		j->memory[at - BASE + i] = (uint8_t)(v >> 8 * i);
}

static uint64_t symbol(struct jvm *j, const char *text)
{
	uint64_t at = j->next;

	j->next += CELL;
	put(j, at, strlen(text), 2);
	memcpy(j->memory + (at - BASE) + BODY, text, strlen(text));
	return at;
}

/* A class; its pool has the names of fields from slot 1 on. */
static uint64_t class(struct jvm *j, const char *name, uint64_t super, const char *const *fields)
{
	uint64_t at = j->next, pool = at + CELL;
	unsigned i;

	j->next += 2 * CELL;
	put(j, at + NAME, symbol(j, name), 8);
	put(j, at + SUPER, super, 8);
	put(j, at + LAYOUT, 40, 4);
	put(j, at + POOL, pool, 8);
	for (i = 0; fields && fields[i]; i++)
		put(j, pool + POOL_BYTES + 8 * (i + 1), symbol(j, fields[i]), 8);
	put(j, pool + NPOOL, i + 1, 4);
	return at;
}

/* To 20: six u2 for each field. */
static void old_fields(struct jvm *j, uint64_t class, const uint32_t *offsets, unsigned n)
{
	uint64_t at = j->next;
	unsigned i;

	j->next += CELL;
	put(j, class + FIELDS, at, 8);
	put(j, class + NFIELDS, n, 2);
	put(j, at, n * 6, 4);
	for (i = 0; i < n; i++) {
		put(j, at + 4 + 12 * i + 2, i + 1, 2);
		put(j, at + 4 + 12 * i + 8, offsets[i] << 2 | 1, 4);
	}
}

static void begin(struct jvm *j)
{
	static const struct { enum hotspot_field_id id; uint64_t at; uint8_t bytes; } fields[] = {
		{F_KLASS_NAME, NAME, 8}, {F_CLASS_SUPER, SUPER, 8}, {F_CLASS_LAYOUT, LAYOUT, 4},
		{F_CLASS_POOL, POOL, 8}, {F_POOL_LENGTH, NPOOL, 4}, {F_SYMBOL_LENGTH, 0, 2},
		{F_SYMBOL_BODY, BODY, 8}, {F_NARROW_BASE, STATICS, 8},
		{F_NARROW_SHIFT, STATICS + 8, 4}, {F_NARROW_CLASS_BASE, STATICS, 8},
		{F_NARROW_CLASS_SHIFT, STATICS + 8, 4}, {F_HEAP_OF_OBJECTS, STATICS + 16, 8},
		{F_COLLECTIONS, 24, 4}};
	size_t i;

	memset(j, 0, sizeof(*j));
	j->m = (struct managed_memory){.read = read_jvm, .ctx = j};
	j->next = CLASSES;
	j->l.major = 17;
	j->l.sizes[T_CONSTANT_POOL] = POOL_BYTES;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		j->l.fields[fields[i].id] = (struct hotspot_field){
			.found = true, .bytes = fields[i].bytes, .at = fields[i].at};
}

static void have_array_of_fields(struct jvm *j)
{
	j->l.fields[F_CLASS_FIELDS] = (struct hotspot_field){true, 8, FIELDS};
	j->l.fields[F_CLASS_NFIELDS] = (struct hotspot_field){true, 2, NFIELDS};
}

static const char *const throwable_fields[] = {"backtrace", "detailMessage", NULL};
static const char *const string_fields[] = {"value", "hash", "coder", NULL};

struct classes {
	uint64_t throwable, string, no_stock;
};

static void make_classes(struct jvm *j, struct classes *c)
{
	uint64_t object = class(j, "java/lang/Object", 0, NULL);

	c->throwable = class(j, "java/lang/Throwable", object, throwable_fields);
	c->string = class(j, "java/lang/String", object, string_fields);
	c->no_stock = class(j, "shop/NoStock", c->throwable, NULL);
}

/* Narrow references and classes are addresses here: base 0, no shift. */
TEST(an_exception_has_its_class_and_message)
{
	static const uint32_t in_throwable[] = {12, 16}, in_string[] = {20, 12, 16};
	struct hotspot_exceptions known = {0};
	struct managed_thrown out;
	struct classes c;
	struct jvm j;

	begin(&j);
	have_array_of_fields(&j);
	make_classes(&j, &c);
	old_fields(&j, c.throwable, in_throwable, 2);
	old_fields(&j, c.string, in_string, 3);
	put(&j, OBJECT + 8, c.no_stock, 4);
	put(&j, OBJECT + 16, OBJECT + CELL, 4);
	put(&j, OBJECT + CELL + 8, c.string, 4);
	put(&j, OBJECT + CELL + 20, OBJECT + 2 * CELL, 4);
	put(&j, OBJECT + 2 * CELL + 12, 3, 4);
	memcpy(j.memory + (OBJECT + 2 * CELL + 16 - BASE), "a\xe9z", 3);
	assert_true(hotspot_exception_read(&j.l, &j.m, OBJECT, &known, &out));
	assert_string_equal(out.type, "shop.NoStock");
	assert_string_equal(out.message, "a\xc3\xa9z");          /* Latin-1 */
	put(&j, OBJECT + CELL + 16, 1, 1);
	put(&j, OBJECT + 2 * CELL + 12, 2, 4);
	put(&j, OBJECT + 2 * CELL + 16, 0x20ac, 4);
	assert_true(hotspot_exception_read(&j.l, &j.m, OBJECT, &known, &out));
	assert_string_equal(out.message, "\xe2\x82\xac");        /* UTF-16 */
	put(&j, OBJECT + 16, 0, 4);
	assert_true(hotspot_exception_read(&j.l, &j.m, OBJECT, &known, &out));
	assert_string_equal(out.message, "");
	put(&j, OBJECT + 8, c.string, 4);
	assert_false(hotspot_exception_read(&j.l, &j.m, OBJECT, &known, &out));
	assert_false(hotspot_exception_read(&j.l, &j.m, 8, &known, &out));
}

/*
 * From 21 fields are a stream of numbers, where each is 1 more than it says. Classes are in the
 * mark word; references are wide, and ZGC has colours below them.
 */
static void message_is_read(const unsigned field_flags[HOTSPOT_FIELD_FLAGS])
{
	const uint8_t valued = (uint8_t)((1u << field_flags[0]) + 1);
	const uint8_t in_throwable[] = {
		3, 1,                        /* two fields, none of the JVM */
		2, 1, 9, 1, valued, 7,       /* slot 1, at 8, with a value, which is skipped */
		3, 1, 17, 1, 1, 0};          /* slot 2, at 16 */
	static const uint8_t in_string[] = {2, 1, 2, 1, 25, 1, 1, 0};    /* at 24; no coder */
	struct hotspot_exceptions known = {0};
	struct managed_thrown out;
	struct classes c;
	struct jvm j;

	begin(&j);
	j.l.major = 25;
	j.l.unsigned5_min = 1;
	memcpy(j.l.field_flags, field_flags, sizeof(j.l.field_flags));
	j.l.fields[F_CLASS_FIELD_STREAM] = (struct hotspot_field){true, 8, FIELDS};
	make_classes(&j, &c);
	put(&j, c.throwable + LAYOUT, 56, 4);
	put(&j, c.throwable + FIELDS, j.next, 8);
	put(&j, j.next, sizeof(in_throwable), 4);
	memcpy(j.memory + (j.next + 4 - BASE), in_throwable, sizeof(in_throwable));
	j.next += CELL;
	put(&j, c.string + FIELDS, j.next, 8);
	put(&j, j.next, sizeof(in_string), 4);
	memcpy(j.memory + (j.next + 4 - BASE), in_string, sizeof(in_string));
	put(&j, OBJECT, c.no_stock << 42, 8);
	/* A real address has a bit above 42 set, by which a coloured one is known. */
	j.high = UINT64_C(1) << 44;
	put(&j, OBJECT + 16, (j.high | (OBJECT + CELL)) << 14 | 1 << 13 | 0x10, 8);
	put(&j, OBJECT + CELL, c.string << 42, 8);
	put(&j, OBJECT + CELL + 24, (j.high | (OBJECT + 2 * CELL)) << 13 | 1 << 12 | 0x20, 8);
	put(&j, OBJECT + 2 * CELL + 8, 1, 4);
	put(&j, OBJECT + 2 * CELL + 12, 0x20ac, 2);
	assert_true(hotspot_exception_read(&j.l, &j.m, OBJECT, &known, &out));
	assert_int_equal(known.way, CLASS_IN_MARK);
	assert_true(known.wide);
	assert_int_equal(known.message, 16);
	assert_string_equal(out.type, "shop.NoStock");
	assert_string_equal(out.message, "\xe2\x82\xac");
}

TEST(so_it_is_with_compact_headers_and_coloured_references)
{
	message_is_read((const unsigned[]){0, 2, 4});
}

TEST(flags_of_a_field_are_where_the_jvm_says)
{
	message_is_read((const unsigned[]){3, 5, 7});            /* 28 */
}

TEST(collections_are_counted)
{
	struct jvm j;
	uint64_t heap;

	begin(&j);
	assert_int_equal(hotspot_collections(&j.l, &j.m, &heap), 0);
	put(&j, STATICS + 16, OBJECT, 8);
	put(&j, OBJECT + 24, 41, 4);
	assert_int_equal(hotspot_collections(&j.l, &j.m, &heap), 41);
	assert_int_equal(heap, OBJECT);
}

/* A circle of classes, and a stream of fields that says too much. */
TEST(a_jvm_that_lies_has_no_exceptions)
{
	struct hotspot_exceptions known = {0};
	struct managed_thrown out;
	struct classes c;
	struct jvm j;

	begin(&j);
	j.l.fields[F_CLASS_FIELD_STREAM] = (struct hotspot_field){true, 8, FIELDS};
	make_classes(&j, &c);
	put(&j, OBJECT + 8, c.no_stock, 4);
	put(&j, c.throwable + SUPER, c.no_stock, 8);
	assert_false(hotspot_exception_read(&j.l, &j.m, OBJECT, &known, &out));
	put(&j, c.throwable + SUPER, CLASSES, 8);
	put(&j, c.throwable + FIELDS, j.next, 8);
	put(&j, j.next, 0xffffffff, 4);
	memset(j.memory + (j.next + 4 - BASE), 0xff, 40);
	assert_true(hotspot_exception_read(&j.l, &j.m, OBJECT, &known, &out));
	assert_int_equal(known.message, 0);
	assert_string_equal(out.type, "shop.NoStock");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_exception_has_its_class_and_message),
		cmocka_unit_test(so_it_is_with_compact_headers_and_coloured_references),
		cmocka_unit_test(flags_of_a_field_are_where_the_jvm_says),
		cmocka_unit_test(collections_are_counted),
		cmocka_unit_test(a_jvm_that_lies_has_no_exceptions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
