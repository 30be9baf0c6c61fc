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

void put_clr_metadata(uint8_t root[CLR_METADATA_BYTES])
{
	static const char strings[] = "\0M.dll\0Outer\0N\0Inner\0First\0Second\0Third\0<Module>";
	uint8_t *tables = root + 0x40;

	put_bytes(root, "BSJB\1\0\1\0\0\0\0\0\4\0\0\0v4\0\0\0\0\2\0", 24);
	put_bytes(root + 24, "\x40\0\0\0\x90\0\0\0#~\0\0", 12);
	put_bytes(root + 36, "\xd0\0\0\0\x60\0\0\0#Strings\0\0\0\0", 20);
	put_bytes(root + CLR_STRINGS_AT, strings, sizeof(strings));
	/* Tables 0, 2, 6 and 0x29 have 1, 3, 3 and 1 rows. */
	put_bytes(tables, "\0\0\0\0\2\0\0\1\x45\0\0\0\0\2\0\0", 16);
	put_bytes(tables + 24, "\1\0\0\0\3\0\0\0\3\0\0\0\1\0\0\0", 16);
	put_bytes(tables + 40, "\0\0\1\0\0\0\0\0\0\0", 10);
	put_bytes(tables + 50, "\0\0\0\0\x29\0\0\0\0\0\1\0\1\0", 14);
	put_bytes(tables + 64, "\0\0\0\0\7\0\xd\0\0\0\1\0\1\0", 14);
	put_bytes(tables + 78, "\0\0\0\0\xf\0\0\0\0\0\1\0\3\0", 14);
	put_bytes(tables + 92, "\0\0\0\0\0\0\0\0\x15\0\0\0\1\0", 14);
	put_bytes(tables + 106, "\0\0\0\0\0\0\0\0\x1b\0\0\0\1\0", 14);
	put_bytes(tables + 120, "\0\0\0\0\0\0\0\0\x22\0\0\0\1\0", 14);
	put_bytes(tables + 134, "\3\0\2\0", 4);
}
