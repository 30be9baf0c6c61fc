/*
 * The front desk: from a request to an answer. It knows no HTTP library; server_linux.c calls it
 * from the thread of each connection, several at a time.
 */
#pragma once

#include "base/buf.h"
#include "base/json_read.h"
#include "base/os.h"
#include "http/server.h"

#include <stdatomic.h>

#define DESK_ANSWER_WAIT_NS (10 * NS_PER_SEC)        /* for the recorder's own answers */

struct desk {
	const struct http_config *cfg;
	char *control;                       /* path of the recorder's socket */
	_Atomic bool ending;
	_Atomic bool begun;                  /* the recorder has answered */
	uint64_t begin_until_ns;             /* it is waited for until then */

	struct os_mutex *lock;
	struct os_cond *changed;
	struct buf status;                   /* the last answer, */
	uint64_t status_ns;                  /* of this moment; 0 = none */
	unsigned running, waiting;           /* programs; requests for one */
	uint64_t requests, refused, slow;    /* in all; without the right; clients dropped */
	bool takes_alerts;                   /* a thread does: alerts are its own meanwhile */
	struct alert_desk *alerts;
	uint64_t alerts_taken, alert_repeats, alerts_held_back;
};

/* returns 0 or ERR_MEMORY; close it after an error, too */
int desk_open(struct desk *d, const struct http_config *cfg, struct err *err);
void desk_close(struct desk *d);

struct request {
	const char *method, *path;           /* "GET"; "/incidents/7.html" */
	const char *(*header)(void *ctx, const char *name);  /* NULL = none */
	const char *(*query)(void *ctx, const char *name);
	void *ctx;
	const struct buf *body;
	bool has_token;                      /* there is one */
	bool open_only;                      /* the client may see /healthz and /metrics only */
};

struct answer {
	unsigned status;                     /* 200 */
	const char *type;                    /* constant */
	const char *extra, *extra_value;     /* one more header; NULL = none */
	struct buf body;
	int file;                            /* in place of the body, if has_file; a descriptor */
	bool has_file;
};

/* out: starts as {0}; free with answer_free(). */
void desk_answer(struct desk *d, const struct request *r, struct answer *out);
void answer_free(struct answer *a);
/* A sentence, in plain text. */
void answer_text(struct answer *a, unsigned status, const char *format, ...) PRINTF_LIKE(3, 4);
/* The same for an error: 400, 403, 404, 500, 503 by its code. */
void answer_error(struct answer *a, const struct err *err);

/* ---- what the endpoints share ---------------------------------------------------------------- */

/* Ask the recorder. Its {"error":...} is an error here. */
int desk_ask(struct desk *d, const char *line, struct buf *answer, struct err *err);
/* Its status, not older than a quarter of a second: a crowd of clients costs it four a second. */
int desk_status(struct desk *d, struct buf *out, struct err *err);
/*
 * Bring the history to the disk, up to now. It may take a second. Where there is none, or its disk
 * is slow, what is there must do.
 */
void desk_flush(struct desk *d);

/*
 * Have another process of this program run a command with --store, at most DESK_PROGRAM_NS;
 * two at a time. args: the command first; ends in NULL.
 *
 * to        a file with its standard output; closed by the caller
 * returns   0; ERR_BUSY: too many wait already; ERR_USAGE, ERR_NOT_FOUND, ERR_IO: as it ended, with
 *           its own sentence
 */
#define DESK_PROGRAM_NS (60 * NS_PER_SEC)
int desk_run(struct desk *d, const char *const *args, int *to, struct err *err);
/* The same turns and errors: an incident as a store of its own, in a file without a name. */
int desk_copy(struct desk *d, int64_t id, int *to, struct err *err);

/* ---- past_linux.c: the endpoints about the past ---------------------------------------------- */

#define ALERT_INCIDENTS_AN_HOUR 30u          /* that alerts may become */

struct alert_desk *alert_desk_new(void);     /* NULL = no memory; free() frees it */

void get_pprof(struct desk *d, const struct request *r, struct answer *out);
void get_profile(struct desk *d, const struct request *r, struct answer *out);
void get_clock(struct desk *d, const struct request *r, struct answer *out);
void post_snapshot(struct desk *d, const struct request *r, struct answer *out);
void post_alert(struct desk *d, const struct request *r, struct answer *out);

/* ---- page_linux.c ---------------------------------------------------------------------------- */

void get_page(struct desk *d, const struct request *r, struct answer *out);
