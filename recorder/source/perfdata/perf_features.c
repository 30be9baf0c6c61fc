#include "source/perfdata/perf_file_private.h"

#include "base/array.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEATURE_MAX_BYTES ((uint64_t)64 << 20)
#define BUILD_IDS_MAX OBJECTS_MAX
#define BUILD_ID_SIZE_TOLD 0x8000u           /* misc: the id's length follows it */
#define BUILD_ID_FIELD 24u

enum {                                       /* util/header.h */
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_ARCH = 6,
	FEATURE_EVENT_DESC = 12,
	FEATURE_COMPRESSED = 27,
	FEATURE_CLOCK_DATA = 29,
};

/* ---- build ids ------------------------------------------------------------------------------- */

static bool same_path(const void *ctx, uint32_t value, const void *key)
{
	return strcmp(((const struct perf_file *)ctx)->build_ids[value].path, key) == 0;
}

static uint64_t path_hash(const char *path)
{
	return hash_bytes(path, strlen(path));
}

/* header; i32 pid; u8 id[20], length, 3 unused; path */
int perf_file_add_build_id(struct perf_file *f, const uint8_t *record, size_t n, struct err *err)
{
	struct cursor c = cursor_over(record, n);
	const uint8_t *head = cursor_take(&c, 8), *pid = cursor_take(&c, 4);
	const uint8_t *id = cursor_take(&c, BUILD_ID_FIELD);
	const char *path = id ? cursor_text(&c) : NULL;
	struct perf_named_id *named;

	if (!head || !pid || !path || f->nbuild_ids >= BUILD_IDS_MAX ||
	    table_find(&f->by_path, path_hash(path), same_path, f, path) != TABLE_NONE)
		return 0;
	if (ARRAY_ROOM(f->build_ids, f->build_ids_room, f->nbuild_ids + 1))
		return err_memory(err, "for build ids");
	named = &f->build_ids[f->nbuild_ids];
	*named = (struct perf_named_id){.nbytes = PERF_BUILD_ID_BYTES,
					.path = text_dup(path, SIZE_MAX)};
	if (le16(head + 4) & BUILD_ID_SIZE_TOLD && id[PERF_BUILD_ID_BYTES] <= PERF_BUILD_ID_BYTES)
		named->nbytes = id[PERF_BUILD_ID_BYTES];
	memcpy(named->bytes, id, named->nbytes);
	if (!named->path || table_add(&f->by_path, path_hash(path), f->nbuild_ids)) {
		free(named->path);
		return err_memory(err, "for build ids");
	}
	f->nbuild_ids++;
	return 0;
}

bool perf_file_build_id(const struct perf_file *f, const char *path, struct object_key *key)
{
	uint32_t at = table_find(&f->by_path, path_hash(path), same_path, f, path);

	if (at == TABLE_NONE || !f->build_ids[at].nbytes)
		return false;
	key->build_id_bytes = f->build_ids[at].nbytes;
	memcpy(key->build_id, f->build_ids[at].bytes, key->build_id_bytes);
	return true;
}

static int read_build_ids(struct perf_file *f, struct cursor *c, struct err *err)
{
	int rc = 0;

	while (!rc && cursor_left(c) >= 8) {
		size_t n = le16(c->at + 6);
		const uint8_t *record = n < 8 ? NULL : cursor_take(c, n);

		if (!record)
			break;
		rc = perf_file_add_build_id(f, record, n, err);
	}
	return rc;
}

/* ---- texts, events --------------------------------------------------------------------------- */

/* u32 bytes, then the text with its NUL and filling; copied as far as there is room. */
static bool read_text(struct cursor *c, char *out, size_t room)
{
	const uint8_t *text;
	uint32_t n;

	if (!cursor_get(c, &n, 4) || !(text = cursor_take(c, n)))
		return false;
	snprintf(out, room, "%.*s", (int)strnlen((const char *)text, n), (const char *)text);
	return true;
}

/* u32 events, u32 bytes of attributes; then of each: attributes, u32 ids, name, ids */
static void read_event_names(struct perf_file *f, struct cursor *c)
{
	uint32_t n, attr_bytes, nids, i;
	char name[sizeof(f->events->name)];

	if (!cursor_get(c, &n, 4) || !cursor_get(c, &attr_bytes, 4))
		return;
	for (i = 0; i < n; i++) {
		if (!cursor_skip(c, attr_bytes) || !cursor_get(c, &nids, 4) ||
		    !read_text(c, name, sizeof(name)) || !cursor_skip(c, 8 * (uint64_t)nids))
			return;
		if (i < f->nevents)
			memcpy(f->events[i].name, name, sizeof(name));
	}
}

static bool is_recorded(const void *ctx, uint32_t id)
{
	const struct perf_file *f = ctx;
	uint32_t i;

	for (i = 0; i < f->nevents; i++)
		if (f->events[i].attr.type == PERF_ATTR_TRACEPOINT &&
		    f->events[i].attr.config == id)
			return true;
	return false;
}

static int read_tracepoints(struct perf_file *f, const uint8_t *bytes, size_t n, struct err *err)
{
	tracepoints_free(f->tracepoints);
	f->tracepoints = NULL;
	return tracepoints_read(bytes, n, is_recorded, f, &f->tracepoints, err);
}

/* u32 version, u32 clock; u64 wall clock, u64 time of records */
static void read_clock(struct perf_file *f, struct cursor *c)
{
	if (!cursor_skip(c, 8) || !cursor_get(c, &f->facts.clock_wall_ns, 8) ||
	    !cursor_get(c, &f->facts.clock_ns, 8))
		f->facts.clock_wall_ns = f->facts.clock_ns = 0;
}

int perf_file_feature(struct perf_file *f, unsigned number, const uint8_t *bytes, size_t n,
		      struct err *err)
{
	struct cursor c = cursor_over(bytes, n);

	switch (number) {
	case PERF_FEATURE_TRACING_DATA:
		return read_tracepoints(f, bytes, n, err);
	case FEATURE_BUILD_ID:
		return read_build_ids(f, &c, err);
	case FEATURE_HOSTNAME:
		read_text(&c, f->facts.host, sizeof(f->facts.host));
		return 0;
	case FEATURE_OSRELEASE:
		read_text(&c, f->facts.release, sizeof(f->facts.release));
		return 0;
	case FEATURE_ARCH:
		read_text(&c, f->facts.arch, sizeof(f->facts.arch));
		return 0;
	case FEATURE_EVENT_DESC:
		read_event_names(f, &c);
		return 0;
	case FEATURE_CLOCK_DATA:
		read_clock(f, &c);
		return 0;
	case FEATURE_COMPRESSED:
		return err_set(err, ERR_UNSUPPORTED, "%s is compressed, which is not read here: "
			       "record it without -z, or write its text with "
			       "'perf script -i %s'", f->name, f->name);
	default:
		return 0;
	}
}

static int load_feature(struct perf_file *f, unsigned number, uint64_t section, struct err *err)
{
	uint8_t place[16], *bytes;
	uint64_t at, n;
	int rc;

	if (bytes_read(&f->in, section, place, sizeof(place), "a feature", NULL)) {
		f->facts.cut = true;
		return 0;
	}
	at = le64(place);
	n = le64(place + 8);
	if (n > FEATURE_MAX_BYTES || n > f->in.size)
		return 0;
	bytes = malloc((size_t)n + 1);
	if (!bytes)
		return err_memory(err, "for what %s says of itself", f->name);
	rc = bytes_read(&f->in, at, bytes, (size_t)n, "a feature", NULL);
	rc = rc ? 0 : perf_file_feature(f, number, bytes, (size_t)n, err);
	free(bytes);
	return rc;
}

int perf_file_features(struct perf_file *f, struct err *err)
{
	uint64_t section = f->data_end;
	unsigned i;
	int rc = 0;

	for (i = 0; !rc && i < 256; i++)
		if (f->features[i / 64] >> i % 64 & 1) {
			rc = load_feature(f, i, section, err);
			section += 16;
		}
	return rc;
}

/* ---- names of events that the file does not name --------------------------------------------- */

void perf_file_name_events(struct perf_file *f)
{
	static const char *const hardware[] = {"cycles", "instructions", "cache-references",
					       "cache-misses", "branches", "branch-misses",
					       "bus-cycles"};
	static const char *const software[] = {"cpu-clock", "task-clock", "page-faults",
					       "context-switches", "cpu-migrations",
					       "minor-faults", "major-faults"};
	uint32_t i;

	for (i = 0; i < f->nevents; i++) {
		struct perf_file_event *e = &f->events[i];
		uint64_t config = e->attr.config;

		e->tracepoint = e->attr.type == PERF_ATTR_TRACEPOINT
					? tracepoints_find(f->tracepoints, config) : NULL;
		if (e->name[0])
			continue;
		if (e->tracepoint)
			snprintf(e->name, sizeof(e->name), "%s", e->tracepoint->name);
		else if (e->attr.type == 0 && config < COUNT_OF(hardware))
			snprintf(e->name, sizeof(e->name), "%s", hardware[config]);
		else if (e->attr.type == 1 && config < COUNT_OF(software))
			snprintf(e->name, sizeof(e->name), "%s", software[config]);
		else
			snprintf(e->name, sizeof(e->name), "event-%" PRIu32 "-%" PRIx64,
				 e->attr.type, config);
	}
}
