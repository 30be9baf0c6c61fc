/*
 * Functions -> pages: where they begin, and what they are called.
 *
 * Names of one program have much in common, and the linker's name nearly always holds the readable
 * one. The 17,700 functions of compilers took 94 bytes each as rows with an index; in pages they
 * take 25.
 *
 * The newest functions are known by content: first those read from their pages, then the writer's
 * own. When they exceed KNOWN_FUNCTION_BYTES_MAX or known_max all are forgotten; a function that
 * comes again is stored again.
 */
#include "store/interner_private.h"

#include "base/array.h"

#include <string.h>

void functions_forget(struct interner *in)
{
	table_clear(&in->function_table);
	in->nfunctions = in->functions_stored = 0;
	text_table_free(&in->function_names);
}

/* ---- known functions ------------------------------------------------------------------------ */

static bool same_text(const char *a, const char *b)
{
	return a && b ? strcmp(a, b) == 0 : a == b;
}

static bool same_function(const void *ctx, uint32_t value, const void *key)
{
	const struct page_function *a = &((const struct interner *)ctx)->functions[value];
	const struct page_function *b = key;

	return a->offset == b->offset && a->module_id == b->module_id &&
	       same_text(a->name, b->name) && same_text(a->raw_name, b->raw_name) &&
	       same_text(a->module, b->module);
}

static uint64_t function_hash(const struct page_function *f)
{
	return hash_pair(hash_pair((uint64_t)f->module_id, f->offset),
			 hash_bytes(f->name, strlen(f->name)));
}

/* Make *text the interner's own copy; NULL stays NULL. Returns false without memory. */
static bool keep_text(struct interner *in, const char **text)
{
	uint32_t number = *text ? text_table_add(&in->function_names, *text, strlen(*text)) : 0;

	if (*text && number != TABLE_NONE)
		*text = text_table_get(&in->function_names, number);
	return number != TABLE_NONE;
}

static int add_known(struct interner *in, const struct page_function *f, struct err *err)
{
	struct page_function known = *f;

	if (!keep_text(in, &known.name) || !keep_text(in, &known.raw_name) ||
	    !keep_text(in, &known.module) ||
	    ARRAY_ROOM(in->functions, in->functions_cap, in->nfunctions + 1) ||
	    table_add(&in->function_table, function_hash(f), in->nfunctions))
		return err_memory(err, "while storing a segment");
	in->functions[in->nfunctions++] = known;
	return 0;
}

static int learn_row(struct interner *in, const struct page_row *row, struct err *err)
{
	struct function_page page;
	uint32_t i;
	int rc = function_page_unpack(&row->data, &row->more, row->first, &page, err);

	for (i = 0; !rc && i < page.n; i++) {
		const struct page_function *f = &page.functions[i];

		if (table_find(&in->function_table, function_hash(f), same_function, in, f) ==
		    TABLE_NONE)
			rc = add_known(in, f, err);
	}
	function_page_free(&page);
	return rc;
}

/* Whether this part of what may be known is reached: 1 = all of it, 2 = half. */
static bool knows_part(const struct interner *in, unsigned part)
{
	return in->function_names.bytes > KNOWN_FUNCTION_BYTES_MAX / part ||
	       in->nfunctions > in->known_max / part;
}

static bool knows_enough(const struct interner *in)
{
	return knows_part(in, 2);
}

static const struct page_learner learner = {
	.what = "functions",
	.last_id = "SELECT coalesce((SELECT last_id FROM function_page"
		   " ORDER BY first_id DESC LIMIT 1), 0)",
	.newest = "SELECT first_id, last_id, data, names FROM function_page"
		  " WHERE first_id BETWEEN 1 AND ? ORDER BY first_id DESC LIMIT 1",
	.learn = learn_row,
	.knows_enough = knows_enough,
};

static int learn_newest(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	int rc = page_learn(s, &learner, &in->next_function, err);

	if (!rc)
		in->functions_stored = in->nfunctions;
	return rc;
}

/* ---- ids ------------------------------------------------------------------------------------ */

int function_id(struct store *s, const struct function *f, int64_t *id, struct err *err)
{
	struct page_function key = {.offset = f->offset, .name = f->name, .raw_name = f->raw_name,
				    .module = f->module};
	struct interner *in = s->interner;
	uint32_t at;
	int rc = in->next_function ? 0 : learn_newest(s, err);

	if (!rc)
		rc = module_id(s, f->object, &key.module_id, err);
	if (rc)
		return rc;
	at = table_find(&in->function_table, function_hash(&key), same_function, in, &key);
	if (at != TABLE_NONE) {
		*id = in->functions[at].id;
		return 0;
	}
	key.id = in->next_function;
	rc = add_known(in, &key, err);
	if (rc)
		return rc;
	*id = in->next_function++;
	return 0;
}

/* ---- pages ---------------------------------------------------------------------------------- */

int function_page_insert(struct store *s, const struct page_function *functions, uint32_t n,
			 struct columns *c, struct buf *data, struct buf *names, struct err *err)
{
	int rc = function_page_pack(s->deflater, c, functions, n, data, names, err);

	if (rc)
		return rc;
	return db_run(s, "INSERT INTO function_page(first_id, last_id, functions, data, names)"
		      " VALUES(?, ?, ?, ?, ?)",
		      ARGS(arg_int(functions[0].id), arg_int(functions[n - 1].id), arg_int(n),
			   arg_buf(data), arg_buf(names)), err);
}

int functions_flush(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	uint32_t n;
	int rc = 0;

	while (!rc && in->functions_stored < in->nfunctions) {
		n = in->nfunctions - in->functions_stored;
		n = n < PAGE_FRAMES ? n : PAGE_FRAMES;
		rc = function_page_insert(s, in->functions + in->functions_stored, n, &in->columns,
					  &in->packed, &in->packed_functions, err);
		in->functions_stored += n;
	}
	if (!rc && knows_part(in, 1))
		functions_forget(in);
	return rc;
}
