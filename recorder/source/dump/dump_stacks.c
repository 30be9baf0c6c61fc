#include "source/dump/dump_stacks.h"

#include "base/text.h"
#include "managed/hotspot/hotspot.h"
#include "managed/node/v8.h"
#include "managed/python/peek.h"
#include "managed/python/python.h"
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

static const struct frame_reader *const readers[] = {&hotspot_reader, &python_reader, &v8_reader,
							 NULL};

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
	const char *runtime_file;            /* base name of its module */
	struct managed *managed;             /* NULL = it could not be learned */
	struct managed_host host;
	struct managed_names *names;
	struct object *object;               /* of its frames */
	struct err why_not;
	struct python_threads threads;
	struct python_peek peek;
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

static bool learn(struct dump_stacks *s, const struct frame_reader *reader,
		  const struct dump_module *module, struct frames *frames)
{
	const struct object_key key = {.kind = OBJECT_JIT, .path = reader->object, .epoch = 1};
	const struct managed_image image = {.base = module->start,
					    .file = text_base_name(module->path)};

	if (s->object)
		object_drop(s->object, 0);
	s->reader = reader;
	s->runtime_file = image.file;
	s->object = objects_get(frames, &key, 0);
	if (s->names && s->object)
		reader->learn(&image, &s->host, s->names, &s->managed, &s->why_not);
	if (s->managed)
		reader->begin(s->managed, &s->host, UINT64_MAX); /* nothing changes */
	return s->managed != NULL;
}

/* python3 and its libpython are both recognized; one of them has the runtime. */
static void find_runtime(struct dump_stacks *s, struct frames *frames)
{
	uint32_t i, k;

	s->host = (struct managed_host){.run = run_task, .ctx = s};
	s->names = managed_names_new();
	for (i = 0; i < s->d->nmodules; i++) {
		const struct dump_module *m = &s->d->modules[i];

		for (k = 0; !m->offset && readers[k]; k++)
			if (readers[k]->recognizes(text_base_name(m->path)) &&
			    learn(s, readers[k], m, frames))
				return;
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

/* Code of the runtime: generated, or of its own file, whose frames it names then. */
static bool is_managed(struct dump_stacks *s, uint64_t address, bool found, struct frame_ref *ref)
{
	struct managed_place place = {.offset = MANAGED_NOWHERE};

	if (!s->managed)
		return false;
	place.generated = !found || ref->flags & FRAME_JIT;
	if (found && strcmp(ref->object->name, s->runtime_file) == 0)
		place.offset = ref->offset;
	if (!s->reader->owns(s->managed, address, &place))
		return false;
	if (place.offset == MANAGED_NOWHERE) {
		ref->object = s->object;
		ref->offset = 0;             /* no name's number */
	}
	return true;
}

static void find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out)
{
	struct dump_stacks *s = ctx;
	struct loaded loaded;
	bool found = images_find(s->images, address, &out->ref);

	(void)kernel;
	if (is_managed(s, address, found, &out->ref)) {
		out->runtime = s->object;
		out->managed = true;
		out->jit = out->ref.object == s->object;
		if (out->jit)
			return;
	}
	if (!found) {
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
	loader_place(&loaded, out);
}

static void place_python(struct dump_stacks *s, uint32_t tid)
{
	const struct managed_memory memory = {.read = read_memory, .ctx = s};
	struct python_target target;
	struct python_thread *thread;
	bool searched;

	if (!s->managed || !s->reader->target)
		return;
	target = *s->reader->target(s->managed);
	target.serial = 1;
	thread = python_find_thread(&target, &memory, tid, &s->threads, false, &searched);
	s->peek.n = 0;
	python_peek(&target, &memory, thread, &s->threads, &s->peek);
	if (s->peek.status == PEEKED_WHOLE || s->peek.status == PEEKED_CUT)
		s->reader->place(s->managed, &s->host, s->object, &s->peek, &s->stack);
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
	place_python(s, t->tid);
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

		/* The first arguments: RDI and RSI, or EBX and ECX. */
		const uint64_t arguments[] = {t->regs[t->abi == 2 ? 5 : 1],
					      t->regs[t->abi == 2 ? 4 : 2]};

		target_wait_for(t->call, arguments, t->abi == 1, &process, &wait);
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
		snprintf(text, sizeof(text), "%s frames have no names: %s",
			 s->reader->name, s->why_not.text);
		one(ctx, text);
	}
	if (s->pe)
		pe_stacks_doubts(s->pe, one, ctx);
	else
		images_doubts(s->images, one, ctx);
}
