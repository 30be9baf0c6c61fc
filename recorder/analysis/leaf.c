#include "analysis/leaf.h"

#include "base/table.h"

#include <string.h>

uint32_t leaf_module(struct incident *in)
{
	const struct incident_module module = {.kind = OBJECT_JIT, .name = "event",
					       .path = "[event]"};

	return incident_add_module(in, &module);
}

uint32_t leaf_add(struct incident *in, uint32_t module, uint32_t stack, const char *what)
{
	struct incident_frame frame = {.module = module, .flags = FRAME_JIT, .function = what,
				       .offset = hash_bytes(what, strlen(what))};
	uint32_t number = incident_add_frame(in, &frame);

	return number == UINT32_MAX ? STACK_NONE : incident_add_stack(in, stack, number);
}
