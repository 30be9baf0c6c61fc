/* Stubs of this very program: the dynamic linker says which function each jumps to. */
#include "base/os.h"
#include "symbol/elf.h"
#include "tests/support/test.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* Of the first object, which is the program. */
static int take_base(struct dl_phdr_info *info, size_t bytes, void *base)
{
	(void)bytes;
	*(uint64_t *)base = info->dlpi_addr;
	return 1;
}

/* Where a stub in memory jumps to; NULL = it is none that this test knows. */
static const void *target_of(const uint8_t *stub)
{
	int32_t distance;
	const void *target;
	unsigned at;

	for (at = 0; at < 6 && (stub[at] != 0xff || stub[at + 1] != 0x25); at++)
		;
	if (at == 6)
		return NULL;
	memcpy(&distance, stub + at + 2, sizeof(distance));
	memcpy(&target, stub + at + 6 + distance, sizeof(target));
	return target;
}

TEST(every_stub_is_called_as_the_function_that_it_jumps_to)
{
	struct os_file *file = NULL;
	struct os_file_info info;
	struct elf_head head;
	struct elf_index *index = NULL;
	struct bytes in;
	uint64_t base = 0;
	uint32_t i, n = 0;

	assert_int_equal(os_open("/proc/self/exe", OS_READ, &file, NULL), 0);
	assert_int_equal(os_file_info(file, &info, NULL), 0);
	in = bytes_of_file(file, info.size_bytes);
	assert_int_equal(elf_head_read(&in, &head, NULL), 0);
	assert_int_equal(elf_index_new(&in, &head, NULL, &index, NULL), 0);
	dl_iterate_phdr(take_base, &base);
	for (i = 0; i < index->nentries; i++) {
		const struct elf_entry *e = &index->entries[i];
		struct elf_function f = {index->base + e->start, e->size, e->name};
		char name[200];
		size_t len;

		assert_int_equal(elf_function_name(index, &in, &f, name, sizeof(name), NULL), 0);
		len = strlen(name);
		if (len < 5 || strcmp(name + len - 4, "@plt") != 0)
			continue;
		name[len - 4] = '\0';
		assert_ptr_equal(target_of((const uint8_t *)(uintptr_t)(base + f.vaddr)),
				 dlsym(RTLD_DEFAULT, name));
		n++;
	}
	elf_index_free(index);
	os_close(file);
	if (!n)
		skip();                      /* another processor */
	assert_true(n > 10);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_stub_is_called_as_the_function_that_it_jumps_to),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
