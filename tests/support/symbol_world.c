#include "symbol_world.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdatomic.h>
#include <stdio.h>

void symbol_world_open(struct symbol_world *w, const struct symbol_env *env, struct log *log)
{
	static const struct symbol_env live;

	assert_int_equal(frames_new(&w->frames, NULL), 0);
	assert_int_equal(processes_new(&w->processes, NULL), 0);
	assert_int_equal(
		symbols_open(w->frames, env ? env : &live, log, &w->symbols, NULL),
		0);
}

void symbol_world_close(struct symbol_world *w)
{
	symbols_close(w->symbols);
	processes_free(w->processes);
	frames_free(w->frames);
}

void symbol_world_name(const struct symbol_env *env, struct log *log, const struct object_key *key,
		       uint64_t offset, char *out, size_t n)
{
	struct frame_ref ref = {.offset = offset};
	struct symbol_world w;
	struct frame *frame;
	bool fresh;

	symbol_world_open(&w, env, log);
	ref.object = objects_get(w.frames, key, os_pid());
	frame = frame_get(w.frames, frames_intern(w.frames, &ref, &fresh));
	frame_ref(frame);
	symbols_settle(w.symbols, &frame, 1, 20 * NS_PER_SEC);
	snprintf(out, n, "%s", atomic_load(&frame->function) ? frame->function->name : "");
	symbol_world_close(&w);
}
