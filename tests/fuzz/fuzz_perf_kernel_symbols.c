/*
 * Any bytes as a text of kallsyms up to a NUL, and records of code that comes and goes, as steps of
 * u8 call, u8 which name, u8 at which 256 bytes, u8 how many of them. Until the text is read the
 * code at each place is what came there last; after that its name stands in the text, or is one of
 * those, and execve is found only if the text has it.
 */
#include "source/perf/kernel_symbols.h"

#include "base/array.h"
#include "symbol/kallsyms.h"

#include <stdlib.h>
#include <string.h>

#define AT 0xffffffffc0200000u
#define UNIT 0x100u
#define UNITS 512u
#define GAP_NS (11 * NS_PER_SEC)             /* between readings: kernel_symbols_look() */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"bpf_prog_one", "bpf_trampoline_7", "[kernel]", ""};
static const char *truth[UNITS];
static char *text;

static int read_text(kallsyms_take *take, void *to, uint64_t *modules, struct err *err)
{
	(void)err;
	*modules = 0;
	return take(to, text, strlen(text));
}

static void feed(struct kernel_symbols *k, const uint8_t *step, bool gone, uint64_t now_ns)
{
	const char *name = names[step[1] % COUNT_OF(names)];
	struct perf_record r = {.kind = PERF_KIND_KSYMBOL, .time_ns = now_ns,
				.u.ksymbol = {AT + step[2] * UNIT, step[3] * UNIT, gone, name}};
	unsigned i;

	for (i = 0; i < step[3] && (gone || (*name && *name != '[')); i++)
		truth[step[2] + i] = gone ? NULL : name;
	kernel_symbols_feed(k, &r);
}

static bool is_fed(const char *name)
{
	return strcmp(name, names[0]) == 0 || strcmp(name, names[1]) == 0;
}

static void check(const struct kernel_symbols *k, bool was_read)
{
	uint64_t address = AT + 5;
	unsigned i;

	for (i = 0; i < UNITS; i++, address += UNIT) {
		struct frame_ref at = {0};
		bool found = kernel_symbols_find(k, address, &at);

		if (!was_read && (found ? !truth[i] || strcmp(at.object->key.path, truth[i]) != 0
					: truth[i] != NULL))
			abort();
		if (found && !is_fed(at.object->key.path) && !strstr(text, at.object->key.path))
			abort();
		if (kernel_symbols_in(k, KERNEL_EXEC, &address, 1) && !strstr(text, "sys_execve"))
			abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	size_t n = strnlen((const char *)data, size), i;
	struct kernel_symbols *k;
	struct pool *pool = NULL;            /* of this input: its jobs read `text` */
	struct frames *frames;
	uint64_t now_ns = GAP_NS;
	bool was_read = false;

	text = strndup((const char *)data, n);
	if (!text || frames_new(&frames, NULL))
		abort();
	k = kernel_symbols_new(frames, read_text, NULL, NULL);
	if (!k)
		abort();
	memset(truth, 0, sizeof(truth));
	for (i = n + 1; i + 4 <= size; i += 4, now_ns += NS_PER_SEC) {
		was_read |= data[i] % 8 >= 6;
		if (data[i] % 8 < 6)
			feed(k, data + i, data[i] % 8 > 3, now_ns);
		else if (data[i] % 8 == 6)
			kernel_symbols_scan(k, text, strlen(text), now_ns);
		else
			kernel_symbols_rescan(k, false);
		if (data[i] % 8 == 7 && !pool &&
		    pool_new("kallsyms", 1, OS_PRIORITY_NORMAL, &pool, NULL))
			abort();
		if (pool)
			kernel_symbols_look(k, pool, now_ns, data[i + 1] & 1 ? NS_PER_SEC : 0);
	}
	check(k, was_read);
	kernel_symbols_free(k, now_ns);
	pool_free(pool);
	frames_free(frames);
	free(text);
	return 0;
}
