#include "ship/mirror.h"

#include "base/array.h"
#include "base/json_read.h"
#include "base/text.h"
#include "base/utf8.h"
#include "ship/target.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGES_MAX 500u                       /* of 1,000 objects each */
#define OBJECT_MAX_BYTES ((uint64_t)1 << 30)
#define LIST_MAX_BYTES ((size_t)16 << 20)
#define FETCH_PEER_MS 90000u

struct remote {
	char *key;                           /* below the prefix; of a recorder the path */
	char uuid[UUID_BYTES + 1], modified[32];
	uint64_t bytes;
};

struct mirror {
	struct target target;
	struct net *net;
	struct store *store;
	struct remote *objects;              /* by uuid */
	uint32_t n, cap;
	bool all;                            /* everything that is there was listed */
	struct buf folder, file;             /* of the store; of what is being fetched */
	struct buf *notes;
	uint64_t failed, fetched_bytes;
	struct err why;                      /* the first failure */
};

/* ---- what there is --------------------------------------------------------------------------- */

/* "web1/2026/11/28/UUID.db" */
static bool is_incident(const char *key, char uuid[UUID_BYTES + 1])
{
	const char *name = text_base_name(key);
	size_t n = strlen(name);

	if (n != UUID_BYTES + 3 || strcmp(name + UUID_BYTES, ".db") != 0 ||
	    strspn(name, "0123456789abcdef-") < UUID_BYTES)
		return false;
	memcpy(uuid, name, UUID_BYTES);
	uuid[UUID_BYTES] = '\0';
	return true;
}

static int add(struct mirror *m, const char *key, const char *uuid, uint64_t bytes,
	       const char *modified, struct err *err)
{
	struct remote *to;

	if (ARRAY_ROOM(m->objects, m->cap, m->n + 1))
		return err_memory(err, "for a list of objects");
	to = &m->objects[m->n];
	*to = (struct remote){.bytes = bytes, .key = text_dup(key, SIZE_MAX)};
	snprintf(to->uuid, sizeof(to->uuid), "%s", uuid);
	snprintf(to->modified, sizeof(to->modified), "%s", modified);
	m->n += to->key != NULL;
	return to->key ? 0 : err_memory(err, "for a list of objects");
}

static int add_object(struct mirror *m, const struct s3_object *o, struct err *err)
{
	const char *prefix = buf_text(&m->target.s3.prefix);
	char uuid[UUID_BYTES + 1];

	if (strncmp(o->key, prefix, strlen(prefix)) != 0 || !is_incident(o->key, uuid))
		return 0;
	return add(m, o->key + strlen(prefix), uuid, o->bytes, o->modified, err);
}

/* What a request that failed says; 0 = it did not. */
static int refused(const struct mirror *m, const struct net_answer *a, struct err *err)
{
	char text[400];

	if (a->status == 200)
		return 0;
	if (m->target.kind->peer) {
		struct buf clean = {0};

		utf8_put_clean(&clean, buf_text(&a->body), strcspn(buf_text(&a->body), "\r\n"),
			       sizeof(text) - 1);
		snprintf(text, sizeof(text), "%s", buf_text(&clean));
		buf_free(&clean);
	} else {
		s3_error_text(buf_text(&a->body), text, sizeof(text));
	}
	return err_set(err, a->status == 404 ? ERR_NOT_FOUND : ERR_IO, "%s: the server says %d: %s",
		       buf_text(&m->target.name), a->status, text);
}

static int ask(struct mirror *m, const char *key, const char *query, struct os_file *into,
	       struct net_answer *a, struct err *err)
{
	struct net_request r = {.method = "GET", .into = into, .into_max = OBJECT_MAX_BYTES,
				.answer_max = LIST_MAX_BYTES};
	struct buf url = {0};
	char hash[SHA256_HEX];
	int rc;

	target_prepare(&m->target, &r);
	if (m->target.kind->peer) {
		target_put_peer_url(&m->target, key, &url);
		r.timeout_ms = into ? FETCH_PEER_MS : MIRROR_PEER_MS;
		r.url = buf_text(&url);
	} else {
		sha256_text("", 0, hash);
		s3_sign(&m->target.s3, &r, key, query, hash, os_wall_ns(), &url);
	}
	rc = buf_check(&url, "a URL", err);
	if (!rc)
		rc = net_ask(m->net, &r, a, err);
	if (rc == ERR_IO)
		err_prefix(err, "%s", buf_text(&m->target.name));
	net_request_free(&r);
	buf_free(&url);
	return rc ? rc : refused(m, a, err);
}

/* A page of the list; *token: where the next one begins, "" = nowhere. */
static int list_page(struct mirror *m, const char *host, struct buf *token, struct err *err)
{
	struct net_answer a = {.status = 0};
	struct buf query = {0}, prefix = {0};
	struct s3_object o;
	char next[2000] = "";
	const char *at, *end;
	int rc;

	buf_puts(&prefix, buf_text(&m->target.s3.prefix));
	if (host)
		target_put_host(host, &prefix);
	if (token->len) {
		buf_puts(&query, "continuation-token=");
		url_put_encoded(&query, buf_text(token), false);
		buf_putc(&query, '&');
	}
	buf_puts(&query, "list-type=2&prefix=");
	url_put_encoded(&query, buf_text(&prefix), false);
	rc = buf_check(&query, "a query", err);
	if (!rc)
		rc = ask(m, NULL, query.data, NULL, &a, err);
	at = buf_text(&a.body);
	end = at + strlen(at);
	if (!rc)
		s3_member(at, end, "NextContinuationToken", next, sizeof(next));
	while (!rc && s3_next_object(&at, &o))
		rc = add_object(m, &o, err);
	buf_reset(token);
	buf_puts(token, next);
	net_answer_free(&a);
	buf_free(&query);
	buf_free(&prefix);
	return rc;
}

static int add_head(struct mirror *m, struct json_value v, const char *group_id, struct err *err)
{
	static const char *const names[] = {"uuid", "trigger", "reason", "state", "time_utc"};
	struct buf texts[COUNT_OF(names)] = {{0}};
	struct incident_head h = {0};
	double id = 0, bytes = 0;
	char key[40];
	unsigned i;
	int rc = 0;

	for (i = 0; i < COUNT_OF(names); i++)
		json_put_text(json_member(v, names[i]), &texts[i]);
	json_number(json_member(v, "bytes"), &bytes);
	snprintf(h.uuid, sizeof(h.uuid), "%s", buf_text(&texts[0]));
	h.rule = (char *)(uintptr_t)buf_text(&texts[1]);
	h.reason = (char *)(uintptr_t)buf_text(&texts[2]);
	if (json_number(json_member(v, "id"), &id) && id >= 1 && id < 1e15 &&
	    texts[0].len == UUID_BYTES && strcmp(buf_text(&texts[3]), "open") != 0 &&
	    (!group_id || incident_is_of_group(&h, group_id))) {
		snprintf(key, sizeof(key), "/incidents/%.0f.db", id);
		rc = add(m, key, h.uuid, bytes > 0 && bytes < 1e15 ? (uint64_t)bytes : 0,
			 buf_text(&texts[4]), err);
	}
	for (i = 0; i < COUNT_OF(names); i++)
		buf_free(&texts[i]);
	return rc;
}

/* Of another recorder: http/server.h. */
static int list_heads(struct mirror *m, const char *group_id, struct err *err)
{
	struct json_value all, one = {NULL, NULL};
	struct net_answer a = {.status = 0};
	int rc = ask(m, "/incidents", NULL, NULL, &a, err);

	if (!rc && !json_read(buf_text(&a.body), &all))
		rc = err_set(err, ERR_FORMAT, "%s: its list of incidents is no JSON: it is no "
			     "recorder", buf_text(&m->target.name));
	while (!rc && (one = json_next(all, one)).at)
		rc = add_head(m, one, group_id, err);
	m->all = !group_id;
	if (!rc && group_id && !m->n)
		buf_printf(m->notes, "%s has no incident of the group\n",
			   buf_text(&m->target.name));
	net_answer_free(&a);
	return rc;
}

static int by_uuid(const void *a, const void *b)
{
	return strcmp(((const struct remote *)a)->uuid, ((const struct remote *)b)->uuid);
}

static int list_objects(struct mirror *m, const char *host, struct err *err)
{
	struct buf token = {0};
	uint32_t page;
	int rc = 0;

	for (page = 0; !rc && page < PAGES_MAX && (!page || token.len); page++)
		rc = list_page(m, host, &token, err);
	m->all = !host && !token.len;
	if (!rc && token.len)
		buf_printf(m->notes, "%s has more than %u objects: --host chooses some\n",
			   buf_text(&m->target.name), PAGES_MAX * 1000);
	buf_free(&token);
	return rc;
}

/* ---- what is fetched ------------------------------------------------------------------------- */

static int by_age(const void *a, const void *b)
{
	const struct remote *x = *(const struct remote *const *)a;
	const struct remote *y = *(const struct remote *const *)b;
	int order = strcmp(x->modified, y->modified);

	return order ? order : strcmp(x->key, y->key);
}

/* The day of "web1/2026/11/28/UUID.db" is since or later. */
static bool is_recent(const struct remote *o, uint64_t since_wall_ns)
{
	size_t n = strlen(o->key), tail = strlen("2026/11/28/") + UUID_BYTES + strlen(".db");
	char time[OS_TIME_TEXT_BYTES];

	if (!since_wall_ns || n < tail)
		return true;
	os_time_text(since_wall_ns, time);
	time[4] = time[7] = '/';
	return memcmp(o->key + n - tail, time, strlen("2026/11/28")) >= 0;
}

/* Without this name afterwards; its incident must be the one that its name says. */
static int take_file(struct mirror *m, const struct remote *o, struct err *err)
{
	struct store *from = NULL;
	int64_t id;
	int rc = store_open(m->file.data, STORE_READ, &from, err);

	if (!rc && store_find(from, o->uuid, &id, NULL))
		rc = err_set(err, ERR_FORMAT, "%s is not the incident that its name says", o->key);
	if (!rc)
		rc = store_copy(m->store, from, id, NULL, err);
	store_close(from);
	return rc == ERR_EXISTS ? 0 : rc;
}

static void remove_file(const struct mirror *m)
{
	static const char *const suffixes[] = {"", "-wal", "-shm", "-journal"};
	struct buf name = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(suffixes); i++) {
		buf_reset(&name);
		buf_printf(&name, "%s%s", buf_text(&m->file), suffixes[i]);
		os_remove(buf_text(&name), NULL);
	}
	buf_free(&name);
}

static int fetch(struct mirror *m, const struct remote *o, struct err *err)
{
	struct net_answer a = {.status = 0};
	struct os_file_info info = {0};
	struct os_file *file = NULL;
	int rc;

	remove_file(m);
	rc = os_open(m->file.data, OS_CREATE, &file, err);
	if (!rc)
		rc = ask(m, o->key, "", file, &a, err);
	if (file && !os_file_info(file, &info, NULL))
		m->fetched_bytes += info.size_bytes;
	os_close(file);
	if (!rc)
		rc = take_file(m, o, err);
	remove_file(m);
	net_answer_free(&a);
	return rc;
}

/* The newest ones, as far as they fit; oldest first, so that numbers follow time. */
static int fetch_new(struct mirror *m, uint64_t since_wall_ns, struct err *err)
{
	struct remote **missing = calloc(m->n + 1u, sizeof(*missing));
	uint64_t bytes = 0;
	uint32_t n = 0, first, i;
	int64_t id;
	int rc = 0;

	if (!missing)
		return err_memory(err, "for a list of objects");
	for (i = 0; i < m->n; i++)
		if (is_recent(&m->objects[i], since_wall_ns) &&
		    store_find(m->store, m->objects[i].uuid, &id, NULL))
			missing[n++] = &m->objects[i];
	if (n)
		qsort(missing, n, sizeof(*missing), by_age);
	for (first = n; first; first--) {
		bytes += missing[first - 1]->bytes;
		if (bytes > MIRROR_FETCH_BYTES)
			break;
	}
	if (first)
		buf_printf(m->notes, "%" PRIu32 " older incidents of %s are left out: --since and "
			   "--host choose others\n", first, buf_text(&m->target.name));
	/* What the list says of their sizes need not be true. */
	for (i = first; !rc && i < n && m->fetched_bytes <= 2 * MIRROR_FETCH_BYTES; i++) {
		struct err why = {0};

		if (!fetch(m, missing[i], &why))
			continue;
		if (why.code == ERR_MEMORY || why.code == ERR_FULL || why.code == ERR_IO)
			rc = err_set(err, (enum err_code)why.code, "%s", why.text);
		else if (!m->failed++)
			m->why = why;
	}
	if (!rc && i < n)
		buf_printf(m->notes, "%" PRIu32 " incidents of %s are left out: the others are "
			   "larger than its list says\n", n - i, buf_text(&m->target.name));
	if (m->failed)
		buf_printf(m->notes, "%" PRIu64 " incidents of %s cannot be read: %s\n", m->failed,
			   buf_text(&m->target.name), m->why.text);
	free(missing);
	return rc;
}

struct gone {
	const struct mirror *m;
	int64_t *ids;
	uint32_t n;
};

static int note_gone(void *ctx, const struct incident_head *h)
{
	struct gone *g = ctx;
	struct remote key = {.key = NULL};

	memcpy(key.uuid, h->uuid, sizeof(key.uuid));
	if (g->m->n && bsearch(&key, g->m->objects, g->m->n, sizeof(key), by_uuid))
		return 0;
	if (ARRAY_NEXT(g->ids, g->n))
		return 1;
	g->ids[g->n++] = h->id;
	return 0;
}

static int tidy(struct mirror *m, struct err *err)
{
	const struct store_limits limits = {.max_bytes = MIRROR_KEEP_BYTES};
	struct gone gone = {.m = m};
	uint32_t deleted, i;
	int rc = m->all ? store_list(m->store, note_gone, &gone, err) : 0;

	for (i = 0; !rc && i < gone.n; i++)
		rc = store_delete(m->store, gone.ids[i], err);
	if (!rc && gone.n)
		store_clean(m->store);
	free(gone.ids);
	if (!rc)
		rc = store_retain(m->store, &limits,
				  store_time(m->store, os_wall_ns(), os_now_ns()), &deleted, err);
	return rc > 0 ? 0 : rc;
}

/* ---- the store ------------------------------------------------------------------------------- */

/* A folder for each bucket, prefix and endpoint, which nobody else can read. */
static int name_folder(struct mirror *m, struct err *err)
{
	const char *cache = os_env("XDG_CACHE_HOME"), *home = os_env("HOME");
	struct buf place = {0};
	char hex[SHA256_HEX];

	if (cache && *cache)
		buf_printf(&m->folder, "%s/recorder", cache);
	else if (home && *home)
		buf_printf(&m->folder, "%s/.cache/recorder", home);
	else
		return err_set(err, ERR_USAGE, "no directory for fetched incidents: set "
			       "$XDG_CACHE_HOME or $HOME");
	if (m->target.kind->peer)
		buf_puts(&place, buf_text(&m->target.name));
	else
		buf_printf(&place, "%s%s %s", buf_text(&m->target.s3.origin),
			   buf_text(&m->target.s3.path), buf_text(&m->target.s3.prefix));
	sha256_text(buf_text(&place), place.len, hex);
	buf_free(&place);
	buf_printf(&m->folder, "/%.16s", hex);
	buf_printf(&m->file, "%s/fetched.db", buf_text(&m->folder));
	return buf_check(&m->file, "a folder's name", err) ? ERR_MEMORY
							   : os_mkdirs(m->folder.data, err);
}

bool mirror_is_url(const char *store)
{
	return store && (text_starts_fold(store, "s3://") || text_starts_fold(store, "peer+http"));
}

static int update(struct mirror *m, const char *host, uint64_t since_wall_ns, const char *group_id,
		  struct buf *path, struct err *err)
{
	struct buf moved = {0};
	int rc = target_load_secrets(&m->target, err);

	if (!rc)
		rc = net_open(&m->net, err);
	if (!rc)
		rc = name_folder(m, err);
	if (!rc)
		rc = m->target.kind->peer ? list_heads(m, group_id, err)
					  : list_objects(m, host, err);
	if (m->n)
		qsort(m->objects, m->n, sizeof(*m->objects), by_uuid);
	buf_printf(path, "%s/incidents.db", buf_text(&m->folder));
	if (!rc)
		rc = buf_check(path, "a store's name", err);
	if (!rc)
		rc = store_open_or_replace(path->data, &moved, &m->store, err);
	if (!rc)
		rc = tidy(m, err);
	if (!rc)
		rc = fetch_new(m, since_wall_ns, err);
	buf_free(&moved);
	return rc;
}

int mirror_update(const char *url, const char *host, uint64_t since_wall_ns, const char *group_id,
		  struct buf *path, struct buf *notes, struct err *err)
{
	struct mirror m = {.notes = notes};
	int rc = target_parse(url, &m.target, err);

	if (rc)
		return rc;
	rc = update(&m, host, since_wall_ns, group_id, path, err);
	while (m.n)
		free(m.objects[--m.n].key);
	free(m.objects);
	store_close(m.store);
	net_close(m.net);
	buf_free(&m.folder);
	buf_free(&m.file);
	target_free(&m.target);
	return rc;
}
