/*
 * A symbol reader: how the frames of one kind of code object get their names.
 *
 * The worker asks the readers in turn, in the order of symbol_readers[]; the first that says it
 * reads an object has it. All slots are called by the worker's thread only.
 */
#ifndef SYMBOL_READER_H
#define SYMBOL_READER_H

#include "model/frame.h"
#include "symbol/bytes.h"

/* What a reader found. The strings stay good until its next call. */
struct symbol {
	uint64_t offset;              /* of the function's first byte, as frames count */
	const char *name;             /* the linker's */
	const char *module;           /* overrides the object's name; or NULL */
};

/* Where readers may look. */
struct symbol_env {
	const char *path;             /* of PE and PDB files, as _NT_SYMBOL_PATH; NULL = none */
	struct dbghelp *dbghelp;      /* Windows' symbol handler; NULL = none. The worker's */
	struct symbol_disk *disk;     /* the cache on disk; NULL = none. The worker's */
	bool foreign;                 /* a trace of another machine or time: pids say nothing here */
	bool lowest;                  /* the worker's priority, even while an incident waits for names */
};

/* An open object. Readers embed it as first member. */
struct symbol_table {
	const struct symbol_reader *reader;
	bool holds_file;              /* has a file open, which rest() closes; find() may open it */
	bool has_idle_work;           /* idle() has something to do */
	const char *note;             /* what a person should know: logged once, then set to NULL */
};

struct symbol_reader {
	const char *name;
	bool live;                    /* asks this machine as it is now: no use for foreign traces */
	/* Whether objects of this kind are its own; looks at the key only. */
	bool (*reads)(const struct object *object);
	/*
	 * Find, check and index it. pid maps it, or did; 0 in foreign traces. Object and env outlive
	 * the table.
	 */
	int (*open)(const struct symbol_env *env, const struct object *object, uint32_t pid,
		    struct symbol_table **out, struct err *err);
	/* The function that holds a frame's offset; false = none does. */
	bool (*find)(struct symbol_table *table, uint64_t offset, struct symbol *out);
	/* Memory that it takes; may be more or less after a find(). */
	size_t (*bytes)(const struct symbol_table *table);
	/* Close the file; find() opens it again if it can. NULL = never holds one. */
	void (*rest)(struct symbol_table *table);
	/* There is nothing else to do now: what others need not wait for. NULL = never has such work. */
	void (*idle)(struct symbol_table *table);
	void (*close)(struct symbol_table *table);
};

extern const struct symbol_reader elf_reader, kallsyms_reader, ksymbol_reader, pe_reader, perfmap_reader;
extern const struct symbol_reader *const symbol_readers[];   /* ends in NULL */

#endif
