/* A tracepoint's format, up to the first NUL, then a filter, then records. */
#include "source/probe/trace_format.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct trace_format format;
	static struct trace_values values;
	const uint8_t *nul = n ? memchr(data, 0, n) : NULL;
	size_t text = nul ? (size_t)(nul - data) : n, i;
	char conditions[EVENT_MAX_TEXT];
	struct buf filter = {0};
	struct err err;

	if (trace_format_parse((const char *)data, text, &format, &err) || !nul)
		return 0;
	data += text + 1;
	n -= text + 1;
	text = strnlen((const char *)data, n < sizeof(conditions) - 1 ? n : sizeof(conditions) - 1);
	memcpy(conditions, data, text);
	conditions[text] = '\0';
	trace_filter(&format, conditions, &filter);
	buf_free(&filter);
	trace_format_read(&format, data, n, &values);
	for (i = 0; i < values.nfields; i++)
		if (values.fields[i].type == FIELD_TEXT &&
		    strlen(values.fields[i].v.text) >= TRACE_TEXT_BYTES)
			abort();
	return 0;
}
