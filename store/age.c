/*
 * The time by which incidents age. The wall clock may be wrong for a while (a dead battery, a test
 * of certificates, a virtual machine that was moved), and deleting cannot be undone. So this time
 * begins as the wall clock and then goes on with the recorder clock, which nobody sets; it never
 * goes back. The file keeps both, so that the next recorder goes on from there:
 *
 *	the recorder clock went on    the same boot: exactly that time has passed
 *	it began anew                 the machine was off: the wall clock says for how long, but
 *	                              more than OFF_MAX_NS is not believed
 *
 * When it is wrong, incidents stay for longer; the limits of size and number hold all the same.
 */
#include "store/store_private.h"

#define OFF_MAX_NS (86400 * NS_PER_SEC)
#define SAVE_NS (600 * NS_PER_SEC)

static int save(struct store *s, void *arg, struct err *err)
{
	const struct age_clock *c = arg;

	return db_run(s,
		      "INSERT OR REPLACE INTO meta VALUES('age_wall_ns', ?1), ('age_clock_ns', ?2)",
		      ARGS(arg_u64(c->wall_ns), arg_u64(c->clock_ns)), err);
}

static bool load(struct store *s, struct age_clock *out)
{
	int64_t wall_ns, clock_ns;

	if (db_int(s, "SELECT value FROM meta WHERE key='age_wall_ns'", NO_ARGS, &wall_ns, NULL) ||
	    db_int(s, "SELECT value FROM meta WHERE key='age_clock_ns'", NO_ARGS, &clock_ns, NULL))
		return false;
	out->wall_ns = (uint64_t)wall_ns;
	out->clock_ns = (uint64_t)clock_ns;
	return true;
}

/* A store of a recorder that did not keep this time: that of the newest incident. 0 = none. */
static uint64_t newest_ns(struct store *s)
{
	int64_t ns = 0;

	db_int(s, "SELECT coalesce(max(coalesce(kept_wall_ns, trigger_wall_ns)), 0) FROM incident",
	       NO_ARGS, &ns, NULL);
	return (uint64_t)ns;
}

static uint64_t first_time(struct store *s, uint64_t wall_ns, uint64_t clock_ns)
{
	struct age_clock saved;
	uint64_t least_ns, most_ns;

	if (!load(s, &saved)) {
		most_ns = newest_ns(s);
		return most_ns && wall_ns > most_ns + OFF_MAX_NS ? most_ns + OFF_MAX_NS : wall_ns;
	}
	if (clock_ns >= saved.clock_ns)
		return saved.wall_ns + (clock_ns - saved.clock_ns);
	least_ns = saved.wall_ns + clock_ns;
	most_ns = least_ns + OFF_MAX_NS;
	return wall_ns < least_ns ? least_ns : wall_ns > most_ns ? most_ns : wall_ns;
}

uint64_t store_time(struct store *s, uint64_t wall_ns, uint64_t clock_ns)
{
	struct age_clock *c = &s->age;

	c->wall_ns = c->wall_ns ? c->wall_ns + (clock_ns - c->clock_ns)
				: first_time(s, wall_ns, clock_ns);
	c->clock_ns = clock_ns;
	if (c->wall_ns >= s->age_saved_ns + SAVE_NS && !db_transact(s, TX_NORMAL, save, c, NULL))
		s->age_saved_ns = c->wall_ns;
	return c->wall_ns;
}
