#include "source/dump/images.h"

#include "base/array.h"
#include "base/text.h"
#include "source/host/maps.h"
#include "symbol/elf_file.h"

#include <stdlib.h>
#include <string.h>

#define HEAD_BYTES 65536u
#define PAGE_BYTES 4096u
#define NO_IMAGE UINT32_MAX

struct image {
	char *path;                          /* where the file is looked for */
	struct object *object;               /* NULL = code made at run time */
	struct elf_file file;                /* open if usable: of any format */
	bool usable;
	struct err doubt;                    /* why it is not, or not without doubt */
};

struct images {
	const struct dump *d;
	struct frames *frames;
	struct buf program;                  /* a full path; or empty */
	uint64_t wall_ns;
	struct image **all;
	uint32_t n, room;
	uint32_t *of;                        /* of each module */
	struct object *vdso, *jit;
	uint64_t vdso_end;
};

/* ---- is it the file that was mapped? --------------------------------------------------------- */

/* The file's first bytes, as far as the dump has them. */
static size_t dumped_head(const struct images *s, const char *path, uint8_t *head)
{
	const struct dump *d = s->d;
	uint32_t i;

	for (i = 0; i < d->nmodules; i++)
		if (!d->modules[i].offset && strcmp(d->modules[i].path, path) == 0)
			return dump_memory(d, d->modules[i].start, head, HEAD_BYTES);
	return 0;
}

static bool same_id(const struct elf_head *a, const struct elf_head *b)
{
	return a->build_id_bytes == b->build_id_bytes &&
	       memcmp(a->build_id, b->build_id, a->build_id_bytes) == 0;
}

static bool same_page(const struct bytes *file, const uint8_t *head, size_t n)
{
	uint8_t page[PAGE_BYTES];
	size_t want = file->size < PAGE_BYTES ? (size_t)file->size : PAGE_BYTES;

	return n >= want && bytes_read(file, 0, page, want, "its first page", NULL) == 0 &&
	       memcmp(page, head, want) == 0;
}

static void doubt(struct image *m, const char *why)
{
	err_set(&m->doubt, ERR_FORMAT, "%s is not used: %s", m->path, why);
}

/* Decide about an ELF file; *key gets what identifies what was mapped. */
static void judge(const struct images *s, struct image *m, const uint8_t *head, size_t n,
		  bool is_program, struct object_key *key)
{
	const struct bytes dumped = bytes_of_memory(head, n);
	const struct elf_head *file = &m->file.head;
	bool is_old = m->file.mtime_ns <= s->wall_ns;
	struct elf_head then = {0};
	bool known = elf_head_read(&dumped, &then, NULL) == 0;

	if (known && then.build_id_bytes) {
		m->usable = m->usable && same_id(&then, file);
		if (!m->usable && !m->doubt.code)
			doubt(m, "its build id is not that of the file that was mapped");
	} else if (known) {
		m->usable = m->usable && !file->build_id_bytes && is_old &&
			    same_page(&m->file.bytes, head, n);
		if (!m->usable && !m->doubt.code)
			doubt(m, is_old ? "it is not the file that was mapped"
					: "it is newer than the dump, and has no build id");
	} else if (m->usable && s->program.len && is_program) {
		then = *file;
		err_set(&m->doubt, ERR_FORMAT, "%s is taken as the program at your word: "
			 "the dump lacks its build id", m->path);
	} else if (m->usable) {
		m->usable = false;
		doubt(m, "the dump lacks its first page, and with it the build id");
	}
	key->build_id_bytes = then.build_id_bytes;
	memcpy(key->build_id, then.build_id, then.build_id_bytes);
	if (m->usable && !then.build_id_bytes) {
		key->dev = m->file.dev;
		key->ino = m->file.ino;
	}
}

/* ---- images ---------------------------------------------------------------------------------- */

/* Not an ELF file: memory only. */
static void open_other(const struct images *s, struct image *m)
{
	struct os_file_info info;

	if (os_open(m->path, OS_READ_PLAIN, &m->file.file, NULL))
		return;
	if (os_file_info(m->file.file, &info, NULL) == 0 && info.mtime_ns <= s->wall_ns) {
		m->file.bytes = bytes_of_file(m->file.file, info.size_bytes);
		m->usable = true;
	}
}

static void open_image(const struct images *s, struct image *m, const char *mapped, bool is_program)
{
	struct object_key key = {.kind = OBJECT_ELF, .path = m->path};
	uint8_t *head = malloc(HEAD_BYTES);
	struct err err = {0};
	size_t n;
	int rc;

	if (!head)
		return;
	n = dumped_head(s, mapped, head);
	rc = elf_file_open_path(m->path, &m->file, &err);
	m->usable = !rc;
	if (rc == ERR_FORMAT && (n < 4 || memcmp(head, "\177ELF", 4) != 0)) {
		open_other(s, m);
	} else {
		if (rc)
			m->doubt = err;
		judge(s, m, head, n, is_program, &key);
	}
	m->object = objects_get(s->frames, &key, 0);
	if (!m->usable)
		elf_file_close(&m->file);
	free(head);
}

/* Without the kernel's " (deleted)". */
static char *path_of(const char *path)
{
	static const char deleted[] = " (deleted)";
	size_t n = strlen(path), tail = sizeof(deleted) - 1;

	return text_dup(path, n > tail && !strcmp(path + n - tail, deleted) ? n - tail : n);
}

static const struct dump_module *program_module(const struct images *s)
{
	const struct dump_module *m = dump_module_at(s->d, s->d->entry);

	return m || !s->d->nmodules ? m : &s->d->modules[0];
}

/* NULL: without memory */
static struct image *image_of(struct images *s, const struct dump_module *module)
{
	const struct dump_module *program = program_module(s);
	bool is_program = strcmp(program->path, module->path) == 0;
	uint32_t at = (uint32_t)(module - s->d->modules), i;
	struct image *m;

	for (i = 0; s->of[at] == NO_IMAGE && i < s->d->nmodules; i++)
		if (s->of[i] != NO_IMAGE &&
		    strcmp(s->d->modules[i].path, module->path) == 0)
			s->of[at] = s->of[i];
	if (s->of[at] != NO_IMAGE)
		return s->all[s->of[at]];
	m = ARRAY_ROOM(s->all, s->room, s->n + 1) ? NULL : calloc(1, sizeof(*m));
	if (m)
		m->path = is_program && s->program.len
				  ? text_dup(s->program.data, s->program.len)
				  : path_of(module->path);
	if (!m || !m->path) {
		free(m);
		return NULL;
	}
	if (!maps_path_is_run_time(module->path))
		open_image(s, m, module->path, is_program);
	s->of[at] = s->n;
	s->all[s->n++] = m;
	return m;
}

/* ---- addresses ------------------------------------------------------------------------------- */

/* The kernel's own library: ours is the same, or it has no names. */
static struct object *find_vdso(struct images *s)
{
	struct object_key key = {.kind = OBJECT_ELF,
				 .path = s->d->is_32_bit ? "[vdso32]" : "[vdso]"};
	const struct object own = {.key = key};
	struct elf_file file = {0};
	struct elf_head then = {0};
	uint8_t head[PAGE_BYTES];
	struct bytes dumped;

	dumped = bytes_of_memory(head, dump_memory(s->d, s->d->vdso, head, sizeof(head)));
	if (elf_head_read(&dumped, &then, NULL) || !then.build_id_bytes ||
	    elf_file_open(&own, 0, false, &file, NULL) || !same_id(&then, &file.head))
		key.path = "[vdso of another kernel]";
	elf_file_close(&file);
	return objects_get(s->frames, &key, 0);
}

static struct object *made_at_run_time(struct images *s)
{
	const struct object_key key = {.kind = OBJECT_JIT, .path = "[jit]"};

	if (!s->jit)
		s->jit = objects_get(s->frames, &key, 0);
	return s->jit;
}

bool images_find(struct images *s, uint64_t address, struct frame_ref *out)
{
	const struct dump_range *range = dump_range_at(s->d, address);
	const struct dump_module *module = dump_module_at(s->d, address);
	const struct image *m = NULL;

	out->object = objects_unknown(s->frames);
	if (range && !range->executable)
		return false;
	if (s->d->vdso && range && range->start == s->d->vdso) {
		if (!s->vdso)
			s->vdso = find_vdso(s);
		out->object = s->vdso ? s->vdso : out->object;
		out->offset = address - range->start;
		return s->vdso != NULL;
	}
	if (module)
		m = image_of(s, module);
	if (m && m->object) {
		out->object = m->object;
		out->offset = address - module->start + module->offset;
		return true;
	}
	if (range && made_at_run_time(s)) {
		out->object = s->jit;
		out->flags |= FRAME_JIT;
	}
	return false;
}

uint64_t images_address(const struct images *s, const struct frame_ref *ref)
{
	uint64_t offset = ref->offset + (ref->flags & FRAME_RETURN_ADDRESS ? 1 : 0);
	uint32_t i;

	if (ref->object == s->vdso)
		return s->d->vdso + offset;
	if (ref->object == s->jit || ref->object->key.kind == OBJECT_UNKNOWN)
		return offset;
	for (i = 0; i < s->d->nmodules; i++) {
		const struct dump_module *m = &s->d->modules[i];

		if (s->of[i] != NO_IMAGE && s->all[s->of[i]]->object == ref->object &&
		    ref->offset >= m->offset && ref->offset - m->offset < m->end - m->start &&
		    (dump_range_at(s->d, m->start) == NULL ||
		     dump_range_at(s->d, m->start)->executable))
			return m->start + (offset - m->offset);
	}
	return 0;
}

/* Of pages that nothing has written to: those of the file. */
static size_t file_memory(struct images *s, uint64_t address, void *to, size_t n)
{
	const struct dump_range *range = dump_range_at(s->d, address);
	const struct dump_module *module = dump_module_at(s->d, address);
	uint64_t left, at, size;
	struct image *m;

	if (!module || !range || range->writable)
		return 0;
	m = image_of(s, module);
	at = address - module->start + module->offset;
	size = m && m->usable ? m->file.bytes.size : 0;
	left = module->end - address;
	if (left > range->end - address)
		left = range->end - address;
	if (at >= size)
		return 0;
	if (left > size - at)
		left = size - at;
	if (n > left)
		n = (size_t)left;
	return bytes_read(&m->file.bytes, at, to, n, "memory", NULL) ? 0 : n;
}

size_t images_memory(struct images *s, uint64_t address, void *to, size_t n)
{
	size_t done = 0, got = 1;

	while (done < n && got) {
		got = dump_memory(s->d, address + done, (uint8_t *)to + done, n - done);
		if (!got)
			got = file_memory(s, address + done, (uint8_t *)to + done, n - done);
		done += got;
	}
	return done;
}

/* ---- life ------------------------------------------------------------------------------------ */

int images_open(const struct dump *d, struct frames *frames, const char *program, uint64_t wall_ns,
		struct images **out, struct err *err)
{
	struct images *s = calloc(1, sizeof(*s));

	if (s)
		s->of = array_of_none(d->nmodules + 1);
	if (!s || !s->of) {
		free(s);
		return err_memory(err, "for the mapped files of a dump");
	}
	s->d = d;
	s->frames = frames;
	if (program)
		os_full_path(program, &s->program);
	s->wall_ns = wall_ns;
	*out = s;
	return 0;
}

void images_close(struct images *s)
{
	uint32_t i;

	if (!s)
		return;
	for (i = 0; i < s->n; i++) {
		if (s->all[i]->object)
			object_drop(s->all[i]->object, 0);
		elf_file_close(&s->all[i]->file);
		free(s->all[i]->path);
		free(s->all[i]);
	}
	if (s->vdso)
		object_drop(s->vdso, 0);
	if (s->jit)
		object_drop(s->jit, 0);
	free(s->all);
	free(s->of);
	buf_free(&s->program);
	free(s);
}

const char *images_program(const struct images *s)
{
	const struct dump_module *m = program_module(s);

	return s->program.len ? buf_text(&s->program) : m ? m->path : "";
}

void images_doubts(const struct images *s, void (*one)(void *ctx, const char *text), void *ctx)
{
	uint32_t i;

	for (i = 0; i < s->n; i++)
		if (s->all[i]->doubt.code)
			one(ctx, s->all[i]->doubt.text);
}
