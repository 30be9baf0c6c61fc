/* The page of rules and incidents; its links open the same files that `recorder export` writes. */
#include "http/desk_linux.h"

#include "base/array.h"
#include "base/utf8.h"
#include "export/markup.h"
#include "store/store.h"

#include <inttypes.h>
#include <string.h>

static void put_text(struct buf *out, const char *text)
{
	struct buf clean = {0};

	utf8_put_clean(&clean, text, strlen(text), 600);
	markup_put(out, buf_text(&clean), clean.len);
	buf_free(&clean);
}

static void put_member(struct buf *out, struct json_value object, const char *key)
{
	struct buf text = {0};

	json_put_text(json_member(object, key), &text);
	put_text(out, buf_text(&text));
	buf_free(&text);
}

static void put_rules(struct json_value status, struct buf *out)
{
	struct json_value r = {0};

	buf_puts(out, "<h2>Rules</h2>\n<table><tr><th>rule<th>now<th>incidents\n");
	while ((r = json_next(json_member(status, "rules"), r)).at) {
		buf_puts(out, "<tr><td>");
		put_member(out, r, "rule");
		buf_puts(out, "<td>");
		put_member(out, r, "text");
		buf_puts(out, "<td>");
		put_member(out, r, "fired");
		buf_putc(out, '\n');
	}
	buf_puts(out, "</table>\n");
}

static int put_incident(void *ctx, const struct incident_head *h)
{
	static const char *const formats[] = {"html", "svg", "folded", "pb.gz"};
	struct buf *out = ctx;
	char time[OS_TIME_TEXT_BYTES];
	size_t i;

	os_time_text(h->trigger_wall_ns, time);
	buf_printf(out, "<tr><td>%" PRId64 "<td>%.19sZ<td>%" PRIu64 "<td>%" PRIu64 "<td>", h->id,
		   time, h->samples, h->lost);
	put_text(out, h->reason && *h->reason ? h->reason : h->rule ? h->rule : "");
	buf_puts(out, "<td>");
	for (i = 0; i < COUNT_OF(formats); i++)
		buf_printf(out, "<a href=\"incidents/%" PRId64 ".%s\">%s</a> ", h->id, formats[i],
			   formats[i]);
	buf_putc(out, '\n');
	return 0;
}

void get_page(struct desk *d, const struct request *r, struct answer *out)
{
	struct buf status = {0};
	struct store *store = NULL;
	struct json_value all;
	struct err err = {0};

	(void)r;
	out->status = 200;
	out->type = "text/html; charset=utf-8";
	out->extra = "Content-Security-Policy";
	out->extra_value = "default-src 'none'; style-src 'unsafe-inline'";
	buf_puts(&out->body, "<!doctype html><html lang=\"en\"><title>recorder</title>\n"
		 "<meta name=\"viewport\" content=\"width=device-width\">\n"
		 "<style>body{font:14px sans-serif;margin:2em}"
		 "td,th{text-align:left;padding:2px 12px 2px 0;vertical-align:top}</style>\n"
		 "<h1>recorder: ");
	if (!desk_status(d, &status, &err) && json_read(buf_text(&status), &all)) {
		put_member(&out->body, all, "health");
		buf_puts(&out->body, "</h1>\n");
		put_rules(all, &out->body);
	} else {
		put_text(&out->body, err.text);
		buf_puts(&out->body, "</h1>\n");
	}
	buf_puts(&out->body, "<h2>Incidents</h2>\n<table><tr><th>number<th>time<th>samples<th>lost"
			     "<th>what fired<th>open\n");
	if (!store_open(d->cfg->store_path, STORE_READ, &store, NULL))
		store_list(store, put_incident, &out->body, NULL);
	store_close(store);
	buf_puts(&out->body, "</table>\n<p><a href=\"metrics\">metrics</a> "
			     "<a href=\"status\">status</a></html>\n");
	buf_free(&status);
}
