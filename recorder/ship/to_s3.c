/*
 * An object each, which is never replaced (If-None-Match: *); larger ones in parts, which a
 * bucket's lifecycle removes where an upload was never completed.
 */
#include "ship/target.h"

#include <stdio.h>
#include <string.h>

#define PART_KB 65536u
#define PARTS_MAX 10000u

static int ask(struct target *t, struct net *net, const struct parcel *p, struct net_request *r,
	       const char *query, const char *sha256, bool once, struct net_answer *a,
	       struct err *err)
{
	struct buf url = {0};
	int rc;

	target_prepare(t, r);
	if (once)
		net_header(r, "If-None-Match: *");
	s3_sign(&t->s3, r, buf_text(&p->name), query, sha256, os_wall_ns(), &url);
	rc = buf_check(&url, "a URL", err);
	if (!rc)
		rc = net_ask(net, r, a, err);
	net_request_free(r);
	buf_free(&url);
	return rc;
}

/* A file that is larger is sent in parts of so much. */
static uint64_t part_bytes(const struct target *t)
{
	return (uint64_t)(t->part_kb ? t->part_kb : PART_KB) << 10;
}

struct upload {
	struct target *t;
	struct net *net;
	const struct parcel *p;
	struct net_answer *a;
	char id[700];                        /* as it is sent */
	struct buf parts;                    /* the list that completes it */
};

static int begin(struct upload *u, struct err *err)
{
	struct net_request r = {.method = "POST", .text = ""};
	struct buf id = {0};
	char hash[SHA256_HEX], text[400];
	const char *body;
	int rc;

	sha256_text("", 0, hash);
	rc = ask(u->t, u->net, u->p, &r, "uploads=", hash, false, u->a, err);
	if (rc || u->a->status != 200)
		return rc;
	body = buf_text(&u->a->body);
	if (!s3_member(body, body + strlen(body), "UploadId", text, sizeof(text)) || !*text)
		return err_set(err, ERR_FORMAT, "%s gave no UploadId", buf_text(&u->t->name));
	url_put_encoded(&id, text, false);
	snprintf(u->id, sizeof(u->id), "uploadId=%s", buf_text(&id));
	buf_free(&id);
	return 0;
}

static int put_part(struct upload *u, uint32_t part, struct err *err)
{
	uint64_t size = part_bytes(u->t);
	struct net_request r = {.method = "PUT", .file = u->p->file, .from = part * size};
	char hash[SHA256_HEX], query[800];
	int rc;

	r.nbytes = u->p->bytes - r.from < size ? u->p->bytes - r.from : size;
	snprintf(query, sizeof(query), "partNumber=%u&%s", part + 1, u->id);
	rc = sha256_file(r.file, r.from, r.nbytes, hash, err);
	if (!rc)
		rc = ask(u->t, u->net, u->p, &r, query, hash, false, u->a, err);
	if (!rc && u->a->status == 200)
		buf_printf(&u->parts, "<Part><PartNumber>%u</PartNumber><ETag>%s</ETag></Part>",
			   part + 1, u->a->etag);
	return rc;
}

/* An error may come with status 200 (API reference, CompleteMultipartUpload). */
static int complete(struct upload *u, struct err *err)
{
	struct net_request r = {.method = "POST"};
	char hash[SHA256_HEX];
	int rc;

	buf_puts(&u->parts, "</CompleteMultipartUpload>");
	rc = buf_check(&u->parts, "a list of parts", err);
	if (rc)
		return rc;
	r.text = u->parts.data;
	r.nbytes = u->parts.len;
	sha256_text(r.text, u->parts.len, hash);
	rc = ask(u->t, u->net, u->p, &r, u->id, hash, true, u->a, err);
	if (!rc && u->a->status == 200 && strstr(buf_text(&u->a->body), "<Error>"))
		u->a->status = 500;
	return rc;
}

static void give_up(struct upload *u)
{
	struct net_request r = {.method = "DELETE", .text = ""};
	struct net_answer a = {0};
	char hash[SHA256_HEX];

	sha256_text("", 0, hash);
	ask(u->t, u->net, u->p, &r, u->id, hash, false, &a, NULL);
	net_answer_free(&a);
}

static int send_parts(struct upload *u, struct err *err)
{
	uint64_t n = (u->p->bytes - 1) / part_bytes(u->t) + 1;
	uint32_t part;
	int rc = n > PARTS_MAX ? err_set(err, ERR_LIMIT, "incident %s needs more than %u parts",
					 u->p->head->uuid, PARTS_MAX)
			       : begin(u, err);

	if (rc || u->a->status != 200)
		return rc;
	buf_puts(&u->parts, "<CompleteMultipartUpload>");
	for (part = 0; !rc && u->a->status == 200 && part < n; part++)
		rc = put_part(u, part, err);
	if (!rc && u->a->status == 200)
		rc = complete(u, err);
	if (rc || u->a->status != 200)
		give_up(u);
	buf_free(&u->parts);
	return rc;
}

int target_send_s3(struct target *t, struct net *net, struct parcel *p, struct net_answer *a,
		   struct err *err)
{
	struct net_request r = {.method = "PUT", .file = p->file, .nbytes = p->bytes};
	struct upload u = {.t = t, .net = net, .p = p, .a = a};
	char text[400];
	int rc = p->bytes > part_bytes(t) ? send_parts(&u, err)
				       : ask(t, net, p, &r, "", p->sha256, true, a, err);

	if (rc)
		return rc;
	if (a->status == 412)                /* it came there before its answer came back */
		a->status = 200;
	s3_error_text(buf_text(&a->body), text, sizeof(text));
	if (*text) {
		buf_reset(&a->body);
		buf_puts(&a->body, text);
	}
	return 0;
}
