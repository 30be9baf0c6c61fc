/*
 * A file of the history in which bytes are changed, of the file or of the log beside it: looked at,
 * loaded, kept as an incident, salvaged, and completed as one whose recorder died. The first byte
 * says which: even, one that was being written, with its log; odd, one that is complete. Each
 * change is
 *
 *	u24 offset in the file and the log behind it, u8 byte
 */
#include "store/history.h"

#include "tests/support/store_lab.h"
#include "tests/support/tmp.h"

#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define S(n) ((uint64_t)(n) * NS_PER_SEC)
#define NAME "/000001-20231114-221500.db"

struct sound {
	struct buf file, log;
};

static void must(bool holds)
{
	if (!holds)
		abort();
}

static void put(struct lab *lab, struct history *h, unsigned from)
{
	struct history_now now = {S(from + 10), LAB_WALL_NS + S(from + 10)};
	struct segment *segment;
	unsigned i;

	for (i = 0; i < 10; i++)
		lab_sample(lab, S(from + i), i % 2, i % 3 ? "abc" : "ade");
	lab_name(lab, "abcde"[from / 10 % 5]);
	segment = lab_seal(lab);
	must(!history_put(h, &segment, 1, &now, NULL));
	segment_unref(segment);
}

static void load(const char *path, struct buf *out)
{
	must(!os_load(path, 16 << 20, out, NULL));
}

static void make_sound(struct sound *open, struct sound *complete)
{
	struct history_config cfg = {
		.max_bytes = 64 << 20, .host = "test", .host_text = "Test 1", .version = "0",
		.boot_id = "boot-1", .kills = "", .period_ns = MS(10),
	};
	struct history_files files;
	struct history *h = NULL;
	char log[TMP_BYTES + 80];
	struct lab lab;
	unsigned i;

	lab_open(&lab, "sound.db");
	cfg.store_path = lab.path;
	must(!history_open(&cfg, &h, NULL));
	for (i = 0; i < 6; i++)
		put(&lab, h, 100 + 10 * i);
	must(!history_list(lab.path, &files, NULL) && files.n == 1);
	load(files.all[0].path, &open->file);
	snprintf(log, sizeof(log), "%s-redo", files.all[0].path);
	load(log, &open->log);
	history_close(h, "stopped");
	load(files.all[0].path, &complete->file);
	history_files_free(&files);
	history_discard(lab.path);
	lab_close(&lab);
}

static void save(const char *path, const char *bytes, size_t n)
{
	FILE *f = fopen(path, "wb");

	must(f && fwrite(bytes, 1, n, f) == n);
	must(!fclose(f));
}

static void read_all(const char *store, const char *path, size_t size)
{
	const char *to = tmp_path("salvaged.db");
	const struct history_keep keep = {.from_ns = LAB_WALL_NS, .to_ns = LAB_WALL_NS + S(1000),
					  .trigger_ns = LAB_WALL_NS + S(120), .rule = "rule",
					  .reason = "reason", .into = to};
	struct store_salvaged salvaged;
	int64_t id;
	struct history_files files;
	struct incident in = {0};

	must(!history_list(store, &files, NULL) && files.n == 1);
	history_look(&files.all[0], true);
	history_files_free(&files);
	if (!history_load(store, LAB_WALL_NS, LAB_WALL_NS + S(1000), LAB_WALL_NS, &in, NULL))
		incident_free(&in);
	/* These three write and sync, which takes its time. */
	lab_remove(to);
	if (size % 8 == 1)
		store_salvage(path, to, &salvaged, NULL);
	else if (size % 16 == 13)
		history_keep(store, &keep, &id, NULL);
	if (size % 16 == 5)
		history_settle(path, "it was killed", NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct sound open, complete;  /* made once: the same bytes for every input */
	const char *store = tmp_path("changed.db");
	char path[TMP_BYTES + 80], log[TMP_BYTES + 90];
	const struct sound *sound;
	struct buf bytes = {0};
	size_t i;

	if (!open.file.len)
		make_sound(&open, &complete);
	sound = size && data[0] & 1 ? &complete : &open;
	buf_put(&bytes, sound->file.data, sound->file.len);
	buf_put(&bytes, sound->log.data, sound->log.len);
	for (i = 1; i + 4 <= size; i += 4)
		((uint8_t *)bytes.data)[(le32(data + i) & 0xffffff) % bytes.len] = data[i + 3];
	history_discard(store);
	snprintf(path, sizeof(path), "%s" HISTORY_SUFFIX, store);
	must(!os_mkdirs(path, NULL));
	snprintf(path, sizeof(path), "%s" HISTORY_SUFFIX NAME, store);
	snprintf(log, sizeof(log), "%s-redo", path);
	save(path, bytes.data, sound->file.len);
	if (sound->log.len)
		save(log, bytes.data + sound->file.len, sound->log.len);
	buf_free(&bytes);
	read_all(store, path, size);
	return 0;
}
