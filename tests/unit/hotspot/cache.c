/*
 * When the name of a method can be trusted, in a made-up JVM: a few methods of one class, and its
 * count of classes that were unloaded.
 */
#include "base/bytes.h"
#include "base/os.h"
#include "managed/hotspot/cache.h"
#include "managed/hotspot/task.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

enum { BASE = 0x10000, BYTES = 0x40000, PERF = BASE + 0x100, VALUE = PERF + 32 + 48,
       PERF_POINTER = BASE + 8, REDEFINES = BASE + 16, CLASS = BASE + 0x400, POOL = BASE + 0x500,
       TEXTS = BASE + 0x600, CODE = BASE + 0x800, METHODS = BASE + 0x1000, METHOD_BYTES = 16 };
/* Of a class; of a pool, whose slots are behind it; of a ConstMethod; of a symbol. */
enum { NAME = 8, HOLDER = 0, NPOOL = 8, POOL_BYTES = 16, CONSTANTS = 0, NBYTES = 8, NAME_AT = 10,
       SIGNATURE_AT = 12, CODE_BYTES = 16, BODY = 4 };

static uint8_t memory[BYTES];
static struct managed_names *names;
static struct hotspot_cache *cache;

static uint32_t nmethod_reads;               /* of the first method */

static size_t read_jvm(void *ctx, uint64_t address, void *to, size_t n)
{
	(void)ctx;
	nmethod_reads += address == METHODS;
	if (address < BASE || address - BASE >= BYTES)
		return 0;
	n = n < BYTES - (address - BASE) ? n : BYTES - (size_t)(address - BASE);
	memcpy(to, memory + (address - BASE), n);
	return n;
}

static bool run(void *ctx, struct managed_task *task)
{
	const struct managed_memory m = {.read = read_jvm};

	(void)ctx;
	task->run(task, &m);
	return true;
}

static const struct managed_host host = {.run = run};

static void put(uint64_t at, uint64_t v, unsigned bytes)
{
	unsigned i;

	for (i = 0; i < bytes; i++)
		memory[at - BASE + i] = (uint8_t)(v >> 8 * i);
}

static void put_symbol(uint64_t at, const char *text)
{
	put(at, strlen(text), 2);
	memcpy(memory + (at - BASE) + BODY, text, strlen(text));
}

/* An entry has 64 bytes: its name at 20, its value at 48. */
static void put_counter(unsigned i, const char *name)
{
	uint64_t entry = PERF + 32 + i * 64;

	put(entry, 64, 4);
	put(entry + 4, 20, 4);
	put(entry + 12, 'J', 1);
	put(entry + 16, 48, 4);
	strcpy((char *)memory + (entry + 20 - BASE), name);
}

static void put_performance_data(void)
{
	memcpy(memory + (PERF - BASE), "\xca\xfe\xc0\xc0\x01\x02", 6);
	put(PERF + 24, 32, 4);
	put(PERF + 28, 1, 4);
	put_counter(0, "java.cls.unloadedClasses");
	put(PERF_POINTER, PERF, 8);
}

static void unloaded(uint64_t n)
{
	put(VALUE, n, 8);
}

static void begin(void)
{
	static const struct { enum hotspot_field_id id; uint64_t at; uint8_t bytes; } fields[] = {
		{F_CONST_METHOD, 0, 8}, {F_CONSTANTS, CONSTANTS, 8}, {F_CODE_BYTES, NBYTES, 2},
		{F_NAME_INDEX, NAME_AT, 2}, {F_SIGNATURE_INDEX, SIGNATURE_AT, 2},
		{F_POOL_HOLDER, HOLDER, 8}, {F_POOL_LENGTH, NPOOL, 4}, {F_KLASS_NAME, NAME, 8},
		{F_SYMBOL_LENGTH, 0, 2}, {F_SYMBOL_BODY, BODY, 8}, {F_PERF_DATA, PERF_POINTER, 8},
		{F_MAY_REDEFINE, REDEFINES, 1}};
	struct hotspot_layout *l = calloc(1, sizeof(*l));
	size_t i;

	assert_non_null(l);
	l->refs = 1;
	l->sizes[T_CONST_METHOD] = CODE_BYTES;
	l->sizes[T_CONSTANT_POOL] = POOL_BYTES;
	for (i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		l->fields[fields[i].id] = (struct hotspot_field){
			.found = true, .bytes = fields[i].bytes, .at = fields[i].at};
	memset(memory, 0, sizeof(memory));
	put(CODE + CONSTANTS, POOL, 8);
	put(CODE + NAME_AT, 1, 2);
	put(CODE + SIGNATURE_AT, 2, 2);
	put(POOL + HOLDER, CLASS, 8);
	put(POOL + NPOOL, 3, 4);
	put(POOL + POOL_BYTES + 8, TEXTS, 8);
	put(POOL + POOL_BYTES + 16, TEXTS + 0x40, 8);
	put(CLASS + NAME, TEXTS + 0x80, 8);
	put_symbol(TEXTS, "work");
	put_symbol(TEXTS + 0x40, "()V");
	put_symbol(TEXTS + 0x80, "shop/Order");
	for (i = METHODS; i < BASE + BYTES; i += METHOD_BYTES)
		put(i, CODE, 8);
	put_performance_data();
	names = managed_names_new();
	cache = hotspot_cache_new(l, names);
	assert_non_null(cache);
}

static void end(void)
{
	hotspot_cache_free(cache);
	managed_names_free(names);
}

static uint32_t number_of(unsigned method)
{
	struct hotspot_known k;

	assert_true(hotspot_cache_method(cache, &host, METHODS + method * METHOD_BYTES, &k));
	return hotspot_cache_number(cache, &k);
}

static void next_moment(void)
{
	hotspot_cache_begin(cache, &host, os_now_ns());
}

/* Between a sample and the reading of its method, that method's class may have been unloaded. */
TEST(what_is_read_first_after_classes_were_unloaded_has_no_name_yet)
{
	begin();
	next_moment();
	next_moment();
	assert_int_not_equal(number_of(0), 0);
	unloaded(5);
	next_moment();
	assert_int_not_equal(number_of(0), 0);           /* known since before */
	assert_int_equal(number_of(1), 0);
	next_moment();
	assert_int_not_equal(number_of(1), 0);           /* it was there all the time */
	assert_int_not_equal(number_of(2), 0);
	unloaded(6);                                     /* while the moment's samples are walked */
	assert_int_equal(number_of(3), 0);
	next_moment();
	assert_int_not_equal(number_of(3), 0);
	assert_int_equal(number_of(4), 0);               /* nobody knew of 6 at the sample */
	next_moment();
	assert_int_not_equal(number_of(4), 0);
	end();
}

/* Recording begins beside a JVM that runs: what it did between its first sample and now is dark. */
TEST(so_it_is_for_the_first_samples_where_any_class_was_ever_unloaded)
{
	uint64_t early_ns;
	unsigned i;

	for (i = 0; i < 2; i++) {
		begin();
		unloaded(i ? 5 : 0);
		early_ns = os_now_ns();
		hotspot_cache_begin(cache, &host, early_ns);
		assert_int_equal(number_of(0) == 0, i);
		next_moment();
		assert_int_not_equal(number_of(0), 0);
		assert_int_not_equal(number_of(1), 0);
		end();
	}
}

/* The class that is redefined is loaded anew, and counted; it matters where that may happen. */
TEST(so_it_is_after_classes_were_redefined)
{
	unsigned i;

	for (i = 0; i < 2; i++) {
		begin();
		put_counter(1, "java.cls.loadedClasses");
		put(VALUE + 64, 20, 8);
		put(REDEFINES, i, 1);
		next_moment();
		next_moment();
		assert_int_not_equal(number_of(0), 0);
		put(VALUE + 64, 21, 8);
		assert_int_equal(number_of(1) == 0, i);
		next_moment();
		assert_int_not_equal(number_of(0), 0);
		assert_int_not_equal(number_of(1), 0);
		end();
	}
}

/* What was read while older samples were walked is younger than a sample of the next moment. */
TEST(so_it_is_for_samples_from_before_it_was_read)
{
	uint64_t early_ns;

	begin();
	next_moment();
	next_moment();
	unloaded(5);
	early_ns = os_now_ns();
	assert_int_equal(number_of(0), 0);
	hotspot_cache_begin(cache, &host, early_ns);
	assert_int_equal(number_of(0), 0);
	next_moment();
	assert_int_not_equal(number_of(0), 0);
	end();
}

/* A sample may wait for other tables while many moments pass. */
TEST(so_it_is_for_samples_from_many_moments_ago)
{
	uint64_t early_ns;
	unsigned i;

	begin();
	next_moment();
	next_moment();
	early_ns = os_now_ns();
	unloaded(5);
	for (i = 0; i < 3 * HOTSPOT_UNLOADS; i++)
		next_moment();
	hotspot_cache_begin(cache, &host, early_ns);
	assert_int_equal(number_of(0), 0);
	for (i = 0; i < 3 * HOTSPOT_UNLOADS; i++) {
		unloaded(6 + i);
		next_moment();
	}
	hotspot_cache_begin(cache, &host, early_ns);
	assert_int_equal(number_of(1), 0);           /* nobody knows what it was then */
	next_moment();
	assert_int_not_equal(number_of(2), 0);
	end();
}

/* A class comes to the place of another one: with it the counts change. */
TEST(a_class_is_compared_where_classes_were_loaded_or_unloaded)
{
	uint32_t first;
	unsigned i;

	for (i = 0; i < 2; i++) {
		begin();
		put_counter(1, "java.cls.loadedClasses");
		next_moment();
		first = number_of(0);
		next_moment();
		assert_int_equal(number_of(0), first);
		put_symbol(TEXTS + 0x80, "shop/Price");
		next_moment();
		assert_int_equal(number_of(0), first);
		put(i ? VALUE : VALUE + 64, 1, 8);
		next_moment();
		assert_int_equal(number_of(0), 0);
		next_moment();
		assert_int_not_equal(number_of(0), first);
		assert_int_not_equal(number_of(0), 0);
		end();
	}
}

/* Where no class came or went for a while, methods are not read; where one did, they are again. */
TEST(methods_are_not_read_while_no_class_comes_or_goes)
{
	uint32_t first, before;

	begin();
	put_counter(1, "java.cls.loadedClasses");
	next_moment();
	next_moment();
	first = number_of(0);
	before = nmethod_reads;
	next_moment();
	assert_int_equal(number_of(0), first);
	assert_int_equal(nmethod_reads, before + 1);
	cache->changed_ns -= 11 * NS_PER_SEC;
	next_moment();
	assert_int_equal(number_of(0), first);
	assert_int_equal(nmethod_reads, before + 1);
	put_symbol(TEXTS + 0x80, "shop/Price");
	put(VALUE + 64, 1, 8);
	next_moment();
	assert_true(nmethod_reads > before + 1);
	assert_int_equal(number_of(0), 0);
	before = nmethod_reads;
	next_moment();
	assert_int_not_equal(number_of(0), first);
	assert_true(nmethod_reads > before);
	end();
}

/* What is read first in the moment of the change may be another; later it is what it is. */
TEST(a_method_that_is_gone_costs_others_one_moment)
{
	begin();
	next_moment();
	assert_int_not_equal(number_of(0), 0);
	next_moment();
	put_symbol(TEXTS + 0x80, "shop/Price");
	unloaded(1);
	next_moment();
	assert_int_equal(number_of(1), 0);
	next_moment();
	assert_int_not_equal(number_of(2), 0);
	end();
}

/* A class of the same name comes to the same places, and has its methods in another order. */
TEST(a_method_of_the_same_class_is_compared_by_where_its_name_is)
{
	uint32_t first;

	begin();
	next_moment();
	first = number_of(0);
	put_symbol(TEXTS + 0xc0, "rest");
	put(POOL + POOL_BYTES + 8, TEXTS + 0xc0, 8);
	unloaded(1);
	next_moment();
	assert_int_equal(number_of(0), 0);
	next_moment();
	assert_int_not_equal(number_of(0), first);
	assert_int_not_equal(number_of(0), 0);
	end();
}

/* More than is read in one moment waits for the next: it is not taken for nothing. */
TEST(what_is_not_read_in_a_moment_is_missed)
{
	struct hotspot_known k;
	unsigned i;

	begin();
	next_moment();
	for (i = 0; i < HOTSPOT_NEW_MAX; i++)
		assert_true(hotspot_cache_method(cache, &host, METHODS + i * METHOD_BYTES, &k));
	assert_false(hotspot_cache_method(cache, &host, BASE, &k));
	assert_true(cache->missed);
	assert_true(hotspot_cache_method(cache, &host, METHODS, &k));
	next_moment();
	assert_false(cache->missed);
	assert_true(hotspot_cache_method(cache, &host, METHODS + i * METHOD_BYTES, &k));
	assert_false(cache->missed);
	end();
}

TEST(without_a_count_of_classes_methods_have_names)
{
	begin();
	put(PERF_POINTER, 0, 8);
	next_moment();
	assert_int_not_equal(number_of(0), 0);
	unloaded(5);
	next_moment();
	assert_int_not_equal(number_of(1), 0);
	end();
}

/* The table of methods moves as it grows, while a step still uses what it got first. */
TEST(a_method_is_kept_while_others_are_added)
{
	struct hotspot_known first, other;
	unsigned i;

	begin();
	next_moment();
	assert_true(hotspot_cache_method(cache, &host, METHODS, &first));
	for (i = 1; i < 400; i++)
		assert_true(hotspot_cache_method(cache, &host, METHODS + i * METHOD_BYTES,
						 &other));
	assert_int_equal(first.address, METHODS);
	assert_int_equal(hotspot_cache_number(cache, &first), number_of(0));
	end();
}

/* Its bytes stay where they are when a block is freed; smaller blobs may then be within it. */
TEST(a_blob_whose_block_was_freed_is_none)
{
	enum { BLOCK = BASE + 0x2000, BLOB = BLOCK + 16, USED = 8 };
	const struct managed_memory m = {.read = read_jvm};
	struct hotspot_identity before, after;
	struct hotspot_layout *l;

	begin();
	l = cache->layout;
	l->sizes[T_HEAP_BLOCK] = 16;
	l->sizes[T_BLOB] = 32;
	l->sizes[T_NMETHOD] = 64;
	l->fields[F_BLOCK_HEADER] = (struct hotspot_field){true, 8, 0};
	l->fields[F_BLOCK_USED] = (struct hotspot_field){true, 1, USED};
	l->fields[F_BLOB_NAME] = (struct hotspot_field){true, 8, 0};
	l->fields[F_BLOB_SIZE] = (struct hotspot_field){true, 4, 8};
	l->fields[F_COMPILE_ID] = (struct hotspot_field){true, 4, 12};
	put(BLOCK + USED, 1, 1);
	put(BLOB, TEXTS, 8);
	put(BLOB + 8, 640, 4);
	put(BLOB + 12, 77, 4);
	assert_true(hotspot_identity_read(l, &m, BLOB, true, &before));
	assert_int_equal(before.compile_id, 77);
	put(BLOCK + USED, 0, 1);
	assert_true(hotspot_identity_read(l, &m, BLOB, true, &after));
	assert_false(hotspot_identity_same(&before, &after));
	end();
}

/* An entry that ends behind the data, one of no length, and a value outside its entry. */
TEST(performance_data_that_lies_has_no_count)
{
	static const struct { uint64_t at, v; } lies[] = {
		{PERF + 24, 0xffffffff}, {PERF + 32, 0xffffffff}, {PERF + 32, 0},
		{PERF + 36, 60}, {PERF + 48, 60}, {PERF + 32 + 12, 0}};
	const struct managed_memory m = {.read = read_jvm};
	size_t i;

	for (i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		begin();
		assert_int_equal(hotspot_counter_find(cache->layout, &m,
						      COUNTER_UNLOADED), VALUE);
		put(lies[i].at, lies[i].v, 4);
		assert_int_equal(hotspot_counter_find(cache->layout, &m,
						      COUNTER_UNLOADED), 0);
		end();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_read_first_after_classes_were_unloaded_has_no_name_yet),
		cmocka_unit_test(so_it_is_for_the_first_samples_where_any_class_was_ever_unloaded),
		cmocka_unit_test(so_it_is_after_classes_were_redefined),
		cmocka_unit_test(so_it_is_for_samples_from_before_it_was_read),
		cmocka_unit_test(so_it_is_for_samples_from_many_moments_ago),
		cmocka_unit_test(a_class_is_compared_where_classes_were_loaded_or_unloaded),
		cmocka_unit_test(methods_are_not_read_while_no_class_comes_or_goes),
		cmocka_unit_test(a_method_that_is_gone_costs_others_one_moment),
		cmocka_unit_test(a_method_of_the_same_class_is_compared_by_where_its_name_is),
		cmocka_unit_test(what_is_not_read_in_a_moment_is_missed),
		cmocka_unit_test(without_a_count_of_classes_methods_have_names),
		cmocka_unit_test(a_method_is_kept_while_others_are_added),
		cmocka_unit_test(a_blob_whose_block_was_freed_is_none),
		cmocka_unit_test(performance_data_that_lies_has_no_count),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
