#include "symbol/otel.h"

#include "base/bytes.h"
#include "base/utf8.h"
#include "base/varint.h"

#include <stdio.h>

enum { OTEL_VERSION = 2 };

/* Wire types of protobuf. */
enum { WIRE_VARINT, WIRE_64, WIRE_BYTES, WIRE_32 = 5 };

bool otel_header(const uint8_t header[OTEL_HEADER_BYTES], uint64_t *payload, size_t *n)
{
	if (memcmp(header, "OTEL_CTX", 8) != 0 || le32(header + 8) != OTEL_VERSION ||
	    !le64(header + 16))
		return false;
	*n = le32(header + 12);
	*payload = le64(header + 24);
	return *n && *payload;
}

/* Move past fields up to the next with this number that holds bytes; false at the end. */
static bool next_bytes(struct cursor *c, uint64_t number, struct cursor *out)
{
	uint64_t tag, v;

	while (varint_get(&c->at, c->end, &tag)) {
		const uint8_t *at = c->at;
		bool whole = false;

		switch (tag & 7) {
		case WIRE_VARINT:
			whole = varint_get(&c->at, c->end, &v);
			break;
		case WIRE_64:
			whole = cursor_skip(c, 8);
			break;
		case WIRE_32:
			whole = cursor_skip(c, 4);
			break;
		case WIRE_BYTES:
			whole = varint_get(&c->at, c->end, &v) && (at = cursor_take(c, v)) != NULL;
			break;
		default:
			break;
		}
		if (!whole)
			return false;
		if ((tag & 7) == WIRE_BYTES && tag >> 3 == number) {
			*out = cursor_over(at, (size_t)v);
			return true;
		}
	}
	return false;
}

/* Of a KeyValue: the string, if the key is service.name. */
static bool service_of(struct cursor pair, struct cursor *out)
{
	static const char wanted[] = "service.name";
	struct cursor again = pair, key, value;

	return next_bytes(&pair, 1, &key) && cursor_left(&key) == sizeof(wanted) - 1 &&
	       memcmp(key.at, wanted, sizeof(wanted) - 1) == 0 && next_bytes(&again, 2, &value) &&
	       next_bytes(&value, 1, out) && cursor_left(out) > 0;
}

bool otel_service(const uint8_t *payload, size_t n, char *out, size_t out_bytes)
{
	struct cursor context = cursor_over(payload, n), resource, pair, name;
	struct buf text = {0};
	bool found = false;

	while (!found && next_bytes(&context, 1, &resource))
		while (!found && next_bytes(&resource, 1, &pair))
			found = service_of(pair, &name);
	if (found)
		utf8_put_clean(&text, (const char *)name.at, cursor_left(&name), out_bytes - 1);
	found = text.len && !text.failed;
	if (found)
		snprintf(out, out_bytes, "%s", buf_text(&text));
	buf_free(&text);
	return found;
}
