/*
 * Names for BPF programs, trampolines and the like: their record gave the name, and the object
 * carries it (source/perf/kernel_symbols.h). Modules are named as in kallsyms.
 */
#include "symbol/reader.h"

#include <stdlib.h>
#include <string.h>

struct ksymbol_table {
	struct symbol_table base;
	const struct object *object;
};

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_KERNEL && object->key.path[0] != '[';
}

static int open_ksymbol(const struct symbol_env *env, const struct object *object, uint32_t pid,
			struct symbol_table **out, struct err *err)
{
	struct ksymbol_table *t = calloc(1, sizeof(*t));

	(void)env;
	(void)pid;
	if (!t)
		return err_memory(err, "for a kernel symbol");
	t->base.reader = &ksymbol_reader;
	t->base.bytes = sizeof(*t);
	t->object = object;
	*out = &t->base;
	return 0;
}

static const char *module_of(const char *name)
{
	if (!strncmp(name, "ftrace", 6))
		return "__builtin__ftrace";
	return strncmp(name, "kprobe", 6) ? "bpf" : "__builtin__kprobes";
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	const struct ksymbol_table *t = (struct ksymbol_table *)table;
	const char *name = t->object->key.path;

	(void)offset;
	*out = (struct symbol){.name = name, .module = module_of(name)};
	return true;
}

static void close_ksymbol(struct symbol_table *table)
{
	free(table);
}

const struct symbol_reader ksymbol_reader = {
	.reads = reads,
	.open = open_ksymbol,
	.find = find,
	.close = close_ksymbol,
};
