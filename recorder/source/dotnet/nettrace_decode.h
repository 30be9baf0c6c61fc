/*
 * Decodes events of a nettrace stream, with the same names and fields as in ETW: events of the
 * runtime by their known classes (etw/class.h), events of EventSources by their description in the
 * stream ("RequestStart" becomes "Request/Start"). Portable; one thread at a time.
 */
#pragma once

#include "source/dotnet/event_queue.h"
#include "source/etw/decode.h"

struct nettrace_decode;

int nettrace_decode_new(struct nettrace_decode **out, struct err *err);
void nettrace_decode_free(struct nettrace_decode *d);       /* NULL allowed */

/* An ActivityID, if any, becomes the last field. The result lives until the next call. */
const struct etw_decoded *nettrace_decode_event(struct nettrace_decode *d,
						const struct nettrace_event *event,
						uint32_t pointer_bytes);
/*
 * The same as an event of this process, which may be NULL. threads: where its thread is added;
 * NULL = its thread is not known here. out->names_stay: as long as the stream's parser.
 */
void nettrace_decode_queued(struct nettrace_decode *d, const struct dotnet_queued *queued,
			    uint32_t pointer_bytes, struct process *process,
			    struct processes *threads, struct event *out);
