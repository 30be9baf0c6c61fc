/*
 * Any bytes as the answer of an S3 server, as a Retry-After, and as "URL LF ENDPOINT LF KEY": the
 * address of a signed request for that key, which keeps to one line of ASCII behind the endpoint.
 * They are also a file to be sent, whose digest is that of its bytes.
 */
#include "net/s3.h"
#include "net/sha256.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define SHA256_OF_NOTHING "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"

static char *next_line(char **at)
{
	char *line = *at, *end = strchr(line, '\n');

	*at = end ? end + 1 : line + strlen(line);
	if (end)
		*end = '\0';
	return line;
}

/* Changes the text. */
static void sign(char *text)
{
	char *url = next_line(&text), *endpoint = next_line(&text), *key = next_line(&text);
	struct net_request r = {.method = "GET"};
	struct buf signed_url = {0};
	struct s3 place = {0};
	const char *at;

	if (strncmp(url, "s3://", 5) == 0 &&
	    !s3_place(url, *endpoint == '-' ? NULL : endpoint, NULL, &place, NULL)) {
		buf_puts(&place.secret, key);
		buf_puts(&place.token, strlen(key) % 2 ? "token" : "");
		s3_sign(&place, &r, *key ? key : NULL, strlen(key) % 3 ? "list-type=2" : "",
			SHA256_OF_NOTHING, 1234567890 * NS_PER_SEC, &signed_url);
		for (at = signed_url.data + place.origin.len + place.path.len; *at; at++)
			if (*at <= ' ' || *at > '~')
				abort();
		net_request_free(&r);
	}
	buf_free(&signed_url);
	s3_free(&place);
}

/* Its second half; one byte more than it has is an error. */
static void digest(const uint8_t *data, size_t size)
{
	char text[SHA256_HEX], half[SHA256_HEX];
	struct os_file *file = NULL;
	size_t from = size / 2;

	sha256_text(data + from, size - from, text);
	if (os_temp(&file, NULL) || os_pwrite(file, data, size, 0, NULL) ||
	    sha256_file(file, from, size - from, half, NULL) || strcmp(text, half) != 0 ||
	    sha256_file(file, from, size - from + 1, half, NULL) != ERR_IO)
		abort();
	os_close(file);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *xml = malloc(size + 1), text[40];
	struct s3_object o;
	const char *at;

	if (!xml)
		return 0;
	memcpy(xml, data, size);
	xml[size] = '\0';
	for (at = xml; s3_next_object(&at, &o);)
		if (strlen(o.key) > S3_KEY_MAX || at > xml + size)
			abort();
	s3_member(xml, xml + strlen(xml), "NextContinuationToken", text, sizeof(text));
	s3_error_text(xml, text, sizeof(text));
	retry_after(xml, 784111770ULL * NS_PER_SEC);
	sign(xml);
	free(xml);
	digest(data, size);
	return 0;
}
