#include "model/incident.h"

#include "base/array.h"
#include "base/table.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A file name has at most 255 characters; a longer text must not hide the function. */
#define MODULE_TEXT_MAX 1000

const char *incident_title(const struct incident_head *h, char out[INCIDENT_TITLE_BYTES])
{
	snprintf(out, INCIDENT_TITLE_BYTES, "Incident %" PRId64, h->id);
	return h->id ? out : "History";
}

const char *incident_frame_module(const struct incident *in, uint32_t frame)
{
	const struct incident_frame *f = &in->frames[frame];
	const struct incident_module *m = &in->modules[f->module];

	if (f->function_module && *f->function_module)
		return f->function_module;
	if (m->kind == OBJECT_UNKNOWN)
		return "?";
	if (m->name && *m->name)
		return m->name;
	if (m->kind == OBJECT_KERNEL)
		return "[kernel]";
	return m->kind == OBJECT_JIT ? "[jit]" : "?";
}

const char *code_kind_text(enum code_kind kind)
{
	static const char *const texts[CODE_KINDS] = {
		"", "kernel", "native", "Java", "Python", "JavaScript", ".NET", "generated",
	};

	return kind < CODE_KINDS ? texts[kind] : "";
}

static bool ends_in(const char *text, const char *end)
{
	size_t n = text ? strlen(text) : 0, nend = strlen(end);

	return n >= nend && strcasecmp(text + n - nend, end) == 0;
}

/* The modules that sources give to generated code. Others are no code: "event", "[thread]". */
static enum code_kind generated_code(const char *module)
{
	static const struct {
		const char *module;
		enum code_kind kind;
	} known[] = {
		{"[java]", CODE_JAVA}, {"[python]", CODE_PYTHON},
		{"[javascript]", CODE_JAVASCRIPT}, {"[.net]", CODE_DOTNET},
		{"[jit]", CODE_GENERATED},
	};
	size_t i;

	for (i = 0; module && i < COUNT_OF(known); i++) {
		if (strcmp(module, known[i].module) == 0)
			return known[i].kind;
	}
	return CODE_NONE;
}

/*
 * .NET is the only runtime whose generated methods have a module, and whose precompiled ones lie in
 * files called .dll on Linux; on Windows NGEN's are called .ni.dll, and .ni.exe.
 */
enum code_kind incident_frame_code(const struct incident *in, uint32_t frame)
{
	const struct incident_frame *f = &in->frames[frame];
	const struct incident_module *m = &in->modules[f->module];
	enum code_kind code;

	if (f->flags & FRAME_TEXT)
		return CODE_NONE;
	if (f->flags & FRAME_KERNEL)
		return CODE_KERNEL;
	switch (m->kind) {
	case OBJECT_KERNEL:
		return CODE_KERNEL;
	case OBJECT_JIT:
		code = generated_code(m->name);
		return code == CODE_GENERATED && f->function_module && *f->function_module
			       ? CODE_DOTNET
			       : code;
	case OBJECT_ELF:
		return ends_in(m->name, ".dll") ? CODE_DOTNET : CODE_NATIVE;
	case OBJECT_PE:
		return ends_in(m->name, ".ni.dll") || ends_in(m->name, ".ni.exe") ? CODE_DOTNET
										  : CODE_NATIVE;
	case OBJECT_UNKNOWN:
		break;
	}
	return CODE_NONE;
}

uint64_t frame_address(const struct incident *in, uint32_t frame)
{
	const struct incident_frame *f = &in->frames[frame];

	return f->offset + (f->flags & FRAME_RETURN_ADDRESS ? 1 : 0);
}

bool frame_is_named(const struct incident *in, uint32_t frame)
{
	return in->frames[frame].function && *in->frames[frame].function;
}

void incident_frame_text_as(const struct incident *in, uint32_t frame, const char *module,
			    size_t module_bytes, bool addresses, struct buf *out)
{
	const struct incident_frame *f = &in->frames[frame];
	bool named = frame_is_named(in, frame);
	size_t start = out->len;

	if (f->flags & FRAME_TEXT && named) {
		utf8_put_clean(out, f->function, strlen(f->function), INCIDENT_TEXT_MAX);
		return;
	}
	if (!named && addresses && in->modules[f->module].kind == OBJECT_UNKNOWN) {
		buf_printf(out, "0x%" PRIX64, frame_address(in, frame));
		return;
	}
	utf8_put_clean(out, module, module_bytes, MODULE_TEXT_MAX);
	buf_putc(out, '!');
	if (named)
		utf8_put_clean(out, f->function, strlen(f->function),
			       INCIDENT_TEXT_MAX - (out->len - start));
	else if (addresses)
		buf_printf(out, "+0x%" PRIX64, frame_address(in, frame));
	else
		buf_putc(out, '?');
}

void incident_frame_text(const struct incident *in, uint32_t frame, bool addresses,
			 struct buf *out)
{
	const char *module = incident_frame_module(in, frame);

	incident_frame_text_as(in, frame, module, strlen(module), addresses, out);
}

static bool is_twin(const void *ctx, uint32_t value, const void *key)
{
	const struct incident_frame *a = &((const struct incident_frame *)ctx)[value], *b = key;

	return a->function == b->function && a->module == b->module &&
	       a->function_module == b->function_module && a->raw_name == b->raw_name &&
	       a->file == b->file && a->line == b->line &&
	       (a->flags | FRAME_RETURN_ADDRESS) == (b->flags | FRAME_RETURN_ADDRESS);
}

uint32_t *incident_frame_twins(const struct incident *in)
{
	uint32_t *twins = array_of_none(in->nframes), i;
	struct table table = {0};
	int rc = 0;

	for (i = 0; twins && !rc && i < in->nframes; i++) {
		const struct incident_frame *f = &in->frames[i];
		uint64_t hash = hash_u64((uintptr_t)f->function ^ (uint64_t)f->module << 48);

		if (frame_is_named(in, i))
			twins[i] = table_find(&table, hash, is_twin, in->frames, f);
		if (twins[i] != TABLE_NONE)
			continue;
		twins[i] = i;
		if (frame_is_named(in, i))
			rc = table_add(&table, hash, i);
	}
	table_free(&table);
	if (!rc)
		return twins;
	free(twins);
	return NULL;
}
