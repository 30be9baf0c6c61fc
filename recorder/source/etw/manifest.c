/*
 * EventSource manifests.
 *
 *	<provider name="PerfView" guid="{...}">
 *	  <event value="2" version="0" opcode="win:Start" task="Tracing" template="TracingArgs"/>
 *	  <template tid="TracingArgs">
 *	    <data name="message" inType="win:UnicodeString"/>
 *	    <data name="n" inType="win:UInt16"/> <data name="values" inType="win:Int32" count="n"/>
 *	    <struct name="pair" count="n"> <data .../> </struct>
 */
#include "base/array.h"
#include "source/etw/manifest.h"
#include "source/etw/xml.h"

#include <stdlib.h>
#include <string.h>

#define DEPTH 4

struct pending_event {
	struct etw_slice task, opcode, symbol, layout;
	uint16_t id;
	uint8_t version;
};

struct layout {
	struct etw_slice tid;
	uint32_t field, nfields;
};

struct parser {
	struct etw_manifest *m;
	struct etw_texts *texts;
	uint32_t fields_room;
	struct pending_event *events;
	struct layout *layouts;
	uint32_t nevents, events_room, nlayouts, layouts_room;
	struct layout *layout;               /* of the open template; NULL = none is open */
	uint32_t open[DEPTH], nopen;         /* fields of the open structures */
	struct buf text;                     /* of one name */
	int rc;
};

static uint32_t number(struct etw_slice s, uint32_t max)
{
	uint32_t v = 0;

	for (size_t i = 0; i < s.n && s.at[i] >= '0' && s.at[i] <= '9' && v <= max; i++)
		v = v * 10 + (uint32_t)(s.at[i] - '0');
	return v > max ? max : v;
}

struct named_type {
	const char *name;
	uint16_t type;
};

/* The type with this name; 0 = none. */
static uint16_t find_type(const struct named_type *types, size_t n, struct etw_slice name)
{
	for (size_t i = 0; i < n; i++)
		if (etw_slice_is(name, types[i].name))
			return types[i].type;
	return 0;
}

static uint8_t type_of(struct etw_slice in, struct etw_slice shown)
{
	static const struct named_type types[] = {
		{"win:UnicodeString", 1}, {"win:AnsiString", 2}, {"win:Int8", 3}, {"win:UInt8", 4},
		{"win:Int16", 5}, {"win:UInt16", 6}, {"win:Int32", 7}, {"win:UInt32", 8},
		{"win:Int64", 9}, {"win:UInt64", 10}, {"win:Float", 11}, {"win:Double", 12},
		{"win:Boolean", 13}, {"win:Binary", 14}, {"win:GUID", 15}, {"win:Pointer", 16},
		{"win:FILETIME", 17}, {"win:SYSTEMTIME", 18}, {"win:SID", 19}, {"win:HexInt32", 20},
		{"win:HexInt64", 21}, {"trace:SizeT", 308}, {"trace:UnicodeChar", 306},
	};
	static const struct named_type ways[] = {
		{"win:Port", ETW_SHOWN_PORT}, {"win:IPv4", ETW_SHOWN_IP4},
		{"win:SocketAddress", ETW_SHOWN_SOCKET},
	};
	bool hex = shown.n > 10 && memcmp(shown.at, "win:HexInt", 10) == 0;

	return etw_schema_type(find_type(types, COUNT_OF(types), in),
			       hex ? ETW_SHOWN_HEX
				   : (enum etw_shown)find_type(ways, COUNT_OF(ways), shown));
}

/* A count or length: digits, or the name of an earlier field of this template. */
static uint8_t by_of(struct parser *p, struct etw_slice s, uint16_t *out)
{
	const struct etw_schema_field *fields = p->m->fields + p->layout->field;

	if (!s.n)
		return ETW_BY_NONE;
	if (s.at[0] >= '0' && s.at[0] <= '9') {
		*out = (uint16_t)number(s, UINT16_MAX);
		return ETW_BY_NUMBER;
	}
	for (uint32_t i = 0; i < p->layout->nfields; i++)
		if (etw_slice_is(s, fields[i].field.name)) {
			*out = (uint16_t)i;
			return ETW_BY_FIELD;
		}
	*out = 0;
	return ETW_BY_NUMBER;                /* unknown field: zero elements */
}

const char *etw_manifest_text(struct etw_texts *texts, struct buf *text, int *rc)
{
	const char *kept = text->failed ? NULL : etw_texts_keep(texts, buf_text(text), text->len);

	buf_reset(text);
	if (!kept)
		*rc = ERR_MEMORY;
	return kept ? kept : "";
}

static const char *keep_slice(struct parser *p, struct etw_slice s)
{
	etw_xml_put(&p->text, s);
	return etw_manifest_text(p->texts, &p->text, &p->rc);
}

static void add_field(struct parser *p, const struct etw_xml_tag *tag, bool is_struct)
{
	struct etw_schema_field f = {.nmembers = 0};
	struct etw_manifest *m = p->m;

	if (!p->layout)
		return;
	if (m->nfields == ETW_MANIFEST_FIELDS || p->layout->nfields == ETW_SCHEMA_MAX_FIELDS ||
	    (is_struct && p->nopen == DEPTH)) {
		m->cut = true;
		return;
	}
	if (ARRAY_ROOM(m->fields, p->fields_room, m->nfields + 1)) {
		p->rc = ERR_MEMORY;
		return;
	}
	f.count_by = by_of(p, etw_xml_attribute(tag, "count"), &f.count);
	f.length_by = by_of(p, etw_xml_attribute(tag, "length"), &f.length);
	f.field.type = is_struct ? ETW_TYPES
				 : type_of(etw_xml_attribute(tag, "inType"),
					   etw_xml_attribute(tag, "outType"));
	f.field.name = keep_slice(p, etw_xml_attribute(tag, "name"));
	if (p->nopen)
		m->fields[p->open[p->nopen - 1]].nmembers++;
	if (is_struct && !tag->empty)
		p->open[p->nopen++] = m->nfields;
	m->fields[m->nfields++] = f;
	p->layout->nfields++;
}

static void open_template(struct parser *p, const struct etw_xml_tag *tag)
{
	p->nopen = 0;
	p->layout = NULL;
	if (p->nlayouts == ETW_MANIFEST_EVENTS) {
		p->m->cut = true;
		return;
	}
	if (ARRAY_ROOM(p->layouts, p->layouts_room, p->nlayouts + 1)) {
		p->rc = ERR_MEMORY;
		return;
	}
	p->layouts[p->nlayouts] = (struct layout){.tid = etw_xml_attribute(tag, "tid"),
						  .field = p->m->nfields};
	p->layout = tag->empty ? NULL : &p->layouts[p->nlayouts];
	p->nlayouts++;
}

static void add_event(struct parser *p, const struct etw_xml_tag *tag)
{
	if (!etw_xml_attribute(tag, "value").n)      /* another kind of <event> */
		return;
	if (p->nevents == ETW_MANIFEST_EVENTS) {
		p->m->cut = true;
		return;
	}
	if (ARRAY_ROOM(p->events, p->events_room, p->nevents + 1)) {
		p->rc = ERR_MEMORY;
		return;
	}
	p->events[p->nevents++] = (struct pending_event){
		.task = etw_xml_attribute(tag, "task"), .opcode = etw_xml_attribute(tag, "opcode"),
		.symbol = etw_xml_attribute(tag, "symbol"),
		.layout = etw_xml_attribute(tag, "template"),
		.id = (uint16_t)number(etw_xml_attribute(tag, "value"), UINT16_MAX),
		.version = (uint8_t)number(etw_xml_attribute(tag, "version"), UINT8_MAX)};
}

static void read_tag(struct parser *p, const struct etw_xml_tag *tag)
{
	if (etw_slice_is(tag->name, "data") && !tag->closing)
		add_field(p, tag, false);
	else if (etw_slice_is(tag->name, "struct") && tag->closing)
		p->nopen -= p->nopen > 0;
	else if (etw_slice_is(tag->name, "struct"))
		add_field(p, tag, true);
	else if (etw_slice_is(tag->name, "template") && tag->closing)
		p->layout = NULL;
	else if (etw_slice_is(tag->name, "template"))
		open_template(p, tag);
	else if (etw_slice_is(tag->name, "event") && !tag->closing)
		add_event(p, tag);
	else if (etw_slice_is(tag->name, "provider") && !tag->closing && !p->m->provider)
		p->m->provider = keep_slice(p, etw_xml_attribute(tag, "name"));
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

void etw_manifest_event_name(struct buf *out, const char *task, const char *opcode, uint16_t id)
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

static const char *event_name(struct parser *p, const struct pending_event *e)
{
	struct buf task = {.data = NULL}, opcode = {.data = NULL};

	etw_xml_put(&task, e->task.n ? e->task : e->symbol);
	etw_xml_put(&opcode, e->task.n ? e->opcode : (struct etw_slice){"", 0});
	etw_manifest_event_name(&p->text, buf_text(&task), buf_text(&opcode), e->id);
	if (task.failed || opcode.failed)
		p->rc = ERR_MEMORY;
	buf_free(&task);
	buf_free(&opcode);
	return etw_manifest_text(p->texts, &p->text, &p->rc);
}

/* ---- events and their layouts ---------------------------------------------------------------- */

static int by_id(const void *a, const void *b)
{
	const struct etw_manifest_event *x = a, *y = b;

	return x->id != y->id ? compare_u64(x->id, y->id) : compare_u64(x->version, y->version);
}

static int by_tid(const void *a, const void *b)
{
	const struct etw_slice *x = &((const struct layout *)a)->tid,
			       *y = &((const struct layout *)b)->tid;
	int order = memcmp(x->at, y->at, x->n < y->n ? x->n : y->n);

	return order ? order : compare_u64(x->n, y->n);
}

/* The templates may follow the events that name them, so events are made at the end. */
static int make_events(struct parser *p)
{
	struct etw_manifest *m = p->m;

	if (p->rc || !p->nevents)
		return p->rc ? p->rc : ERR_FORMAT;
	m->events = calloc(p->nevents, sizeof(*m->events));
	if (!m->events)
		return ERR_MEMORY;
	if (p->nlayouts)
		qsort(p->layouts, p->nlayouts, sizeof(*p->layouts), by_tid);
	for (; m->nevents < p->nevents; m->nevents++) {
		const struct pending_event *e = &p->events[m->nevents];
		struct layout key = {.tid = e->layout};
		const struct layout *layout = p->nlayouts && key.tid.n ?
			bsearch(&key, p->layouts, p->nlayouts, sizeof(key), by_tid) : NULL;

		m->events[m->nevents] = (struct etw_manifest_event){
			.id = e->id, .version = e->version, .name = event_name(p, e)};
		if (layout && layout->nfields)
			m->events[m->nevents].schema = (struct etw_schema){
				m->fields + layout->field, layout->nfields};
	}
	qsort(m->events, m->nevents, sizeof(*m->events), by_id);
	return p->rc;
}

int etw_manifest_parse(const char *xml, size_t n, struct etw_texts *texts,
		       struct etw_manifest **out)
{
	struct etw_xml in = {xml, xml + n};
	struct parser p = {.texts = texts, .m = calloc(1, sizeof(*p.m))};
	struct etw_xml_tag tag;
	int rc;

	if (!p.m)
		return ERR_MEMORY;
	while (!p.rc && etw_xml_next(&in, &tag))
		read_tag(&p, &tag);
	if (!p.m->provider)
		p.m->provider = "";
	rc = make_events(&p);
	if (rc)
		etw_manifest_free(p.m);
	else
		*out = p.m;
	free(p.events);
	free(p.layouts);
	buf_free(&p.text);
	return rc;
}

/* ---- a manifest ------------------------------------------------------------------------------ */

void etw_manifest_free(struct etw_manifest *manifest)
{
	if (!manifest)
		return;
	free(manifest->events);
	free(manifest->fields);
	free(manifest);
}

size_t etw_manifest_bytes(const struct etw_manifest *m)
{
	return sizeof(*m) + m->nevents * sizeof(*m->events) + m->nfields * sizeof(*m->fields);
}

const struct etw_manifest_event *etw_manifest_find(const struct etw_manifest *manifest, uint16_t id,
						   uint8_t version)
{
	struct etw_manifest_event key = {.id = id, .version = version};

	return bsearch(&key, manifest->events, manifest->nevents, sizeof(key), by_id);
}
