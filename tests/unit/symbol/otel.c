/* What programs with OpenTelemetry publish about themselves (OTEP 4719). */
#include "symbol/otel.h"
#include "tests/support/test.h"

#include "base/bytes.h"

#include <stdlib.h>
#include <string.h>

/* Field `number` with these bytes. */
static void put(struct buf *out, unsigned number, const char *bytes, size_t n)
{
	buf_putc(out, (char)(number << 3 | 2));
	buf_putc(out, (char)n);
	buf_put(out, bytes, n);
}

/* KeyValue { key, AnyValue { field: value } } as attribute of a resource. */
static void put_pair(struct buf *resource, const char *key, unsigned field, const char *value)
{
	struct buf any = {0}, pair = {0};

	put(&any, field, value, strlen(value));
	put(&pair, 1, key, strlen(key));
	put(&pair, 2, any.data, any.len);
	put(resource, 1, pair.data, pair.len);
	buf_free(&any);
	buf_free(&pair);
}

static void check_service(const struct buf *resource, const char *expected)
{
	struct buf payload = {0};
	char service[256] = "untouched";

	buf_put(&payload, "\x18\x05", 2);            /* some other field */
	put(&payload, 1, resource->data, resource->len);
	assert_int_equal(otel_service((const uint8_t *)payload.data, payload.len, service,
				      sizeof(service)), strcmp(expected, "untouched") != 0);
	assert_string_equal(service, expected);
	buf_free(&payload);
}

TEST(the_service_is_found_among_other_attributes)
{
	struct buf resource = {0};

	put_pair(&resource, "service.version", 1, "1.2");
	put_pair(&resource, "service.name", 1, "checkout");
	put_pair(&resource, "service.name", 1, "second");
	check_service(&resource, "checkout");
	buf_free(&resource);
}

TEST(a_service_without_a_text_is_none)
{
	struct buf resource = {0};

	put_pair(&resource, "service.name", 1, "");
	put_pair(&resource, "service.name", 7, "bytes");
	put_pair(&resource, "service.names", 1, "x");
	check_service(&resource, "untouched");
	buf_free(&resource);
}

TEST(a_service_is_one_line_of_valid_text)
{
	struct buf resource = {0};

	put_pair(&resource, "service.name", 1, "a\nb\xff");
	check_service(&resource, "a b\xef\xbf\xbd");
	buf_free(&resource);
}

TEST(a_payload_that_ends_anywhere_is_no_service)
{
	struct buf resource = {0}, payload = {0};
	char service[256];
	size_t n;

	put_pair(&resource, "service.name", 1, "checkout");
	put(&payload, 1, resource.data, resource.len);
	for (n = 0; n < payload.len; n++) {
		uint8_t *exact = malloc(n + 1);      /* the sanitizer sees what is read beyond */

		memcpy(exact, payload.data, n);
		assert_false(otel_service(exact, n, service, sizeof(service)));
		free(exact);
	}
	buf_free(&resource);
	buf_free(&payload);
}

TEST(a_header_must_be_whole_and_at_rest)
{
	uint8_t header[OTEL_HEADER_BYTES] = "OTEL_CTX";
	uint64_t at;
	size_t n;

	put_le32(header + 8, 2);
	put_le32(header + 12, 77);
	put_le64(header + 16, 5);
	put_le64(header + 24, 0x7f0000001000);
	assert_true(otel_header(header, &at, &n));
	assert_int_equal(n, 77);
	assert_true(at == 0x7f0000001000);
	put_le64(header + 16, 0);                    /* is being changed */
	assert_false(otel_header(header, &at, &n));
	put_le64(header + 16, 5);
	put_le32(header + 8, 3);
	assert_false(otel_header(header, &at, &n));
	put_le32(header + 8, 2);
	header[0] = 'o';
	assert_false(otel_header(header, &at, &n));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_service_is_found_among_other_attributes),
		cmocka_unit_test(a_service_without_a_text_is_none),
		cmocka_unit_test(a_service_is_one_line_of_valid_text),
		cmocka_unit_test(a_payload_that_ends_anywhere_is_no_service),
		cmocka_unit_test(a_header_must_be_whole_and_at_rest),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
