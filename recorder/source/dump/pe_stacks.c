#include "source/dump/pe_stacks.h"

#include "base/bytes.h"
#include "base/text.h"
#include "symbol/pe.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_COPY_BYTES (1u << 20)
#define NAMES_BYTES 400u

/* The file of a module. */
struct image {
	bool asked;
	struct os_file *file;                /* NULL = it was not found */
	struct bytes bytes;
	struct pe_head *head;
};

struct pe_stacks {
	const struct dump *d;
	const struct symbol_env *env;
	const char *program;                 /* NULL = where images are */
	struct image *files;                 /* of each module */
	struct pe_images *images;
	struct pe_stack stack;
	struct pe_walked walked;
};

/* ---- files ----------------------------------------------------------------------------------- */

static void identify(const struct dump_module *m, struct object_key *key)
{
	static const uint8_t none[GUID_BYTES];

	*key = (struct object_key){.kind = OBJECT_PE, .path = m->path};
	if (!guid_same(m->guid, none)) {
		memcpy(key->build_id, m->guid, GUID_BYTES);
		put_le32(key->build_id + GUID_BYTES, m->age);
		key->build_id_bytes = GUID_BYTES + 4;
	} else {
		key->dev = m->timestamp;
		key->ino = m->end - m->start;
	}
}

static bool find_at(struct pe_stacks *s, struct image *image, const struct object_key *key)
{
	return pe_image_find(s->env, key, &image->file, &image->bytes, image->head);
}

static struct image *file_of(struct pe_stacks *s, const struct dump_module *m)
{
	struct image *image = &s->files[m - s->d->modules];
	struct object_key key;
	bool found = false;

	if (image->asked)
		return image;
	image->asked = true;
	image->head = malloc(sizeof(*image->head));
	if (!image->head)
		return image;
	identify(m, &key);
	if (s->program && m->start == s->d->entry) {
		key.path = s->program;
		found = find_at(s, image, &key);
		key.path = m->path;
	}
	if (!found)
		found = find_at(s, image, &key);
	if (!found) {
		free(image->head);
		image->head = NULL;
	}
	return image;
}

/* ---- memory ---------------------------------------------------------------------------------- */

/* Where the bytes of an RVA are in the file, and how many follow them there. */
static uint64_t in_file(const struct pe_head *head, uint32_t rva, uint64_t *at)
{
	const struct pe_section *section = pe_section_at(head, rva);
	uint32_t first = head->nsections ? head->sections[0].rva : head->image_bytes, i;

	for (i = 1; i < head->nsections; i++)
		if (head->sections[i].rva < first)
			first = head->sections[i].rva;
	*at = rva;
	if (rva < first)
		return first - rva;
	if (!section || rva - section->rva >= section->file_bytes)
		return 0;
	*at = (uint64_t)section->file_at + (rva - section->rva);
	return section->file_bytes - (rva - section->rva);
}

static size_t read_file(struct pe_stacks *s, uint64_t address, void *to, size_t n)
{
	const struct dump_module *m = dump_module_at(s->d, address);
	const struct image *image = m ? file_of(s, m) : NULL;
	uint64_t at, left;

	if (!image || !image->file)
		return 0;
	left = in_file(image->head, (uint32_t)(address - m->start), &at);
	if (at >= image->bytes.size)
		return 0;
	if (left > image->bytes.size - at)
		left = image->bytes.size - at;
	if (n > left)
		n = (size_t)left;
	return n && !bytes_read(&image->bytes, at, to, n, "memory", NULL) ? n : 0;
}

static size_t read_memory(void *ctx, uint64_t address, void *to, size_t n)
{
	struct pe_stacks *s = ctx;
	size_t done = 0, got = 1;

	while (done < n && got) {
		got = dump_memory(s->d, address + done, (uint8_t *)to + done, n - done);
		if (!got)
			got = read_file(s, address + done, (uint8_t *)to + done, n - done);
		done += got;
	}
	return done;
}

/* Is it in a thread's stack? That is no code. */
static bool is_stack(const struct dump *d, const struct dump_range *range)
{
	uint32_t i;

	for (i = 0; i < d->nthreads; i++)
		if (d->threads[i].regs[DUMP_SP] >= range->start &&
		    d->threads[i].regs[DUMP_SP] < range->end)
			return true;
	return false;
}

static struct pe_region region_at(void *ctx, uint64_t address)
{
	const struct dump *d = ((const struct pe_stacks *)ctx)->d;
	const struct dump_range *range = dump_region_at(d, address);

	if (dump_module_at(d, address))
		return (struct pe_region){address, address + 1, PE_UNLISTED};
	if (range)
		return (struct pe_region){range->start, range->end, PE_GENERATED};
	range = d->has_regions ? NULL : dump_range_at(d, address);
	if (range && !is_stack(d, range))
		return (struct pe_region){range->start, range->end, PE_GENERATED};
	return (struct pe_region){address, address + 1, PE_NOWHERE};
}

/* ---- walking --------------------------------------------------------------------------------- */

/* Of each of DUMP_REGS_MASK, its number in UNWIND_INFO; RIP has none. */
static const uint8_t numbers[DUMP_REGISTERS] = {0, 3, 1, 2, 6, 7, 5, 4, 0,
						8, 9, 10, 11, 12, 13, 14, 15};

const struct pe_walked *pe_stacks_walk(struct pe_stacks *s, const struct dump_thread *t)
{
	struct pe_stack *stack = &s->stack;
	uint32_t i;

	for (i = 0; i < DUMP_REGISTERS; i++)
		if (i != DUMP_IP)
			stack->regs.r[numbers[i]] = t->regs[i];
	stack->regs.rip = t->regs[DUMP_IP];
	stack->regs.interrupted = true;
	stack->is_32_bit = t->abi == 1;
	stack->start = t->regs[DUMP_SP];
	stack->nbytes = (uint32_t)dump_memory(s->d, stack->start, stack->bytes, STACK_COPY_BYTES);
	stack->cut = stack->nbytes == STACK_COPY_BYTES;
	pe_images_walk(s->images, stack, &s->walked);
	return &s->walked;
}

/* ---- life ------------------------------------------------------------------------------------ */

int pe_stacks_open(const struct dump *d, const char *program, const struct symbol_env *env,
		   struct frames *frames, struct pe_stacks **out, struct err *err)
{
	struct pe_stacks *s = calloc(1, sizeof(*s));
	const struct pe_process process = {.read = read_memory, .region = region_at, .ctx = s};
	struct object_key key;
	uint32_t i;
	int rc = 0;

	if (s) {
		*s = (struct pe_stacks){.d = d, .env = env, .program = program};
		s->files = calloc(d->nmodules + 1, sizeof(*s->files));
		s->stack.bytes = malloc(STACK_COPY_BYTES);
	}
	if (!s || !s->files || !s->stack.bytes)
		rc = err_memory(err, "for the stacks of a minidump");
	if (!rc)
		rc = pe_images_open(&process, d->pid, frames, &s->images, err);
	for (i = 0; !rc && i < d->nmodules; i++) {
		const struct dump_module *m = &d->modules[i];

		identify(m, &key);
		rc = pe_images_note(s->images, m->start, (uint32_t)(m->end - m->start), m->path,
				    &key, err);
	}
	if (rc) {
		pe_stacks_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void pe_stacks_close(struct pe_stacks *s)
{
	uint32_t i;

	if (!s)
		return;
	pe_images_close(s->images, 0);
	for (i = 0; s->files && i < s->d->nmodules; i++) {
		os_close(s->files[i].file);
		free(s->files[i].head);
	}
	free(s->files);
	free(s->stack.bytes);
	free(s);
}

void pe_stacks_doubts(const struct pe_stacks *s, void (*one)(void *ctx, const char *text),
		      void *ctx)
{
	char names[NAMES_BYTES] = "", more[32] = "", text[NAMES_BYTES + 200];
	size_t used = 0;
	uint32_t i, n = 0, told = 0;

	for (i = 0; i < s->d->nmodules; i++) {
		const char *name = text_base_name(s->d->modules[i].path);

		if (!s->files[i].asked || s->files[i].file)
			continue;
		n++;
		if (used + strlen(name) + 3 < sizeof(names) && ++told)
			used += (size_t)snprintf(names + used, sizeof(names) - used, "%s%s",
						 used ? ", " : "", name);
	}
	if (told < n)
		snprintf(more, sizeof(more), " and %" PRIu32 " more", n - told);
	snprintf(text, sizeof(text), "not found as the process had loaded them: %s%s; their "
		 "functions have no names, and stacks may break there (--symbol-path)",
		 names, more);
	if (n)
		one(ctx, text);
}
