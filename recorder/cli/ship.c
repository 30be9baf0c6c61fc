/* ship: send incidents to targets; see ship/ship.h. */
#include "cli/cmd.h"

#include "base/os.h"
#include "base/text.h"
#include "engine/engine.h"
#include "fleet/fleet.h"
#include "ship/follow.h"
#include "ship/mirror.h"
#include "ship/ship.h"

#include <stdlib.h>

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

static int fetch_store(const struct options *o, char **store, struct err *err)
{
	uint64_t since = o->last_ns == OPTION_NO_TIME ? 0 : os_wall_ns() - (uint64_t)o->last_ns;
	struct buf path = {0}, notes = {0};
	int rc = mirror_update(*store, o->host, since, &path, &notes, err);

	cmd_notes(&notes);
	buf_free(&notes);
	if (!rc) {
		free(*store);
		*store = text_dup(path.data, SIZE_MAX);
		rc = *store ? 0 : err_memory(err, "for a store's name");
	}
	buf_free(&path);
	return rc;
}

int cmd_fetch_stores(struct options *o, struct err *err)
{
	const uint64_t readers = 1ull << CMD_LIST | 1ull << CMD_SHOW | 1ull << CMD_REPORT |
				 1ull << CMD_EXPORT | 1ull << CMD_DIFF | 1ull << CMD_EVENTS;
	const char *named = cmd_named_store(o);
	uint32_t i;
	int rc = 0;

	if (mirror_is_url(named) && !(readers >> o->command & 1))
		return err_set(err, ERR_USAGE, "%s: a bucket is only read, by list, show, report, "
			       "export, diff and events", command_table[o->command].name);
	if (mirror_is_url(named)) {
		if (named != o->store) {
			free(o->store);
			o->store = text_dup(named, SIZE_MAX);
		}
		rc = o->store ? fetch_store(o, &o->store, err) : err_memory(err, "for a store");
		o->origin[option_by_name("store", 5) - option_table] = FROM_ARGS;
	}
	if (!rc && mirror_is_url(o->base_store))
		rc = fetch_store(o, &o->base_store, err);
	for (i = 0; !rc && i < o->more_stores.n; i++)
		if (mirror_is_url(o->more_stores.items[i]))
			rc = fetch_store(o, &o->more_stores.items[i], err);
	return rc;
}
