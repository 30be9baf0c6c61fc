#include "symbol/debug_info_linux.h"

#include "base/array.h"
#include "base/library_linux.h"
#include "base/sort.h"
#include "symbol/demangle.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NESTING_MAX 512u                 /* blocks and functions within each other */
#define PATH_BYTES 4096
#define OVERLAPS_MAX 64u                 /* ranges searched that begin before an address */

/* ---- libdw ----------------------------------------------------------------------------------- */

#define LIBDW(F) \
	F(elf_version) F(elf_begin) F(elf_end) F(dwarf_begin_elf) F(dwarf_end) \
	F(dwarf_get_units) F(dwarf_ranges) F(dwarf_haspc) F(dwarf_hasattr) F(dwarf_tag) \
	F(dwarf_child) F(dwarf_siblingof) F(dwarf_offdie) F(dwarf_dieoffset) F(dwarf_attr) \
	F(dwarf_attr_integrate) F(dwarf_formstring) F(dwarf_formudata) F(dwarf_diename) \
	F(dwarf_entrypc) F(dwarf_getsrcfiles) F(dwarf_filesrc) F(dwarf_getsrc_die) \
	F(dwarf_lineno) F(dwarf_linesrc)

struct libdw {
	LIBDW(LIBRARY_MEMBER)
};

static const char *load_libdw(struct libdw *lib)
{
	static const char *const names[] = {LIBDW(LIBRARY_NAME) NULL};

	return library_load("libdw.so.1", names, lib);
}

int debug_info_check(struct err *err)
{
	struct libdw lib;
	const char *missing = load_libdw(&lib);

	if (!missing)
		return 0;
	return err_set(err, ERR_UNSUPPORTED,
		       "source lines and inlined functions need elfutils' libdw, and %s is "
		       "missing: install libdw1 (Debian), elfutils-libs (Fedora) or libdw (others)",
		       missing);
}

/* ---- ranges of addresses --------------------------------------------------------------------- */

struct range {
	uint64_t start, end;
	Dwarf_Off die;
};

struct ranges {
	struct range *items;
	uint32_t n, room;
	bool failed;
};

struct debug_info {
	struct libdw lib;
	const struct elf_head *head;
	Elf *elf;
	Dwarf *dwarf;
	struct ranges units;
	struct ranges functions;             /* of one unit */
	Dwarf_Off unit;                      /* which */
	bool has_unit;
	char names[LINES_DEPTH_MAX][FUNCTION_NAME_MAX + 1];
	char files[LINES_DEPTH_MAX][PATH_BYTES];
};

static void add_die(struct debug_info *d, Dwarf_Die *die, struct ranges *to)
{
	Dwarf_Off offset = d->lib.dwarf_dieoffset(die);
	Dwarf_Addr base = 0, start, end;
	ptrdiff_t at = 0;

	while ((at = d->lib.dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		/* Code that the linker discarded keeps its debug information, near address 0. */
		if (!start || start >= end || !elf_code_segment(d->head, start))
			continue;
		if (ARRAY_ROOM(to->items, to->room, to->n + 1)) {
			to->failed = true;
			return;
		}
		to->items[to->n++] = (struct range){start, end, offset};
	}
}

/* By start; among equal starts the larger range first, so that the inner one is found. */
static int compare_ranges(const void *left, const void *right)
{
	const struct range *a = left, *b = right;

	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return a->die < b->die ? -1 : a->die > b->die;
}

static const struct range *find_range(const struct ranges *r, uint64_t vaddr)
{
	uint32_t n = sorted_upto(r->items, r->n, sizeof(*r->items), 8, vaddr), i;

	for (i = 1; i <= n && i <= OVERLAPS_MAX; i++) {
		if (vaddr < r->items[n - i].end)
			return &r->items[n - i];
	}
	return NULL;
}

/* ---- units and functions --------------------------------------------------------------------- */

/* Read from the units themselves: clang does not write .debug_aranges, which lists them. */
static void list_units(struct debug_info *d)
{
	Dwarf_CU *unit = NULL;
	Dwarf_Die die;

	while (d->lib.dwarf_get_units(d->dwarf, unit, &unit, NULL, NULL, &die, NULL) == 0)
		add_die(d, &die, &d->units);
	qsort(d->units.items, d->units.n, sizeof(*d->units.items), compare_ranges);
}

static bool holds_functions(int tag)
{
	return tag == DW_TAG_namespace || tag == DW_TAG_module || tag == DW_TAG_class_type ||
	       tag == DW_TAG_structure_type || tag == DW_TAG_union_type ||
	       tag == DW_TAG_enumeration_type || tag == DW_TAG_subprogram ||
	       tag == DW_TAG_lexical_block;
}

static void list_functions(struct debug_info *d, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;
	int tag;

	if (depth > NESTING_MAX || d->lib.dwarf_child(parent, &die) != 0)
		return;
	do {
		tag = d->lib.dwarf_tag(&die);
		if (tag == DW_TAG_subprogram)
			add_die(d, &die, &d->functions);
		if (holds_functions(tag))
			list_functions(d, &die, depth + 1);
	} while (d->lib.dwarf_siblingof(&die, &die) == 0);
}

static bool enter_unit(struct debug_info *d, uint64_t vaddr, Dwarf_Die *unit)
{
	const struct range *at = find_range(&d->units, vaddr);

	if (!at || !d->lib.dwarf_offdie(d->dwarf, at->die, unit))
		return false;
	if (!d->has_unit || d->unit != at->die) {
		d->functions.n = 0;
		d->unit = at->die;
		d->has_unit = true;
		list_functions(d, unit, 0);
		qsort(d->functions.items, d->functions.n, sizeof(*d->functions.items),
		      compare_ranges);
	}
	return !d->functions.failed;
}

/* ---- what stands at an address --------------------------------------------------------------- */

struct walk {
	struct debug_info *d;
	uint64_t vaddr;
	uint32_t n;                          /* functions found, outermost first */
	Dwarf_Die functions[LINES_DEPTH_MAX];
};

static bool has_no_code(struct walk *w, Dwarf_Die *die)
{
	return !w->d->lib.dwarf_hasattr(die, DW_AT_low_pc) &&
	       !w->d->lib.dwarf_hasattr(die, DW_AT_ranges);
}

/* Go inwards through the blocks and inlined functions that hold the address. */
static bool descend(struct walk *w, Dwarf_Die *parent, unsigned depth)
{
	struct libdw *lib = &w->d->lib;
	Dwarf_Die die;
	int tag;

	if (depth > NESTING_MAX || lib->dwarf_child(parent, &die) != 0)
		return false;
	do {
		tag = lib->dwarf_tag(&die);
		if (tag != DW_TAG_inlined_subroutine && tag != DW_TAG_lexical_block &&
		    tag != DW_TAG_try_block && tag != DW_TAG_catch_block)
			continue;
		if (lib->dwarf_haspc(&die, w->vaddr) > 0) {
			if (tag == DW_TAG_inlined_subroutine && w->n < LINES_DEPTH_MAX)
				w->functions[w->n++] = die;
			descend(w, &die, depth + 1);
			return true;
		}
		/* A block that only holds others need not say where it is. */
		if (tag == DW_TAG_lexical_block && has_no_code(w, &die) &&
		    descend(w, &die, depth + 1))
			return true;
	} while (lib->dwarf_siblingof(&die, &die) == 0);
	return false;
}

static const char *linkage_name(struct debug_info *d, Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	if (!d->lib.dwarf_attr_integrate(die, DW_AT_linkage_name, &attr) &&
	    !d->lib.dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attr))
		return NULL;
	return d->lib.dwarf_formstring(&attr);
}

static const char *function_name(struct debug_info *d, Dwarf_Die *die, char *out, size_t n)
{
	const char *raw = linkage_name(d, die);

	if (raw && *raw && demangle(raw, out, n))
		return out;
	if (!raw || !*raw)
		raw = d->lib.dwarf_diename(die);
	if (!raw || !*raw)
		return NULL;
	snprintf(out, n, "%s", raw);
	return out;
}

/* For a function and an inlined one alike; without a declared start, the address itself. */
static uint64_t start_of(struct walk *w, Dwarf_Die *die)
{
	Dwarf_Addr start;
	uint64_t offset;

	if (w->d->lib.dwarf_entrypc(die, &start) != 0 || start > w->vaddr)
		start = w->vaddr;
	return elf_offset(w->d->head, start, &offset) ? offset : 0;
}

static uint64_t read_number(struct debug_info *d, Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!d->lib.dwarf_attr(die, name, &attr) || d->lib.dwarf_formudata(&attr, &value) != 0)
		return 0;
	return value;
}

/* A relative path is relative to the compiler's working directory. */
static const char *whole_path(struct debug_info *d, Dwarf_Die *unit, const char *path, char *out)
{
	Dwarf_Attribute attr;
	const char *dir = NULL;

	if (!path || !*path || path[0] == '/')
		return path;
	if (d->lib.dwarf_attr(unit, DW_AT_comp_dir, &attr))
		dir = d->lib.dwarf_formstring(&attr);
	snprintf(out, PATH_BYTES, "%s%s%s", dir ? dir : "", dir ? "/" : "", path);
	return out;
}

/* Where function `at` was inlined: file and line of the frame that called it. */
static void call_site(struct walk *w, Dwarf_Die *unit, uint32_t at, struct incident_line *caller)
{
	struct debug_info *d = w->d;
	uint64_t line = read_number(d, &w->functions[at], DW_AT_call_line);
	uint64_t file = read_number(d, &w->functions[at], DW_AT_call_file);
	Dwarf_Files *files;
	size_t nfiles;

	if (d->lib.dwarf_getsrcfiles(unit, &files, &nfiles) == 0)
		caller->file = whole_path(d, unit, d->lib.dwarf_filesrc(files, file, NULL, NULL),
					  d->files[at - 1]);
	caller->line = line <= UINT32_MAX ? (uint32_t)line : 0;
}

/* The place of the innermost function: the line table's row. */
static void current_line(struct walk *w, Dwarf_Die *unit, struct incident_line *out)
{
	struct debug_info *d = w->d;
	Dwarf_Line *row = d->lib.dwarf_getsrc_die(unit, w->vaddr);
	int line = 0;

	if (!row)
		return;
	out->file = whole_path(d, unit, d->lib.dwarf_linesrc(row, NULL, NULL),
			       d->files[w->n ? w->n - 1 : 0]);
	if (d->lib.dwarf_lineno(row, &line) == 0 && line > 0)
		out->line = (uint32_t)line;
}

uint32_t debug_info_find(struct debug_info *d, uint64_t vaddr,
			 struct incident_line out[LINES_DEPTH_MAX])
{
	struct walk w = {.d = d, .vaddr = vaddr};
	const struct range *function;
	Dwarf_Die unit;
	uint32_t i;

	if (!enter_unit(d, vaddr, &unit))
		return 0;
	memset(out, 0, LINES_DEPTH_MAX * sizeof(*out));
	function = find_range(&d->functions, vaddr);
	if (function && d->lib.dwarf_offdie(d->dwarf, function->die, &w.functions[0])) {
		w.n = 1;
		descend(&w, &w.functions[0], 0);
	}
	for (i = 0; i < w.n; i++) {
		out[i].function =
			function_name(d, &w.functions[i], d->names[i], sizeof(d->names[i]));
		out[i].function_offset = start_of(&w, &w.functions[i]);
		if (i)
			call_site(&w, &unit, i, &out[i - 1]);
	}
	current_line(&w, &unit, &out[w.n ? w.n - 1 : 0]);
	return w.n || out[0].file ? (w.n ? w.n : 1) : 0;
}

/* ---- open, close ----------------------------------------------------------------------------- */

int debug_info_open(int fd, const struct elf_head *head, struct debug_info **out, struct err *err)
{
	struct debug_info *d = calloc(1, sizeof(*d));

	if (!d)
		return err_memory(err, "for debug information");
	d->head = head;
	if (load_libdw(&d->lib)) {
		free(d);
		return debug_info_check(err);
	}
	d->lib.elf_version(EV_CURRENT);
	d->elf = d->lib.elf_begin(fd, ELF_C_READ_MMAP, NULL);
	d->dwarf = d->elf ? d->lib.dwarf_begin_elf(d->elf, DWARF_C_READ, NULL) : NULL;
	if (d->dwarf)
		list_units(d);
	if (!d->units.n || d->units.failed) {
		int rc = d->units.failed ? ERR_MEMORY : ERR_NOT_FOUND;

		debug_info_close(d);
		return err_set(err, (enum err_code)rc, "it has no readable debug information");
	}
	*out = d;
	return 0;
}

void debug_info_close(struct debug_info *d)
{
	if (!d)
		return;
	if (d->dwarf)
		d->lib.dwarf_end(d->dwarf);
	if (d->elf)
		d->lib.elf_end(d->elf);
	free(d->units.items);
	free(d->functions.items);
	free(d);
}
