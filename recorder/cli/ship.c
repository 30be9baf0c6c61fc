/* ship: send incidents to targets; see ship/ship.h. */
#include "cli/cmd.h"

#include "base/array.h"
#include "base/os.h"
#include "base/text.h"
#include "engine/engine.h"
#include "fleet/fleet.h"
#include "ship/follow.h"
#include "ship/mirror.h"
#include "ship/ship.h"

#include <stdlib.h>
#include <string.h>

static void tell(void *ctx, bool bad, const char *text)
{
	(void)ctx;
	(void)bad;
	cmd_note("%s", text);
}

int cmd_check_ship(const struct options *o, struct err *err)
{
	if (!o->ship.n || !ship_check(o->ship.items, o->ship.n, err))
		return 0;
	err_prefix(err, "--ship");
	return options_at_line(o, o->ship.lines[0], err);
}

/* Targets of the conf file are read from there again: they are nobody else's business. */
int cmd_follow(const struct options *o, struct engine_config *e, struct follow_config *cfg,
	       struct follow **out, struct err *err)
{
	int rc;

	if (!o->ship.n)
		return 0;
	*cfg = (struct follow_config){
		.store_path = e->store_path, .conf_path = o->conf_path, .log = e->log,
		.targets = o->ship.items,
		.ntargets = options_origin(o, "ship") == FROM_ARGS ? o->ship.n : 0,
	};
	rc = follow_open(cfg, out, err);
	if (rc)
		return rc;
	e->stored = follow_stored;
	e->put_more_status = follow_put_status;
	e->more_ctx = *out;
	return 0;
}

int cmd_ship(const struct options *o, struct err *err)
{
	const struct text_list *to = o->ship_to.n ? &o->ship_to : &o->ship;
	struct ship_config cfg = {
		.targets = to->items, .ntargets = to->n, .due_only = o->due,
		.again = o->all_incidents, .ids = o->ids.n ? o->ids.items : NULL,
		.nids = o->ids.n, .tell = tell,
	};
	struct buf path = {0}, status = {0};
	int rc;

	if (!to->n)
		return err_set(err, ERR_USAGE, "ship: where to? recorder ship --to "
			       "s3://BUCKET/PREFIX, or a line `ship = URL` in the conf file");
	if (o->last_ns != OPTION_NO_TIME) {
		cfg.since_wall_ns = os_wall_ns() - (uint64_t)o->last_ns;
		cfg.again |= !o->due;
	}
	if (o->due)
		os_thread_priority(OS_PRIORITY_LOWEST);
	rc = cmd_store_path(o, STORE_EDIT, &path, err);
	cfg.store_path = buf_text(&path);
	if (!rc)
		rc = ship_run(&cfg, &status, err);
	if ((!rc || rc == ERR_IO) && o->json && status.len) {
		buf_putc(&status, '\n');
		os_write(os_stdout(), status.data, status.len, NULL);
	}
	buf_free(&path);
	buf_free(&status);
	return rc;
}

int cmd_fleet(const struct options *o, struct err *err)
{
	return fleet_run(o, err);
}

/* ---- reading back ---------------------------------------------------------------------------- */

/* A store that is fetched, in place of whose URL its path comes. */
struct fetch {
	const struct options *o;
	char **store;
	struct buf path, notes;
	struct err why;
	int rc;
	struct os_thread *thread;
};

static void fetch(void *ctx)
{
	struct fetch *f = ctx;
	const struct options *o = f->o;
	uint64_t since = o->last_ns == OPTION_NO_TIME ? 0 : os_wall_ns() - (uint64_t)o->last_ns;

	f->rc = mirror_update(*f->store, o->host, since, o->group_id, &f->path, &f->notes,
			      &f->why);
}

/* What is missing of a group is said; it is no reason to show nothing. */
static int finish(struct fetch *f, struct err *err)
{
	os_thread_join(f->thread);
	cmd_notes(&f->notes);
	if (!f->rc) {
		free(*f->store);
		*f->store = text_dup(f->path.data, SIZE_MAX);
		f->rc = *f->store ? 0 : err_memory(err, "for a store's name");
	} else if (f->o->group_id && f->rc != ERR_MEMORY) {
		cmd_note("left out: %s", f->why.text);
		free(*f->store);
		*f->store = NULL;
		f->rc = 0;
	} else {
		err_set(err, (enum err_code)f->rc, "%s", f->why.text);
	}
	buf_free(&f->path);
	buf_free(&f->notes);
	return f->rc;
}

/* One that is named again comes after itself: both have the same files. */
static bool wait_for_same(struct fetch *all, uint32_t n)
{
	uint32_t i;

	for (i = 0; i < n; i++) {
		if (strcmp(*all[i].store, *all[n].store) != 0)
			continue;
		os_thread_join(all[i].thread);
		all[i].thread = NULL;
		return true;
	}
	return false;
}

/* All at once: one that is down holds up nobody. */
static int fetch_all(struct options *o, struct err *err)
{
	struct fetch *all = calloc(o->more_stores.n + 2u, sizeof(*all));
	uint32_t n = 0, i;
	int rc = 0, one;

	if (!all)
		return err_memory(err, "for stores");
	if (mirror_is_url(o->store))
		all[n++] = (struct fetch){.o = o, .store = &o->store};
	if (mirror_is_url(o->base_store))
		all[n++] = (struct fetch){.o = o, .store = &o->base_store};
	for (i = 0; i < o->more_stores.n; i++)
		if (mirror_is_url(o->more_stores.items[i]))
			all[n++] = (struct fetch){.o = o, .store = &o->more_stores.items[i]};
	if (n > 1)                           /* libcurl is ready before there are threads */
		ship_check(all[0].store, 1, NULL);
	for (i = 0; i < n; i++)
		if (n == 1 || wait_for_same(all, i) ||
		    os_thread_start("fetch", fetch, &all[i], &all[i].thread, NULL))
			fetch(&all[i]);
	for (i = 0; i < n; i++) {
		one = finish(&all[i], rc ? NULL : err);
		rc = rc ? rc : one;
	}
	free(all);
	return rc;
}

/* Those of which there is nothing; the first one may have been the only one. */
static int drop_missing(struct options *o, bool named, struct err *err)
{
	struct text_list *more = &o->more_stores;
	uint32_t i, kept = 0;

	for (i = 0; i < more->n; i++)
		if (more->items[i])
			more->items[kept++] = more->items[i];
	more->n = kept;
	if (o->store || !named)
		return 0;
	if (!kept)
		return err_set(err, ERR_IO, "none of the stores that --store names can be read: "
			       "see above");
	o->store = more->items[0];
	memmove(more->items, more->items + 1, --more->n * sizeof(*more->items));
	return 0;
}

/* The recorders of the conf file, which Peers= means, keep parts of a group. */
static int add_peers(struct options *o, struct err *err)
{
	uint32_t i;

	for (i = 0; i < o->ship.n; i++) {
		if (!text_starts_fold(o->ship.items[i], "peer+"))
			continue;
		if (ARRAY_NEXT(o->more_stores.items, o->more_stores.n))
			return err_memory(err, "for stores");
		o->more_stores.items[o->more_stores.n] = text_dup(o->ship.items[i], SIZE_MAX);
		if (!o->more_stores.items[o->more_stores.n])
			return err_memory(err, "for stores");
		o->more_stores.n++;
	}
	return 0;
}

int cmd_fetch_stores(struct options *o, struct err *err)
{
	const uint64_t readers = 1ull << CMD_LIST | 1ull << CMD_SHOW | 1ull << CMD_REPORT |
				 1ull << CMD_EXPORT | 1ull << CMD_DIFF | 1ull << CMD_EVENTS;
	const char *named = cmd_named_store(o);
	bool is_url = mirror_is_url(named);
	int rc = 0;

	if (is_url && !(readers >> o->command & 1))
		return err_set(err, ERR_USAGE, "%s: a bucket or another recorder is only read, by "
			       "list, show, report, export, diff and events",
			       command_table[o->command].name);
	if (is_url) {
		if (named != o->store) {
			free(o->store);
			o->store = text_dup(named, SIZE_MAX);
			rc = o->store ? 0 : err_memory(err, "for a store");
		}
		o->origin[option_by_name("store", 5) - option_table] = FROM_ARGS;
	}
	if (!rc && o->group_id && !is_url && o->command != CMD_LIST)
		rc = add_peers(o, err);
	if (!rc)
		rc = fetch_all(o, err);
	return rc ? rc : drop_missing(o, is_url, err);
}
