/*
 * The recorder over HTTP, for monitoring and for people: off unless --http is given.
 *
 * A front desk beside the recording: it asks the recorder by its control socket (engine/control.h),
 * as `recorder status` does, reads incidents from the store, and has the program itself, as another
 * process, do what takes time or memory. So no thread of the recording ever waits for a client.
 * libmicrohttpd, which is loaded when it is needed, has a thread for each of at most
 * HTTP_CONNECTIONS_MAX connections; further ones wait in the system's queue.
 *
 *	GET  /                      a page: rules, incidents, links to their reports
 *	GET  /healthz               "ok", "degraded", or 503 and "failing", with the reasons
 *	GET  /metrics               for Prometheus: http/metrics.h
 *	GET  /status                what `recorder status --json` prints
 *	GET  /incidents             a JSON array, the newest first
 *	GET  /incidents/7           a JSON object
 *	GET  /incidents/7.html      what `recorder export 7` writes; every suffix of export.h
 *	GET  /incidents/7.db        a store of its own, as recorder ship sends it
 *	GET  /debug/pprof/          what there is for `go tool pprof` and for scrapers
 *	GET  /debug/pprof/profile?seconds=N    the last N seconds, from the past: answered at once
 *	GET  /clock                 {"host":NAME, "wall_ns":NUMBER}
 *	POST /snapshot              {"reason":TEXT, "from":TIME, "at":TIME, "to":TIME, "wait":true};
 *	                            "group":UUID makes one incident, however often it is asked
 *	POST /alert                 an alert becomes an incident: http/alert.h
 *
 * An error is a sentence of plain text. Who may ask: /healthz anybody; /metrics anybody while no
 * token is set; everything else who has the token, or on a Unix socket root and the recorder's own
 * user. Beyond loopback it listens only with both token and TLS.
 */
#pragma once

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

#define HTTP_CONNECTIONS_MAX 32u
#define HTTP_BODY_MAX ((size_t)1 << 20)

struct http_config {
	const char *address;                 /* "127.0.0.1:9427", "unix:/run/recorder.sock", "fd" */
	const char *token_file;              /* NULL = no token */
	const char *cert_file, *key_file;    /* PEM; NULL = no TLS */
	const char *store_path;
	uint64_t pre_ns, post_ns;            /* what an incident keeps; for alerts */
	struct log *log;
};

struct http_server;

/*
 * Everything that can be wrong with it, but for listening itself.
 * returns  0; ERR_USAGE; ERR_UNSUPPORTED: on Windows, or libmicrohttpd is missing
 */
int http_server_check(const struct http_config *cfg, struct err *err);
/* Listen and answer until it is closed. cfg's texts must outlive it. */
int http_server_open(const struct http_config *cfg, struct http_server **out, struct err *err);
void http_server_close(struct http_server *h);       /* NULL allowed */
