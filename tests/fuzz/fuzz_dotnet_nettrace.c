/* The stream of a .NET program; the first byte gives the size of the portions it comes in. */
#include "source/dotnet/ipc.h"
#include "source/dotnet/nettrace_decode.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static int see(void *ctx, const struct nettrace_event *event)
{
	const struct etw_decoded *d = nettrace_decode_event(ctx, event, event->tid & 1 ? 4 : 8);
	uint32_t i;

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
	struct dotnet_answer answer;
	struct nettrace *t;
	struct err err;
	size_t at, portion;

	if (!decode && nettrace_decode_new(&decode, &err))
		return 0;
	if (n > 20)
		dotnet_answer(data, n, &answer, &err);
	if (!n || nettrace_new(&t, &err))
		return 0;
	for (at = 1; at < n; at += portion) {
		portion = data[0] ? data[0] : n;
		if (portion > n - at)
			portion = n - at;
		if (nettrace_feed(t, data + at, portion, see, decode, &err))
			break;
	}
	nettrace_free(t);
	return 0;
}
