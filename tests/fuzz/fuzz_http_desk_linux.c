/*
 * Any bytes as a request: its first line is "METHOD PATH?NAME=VALUE&...", what follows the body.
 * The desk is ending, so that it neither waits nor starts a program; there is no recorder, and no
 * store.
 */
#include "http/desk_linux.h"

#include <stdlib.h>
#include <string.h>

#define LINE_MAX_BYTES 4000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

struct query {
	const char *at, *end;                /* "NAME=VALUE", each with a NUL behind */
};

static const char *no_header(void *ctx, const char *name)
{
	(void)ctx;
	(void)name;
	return NULL;
}

static const char *value_of(void *ctx, const char *name)
{
	const struct query *q = ctx;
	const char *at;
	size_t n = strlen(name);

	for (at = q->at; at < q->end; at += strlen(at) + 1)
		if (strncmp(at, name, n) == 0 && at[n] == '=')
			return at + n + 1;
	return NULL;
}

static void ask(const char *method, const char *path, struct query query,
		const struct buf *body)
{
	static const struct http_config cfg = {.store_path = "/nonexistent/recorder.db"};
	struct request r = {.method = method, .path = path, .header = no_header,
			    .query = value_of, .ctx = &query, .body = body};
	struct answer answer = {0};
	struct desk desk = {0};

	if (desk_open(&desk, &cfg, NULL))
		abort();
	desk.ending = true;
	desk_answer(&desk, &r, &answer);
	if (answer.status < 200 || answer.status > 503 || !answer.type || answer.has_file ||
	    !answer.body.len)
		abort();
	answer_free(&answer);
	desk_close(&desk);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const uint8_t *end = n ? memchr(data, '\n', n) : NULL;
	size_t len = end ? (size_t)(end - data) : n;
	char line[LINE_MAX_BYTES], *path, *at;
	struct query query = {0};
	struct buf body = {0};

	if (len >= sizeof(line))
		return 0;
	if (len)
		memcpy(line, data, len);
	line[len] = '\0';
	path = strchr(line, ' ');
	if (!path)
		return 0;
	*path++ = '\0';
	at = strchr(path, '?');
	if (at) {
		*at++ = '\0';
		query = (struct query){at, line + len};
		while ((at = strchr(at, '&')) != NULL)
			*at++ = '\0';
	}
	if (end)
		buf_put(&body, end + 1, n - len - 1);
	ask(line, path, query, &body);
	buf_free(&body);
	return 0;
}
