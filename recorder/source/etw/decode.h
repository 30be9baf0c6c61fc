/*
 * What an ETW record says: provider, event name and fields, by whatever describes it.
 *
 * In this order: the known classes (etw/class.h); TraceLogging metadata in the record itself; the
 * manifest that this process's EventSource wrote, else the latest one of this provider; schemas that
 * merging added to the trace. Of an event that nothing describes: its provider's GUID, "EventID(7)" or
 * "Opcode(7)", and no fields.
 *
 * Manifests and schemas are learned from the records themselves, in ceilings that are counted. They may
 * come after the events they describe: a file is best read twice, learning only the first time. One
 * thread at a time.
 */
#ifndef SOURCE_ETW_DECODE_H
#define SOURCE_ETW_DECODE_H

#include "base/err.h"
#include "model/event.h"
#include "source/etw/class.h"

#define ETW_LEARNED_MAX_BYTES ((size_t)32 << 20)     /* manifests and schemas, with what is being put together */
#define ETW_MANIFESTS_MAX 4096u                      /* different texts; the same of many processes is one */
#define ETW_SCHEMAS_MAX 65536u
#define ETW_MANIFEST_WRITERS_MAX 65536u                      /* provider and process that wrote a manifest */
#define ETW_PARTIAL_MANIFESTS_MAX 64u                            /* manifests of which not all pieces have come */

struct etw_learned {
	uint32_t nmanifests, nschemas, nwriters, npartial;
	size_t nbytes;                       /* of memory, all of it */
	uint64_t unreadable;                 /* manifests and schemas that made no sense or were cut */
	uint64_t refused;                    /* not kept: a ceiling, or no memory */
	uint64_t torn;                       /* manifests with a piece missing or out of order */
};

/* One record, decoded. All texts live until the next call with this decoder, at most. */
struct etw_decoded {
	const char *provider, *name;         /* "Microsoft-Windows-DotNETRuntime", "GC/Start"; never NULL */
	enum etw_class_id id;                /* ETW_OTHER unless a known class */
	const struct etw_class *class;       /* NULL unless a known class */
	bool described;                      /* something said what its fields are */
	bool cut;                            /* not all of its fields, or not all of a text, are here */
	struct event_field fields[EVENT_MAX_FIELDS];
	uint32_t nfields;
	uint64_t hex;                        /* bit i: field i is read in hex */
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

/* Take what this record says about others; cheap for all that says nothing. */
void etw_decode_learn(struct etw_decode *decode, const struct etw_record *record);

/* Provider, name and class, no fields. */
void etw_decode_name(struct etw_decode *decode, const struct etw_record *record, struct etw_decoded *out);

/* All of it. */
void etw_decode_event(struct etw_decode *decode, const struct etw_record *record, struct etw_decoded *out);

void etw_decode_learned(const struct etw_decode *decode, struct etw_learned *out);

#endif
