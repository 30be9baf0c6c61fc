/*
 * Decodes events of a nettrace stream, with the same names and fields as in ETW: events of the
 * runtime by their known classes (etw/class.h), events of EventSources by their description in the
 * stream ("RequestStart" becomes "Request/Start"). Portable; one thread at a time.
 */
#pragma once

#include "source/etw/decode.h"
#include "source/dotnet/nettrace.h"

struct nettrace_decode;

int nettrace_decode_new(struct nettrace_decode **out, struct err *err);
void nettrace_decode_free(struct nettrace_decode *d);       /* NULL allowed */

/* An ActivityID, if any, becomes the last field. Texts live until the next call. */
void nettrace_decode_event(struct nettrace_decode *d, const struct nettrace_event *event,
			   uint32_t pointer_bytes, struct etw_decoded *out);
