#include "tests/support/export_text.h"

#include "base/os.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct export_options export_defaults = {.annotate = true, .ids = true};

int export_text(const struct incident *in, const char *format, const struct export_options *opt,
		struct buf *text)
{
	const struct exporter *exporter = exporter_by_name(format);
	struct out *out = NULL;
	struct err err = {0};
	int rc;

	assert_non_null(exporter);
	rc = out_to_buf(text, &out, &err);
	if (rc)
		return rc;
	rc = exporter->write(in, opt ? opt : &export_defaults, out, &err);
	if (rc)
		out_abandon(out);
	else
		rc = out_close(out, &err);
	if (rc && !*err.text)
		fail_msg("%s failed without a sentence", format);
	return rc;
}

void assert_export_is(const char *format, const struct export_options *opt, const char *file)
{
	struct buf expected = {0}, text = {0};
	struct incident in;
	struct err err = {0};
	char path[200];

	snprintf(path, sizeof(path), "tests/data/export/%s", file);
	assert_int_equal(sample_small(&in), 0);
	assert_int_equal(export_text(&in, format, opt, &text), 0);
	if (os_load(path, BUF_MAX_BYTES, &expected, &err))
		fail_msg("%s", err.text);
	if (strcmp(buf_text(&text), buf_text(&expected)) != 0)
		fail_msg("not as in %s:\n%s", path, buf_text(&text));
	incident_free(&in);
	buf_free(&text);
	buf_free(&expected);
}

void assert_export_has(const char *format, bool excel, const char *expected)
{
	struct export_options opt = export_defaults;
	struct buf text = {0};
	struct incident in;

	opt.excel = excel;
	assert_int_equal(sample_streams(&in), 0);
	assert_int_equal(export_text(&in, format, &opt, &text), 0);
	if (!strstr(text.data, expected))
		fail_msg("no %s in %s", expected, text.data);
	buf_free(&text);
	incident_free(&in);
}

uint64_t folded_total(const char *text)
{
	uint64_t total = 0;

	while (*text) {
		const char *end = strchr(text, '\n'), *at = end;
		char *number_end;

		assert_non_null(end);
		while (at > text && *at != ' ')
			at--;
		total += strtoull(at + 1, &number_end, 10);
		if (at == text || at[1] < '1' || at[1] > '9' || number_end != end)
			fail_msg("no folded line: %.*s", (int)(end - text), text);
		text = end + 1;
	}
	return total;
}
