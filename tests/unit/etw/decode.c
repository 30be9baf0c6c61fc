/*
 * What ETW events say, by metadata of their own, by manifests, by schemas; short and hostile
 * ones.
 */
#include "source/etw/decode.h"
#include "source/etw/manifest_store.h"
#include "source/etw/manifest.h"
#include "tests/support/alloc_walk.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>

#define MAKER "0cd1c309-0878-4515-83db-749843b3f5c9"
#define SCHEMA_GUID "bbccf6c1-6cd1-48c4-80ff-839482e37671"

static struct etw_decoded out;

static const struct event_field *field(const char *name)
{
	struct event e = {.fields = out.fields, .nfields = out.nfields};
	const struct event_field *f = event_field(&e, name);

	if (!f)
		fail_msg("no field %s", name);
	return f;
}

static void text_is(const char *name, const char *text)
{
	assert_int_equal(field(name)->type, FIELD_TEXT);
	assert_string_equal(field(name)->v.text, text);
}

static struct etw_decode *new_decode(void)
{
	struct etw_decode *d = NULL;

	assert_int_equal(etw_decode_new(&d, NULL), 0);
	return d;
}

/* ---- TraceLogging ---------------------------------------------------------------------------- */

static void meta_field(struct etw_bytes *meta, const char *name, const char *type, uint32_t n)
{
	etw_text8(meta, name);
	etw_put(meta, type, n);
}

static struct etw_record logging(struct etw_bytes *traits, struct etw_bytes *meta,
				 struct etw_bytes *payload)
{
	struct etw_record record = etw_manifest(MAKER, 0, 0, payload);

	traits->at[0] = (uint8_t)traits->n;
	meta->at[0] = (uint8_t)meta->n;
	record.nitems = 2;
	record.items[0] = (struct etw_item){12, (uint16_t)traits->n, traits->at};
	record.items[1] = (struct etw_item){11, (uint16_t)meta->n, meta->at};
	return record;
}

TEST(tracelogging_has_arrays_structures_and_hex)
{
	struct etw_bytes traits = {.n = 2}, meta = {.n = 2}, payload = {.n = 0};
	struct etw_decode *d = new_decode();
	struct etw_record record;

	etw_text8(&traits, "Maker");
	etw_put(&meta, "\x80\0", 2);                 /* two tag bytes */
	etw_text8(&meta, "Said");
	meta_field(&meta, "flags", "\x88\4", 2);     /* u32, hex */
	meta_field(&meta, "some", "\x47", 1);        /* i32, counted */
	meta_field(&meta, "pair", "\x98\2", 2);      /* structure of two */
	meta_field(&meta, "a", "\4", 1);
	meta_field(&meta, "b", "\x16", 1);           /* counted UTF-16 */
	meta_field(&meta, "yes", "\x84\3", 2);       /* u8, boolean */
	meta_field(&meta, "raw", "\x0e", 1);         /* binary */
	etw_int(&payload, 0xff, 4);
	etw_int(&payload, 2, 2);
	etw_int(&payload, (uint64_t)-5, 4);
	etw_int(&payload, 7, 4);
	etw_int(&payload, 9, 1);
	etw_int(&payload, 4, 2);
	etw_put(&payload, "h\0i\0", 4);
	etw_int(&payload, 1, 1);
	etw_int(&payload, 2, 2);
	etw_put(&payload, "\x0a\xff", 2);

	record = logging(&traits, &meta, &payload);
	etw_decode_event(d, &record, &out);
	assert_string_equal(out.provider, "Maker");
	assert_string_equal(out.name, "Said");
	assert_int_equal(out.nfields, 6);
	assert_int_equal(field("flags")->v.u, 255);
	assert_int_equal(out.hex, 1);
	text_is("some", "[-5,7]");
	assert_int_equal(field("pair.a")->v.u, 9);
	text_is("pair.b", "hi");
	text_is("yes", "True");
	text_is("raw", "0AFF");
	assert_false(out.cut);

	record.payload_bytes--;              /* the binary lacks a byte */
	etw_decode_event(d, &record, &out);
	assert_int_equal(out.nfields, 5);
	assert_true(out.cut);
	etw_decode_free(d);
}

TEST(tracelogging_cut_anywhere_gives_what_is_before)
{
	struct etw_bytes traits = {.n = 2}, meta = {.n = 2}, payload = {.n = 0};
	struct etw_decode *d = new_decode();
	struct etw_record record;

	etw_text8(&traits, "Maker");
	etw_put(&meta, "\0", 1);
	etw_text8(&meta, "Said");
	meta_field(&meta, "n", "\x88\4", 2);
	etw_int(&payload, 1, 4);
	record = logging(&traits, &meta, &payload);
	for (uint16_t n = 0; n <= meta.n; n++) {
		uint8_t *exact = malloc(n ? n : 1);

		memcpy(exact, meta.at, n);
		record.items[1] = (struct etw_item){11, n, exact};
		etw_decode_event(d, &record, &out);
		assert_int_equal(out.nfields, n == meta.n);
		assert_string_equal(out.name, n < 8 ? "EventID(0)" : "Said");
		free(exact);
	}
	etw_decode_free(d);
}

/* ---- manifests ------------------------------------------------------------------------------- */

static const char manifest[] =
	"<instrumentationManifest><!-- <event value=\"9\"/> --><provider name=\"A&amp;B\" "
	"guid=\"{x}\">"
	"<events><event value=\"2\" version=\"0\" opcode=\"win:Start\" task=\"Tracing\" "
	"template=\"T\"/>"
	"<event value='3' version='0' opcode='win:Info' task='Mark'/>"
	"<event value='4' version='1' symbol='Plain'/><event value='5' version='0'/></events>"
	"<template tid=\"T\"><data name=\"message\" inType=\"win:UnicodeString\"/>"
	"<data name=\"n\" inType=\"win:UInt16\"/><data name=\"v\" inType=\"win:Int32\" "
	"count=\"n\"/>"
	"<data name=\"bytes\" inType=\"win:Binary\" length=\"n\"/>"
	"<struct name=\"s\" count=\"2\"><data name=\"x\" inType=\"win:Boolean\"/></struct>"
	"<data name=\"id\" inType=\"win:GUID\"/></template></provider></instrumentationManifest>";

/* Piece number i of `total` equal pieces. */
static void say(struct etw_decode *d, const char *xml, uint32_t pid, uint16_t i, uint16_t total)
{
	size_t n = strlen(xml), each = n / total, from = each * i,
	       to = i + 1 == total ? n : from + each;
	struct etw_bytes b = {.n = 0};
	struct etw_record record;

	etw_put(&b, "\1\1\0\x5b", 4);
	etw_int(&b, total, 2);
	etw_int(&b, i, 2);
	etw_put(&b, xml + from, (uint32_t)(to - from));
	record = etw_manifest(MAKER, 65534, 1, &b);
	record.pid = pid;
	etw_decode_learn(d, &record);
	etw_decode_event(d, &record, &out);
	assert_string_equal(out.name, "ManifestData");
	assert_int_equal(field("TotalChunks")->v.u, total);
}

static void decode_id(struct etw_decode *d, uint32_t pid, uint16_t id, uint16_t version,
		      struct etw_bytes *payload)
{
	struct etw_record record = etw_manifest(MAKER, id, version, payload);

	record.pid = pid;
	etw_decode_event(d, &record, &out);
}

TEST(a_manifest_in_pieces_names_events_and_fields)
{
	struct etw_decode *d = new_decode();
	struct etw_bytes b = {.n = 0};

	for (uint16_t i = 0; i < 3; i++)
		say(d, manifest, 7, i, 3);
	etw_text16(&b, "hello");
	etw_int(&b, 2, 2);
	etw_int(&b, 1, 4);
	etw_int(&b, (uint64_t)-2, 4);
	etw_put(&b, "\xab\xcd", 2);
	etw_int(&b, 1, 4);
	etw_int(&b, 0, 4);
	etw_put(&b, etw_guid_of(MAKER).bytes, 16);
	decode_id(d, 7, 2, 0, &b);
	assert_string_equal(out.provider, "A&B");
	assert_string_equal(out.name, "Tracing/Start");
	text_is("message", "hello");
	text_is("v", "[1,-2]");
	text_is("bytes", "ABCD");
	text_is("s[0].x", "True");
	text_is("s[1].x", "False");
	text_is("id", MAKER);
	assert_false(out.cut);

	decode_id(d, 7, 3, 0, &b);
	assert_string_equal(out.name, "Mark");
	decode_id(d, 8, 4, 1, &b);           /* of another process that said nothing */
	assert_string_equal(out.name, "Plain");
	decode_id(d, 7, 5, 0, &b);
	assert_string_equal(out.name, "EventID(5)");
	decode_id(d, 7, 4, 0, &b);           /* a version that it does not list */
	assert_string_equal(out.provider, "A&B");
	assert_string_equal(out.name, "EventID(4)");
	assert_int_equal(out.nfields, 0);
	etw_decode_free(d);
}

TEST(each_process_is_read_by_the_manifest_it_wrote)
{
	struct etw_decode *d = new_decode();
	struct etw_bytes none = {.n = 0};
	const char *old;

	say(d, "<provider name=\"P\"/><event value=\"1\" task=\"Old\"/>", 1, 0, 1);
	say(d, "<provider name=\"P\"/><event value=\"1\" task=\"New\"/>", 2, 0, 1);
	say(d, "<provider name=\"P\"/><event value=\"1\" task=\"Old\"/>", 3, 0, 1);
	decode_id(d, 1, 1, 0, &none);
	assert_string_equal(out.name, "Old");
	old = out.name;
	decode_id(d, 2, 1, 0, &none);
	assert_string_equal(out.name, "New");
	decode_id(d, 3, 1, 0, &none);
	assert_ptr_equal(out.name, old);             /* the third is the first again */
	say(d, "<provider name=\"P\"/><event value=\"1\" task=\"Last\"/>", 3, 0, 1);
	decode_id(d, 4, 1, 0, &none);
	assert_string_equal(out.name, "Last");       /* of who wrote last */
	etw_decode_free(d);
}

TEST(torn_and_senseless_manifests_are_counted)
{
	struct etw_decode *d = new_decode();
	struct etw_bytes none = {.n = 0};
	struct etw_learned learned;

	say(d, manifest, 7, 0, 3);
	say(d, manifest, 7, 2, 3);           /* the second piece is missing */
	say(d, manifest, 7, 1, 3);           /* a piece without its first */
	say(d, "this is no manifest", 7, 0, 1);
	for (uint32_t pid = 100; pid < 100 + ETW_PARTIAL_MANIFESTS_MAX + 1; pid++)
		say(d, manifest, pid, 0, 2); /* more at a time than are kept */
	etw_decode_learned(d, &learned);
	assert_int_equal(learned.torn, 3 + 1);
	assert_int_equal(learned.unreadable, 1);
	decode_id(d, 7, 2, 0, &none);
	assert_string_equal(out.provider, MAKER);
	assert_string_equal(out.name, "EventID(2)");
	etw_decode_free(d);
}

TEST(a_count_larger_than_the_payload_ends_the_event)
{
	static const char xml[] =
		"<provider name=\"P\"/><event value=\"1\" task=\"T\" template=\"A\"/><template "
		"tid=\"A\">"
		"<data name=\"n\" inType=\"win:UInt32\"/><struct name=\"s\" count=\"n\">"
		"<data name=\"x\" inType=\"win:Binary\" length=\"0\"/></struct></template>";
	struct etw_decode *d = new_decode();
	struct etw_bytes b = {.n = 0};

	say(d, xml, 1, 0, 1);
	etw_int(&b, UINT32_MAX, 4);          /* so many structures of no bytes */
	decode_id(d, 1, 1, 0, &b);
	assert_true(out.cut);
	assert_true(out.nfields <= EVENT_MAX_FIELDS);
	etw_decode_free(d);
}

TEST(guid_of_no_length_is_empty)
{
	static const char xml[] =
		"<provider name=\"P\"/><event value=\"1\" task=\"T\" template=\"A\"/><template "
		"tid=\"A\">"
		"<data name=\"g\" inType=\"win:GUID\" length=\"0\"/>"
		"<data name=\"s\" inType=\"win:UnicodeString\" length=\"0\"/></template>";
	struct etw_decode *d = new_decode();
	struct etw_bytes b = {.n = 0};

	say(d, xml, 1, 0, 1);
	etw_put(&b, "not of these fields", 19);
	decode_id(d, 1, 1, 0, &b);
	assert_string_equal(field("g")->v.text, "");
	assert_string_equal(field("s")->v.text, "");
	etw_decode_free(d);
}

/* ---- schemas of merged traces ---------------------------------------------------------------- */

static void at32(struct etw_bytes *b, uint32_t offset, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		b->at[offset + (uint32_t)i] = (uint8_t)(v >> 8 * i);
}

/*
 * A TRACE_EVENT_INFO of event 14 with a u32 Length and a Binary of that length, shown as an
 * address.
 */
static struct etw_bytes schema_info(void)
{
	struct etw_bytes b = {.n = 112 + 2 * 24};

	memcpy(b.at, etw_guid_of(MAKER).bytes, 16);
	b.at[32] = 14;
	at32(&b, 100, 2);
	at32(&b, 104, 2);
	at32(&b, 112 + 8, 8);                /* in: u32 */
	at32(&b, 112 + 16, 1);
	at32(&b, 136, 2);                    /* length by field 0 */
	at32(&b, 136 + 8, 14 | 25 << 16);    /* in: binary, out: socket address */
	at32(&b, 136 + 16, 1);
	at32(&b, 52, b.n);
	etw_text16(&b, "Maker");
	at32(&b, 68, b.n);
	etw_text16(&b, "Connect ");
	at32(&b, 72, b.n);
	etw_text16(&b, "win:Stop");
	at32(&b, 112 + 4, b.n);
	etw_text16(&b, "Length");
	at32(&b, 136 + 4, b.n);
	etw_text16(&b, "Address");
	return b;
}

TEST(a_schema_of_the_trace_names_what_nobody_knew)
{
	struct etw_decode *d = new_decode();
	struct etw_bytes info = schema_info(), payload = {.n = 0};
	struct etw_record schema = etw_classic(SCHEMA_GUID, 32, 0, &info), event;
	struct etw_learned learned;

	etw_int(&payload, 28, 4);
	etw_put(&payload, "\x17\0\0\x35\0\0\0\0\x20\x01\x0d\xb8\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0\0",
		28);
	event = etw_manifest(MAKER, 14, 0, &payload);
	for (uint32_t n = 0; n < info.n; n++) {      /* one that is cut is not believed */
		uint8_t *exact = malloc(n ? n : 1);

		memcpy(exact, info.at, n);
		schema.payload = exact;
		schema.payload_bytes = n;
		etw_decode_learn(d, &schema);
		free(exact);
	}
	etw_decode_learned(d, &learned);
	assert_int_equal(learned.unreadable, info.n);
	etw_decode_event(d, &event, &out);
	assert_string_equal(out.name, "EventID(14)");
	schema.payload = info.at;
	schema.payload_bytes = info.n;
	etw_decode_learn(d, &schema);
	etw_decode_event(d, &schema, &out);
	assert_int_equal(out.class->id, ETW_SCHEMA);
	etw_decode_event(d, &event, &out);
	assert_string_equal(out.provider, "Maker");
	assert_string_equal(out.name, "Connect/Stop");
	assert_int_equal(field("Length")->v.u, 28);
	text_is("Address", "[2001:db8::1]:53");
	event.header = ETW_CLASSIC;          /* it was said of a manifest's event */
	event.opcode = 14;
	etw_decode_event(d, &event, &out);
	assert_string_equal(out.name, "Opcode(14)");
	etw_decode_free(d);
}

/* ---- values ---------------------------------------------------------------------------------- */

static const char *shown(uint8_t type, const void *bytes, uint32_t n)
{
	static char text[ETW_RENDER_BYTES];
	struct etw_render r = {.text = text};
	struct etw_field f = {.type = type};
	struct etw_value value;

	assert_non_null(etw_value_read(&f, 8, bytes, (const uint8_t *)bytes + n, &value));
	etw_render_begin(&r);
	etw_render_value(&r, &f, &value, 8);
	return etw_render_end(&r);
}

TEST(values_become_the_text_people_know)
{
	assert_string_equal(shown(ETW_SID, "\1\2\0\0\0\0\0\5\x20\0\0\0\x20\2\0\0", 16),
			    "S-1-5-32-544");
	assert_string_equal(shown(ETW_FILETIME, "\0\0\0\0\0\0\0\0", 8),
			    "1601-01-01T00:00:00.0000000Z");
	/* 132274532967890000 */
	assert_string_equal(shown(ETW_FILETIME, "\x50\xbc\x61\xa6\xfc\xee\xd5\x01", 8),
			    "2020-02-29T12:34:56.7890000Z");
	assert_string_equal(shown(ETW_TIME_T, "\xff\xff\xff\xff", 4),
			    "2106-02-07T06:28:15.0000000Z");
	assert_string_equal(shown(ETW_IP4, "\x0a\0\0\xff", 4), "10.0.0.255");
	assert_string_equal(shown(ETW_IP6, "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16), "::");
	assert_string_equal(shown(ETW_IP6, "\0\1\0\0\0\0\0\2\0\0\0\0\0\0\0\3", 16), "1:0:0:2::3");
	assert_string_equal(shown(ETW_IP6, "\xfe\x80\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 16), "fe80::");
	assert_string_equal(shown(ETW_I16, "\xfe\xff", 2), "-2");
	assert_string_equal(shown(ETW_X64, "\0\0\0\0\x0f\0\0\0", 8), "0xf00000000");
	assert_string_equal(shown(ETW_F32, "\0\0\xc0\x3f", 4), "1.5");
	assert_string_equal(shown(ETW_PORT, "\1\xbb", 2), "443");
}

TEST(texts_from_outside_are_made_safe)
{
	/* an escape sequence, a pair of surrogates, half of one, a C1 control */
	assert_string_equal(shown(ETW_UTF16Z, "\x1b\0[\0\x3d\xd8\x00\xde\x3d\xd8x\0\x9b\0\0\0", 16),
			    " [\xf0\x9f\x98\x80\xef\xbf\xbdx ");
	assert_string_equal(shown(ETW_UTF8Z, "a\nb\xff\xc2\x9b", 7), "a b\xef\xbf\xbd ");
}

TEST(a_text_of_any_length_is_cut_and_said_so)
{
	struct etw_bytes traits = {.n = 2}, meta = {.n = 2}, payload = {.n = 0};
	struct etw_decode *d = new_decode();
	struct etw_record record;

	etw_text8(&traits, "M");
	etw_put(&meta, "\0", 1);
	etw_text8(&meta, "Said");
	meta_field(&meta, "t", "\1", 1);
	for (int i = 0; i < 2000; i++)
		etw_int(&payload, 0x20ac, 2);        /* three bytes of UTF-8 each */
	record = logging(&traits, &meta, &payload);
	etw_decode_event(d, &record, &out);
	assert_int_equal(strlen(field("t")->v.text), 4095);  /* 1365 of them */
	assert_true(out.cut);
	etw_decode_free(d);
}

/* ---- memory ---------------------------------------------------------------------------------- */

static int learn_all(void *ctx)
{
	struct etw_decode *d = NULL;
	struct etw_bytes info = schema_info(), b = {.n = 0};
	struct etw_record schema = etw_classic(SCHEMA_GUID, 32, 0, &info), record;
	struct etw_learned learned;
	int rc = etw_decode_new(&d, NULL);

	(void)ctx;
	if (rc)
		return rc;
	etw_put(&b, "\1\1\0\x5b\1\0\0\0", 8);
	etw_put(&b, manifest, sizeof(manifest) - 1);
	record = etw_manifest(MAKER, 65534, 1, &b);
	etw_decode_learn(d, &record);
	etw_decode_learn(d, &schema);
	etw_decode_learned(d, &learned);
	etw_decode_free(d);
	assert_int_equal(learned.unreadable, 0);
	return learned.refused ? ERR_MEMORY : 0;
}

TEST(learning_survives_every_failed_allocation)
{
	assert_in_range(alloc_walk(learn_all, NULL), 15, 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tracelogging_has_arrays_structures_and_hex),
		cmocka_unit_test(tracelogging_cut_anywhere_gives_what_is_before),
		cmocka_unit_test(a_manifest_in_pieces_names_events_and_fields),
		cmocka_unit_test(each_process_is_read_by_the_manifest_it_wrote),
		cmocka_unit_test(torn_and_senseless_manifests_are_counted),
		cmocka_unit_test(a_count_larger_than_the_payload_ends_the_event),
		cmocka_unit_test(guid_of_no_length_is_empty),
		cmocka_unit_test(a_schema_of_the_trace_names_what_nobody_knew),
		cmocka_unit_test(values_become_the_text_people_know),
		cmocka_unit_test(texts_from_outside_are_made_safe),
		cmocka_unit_test(a_text_of_any_length_is_cut_and_said_so),
		cmocka_unit_test(learning_survives_every_failed_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
