/* The stream of a .NET program; the first byte gives the size of the portions it comes in. */
#include "source/dotnet/ipc.h"
#include "source/dotnet/nettrace_decode.h"
#include "source/dotnet/stacks.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static struct dotnet_program *program;

static void see_stack(const struct nettrace_event *event)
{
	static struct frame_ref frames[DOTNET_FRAMES_MAX + 1];

	if (dotnet_tells_code(event))
		dotnet_program_learn(program, event, event->ticks);
	if (event->stack &&
	    dotnet_program_frames(program, event->stack, event->stack_bytes, 8, event->ticks,
				  event->meta->name, frames) > DOTNET_FRAMES_MAX + 1)
		abort();
}

static int see(void *ctx, const struct nettrace_event *event)
{
	const struct etw_decoded *d = nettrace_decode_event(ctx, event, event->tid & 1 ? 4 : 8);
	uint32_t i;

	see_stack(event);
	if (d->nfields > EVENT_MAX_FIELDS || !d->name || !d->provider)
		abort();
	for (i = 0; i < d->nfields; i++)
		if (!d->fields[i].name || (d->fields[i].type == FIELD_TEXT && !d->fields[i].v.text))
			abort();
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static struct nettrace_decode *decode;
	static struct frames *frames;
	static struct dotnet_stacks *stacks;
	struct dotnet_answer answer;
	struct nettrace *t;
	struct err err;
	size_t at, portion;

	if (!decode && (nettrace_decode_new(&decode, &err) || frames_new(&frames, &err) ||
			dotnet_stacks_new(frames, 0, &stacks, &err)))
		return 0;
	if (n > 20)
		dotnet_answer(data, n, &answer, &err);
	if (!n || nettrace_new(&t, &err))
		return 0;
	program = dotnet_program_new(stacks, 1, 1, 0);
	if (!program)
		abort();
	for (at = 1; at < n; at += portion) {
		portion = data[0] ? data[0] : n;
		if (portion > n - at)
			portion = n - at;
		if (nettrace_feed(t, data + at, portion, see, decode, &err))
			break;
	}
	nettrace_free(t);
	dotnet_program_free(program, 1);
	dotnet_stacks_look(stacks, UINT64_MAX);
	return 0;
}
