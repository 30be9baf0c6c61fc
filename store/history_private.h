/* What the files of the history's code share. */
#pragma once

#include "store/history.h"
#include "store/store_private.h"

#define HISTORY_NAME_BYTES 40u
#define HISTORY_CLOCKS_AGREE_NS NS_PER_SEC   /* a clock that is off by more was set */

/* "<store>.history" */
int history_dir(const char *store_path, struct buf *out, struct err *err);
/* The name of a file; its number and time, or false for any other name. */
void history_name(uint32_t number, uint64_t wall_ns, char out[HISTORY_NAME_BYTES]);
bool history_name_parse(const char *name, uint32_t *number, uint64_t *wall_ns);

/* Inside a transaction: set a text of the file's table meta. */
int history_meta_put(struct store *s, const char *key, const char *text, struct err *err);

#define META_BOOT "history_boot_id"
#define META_KILLS "history_kills"
#define META_END "history_end"
#define META_PERIOD "history_period_ns"
#define META_SLOTS "history_slots"           /* "FIRST:N,N,N": CPU samples by HISTORY_SLOT_NS */

/* What is in an open store: for history_look(), and to load from it. */
int history_read_file(struct store *s, struct history_file *out, int64_t *incident_id,
		      struct err *err);
/* Samples by ten minutes: counted from the segments; and as the text in meta, and back. */
int history_count_slots(struct store *s, struct history_file *file, struct err *err);
void history_put_slots(const struct history_file *file, struct buf *out);
int history_parse_slots(const char *text, struct history_file *out);
/* Bytes of a file with its log. */
uint64_t history_bytes_on_disk(const char *path);
/* Remove a file with its log and its lock. */
int history_remove(const char *path, struct err *err);
