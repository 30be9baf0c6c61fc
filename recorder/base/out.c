#include "base/out.h"

#include "base/ahead.h"
#include "base/deflate.h"
#include "base/os.h"
#include "base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FLUSH_BYTES ((size_t)256 * 1024)
#define DIRECT_BYTES ((size_t)64 * 1024)     /* a put of this size is not copied */

/* Another thread packs what is full while the writer goes on; a small output has none. */
struct packing {
	struct ahead_job job;
	struct ahead ahead;
	struct deflater *deflater;
	bool begun, end;            /* end: nothing follows */
	struct buf raw, packed;
};

struct out {
	struct os_file *file;       /* NULL when it goes to memory */
	struct buf *memory;
	char *path;                 /* NULL for standard output, devices and memory */
	struct buf tmp_path;
	struct buf pending;
	struct packing *packing;    /* NULL: not packed */
	void (*tell)(void *ctx);
	void *tell_ctx;
	uint64_t bytes;
	struct err failure;
};

static void packing_free(struct packing *p)
{
	if (!p)
		return;
	if (p->begun)
		ahead_end(&p->ahead);
	deflater_free(p->deflater);
	buf_free(&p->raw);
	buf_free(&p->packed);
	free(p);
}

static void out_free(struct out *out)
{
	if (!out)
		return;
	os_close(out->file);
	packing_free(out->packing);
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

static void pack(struct ahead_job *job)
{
	struct packing *p = (struct packing *)job;

	deflater_put(p->deflater, p->raw.data, p->raw.len, &p->packed);
	if (p->end)
		deflater_end(p->deflater, &p->packed);
}

int out_pack(struct out *out, struct err *err)
{
	struct packing *p = out->packing = calloc(1, sizeof(*p));

	if (p) {
		p->job.run = pack;
		p->deflater = deflater_new(true);
	}
	return p && p->deflater ? 0 : err_memory(err, "while packing the output");
}

void out_watch(struct out *out, void (*tell)(void *ctx), void *ctx)
{
	out->tell = tell;
	out->tell_ctx = ctx;
}

static void send_on(struct out *out, const char *bytes, size_t n)
{
	if (!out->failure.code && n && out->file)
		os_write(out->file, bytes, n, &out->failure);
	else if (!out->failure.code && n)
		buf_put(out->memory, bytes, n);
	if (out->tell)
		out->tell(out->tell_ctx);
}

/* Wait for what was given to be packed, and send it on. */
static void send_packed(struct out *out)
{
	struct packing *p = out->packing;

	ahead_await(&p->ahead, &p->job);
	if (!out->failure.code)
		buf_check(&p->packed, "the output", &out->failure);
	send_on(out, p->packed.data, p->packed.len);
	buf_reset(&p->packed);
}

/* Give what is pending to be packed; end: nothing follows. */
static void pack_pending(struct out *out, bool end)
{
	struct packing *p = out->packing;
	struct buf full = out->pending;

	if (!p->begun && !end)
		ahead_begin(&p->ahead, "pack");
	p->begun |= !end;
	send_packed(out);
	out->pending = p->raw;
	p->raw = full;
	p->end = end;
	ahead_give(&p->ahead, &p->job);
	if (end)
		send_packed(out);
}

static void flush(struct out *out, bool end)
{
	if (!out->failure.code && out->pending.failed)
		buf_check(&out->pending, "the output", &out->failure);
	if (out->packing)
		pack_pending(out, end);
	else
		send_on(out, out->pending.data, out->pending.len);
	buf_reset(&out->pending);
}

/* Where bytes go first: those to be packed wait for the packer, others enter memory at once. */
static struct buf *target(struct out *out)
{
	return out->memory && !out->packing ? out->memory : &out->pending;
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
	if (to == &out->pending && n >= DIRECT_BYTES && !out->packing) {
		flush(out, false);
		send_on(out, bytes, n);
		return;
	}
	/* What is to be packed goes in pieces, each packed beside the making of the next. */
	for (; out->packing && n > FLUSH_BYTES; n -= FLUSH_BYTES, at += FLUSH_BYTES) {
		buf_put(to, at, FLUSH_BYTES);
		flush_if_full(out, to);
	}
	buf_put(to, at, n);
	flush_if_full(out, to);
}

void out_drain(struct out *out, struct buf *text, bool always)
{
	if (text->failed || (text->len < DIRECT_BYTES && !always))
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
