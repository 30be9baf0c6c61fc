/* Shared by the parsers of manifests and of TRACE_EVENT_INFO. */
#include "source/etw/manifest_private.h"

#include <stdlib.h>
#include <string.h>

size_t etw_builder_text_begin(struct etw_builder *b)
{
	return b->texts.len;
}

size_t etw_builder_text_end(struct etw_builder *b, size_t begun)
{
	buf_putc(&b->texts, '\0');
	return begun + 1;
}

void etw_builder_field(struct etw_builder *b, const struct etw_schema_field *field, size_t name)
{
	buf_put(&b->fields, field, sizeof(*field));
	buf_put(&b->field_names, &name, sizeof(name));
}

uint32_t etw_builder_nfields(const struct etw_builder *b)
{
	return (uint32_t)(b->fields.len / sizeof(struct etw_schema_field));
}

static void put_trimmed(struct buf *out, const char *text)
{
	size_t n = strlen(text);

	while (n && text[n - 1] == ' ')
		n--;
	buf_put(out, text, n);
}

/* The opcode without "win:"; DC_Start and DC_Stop in PerfView's spelling. */
static const char *opcode_name(const char *opcode)
{
	if (strncmp(opcode, "win:", 4) == 0)
		opcode += 4;
	if (strcmp(opcode, "DC_Start") == 0)
		return "DCStart";
	if (strcmp(opcode, "DC_Stop") == 0)
		return "DCStop";
	return strcmp(opcode, "Info") == 0 ? "" : opcode;
}

void etw_builder_event_name(struct buf *out, const char *task, const char *opcode, uint16_t id)
{
	opcode = opcode_name(opcode);
	if (!*task) {
		buf_printf(out, "EventID(%u)", id);
		return;
	}
	put_trimmed(out, task);
	if (*opcode) {
		buf_putc(out, '/');
		put_trimmed(out, opcode);
	}
}

static int by_id(const void *a, const void *b)
{
	const struct etw_manifest_event *x = a, *y = b;

	return x->id != y->id ? (x->id < y->id ? -1 : 1)
			      : (x->version > y->version) - (x->version < y->version);
}

/* A copy of a buffer's bytes; not NULL for zero bytes. */
static void *taken(struct buf *b)
{
	void *copy = malloc(b->len ? b->len : 1);

	if (copy && b->len)
		memcpy(copy, b->data, b->len);
	return copy;
}

static void resolve(struct etw_builder *b, struct etw_manifest *m, size_t nevents)
{
	const struct etw_built_event *built = (const void *)b->events.data;
	const size_t *names = (const void *)b->field_names.data;

	for (size_t i = 0; i < etw_builder_nfields(b); i++)
		m->fields[i].field.name = names[i] ? m->texts + names[i] - 1 : "";
	for (size_t i = 0; i < nevents; i++)
		m->events[i] = (struct etw_manifest_event){
			.id = built[i].id, .version = built[i].version,
			.name = built[i].name ? m->texts + built[i].name - 1 : "",
			.schema = {.fields = m->fields + built[i].field,
				   .nfields = built[i].nfields}};
	m->nevents = (uint32_t)nevents;
	m->provider = b->provider ? m->texts + b->provider - 1 : "";
	qsort(m->events, nevents, sizeof(*m->events), by_id);
}

static int finish(struct etw_builder *b, struct etw_manifest **out)
{
	size_t nevents = b->events.len / sizeof(struct etw_built_event);
	struct etw_manifest *m;

	if (b->events.failed || b->fields.failed || b->field_names.failed || b->texts.failed)
		return ERR_MEMORY;
	if (!nevents)
		return ERR_FORMAT;
	m = calloc(1, sizeof(*m));
	if (!m)
		return ERR_MEMORY;
	m->events = calloc(nevents, sizeof(*m->events));
	m->fields = taken(&b->fields);
	m->texts = taken(&b->texts);
	if (!m->events || !m->fields || !m->texts) {
		etw_manifest_free(m);
		return ERR_MEMORY;
	}
	m->nbytes = sizeof(*m) + nevents * sizeof(*m->events) + b->fields.len + b->texts.len;
	resolve(b, m, nevents);
	*out = m;
	return 0;
}

int etw_builder_finish(struct etw_builder *b, struct etw_manifest **out)
{
	int rc = finish(b, out);

	buf_free(&b->events);
	buf_free(&b->fields);
	buf_free(&b->field_names);
	buf_free(&b->texts);
	return rc;
}

void etw_manifest_free(struct etw_manifest *manifest)
{
	if (!manifest)
		return;
	free(manifest->events);
	free(manifest->fields);
	free(manifest->texts);
	free(manifest);
}

const struct etw_manifest_event *etw_manifest_find(const struct etw_manifest *manifest, uint16_t id,
						   uint8_t version)
{
	struct etw_manifest_event key = {.id = id, .version = version};

	return bsearch(&key, manifest->events, manifest->nevents, sizeof(key), by_id);
}
