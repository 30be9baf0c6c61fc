/* The writer thread, see writer.c; and the thread of commands, see command.c, which it feeds. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct engine;

struct writer {                              /* the writer's, once it runs */
	struct store *store;
	uint32_t deferrals;                  /* of retention, in a row */
	uint64_t retain_end_ns;              /* of retention after the run; 0 = not begun */
	bool rule_failure_logged;
};

void writer_main(void *engine);

/* Writer: an incident is stored; export it and run StopCommand, as far as that was requested. */
void command_add(struct engine *e, int64_t incident, const char *rule, const char *reason);
void command_main(void *engine);
/* Control thread: no further job comes; command_main() returns when all are done. */
void command_end(struct engine *e);
