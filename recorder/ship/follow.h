/*
 * Shipping beside a recording: whenever an incident is stored, or a target that failed is due, a
 * process of its own (`recorder ship --due`, nice 19) makes one round. So nothing of a server's
 * bytes, libcurl or TLS is in the process that records, and no thread of the recording waits for a
 * network. Linux only.
 */
#pragma once

#include "base/json.h"
#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

struct follow_config {
	const char *store_path, *conf_path;  /* conf_path NULL = none */
	char *const *targets;                /* of the command line; with none those of the conf */
	uint32_t ntargets;
	struct log *log;                     /* all must outlive it */
};

struct follow;
int follow_open(const struct follow_config *cfg, struct follow **out, struct err *err);
void follow_stored(void *follow);            /* an incident is complete; any thread */
/* What the last round has left, as a member "ship" of an object; any thread. */
void follow_put_status(void *follow, struct json *j);
/* Send what was stored last, for at most FOLLOW_END_NS; the rest is the next recorder's. */
#define FOLLOW_END_NS 10000000000ULL
void follow_close(struct follow *f);         /* NULL allowed */
