#include "net/request.h"

#include "base/library_linux.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

/*
 * What is used of libcurl 7.30 and later, whose numbers never change (curl/curl.h): the program is
 * built without its headers.
 */
enum {
	CURLOPT_WRITEDATA = 10001, CURLOPT_URL = 10002, CURLOPT_READDATA = 10009,
	CURLOPT_ERRORBUFFER = 10010, CURLOPT_USERAGENT = 10018, CURLOPT_HTTPHEADER = 10023,
	CURLOPT_HEADERDATA = 10029, CURLOPT_CUSTOMREQUEST = 10036, CURLOPT_CAINFO = 10065,
	CURLOPT_WRITEFUNCTION = 20011, CURLOPT_READFUNCTION = 20012, CURLOPT_HEADERFUNCTION = 20079,
	CURLOPT_LOW_SPEED_LIMIT = 19, CURLOPT_LOW_SPEED_TIME = 20, CURLOPT_NOBODY = 44,
	CURLOPT_UPLOAD = 46, CURLOPT_CONNECTTIMEOUT = 78, CURLOPT_NOSIGNAL = 99,
	CURLOPT_UNIX_SOCKET_PATH = 10231,
	CURLOPT_PROXY = 10004, CURLOPT_TIMEOUT_MS = 155, CURLOPT_PROTOCOLS = 181,
	CURLOPT_INFILESIZE_LARGE = 30115,
	CURLOPT_MAX_SEND_SPEED_LARGE = 30145, CURLINFO_RESPONSE_CODE = 0x200002,
};
enum {CURLE_URL_MALFORMAT = 3, CURLE_UNSUPPORTED_PROTOCOL = 1};
#define CURLPROTO_HTTP_AND_HTTPS 3L
#define CURL_ERROR_SIZE 256
#define CURL_READFUNC_ABORT 0x10000000u

struct curl_slist;
struct library {
	void *(*init)(void);
	int (*set)(void *curl, int option, ...);
	int (*perform)(void *curl);
	int (*getinfo)(void *curl, int info, ...);
	void (*reset)(void *curl);
	void (*cleanup)(void *curl);
	const char *(*text_of)(int code);
	struct curl_slist *(*append)(struct curl_slist *list, const char *text);
	void (*free_all)(struct curl_slist *list);
};
static const char *const names[] = {
	"curl_easy_init", "curl_easy_setopt", "curl_easy_perform", "curl_easy_getinfo",
	"curl_easy_reset", "curl_easy_cleanup", "curl_easy_strerror", "curl_slist_append",
	"curl_slist_free_all", NULL,
};

struct net {
	struct library lib;
	void *curl;
	char error[CURL_ERROR_SIZE];
};

int net_open(struct net **out, struct err *err)
{
	struct net *n = calloc(1, sizeof(*n));
	const char *missing;

	if (!n)
		return err_memory(err, "for a request");
	missing = library_load("libcurl.so.4", names, &n->lib);
	if (missing && !library_load("libcurl-gnutls.so.4", names, &n->lib))
		missing = NULL;
	if (missing) {
		free(n);
		return err_set(err, ERR_UNSUPPORTED, "libcurl is needed, and %s is missing: "
			       "install libcurl4 (Debian), libcurl (Fedora) or curl (others)",
			       missing);
	}
	n->curl = n->lib.init();
	if (!n->curl) {
		free(n);
		return err_memory(err, "for a request");
	}
	*out = n;
	return 0;
}

void net_close(struct net *n)
{
	if (!n)
		return;
	n->lib.cleanup(n->curl);
	free(n);
}

struct exchange {
	struct net_request *r;
	struct net_answer *a;
	struct net *net;
	uint64_t sent, taken;
	struct err *err;
	int rc;
};

static size_t send_bytes(char *to, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	uint64_t left = x->r->nbytes - x->sent;
	size_t got = size * n < left ? size * n : (size_t)left;

	if (x->r->file)
		x->rc = os_pread(x->r->file, to, got, x->r->from + x->sent, &got, x->err);
	else
		memcpy(to, x->r->text + x->sent, got);
	if (x->rc)
		return CURL_READFUNC_ABORT;
	x->sent += got;
	return got;
}

static size_t take_bytes(char *bytes, size_t size, size_t n, void *ctx)
{
	struct exchange *x = ctx;
	long status = 0;

	n *= size;
	x->net->lib.getinfo(x->net->curl, CURLINFO_RESPONSE_CODE, &status);
	x->taken += n;
	if (x->r->into && status / 100 == 2) {
		x->rc = x->taken > x->r->into_max
				? err_set(x->err, ERR_LIMIT, "%.300s is larger than it may be",
					  x->r->url)
				: os_write(x->r->into, bytes, n, x->err);
		return x->rc ? 0 : n;
	}
	if (x->taken > (x->r->answer_max ? x->r->answer_max : REQUEST_ANSWER_MAX))
		x->rc = err_set(x->err, ERR_LIMIT, "the answer of %.300s is too long", x->r->url);
	else
		buf_put(&x->a->body, bytes, n);
	return x->rc || x->a->body.failed ? 0 : n;
}

/* The value of a header line, into out; unchanged if it is another one. */
static bool take_value(const char *line, size_t n, const char *name, char *out, size_t max)
{
	size_t nname = strlen(name);

	if (n <= nname || strncasecmp(line, name, nname) != 0)
		return false;
	line += nname;
	n -= nname;
	for (; n && (*line == ' ' || *line == '\t'); line++)
		n--;
	while (n && (unsigned char)line[n - 1] <= ' ')
		n--;
	n = n < max - 1 ? n : max - 1;
	memcpy(out, line, n);
	out[n] = '\0';
	return true;
}

static size_t take_header(char *line, size_t size, size_t n, void *ctx)
{
	struct net_answer *a = ((struct exchange *)ctx)->a;
	char value[100];

	n *= size;
	take_value(line, n, "ETag:", a->etag, sizeof(a->etag));
	take_value(line, n, "Location:", a->location, sizeof(a->location));
	if (take_value(line, n, "Retry-After:", value, sizeof(value)))
		a->retry_after_s = retry_after(value, os_wall_ns());
	return n;
}

static void set_options(struct net *n, struct exchange *x, struct curl_slist *headers)
{
	int (*set)(void *curl, int option, ...) = n->lib.set;
	struct net_request *r = x->r;

	set(n->curl, CURLOPT_NOSIGNAL, 1L);
	set(n->curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP_AND_HTTPS);
	set(n->curl, CURLOPT_USERAGENT, "recorder");
	set(n->curl, CURLOPT_ERRORBUFFER, n->error);
	set(n->curl, CURLOPT_CONNECTTIMEOUT, 20L);
	set(n->curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	set(n->curl, CURLOPT_LOW_SPEED_TIME, (long)(r->stall_s ? r->stall_s : 60));
	set(n->curl, CURLOPT_MAX_SEND_SPEED_LARGE, (int64_t)r->bytes_per_s);
	set(n->curl, CURLOPT_TIMEOUT_MS, (long)r->timeout_ms);
	if (r->no_proxy)
		set(n->curl, CURLOPT_PROXY, "");
	if (r->ca_file)
		set(n->curl, CURLOPT_CAINFO, r->ca_file);
	if (r->socket_path)
		set(n->curl, CURLOPT_UNIX_SOCKET_PATH, r->socket_path);
	set(n->curl, CURLOPT_URL, r->url);
	/*
	 * CURLOPT_SEEKFUNCTION stays unset: libcurl would send a body again by itself on a new
	 * connection, and a server may have taken it already.
	 */
	if (strcmp(r->method, "HEAD") == 0) {
		set(n->curl, CURLOPT_NOBODY, 1L);
	} else if (strcmp(r->method, "GET") != 0) {
		set(n->curl, CURLOPT_UPLOAD, 1L);
		set(n->curl, CURLOPT_CUSTOMREQUEST, r->method);
		set(n->curl, CURLOPT_INFILESIZE_LARGE, (int64_t)r->nbytes);
		set(n->curl, CURLOPT_READFUNCTION, send_bytes);
		set(n->curl, CURLOPT_READDATA, x);
	}
	set(n->curl, CURLOPT_HTTPHEADER, headers);
	set(n->curl, CURLOPT_HEADERFUNCTION, take_header);
	set(n->curl, CURLOPT_HEADERDATA, x);
	set(n->curl, CURLOPT_WRITEFUNCTION, take_bytes);
	set(n->curl, CURLOPT_WRITEDATA, x);
}

int net_ask(struct net *n, struct net_request *r, struct net_answer *a, struct err *err)
{
	struct exchange x = {.r = r, .a = a, .net = n, .err = err};
	/* Without a wait for permission to send. */
	struct curl_slist *headers = n->lib.append(NULL, "Expect:"), *more = headers;
	long status = 0;
	unsigned i;
	int code;

	for (i = 0; more && i < r->nheaders; i++) {
		if (buf_check(&r->headers[i], "a request", err)) {
			n->lib.free_all(headers);
			return ERR_MEMORY;
		}
		more = n->lib.append(headers, r->headers[i].data);
	}
	if (!more) {
		n->lib.free_all(headers);
		return err_memory(err, "for a request");
	}
	buf_reset(&a->body);
	a->etag[0] = a->location[0] = n->error[0] = '\0';
	a->retry_after_s = 0;
	n->lib.reset(n->curl);               /* the connection stays */
	set_options(n, &x, headers);
	code = n->lib.perform(n->curl);
	n->lib.getinfo(n->curl, CURLINFO_RESPONSE_CODE, &status);
	a->status = (int)status;
	n->lib.free_all(headers);
	if (x.rc)
		return x.rc;
	if (a->body.failed)
		return err_memory(err, "for an answer");
	if (code)
		return err_set(err, code == CURLE_URL_MALFORMAT ||
			       code == CURLE_UNSUPPORTED_PROTOCOL ? ERR_USAGE : ERR_IO, "%s",
			       n->error[0] ? n->error : n->lib.text_of(code));
	return 0;
}
