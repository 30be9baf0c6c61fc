/*
 * Shared by nettrace.c (the stream), nettrace_meta.c (the kinds of events) and nettrace_records.c
 * (what is left of a stream).
 */
#pragma once

#include "base/buf.h"
#include "base/bytes.h"
#include "base/table.h"
#include "source/dotnet/nettrace.h"

/* A cursor over complete bytes. Reading past the end gives 0 and sets `bad`. */
struct nettrace_in {
	const uint8_t *at, *end;
	bool bad;
};

static inline const uint8_t *in_bytes(struct nettrace_in *in, size_t n)
{
	const uint8_t *at = in->at;

	if ((size_t)(in->end - in->at) < n) {
		in->bad = true;
		in->at = in->end;
		return NULL;
	}
	in->at += n;
	return at;
}

static inline uint64_t in_number(struct nettrace_in *in, unsigned n)
{
	const uint8_t *at = in_bytes(in, n);

	return at ? le_sized(at, n) : 0;
}

/* With the ends of allocations, and of arrays and tables that double. */
#define NETTRACE_ENTRY_BYTES 64u

struct nettrace_metas {
	struct nettrace_meta **all;
	uint32_t n, room;
	struct table by_number;
	size_t nbytes;
	uint32_t nrefused;                   /* kinds that exceeded the share */
	struct shares *shares;               /* NULL = none */
	struct share share;
};

/* The stacks that events name by number, since the last SPBlock. */
struct nettrace_stacks {
	uint32_t first, n, room;             /* numbers from first on */
	struct nettrace_stack {
		uint32_t end, hash;          /* end: in bytes */
	} *all;
	size_t bytes_room;
	uint8_t *bytes;
	struct shares *shares;               /* NULL = none */
	struct share share;
	bool skipped;                        /* they are looked at, and not kept */
};

void nettrace_stacks_free(struct nettrace_stacks *s);
void nettrace_stacks_forget(struct nettrace_stacks *s);
/* Take the body of a StackBlock. What exceeds the ceilings is left out: 0 or ERR_FORMAT. */
int nettrace_stacks_take(struct nettrace_stacks *s, struct nettrace_in *in);
/* NULL = none of this number. */
const uint8_t *nettrace_stacks_get(const struct nettrace_stacks *s, uint32_t number,
				   uint32_t *nbytes, uint32_t *hash);

void nettrace_metas_free(struct nettrace_metas *m);
struct nettrace_meta *nettrace_metas_find(const struct nettrace_metas *m, uint32_t number);
/*
 * Add a kind of event, from the payload of a metadata event; known kinds are not changed. One that
 * exceeds the share is counted and not added.
 */
int nettrace_metas_add(struct nettrace_metas *m, const uint8_t *payload, size_t n, struct err *err);

/* A kind of event whose texts are offsets into UTF-8 with its NULs. */
struct nettrace_draft {
	struct nettrace_meta meta;           /* but provider, name and fields */
	size_t provider, name;
	struct buf texts;
	uint8_t types[NETTRACE_FIELDS_MAX];
	size_t names[NETTRACE_FIELDS_MAX];
};

/* The same, when it is read already; the texts are copied. */
int nettrace_metas_put(struct nettrace_metas *m, const struct nettrace_draft *d, struct err *err);
bool nettrace_type_is_plain(uint32_t type);

/* The i-th kind of event that the stream has described; NULL = not so many. */
const struct nettrace_meta *nettrace_kind(const struct nettrace *t, uint32_t i);
/* What may be divided by, and read by. */
bool nettrace_facts_are_sound(const struct nettrace_facts *f);
