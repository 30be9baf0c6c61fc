/*
 * A symbol reader: how the frames of one kind of code object get their names.
 *
 * The worker asks the readers in the order of symbol_readers[]; the first one that says it reads an
 * object gets it. Only the thread of the table's worker calls the slots. A slot may hang in a file
 * system: then another worker goes on with other objects, in its own tables.
 */
#pragma once

#include "model/frame.h"
#include "symbol/bytes.h"

/* What a reader found. The strings are valid until its next call. */
struct symbol {
	uint64_t offset;              /* of the function's first byte, counted as in frames */
	const char *name;             /* the linker's; NULL: symbol_env.take() took it */
	const char *module;           /* overrides the object's name; or NULL */
	const char *raw_name;         /* of a source's frame: function.raw_name; or NULL */
};

/* Who else knows code of a process that runs, though not when it was sampled first. */
struct symbol_witness {
	/* The worker's thread, never blocks; the strings are valid until its next call. */
	bool (*find)(void *ctx, const struct object *object, uint64_t offset, struct symbol *out);
	void *ctx;
};

/* Where readers may look. */
struct symbol_env {
	const struct symbol_witness *witness;    /* asked where the readers find nothing; NULL */
	const char *path;             /* of PE and PDB files, as _NT_SYMBOL_PATH; NULL = none */
	struct dbghelp *dbghelp;      /* Windows' symbol handler; NULL = none. One worker's */
	struct symbol_disk *disk;     /* the cache on disk; NULL = none */
	struct kallsyms_text *kallsyms;          /* Linux: read by a source already; NULL */
	struct sandbox *sandbox;      /* reads files; NULL = this process does. One worker's */
	bool sandboxed;               /* workers get one; needs a main() that serves: sandbox.h */
	const struct symbol_reader *const *readers;      /* NULL = symbol_readers */
	bool foreign;               /* a trace of another machine or time: pids mean nothing here */
	bool lowest;             /* the worker's priority, even while an incident waits for names */
	/*
	 * NULL, or: true when the frame that find() is asked for now gets the name that the
	 * function at this offset of its object has already. Then find() need not read it.
	 */
	bool (*take)(void *ctx, uint64_t start);
	void *take_ctx;
};

/* An open object. Readers embed it as first member. */
struct symbol_table {
	const struct symbol_reader *reader;
	bool holds_file;              /* has a file open, which rest() closes; find() may open it */
	bool has_idle_work;           /* idle() has something to do */
	size_t bytes;                 /* the memory that it takes; find() may change it */
	const char *note;             /* a sentence for people: logged once, then set to NULL */
};

struct symbol_reader {
	bool live;        /* asks this machine as it is now: useless for foreign traces */
	/* Does it read objects of this kind? Looks at the key only. */
	bool (*reads)(const struct object *object);
	/* Find, check and index it. pid maps or mapped it, or 0. Object and env outlive it. */
	int (*open)(const struct symbol_env *env, const struct object *object, uint32_t pid,
		    struct symbol_table **out, struct err *err);
	/* Find the function that holds a frame's offset; false = there is none. */
	bool (*find)(struct symbol_table *table, uint64_t offset, struct symbol *out);
	/* Close the file; find() reopens it if it can. NULL = never holds one. */
	void (*rest)(struct symbol_table *table);
	/* There is nothing else to do: do work that nobody waits for. NULL = never has any. */
	void (*idle)(struct symbol_table *table);
	void (*close)(struct symbol_table *table);
};

extern const struct symbol_reader elf_reader, ksymbol_reader, pe_reader;
extern const struct symbol_reader kallsyms_reader, perfmap_reader;   /* Linux */
extern const struct symbol_reader *const symbol_readers[];   /* this host's; ends in NULL */
