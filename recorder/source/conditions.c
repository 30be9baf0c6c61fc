#include "source/conditions.h"

#include "base/buf.h"
#include "base/nearest.h"
#include "base/text.h"
#include "model/event.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define FIELD_NAME_MAX 64

static int no_field(const struct known_field *fields, uint32_t nfields, const char *event,
		    const char *field, struct err *err)
{
	struct nearest nearest = {.wanted = field};
	struct buf near = {0}, all = {0};
	uint32_t i;

	for (i = 0; i < nfields; i++) {
		nearest_offer(&nearest, fields[i].name);
		buf_printf(&all, "%s%s", i ? ", " : "", fields[i].name);
	}
	if (nearest.n) {
		buf_puts(&near, "; the nearest are ");
		nearest_put(&nearest, "", "", &near);
	}
	err_set(err, ERR_USAGE, "%.150s has no field '%.60s'%s; it has %.300s", event, field,
		buf_text(&near), all.len ? buf_text(&all) : "none");
	buf_free(&near);
	buf_free(&all);
	return ERR_USAGE;
}

static bool is_number(const char *text, size_t n)
{
	char copy[FIELD_NAME_MAX], *end;
	const char *digits = copy;

	if (n >= sizeof(copy))
		return false;
	memcpy(copy, text, n);
	copy[n] = '\0';
	digits += *digits == '-' || *digits == '+';
	if (!isdigit((unsigned char)*digits) && *digits != '.')
		return false;
	strtod(copy, &end);
	return end > digits && !*end;
}

static int check_condition(const struct known_field *fields, uint32_t nfields, bool all,
			   const char *event, const char *text, size_t n, struct err *err)
{
	char field[FIELD_NAME_MAX];
	size_t name = 0, value;
	uint32_t i;

	while (name < n && (isalnum((unsigned char)text[name]) || text[name] == '_'))
		name++;
	if (!name || name == n || name >= sizeof(field))
		return 0;                    /* not of this grammar; who parses it reports it */
	memcpy(field, text, name);
	field[name] = '\0';
	for (i = 0; i < nfields && !text_same_fold(fields[i].name, field); i++)
		;
	if (i == nfields)
		return event_has_own_field(field) || !all ? 0
						   : no_field(fields, nfields, event, field, err);
	/* A number never equals a text, and comparing them by their letters (1M) means nothing. */
	value = name + 1;
	value += text[name] != '=' && value < n && text[value] == '=';
	if (!fields[i].is_number || !strchr("=<>", text[name]) ||
	    is_number(text + value, n - value))
		return 0;
	return err_set(err, ERR_USAGE, "%.150s: the field '%s' is a number, and %s'%.*s'%s", event,
		       fields[i].name, text[name] == '=' ? "never equals " : "",
		       (int)(n - value < 60 ? n - value : 60), text + value,
		       text[name] == '=' ? "" : " is none");
}

int conditions_check(const struct known_field *fields, uint32_t nfields, bool all,
		     const char *event, const char *conditions, struct err *err)
{
	const char *at;
	size_t n;
	int rc = 0;

	for (at = conditions; *at && !rc; at += n + (at[n] == ';')) {
		n = strcspn(at, ";");
		rc = check_condition(fields, nfields, all, event, at, n, err);
	}
	return rc;
}

int conditions_check_field(const struct known_field *fields, uint32_t nfields, bool all,
			   const char *event, const char *field, struct err *err)
{
	uint32_t i;

	for (i = 0; i < nfields && !text_same_fold(fields[i].name, field); i++)
		;
	if (!*field || i < nfields || !all || event_has_own_field(field))
		return 0;
	return no_field(fields, nfields, event, field, err);
}
