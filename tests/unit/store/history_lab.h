/* A history beside a store of store_lab.h, ten samples in each segment. */
#pragma once

#include "store/history.h"

#include "tests/support/store_lab.h"
#include "tests/support/test.h"

#include <stdio.h>

#define S(n) ((uint64_t)(n) * NS_PER_SEC)

static inline int remove_one(void *ctx, const char *name)
{
	char path[500];

	snprintf(path, sizeof(path), "%s/%s", (const char *)ctx, name);
	os_remove(path, NULL);
	return 0;
}

static inline void remove_history(const char *store_path)
{
	char dir[500];

	snprintf(dir, sizeof(dir), "%s%s", store_path, HISTORY_SUFFIX);
	if (os_exists(dir))
		os_list(dir, remove_one, dir, NULL);
}

static inline struct history *open_history(struct lab *lab, uint64_t max_bytes, uint64_t file_bytes)
{
	struct history_config cfg = {
		.store_path = lab->path, .max_bytes = max_bytes, .file_bytes = file_bytes,
		.host = "test", .host_text = "Test 1", .version = "0", .boot_id = "boot-1",
		.kills = "", .period_ns = MS(10),
	};
	struct history *h = NULL;
	struct err err = {0};

	if (history_open(&cfg, &h, &err))
		fail_msg("%s", err.text);
	return h;
}

/* The wall clock, when the recorder clock has this time and nobody set it. */
static inline struct history_now now_at(uint64_t clock_ns)
{
	return (struct history_now){clock_ns, LAB_WALL_NS + clock_ns};
}

/* Ten samples of a second each, from second `from` on, in one segment that is put. */
static inline int try_put(struct lab *lab, struct history *h, unsigned from, uint64_t wall_off_ns,
		   struct err *err)
{
	struct history_now now = now_at(S(from + 10));
	struct segment *segment;
	unsigned i;
	int rc;

	for (i = 0; i < 10; i++)
		lab_sample(lab, S(from + i), 0, "ab");
	segment = lab_seal(lab);
	now.wall_ns += wall_off_ns;
	rc = history_put(h, &segment, 1, &now, err);
	segment_unref(segment);
	return rc;
}

static inline void put(struct lab *lab, struct history *h, unsigned from)
{
	struct err err = {0};

	if (try_put(lab, h, from, 0, &err))
		fail_msg("%s", err.text);
}

static inline void begin(struct lab *lab, const char *name)
{
	lab_open(lab, name);
	remove_history(lab->path);
}

static inline void end(struct lab *lab)
{
	remove_history(lab->path);
	lab_close(lab);
}
