/* Shared by perf_file.c (records) and perf_features.c (what the file says of itself). */
#pragma once

#include "base/bytes.h"
#include "base/table.h"
#include "source/perfdata/perf_file.h"

#define WINDOW_BYTES ((size_t)1024 << 10)
#define WINDOWS 8u
#define PERF_FEATURE_TRACING_DATA 1u

struct perf_window {
	uint64_t at;
	size_t n;                            /* 0 = empty */
	uint8_t *bytes;
};

struct perf_id {
	uint64_t id;
	uint32_t event;
};

struct perf_named_id {
	char *path;
	uint8_t nbytes, bytes[BUILD_ID_MAX];
};

struct perf_file {
	struct bytes in;
	const char *name;
	uint64_t data_at, data_end;
	uint64_t features[4];
	struct perf_file_facts facts;
	struct perf_file_event *events;
	uint32_t nevents, events_room;
	struct perf_id *ids;
	uint32_t nids, ids_room;
	struct table by_id;
	struct perf_named_id *build_ids;
	uint32_t nbuild_ids, build_ids_room;
	struct table by_path;
	struct tracepoints *tracepoints;     /* NULL = none */
	struct perf_window windows[WINDOWS];
	uint64_t aligned[PERF_RECORD_MAX_BYTES / 8 + 1];
};

/* The attributes of one more event, and its ids, 8 bytes each. */
int perf_file_add_event(struct perf_file *f, const uint8_t *attr, size_t n, const uint8_t *ids,
			size_t ids_bytes, struct err *err);
/* One feature's bytes; what cannot be read is left out. ERR_MEMORY, ERR_UNSUPPORTED */
int perf_file_feature(struct perf_file *f, unsigned number, const uint8_t *bytes, size_t n,
		      struct err *err);
/* All of a file that is no pipe's. */
int perf_file_features(struct perf_file *f, struct err *err);
/* A record that says the build id of a file. */
int perf_file_add_build_id(struct perf_file *f, const uint8_t *record, size_t n, struct err *err);
/* An event without a name gets that of its type. */
void perf_file_name_events(struct perf_file *f);
