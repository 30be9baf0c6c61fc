#include "source/stackfile/scenario.h"

#include "base/array.h"
#include "source/etw/xml.h"

#include <stdlib.h>
#include <string.h>

#define VALUE_MAX 1000u                      /* of an attribute */

static bool is_root(const struct etw_xml_tag *tag)
{
	return etw_slice_is(tag->name, "ScenarioSet") || etw_slice_is(tag->name, "ScenarioConfig");
}

bool scenario_is_set(const char *text, size_t n)
{
	struct etw_xml xml = {text, text + n};
	struct etw_xml_tag tag;

	return etw_xml_next(&xml, &tag) && is_root(&tag);
}

/* An attribute's text; *out NULL if there is none. 0 or ERR_MEMORY. */
static int take(const struct etw_xml_tag *tag, const char *name, char **out)
{
	struct etw_slice value = etw_xml_attribute(tag, name);
	struct buf text = {0};

	if (!value.n)
		return 0;
	if (value.n > VALUE_MAX)
		value.n = VALUE_MAX;
	etw_xml_put(&text, value);
	if (text.failed || !text.len) {
		buf_free(&text);
		return text.failed ? ERR_MEMORY : 0;
	}
	*out = text.data;
	return 0;
}

static void free_scenario(struct scenario *s)
{
	free(s->files);
	free(s->name);
	free(s->process);
}

static int take_scenario(struct scenario_list *list, const struct etw_xml_tag *tag, struct err *err)
{
	struct scenario s = {0};
	int rc = take(tag, "files", &s.files);

	if (!rc)
		rc = take(tag, "namePattern", &s.name);
	if (!rc && !s.name)
		rc = take(tag, "name", &s.name);
	if (!rc)
		rc = take(tag, "process", &s.process);
	if (!rc)
		rc = ARRAY_NEXT(list->items, list->n);
	if (!rc)
		list->items[list->n++] = s;
	else
		free_scenario(&s);
	if (rc)
		return err_memory(err, "for the scenarios");
	if (!s.files)
		return err_set(err, ERR_FORMAT, "a <Scenarios> has no files=\"...\"");
	if (etw_xml_attribute(tag, "start").n || etw_xml_attribute(tag, "end").n)
		return err_set(err, ERR_FORMAT, "<Scenarios files=\"%.200s\"> has a start or an "
			       "end; omit them, and give 'recorder report' --from and --to",
			       s.files);
	return list->n <= SCENARIOS_MAX ? 0 : err_set(err, ERR_FORMAT, "it has more than %u "
						       "<Scenarios>", SCENARIOS_MAX);
}

int scenario_parse(const char *text, size_t n, struct scenario_list *list, struct err *err)
{
	struct etw_xml xml = {text, text + n};
	struct etw_xml_tag tag;
	int rc = 0;

	if (!scenario_is_set(text, n))
		return err_set(err, ERR_FORMAT, "it is no <ScenarioSet> or <ScenarioConfig>");
	while (!rc && etw_xml_next(&xml, &tag)) {
		if (!tag.closing && etw_slice_is(tag.name, "Scenarios"))
			rc = take_scenario(list, &tag, err);
	}
	if (!rc && !list->n)
		rc = err_set(err, ERR_FORMAT, "it lists no <Scenarios>");
	return rc;
}

void scenario_list_free(struct scenario_list *list)
{
	while (list->n)
		free_scenario(&list->items[--list->n]);
	free(list->items);
	memset(list, 0, sizeof(*list));
}

void scenario_regex(const char *files, struct buf *out)
{
	buf_putc(out, '^');
	for (; *files; files++) {
		if (*files == '*')
			buf_puts(out, "(.*)");
		else if (*files == '?')
			buf_puts(out, "(.)");
		else if (*files == '\\')
			buf_putc(out, '/');          /* paths are compared with '/' */
		else if (strchr(".^$|()[]{}+", *files))
			buf_printf(out, "\\%c", *files);
		else
			buf_putc(out, *files);
	}
	buf_putc(out, '$');
}
