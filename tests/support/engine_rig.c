#include "engine_rig.h"

#include "base/array.h"
#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

static const struct source_ops *const synthetic_only[] = {&synthetic_source, NULL};

void remove_store(const char *path)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", ".lock", ".reserve", ".ctl"};
	char name[TMP_BYTES + 16];
	size_t i;

	for (i = 0; i < COUNT_OF(suffixes); i++) {
		snprintf(name, sizeof(name), "%s%s", path, suffixes[i]);
		os_remove(name, NULL);
	}
}

void rig_open(struct rig *r, const char *name, double seconds)
{
	memset(r, 0, sizeof(*r));
	snprintf(r->path, sizeof(r->path), "%s", tmp_path(name));
	remove_store(r->path);
	r->rule = synthetic_trigger();
	r->plan.start_ns = START_NS;
	r->plan.step_ns = STEP_NS;
	r->plan.nsamples = (uint64_t)(seconds * 100);
	r->cfg.store_path = r->path;
	r->cfg.store_limits = (struct store_limits){1u << 30, UINT64_MAX, 1000};
	r->cfg.sources = synthetic_only;
	r->cfg.capture.freq_hz = 100;
	r->cfg.triggers = &r->rule;
	r->cfg.ntriggers = 1;
	r->cfg.ring_bytes = (size_t)64 << 20;
	r->cfg.pinned_bytes = ENGINE_PINNED_BYTES;
	r->cfg.capture.pre_ns = SEC(10);
	r->cfg.capture.post_ns = SEC(2);
	r->cfg.capture.incidents = 100;
}

void rig_fire_often(struct rig *r)
{
	unsigned i;

	r->cfg.capture.pre_ns = SEC(1);
	r->cfg.capture.post_ns = SEC(1);
	for (i = 0; i < 30; i++)
		r->plan.fire_s[i] = 10 * (i + 1);
}

void rig_run(struct rig *r)
{
	struct err err = {0};

	synthetic_plan(&r->plan);
	if (engine_run(&r->cfg, &r->result, &err) != 0)
		fail_msg("%s", err.text);
}

void rig_load(struct rig *r, int64_t id, struct incident *in)
{
	struct store *s = NULL;
	struct err err = {0};

	if (store_open(r->path, STORE_READ, &s, &err) != 0 || store_load(s, id, in, &err) != 0)
		fail_msg("%s", err.text);
	store_close(s);
}

void assert_numbers(const struct incident *in, uint64_t first, uint64_t last)
{
	uint32_t i;

	assert_int_equal(in->nsamples, last - first + 1);
	for (i = 0; i < in->nsamples; i++)
		assert_int_equal(in->samples[i].weight, first + i);
}

void rig_check(struct rig *r, int64_t id, uint64_t first, uint64_t last)
{
	struct incident in;

	rig_load(r, id, &in);
	assert_numbers(&in, first, last);
	incident_free(&in);
}

void rig_open_file(struct rig *r, const char *name, double seconds)
{
	rig_open(r, name, seconds);
	r->cfg.capture.file = "traces/slow.etl";
	r->plan.origin = (struct source_origin){
		.start_ns = START_NS, .start_wall_ns = START_WALL_NS, .period_ns = STEP_NS,
		.host = "TRACED", .host_text = "Windows 6.2.9200",
	};
}
