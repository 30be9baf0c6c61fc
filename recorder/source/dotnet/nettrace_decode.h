/*
 * What an event of a nettrace stream says, in the same names and fields as from ETW: events of the
 * runtime by their known classes (etw/class.h), those of EventSources by the description that the
 * stream has of them ("RequestStart" is "Request/Start", as there). Portable; one thread at a time.
 */
#ifndef SOURCE_NETTRACE_DECODE_H
#define SOURCE_NETTRACE_DECODE_H

#include "source/etw/decode.h"
#include "source/dotnet/nettrace.h"

struct nettrace_decode;

int nettrace_decode_new(struct nettrace_decode **out, struct err *err);
void nettrace_decode_free(struct nettrace_decode *d);       /* NULL allowed */

/* ActivityID comes last, where there is one. Texts live until the next call. */
void nettrace_decode_event(struct nettrace_decode *d, const struct nettrace_event *event,
			   uint32_t pointer_bytes, struct etw_decoded *out);

#endif
