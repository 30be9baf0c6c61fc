#include "source/stopped/pe_images.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "unwind/pe_loaded.h"
#include "unwind/pe_x86.h"

#include <stdlib.h>
#include <string.h>

#define PAGE 4096u
#define CODE_CHUNKS 16u                      /* of an image; the oldest is replaced first */
#define CODE_BYTES (PAGE + 256u)             /* an epilogue may cross the end of a page */
#define REGIONS_MAX 16u

struct image {
	uint64_t base;
	uint32_t nbytes;
	uint32_t round;                      /* the last refresh that listed it */
	char *path;
	struct object_key key;               /* given; else it is read from memory */
	struct object *object;               /* NULL until a frame needs it */
	bool read;                           /* its tables were read, or could not be */
	struct pe_loaded head;
	size_t held_bytes;                   /* of its tables */
	uint8_t *pdata, *info, *code;        /* code: CODE_CHUNKS of CODE_BYTES */
	uint32_t next_chunk;
	struct eh_frame *eh;                 /* x86: by addresses; NULL = none */
	struct pe_range ranges[2 + CODE_CHUNKS];
	struct pe_tables tables;
};

struct pe_images {
	struct pe_process process;
	uint32_t pid;
	struct frames *frames;
	struct image **all;                  /* by base, ascending */
	uint32_t n, room, round;
	size_t nbytes;                       /* of all tables */
	struct object *generated;
	struct pe_region regions[REGIONS_MAX];
	uint32_t nregions, next_region;
};

static size_t read_memory(const struct pe_images *t, uint64_t address, void *to, size_t n)
{
	return t->process.read(t->process.ctx, address, to, n);
}

/* Copy nbytes of an image, up to the first unreadable page. */
static uint8_t *read_part(struct pe_images *t, struct image *image, uint32_t rva,
			  uint32_t *nbytes)
{
	uint8_t *bytes = NULL;

	if (rva < image->nbytes && *nbytes > image->nbytes - rva)
		*nbytes = image->nbytes - rva;
	if (*nbytes && rva < image->nbytes && *nbytes <= IMAGES_MAX_BYTES - t->nbytes)
		bytes = malloc(*nbytes);
	if (!bytes) {
		*nbytes = 0;
		return NULL;
	}
	*nbytes = (uint32_t)read_memory(t, image->base + rva, bytes, *nbytes);
	t->nbytes += *nbytes;
	image->held_bytes += *nbytes;
	return bytes;
}

/* ---- one image ------------------------------------------------------------------------------- */

static void read_head(struct pe_images *t, struct image *image)
{
	uint8_t head[PE_LOADED_HEAD_BYTES];
	size_t got = read_memory(t, image->base, head, sizeof(head));

	if (!pe_loaded_head(head, got, &image->head))
		memset(&image->head, 0, sizeof(image->head));
}

static void read_eh_frame(struct pe_images *t, struct image *image)
{
	struct eh_sections in = {.frames_vaddr = image->base + image->head.eh_rva,
				 .is_32_bit = true};
	uint32_t nbytes = image->head.eh_bytes;

	if (nbytes)
		in.frames = read_part(t, image, image->head.eh_rva, &nbytes);
	in.frames_bytes = nbytes;
	if (in.frames)
		eh_frame_new(&in, &image->eh, NULL);
}

static void read_tables(struct pe_images *t, struct image *image)
{
	struct pe_range *pdata = &image->ranges[0], *info = &image->ranges[1];

	image->read = true;
	if (image->key.kind == OBJECT_PE)
		read_head(t, image);
	image->tables.ranges = image->ranges;
	image->tables.pdata_rva = pdata->rva = image->head.pdata_rva;
	pdata->nbytes = image->head.pdata_bytes;
	pdata->bytes = image->pdata = read_part(t, image, pdata->rva, &pdata->nbytes);
	image->tables.nranges = 2;
	read_eh_frame(t, image);
	/* A cut directory is useless: its last entry would cover the missing functions. */
	if (pdata->nbytes < image->head.pdata_bytes)
		pdata->nbytes = 0;
	image->tables.pdata_bytes = pdata->nbytes;
	if (pdata->nbytes && pe_loaded_info_span(pdata->bytes, pdata->nbytes, image->nbytes,
						 &info->rva, &info->nbytes))
		info->bytes = image->info = read_part(t, image, info->rva, &info->nbytes);
}

static void free_image(struct pe_images *t, struct image *image, uint64_t now_ns)
{
	t->nbytes -= image->held_bytes;
	if (image->object)
		object_drop(image->object, now_ns);
	eh_frame_free(image->eh);
	free(image->pdata);
	free(image->info);
	free(image->code);
	free(image->path);
	free(image);
}

/* Identify an image like pe_reader.c does: by PDB if it has one, else by timestamp and size. */
static void identify(struct pe_images *t, const struct image *image, struct object_key *key)
{
	uint8_t directory[PE_LOADED_DEBUG_MAX_BYTES], rsds[PE_LOADED_RSDS_BYTES];
	size_t n = image->head.debug_bytes < sizeof(directory) ? image->head.debug_bytes
							       : sizeof(directory);
	uint32_t at = 0, age;

	n = read_memory(t, image->base + image->head.debug_rva, directory, n);
	at = pe_loaded_rsds_at(directory, n, image->nbytes);
	if (at && read_memory(t, image->base + at, rsds, sizeof(rsds)) == sizeof(rsds) &&
	    pe_loaded_rsds(rsds, key->build_id, &age)) {
		memcpy(key->build_id + 16, &age, sizeof(age));
		key->build_id_bytes = 20;
		return;
	}
	key->dev = image->head.timestamp;
	key->ino = image->head.image_bytes;
}

static struct object *object_of(struct pe_images *t, struct image *image)
{
	struct object_key key = image->key;

	if (!image->object) {
		key.kind = OBJECT_PE;
		key.path = image->path;
		if (image->key.kind != OBJECT_PE)
			identify(t, image, &key);
		image->object = objects_get(t->frames, &key, t->pid);
	}
	return image->object;
}

/* ---- the list -------------------------------------------------------------------------------- */

/* How many images begin at or below an address. */
static uint32_t upper_bound(const struct pe_images *t, uint64_t address)
{
	uint32_t low = 0, high = t->n;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (t->all[middle]->base <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static struct image *image_at(const struct pe_images *t, uint64_t address)
{
	uint32_t at = upper_bound(t, address);

	return at && address - t->all[at - 1]->base < t->all[at - 1]->nbytes ? t->all[at - 1]
									     : NULL;
}

/* Whether another image was loaded at the same base: its headers differ. */
static bool is_changed(struct pe_images *t, const struct image *image)
{
	struct image now = {.base = image->base};

	read_head(t, &now);
	return memcmp(&now.head, &image->head, sizeof(now.head)) != 0;
}

void pe_images_begin(struct pe_images *t)
{
	t->round++;
}

int pe_images_note(struct pe_images *t, uint64_t base, uint32_t nbytes, const char *path,
		   const struct object_key *key, struct err *err)
{
	uint32_t at = upper_bound(t, base);
	struct image *image;

	/* Another image loaded at the same base follows the old one until that is dropped. */
	if (at && t->all[at - 1]->base == base && !is_changed(t, t->all[at - 1])) {
		t->all[at - 1]->round = t->round;
		return 0;
	}
	if (t->n >= IMAGES_MAX)
		return 0;
	image = ARRAY_ROOM(t->all, t->room, t->n + 1) ? NULL : calloc(1, sizeof(*image));
	if (!image)
		return err_memory(err, "for the list of images");
	image->base = base;
	image->nbytes = nbytes;
	image->round = t->round;
	if (!key)
		read_head(t, image);
	image->path = text_dup(path, SIZE_MAX);
	if (key)
		image->key = *key;
	if (!image->path) {
		free(image);
		return err_memory(err, "for the list of images");
	}
	memmove(&t->all[at + 1], &t->all[at], (t->n - at) * sizeof(*t->all));
	t->all[at] = image;
	t->n++;
	return 0;
}

void pe_images_end(struct pe_images *t)
{
	uint32_t i, kept = 0;

	for (i = 0; i < t->n; i++) {
		if (t->all[i]->round != t->round)
			free_image(t, t->all[i], os_now_ns());
		else
			t->all[kept++] = t->all[i];
	}
	t->n = kept;
	pe_images_forget(t);
}

int pe_images_open(const struct pe_process *process, uint32_t pid, struct frames *frames,
		   struct pe_images **out, struct err *err)
{
	struct pe_images *t = calloc(1, sizeof(*t));

	if (!t)
		return err_memory(err, "for the images of process %u", (unsigned)pid);
	t->process = *process;
	t->pid = pid;
	t->frames = frames;
	*out = t;
	return 0;
}

void pe_images_close(struct pe_images *t, uint64_t now_ns)
{
	uint32_t i;

	if (!t)
		return;
	for (i = 0; i < t->n; i++)
		free_image(t, t->all[i], now_ns);
	if (t->generated)
		object_drop(t->generated, now_ns);
	free(t->all);
	free(t);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static const struct pe_tables *find_tables(void *ctx, uint64_t address, uint32_t *rva)
{
	struct pe_images *t = ctx;
	struct image *image = image_at(t, address);

	if (!image)
		return NULL;
	if (!image->read)
		read_tables(t, image);
	*rva = (uint32_t)(address - image->base);
	return &image->tables;
}

/* What an address outside of listed images is, or would be if its image was not listed. */
static enum pe_place find_region(struct pe_images *t, uint64_t address)
{
	struct pe_region *region;
	uint32_t i;

	for (i = 0; i < t->nregions; i++)
		if (address >= t->regions[i].from && address < t->regions[i].to)
			return t->regions[i].place;
	region = &t->regions[t->next_region];
	*region = t->process.region(t->process.ctx, address);
	t->next_region = (t->next_region + 1) % REGIONS_MAX;
	if (t->nregions < REGIONS_MAX)
		t->nregions++;
	return region->place;
}

static enum pe_place place_of(struct pe_images *t, uint64_t address)
{
	return image_at(t, address) ? PE_IN_IMAGE : find_region(t, address);
}

static void read_code_at(struct pe_images *t, uint64_t address)
{
	struct image *image = image_at(t, address);
	uint32_t rva, i, nbytes = CODE_BYTES;
	uint8_t *code;

	if (!image)
		return;
	if (!image->read)
		read_tables(t, image);
	rva = (uint32_t)(address - image->base) & ~(PAGE - 1);
	for (i = 2; i < image->tables.nranges; i++)
		if (image->ranges[i].rva == rva)
			return;
	if (find_region(t, image->base + rva) == PE_NOWHERE)
		return;
	if (!image->code)
		image->code = malloc((size_t)CODE_CHUNKS * CODE_BYTES);
	if (!image->code)
		return;
	code = image->code + (size_t)image->next_chunk * CODE_BYTES;
	if (nbytes > image->nbytes - rva)
		nbytes = image->nbytes - rva;
	image->ranges[2 + image->next_chunk] = (struct pe_range){
		.rva = rva, .bytes = code,
		.nbytes = (uint32_t)read_memory(t, image->base + rva, code, nbytes)};
	if (image->tables.nranges < 2 + CODE_CHUNKS)
		image->tables.nranges++;
	image->next_chunk = (image->next_chunk + 1) % CODE_CHUNKS;
}

static const struct eh_frame *find_eh_frame(void *ctx, uint64_t address)
{
	struct pe_images *t = ctx;
	struct image *image = image_at(t, address);

	if (image && !image->read)
		read_tables(t, image);
	return image ? image->eh : NULL;
}

static bool read_code(void *ctx, uint64_t address, uint8_t *to, size_t n)
{
	struct pe_images *t = ctx;
	struct image *image = image_at(t, address);
	uint32_t rva, i;

	if (!image)
		return place_of(t, address) == PE_GENERATED &&
		       read_memory(t, address, to, n) == n;
	rva = (uint32_t)(address - image->base);
	read_code_at(t, address);
	for (i = 2; i < image->tables.nranges; i++) {
		const struct pe_range *code = &image->ranges[i];

		if (rva - code->rva < code->nbytes && n <= code->nbytes - (rva - code->rva)) {
			memcpy(to, code->bytes + (rva - code->rva), n);
			return true;
		}
	}
	return false;
}

/* Is the address in the image of that file name? */
static bool is_named(const struct pe_images *t, uint64_t address, const char *name)
{
	const struct image *image = image_at(t, address);

	return image && text_same_fold(text_base_name(image->path), name);
}

void pe_images_forget(struct pe_images *t)
{
	t->nregions = t->next_region = 0;
}

static void set_frame(struct pe_images *t, const struct pe_frame *frame, enum pe_place place,
		      struct frame_ref *out)
{
	struct object_key key = {.kind = OBJECT_JIT, .pid = t->pid, .path = "[jit]"};
	uint64_t address = frame->address - frame->returns;
	struct image *image = place == PE_IN_IMAGE ? image_at(t, address) : NULL;

	out->object = NULL;
	out->offset = address;
	out->flags = frame->returns ? FRAME_RETURN_ADDRESS : 0u;
	if (image) {
		out->object = object_of(t, image);
		out->offset = address - image->base;
	} else if (place == PE_GENERATED) {
		if (!t->generated)
			t->generated = objects_get(t->frames, &key, t->pid);
		out->object = t->generated;
		out->flags |= FRAME_JIT;
	}
	if (!out->object) {
		out->object = objects_unknown(t->frames);
		out->offset = address;
	}
}

/* ---- walking --------------------------------------------------------------------------------- */

static uint32_t walk_32_bit(struct pe_images *t, const struct pe_stack *stack,
			    struct pe_registers *regs, struct stack_view *view,
			    struct pe_walked *out, enum pe_step *end, bool *guided)
{
	const struct pe_x86_process process = {
		.tables = find_eh_frame, .code = read_code,
		.ctx = t, .stack_base = stack->cut ? 0 : view->start + view->nbytes};
	uint32_t n = pe_x86_walk(regs, view, &process, out->walked, STACK_MAX_FRAMES, end, guided);

	if (stack->switching && is_named(t, stack->switching, "wow64cpu.dll"))
		*end = PE_STEP_BROKEN;
	return n;
}

/* An image of which neither memory nor a file is there: who called its functions is a guess. */
static bool is_blind(struct pe_images *t, const struct pe_frame *frame, enum pe_place place)
{
	struct image *image =
		place == PE_IN_IMAGE ? image_at(t, frame->address - frame->returns) : NULL;

	if (image && !image->read)
		read_tables(t, image);
	return image && !image->head.image_bytes;
}

static enum stack_quality quality_of(const struct pe_stack *stack, enum pe_step end, bool bad,
				     bool exact, bool outermost)
{
	if (bad || end == PE_STEP_BROKEN)
		return QUALITY_BROKEN;
	if (end == PE_STEP_UNREADABLE)
		return stack->cut ? QUALITY_TRUNCATED : QUALITY_BROKEN;
	if (!outermost)
		return QUALITY_TRUNCATED;
	return exact ? QUALITY_COMPLETE : QUALITY_FP;
}

void pe_images_walk(struct pe_images *t, const struct pe_stack *stack, struct pe_walked *out)
{
	struct stack_view view = {
		.bytes = stack->bytes, .start = stack->start, .nbytes = stack->nbytes};
	struct pe_registers regs = stack->regs;
	bool guided = true, generated = false, bad = false;
	enum pe_place place;
	enum pe_step end;
	uint32_t n, i;

	out->unlisted = false;
	if (stack->is_32_bit) {
		n = walk_32_bit(t, stack, &regs, &view, out, &end, &guided);
	} else {
		read_code_at(t, regs.rip);
		n = pe_walk(&regs, &view, find_tables, t, out->walked, STACK_MAX_FRAMES, &end);
	}
	for (i = 0; i < n && !bad; i++) {
		place = place_of(t, out->walked[i].address - out->walked[i].returns);
		out->unlisted |= place == PE_UNLISTED;
		generated |= place == PE_GENERATED;
		bad = place == PE_NOWHERE || place == PE_UNLISTED;
		if (bad && i)
			break;
		set_frame(t, &out->walked[i], place, &out->frames[i]);
		out->addresses[i] = out->walked[i].address;
		bad |= is_blind(t, &out->walked[i], place);
	}
	out->nframes = i;
	out->quality = quality_of(stack, end, bad, !generated && guided, !regs.rip);
}
