#include "symbol/kallsyms.h"
#include "symbol/reader.h"

#include <stdlib.h>

struct kernel_table {
	struct symbol_table base;
	struct kallsyms *kallsyms;
};

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_KERNEL;
}

static int open_kernel(const struct symbol_env *env, const struct object *object, uint32_t pid,
		       struct symbol_table **out, struct err *err)
{
	struct kernel_table *t = calloc(1, sizeof(*t));
	struct buf text = {0};
	int rc;

	(void)object;
	(void)env;
	(void)pid;
	if (!t)
		return err_set(err, ERR_MEMORY, "out of memory for the kernel's symbols");
	t->base.reader = &kallsyms_reader;
	rc = kallsyms_read(&text, err);
	if (!rc)
		rc = kallsyms_parse(buf_text(&text), text.len, &t->kallsyms, err);
	buf_free(&text);
	if (rc)
		free(t);
	else
		*out = &t->base;
	return rc;
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	const struct kernel_table *t = (struct kernel_table *)table;
	uint64_t base = kallsyms_base(t->kallsyms);
	struct kernel_function function;

	if (!kallsyms_find(t->kallsyms, base + offset, &function))
		return false;
	*out = (struct symbol){function.address - base, function.name, function.module};
	return true;
}

static size_t bytes(const struct symbol_table *table)
{
	const struct kernel_table *t = (const struct kernel_table *)table;

	return sizeof(*t) + kallsyms_bytes(t->kallsyms);
}

static void close_kernel(struct symbol_table *table)
{
	struct kernel_table *t = (struct kernel_table *)table;

	kallsyms_free(t->kallsyms);
	free(t);
}

const struct symbol_reader kallsyms_reader = {
	.name = "kallsyms",
	.live = true,
	.reads = reads,
	.open = open_kernel,
	.find = find,
	.bytes = bytes,
	.close = close_kernel,
};
