#include "export/event_json.h"

#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

#define EXACT_MAX (1LL << 53)
#define DURATION_MAX_MS 1e12

static void put_value(struct json *j, const struct event_field *f, bool as_hex)
{
	char text[32];

	switch (f->type) {
	case FIELD_INT:
		snprintf(text, sizeof(text), "%" PRId64, f->v.i);
		if (f->v.i > EXACT_MAX || f->v.i < -EXACT_MAX)
			json_str(j, text);
		else
			json_int(j, f->v.i);
		break;
	case FIELD_UINT:
		snprintf(text, sizeof(text), as_hex ? "0x%" PRIx64 : "%" PRIu64, f->v.u);
		if (as_hex || f->v.u > (uint64_t)EXACT_MAX)
			json_str(j, text);
		else
			json_uint(j, f->v.u);
		break;
	case FIELD_DOUBLE:
		json_num(j, f->v.d);
		break;
	case FIELD_TEXT:
		json_str(j, f->v.text);
		break;
	}
}

void event_json_fields(struct json *j, const struct event_field *fields, uint32_t n,
		       uint64_t hex_fields)
{
	uint32_t i;

	json_open(j, '{');
	for (i = 0; i < n; i++) {
		json_key(j, fields[i].name);
		put_value(j, &fields[i], i < 64 && (hex_fields >> i & 1));
	}
	json_close(j, '}');
}

uint64_t event_duration_ns(const struct incident *in, const struct incident_event *e)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++) {
		const struct event_field *f = &in->fields[e->first_field + i];

		if (f->type == FIELD_DOUBLE && text_same_fold(f->name, "DurationMSec") &&
		    f->v.d > 0 && f->v.d < DURATION_MAX_MS)
			return (uint64_t)(f->v.d * (double)NS_PER_MS);
	}
	return 0;
}

void row_put_time(struct buf *out, const struct incident *in, uint64_t time_ns)
{
	char text[OS_TIME_TEXT_BYTES];

	os_time_text(in->head.trigger_wall_ns + (time_ns - in->head.trigger_ns), text);
	buf_puts(out, text);
}

void row_put_payload(struct buf *out, const struct incident *in, const struct incident_event *e)
{
	struct json j = {.out = out};

	if (e->nfields || !(e->value > 0 || e->value < 0)) {
		event_json_fields(&j, in->fields + e->first_field, e->nfields, 0);
		return;
	}
	json_open(&j, '{');
	json_key_num(&j, "value", e->value);
	json_close(&j, '}');
}
