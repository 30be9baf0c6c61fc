/*
 * What pprof's profile.proto and OpenTelemetry's profiles have in common: the strings, mappings,
 * functions and locations of an incident as protobuf messages, which differ in field numbers only.
 * Each is written once, when it is first needed, and numbered from 1; strings from 0, which is "".
 *
 * A location is an address with all that was inlined there, its lines innermost first. Addresses
 * are relative to the module. One thread.
 */
#pragma once

#include "export/sums.h"

#include "base/text_table.h"

struct profile;

/* Field numbers; 0 = is not written. */
struct profile_fields {
	uint8_t mappings, locations, functions, strings;     /* of the tables */
	uint8_t mapping_id, mapping_file;
	uint8_t location_id, location_mapping, location_address, location_line;
	uint8_t function_id, function_name, function_system, function_file;
	/* Append more fields to p->part. Its strings first: they may need p->text. */
	void (*more_of_mapping)(struct profile *p, const struct incident_module *m);
	void (*more_of_location)(struct profile *p, uint32_t frame);     /* FRAME_NONE: no code */
};

struct profile {
	const struct incident *in;
	const struct profile_fields *fields;
	struct buf tables;                   /* the messages */
	struct buf part, inner;              /* a message inside it, and one inside that */
	struct buf text;                     /* scratch */
	struct text_table strings;
	struct text_table functions;         /* struct function_key of each */
	struct text_table locations;         /* frames, leaf first, or a mark's name */
	uint32_t *twins;                     /* incident_frame_twins() */
	uint32_t *function_of_frame;         /* ids of them; 0 = not written */
	uint32_t *location_of_frame;         /* the same, without functions inlined into it */
	uint32_t *mapping_of_module;
	uint32_t nmappings;
	int failed;                          /* sticky */
};

/* "nanoseconds", "bytes", "count": of each enum metric_unit */
extern const char *const profile_units[METRIC_UNITS];

int profile_begin(struct profile *p, const struct incident *in, const struct profile_fields *fields,
		  struct err *err);
void profile_put_strings(struct profile *p);         /* the last table */
void profile_free(struct profile *p);

/* Numbers. clean: as name_put() writes it. */
uint32_t profile_string(struct profile *p, const char *text, size_t n);
uint32_t profile_text(struct profile *p, const char *text);
uint32_t profile_clean_text(struct profile *p, const char *text);
uint32_t profile_mapping(struct profile *p, uint32_t module);
/* Of the key in a table, from 1 on; *is_new: it must be written. */
uint32_t profile_id(struct profile *p, struct text_table *t, const void *key, size_t n,
		    bool *is_new);
/* For a PDB the GUID as text has it, then the age; else the bytes. 0 = none. */
uint32_t profile_build_id(struct profile *p, const struct incident_module *m);

/* Append the ids of a sum's locations, leaf first, as a packed field has them. */
void profile_put_locations(struct profile *p, const struct sum *s, const struct path *path,
			   struct buf *ids);

/* ---- protobuf; a number of 0 is the default, and is left out --------------------------------- */

void proto_put_varint(struct buf *b, uint64_t v);
void proto_put_int(struct buf *b, unsigned field, uint64_t v);
void proto_put_fixed64(struct buf *b, unsigned field, uint64_t v);
void proto_put_bytes(struct buf *b, unsigned field, const void *bytes, size_t n);
void proto_put_part(struct buf *b, unsigned field, const struct buf *part);
