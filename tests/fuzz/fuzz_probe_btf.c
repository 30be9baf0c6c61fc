/* The kernel's types; members are looked for in each structure that has one of these names. */
#include "source/probe/btf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct btf_type wanted[] = {
		{.kind = BTF_STRUCT, .name = "task_struct"}, {.kind = BTF_STRUCT, .name = "a"},
		{.kind = BTF_TYPEDEF, .name = "a"}, {.kind = BTF_FUNCTION, .name = "a"},
	};
	struct btf b;
	uint32_t offset;
	unsigned i;

	if (!btf_open(data, n, &b))
		return 0;
	btf_find(&b, wanted, 4);
	for (i = 0; i < 4; i++) {
		btf_member(&b, &wanted[i], "pid", &offset);
		btf_member(&b, &wanted[i], "", &offset);
	}
	return 0;
}
