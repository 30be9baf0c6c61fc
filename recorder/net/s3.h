/*
 * Objects of an S3-compatible store: requests signed with Signature Version 4 (AWS General
 * Reference, "Signing AWS API requests"; the payload's hash is always given, as some servers refuse
 * UNSIGNED-PAYLOAD), and lists of objects. One thread each.
 */
#pragma once

#include "net/request.h"
#include "net/sha256.h"

#define S3_KEY_MAX 1024u

struct s3 {
	struct buf origin, host;             /* "https://host:9000"; "host:9000" */
	struct buf path;                     /* "/bucket"; "" where the host has its name */
	struct buf prefix;                   /* of keys: "a/b/", or "" */
	const char *region;
	struct buf key_id, secret, token;    /* token: "" = none */
};

/*
 * What "s3://bucket/prefix" is at an endpoint ("https://minio:9000"; NULL = AWS in this region). An
 * endpoint that does not know buckets as host names gets them in the path.
 * returns  0; ERR_USAGE; ERR_MEMORY
 */
int s3_place(const char *url, const char *endpoint, const char *region, struct s3 *out,
	     struct err *err);
void s3_free(struct s3 *s);

/*
 * Make r a signed request: URL (into *url) and headers of its own; those of the caller are not
 * signed.
 *
 * key      of the object, without the prefix; NULL = the bucket itself
 * query    as it is sent, its names sorted: "list-type=2&prefix=x", or ""
 * sha256   of the body
 */
void s3_sign(const struct s3 *s, struct net_request *r, const char *key, const char *query,
	     const char sha256[SHA256_HEX], uint64_t wall_ns, struct buf *url);

struct s3_object {
	char key[S3_KEY_MAX + 1];
	uint64_t bytes;
	char modified[32];                   /* "2026-11-28T19:02:03.000Z" */
};
/* The next object of an answer to ListObjectsV2, from *at on; false: there is none. */
bool s3_next_object(const char **at, struct s3_object *out);
/* A member of any answer in XML, unescaped, cut at n - 1 bytes; false: it is not there. */
bool s3_member(const char *xml, const char *end, const char *name, char *out, size_t n);
/* What an error says: "AccessDenied: ..."; or "". */
void s3_error_text(const char *xml, char *out, size_t n);
