/*
 * Command lines -> pages. A busy machine runs the same few thousand of them, 500 bytes long, and
 * they have much in common: the new ones of a segment are deflated together.
 *
 * Measured on 525 s of compilers, 32,481 processes: as texts in rows their command lines take
 * 3.0 MB, of which 2.2 MB are different ones.
 */
#include "store/interner_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

void texts_forget(struct interner *in)
{
	table_clear(&in->text_table);
	in->ntexts = in->texts_stored = 0;
	buf_reset(&in->text_bytes);
	in->text_bytes_stored = 0;
}

static const char *known_text(const struct interner *in, uint32_t index)
{
	return in->text_bytes.data + in->texts[index].at;
}

static bool same_text(const void *ctx, uint32_t value, const void *key)
{
	return strcmp(known_text(ctx, value), key) == 0;
}

static int know(struct interner *in, const char *text, uint64_t hash, struct err *err)
{
	struct known_text known = {.id = in->next_text, .at = (uint32_t)in->text_bytes.len};

	buf_put(&in->text_bytes, text, strlen(text) + 1);
	if (ARRAY_ROOM(in->texts, in->texts_cap, in->ntexts + 1) || in->text_bytes.failed ||
	    table_add(&in->text_table, hash, in->ntexts))
		return err_memory(err, "while storing a segment");
	in->texts[in->ntexts++] = known;
	in->next_text++;
	return 0;
}

int text_id(struct store *s, const char *text, int64_t *id, struct err *err)
{
	struct interner *in = s->interner;
	uint64_t hash = hash_bytes(text, strlen(text));
	uint32_t at = table_find(&in->text_table, hash, same_text, in, text);
	int rc = 0;

	if (at != TABLE_NONE) {
		*id = in->texts[at].id;
		return 0;
	}
	if (!in->next_text)
		rc = page_next_id(s, "SELECT coalesce((SELECT last_id FROM text_page"
				  " ORDER BY first_id DESC LIMIT 1), 0)", "texts", &in->next_text,
				  err);
	if (!rc && in->text_bytes.len - in->text_bytes_stored > TEXT_PAGE_BYTES)
		rc = texts_flush(s, err);
	if (rc)
		return rc;
	*id = in->next_text;
	return know(in, text, hash, err);
}

static int insert_page(struct store *s, const char *const *texts, uint32_t n, int64_t first,
		       struct err *err)
{
	struct interner *in = s->interner;
	int rc = text_page_pack(s->deflater, &in->columns, texts, n, &in->packed, err);

	if (rc)
		return rc;
	return db_run(s, "INSERT INTO text_page(first_id, last_id, data) VALUES(?, ?, ?)",
		      ARGS(arg_int(first), arg_int(first + n - 1), arg_buf(&in->packed)), err);
}

int texts_flush(struct store *s, struct err *err)
{
	struct interner *in = s->interner;
	uint32_t n = in->ntexts - in->texts_stored, i;
	const char **texts;
	int rc;

	if (!n)
		return 0;
	texts = malloc(n * sizeof(*texts));
	if (!texts)
		return err_memory(err, "while storing a segment");
	for (i = 0; i < n; i++)
		texts[i] = known_text(in, in->texts_stored + i);
	rc = insert_page(s, texts, n, in->texts[in->texts_stored].id, err);
	free(texts);
	in->texts_stored = in->ntexts;
	in->text_bytes_stored = in->text_bytes.len;
	if (in->text_bytes.len > KNOWN_TEXT_BYTES_MAX)
		texts_forget(in);
	return rc;
}
