/* The programs that run now, by name, for sentences about rules whose processes are none of them. Any thread. */
#ifndef SOURCE_RUNNING_H
#define SOURCE_RUNNING_H

#include <stdbool.h>
#include <stdint.h>

/* name: as rules name it, without its folder; not whole: the first RUNNING_CUT_BYTES of it. */
typedef void running_one(void *ctx, uint32_t pid, const char *name, bool whole);

#define RUNNING_CUT_BYTES 15u                /* TASK_COMM_LEN of Linux, without the zero */

/* Each to one(). false = who they are is not known on this system. */
bool running_each(running_one *one, void *ctx);

#endif
