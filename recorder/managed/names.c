#include "managed/names.h"

#include "base/os.h"
#include "base/slots.h"
#include "base/table.h"
#include "base/text.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct name {
	char *function, *detail;          /* one allocation; "" = there is none */
};

struct managed_names {
	struct os_mutex *lock;               /* guards all below */
	struct slots names;                  /* number - 1 */
	struct table by_text;
	size_t text_bytes;
};

struct wanted {
	const char *function, *detail;
	size_t nfunction, ndetail;
};

struct managed_names *managed_names_new(void)
{
	struct managed_names *n = calloc(1, sizeof(*n));

	if (n)
		n->lock = os_mutex_new();
	if (!n || !n->lock || slots_init(&n->names, sizeof(struct name), MANAGED_NAMES_MAX)) {
		managed_names_free(n);
		return NULL;
	}
	return n;
}

void managed_names_free(struct managed_names *n)
{
	uint32_t number, at = 0;

	if (!n)
		return;
	while ((number = table_next(&n->by_text, &at)) != TABLE_NONE)
		free(((struct name *)slots_get(&n->names, number))->function);
	table_free(&n->by_text);
	slots_free(&n->names);
	os_mutex_free(n->lock);
	free(n);
}

static bool is_same(const void *ctx, uint32_t value, const void *key)
{
	const struct managed_names *n = ctx;
	const struct name *name = slots_get(&n->names, value);
	const struct wanted *w = key;

	return strncmp(name->function, w->function, w->nfunction) == 0 &&
	       !name->function[w->nfunction] && strcmp(name->detail, w->detail) == 0;
}

static uint32_t add(struct managed_names *n, uint64_t hash, const struct wanted *w)
{
	size_t bytes = w->nfunction + 1 + w->ndetail + 1;
	uint32_t number;
	struct name *name;
	char *text;

	if (n->text_bytes + bytes > MANAGED_NAMES_BYTES)
		return SLOTS_NONE;
	text = malloc(bytes);
	if (!text)
		return SLOTS_NONE;
	number = table_add_slot(&n->by_text, hash, &n->names, SLOTS_NONE);
	if (number == SLOTS_NONE) {
		free(text);
		return SLOTS_NONE;
	}
	memcpy(text, w->function, w->nfunction);
	text[w->nfunction] = '\0';
	memcpy(text + w->nfunction + 1, w->detail, w->ndetail + 1);
	name = slots_get(&n->names, number);
	name->function = text;
	name->detail = text + w->nfunction + 1;
	n->text_bytes += bytes;
	return number;
}

uint32_t managed_names_add(struct managed_names *n, const char *function, const char *detail)
{
	struct wanted w = {.function = function, .detail = detail ? detail : ""};
	uint32_t number;
	uint64_t hash;

	w.nfunction = strnlen(function, MANAGED_TEXT_MAX);
	w.ndetail = strlen(w.detail);
	hash = hash_pair(hash_bytes(w.function, w.nfunction),
			 hash_bytes(w.detail, w.ndetail));
	os_mutex_lock(n->lock);
	number = table_find(&n->by_text, hash, is_same, n, &w);
	if (number == TABLE_NONE)
		number = add(n, hash, &w);
	os_mutex_unlock(n->lock);
	return number == SLOTS_NONE ? 0 : number + 1;
}

bool managed_names_get(struct managed_names *n, uint32_t number, char *out, size_t out_bytes,
		       char *detail)
{
	const struct name *name;
	bool found;

	os_mutex_lock(n->lock);
	found = number && number <= n->names.end;
	if (found) {
		name = slots_get(&n->names, number - 1);
		snprintf(out, out_bytes, "%s", name->function);
		if (detail)
			snprintf(detail, MANAGED_TEXT_MAX + 1, "%s", name->detail);
	}
	os_mutex_unlock(n->lock);
	return found;
}

size_t managed_names_bytes(struct managed_names *n)
{
	size_t bytes;

	os_mutex_lock(n->lock);
	bytes = n->text_bytes + slots_bytes(&n->names) + table_bytes(&n->by_text);
	os_mutex_unlock(n->lock);
	return bytes;
}

bool managed_names_nearly_full(struct managed_names *n)
{
	bool full;

	os_mutex_lock(n->lock);
	full = n->text_bytes > MANAGED_NAMES_BYTES / 16 * 15 ||
	       n->names.end > MANAGED_NAMES_MAX / 16 * 15;
	os_mutex_unlock(n->lock);
	return full;
}
