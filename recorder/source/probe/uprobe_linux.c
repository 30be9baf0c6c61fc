#include "source/probe/uprobe_linux.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "symbol/elf_file.h"
#include "symbol/elf_section.h"
#include "symbol/elf_symbol.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
	REG_AX = 0,
	REG_BX = 1,
	REG_CX = 2,
	REG_DX = 3,
	REG_SI = 4,
	REG_DI = 5,
	REG_SP = 7,
	REG_R8 = 16,
	REG_R9 = 17,
	REG_R10 = 18,
	REG_R11 = 19,
	REG_R14 = 22
};

/* Arguments 1, 2, ... of a function; of Go the ABIInternal (src/cmd/compile/abi-internal.md). */
static const uint8_t c_regs[] = {REG_DI, REG_SI, REG_DX, REG_CX, REG_R8, REG_R9};
static const uint8_t go_regs[] = {REG_AX, REG_BX, REG_CX, REG_DI, REG_SI, REG_R8, REG_R9, REG_R10,
				  REG_R11};
#define GOROUTINE "Goroutine"                /* R14: its g */

bool uprobe_provider(const char *provider)
{
	return text_same_fold(provider, "uprobe") || text_same_fold(provider, "usdt");
}

int uprobe_pmu(uint32_t *type, struct err *err)
{
	struct buf text = {0};
	int rc = os_load("/sys/bus/event_source/devices/uprobe/type", 32, &text, NULL);

	*type = rc ? 0 : (uint32_t)strtoul(buf_text(&text), NULL, 10);
	buf_free(&text);
	return *type ? 0
		     : err_set(err, ERR_UNSUPPORTED,
			       "this kernel has no probes in programs (CONFIG_UPROBE_EVENTS, "
			       "since Linux 4.17)");
}

/* ---- the file -------------------------------------------------------------------------------- */

/* The caller closes it, also after an error. */
static int program_open(const char *path, struct elf_file *out, struct err *err)
{
	struct os_file_info info;
	struct err why;
	int rc = os_open(path, OS_READ_PLAIN, &out->file, &why);

	if (!rc)
		rc = os_file_info(out->file, &info, &why);
	if (!rc) {
		out->bytes = bytes_of_file(out->file, info.size_bytes);
		rc = elf_head_read(&out->bytes, &out->head, &why);
	}
	return rc ? err_set(err, ERR_USAGE, "cannot put a probe into %.200s: %s", path, why.text)
		  : 0;
}

/* ---- a function ------------------------------------------------------------------------------ */

static int unknown_function(const char *path, const char *name, const struct elf_near *near,
			    struct err *err)
{
	struct buf text = {0};
	unsigned i;

	for (i = 0; i < near->n; i++)
		buf_printf(&text, "%s%.150s",
			   !i ? "; the nearest are " : i + 1 < near->n ? ", " : " and ",
			   near->names[i]);
	if (!near->n)
		buf_puts(&text, " (write C++ names as nm prints them; a stripped program has only "
				"what it exports)");
	err_set(err, ERR_USAGE, "%.200s has no function '%.150s' in its symbol tables%s", path,
		name, buf_text(&text));
	buf_free(&text);
	return ERR_USAGE;
}

/*
 * Is it a Go program? It has a table of its functions (before 1.13 that alone; linked by the
 * system's linker at any address it has no section of its own) and what it was built from.
 *
 * registers  whether arguments are in registers. They are since 1.17; flag 2 of the build
 *            information is set since 1.18 (src/debug/buildinfo), and before that it is not told
 */
static int read_go(const struct elf_file *in, bool *is_go, bool *registers, struct err *err)
{
	static const char *const names[] = {".go.buildinfo", ".gopclntab"};
	struct elf_section s;
	uint8_t head[16];
	unsigned i;
	int rc = ERR_NOT_FOUND;

	*registers = false;
	for (i = 0; i < COUNT_OF(names) && rc && rc != ERR_MEMORY; i++) {
		rc = elf_section_find(&in->bytes, &in->head, names[i], &s, err);
		if (!rc && i == 0 &&
		    !bytes_read(&in->bytes, s.offset, head, sizeof(head), names[i], NULL))
			*registers = head[15] & 2;
	}
	*is_go = rc == 0;
	return rc == ERR_MEMORY ? rc : 0;
}

/* Where Go functions are; C functions of a Go program are elsewhere, or among them. */
static bool in_go_text(const struct elf_file *in, uint64_t vaddr)
{
	uint64_t from, to;

	return elf_symbol_find(&in->bytes, &in->head, "runtime.text", &from, NULL, NULL) ||
	       elf_symbol_find(&in->bytes, &in->head, "runtime.etext", &to, NULL, NULL) ||
	       (vaddr >= from && vaddr < to);
}

/* Go functions are named package.function; with arguments on the stack, package.function.abi0. */
static int look_for_go(const struct elf_file *in, const char *name, uint64_t vaddr,
		       struct uprobe *out, struct err *err)
{
	size_t n = strlen(name);
	bool is_go, registers;
	int rc = read_go(in, &is_go, &registers, err);

	if (rc || !is_go || !in_go_text(in, vaddr))
		return rc;
	if (strchr(name, '.')) {
		out->is_go = registers && (n < 5 || strcmp(name + n - 5, ".abi0") != 0);
		out->has_no_registers = !out->is_go;
	}
	if (!out->is_return)
		return 0;
	return err_set(err, ERR_USAGE,
		       "%.200s is a Go program: a probe at a function's return would crash it, "
		       "because its stacks move; name the function that ends what is measured, as "
		       "in ;StopEvent=FUNCTION;StartStopID=" GOROUTINE, out->path);
}

static int find_function(const struct elf_file *in, const char *symbol, struct uprobe *out,
			 struct err *err)
{
	struct elf_near *near = calloc(1, sizeof(*near));
	char name[ELF_SYMBOL_NAME_MAX];
	const char *plus = strrchr(symbol, '+'), *percent = strstr(symbol, "%return");
	size_t n = strlen(symbol);
	uint64_t vaddr = 0, more = 0;
	char *end = NULL;
	int rc;

	if (!near)
		return err_memory(err, "for a probe");
	if (percent && !percent[7])
		n = (size_t)(percent - symbol);
	out->is_return = n < strlen(symbol);
	if (plus && plus < symbol + n && plus > symbol) {
		more = strtoull(plus + 1, &end, 0);
		n = end == symbol + n ? (size_t)(plus - symbol) : n;
	}
	snprintf(name, sizeof(name), "%.*s", n > 500 ? 500 : (int)n, symbol);
	rc = elf_symbol_find(&in->bytes, &in->head, name, &vaddr, near, err);
	if (rc == ERR_NOT_FOUND)
		rc = unknown_function(out->path, name, near, err);
	if (!rc && !elf_offset(&in->head, vaddr + more, &out->places[0].offset))
		rc = err_set(err, ERR_USAGE, "%.200s: %.150s is in no part of the file",
			     out->path, symbol);
	out->n = 1;
	if (!rc)
		rc = look_for_go(in, near->names[0], vaddr, out, err);
	free(near);
	return rc;
}

/* ---- a probe that it brings ------------------------------------------------------------------ */

struct usdt_search {
	struct uprobe *out;
	const char *wanted;                  /* provider:name */
	struct nearest nearest;
	char near[64][STAPSDT_NAME_MAX * 2 + 2];
	unsigned n;
};

static int note_usdt(void *ctx, const struct stapsdt *probe)
{
	struct usdt_search *s = ctx;
	struct uprobe_place *place;
	char *name = s->near[s->n < 63 ? s->n++ : 63];

	snprintf(name, sizeof(s->near[0]), "%s:%s", probe->provider, probe->name);
	if (strcmp(name, s->wanted) != 0) {
		nearest_offer(&s->nearest, name);
		if (s->nearest.names[0] != name && s->nearest.names[1] != name &&
		    s->nearest.names[2] != name)
			s->n -= s->n < 63;   /* its place is reused */
		return 0;
	}
	if (s->out->n == UPROBE_PLACES_MAX)
		return 0;
	place = &s->out->places[s->out->n++];
	place->offset = probe->offset;
	place->semaphore = probe->semaphore;
	place->narguments = stapsdt_arguments(probe->arguments, place->arguments);
	return 0;
}

static int find_usdt(const struct elf_file *in, const char *wanted, struct uprobe *out,
		     struct err *err)
{
	struct usdt_search *s = calloc(1, sizeof(*s));
	struct buf near = {0};
	int rc;

	if (!s)
		return err_memory(err, "for a probe");
	s->out = out;
	s->wanted = s->nearest.wanted = wanted;
	rc = stapsdt_each(&in->bytes, &in->head, note_usdt, s, err);
	if (rc == ERR_NOT_FOUND)
		rc = err_set(err, ERR_USAGE, "%.200s has no probes of its own (USDT)", out->path);
	if (!rc && !out->n) {
		if (s->nearest.n)
			buf_puts(&near, "; the nearest are ");
		nearest_put(&s->nearest, "", "", &near);
		rc = err_set(err, ERR_USAGE,
			     "%.200s has no probe '%.150s'%s; 'recorder events %.200s' lists them",
			     out->path, wanted, buf_text(&near), out->path);
		buf_free(&near);
	}
	free(s);
	return rc;
}

int uprobe_resolve(const char *provider, const char *name, struct uprobe *out, struct err *err)
{
	const char *colon = strchr(name, ':');
	struct elf_file in = {0};
	int rc;

	memset(out, 0, sizeof(*out));
	out->file = -1;
	out->is_usdt = text_same_fold(provider, "usdt");
	if (name[0] != '/' || !colon || !colon[1] || colon - name >= UPROBE_PATH_MAX ||
	    (out->is_usdt && !strchr(colon + 1, ':')))
		return err_set(err, ERR_USAGE, "%s:%.200s is not %s", provider, name,
			       out->is_usdt ? "usdt:/path/of/program:provider:name"
					    : "uprobe:/path/of/program:function");
	snprintf(out->path, sizeof(out->path), "%.*s", (int)(colon - name), name);
	rc = program_open(out->path, &in, err);
	if (!rc)
		rc = out->is_usdt ? find_usdt(&in, colon + 1, out, err)
				  : find_function(&in, colon + 1, out, err);
	if (!rc && (out->file = fcntl(os_file_fd(in.file), F_DUPFD_CLOEXEC, 0)) < 0)
		rc = err_os(err, "cannot put a probe into %s", out->path);
	elf_file_close(&in);
	return rc;
}

int uprobe_list(const char *path, stapsdt_one *one, void *ctx, struct err *err)
{
	struct elf_file in = {0};
	int rc = program_open(path, &in, err);

	if (!rc)
		rc = stapsdt_each(&in.bytes, &in.head, one, ctx, err);
	if (rc == ERR_NOT_FOUND)
		err_set(err, ERR_NOT_FOUND, "%.200s has no probes of its own (USDT)", path);
	elf_file_close(&in);
	return rc;
}

/* ---- a hit ----------------------------------------------------------------------------------- */

/* PERF_REGS_MASK (perf_ring_linux.h) has numbers 0 to 8 and 16 to 23. */
bool perf_record_register(const struct perf_record *r, unsigned reg, uint64_t *value)
{
	if (!r->u.sample.regs || r->u.sample.regs_abi != 2 || reg > 23 || (reg > 8 && reg < 16))
		return false;
	*value = r->u.sample.regs[reg <= 8 ? reg : reg - 7];
	return true;
}

bool perf_record_stack(const struct perf_record *r, uint64_t at, void *to, size_t n)
{
	uint64_t sp;

	if (!perf_record_register(r, REG_SP, &sp) || at < sp || at - sp > r->u.sample.stack_bytes ||
	    n > r->u.sample.stack_bytes - (at - sp))
		return false;
	memcpy(to, r->u.sample.stack + (at - sp), n);
	return true;
}

static bool read_argument(const struct stapsdt_argument *a, const struct perf_record *r,
			  uint64_t *out)
{
	unsigned unused = 64 - 8u * a->bytes;
	uint64_t base, v = 0;

	switch (a->place) {
	case STAPSDT_REGISTER:
		if (!perf_record_register(r, a->reg, &v))
			return false;
		break;
	case STAPSDT_CONSTANT:
		v = (uint64_t)a->value;
		break;
	case STAPSDT_MEMORY:
		if (!perf_record_register(r, a->reg, &base) ||
		    !perf_record_stack(r, base + (uint64_t)a->value, &v, a->bytes))
			return false;
		break;
	case STAPSDT_UNKNOWN:
		return false;
	}
	v = v << unused >> unused;
	if (a->is_signed && unused && v >> (63 - unused) & 1)
		v |= ~(uint64_t)0 << (64 - unused);
	*out = v;
	return true;
}

static const char *const names[STAPSDT_ARGUMENTS_MAX] = {
	"Arg1", "Arg2", "Arg3", "Arg4",	 "Arg5",  "Arg6",
	"Arg7", "Arg8", "Arg9", "Arg10", "Arg11", "Arg12",
};

/* Append a field; n: how many there are. */
static void put_field(struct event_field *out, unsigned *n, const char *name, bool is_signed,
		      uint64_t v)
{
	out[*n] = (struct event_field){.name = name, .type = is_signed ? FIELD_INT : FIELD_UINT};
	if (is_signed)
		out[*n].v.i = (int64_t)v;
	else
		out[*n].v.u = v;
	++*n;
}

static unsigned call_registers(const struct uprobe *probe, const uint8_t **regs)
{
	*regs = probe->is_go ? go_regs : c_regs;
	if (probe->is_return || probe->has_no_registers)
		return 0;
	return probe->is_go ? COUNT_OF(go_regs) : COUNT_OF(c_regs);
}

bool uprobe_register(const struct uprobe *probe, const char *field, uint8_t *reg)
{
	const uint8_t *regs;
	unsigned i, n = call_registers(probe, &regs);

	if (probe->is_usdt)
		return false;
	for (i = 0; i < n; i++)
		if (text_same_fold(field, names[i])) {
			*reg = regs[i];
			return true;
		}
	*reg = REG_R14;
	return n && probe->is_go && text_same_fold(field, GOROUTINE);
}

static unsigned call_fields(const struct uprobe *probe, const struct perf_record *r,
			    struct event_field *out)
{
	const uint8_t *regs;
	unsigned i, n = 0, nregs = call_registers(probe, &regs);
	uint64_t v;

	if (probe->is_return && perf_record_register(r, REG_AX, &v))
		put_field(out, &n, "Ret", true, v);
	for (i = 0; i < nregs; i++)
		if (perf_record_register(r, regs[i], &v))
			put_field(out, &n, names[i], false, v);
	if (nregs && probe->is_go && perf_record_register(r, REG_R14, &v))
		put_field(out, &n, GOROUTINE, false, v);
	return n;
}

unsigned uprobe_fields(const struct uprobe *probe, unsigned place, const struct perf_record *r,
		       struct event_field out[STAPSDT_ARGUMENTS_MAX])
{
	const struct uprobe_place *at = &probe->places[place];
	unsigned i, n = 0;
	uint64_t v;

	if (!probe->is_usdt)
		return call_fields(probe, r, out);
	for (i = 0; i < at->narguments; i++)
		if (read_argument(&at->arguments[i], r, &v))
			put_field(out, &n, names[i], at->arguments[i].is_signed, v);
	return n;
}

uint32_t uprobe_field_names(const struct uprobe *probe,
			    struct known_field out[STAPSDT_ARGUMENTS_MAX])
{
	const uint8_t *regs;
	uint32_t i, n = probe->is_usdt ? 0 : call_registers(probe, &regs);

	if (probe->is_return && !probe->is_usdt) {
		out[0] = (struct known_field){"Ret", true};
		return 1;
	}
	for (i = 0; i < probe->n && probe->is_usdt; i++)
		n = probe->places[i].narguments > n ? probe->places[i].narguments : n;
	for (i = 0; i < n; i++)
		out[i] = (struct known_field){names[i], true};
	if (n && probe->is_go && !probe->is_usdt)
		out[n++] = (struct known_field){GOROUTINE, true};
	for (i = 0; i < probe->ntexts && n < STAPSDT_ARGUMENTS_MAX; i++)
		out[n++] = (struct known_field){probe->texts[i].name, false};
	return n;
}
