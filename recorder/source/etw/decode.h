/*
 * Decodes an ETW record: provider, event name and fields.
 *
 * The description comes from the first of these that has one: the known classes (etw/class.h);
 * TraceLogging metadata in the record itself; the manifest that this process's EventSource wrote,
 * else the provider's latest manifest; schemas that merging added to the trace. Without a
 * description, an event has its provider's GUID, the name "EventID(7)" or "Opcode(7)", and no
 * fields.
 *
 * Manifests and schemas are learned from the records; the ceilings of etw/manifest_store.h hold,
 * and refusals are counted. A description may follow the events that it describes, so a file is
 * best read twice, the first time only to learn. One thread at a time.
 */
#pragma once

#include "base/err.h"
#include "model/event.h"
#include "source/etw/class.h"

struct etw_learned {
	size_t nbytes;                       /* all memory */
	uint64_t unreadable;                 /* malformed or cut manifests and schemas */
	uint64_t refused;                    /* not kept: a ceiling, or no memory */
	uint64_t torn;                       /* manifests with a missing or misplaced piece */
};

/* One decoded record. Texts live until the next call with this decoder. */
struct etw_decoded {
	const char *provider, *name;         /* "Microsoft-Windows-DotNETRuntime", "GC/Start" */
	const struct etw_class *class;       /* NULL unless a known class */
	bool cut;                            /* a field, or the end of a text, is missing */
	struct event_field fields[EVENT_MAX_FIELDS];
	uint32_t nfields;
	uint64_t hex;                        /* bit i: field i is shown in hex */
};

/* Give an event of the model the provider, name and fields; it borrows them. */
static inline void etw_decoded_fill(const struct etw_decoded *d, struct event *out)
{
	out->provider = d->provider;
	out->name = d->name;
	out->fields = d->fields;
	out->nfields = d->nfields;
	out->hex_fields = d->hex;
}

struct etw_decode;

int etw_decode_new(struct etw_decode **out, struct err *err);       /* 0 or ERR_MEMORY */
void etw_decode_free(struct etw_decode *decode);                    /* NULL allowed */

/* Learn what a record says about other records; cheap for all other records. */
void etw_decode_learn(struct etw_decode *decode, const struct etw_record *record);

/*
 * Unless the class is known, ActivityID and RelatedActivityID of the header become the last fields,
 * if there are any.
 */
void etw_decode_event(struct etw_decode *decode, const struct etw_record *record,
		      struct etw_decoded *out);

void etw_decode_learned(const struct etw_decode *decode, struct etw_learned *out);
