/*
 * Events of several streams, held until no older one can come, and given out in the order of time.
 * Bounded: what does not fit is refused. One thread.
 */
#ifndef SOURCE_DOTNET_LINE_H
#define SOURCE_DOTNET_LINE_H

#include "source/dotnet/nettrace.h"

#define DOTNET_LINE_MAX 65536u               /* events */
#define DOTNET_LINE_MAX_BYTES ((size_t)16 << 20)
#define DOTNET_PAYLOAD_MAX 65535u            /* longer ones are cut; the runtime makes none */

struct dotnet_held {
	uint64_t time_ns, order;
	void *owner;                         /* of whose kinds of events this is, with how many of it */
	uint32_t *nheld;                     /* are held: it must stay until that is 0 */
	struct nettrace_event event;         /* payload and activities: copies */
};

struct dotnet_line;

int dotnet_line_new(struct dotnet_line **out, struct err *err);
void dotnet_line_free(struct dotnet_line *line);       /* NULL allowed; before the owners */

/* false when it is full, or memory is. */
bool dotnet_line_put(struct dotnet_line *line, uint64_t time_ns, void *owner, uint32_t *nheld,
		     const struct nettrace_event *event);
bool dotnet_line_is_empty(const struct dotnet_line *line);
/* Those up to then; each is gone after the call. */
void dotnet_line_release(struct dotnet_line *line, uint64_t until_ns,
			 void (*each)(void *ctx, const struct dotnet_held *held), void *ctx);

#endif
