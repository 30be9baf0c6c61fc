/* Any bytes as the answer of a recorder: what json_read() accepts is safe to look into. */
#include "base/json_read.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void look_into(struct json_value v)
{
	struct json_value item = {0};
	struct buf text = {0};
	double number;

	json_put_text(json_member(v, "rule"), &text);
	json_number(json_member(v, "value"), &number);
	while ((item = json_next(v, item)).at) {
		json_put_text(item, &text);
		json_put_text(json_member(item, "a"), &text);
	}
	buf_free(&text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct json_value v;

	if (!text)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0';
	if (json_read(text, &v)) {
		look_into(v);
		look_into(json_member(v, "rules"));
	}
	free(text);
	return 0;
}
