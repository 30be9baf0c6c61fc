/*
 * HTTP requests, by libcurl, which is loaded when somebody wants one: the program does not need it.
 * Linux only. TLS certificates are verified, redirections are not followed (a request may carry a
 * secret), proxies are those of the environment (https_proxy, no_proxy...). One thread each.
 */
#pragma once

#include "base/buf.h"
#include "base/os.h"

#define REQUEST_HEADERS_MAX 24u
#define REQUEST_ANSWER_MAX ((size_t)4 << 20)

struct net_request {
	const char *method, *url;
	const char *socket_path;             /* a Unix socket instead of the URL's host; or NULL */
	struct buf headers[REQUEST_HEADERS_MAX];     /* "Name: value" */
	unsigned nheaders;
	const char *ca_file;                 /* whom else to trust; NULL = the system's list */
	uint32_t stall_s;                    /* give up after so long without a byte; 0 = 60 */
	uint64_t bytes_per_s;                /* 0 = no limit */
	uint32_t timeout_ms;                 /* for all of it; 0 = none */
	bool no_proxy;                       /* whatever the environment says */
	size_t answer_max;                   /* of its body; 0 = REQUEST_ANSWER_MAX */
	/* The body: so many bytes of a file, or of text; none. */
	struct os_file *file;
	uint64_t from, nbytes;
	const char *text;
	struct os_file *into;                /* gets the body of a success; NULL = answer.body */
	uint64_t into_max;
};

struct net_answer {
	int status;                          /* 200... */
	struct buf body;                     /* at most REQUEST_ANSWER_MAX; or an error */
	char etag[80], location[300];
	uint64_t retry_after_s;              /* 0 = not said */
};

void net_header(struct net_request *r, const char *format, ...) PRINTF_LIKE(2, 3);
void net_request_free(struct net_request *r);
void net_answer_free(struct net_answer *a);

struct net;
/* ERR_UNSUPPORTED: it is not there; the sentence says what to install. */
int net_open(struct net **out, struct err *err);
void net_close(struct net *n);               /* NULL allowed */
/*
 * returns  0: there is an answer, whatever it says; ERR_IO: there is none, or a part of one: why;
 *          ERR_USAGE: the URL; ERR_LIMIT: the answer is too long; ERR_MEMORY
 */
int net_ask(struct net *n, struct net_request *r, struct net_answer *a, struct err *err);

/* The date of Retry-After (RFC 9110, 10.2.3) or its seconds, from wall_ns on; 0 = neither. */
uint64_t retry_after(const char *value, uint64_t wall_ns);

/* Append a text with all but letters, digits and -._~ as %XX; slashes: leave '/' as well. */
void url_put_encoded(struct buf *out, const char *text, bool slashes);
