/*
 * The incidents of a bucket, or of another recorder over HTTP, in a store of this user, so that
 * every reader can read them. What is new there is fetched when it is opened; what has left it
 * leaves the store. Any thread, one for each URL.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

/* Fetched at most at a time, and kept at most, in bytes. */
#define MIRROR_FETCH_BYTES ((uint64_t)256 << 20)
#define MIRROR_KEEP_BYTES ((uint64_t)512 << 20)

#define MIRROR_PEER_MS 10000u                /* another recorder has so long for its list */

bool mirror_is_url(const char *store);       /* "s3://...", "peer+https://..." */
/*
 * Bring it up to date.
 *
 * url            "s3://bucket/prefix" or "peer+https://host", with keys as in ship/target.h
 * host           only incidents of this machine; NULL = of all
 * since_wall_ns  only days from then on; 0 = all
 * group_id       of a recorder only this group; NULL = all
 * path           gets the store's
 * notes          gets lines on what was left out
 */
int mirror_update(const char *url, const char *host, uint64_t since_wall_ns, const char *group_id,
		  struct buf *path, struct buf *notes, struct err *err);
