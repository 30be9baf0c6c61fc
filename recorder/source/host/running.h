/* The names of running programs, for remarks about rules that name none of them. Any thread. */
#pragma once

#include "model/process_name.h"

typedef void running_one(void *ctx, uint32_t pid, const struct process_names *names);

/* Call one() for each. returns  false when this system cannot list them */
bool running_each(running_one *one, void *ctx);
