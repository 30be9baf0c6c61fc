#include "source/counter/http_linux.h"

#include <dlfcn.h>
#include <stdlib.h>

/*
 * What is used of libcurl 7.19 and later, whose numbers never change (curl/curl.h): the program is
 * built without its headers.
 */
enum {
	CURLOPT_URL = 10002, CURLOPT_PROXY = 10004, CURLOPT_WRITEFUNCTION = 20011,
	CURLOPT_WRITEDATA = 10001, CURLOPT_ERRORBUFFER = 10010, CURLOPT_USERAGENT = 10018,
	CURLOPT_FAILONERROR = 45, CURLOPT_NOSIGNAL = 99, CURLOPT_TIMEOUT_MS = 155,
	CURLOPT_PROTOCOLS = 181,
};
#define CURLPROTO_HTTP_AND_HTTPS 3L
#define CURL_ERROR_SIZE 256

struct http {
	void *curl;
	int (*perform)(void *curl);
	void (*cleanup)(void *curl);
	const char *(*text_of)(int code);
	struct buf text;
	char url[400], error[CURL_ERROR_SIZE];
};

static size_t take(char *bytes, size_t size, size_t n, void *to)
{
	struct buf *text = to;

	buf_put(text, bytes, size * n);
	return text->failed ? 0 : size * n;
}

/* The address of a function, as a pointer of its type: C converts no void * to it. */
static bool find(void *library, const char *name, void *out)
{
	void *at = dlsym(library, name);

	memcpy(out, &at, sizeof(at));
	return at != NULL;
}

static void set_options(struct http *h, int (*set)(void *curl, int option, ...))
{
	set(h->curl, CURLOPT_NOSIGNAL, 1L);
	set(h->curl, CURLOPT_PROTOCOLS, CURLPROTO_HTTP_AND_HTTPS);
	set(h->curl, CURLOPT_PROXY, "");
	set(h->curl, CURLOPT_TIMEOUT_MS, (long)HTTP_TIMEOUT_MS);
	set(h->curl, CURLOPT_FAILONERROR, 1L);
	set(h->curl, CURLOPT_USERAGENT, "recorder");
	set(h->curl, CURLOPT_ERRORBUFFER, h->error);
	set(h->curl, CURLOPT_WRITEFUNCTION, take);
	set(h->curl, CURLOPT_WRITEDATA, &h->text);
	set(h->curl, CURLOPT_URL, h->url);
}

int http_open(const char *url, struct http **out, struct err *err)
{
	void *library;
	struct http *h;
	int (*set)(void *curl, int option, ...);
	void *(*init)(void);

	if (strlen(url) >= sizeof(h->url))
		return err_set(err, ERR_USAGE, "the address %.60s... is longer than %zu bytes",
			       url, sizeof(h->url) - 1);
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_memory(err, "for fetching %.200s", url);
	library = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!library)
		library = dlopen("libcurl-gnutls.so.4", RTLD_NOW | RTLD_LOCAL);
	if (!library || !find(library, "curl_easy_init", &init) ||
	    !find(library, "curl_easy_setopt", &set) ||
	    !find(library, "curl_easy_perform", &h->perform) ||
	    !find(library, "curl_easy_cleanup", &h->cleanup) ||
	    !find(library, "curl_easy_strerror", &h->text_of)) {
		free(h);
		return err_set(err, ERR_UNSUPPORTED, "to fetch %.200s libcurl is needed, and "
			       "libcurl.so.4 is missing: install libcurl4 (Debian), libcurl "
			       "(Fedora) or curl (others)", url);
	}
	h->curl = init();
	if (!h->curl) {
		http_close(h);
		return err_memory(err, "for fetching %.200s", url);
	}
	strcpy(h->url, url);
	h->text.max_bytes = HTTP_MAX_BYTES;
	set_options(h, set);
	*out = h;
	return 0;
}

int http_get(struct http *h, const struct buf **out, struct err *err)
{
	int rc;

	buf_reset(&h->text);
	h->error[0] = '\0';
	rc = h->perform(h->curl);
	if (h->text.failed == ERR_LIMIT)
		return err_set(err, ERR_LIMIT, "%s gave more than %zu MB, the limit for metrics",
			       h->url, HTTP_MAX_BYTES >> 20);
	if (rc)
		return err_set(err, ERR_IO, "%s cannot be read: %s", h->url,
			       h->error[0] ? h->error : h->text_of(rc));
	*out = &h->text;
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	if (h->curl)
		h->cleanup(h->curl);
	buf_free(&h->text);
	free(h);
}
