/*
 * What a .NET program says: its answer, and its stream; the first byte gives the size of the
 * portions that it comes in. 255: events about its code without a stream around them, each {u8
 * kind, u8 bytes, payload}, and samples of it. 254: records of a stream, as the process that reads
 * streams answers; a stream is also read by way of these, with the same events.
 */
#include "base/bytes.h"
#include "source/dotnet/ipc.h"
#include "source/dotnet/nettrace_decode.h"
#include "source/dotnet/nettrace_records.h"
#include "source/dotnet/stacks.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct dotnet_program *program;

/* ---- streams, and their records -------------------------------------------------------------- */

static void see_frames(void *ctx, const struct event *e)
{
	(void)ctx;
	if (e->nstack_frames > DOTNET_FRAMES_MAX + 2)
		abort();
}

static void see_stack(const struct nettrace_event *event)
{
	struct event e = {.time_ns = event->ticks, .name = event->meta->name};
	struct gc_objects objects = {.on = false};

	if (dotnet_tells_code(event))
		dotnet_program_learn(program, event, event->ticks);
	dotnet_program_deliver(program, &objects, event, 8, &e, see_frames, NULL);
}

static int see(void *ctx, const struct nettrace_event *event)
{
	const struct etw_decoded *d;
	const struct dotnet_queued queued = {.event = *event, .time_ns = event->ticks};
	struct event out;
	uint32_t i;

	nettrace_decode_queued(ctx, &queued, 8, NULL, NULL, &out);
	d = nettrace_decode_event(ctx, event, event->tid & 1 ? 4 : 8);
	see_stack(event);
	if (d->nfields > EVENT_MAX_FIELDS || !d->name || !d->provider)
		abort();
	for (i = 0; i < d->nfields; i++)
		if (!d->fields[i].name || (d->fields[i].type == FIELD_TEXT && !d->fields[i].v.text))
			abort();
	return 0;
}

static uint64_t sum(uint64_t before, const void *bytes, size_t n)
{
	const uint8_t *at = bytes;

	for (; n; n--)
		before = (before ^ *at++) * 0x100000001b3u;
	return before * 31 + 1;
}

/* A number for all events so far, in their order. */
static int add_event(void *ctx, const struct nettrace_event *e)
{
	const uint64_t numbers[] = {e->ticks, e->tid, e->cpu, e->meta->number, e->meta->event_id,
				    e->meta->version, e->meta->level, e->meta->opcode,
				    e->meta->keywords, e->meta->nfields};
	uint64_t *all = ctx;
	uint32_t i;

	*all = sum(*all, numbers, sizeof(numbers));
	*all = sum(*all, e->meta->provider, strlen(e->meta->provider));
	*all = sum(*all, e->meta->name, strlen(e->meta->name));
	for (i = 0; i < e->meta->nfields; i++)
		*all = sum(*all, e->meta->fields[i].name, strlen(e->meta->fields[i].name));
	*all = sum(*all, e->activity, e->activity ? 16 : 0);
	*all = sum(*all, e->related, e->related ? 16 : 0);
	*all = sum(*all, e->payload, e->payload_bytes);
	*all = sum(*all, e->stack, e->stack ? e->stack_bytes : 0);
	return 0;
}

static struct buf records;

static bool keep_records(const void *bytes, size_t n)
{
	buf_put(&records, bytes, n);
	return true;
}

static int take_records(const uint8_t *bytes, size_t n, nettrace_each *each, void *ctx)
{
	struct shares shares;
	struct nettrace_reading r = {.metas.shares = &shares};
	struct nettrace_end end;
	bool ended = false;
	size_t taken;
	int rc;

	shares_init(&shares, NETTRACE_ALL_KINDS_MAX_BYTES, 0);
	rc = nettrace_records_take(&r, bytes, n, &taken, &end, &ended, each, ctx, NULL);
	if (taken > n || (r.facts.known && !nettrace_facts_are_sound(&r.facts)))
		abort();
	nettrace_metas_free(&r.metas);
	return rc;
}

static void by_records(const uint8_t *data, size_t n)
{
	struct nettrace_shares shares = {0};
	struct buf out = {0};
	struct nettrace_writing w = {.send = keep_records, .out = &out, .shares = &shares};
	uint64_t here = 0, there = 0;
	struct nettrace *own;

	if (nettrace_new(&w.stream, NULL) || nettrace_new(&own, NULL))
		abort();
	nettrace_feed(own, data, n, add_event, &here, NULL);
	buf_reset(&records);
	if (!nettrace_records_write(&w, data, n) ||
	    take_records((const uint8_t *)records.data, records.len, add_event, &there) ||
	    here != there)
		abort();
	buf_reset(&records);
	if (!nettrace_records_refuse(&out, keep_records) ||
	    take_records((const uint8_t *)records.data, records.len, add_event, &there))
		abort();
	nettrace_free(own);
	nettrace_free(w.stream);
	buf_free(&out);
}

static void feed(struct nettrace_decode *decode, const uint8_t *data, size_t n)
{
	struct nettrace_shares shares;
	struct nettrace *t;
	size_t at, portion;
	struct err err;

	shares_init(&shares.kinds, NETTRACE_ALL_KINDS_MAX_BYTES, 0);
	shares_init(&shares.pending, NETTRACE_ALL_PENDING_MAX_BYTES, 0);
	if (nettrace_new(&t, &err))
		return;
	nettrace_use_shares(t, &shares, 0);
	for (at = 1; at < n; at += portion) {
		portion = data[0] ? data[0] : n;
		if (portion > n - at)
			portion = n - at;
		if (nettrace_feed(t, data + at, portion, see, decode, &err))
			break;
	}
	nettrace_free(t);
}

/* ---- code and its samples -------------------------------------------------------------------- */

#define CLR "Microsoft-Windows-DotNETRuntime"
#define IMAGE_AT 0x20000u

static void count_put(void *ctx, const struct event *e)
{
	if (e->nstack_frames > DOTNET_FRAMES_MAX + 1)
		abort();
	++*(unsigned *)ctx;
}

/* It also happens to the program: an allocation, or an exception of a type. */
static void deliver(const uint8_t *stack, uint32_t nbytes, uint64_t time_ns)
{
	struct event_field fields[] = {
		{.name = "AllocationAmount64", .type = FIELD_UINT, .v.u = nbytes},
		{.name = "TypeName", .type = FIELD_TEXT, .v.text = "App.Order"}};
	struct event e = {.kind = EVENT_GENERIC, .time_ns = time_ns, .provider = CLR,
			  .name = "GC/AllocationTick", .fields = fields, .nfields = 2};
	const struct nettrace_event raw = {.stack = stack, .stack_bytes = nbytes};
	struct gc_objects objects = {0};
	unsigned n = 0;

	dotnet_program_deliver(program, &objects, &raw, 8, &e, count_put, &n);
}

/* Frames of another source, of generated code and of a file that is mapped, become named ones. */
static void sample(struct frames *frames, struct dotnet_stacks *stacks, uint64_t address,
		   uint64_t time_ns)
{
	static const struct object_key keys[] = {
		{.kind = OBJECT_JIT, .pid = 1, .path = "[jit]"},
		{.kind = OBJECT_ELF, .path = "/app/Orders.dll"},
		{.kind = OBJECT_ELF, .path = "/lib/libc.so.6"}};
	struct process process = {.pid = 1};
	struct frame_ref refs[3];
	struct event e = {.kind = EVENT_SAMPLE, .process = &process, .time_ns = time_ns,
			  .stack_frames = refs, .nstack_frames = 3};
	struct symbol symbol;
	unsigned i;

	for (i = 0; i < 3; i++)
		refs[i] = (struct frame_ref){.object = objects_get(frames, &keys[i], 1),
					     .offset = i ? address - IMAGE_AT : address};
	dotnet_stacks_settle(stacks, &e);
	for (i = 0; i < e.nstack_frames; i++) {
		struct frame frame = {.object = e.stack_frames[i].object,
				      .offset = e.stack_frames[i].offset};

		if (dotnet_stacks_name(stacks, &frame, &symbol) && !symbol.name)
			abort();
		if (dotnet_stacks_late(stacks, refs[i].object, refs[i].offset, &symbol) &&
		    !symbol.name)
			abort();
	}
	for (i = 0; i < 3; i++)
		object_drop(refs[i].object, 1);
}

static void give_image(void)
{
	struct dotnet_image *image = calloc(1, sizeof(*image));

	if (!image)
		return;
	*image = (struct dotnet_image){.start = IMAGE_AT, .bytes = 0x10000,
				       .path = strdup("/app/Orders.dll")};
	if (image->path)
		dotnet_program_images(program, image, 1);
	else
		free(image);
}

static void learn(struct frames *frames, struct dotnet_stacks *stacks, const uint8_t *data,
		  size_t n)
{
	static const uint16_t ids[] = {143, 144, 144, 152, 153, 154, 141, 999};
	size_t at, nbytes;
	uint64_t time_ns = 10;

	dotnet_program_want_images(program);
	if (dotnet_program_wants_images(program) && dotnet_program_needs_rundown(program))
		give_image();
	for (at = 0; at + 2 <= n; at += 2 + nbytes, time_ns += 10) {
		const struct nettrace_meta meta = {
			.event_id = ids[data[at] & 7], .name = "",
			.provider = data[at] & 8 ? CLR "Rundown" : CLR};
		struct nettrace_event e = {.meta = &meta, .payload = data + at + 2};

		nbytes = data[at + 1] < n - at - 2 ? data[at + 1] : n - at - 2;
		e.payload_bytes = (uint32_t)nbytes;
		if (dotnet_tells_code(&e))
			dotnet_program_learn(program, &e, data[at] & 16 ? 1 : time_ns);
		/* Where a method's start stands: its own address, and a time before it. */
		if (nbytes >= 24) {
			sample(frames, stacks, le64(e.payload + 16), time_ns);
			sample(frames, stacks, le64(e.payload + 16), 1);
			deliver(e.payload + 16, (uint32_t)nbytes - 16, time_ns);
		}
	}
}

/* ---- requests, and the name of a socket ------------------------------------------------------ */

static void ask(const uint8_t *data, size_t n)
{
	struct buf out = {.max_bytes = 4096};
	struct dotnet_provider provider = {.level = 4};
	char text[256];
	uint64_t key;
	uint32_t pid;

	n = n < sizeof(text) ? n : sizeof(text) - 1;
	memcpy(text, data, n);
	text[n] = '\0';
	if (dotnet_socket_name(text, &pid, &key) && !pid)
		abort();
	provider.name = provider.arguments = text;
	dotnet_ask_collect(&out, &provider, 1, 4, n & 1);
	dotnet_ask_stop(&out, n);
	dotnet_ask_perf_map(&out);
	buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct nettrace_decode *decode;
	static struct frames *frames;
	static struct dotnet_stacks *stacks;
	struct dotnet_answer answer;
	struct err err;

	if (!decode && (nettrace_decode_new(&decode, &err) || frames_new(&frames, &err) ||
			dotnet_stacks_new(frames, 0, &stacks, &err)))
		return 0;
	dotnet_answer(data, n, &answer, &err);
	ask(data, n);
	if (!n)
		return 0;
	program = dotnet_program_ref(dotnet_program_new(stacks, 1, 1, 0));
	if (!program)
		abort();
	if (data[0] == 255)
		learn(frames, stacks, data + 1, n - 1);
	else if (data[0] == 254)
		take_records(data + 1, n - 1, see, decode);
	else
		feed(decode, data, n);
	if (data[0] < 254 && n < 32768)          /* payloads are not cut, no event is lost */
		by_records(data + 1, n - 1);
	dotnet_program_free(program, 1);
	dotnet_program_free(program, 1);
	dotnet_stacks_look(stacks, 10000000000);
	dotnet_stacks_look(stacks, UINT64_MAX);
	frames_sweep_all(frames, UINT64_MAX);
	return 0;
}
