#include "source/dump/dump_stacks.h"

#include "base/text.h"
#include "managed/hotspot/hotspot.h"
#include "source/dump/images.h"
#include "source/dump/pe_stacks.h"
#include "source/perf/loader.h"
#include "source/stopped/waits.h"
#include "unwind/unwind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define STACK_COPY_BYTES (1u << 20)
#define TABLES_NS (10 * NS_PER_SEC)          /* of all files together */
#define PAUSE_NS NS_PER_MS

static const struct frame_reader *const readers[] = {&hotspot_reader, NULL};

struct dump_stacks {
	const struct dump *d;
	struct pe_stacks *pe;                /* of Windows; the rest is of Linux, but for now_ns */
	struct images *images;
	struct loader *loader;
	struct unwinder *unwinder;
	uint64_t now_ns, until_ns;
	uint8_t *copy;
	struct unwind_stack stack;
	uint64_t addresses[STACK_MAX_FRAMES];

	const struct frame_reader *reader;   /* NULL = no runtime that is known */
	struct managed *managed;             /* NULL = it could not be learned */
	struct managed_host host;
	struct managed_names *names;
	struct object *object;               /* of its frames */
	struct err why_not;
	char text[MANAGED_TEXT_MAX + 1], detail[MANAGED_TEXT_MAX + 1];
};

static size_t read_memory(void *ctx, uint64_t address, void *to, size_t n)
{
	return images_memory(((struct dump_stacks *)ctx)->images, address, to, n);
}

/* ---- runtimes -------------------------------------------------------------------------------- */

/* Nothing here hangs: it is in the dump, or it is not. */
static bool run_task(void *ctx, struct managed_task *task)
{
	const struct managed_memory memory = {.read = read_memory, .ctx = ctx};

	task->run(task, &memory);
	return true;
}

static void learn(struct dump_stacks *s, const struct dump_module *module, struct frames *frames)
{
	const struct object_key key = {.kind = OBJECT_JIT, .path = "[java]", .epoch = 1};
	const struct managed_image image = {.base = module->start};

	s->host = (struct managed_host){.run = run_task, .ctx = s};
	s->names = managed_names_new();
	s->object = objects_get(frames, &key, 0);
	if (s->names && s->object)
		s->reader->learn(&image, &s->host, s->names, &s->managed, &s->why_not);
	if (s->managed)
		s->reader->begin(s->managed, &s->host, s->now_ns);
}

static void find_runtime(struct dump_stacks *s, struct frames *frames)
{
	uint32_t i, k;

	for (i = 0; i < s->d->nmodules && !s->reader; i++) {
		const struct dump_module *m = &s->d->modules[i];

		for (k = 0; !m->offset && readers[k] && !s->reader; k++)
			if (readers[k]->recognizes(text_base_name(m->path)))
				s->reader = readers[k];
		if (s->reader)
			learn(s, m, frames);
	}
}

bool dump_stacks_name(struct dump_stacks *s, const struct frame *frame, struct symbol *out)
{
	uint32_t number = managed_number(frame->offset);

	if (!s->managed || frame->object != s->object ||
	    !managed_names_get(s->names, number, s->text, sizeof(s->text), s->detail))
		return false;
	*out = (struct symbol){.offset = (uint64_t)number << MANAGED_NUMBER_SHIFT, .name = s->text,
			       .raw_name = s->detail[0] ? s->detail : NULL};
	return true;
}

static enum unwind_result step_managed(void *ctx, struct unwind_frame *frame)
{
	struct dump_stacks *s = ctx;

	return s->reader->step(s->managed, &s->host, frame);
}

/* ---- walking --------------------------------------------------------------------------------- */

static void find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out)
{
	static const struct managed_place nowhere = {true, MANAGED_NOWHERE};
	struct dump_stacks *s = ctx;
	struct loaded loaded;

	(void)kernel;
	if (s->managed && s->reader->owns(s->managed, address, &nowhere)) {
		out->ref.object = out->runtime = s->object;
		out->jit = out->managed = true;
		return;
	}
	if (!images_find(s->images, address, &out->ref)) {
		out->jit = (out->ref.flags & FRAME_JIT) != 0;
		out->doubtful = out->jit && s->reader;
		return;
	}
	loader_get(s->loader, out->ref.object, 0, s->now_ns, &loaded);
	while (loaded.pending && os_now_ns() < s->until_ns) {
		os_sleep_ns(PAUSE_NS);
		loader_sweep(s->loader, s->now_ns);
		loader_get(s->loader, out->ref.object, 0, s->now_ns, &loaded);
	}
	if (loaded.head && elf_vaddr(loaded.head, out->ref.offset, &out->vaddr)) {
		out->tables = loaded.tables;
		out->entry = loaded.head->entry && out->vaddr - loaded.head->entry < 64;
	}
}

static void walk(struct dump_stacks *s, const struct dump_thread *t)
{
	const struct unwind_caller caller = {.find = find, .read = read_memory,
					     .managed = step_managed, .frozen = true, .ctx = s};
	const struct unwind_input in = {
		.user_expected = true, .regs_abi = t->abi, .regs = t->regs,
		.regs_mask = DUMP_REGS_MASK, .stack = s->copy,
		.stack_bytes = (uint32_t)images_memory(s->images, t->regs[DUMP_SP], s->copy,
						       STACK_COPY_BYTES)};

	unwinder_walk(s->unwinder, &in, &caller, NULL, &s->stack);
}

static bool is_thread(void *ctx, uint32_t tid)
{
	const struct dump *d = ((struct dump_stacks *)ctx)->d;
	uint32_t i;

	for (i = 0; i < d->nthreads && d->threads[i].tid != tid; i++)
		;
	return i < d->nthreads;
}

static void take_windows(struct dump_stacks *s, thread_stack_fn *tell, void *ctx)
{
	uint32_t i;

	for (i = 0; i < s->d->nthreads; i++) {
		const struct dump_thread *t = &s->d->threads[i];
		const struct pe_walked *walked = pe_stacks_walk(s->pe, t);
		const struct thread_stack stack = {
			.tid = t->tid, .name = t->name ? t->name : "", .time_ns = s->now_ns,
			.frames = walked->frames, .addresses = walked->addresses,
			.nframes = walked->nframes, .quality = walked->quality};

		tell(ctx, &stack);
	}
}

void dump_stacks_take(struct dump_stacks *s, thread_stack_fn *tell, void *ctx)
{
	const struct wait_process process = {.memory = read_memory, .is_thread = is_thread,
					     .ctx = s};
	struct target_wait wait;
	uint32_t i, k;

	if (s->pe) {
		take_windows(s, tell, ctx);
		return;
	}
	for (i = 0; i < s->d->nthreads; i++) {
		const struct dump_thread *t = &s->d->threads[i];
		struct thread_stack stack = {.tid = t->tid, .name = t->name ? t->name : "",
					     .time_ns = s->now_ns, .frames = s->stack.frames,
					     .addresses = s->addresses};

		/* The first argument: RDI, or EBX. */
		target_wait_for(t->call, t->regs[t->abi == 2 ? 5 : 1], t->abi == 1, &process,
				&wait);
		stack.wait = wait.text;
		stack.waits_for = wait.owner;
		walk(s, t);
		stack.nframes = s->stack.nframes;
		stack.quality = s->stack.quality;
		for (k = 0; k < stack.nframes; k++)
			s->addresses[k] = images_address(s->images, &stack.frames[k]);
		tell(ctx, &stack);
	}
}

/* ---- life ------------------------------------------------------------------------------------ */

static int open_linux(struct dump_stacks *s, const char *program, uint64_t wall_ns,
		      struct frames *frames, struct err *err)
{
	struct hung_devices *hung = hung_devices_new();
	int rc = 0;

	s->copy = malloc(STACK_COPY_BYTES);
	if (!s->copy || !hung)
		rc = err_memory(err, "for the stacks of a dump");
	if (!rc)
		rc = images_open(s->d, frames, program, wall_ns, &s->images, err);
	if (!rc)
		rc = loader_new(NULL, hung, &s->loader, err);
	if (!rc)
		rc = unwinder_new(UNWIND_REMOTE_MAX_BYTES, &s->unwinder, err);
	hung_devices_drop(hung);
	if (!rc)
		find_runtime(s, frames);
	return rc;
}

int dump_stacks_open(const struct dump *d, const char *program, uint64_t wall_ns,
		     const struct symbol_env *env, struct frames *frames, struct dump_stacks **out,
		     struct err *err)
{
	struct dump_stacks *s = calloc(1, sizeof(*s));
	int rc;

	if (!s)
		return err_memory(err, "for the stacks of a dump");
	s->d = d;
	s->now_ns = os_now_ns();
	s->until_ns = s->now_ns + TABLES_NS;
	rc = d->windows ? pe_stacks_open(d, program, env, frames, &s->pe, err)
			: open_linux(s, program, wall_ns, frames, err);
	if (rc) {
		dump_stacks_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void dump_stacks_close(struct dump_stacks *s)
{
	if (!s)
		return;
	if (s->managed)
		s->reader->forget(s->managed);
	managed_names_free(s->names);
	if (s->object)
		object_drop(s->object, 0);
	unwinder_free(s->unwinder);
	loader_free(s->loader);
	images_close(s->images);
	pe_stacks_close(s->pe);
	free(s->copy);
	free(s);
}

const char *dump_stacks_path(const struct dump_stacks *s)
{
	const struct dump_module *m = dump_module_at(s->d, s->d->entry);
	const char *path = s->pe ? (m ? m->path : "") : images_program(s->images);

	return *path ? path : s->d->program;
}

void dump_stacks_doubts(const struct dump_stacks *s, void (*one)(void *ctx, const char *text),
			void *ctx)
{
	char text[700];

	if (s->d->missing_bytes) {
		snprintf(text, sizeof(text), "the dump is cut off: %.1f MB of memory are missing",
			 (double)s->d->missing_bytes / 1048576);
		one(ctx, text);
	}
	if (s->reader && !s->managed) {
		snprintf(text, sizeof(text), "Java frames have no names: %s", s->why_not.text);
		one(ctx, text);
	}
	if (s->pe)
		pe_stacks_doubts(s->pe, one, ctx);
	else
		images_doubts(s->images, one, ctx);
}
