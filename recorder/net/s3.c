#include "net/s3.h"

#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int s3_place(const char *url, const char *endpoint, const char *region, struct s3 *out,
	     struct err *err)
{
	const char *bucket = url + strlen("s3://"), *key;
	size_t n = strcspn(bucket, "/"), end;
	bool aws = !endpoint || !*endpoint;
	size_t scheme = aws ? 0 : text_starts_fold(endpoint, "https://") ? 8
				: text_starts_fold(endpoint, "http://")	 ? 7 : 0;

	out->region = region && *region ? region : "us-east-1";
	if (n < 3 || n > 63)
		return err_set(err, ERR_USAGE, "%.200s: expected s3://BUCKET/PREFIX", url);
	if (!aws && (!scheme || !endpoint[scheme] || endpoint[scheme] == '/'))
		return err_set(err, ERR_USAGE, "the endpoint '%.200s' is not http(s)://HOST",
			       endpoint);
	if (aws && !memchr(bucket, '.', n)) {
		buf_printf(&out->origin, "https://%.*s.s3.%s.amazonaws.com", (int)n, bucket,
			   out->region);
	} else {
		if (aws)
			buf_printf(&out->origin, "https://s3.%s.amazonaws.com", out->region);
		else
			buf_put(&out->origin, endpoint, strlen(endpoint) -
				(endpoint[strlen(endpoint) - 1] == '/'));
		buf_printf(&out->path, "/%.*s", (int)n, bucket);
	}
	key = bucket + n + (bucket[n] == '/');
	for (end = strlen(key); end && key[end - 1] == '/'; end--)
		;
	buf_put(&out->prefix, key, end);
	if (end)
		buf_putc(&out->prefix, '/');
	if (buf_check(&out->origin, "an endpoint", err) || buf_check(&out->path, "a bucket", err) ||
	    buf_check(&out->prefix, "a prefix", err))
		return ERR_MEMORY;
	buf_puts(&out->host, strstr(out->origin.data, "://") + 3);
	return strchr(buf_text(&out->host), '/') || strchr(buf_text(&out->host), '@')
		       ? err_set(err, ERR_USAGE, "the endpoint '%.200s' is more than a host",
				 endpoint)
		       : buf_check(&out->host, "an endpoint", err);
}

void s3_free(struct s3 *s)
{
	buf_free(&s->origin);
	buf_free(&s->host);
	buf_free(&s->path);
	buf_free(&s->prefix);
	buf_free(&s->key_id);
	buf_free(&s->secret);
	buf_free(&s->token);
}

static void sign_key(const struct s3 *s, const char date[9], uint8_t key[SHA256_BYTES])
{
	struct buf first = {0};

	buf_puts(&first, "AWS4");
	buf_puts(&first, buf_text(&s->secret));
	hmac_sha256(buf_text(&first), first.len, date, 8, key);
	buf_free(&first);
	hmac_sha256(key, SHA256_BYTES, s->region, strlen(s->region), key);
	hmac_sha256(key, SHA256_BYTES, "s3", 2, key);
	hmac_sha256(key, SHA256_BYTES, "aws4_request", 12, key);
}

void s3_sign(const struct s3 *s, struct net_request *r, const char *key, const char *query,
	     const char sha256[SHA256_HEX], uint64_t wall_ns, struct buf *url)
{
	const char *names = s->token.len
		? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
		: "host;x-amz-content-sha256;x-amz-date";
	struct buf path = {0}, text = {0};
	char iso[OS_TIME_TEXT_BYTES], time[17], hash[SHA256_HEX];
	uint8_t digest[SHA256_BYTES];

	os_time_text(wall_ns, iso);
	snprintf(time, sizeof(time), "%.4s%.2s%.2sT%.2s%.2s%.2sZ", iso, iso + 5, iso + 8, iso + 11,
		 iso + 14, iso + 17);
	buf_puts(&path, buf_text(&s->path));
	buf_putc(&path, '/');
	if (key) {
		url_put_encoded(&path, buf_text(&s->prefix), true);
		url_put_encoded(&path, key, true);
	}
	buf_printf(&text, "%s\n%s\n%s\nhost:%s\nx-amz-content-sha256:%s\nx-amz-date:%s\n",
		   r->method, buf_text(&path), query, buf_text(&s->host), sha256, time);
	if (s->token.len)
		buf_printf(&text, "x-amz-security-token:%s\n", buf_text(&s->token));
	buf_printf(&text, "\n%s\n%s", names, sha256);
	sha256_text(buf_text(&text), text.len, hash);
	buf_reset(&text);
	buf_printf(&text, "AWS4-HMAC-SHA256\n%s\n%.8s/%s/s3/aws4_request\n%s", time, time,
		   s->region, hash);
	sign_key(s, time, digest);
	hmac_sha256(digest, sizeof(digest), buf_text(&text), text.len, digest);
	sha256_hex(digest, hash);
	net_header(r, "x-amz-content-sha256: %s", sha256);
	net_header(r, "x-amz-date: %s", time);
	if (s->token.len)
		net_header(r, "x-amz-security-token: %s", buf_text(&s->token));
	net_header(r, "Authorization: AWS4-HMAC-SHA256 Credential=%s/%.8s/%s/s3/aws4_request, "
		       "SignedHeaders=%s, Signature=%s", buf_text(&s->key_id), time, s->region,
		       names, hash);
	buf_reset(url);
	buf_printf(url, "%s%s%s%s", buf_text(&s->origin), buf_text(&path), *query ? "?" : "",
		   query);
	r->url = buf_text(url);
	buf_free(&path);
	buf_free(&text);
}

/* ---- answers in XML: elements without attributes, as servers write them ---------------------- */

/* One character or entity; *n: how many bytes it takes there. */
static char unescape(const char *at, const char *end, size_t *n)
{
	static const struct {
		const char *name;
		char is;
	} entities[] = {{"&amp;", '&'}, {"&lt;", '<'}, {"&gt;", '>'}, {"&quot;", '"'},
			{"&apos;", '\''}};
	size_t i, len;

	for (i = 0; *at == '&' && i < 5; i++) {
		len = strlen(entities[i].name);
		if ((size_t)(end - at) >= len && memcmp(at, entities[i].name, len) == 0) {
			*n = len;
			return entities[i].is;
		}
	}
	if ((size_t)(end - at) > 3 && at[0] == '&' && at[1] == '#') {
		char *stop;
		long code = strtol(at + 2 + (at[2] == 'x'), &stop, at[2] == 'x' ? 16 : 10);

		if (stop < end && *stop == ';' && code > 0 && code < 128) {
			*n = (size_t)(stop - at) + 1;
			return (char)code;
		}
	}
	*n = 1;
	return *at;
}

static const char *find(const char *at, const char *end, const char *open, const char *name)
{
	size_t nopen = strlen(open), n = strlen(name);

	for (; (size_t)(end - at) > nopen + n; at++)
		if (memcmp(at, open, nopen) == 0 && memcmp(at + nopen, name, n) == 0 &&
		    at[nopen + n] == '>')
			return at;
	return NULL;
}

bool s3_member(const char *xml, const char *end, const char *name, char *out, size_t n)
{
	const char *at = find(xml, end, "<", name), *stop;
	size_t len = 0, step;

	stop = at ? find(at, end, "</", name) : NULL;
	if (!stop)
		return false;
	for (at += strlen(name) + 2; at < stop && len + 1 < n; at += step)
		out[len++] = unescape(at, stop, &step);
	out[len] = '\0';
	return true;
}

bool s3_next_object(const char **at, struct s3_object *out)
{
	const char *all = *at + strlen(*at), *begin, *end;
	char bytes[24];

	while ((begin = find(*at, all, "<", "Contents")) &&
	       (end = find(begin, all, "</", "Contents"))) {
		*at = end + 1;
		*out = (struct s3_object){.bytes = 0};
		if (!s3_member(begin, end, "Key", out->key, sizeof(out->key)))
			continue;
		if (s3_member(begin, end, "Size", bytes, sizeof(bytes)))
			out->bytes = strtoull(bytes, NULL, 10);
		s3_member(begin, end, "LastModified", out->modified, sizeof(out->modified));
		return true;
	}
	return false;
}

void s3_error_text(const char *xml, char *out, size_t n)
{
	const char *end = xml + strlen(xml);
	char code[80] = "", message[300] = "";

	s3_member(xml, end, "Code", code, sizeof(code));
	s3_member(xml, end, "Message", message, sizeof(message));
	snprintf(out, n, "%s%s%s", code, *code && *message ? ": " : "", message);
}
