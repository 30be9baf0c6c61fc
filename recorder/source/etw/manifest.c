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
#include "source/etw/manifest_private.h"
#include "source/etw/xml.h"

#include <stdio.h>
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

/* An open structure: the index of its field, and how many members it has so far. */
struct open_struct {
	uint32_t field;
	uint16_t nmembers;
};

struct parser {
	struct etw_builder out;
	struct buf events;                   /* of struct pending_event */
	struct buf layouts;                  /* of struct layout */
	bool in_template, cut;
	struct open_struct open[DEPTH];
	uint32_t nopen;
};

static uint32_t number(struct etw_slice s, uint32_t max)
{
	uint32_t v = 0;

	for (size_t i = 0; i < s.n && s.at[i] >= '0' && s.at[i] <= '9' && v <= max; i++)
		v = v * 10 + (uint32_t)(s.at[i] - '0');
	return v > max ? max : v;
}

static uint8_t type_of(struct etw_slice in, struct etw_slice shown)
{
	static const struct {
		const char *name;
		uint16_t tdh;
	} types[] = {
		{"win:UnicodeString", 1}, {"win:AnsiString", 2},      {"win:Int8", 3},
		{"win:UInt8", 4},	  {"win:Int16", 5},	      {"win:UInt16", 6},
		{"win:Int32", 7},	  {"win:UInt32", 8},	      {"win:Int64", 9},
		{"win:UInt64", 10},	  {"win:Float", 11},	      {"win:Double", 12},
		{"win:Boolean", 13},	  {"win:Binary", 14},	      {"win:GUID", 15},
		{"win:Pointer", 16},	  {"win:FILETIME", 17},	      {"win:SYSTEMTIME", 18},
		{"win:SID", 19},	  {"win:HexInt32", 20},	      {"win:HexInt64", 21},
		{"trace:SizeT", 308},	  {"trace:UnicodeChar", 306},
	};
	enum etw_shown how = ETW_SHOWN_PLAIN;

	if (shown.n > 10 && memcmp(shown.at, "win:HexInt", 10) == 0)
		how = ETW_SHOWN_HEX;
	else if (etw_slice_is(shown, "win:Port"))
		how = ETW_SHOWN_PORT;
	else if (etw_slice_is(shown, "win:IPv4"))
		how = ETW_SHOWN_IP4;
	else if (etw_slice_is(shown, "win:SocketAddress"))
		how = ETW_SHOWN_SOCKET;
	for (size_t i = 0; i < COUNT_OF(types); i++)
		if (etw_slice_is(in, types[i].name))
			return etw_schema_type(types[i].tdh, how);
	return ETW_TYPES;
}

static struct layout *last_layout(struct parser *p)
{
	return (struct layout *)(void *)(p->layouts.data + p->layouts.len) - 1;
}

/* A count or length: digits, or the name of an earlier field of this template. */
static uint8_t by_of(struct parser *p, struct etw_slice s, uint16_t *out)
{
	const struct layout *layout = last_layout(p);
	const size_t *names = (const void *)p->out.field_names.data;

	if (!s.n)
		return ETW_BY_NONE;
	if (s.at[0] >= '0' && s.at[0] <= '9') {
		*out = (uint16_t)number(s, UINT16_MAX);
		return ETW_BY_NUMBER;
	}
	for (uint32_t i = 0; i < layout->nfields; i++)
		if (names[layout->field + i] &&
		    etw_slice_is(s, p->out.texts.data + names[layout->field + i] - 1)) {
			*out = (uint16_t)i;
			return ETW_BY_FIELD;
		}
	*out = 0;
	return ETW_BY_NUMBER;                /* unknown field: zero elements */
}

static size_t text(struct parser *p, struct etw_slice s)
{
	size_t begun = etw_builder_text_begin(&p->out);

	etw_xml_put(&p->out.texts, s);
	return etw_builder_text_end(&p->out, begun);
}

static void add_field(struct parser *p, const struct etw_xml_tag *tag, bool is_struct)
{
	struct etw_schema_field f = {.nmembers = 0};
	struct layout *layout;

	if (!p->in_template || p->out.texts.failed || p->out.fields.failed ||
	    p->out.field_names.failed)
		return;
	layout = last_layout(p);
	if (etw_builder_nfields(&p->out) == ETW_MANIFEST_FIELDS ||
	    layout->nfields == ETW_SCHEMA_MAX_FIELDS || (is_struct && p->nopen == DEPTH)) {
		p->cut = true;
		return;
	}
	f.count_by = by_of(p, etw_xml_attribute(tag, "count"), &f.count);
	f.length_by = by_of(p, etw_xml_attribute(tag, "length"), &f.length);
	f.field.type = is_struct ? ETW_TYPES
				 : type_of(etw_xml_attribute(tag, "inType"),
					   etw_xml_attribute(tag, "outType"));
	if (p->nopen)
		p->open[p->nopen - 1].nmembers++;
	if (is_struct && !tag->empty)
		p->open[p->nopen++] = (struct open_struct){.field = etw_builder_nfields(&p->out)};
	etw_builder_field(&p->out, &f, text(p, etw_xml_attribute(tag, "name")));
	layout->nfields++;
}

static void close_struct(struct parser *p)
{
	struct etw_schema_field *fields = (void *)p->out.fields.data;

	if (!p->nopen || p->out.fields.failed)
		return;
	p->nopen--;
	fields[p->open[p->nopen].field].nmembers = p->open[p->nopen].nmembers;
}

static void open_template(struct parser *p, const struct etw_xml_tag *tag)
{
	struct layout layout = {.tid = etw_xml_attribute(tag, "tid"),
				.field = etw_builder_nfields(&p->out)};

	p->nopen = 0;
	p->in_template = false;
	if (p->layouts.len / sizeof(layout) == ETW_MANIFEST_EVENTS) {
		p->cut = true;
		return;
	}
	buf_put(&p->layouts, &layout, sizeof(layout));
	p->in_template = !tag->empty && !p->layouts.failed;
}

static void add_event(struct parser *p, const struct etw_xml_tag *tag)
{
	struct pending_event e = {
		.task = etw_xml_attribute(tag, "task"), .opcode = etw_xml_attribute(tag, "opcode"),
		.symbol = etw_xml_attribute(tag, "symbol"),
		.layout = etw_xml_attribute(tag, "template"),
		.id = (uint16_t)number(etw_xml_attribute(tag, "value"), UINT16_MAX),
		.version = (uint8_t)number(etw_xml_attribute(tag, "version"), UINT8_MAX)};

	if (!etw_xml_attribute(tag, "value").n)      /* another kind of <event> */
		return;
	if (p->events.len / sizeof(e) == ETW_MANIFEST_EVENTS)
		p->cut = true;
	else
		buf_put(&p->events, &e, sizeof(e));
}

static void take(struct parser *p, const struct etw_xml_tag *tag)
{
	if (etw_slice_is(tag->name, "data") && !tag->closing)
		add_field(p, tag, false);
	else if (etw_slice_is(tag->name, "struct") && tag->closing)
		close_struct(p);
	else if (etw_slice_is(tag->name, "struct"))
		add_field(p, tag, true);
	else if (etw_slice_is(tag->name, "template") && tag->closing)
		p->in_template = false;
	else if (etw_slice_is(tag->name, "template"))
		open_template(p, tag);
	else if (etw_slice_is(tag->name, "event") && !tag->closing)
		add_event(p, tag);
	else if (etw_slice_is(tag->name, "provider") && !tag->closing && !p->out.provider)
		p->out.provider = text(p, etw_xml_attribute(tag, "name"));
}

static size_t event_name(struct parser *p, const struct pending_event *e)
{
	struct buf task = {.data = NULL}, opcode = {.data = NULL};
	size_t begun = etw_builder_text_begin(&p->out);

	etw_xml_put(&task, e->task.n ? e->task : e->symbol);
	etw_xml_put(&opcode, e->task.n ? e->opcode : (struct etw_slice){"", 0});
	etw_builder_event_name(&p->out.texts, buf_text(&task), buf_text(&opcode), e->id);
	if (task.failed || opcode.failed)
		p->out.texts.failed = ERR_MEMORY;
	buf_free(&task);
	buf_free(&opcode);
	return etw_builder_text_end(&p->out, begun);
}

static int by_tid(const void *a, const void *b)
{
	const struct etw_slice *x = &((const struct layout *)a)->tid,
			       *y = &((const struct layout *)b)->tid;
	int order = memcmp(x->at, y->at, x->n < y->n ? x->n : y->n);

	return order ? order : (x->n > y->n) - (x->n < y->n);
}

static void join(struct parser *p)
{
	struct layout *layouts = (void *)p->layouts.data;
	const struct pending_event *events = (const void *)p->events.data;
	size_t nlayouts = p->layouts.len / sizeof(*layouts),
	       nevents = p->events.len / sizeof(*events);

	if (p->layouts.failed || p->events.failed) {
		p->out.events.failed = ERR_MEMORY;
		return;
	}
	if (nlayouts)
		qsort(layouts, nlayouts, sizeof(*layouts), by_tid);
	for (size_t i = 0; i < nevents; i++) {
		struct etw_built_event e = {.id = events[i].id, .version = events[i].version};
		struct layout key = {.tid = events[i].layout};
		const struct layout *layout = nlayouts && key.tid.n ?
			bsearch(&key, layouts, nlayouts, sizeof(key), by_tid) : NULL;

		e.name = event_name(p, &events[i]);
		e.field = layout ? layout->field : 0;
		e.nfields = layout ? layout->nfields : 0;
		buf_put(&p->out.events, &e, sizeof(e));
	}
}

int etw_manifest_parse(const char *xml, size_t n, struct etw_manifest **out)
{
	struct etw_xml in = {xml, xml + n};
	struct parser p = {.nopen = 0};
	struct etw_xml_tag tag;
	int rc;

	p.out.texts.max_bytes = 2 * (size_t)ETW_MANIFEST_MAX_BYTES;
	while (etw_xml_next(&in, &tag))
		take(&p, &tag);
	join(&p);
	rc = etw_builder_finish(&p.out, out);
	if (!rc)
		(*out)->cut = p.cut;
	buf_free(&p.events);
	buf_free(&p.layouts);
	return rc;
}
