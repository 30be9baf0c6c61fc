#include "base/out.h"

#include "base/ahead.h"
#include "base/deflate.h"
#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_BYTES ((size_t)256 * 1024)
#define DRAIN_BYTES ((size_t)64 * 1024)      /* of a text that is drained now and then */
#define SYNC_BYTES ((uint64_t)8 << 20)       /* the disk begins with what was written so far */

/* Another thread packs and writes what is full beside the writer; a small output has none. */
struct beside {
	struct ahead_job job;
	struct ahead ahead;
	struct deflater *deflater;  /* NULL: not packed */
	struct os_file *file;       /* NULL: into memory, which the owner does */
	bool begun, end;            /* end: nothing follows */
	uint64_t unsynced;
	struct buf raw, packed;
	struct err failure;
};

struct out {
	struct os_file *file;       /* NULL when it goes to memory */
	struct buf *memory;
	char *path;                 /* NULL for standard output, devices and memory */
	struct buf tmp_path;
	struct buf pending;
	struct beside beside;
	void (*tell)(void *ctx);
	void *tell_ctx;
	uint64_t bytes;
	struct err failure;
};

static void end_thread(struct beside *b)
{
	if (b->begun)
		ahead_end(&b->ahead);
	b->begun = false;
}

static void out_free(struct out *out)
{
	if (!out)
		return;
	end_thread(&out->beside);
	os_close(out->file);
	deflater_free(out->beside.deflater);
	buf_free(&out->beside.raw);
	buf_free(&out->beside.packed);
	buf_free(&out->pending);
	free(out->path);
	buf_free(&out->tmp_path);
	free(out);
}

/*
 * A new file. What a killed program left at its name goes before: a plain file of this user that no
 * program writes. ERR_EXISTS: something else stands there.
 */
static int create_there(const char *path, struct os_file **out, struct err *err)
{
	struct os_file_info info;
	struct os_file *old = NULL;
	int rc = os_open(path, OS_CREATE, out, err);

	if (rc != ERR_EXISTS)
		return rc;
	rc = os_open(path, OS_READ_NO_LINK, &old, err);
	if (!rc && !os_file_info(old, &info, NULL) && info.uid == os_uid() && os_try_lock(old))
		rc = os_remove(path, err);
	os_close(old);
	return rc == ERR_MEMORY ? rc : os_open(path, OS_CREATE, out, err);
}

/* Lock the new file. ERR_EXISTS: another program was about to remove it as left over. */
static int keep_name(const struct out *out, const char *tmp, struct err *err)
{
	struct os_file_info ours, there = {0};
	int rc;

	if (!os_try_lock(out->file))
		return ERR_EXISTS;
	rc = os_file_info(out->file, &ours, err);
	if (!rc)
		rc = os_path_info(tmp, &there, err);
	if (rc == ERR_MEMORY)
		os_remove(tmp, NULL);
	else if (rc || ours.ino != there.ino || ours.dev != there.dev)
		rc = ERR_EXISTS;
	return rc;
}

/* "<path>.1f3a….tmp": nobody can have prepared it. */
static int open_random(struct out *out, const char *path, struct err *err)
{
	uint64_t number;
	int rc = os_random(&number, sizeof(number), err);

	buf_reset(&out->tmp_path);
	buf_printf(&out->tmp_path, "%s.%016" PRIx64 ".tmp", path, number);
	if (!rc)
		rc = buf_check(&out->tmp_path, "a file name", err);
	return rc ? rc : os_open(buf_text(&out->tmp_path), OS_CREATE, &out->file, err);
}

/*
 * Always a new file: what stands at the name (a pipe, a link, a file that others may read) may have
 * been put there by somebody else. A missing folder deserves a better sentence than the file's.
 */
static int open_tmp(struct out *out, const char *path, struct err *err)
{
	size_t n = (size_t)(text_base_name(path) - path);
	const char *tmp = buf_text(&out->tmp_path);
	struct os_file_info info;
	char *folder;
	int rc = create_there(tmp, &out->file, err);

	if (!rc)
		rc = keep_name(out, tmp, err);
	if (rc == ERR_EXISTS) {
		os_close(out->file);
		out->file = NULL;
		rc = open_random(out, path, err);
	}
	if (rc != ERR_IO || !n)
		return rc;
	folder = text_dup(path, n);
	if (folder && os_path_info(folder, &info, NULL) == ERR_NOT_FOUND)
		err_set(err, ERR_IO, "cannot write %s: there is no directory %s; make it first",
			path, folder);
	free(folder);
	return rc;
}

static int open_file(struct out *out, const char *path, bool force, struct err *err)
{
	struct os_file_info info;
	int rc = os_path_info(path, &info, NULL);

	/* Not knowing whether a file is there must not become "there is none". */
	if (rc == ERR_MEMORY)
		return err_memory(err, "while opening %s", path);
	if (!rc && !info.regular) {
		if (info.directory)
			return err_set(err, ERR_USAGE, "%s is a directory; name a file in it",
				       path);
		/* A device or a pipe (/dev/null, NUL): written to, never replaced by a file. */
		return os_open(path, OS_APPEND, &out->file, err);
	}
	if (!force && (!rc || os_exists(path)))
		return err_set(err, ERR_EXISTS,
			       "%s exists already; use --force to replace it, or -o another name",
			       path);
	out->path = text_dup(path, SIZE_MAX);
	buf_printf(&out->tmp_path, "%s.tmp", path);
	if (!out->path || out->tmp_path.failed)
		return err_memory(err, "while opening %s", path);
	return open_tmp(out, path, err);
}

int out_open(const char *path, bool force, struct out **result, struct err *err)
{
	struct out *out = calloc(1, sizeof(*out));
	int rc = 0;

	if (!out)
		return err_memory(err, "while opening %s", path);
	if (strcmp(path, "-") == 0)
		out->file = os_stdout();
	else
		rc = open_file(out, path, force, err);
	if (rc) {
		out_free(out);
		return rc;
	}
	*result = out;
	return 0;
}

int out_to_buf(struct buf *to, struct out **result, struct err *err)
{
	struct out *out = calloc(1, sizeof(*out));

	if (!out)
		return err_memory(err, "for the output");
	out->memory = to;
	*result = out;
	return 0;
}

int out_pack(struct out *out, struct err *err)
{
	out->beside.deflater = deflater_new(true);
	return out->beside.deflater ? 0 : err_memory(err, "while packing the output");
}

void out_watch(struct out *out, void (*tell)(void *ctx), void *ctx)
{
	out->tell = tell;
	out->tell_ctx = ctx;
}

static void write_out(struct beside *b, const struct buf *bytes)
{
	if (!os_write(b->file, bytes->data, bytes->len, &b->failure))
		b->unsynced += bytes->len;
	if (b->unsynced < SYNC_BYTES)
		return;
	os_sync_soon(b->file);
	b->unsynced = 0;
}

/* On the other thread. */
static void pack_and_write(struct ahead_job *job)
{
	struct beside *b = (struct beside *)job;
	const struct buf *done = &b->raw;

	if (b->deflater) {
		deflater_put(b->deflater, b->raw.data, b->raw.len, &b->packed);
		if (b->end)
			deflater_end(b->deflater, &b->packed);
		done = &b->packed;
	}
	if (!b->failure.code)
		buf_check(done, "the output", &b->failure);
	if (!b->failure.code && b->file && done->len)
		write_out(b, done);
}

/* Wait for what was given to the other thread. */
static void await_given(struct out *out)
{
	struct beside *b = &out->beside;

	ahead_await(&b->ahead, &b->job);
	if (!out->failure.code)
		out->failure = b->failure;
	if (!out->failure.code && out->memory)
		buf_put(out->memory, b->packed.data, b->packed.len);
	buf_reset(&b->packed);
	if (out->tell)
		out->tell(out->tell_ctx);
}

/* Give what is pending to the other thread; end: nothing follows. */
static void flush(struct out *out, bool end)
{
	struct beside *b = &out->beside;
	struct buf full;

	if (!b->begun && !end) {
		ahead_begin(&b->ahead, "output");
		b->begun = true;
	}
	await_given(out);
	if (!out->failure.code && out->pending.failed)
		buf_check(&out->pending, "the output", &out->failure);
	full = out->pending;
	out->pending = b->raw;
	buf_reset(&out->pending);
	b->job.run = pack_and_write;
	b->file = out->file;
	b->raw = full;
	b->end = end;
	b->failure = out->failure;
	ahead_give(&b->ahead, &b->job);
	if (end)
		await_given(out);
}

/* Where bytes go first: into memory at once, or else they wait for the other thread. */
static struct buf *target(struct out *out)
{
	return out->memory && !out->beside.deflater ? out->memory : &out->pending;
}

static void flush_if_full(struct out *out, const struct buf *to)
{
	if (to == &out->pending && (to->len >= FLUSH_BYTES || to->failed))
		flush(out, false);
}

void out_put(struct out *out, const void *bytes, size_t n)
{
	struct buf *to = target(out);
	const char *at = bytes;

	out->bytes += n;
	/* A large one in pieces, each passed on beside the making of the next. */
	for (; to == &out->pending && n > FLUSH_BYTES; n -= FLUSH_BYTES, at += FLUSH_BYTES) {
		buf_put(to, at, FLUSH_BYTES);
		flush_if_full(out, to);
	}
	buf_put(to, at, n);
	flush_if_full(out, to);
}

void out_drain(struct out *out, struct buf *text, bool always)
{
	if (text->failed || (text->len < DRAIN_BYTES && !always))
		return;
	out_put(out, buf_text(text), text->len);
	buf_reset(text);
}

void out_puts(struct out *out, const char *text)
{
	out_put(out, text, strlen(text));
}

void out_printf(struct out *out, const char *format, ...)
{
	struct buf *to = target(out);
	size_t before = to->len;
	va_list args;

	va_start(args, format);
	buf_vprintf(to, format, args);
	va_end(args);
	out->bytes += to->len - before;
	flush_if_full(out, to);
}

uint64_t out_bytes(const struct out *out)
{
	return out->bytes;
}

bool out_failed(const struct out *out)
{
	return out->failure.code != 0 || (out->memory && out->memory->failed);
}

void out_abandon(struct out *out)
{
	if (!out)
		return;
	end_thread(&out->beside);
	os_close(out->file);
	out->file = NULL;
	if (out->path)
		os_remove(buf_text(&out->tmp_path), NULL);
	out_free(out);
}

int out_close(struct out *out, struct err *err)
{
	int rc;

	flush(out, true);
	/* Synced before the rename, or a power cut could leave an empty file of the right name. */
	if (out->path && !out->failure.code) {
		os_file_hand_over(out->file);
		os_sync(out->file, &out->failure);
	}
	if (out->memory && out->memory->failed)
		buf_check(out->memory, "the output", &out->failure);
	rc = out->failure.code;
	if (rc) {
		if (err)
			*err = out->failure;
		out_abandon(out);
		return rc;
	}
	/* The lock is held until the file has its name. */
	if (out->path)
		rc = os_rename(buf_text(&out->tmp_path), out->path, err);
	if (rc)
		out_abandon(out);
	else
		out_free(out);
	return rc;
}
