#include "export/rows.h"

#include "export/event_json.h"
#include "export/names.h"

#include "base/os.h"

#include <string.h>

void row_put_time(struct buf *out, const struct incident *in, uint64_t time_ns)
{
	char text[OS_TIME_TEXT_BYTES];

	os_time_text(in->head.trigger_wall_ns + (time_ns - in->head.trigger_ns), text);
	buf_puts(out, text);
}

void row_put_cell(struct buf *out, const char *text, bool excel)
{
	bool formula = excel && *text && strchr("=+-@", *text);

	if (!formula && !strpbrk(text, ",\"\r\n")) {
		buf_puts(out, text);
		return;
	}
	buf_puts(out, formula ? "\"'" : "\"");
	for (; *text; text++) {
		if (*text == '"')
			buf_putc(out, '"');
		buf_putc(out, *text);
	}
	buf_putc(out, '"');
}

void row_put_payload(struct buf *out, const struct incident *in, const struct incident_event *e)
{
	struct json j = {.out = out};

	if (e->nfields || !(e->value > 0 || e->value < 0)) {
		event_json_fields(&j, in, e);
		return;
	}
	json_open(&j, '{');
	json_key_num(&j, "value", e->value);
	json_close(&j, '}');
}

void row_split_counter(const char *name, size_t *counter_bytes, const char **instance)
{
	const char *first = strchr(name, ':'), *second = first ? strchr(first + 1, ':') : NULL;

	*counter_bytes = second ? (size_t)(second - name) : strlen(name);
	*instance = second ? second + 1 : name + strlen(name);
}
