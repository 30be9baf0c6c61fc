/* SHA-256, signatures, lists of objects and Retry-After, by what their makers publish. */
#include "net/s3.h"
#include "tests/support/test.h"

#include <stdio.h>

TEST(sha256_and_hmac_give_what_their_standards_say)
{
	static const char million[] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
	uint8_t digest[SHA256_BYTES];
	char hex[SHA256_HEX];
	struct sha256 s;
	unsigned i;

	sha256_text("abc", 3, hex);          /* FIPS 180-4, examples */
	assert_string_equal(hex, "ba7816bf8f01cfea414140de5dae2223"
				 "b00361a396177a9cb410ff61f20015ad");
	sha256_text("", 0, hex);
	assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb924"
				 "27ae41e4649b934ca495991b7852b855");
	sha256_init(&s);
	for (i = 0; i < 20000; i++)
		sha256_put(&s, million, 50);
	sha256_end(&s, digest);
	sha256_hex(digest, hex);
	assert_string_equal(hex, "cdc76e5c9914fb9281a1c7e284d73e67"
				 "f1809a48a497200e046d39ccc7112cd0");
	hmac_sha256("Jefe", 4, "what do ya want for nothing?", 28, digest);  /* RFC 4231, 4.3 */
	sha256_hex(digest, hex);
	assert_string_equal(hex, "5bdcc146bf60754e6a042426089575c7"
				 "5a003f089d2739839dec58b964ec3843");
}

/* "Signature Calculations for the Authorization Header", GET Bucket (List Objects). */
TEST(a_signature_is_that_of_the_reference)
{
	struct net_request r = {.method = "GET"};
	struct s3 s = {.region = "us-east-1"};
	struct buf url = {0};
	char empty[SHA256_HEX];

	assert_int_equal(s3_place("s3://examplebucket", "https://examplebucket.s3.amazonaws.com",
				  "us-east-1", &s, NULL), 0);
	buf_reset(&s.path);                  /* its name is the host's */
	buf_puts(&s.key_id, "AKIAIOSFODNN7EXAMPLE");
	buf_puts(&s.secret, "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY");
	sha256_text("", 0, empty);
	s3_sign(&s, &r, NULL, "max-keys=2&prefix=J", empty, 1369353600ULL * NS_PER_SEC, &url);
	assert_string_equal(url.data,
			    "https://examplebucket.s3.amazonaws.com/?max-keys=2&prefix=J");
	assert_string_equal(r.headers[r.nheaders - 1].data,
			    "Authorization: AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/"
			    "20130524/us-east-1/s3/aws4_request, "
			    "SignedHeaders=host;x-amz-content-sha256;x-amz-date, Signature="
			    "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7");
	net_request_free(&r);
	buf_free(&url);
	s3_free(&s);
}

static const char *url_of(const char *url, const char *endpoint, const char *region)
{
	static char text[200];
	struct s3 s = {0};
	int rc = s3_place(url, endpoint, region, &s, NULL);

	snprintf(text, sizeof(text), "%s%s|%s|%s", buf_text(&s.origin), buf_text(&s.path),
		 buf_text(&s.prefix), buf_text(&s.host));
	s3_free(&s);
	return rc ? "refused" : text;
}

TEST(a_bucket_is_a_host_of_aws_and_a_path_elsewhere)
{
	assert_string_equal(url_of("s3://logs/a/b", NULL, "eu-west-1"),
			    "https://logs.s3.eu-west-1.amazonaws.com|a/b/|"
			    "logs.s3.eu-west-1.amazonaws.com");
	assert_string_equal(url_of("s3://my.logs", "", NULL),
			    "https://s3.us-east-1.amazonaws.com/my.logs||"
			    "s3.us-east-1.amazonaws.com");
	assert_string_equal(url_of("s3://logs/a/", "http://minio:9000/", NULL),
			    "http://minio:9000/logs|a/|minio:9000");
	assert_string_equal(url_of("s3://x", NULL, NULL), "refused");
	assert_string_equal(url_of("s3://logs", "minio:9000", NULL), "refused");
	assert_string_equal(url_of("s3://logs", "https://", NULL), "refused");
	assert_string_equal(url_of("s3://logs", "http:///logs", NULL), "refused");
	assert_string_equal(url_of("s3://logs", "https://me:secret@minio", NULL), "refused");
}

TEST(a_list_gives_its_objects_one_after_the_other)
{
	const char *at = "<ListBucketResult><IsTruncated>true</IsTruncated>"
		"<Contents><Key>a&amp;b/&#x41;.db</Key><LastModified>2026-11-28T01:02:03.000Z"
		"</LastModified><Size>12</Size></Contents><Contents><Size>1</Size></Contents>"
		"<Contents><Key>c</Key></Contents><Contents><Key>cut";
	struct s3_object o;
	char text[100];

	assert_true(s3_member(at, at + strlen(at), "IsTruncated", text, sizeof(text)));
	assert_string_equal(text, "true");
	assert_true(s3_next_object(&at, &o));
	assert_string_equal(o.key, "a&b/A.db");
	assert_int_equal(o.bytes, 12);
	assert_string_equal(o.modified, "2026-11-28T01:02:03.000Z");
	assert_true(s3_next_object(&at, &o));
	assert_string_equal(o.key, "c");
	assert_false(s3_next_object(&at, &o));
	s3_error_text("<Error><Code>NoSuchBucket</Code><Message>It is gone</Message></Error>", text,
		      sizeof(text));
	assert_string_equal(text, "NoSuchBucket: It is gone");
}

TEST(retry_after_is_seconds_or_a_date)
{
	uint64_t now = 784111770ULL * NS_PER_SEC;    /* 7 s before RFC 9110's example */

	assert_int_equal(retry_after("120", now), 120);
	assert_int_equal(retry_after("Sun, 06 Nov 1994 08:49:37 GMT", now), 7);
	assert_int_equal(retry_after("Sun, 06 Nov 1993 08:49:37 GMT", now), 0);
	assert_int_equal(retry_after("soon", now), 0);
	assert_int_equal(retry_after("99999999999999999999", now), 999999999);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sha256_and_hmac_give_what_their_standards_say),
		cmocka_unit_test(a_signature_is_that_of_the_reference),
		cmocka_unit_test(a_bucket_is_a_host_of_aws_and_a_path_elsewhere),
		cmocka_unit_test(a_list_gives_its_objects_one_after_the_other),
		cmocka_unit_test(retry_after_is_seconds_or_a_date),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
