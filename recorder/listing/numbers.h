/* Numbers for people. */
#pragma once

#include "model/incident.h"

/* "12,345"; "1.2 MB"; "61.2 s", "2.5 h". */
#define NUMBER_BYTES 32
const char *text_count(uint64_t n, char out[NUMBER_BYTES]);
const char *text_bytes(uint64_t bytes, char out[NUMBER_BYTES]);
const char *text_seconds(double seconds, char out[NUMBER_BYTES]);

/*
 * An incident's window from its trigger: "120 s before to 5 s after the trigger"; of a window of
 * the history its length: "60 s".
 */
void put_span(struct buf *out, const struct incident_head *h);
