#include "source/counter/http_linux.h"

#include "net/request.h"

#include <stdlib.h>
#include <string.h>

struct http {
	struct net *net;
	struct net_answer answer;
	char url[400];
};

int http_open(const char *url, struct http **out, struct err *err)
{
	struct http *h;
	int rc;

	if (strlen(url) >= sizeof(h->url))
		return err_set(err, ERR_USAGE, "the address %.60s... is longer than %zu bytes",
			       url, sizeof(h->url) - 1);
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_memory(err, "for fetching %.200s", url);
	strcpy(h->url, url);
	rc = net_open(&h->net, err);
	if (rc) {
		free(h);
		return err_prefix(err, "to fetch %.200s", url);
	}
	*out = h;
	return 0;
}

int http_get(struct http *h, const struct buf **out, struct err *err)
{
	struct net_request r = {.method = "GET", .url = h->url, .no_proxy = true,
				.timeout_ms = HTTP_TIMEOUT_MS, .answer_max = HTTP_MAX_BYTES};
	struct err why = {0};
	int rc = net_ask(h->net, &r, &h->answer, &why);

	if (rc == ERR_LIMIT)
		return err_set(err, ERR_LIMIT, "%s gave more than %zu MB, the limit for metrics",
			       h->url, HTTP_MAX_BYTES >> 20);
	if (rc)
		return err_set(err, ERR_IO, "%s cannot be read: %s", h->url, why.text);
	if (h->answer.status >= 400)
		return err_set(err, ERR_IO, "%s cannot be read: the server says %d", h->url,
			       h->answer.status);
	*out = &h->answer.body;
	return 0;
}

void http_close(struct http *h)
{
	if (!h)
		return;
	net_close(h->net);
	net_answer_free(&h->answer);
	free(h);
}
