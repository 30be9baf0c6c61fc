#include "store/store_private.h"

struct rule_work {
	const char *key;
	const void *state;
	size_t nbytes;
	uint64_t wall_now_ns;
};

static int put_rule(struct store *s, void *arg, struct err *err)
{
	const struct rule_work *w = arg;

	if (!w->nbytes)
		return db_run(s, "DELETE FROM rule_state WHERE rule_key=?", ARGS(arg_text(w->key)),
			      err);
	return db_run(s,
		      "INSERT OR REPLACE INTO rule_state(rule_key, saved_wall_ns, state)"
		      " VALUES(?, ?, ?)",
		      ARGS(arg_text(w->key), arg_u64(w->wall_now_ns),
			   arg_blob(w->state, w->nbytes)), err);
}

int store_put_rule(struct store *s, const char *key, const void *state, size_t n,
		   uint64_t wall_now_ns, struct err *err)
{
	struct rule_work w = {.key = key, .state = state, .nbytes = n, .wall_now_ns = wall_now_ns};

	if (n > STORE_RULE_STATE_BYTES)
		return err_set(err, ERR_LIMIT,
			       "the state of the rule %.60s has %zu bytes, over the limit of %u",
			       key, n, STORE_RULE_STATE_BYTES);
	return db_transact(s, TX_NORMAL, put_rule, &w, err);
}

int store_get_rule(struct store *s, const char *key, struct buf *out, uint64_t *saved_wall_ns,
		   struct err *err)
{
	struct query q = db_query(s,
				  "SELECT saved_wall_ns, state FROM rule_state WHERE rule_key=?"
				  " AND length(state) <= ?",
				  ARGS(arg_text(key), arg_u64(STORE_RULE_STATE_BYTES)), err);
	struct blob state;
	int rc;

	buf_reset(out);
	rc = query_step(&q);
	if (rc > 0) {
		*saved_wall_ns = column_u64(&q, 0);
		state = column_blob(&q, 1);
		buf_put(out, state.bytes, state.n);
		rc = buf_check(out, "the state of a rule", err);
	} else if (!rc) {
		rc = err_set(err, ERR_NOT_FOUND, "nothing is kept of the rule %.60s", key);
	}
	query_reset(&q);
	return rc;
}
