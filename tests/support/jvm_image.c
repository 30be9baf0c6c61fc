#include "tests/support/jvm_image.h"

#include "base/bytes.h"
#include "base/deflate.h"
#include "base/os.h"
#include "managed/hotspot/hotspot.h"
#include "model/frame.h"

#include <stdlib.h>
#include <string.h>

#define FRAMES_MOST 600u

static bool parse(struct jvm_image *image)
{
	struct cursor c = cursor_over(image->raw, image->nraw);
	uint64_t n, address, bytes;
	unsigned i;

	if (!cursor_number(&c, 8, &image->base))
		return false;
	for (i = 0; i < 17; i++)
		if (!cursor_number(&c, 8, &image->regs[i]))
			return false;
	if (!cursor_number(&c, 4, &n) || n > image->nraw / 12)
		return false;
	image->ranges = calloc((size_t)n + 1, sizeof(*image->ranges));
	for (i = 0; image->ranges && i < n; i++) {
		if (!cursor_number(&c, 8, &address) || !cursor_number(&c, 4, &bytes))
			return false;
		image->ranges[i].address = address;
		image->ranges[i].n = (uint32_t)bytes;
		image->ranges[i].bytes = cursor_take(&c, bytes);
		if (!image->ranges[i].bytes)
			return false;
		image->nranges++;
	}
	return image->ranges != NULL;
}

bool jvm_image_load(const char *path, struct jvm_image *out)
{
	struct buf file = {0};
	bool loaded = false;

	memset(out, 0, sizeof(*out));
	if (os_load(path, JVM_IMAGE_MAX, &file, NULL) == 0 && file.len > 4 &&
	    le32(file.data) <= JVM_IMAGE_MAX) {
		out->nraw = le32(file.data);
		out->raw = malloc(out->nraw + 1);
		loaded = out->raw &&
			 inflate_bytes(file.data + 4, file.len - 4, out->raw, out->nraw) == 0 &&
			 parse(out);
	}
	buf_free(&file);
	if (!loaded)
		jvm_image_free(out);
	return loaded;
}

void jvm_image_free(struct jvm_image *image)
{
	free(image->ranges);
	free(image->raw);
	memset(image, 0, sizeof(*image));
}

/* The range that holds an address. The last one is the newest. */
static size_t read_part(const struct jvm_image *image, uint64_t address, uint8_t *to, size_t n)
{
	uint32_t i;

	for (i = image->nranges; i-- > 0;) {
		uint64_t at = address - image->ranges[i].address;

		if (at < image->ranges[i].n) {
			if (n > image->ranges[i].n - at)
				n = image->ranges[i].n - (size_t)at;
			memcpy(to, image->ranges[i].bytes + at, n);
			return n;
		}
	}
	return 0;
}

size_t jvm_image_read(void *image, uint64_t address, void *to, size_t n)
{
	size_t done = 0, part = 1;

	while (done < n && part) {
		part = read_part(image, address + done, (uint8_t *)to + done, n - done);
		done += part;
	}
	return done;
}

bool jvm_image_run(void *memory, struct managed_task *task)
{
	task->run(task, memory);
	return true;
}

static bool read_word(void *memory, uint64_t address, uint64_t *out)
{
	const struct managed_memory *m = memory;
	uint8_t bytes[8];

	if (m->read(m->ctx, address, bytes, sizeof(bytes)) != sizeof(bytes))
		return false;
	*out = le64(bytes);
	return true;
}

static void put_functions(struct managed_names *names, const struct unwind_frame *f,
			  struct buf *out)
{
	char text[MANAGED_TEXT_MAX + 1];
	uint32_t i;

	for (i = 0; i < f->nfunctions; i++) {
		if (!managed_names_get(names, managed_number(f->functions[i].offset), text,
				       sizeof(text), NULL))
			strcpy(text, "?");
		buf_printf(out, "%s%s\n", text,
			   f->functions[i].flags & FRAME_INLINED ? " inlined" : "");
	}
}

static void walk(struct managed *m, const struct managed_host *host, struct managed_names *names,
		 struct unwind_frame *f, struct buf *out)
{
	static const char *const results[] = {"on", "unreadable", "unknown", "broken", "foreign"};
	enum unwind_result result = UNWIND_ON;
	unsigned n;

	hotspot_reader.begin(m, host, os_now_ns());
	for (n = 0; n < FRAMES_MOST && result == UNWIND_ON; n++) {
		uint64_t sp = f->regs[EH_RSP], pc = f->regs[EH_RIP];

		if (!hotspot_reader.owns(m, f->interrupted ? pc : pc - 1, NULL))
			break;
		f->nfunctions = 0;
		result = hotspot_reader.step(m, host, f);
		put_functions(names, f, out);
		if (result == UNWIND_ON && f->regs[EH_RSP] < sp)
			abort();
	}
	buf_printf(out, "end: %s\n", results[result]);
}

void jvm_image_walk(const struct managed_memory *memory, uint64_t base, const uint64_t regs[17],
		    void (*between)(void *ctx), void *ctx, struct buf *out)
{
	struct managed_memory readable = *memory;
	struct managed_host host = {.run = jvm_image_run, .ctx = &readable};
	struct managed_image image = {.base = base};
	struct managed_names *names = managed_names_new();
	const struct unwind_frame start = {.known = (1u << EH_REGISTERS) - 1, .interrupted = true,
					   .word = read_word, .stack = &readable};
	struct unwind_frame f = start;
	struct managed *m = NULL;
	struct err err;

	memcpy(f.regs, regs, sizeof(f.regs));
	if (names && hotspot_reader.learn(&image, &host, names, &m, &err) == 0)
		walk(m, &host, names, &f, out);
	else
		buf_printf(out, "not learned: %s\n", names ? err.text : "no memory");
	if (m && between) {
		between(ctx);
		f = start;
		memcpy(f.regs, regs, sizeof(f.regs));
		walk(m, &host, names, &f, out);
	}
	hotspot_reader.forget(m);
	managed_names_free(names);
}
