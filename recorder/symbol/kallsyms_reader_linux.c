/*
 * Names for the kernel proper and its modules. Modules come and go without a record, and an address
 * after the last function of a known module may belong to a new one. So before a frame outside the
 * kernel proper gets a name, the list of modules is compared with that of the last reading.
 */
#include "symbol/kallsyms.h"
#include "base/os.h"
#include "symbol/reader.h"

#include <stdlib.h>

struct kernel_table {
	struct symbol_table base;
	struct kallsyms *kallsyms;
	uint64_t modules;              /* kallsyms_modules() at the time of reading */
	uint64_t read_ns;
	uint64_t wait_ns;              /* until it is read again for a frame without a name */
};

/* Reading costs 30 ms; when it did not help, the next one waits twice as long. */
#define WAIT_NS (30 * NS_PER_SEC)
#define WAIT_MAX_NS (3600 * NS_PER_SEC)

/* given: by whom has read it already; NULL = nobody */
static int read_all(struct kernel_table *t, struct kallsyms_text *given, struct err *err)
{
	struct kallsyms *kallsyms = NULL;
	struct buf text = {0};
	uint64_t modules;
	int rc;

	if (kallsyms_text_take(given, &text, &modules))
		rc = kallsyms_parse(buf_text(&text), text.len, &kallsyms, err);
	else if ((kallsyms = kallsyms_new()) == NULL)
		rc = err_memory(err, "for the kernel's symbols");
	else
		rc = kallsyms_finish(kallsyms, kallsyms_read(kallsyms_add, kallsyms, &modules, err),
				     err);
	buf_free(&text);
	if (rc)
		return rc;
	kallsyms_free(t->kallsyms);
	t->kallsyms = kallsyms;
	t->base.bytes = sizeof(*t) + kallsyms_bytes(kallsyms);
	t->modules = modules;
	return 0;
}

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_KERNEL && object->key.path[0] == '[';
}

static int open_kernel(const struct symbol_env *env, const struct object *object, uint32_t pid,
		       struct symbol_table **out, struct err *err)
{
	struct kernel_table *t = calloc(1, sizeof(*t));
	int rc;

	(void)object;
	(void)pid;
	if (!t)
		return err_memory(err, "for the kernel's symbols");
	t->base.reader = &kallsyms_reader;
	t->read_ns = os_now_ns();
	t->wait_ns = WAIT_NS;
	rc = read_all(t, env->kallsyms, err);
	if (rc)
		free(t);
	else
		*out = &t->base;
	return rc;
}

/* The old list stays when reading it again fails. */
static bool read_again(struct kernel_table *t, bool found)
{
	uint64_t now_ns = os_now_ns();

	if (kallsyms_modules() == t->modules) {
		if (found || now_ns - t->read_ns < t->wait_ns)
			return false;
		t->wait_ns = t->wait_ns < WAIT_MAX_NS / 2 ? 2 * t->wait_ns : WAIT_MAX_NS;
	}
	t->read_ns = now_ns;
	return read_all(t, NULL, NULL) == 0;
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	struct kernel_table *t = (struct kernel_table *)table;
	uint64_t base = kallsyms_base(t->kallsyms);
	struct kernel_function function;
	bool found = kallsyms_find(t->kallsyms, base + offset, &function);

	if ((!found || function.module) && read_again(t, found)) {
		bool was_found = found;

		found = kallsyms_find(t->kallsyms, base + offset, &function);
		if (found && !was_found)
			t->wait_ns = WAIT_NS;
	}
	if (!found)
		return false;
	*out = (struct symbol){.offset = function.address - base, .name = function.name,
			       .module = function.module};
	return true;
}

static void close_kernel(struct symbol_table *table)
{
	struct kernel_table *t = (struct kernel_table *)table;

	kallsyms_free(t->kallsyms);
	free(t);
}

const struct symbol_reader kallsyms_reader = {
	.live = true,
	.reads = reads,
	.open = open_kernel,
	.find = find,
	.close = close_kernel,
};
