#include "triggers/log_message.h"

#include "base/array.h"
#include "base/nearest.h"
#include "base/text.h"
#include "triggers/field_filter.h"
#include "triggers/pattern.h"
#include "triggers/threshold.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct log_message {
	struct pattern pattern;
	bool has_number;
	struct threshold threshold;          /* of the number */
	char log[LOG_NAME_MAX];
	const char *near_log;                /* the text before an '@' looks like this; or NULL */
};

/* ---- making ---------------------------------------------------------------------------------- */

static const char *const logs[] = {
	"Application", "System", "Security", "Setup", "kernel", "journal",
};

/* The log that this is a misspelled name of, or NULL. */
static const char *near_log(const char *name, size_t n)
{
	char copy[16];
	size_t i;

	if (n < 4 || n >= sizeof(copy))
		return NULL;
	memcpy(copy, name, n);
	copy[n] = '\0';
	for (i = 0; i < n; i++)
		if (!isalpha((unsigned char)copy[i]))
			return NULL;
	for (i = 0; i < COUNT_OF(logs); i++) {
		size_t len = strlen(logs[i]);

		/* A part of a name is near too, but is not a misspelling. */
		if (nearest_distance(copy, logs[i]) <= 1u + (len > 6) && n + 2 >= len &&
		    len + 2 >= n)
			return logs[i];
	}
	return NULL;
}

static bool is_known_log(const char *name, size_t n)
{
	size_t i;

	for (i = 0; i < COUNT_OF(logs); i++)
		if (strlen(logs[i]) == n && strncasecmp(logs[i], name, n) == 0)
			return true;
	return false;
}

/* "Microsoft-Windows-Kernel-Power/Thermal": words with one '/' or several '-'. */
static bool is_channel(const char *name, size_t n)
{
	size_t i, slashes = 0, dashes = 0;

	for (i = 0; i < n; i++) {
		slashes += name[i] == '/';
		dashes += name[i] == '-';
		if (!isalnum((unsigned char)name[i]) && !strchr("-/_ ().", name[i]))
			return false;
	}
	return n && isalpha((unsigned char)name[0]) && (slashes == 1 || dashes > 1);
}

static bool is_path(const char *name, size_t n)
{
	return n > 1 && (name[0] == '/' || (isalpha((unsigned char)name[0]) && name[1] == ':' &&
					   (name[2] == '\\' || name[2] == '/')));
}

/* The length of "LOG@" and the name in it; 0 = there is no log. */
static size_t log_prefix(const char *spec, const char **name, size_t *len)
{
	const char *at = strchr(spec, '@');

	*name = spec;
	*len = at ? (size_t)(at - spec) : 0;
	if (*len > 4 && strncasecmp(spec, "Log=", 4) == 0) {
		*name += 4;
		*len -= 4;
		return (size_t)(at - spec) + 1;
	}
	if (*len && (is_known_log(*name, *len) || is_path(*name, *len) || is_channel(*name, *len)))
		return *len + 1;
	return 0;
}

static int take_log(struct log_message *l, const char *spec, size_t *skip, struct err *err)
{
	const char *name;
	size_t len;

	*skip = log_prefix(spec, &name, &len);
	if (!*skip) {
		strcpy(l->log, "Application");
		l->near_log = near_log(name, len);
		return 0;
	}
	if (len >= sizeof(l->log))
		return err_set(err, ERR_USAGE, "'%.100s...': a log's name has at most %zu bytes",
			       spec, sizeof(l->log) - 1);
	memcpy(l->log, name, len);
	l->log[len] = '\0';
	return 0;
}

#define NUMBER ";Number"

/* Where ";Number>0.5" begins behind the expression; NULL = there is none. */
static const char *number_part(const char *expression)
{
	const char *at, *found = NULL, *op;

	for (at = expression; (at = strchr(at, ';')) != NULL; at++) {
		if (strncasecmp(at, NUMBER, strlen(NUMBER)) != 0)
			continue;
		op = at + strlen(NUMBER);
		op += strspn(op, " ");
		if (*op == '<' || *op == '>')
			found = at;
	}
	return found;
}

static int take_number(struct log_message *l, const char *part, const struct trigger_env *env,
		       struct err *err)
{
	const char *name;
	struct spec s;
	size_t len;
	int rc;

	spec_begin(&s, part + 1, err);
	rc = threshold_parse(&s, &l->threshold, &name, &len);
	if (!rc)
		rc = spec_keys(&s, threshold_key, &l->threshold, THRESHOLD_KEYS);
	if (!rc && !threshold_moves(&l->threshold))
		l->threshold.decay_hours = env->decay_hours;
	if (!rc)
		rc = threshold_check(&l->threshold, &s);
	l->has_number = true;
	l->pattern.base.limit = &l->threshold;
	return rc;
}

static int log_message_open(struct trigger *t, const struct trigger_env *env, struct err *err)
{
	struct log_message *l = (struct log_message *)t;
	struct trigger_env all = *env;
	const char *number = NULL;
	char *expression = NULL;
	size_t skip = 0;
	int rc = take_log(l, t->text, &skip, err);

	all.process = NULL;
	if (!rc)
		number = number_part(t->text + skip);
	if (!rc && (!t->text[skip] || number == t->text + skip))
		rc = err_set(err, ERR_USAGE, "StopOnEventLogMessage: '%.100s' has no expression; "
			     "every line would match", t->text);
	if (!rc && number)
		rc = take_number(l, number, env, err);
	if (!rc) {
		expression = text_dup(t->text + skip,
				      number ? (size_t)(number - t->text) - skip : SIZE_MAX);
		rc = expression ? pattern_open(&l->pattern, expression, true, &all, err)
				: err_memory(err, "for the rule '%.200s'", t->text);
	}
	if (!rc && number && !regex_has_group(l->pattern.regex))
		rc = err_set(err, ERR_USAGE, "'%.200s': Number is what the first group of the "
			     "expression stands for, and it has none; write the number in "
			     "parentheses, as in 'took ([0-9.]+) s;Number>0.5'", t->text);
	free(expression);
	return rc;
}

static int log_needs(const struct trigger *t, struct needs *out, struct err *err)
{
	return needs_log(out, ((const struct log_message *)t)->log, err);
}

/* ---- judging --------------------------------------------------------------------------------- */

static const char *field_of(const struct event *e, const char *name, char out[FIELD_TEXT_BYTES])
{
	const struct event_field *f = event_field(e, name);

	return f ? field_text(f, out) : "";
}

static void compose_line(const struct event *e, const char *message, char *out, size_t n)
{
	char a[FIELD_TEXT_BYTES], b[FIELD_TEXT_BYTES];
	const char *type = field_of(e, "Type", a), *id = field_of(e, "EventId", b);

	if (*type || *id)
		snprintf(out, n, "Type: %s EventId: %s Message: %s", type, id, message);
	else
		snprintf(out, n, "%s", message);
}

/* Judge the number in a line that matches; true = it hits. */
static bool number_hits(struct log_message *l, const char *text, uint64_t time_ns, struct buf *why,
			struct sense *out)
{
	char value[NUMBER_TEXT_BYTES];
	const char *at;
	double v = 0;
	size_t len;

	if (!regex_group(l->pattern.regex, text, &at, &len) || !len ||
	    number_prefix(at, len, DECIMAL_CHARACTERS, &v) != len)
		return false;
	out->measured = true;
	out->value = v;
	trigger_value(&l->pattern.base, v, time_ns);
	if (!threshold_hit(&l->threshold, v))
		return false;
	number_text(v, value);
	buf_printf(why, "%s was %s the limit of ", value, compare_side(l->threshold.compare));
	threshold_text(&l->threshold, why);
	buf_puts(why, ", in ");
	return true;
}

static void log_sense(struct trigger *t, const struct event *e, struct buf *why, struct sense *out)
{
	struct log_message *l = (struct log_message *)t;
	char text[PATTERN_TEXT_BYTES], a[FIELD_TEXT_BYTES], b[FIELD_TEXT_BYTES];
	const char *message;
	bool passes;

	regex_tick(l->pattern.regex, e->time_ns);
	threshold_clock(&l->threshold, e->time_ns);
	if (!text_same_fold(field_of(e, "Log", a), l->log))
		return;
	if (!trigger_wants(t, e->process))
		return;
	message = field_of(e, "Message", b);
	compose_line(e, message, text, sizeof(text));
	passes = pattern_match(&l->pattern, text);
	if (passes && l->has_number)
		passes = number_hits(l, text, e->time_ns, why, out);
	if (!trigger_matches(t, passes, out))
		return;
	buf_printf(why, "log %s: %.400s", l->log, message);
}

static void log_status(const struct trigger *t, struct trigger_status *out)
{
	const struct log_message *l = (const struct log_message *)t;
	char value[NUMBER_TEXT_BYTES], limit[NUMBER_TEXT_BYTES];

	if (l->has_number && t->value == t->value) {
		number_text(t->value, value);
		number_text(out->limit, limit);
		snprintf(out->text, sizeof(out->text), "%s of %s %s, armed%s", value,
			 compare_text(l->threshold.compare), limit, trigger_window_text(t));
	}
	pattern_status(t, out);
}

void log_message_doubt(const struct trigger *t, struct buf *out)
{
	const struct log_message *l = (const struct log_message *)t;

	if (t->ops == &log_message_trigger && l->near_log)
		buf_printf(out,
			   "%sthe text before the '@' is not the name of a log, so it counts as "
			   "part of the expression, which is matched in the log Application; did "
			   "you mean %s@?", out->len ? "; " : "", l->near_log);
}

const struct trigger_ops log_message_trigger = {
	.name = "stop-on-event-log-message",
	.title = "StopOnEventLogMessage",
	.usage = "[LOG@]REGEX[;Number>LIMIT[;Key=Value]...]   "
		 "(LOG: Application, System, kernel, journal, a channel, or a file's path; Number: "
		 "what the first group of REGEX stands for; keys: " THRESHOLD_KEYS ")",
	.saves_limit = true,
	.summary = "keep an incident when a line of a log matches",
	.bytes = sizeof(struct log_message),
	.kinds = 1u << EVENT_LOG | 1u << EVENT_TICK,
	.open = log_message_open,
	.needs = log_needs,
	.feed = trigger_feed,
	.status = log_status,
	.close = pattern_close,
	.sense = log_sense,
};
