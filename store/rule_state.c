#include "store/store_private.h"

struct rule_work {
	const char *key;
	const void *state;
	size_t nbytes;
	uint64_t wall_now_ns;
};

static int forget(struct store *s, const char *key, struct err *err)
{
	struct args a;
	int rc = db_statement(s, "DELETE FROM rule_state WHERE rule_key=?", &a, err);

	if (rc)
		return rc;
	arg_text(&a, key);
	return db_run(s, a.st, err);
}

static int put_rule(struct store *s, void *arg, struct err *err)
{
	const struct rule_work *w = arg;
	struct args a;
	int rc;

	if (!w->nbytes)
		return forget(s, w->key, err);
	rc = db_statement(s, "INSERT OR REPLACE INTO rule_state(rule_key, saved_wall_ns, state)"
			  " VALUES(?, ?, ?)", &a, err);
	if (rc)
		return rc;
	arg_text(&a, w->key);
	arg_u64(&a, w->wall_now_ns);
	arg_blob(&a, w->state, w->nbytes);
	return db_run(s, a.st, err);
}

int store_put_rule(struct store *s, const char *key, const void *state, size_t n,
		   uint64_t wall_now_ns, struct err *err)
{
	struct rule_work w = {.key = key, .state = state, .nbytes = n, .wall_now_ns = wall_now_ns};

	if (n > STORE_RULE_STATE_BYTES)
		return err_set(err, ERR_LIMIT, "the state of the rule %.60s has %zu bytes, over the "
			       "limit of %u", key, n, STORE_RULE_STATE_BYTES);
	return db_transact(s, TX_NORMAL, put_rule, &w, err);
}

int store_get_rule(struct store *s, const char *key, struct buf *out, uint64_t *saved_wall_ns,
		   struct err *err)
{
	struct args a;
	int rc = db_statement(s, "SELECT saved_wall_ns, state FROM rule_state WHERE rule_key=?"
			      " AND length(state) <= ?", &a, err);

	buf_reset(out);
	if (rc)
		return rc;
	arg_text(&a, key);
	arg_u64(&a, STORE_RULE_STATE_BYTES);
	rc = db_step(s, a.st, err);
	if (rc > 0) {
		*saved_wall_ns = (uint64_t)sqlite3_column_int64(a.st, 0);
		buf_put(out, sqlite3_column_blob(a.st, 1), (size_t)sqlite3_column_bytes(a.st, 1));
		rc = buf_check(out, "the state of a rule", err);
	} else if (!rc) {
		rc = err_set(err, ERR_NOT_FOUND, "nothing is kept of the rule %.60s", key);
	}
	sqlite3_reset(a.st);
	return rc;
}
