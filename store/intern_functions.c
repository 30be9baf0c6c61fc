/*
 * Functions -> pages: where they begin, and what they are called. Names of one program have much in
 * common, and the linker's name holds the readable one nearly always: of 17,700 functions of compilers rows
 * and their index took 94 bytes each, pages take 25.
 *
 * The newest are known by content: read from their pages at first, the writer's own then. When their
 * names come to KNOWN_FUNCTION_BYTES_MAX all are forgotten; one that comes again is stored again.
 */
#include "store/interner_private.h"

#include <stdlib.h>

static int no_memory(struct err *err)
{
	return err_memory(err, "while storing a segment");
}

void functions_forget(struct interner *in)
{
	table_clear(&in->function_table);
	in->nfunctions = in->functions_stored = 0;
	in->next_function = 0;
	buf_reset(&in->function_bytes);
}

/* ---- what is known -------------------------------------------------------------------------- */

static const char *text_at(const struct interner *in, uint32_t at)
{
	return at == UINT32_MAX ? NULL : in->function_bytes.data + at;
}

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_function(const void *ctx, uint32_t value, const void *key)
{
	const struct interner *in = ctx;
	const struct known_function *a = &in->function_items[value];
	const struct page_function *b = key;

	return a->offset == b->offset && a->module_id == b->module_id &&
	       same_text(text_at(in, a->at), b->name) && same_text(text_at(in, a->raw_at), b->raw_name) &&
	       same_text(text_at(in, a->module_at), b->module);
}

static uint64_t hash_of(const struct page_function *f)
{
	return hash_pair(hash_pair((uint64_t)f->module_id, f->offset), hash_bytes(f->name, strlen(f->name)));
}

static uint32_t keep_text(struct interner *in, const char *text)
{
	uint32_t at = (uint32_t)in->function_bytes.len;

	if (!text)
		return UINT32_MAX;
	buf_put(&in->function_bytes, text, strlen(text) + 1);
	return at;
}

static int know(struct interner *in, const struct page_function *f, struct err *err)
{
	struct known_function known = {.id = f->id, .module_id = f->module_id, .offset = f->offset};
	uint32_t cap = in->functions_cap ? in->functions_cap * 2 : 256;

	if (in->nfunctions == in->functions_cap) {
		struct known_function *items = realloc(in->function_items, cap * sizeof(*items));

		if (!items)
			return no_memory(err);
		in->function_items = items;
		in->functions_cap = cap;
	}
	known.at = keep_text(in, f->name);
	known.raw_at = keep_text(in, f->raw_name);
	known.module_at = keep_text(in, f->module);
	if (in->function_bytes.failed || table_add(&in->function_table, hash_of(f), in->nfunctions))
		return no_memory(err);
	in->function_items[in->nfunctions++] = known;
	return 0;
}

/* ---- what there is -------------------------------------------------------------------------- */

static int learn_page(struct interner *in, const struct function_page *page, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 0; !rc && i < page->n; i++) {
		const struct page_function *f = &page->functions[i];

		if (table_find(&in->function_table, hash_of(f), same_function, in, f) == TABLE_NONE)
			rc = know(in, f, err);
	}
	return rc;
}

static int learn_row(struct interner *in, const struct page_row *row, struct err *err)
{
	struct function_page page;
	int rc = function_page_unpack(&row->data, &row->more, row->first, &page, err);

	if (!rc)
		rc = learn_page(in, &page, err);
	function_page_free(&page);
	return rc;
}

static bool knows_enough(const struct interner *in)
{
	return in->function_bytes.len >= KNOWN_FUNCTION_BYTES_MAX / 2;
}

/* What is damaged is not known, and stored again. */
static const struct page_learner learner = {
	.what = "functions",
	.last_id = "SELECT coalesce((SELECT last_id FROM function_page ORDER BY first_id DESC LIMIT 1), 0)",
	.newest = "SELECT first_id, last_id, data, names FROM function_page"
		  " WHERE first_id BETWEEN 1 AND ? ORDER BY first_id DESC LIMIT 1",
	.learn = learn_row,
	.enough = knows_enough,
};

static int learn(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	int rc = page_learn(s, &learner, &in->next_function, err);

	if (!rc)
		in->functions_stored = in->nfunctions;
	return rc;
}

/* ---- ids ------------------------------------------------------------------------------------ */

static int find(struct store *s, const struct function *f, int64_t *id, struct err *err)
{
	struct page_function key = {.offset = f->offset, .name = f->name, .raw_name = f->raw_name,
				    .module = f->module};
	struct interner *in = s->interner;
	uint32_t at;
	int rc = in->next_function ? 0 : learn(s, err);

	if (!rc)
		rc = module_id(s, f->object, &key.module_id, err);
	if (rc)
		return rc;
	at = table_find(&in->function_table, hash_of(&key), same_function, in, &key);
	if (at != TABLE_NONE) {
		*id = in->function_items[at].id;
		return 0;
	}
	key.id = in->next_function;
	rc = know(in, &key, err);
	if (rc)
		return rc;
	*id = in->next_function++;
	return 0;
}

int function_id(struct store *s, const struct function *f, int64_t *id, struct err *err)
{
	int rc;

	if (idmap_get(&s->interner->functions, (uintptr_t)f, id))
		return 0;
	rc = find(s, f, id, err);
	if (!rc && idmap_set(&s->interner->functions, (uintptr_t)f, *id))
		rc = no_memory(err);
	return rc;
}

/* ---- pages ---------------------------------------------------------------------------------- */

int function_page_insert(struct store *s, const struct page_function *functions, uint32_t n,
			 struct columns *c, struct buf *data, struct buf *names, struct err *err)
{
	struct args a;
	int rc = function_page_pack(s->deflater, c, functions, n, data, names, err);

	if (!rc)
		rc = db_statement(s, "INSERT INTO function_page(first_id, last_id, functions, data, names)"
				  " VALUES(?, ?, ?, ?, ?)", &a, err);
	if (rc)
		return rc;
	arg_int(&a, functions[0].id);
	arg_int(&a, functions[n - 1].id);
	arg_int(&a, n);
	arg_blob(&a, data->data, data->len);
	arg_blob(&a, names->data, names->len);
	return db_run(s, a.st, err);
}

int functions_flush(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	struct page_function *fresh;
	uint32_t n, i;
	int rc = 0;

	while (!rc && in->functions_stored < in->nfunctions) {
		n = in->nfunctions - in->functions_stored;
		n = n < PAGE_FRAMES ? n : PAGE_FRAMES;
		fresh = malloc(n * sizeof(*fresh));
		if (!fresh)
			return no_memory(err);
		for (i = 0; i < n; i++) {
			const struct known_function *f = &in->function_items[in->functions_stored + i];

			fresh[i] = (struct page_function){f->id, f->module_id, f->offset, text_at(in, f->at),
							  text_at(in, f->raw_at), text_at(in, f->module_at)};
		}
		rc = function_page_insert(s, fresh, n, &in->columns, &in->packed, &in->packed_functions, err);
		in->functions_stored += n;
		free(fresh);
	}
	if (!rc && in->function_bytes.len > KNOWN_FUNCTION_BYTES_MAX) {
		int64_t next = in->next_function;

		functions_forget(in);
		in->next_function = next;
	}
	return rc;
}
