/* Names for frames in ELF objects: the file that a process maps, and an index of its functions. */
#include "symbol/debuglink.h"
#include "symbol/elf_file.h"
#include "symbol/elf_minidebug.h"
#include "symbol/reader.h"
#include "symbol/symbol_open.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct elf_table {
	struct symbol_table base;
	const struct object *object;
	uint32_t pid;
	struct elf_head head;         /* of the file that is mapped */
	struct elf_file names;        /* that file, or its debug file; open while names are read */
	bool separate;                /* names is the debug file */
	struct buf linked;            /* its path, when it was found by a link; else empty */
	struct elf_index *index;
	char name[FUNCTION_NAME_MAX + 1];
	char note[2200];
};

static bool reads(const struct object *object)
{
	return object->key.kind == OBJECT_ELF;
}

static bool is_vdso(const struct object *object)
{
	return strcmp(object->key.path, "[vdso]") == 0;
}

/* ---- the reader ------------------------------------------------------------------------------ */

static void rest(struct symbol_table *table)
{
	struct elf_table *t = (struct elf_table *)table;

	elf_file_close(&t->names);
	table->holds_file = false;
}

static void close_elf(struct symbol_table *table)
{
	struct elf_table *t = (struct elf_table *)table;

	rest(table);
	elf_index_free(t->index);
	buf_free(&t->linked);
	free(t);
}

/*
 * Distributions strip programs and put the full .symtab into a file of its own. Where it is
 * installed it names what .dynsym does not. Its addresses are those of the program.
 */
static void use_debug_file(struct elf_table *t)
{
	struct elf_index *index = NULL;
	struct elf_file debug;

	if (!debug_file_open(t->object, t->pid, &t->names, &t->linked, &debug))
		return;
	if (elf_index_new(&debug.bytes, &debug.head, &index, NULL) ||
	    elf_index_count(index) <= elf_index_count(t->index)) {
		elf_index_free(index);
		elf_file_close(&debug);
		return;
	}
	elf_index_free(t->index);
	elf_file_close(&t->names);
	t->index = index;
	t->names = debug;
	t->separate = true;
}

/* With what is packed into it. Where that cannot be unpacked, .dynsym has to do, and it is said. */
static int index_file(struct elf_table *t, struct err *err)
{
	struct buf text = {.max_bytes = ELF_MINIDEBUG_MAX_BYTES + 1};
	struct err why = {0};
	struct bytes mini;
	int rc = elf_minidebug_read(&t->names.bytes, &t->head, &text, &why);

	if (!rc) {
		mini = bytes_of_memory(text.data, text.len);
		rc = elf_index_new_mini(&t->names.bytes, &t->head, &mini, &t->index, &why);
	}
	buf_free(&text);
	if (!rc)
		return 0;
	if (rc != ERR_NOT_FOUND) {
		snprintf(t->note, sizeof(t->note), "%.1500s: %s; only its exported functions have names",
			 t->object->key.path, why.text);
		t->base.note = t->note;
	}
	return elf_index_new(&t->names.bytes, &t->head, &t->index, err);
}

static int open_elf(const struct symbol_env *env, const struct object *object, uint32_t pid,
		    struct symbol_table **out, struct err *err)
{
	struct elf_table *t = calloc(1, sizeof(*t));
	int rc;

	(void)env;
	if (!t)
		return err_set(err, ERR_MEMORY, "out of memory for its symbols");
	t->base.reader = &elf_reader;
	t->object = object;
	t->pid = pid;
	if (is_vdso(object)) {
		rc = symbol_vdso(&t->names.bytes, err);
		if (!rc)
			rc = elf_head_read(&t->names.bytes, &t->names.head, err);
	} else {
		rc = elf_file_open(object, pid, false, NULL, &t->names, err);
	}
	t->head = t->names.head;
	if (!rc)
		rc = index_file(t, err);
	if (rc) {
		close_elf(&t->base);
		return rc;
	}
	use_debug_file(t);
	t->base.holds_file = t->names.file != NULL;
	/* Nothing more to read: an open file would only keep its disk space and mount busy. */
	if (elf_index_has_names(t->index))
		rest(&t->base);
	*out = &t->base;
	return 0;
}

/* Names are read from the file: have it open again, if it is still the same. */
static bool has_names(struct elf_table *t)
{
	struct elf_file again;

	if (elf_index_has_names(t->index) || t->names.file || is_vdso(t->object))
		return true;
	if (t->separate && t->linked.len
		    ? debuglink_reopen(buf_text(&t->linked), &t->names, &again, NULL)
		    : elf_file_open(t->object, t->pid, t->separate, &t->names, &again, NULL))
		return false;
	t->names = again;
	t->base.holds_file = true;
	return true;
}

static bool find(struct symbol_table *table, uint64_t offset, struct symbol *out)
{
	struct elf_table *t = (struct elf_table *)table;
	struct elf_function function;
	uint64_t vaddr, start;

	if (!elf_vaddr(&t->head, offset, &vaddr) || !elf_find(t->index, vaddr, &function) ||
	    !has_names(t))
		return false;
	if (elf_function_name(t->index, &t->names.bytes, &function, t->name, sizeof(t->name), NULL) ||
	    !t->name[0])
		return false;
	if (!elf_offset(&t->head, function.vaddr, &start))
		start = offset - (vaddr - function.vaddr);
	*out = (struct symbol){start, t->name, NULL};
	return true;
}

static size_t bytes(const struct symbol_table *table)
{
	const struct elf_table *t = (const struct elf_table *)table;

	return sizeof(*t) + elf_index_bytes(t->index);
}

const struct symbol_reader elf_reader = {
	.name = "elf",
	.reads = reads,
	.open = open_elf,
	.find = find,
	.bytes = bytes,
	.rest = rest,
	.close = close_elf,
};
