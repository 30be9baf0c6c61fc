/*
 * Fetching a text by HTTP, with libcurl, which is loaded when it is first needed: a machine without
 * it records all the same. No redirects, no proxy, no netrc; one thread per object.
 */
#pragma once

#include "base/buf.h"

#define HTTP_MAX_BYTES ((size_t)8 << 20)
#define HTTP_TIMEOUT_MS 1000

struct http;

/* ERR_UNSUPPORTED: libcurl is missing, with the package to install. */
int http_open(const char *url, struct http **out, struct err *err);
/* The whole answer to a GET, kept until the next; the connection is kept too. */
int http_get(struct http *h, const struct buf **out, struct err *err);
void http_close(struct http *h);             /* NULL allowed */
