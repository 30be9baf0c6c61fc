/*
 * A whole store in which bytes are changed: it is opened, listed, verified and loaded, opened for
 * recording, where a damaged one is moved away, and salvaged. A store of which verify says that
 * nothing is damaged can be loaded.
 * Each change is
 *
 *	u24 offset, u8 byte
 */
#include "tests/support/store_lab.h"
#include "tests/support/test.h"
#include "tests/support/tmp.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Incidents of one segment, of ten, and one that has begun only; and what a rule remembers. */
static void make_sound(struct buf *out)
{
	struct incident_head head = lab_head(MS(300), MS(100), 0);
	struct segment *ten[10];
	struct lab lab;
	struct store *s = lab_record(&lab, "sound.db");

	lab_name(&lab, 'a');
	lab_simple(&lab, s, MS(100), 40);
	for (unsigned i = 0; i < 10; i++) {
		lab_sample(&lab, MS(210 + i), i % 2, "ade");
		ten[i] = lab_seal(&lab);
	}
	lab_incident(s, &head, ten, 10);
	for (unsigned i = 0; i < 10; i++)
		segment_unref(ten[i]);
	lab_sample(&lab, MS(250), 0, "abc");
	segment_unref(lab_begin(&lab, s, &head));
	if (store_put_rule(s, "rule", "state", 5, LAB_WALL_NS, NULL) ||
	    store_put_rule(s, "other", "state", 5, LAB_WALL_NS, NULL) ||
	    store_put_rule(s, "other", NULL, 0, LAB_WALL_NS, NULL))
		abort();
	store_close(s);
	if (os_load(lab.path, 16 << 20, out, NULL))
		abort();
	lab_close(&lab);
}

static int load(void *ctx, const struct incident_head *head)
{
	int64_t *ids = ctx;

	ids[1 + ids[0]] = head->id;
	return ++ids[0] == 8;
}

static void finding(void *ctx, const char *what)
{
	(void)ctx;
	(void)what;
}

static void read_all(const char *path)
{
	struct store_verified verified = {.findings = 1};
	struct store *s = NULL;
	struct buf state = {0};
	int64_t ids[9] = {0};
	uint64_t saved_ns;
	bool sound;

	if (store_open(path, STORE_READ, &s, NULL))
		return;
	sound = !store_verify(s, finding, NULL, &verified, NULL) && !verified.findings;
	store_get_rule(s, "other", &state, &saved_ns, NULL);
	if (!store_get_rule(s, "rule", &state, &saved_ns, NULL) &&
	    state.len > STORE_RULE_STATE_BYTES)
		abort();
	buf_free(&state);
	store_list(s, load, ids, NULL);
	while (ids[0]) {
		struct incident in = {0};

		if (!store_load(s, ids[ids[0]--], &in, NULL))
			incident_free(&in);
		else if (sound)
			abort();
	}
	store_close(s);
}

static void save(const char *path, const struct buf *bytes)
{
	FILE *f = fopen(path, "wb");

	if (!f || (bytes->len && fwrite(bytes->data, 1, bytes->len, f) != bytes->len) || fclose(f))
		abort();
}

/* One more incident: where it is put is damaged, perhaps. */
static void put(struct store *s)
{
	struct incident_head head = lab_head(MS(500), MS(100), 0);
	struct segment *segment;
	struct lab lab;

	lab_open(&lab, "put.db");
	lab_name(&lab, 'b');
	lab_sample(&lab, MS(450), 0, "abc");
	segment = lab_seal(&lab);
	if (!store_begin(s, &head, NULL) && !store_put_segment(s, head.id, segment, NULL))
		store_finish(s, &head, &segment, 1, NULL);
	segment_unref(segment);
	lab_close(&lab);
}

/* As a recorder that was here before; it leaves nothing. */
static void record(const char *path)
{
	const char *lock = tmp_path("changed.db.lock");
	const struct buf none = {0};
	struct buf moved = {0};
	struct store *s = NULL;

	save(lock, &none);
	if (!store_open_or_replace(path, &moved, &s, NULL)) {
		put(s);
		if (store_in_place(s, NULL))
			abort();
		store_close(s);
	}
	if (moved.len)
		lab_remove(moved.data);
	buf_free(&moved);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct buf sound;             /* made once: the same bytes for every input */
	const char *path = tmp_path("changed.db"), *to = tmp_path("salvaged.db");
	struct store_salvaged salvaged;
	struct buf bytes = {0};
	size_t i;

	if (!sound.len)
		make_sound(&sound);
	buf_put(&bytes, sound.data, sound.len);
	for (i = 0; bytes.len && i + 4 <= size; i += 4)
		((uint8_t *)bytes.data)[(le32(data + i) & 0xffffff) % bytes.len] = data[i + 3];
	lab_remove(path);
	lab_remove(to);
	save(path, &bytes);
	buf_free(&bytes);
	read_all(path);
	if (size % 8 == 0)                   /* these two write and sync, which takes its time */
		store_salvage(path, to, &salvaged, NULL);
	if (size % 64 == 4)
		record(path);
	return 0;
}
