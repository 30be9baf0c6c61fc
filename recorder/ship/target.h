/*
 * Where incidents are sent: "URL;Key=Value;..." of --to and of `ship =` in a conf file.
 *
 *	s3://bucket/prefix          objects PREFIX/HOST/2026/11/28/UUID.db
 *	https://host/path/          PUT of a file each, named so
 *	https://host/path           POST to this URL
 *	pyroscope+https://host      profiles of each service: ship/to_profiler.c
 *	otlp+https://, parca+https://, datadog+https://, datadog+unix:///path
 *	clickhouse://host/db        rows: ship/to_database.c; by https, or clickhouse+http://
 *	postgresql://user@host/db   the same
 *	peer+https://host:port      another recorder, for the same window there: ship/to_peer.c
 *
 * A kind of target is a function and a line in target_kinds[]. No secret is in a URL.
 */
#pragma once

#include "export/export.h"
#include "net/request.h"
#include "net/s3.h"

struct target;

/* An incident on its way. */
struct parcel {
	const struct incident_head *head;
	const struct incident *in;           /* all of it, for kinds that send its profiles */
	uint32_t parts;                      /* of these, how many were sent, also before */
	uint32_t rows;                       /* out: how many samples a database got */
	bool asked;                          /* somebody named this incident */
	bool left;                           /* out: it is not for this target; nothing was sent */
	struct buf remark;                   /* out: for the incident */
	int (*keep)(void *ctx, uint32_t parts, struct err *err);     /* note that durably */
	void *ctx;
	struct os_file *file;                /* for the others: in the target's format */
	uint64_t bytes;
	char sha256[SHA256_HEX];
	struct buf name;                     /* "HOST/2026/11/28/UUID.db" */
};

enum target_database { DATABASE_NONE, DATABASE_CLICKHOUSE, DATABASE_POSTGRESQL };

struct target_kind {
	const char *scheme;                  /* how the URL begins: "s3://" */
	const struct profiler *profiler;     /* it takes profiles, not files; or NULL */
	enum target_database database;       /* it takes rows */
	bool socket;                         /* of Unix, whose path the URL has */
	bool peer;                           /* another recorder: it takes no file */
	/*
	 * Send it. a: the answer to the last request, which counts.
	 * returns  0: there is an answer; an error of net_ask()
	 */
	int (*send)(struct target *t, struct net *net, struct parcel *p, struct net_answer *a,
		    struct err *err);
};
extern const struct target_kind *const target_kinds[];       /* ending in NULL */

struct target {
	const struct target_kind *kind;
	const struct exporter *exporter;     /* ;Format=; NULL = a store of its own */
	struct buf name;                     /* the URL without its query: in logs, the store */
	char *text;                          /* what the others point into */
	const char *url;                     /* http://... or s3://... */
	const char *auth_file, *ca_file, *endpoint, *region, *otlp, *release;
	uint32_t stall_s, kb_per_s, retry_s, part_kb;        /* 0 = as usual */
	uint32_t history_s;                  /* it gets intervals of the history, too; 0 = not */
	struct buf auth;                     /* lines of headers; secret */
	struct s3 s3;
};

/*
 * Read a target's text; its files are not opened.
 * returns  0; ERR_USAGE: what is wrong with it; ERR_MEMORY
 */
int target_parse(const char *text, struct target *out, struct err *err);
/*
 * Read its secrets: of ;Auth=FILE, which only its owner may read, else of the environment: headers
 * of $RECORDER_SHIP_AUTH; keys of $AWS_ACCESS_KEY_ID, $AWS_SECRET_ACCESS_KEY, $AWS_SESSION_TOKEN.
 */
int target_load_secrets(struct target *t, struct err *err);
void target_free(struct target *t);

/* Whether what is sent there stays on this machine. */
bool target_is_local(const struct target *t);
/* Whether a text begins with a name of this machine, and one of the ends, or its own, follows. */
bool target_host_is_local(const char *host, const char *ends);

/* What ends a rule: ";Peers=web*,db1"; and whether this target is a peer that a rule names. */
#define PEERS_KEY ";Peers="
#define PEER_PORT 9427u                      /* of a URL without one */
bool target_is_peer_of(const struct target *t, const char *rule);
/*
 * The next of "web1,web2:9427;Auth=FILE" as a target, with the keys that end the list; by https
 * unless it is on this machine or says http://. false: there is none.
 */
bool target_next_peer(const char **at, struct buf *out);

/* The streams of an incident that profiles and rows are made of. */
static inline bool target_takes_stream(unsigned stream)
{
	return *stream_metrics[stream].pprof && !stream_metrics[stream].mark &&
	       !stream_metrics[stream].view && stream != STREAM_EVENT;
}

/* What a request has of its target: time limit, whom to trust, headers. */
void target_prepare(const struct target *t, struct net_request *r);

/* A path below a peer's URL, with its port. */
void target_put_peer_url(const struct target *t, const char *path, struct buf *out);

/* The members of a parcel's name. */
void target_put_name(const struct target *t, const struct incident_head *h, struct buf *out);
/* The same of a host: "HOST/". Other characters than letters, digits, - . _ become '_'. */
void target_put_host(const char *host, struct buf *out);

int target_send_s3(struct target *t, struct net *net, struct parcel *p, struct net_answer *a,
		   struct err *err);
int target_send_profiles(struct target *t, struct net *net, struct parcel *p,
			 struct net_answer *a, struct err *err);
int target_send_rows(struct target *t, struct net *net, struct parcel *p, struct net_answer *a,
		     struct err *err);
int target_send_to_peer(struct target *t, struct net *net, struct parcel *p,
			struct net_answer *a, struct err *err);
extern const struct profiler pyroscope_profiler, otlp_profiler, parca_profiler, datadog_profiler;
