/* The outside readers that are on this machine read what we write: xmllint, unzip, sort. */
#include "base/array.h"
#include "tests/support/export_text.h"
#include "tests/support/incident_samples.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const samples[] = {"empty", "small", "hostile", "large"};

static int make(const char *what, struct incident *in)
{
	if (strcmp(what, "empty") == 0)
		return sample_incident(in);
	if (strcmp(what, "small") == 0)
		return sample_small(in);
	if (strcmp(what, "hostile") == 0)
		return sample_hostile(in);
	return sample_large(in, 5000, 99, 30, 5);
}

static void require(const char *tool)
{
	char command[100];

	snprintf(command, sizeof(command), "command -v %s >/dev/null", tool);
	if (system(command) != 0) {
		printf("%s is not installed\n", tool);
		skip();
	}
}

/* Write each sample incident to a file of that suffix and run `command FILE`. */
static void check_with(const char *command, const char *format, const char *suffix)
{
	const char *dir = getenv("TEST_TMP");
	struct export_options opt = export_defaults;
	char path[400], line[600];
	struct incident in;
	struct err err;
	struct out *out;
	size_t i;

	for (i = 0; i < COUNT_OF(samples); i++) {
		snprintf(path, sizeof(path), "%s/%s%s", dir ? dir : "/tmp", samples[i], suffix);
		opt.file_name = strrchr(path, '/') + 1;
		assert_int_equal(make(samples[i], &in), 0);
		assert_int_equal(out_open(path, true, &out, &err), 0);
		assert_int_equal(exporter_by_name(format)->write(&in, &opt, out, &err), 0);
		assert_int_equal(out_close(out, &err), 0);
		snprintf(line, sizeof(line), "%s '%s'", command, path);
		if (system(line) != 0)
			fail_msg("%s", line);
		remove(path);
		incident_free(&in);
	}
}

TEST(xmllint_accepts_the_xml)
{
	require("xmllint");
	check_with("xmllint --noout", "perfview-xml", ".perfView.xml");
	check_with("xmllint --noout", "perfview-simple", ".simple.perfView.xml");
	check_with("xmllint --noout", "svg", ".svg");
}

TEST(unzip_finds_the_archive_whole)
{
	require("unzip");
	check_with("unzip -tqq", "perfview-xml-zip", ".perfView.xml.zip");
}

TEST(sort_has_nothing_to_do_with_folded_stacks)
{
	require("sort");
	check_with("LC_ALL=C sort -c -u", "folded", ".folded");
}

TEST(jq_accepts_the_json)
{
	static const char *const formats[] = {"speedscope", "trace", "jsonl", "perfview-json"};
	size_t i;

	require("jq");
	for (i = 0; i < COUNT_OF(formats); i++)
		check_with("jq . >/dev/null", formats[i], ".json");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(xmllint_accepts_the_xml),
		cmocka_unit_test(jq_accepts_the_json),
		cmocka_unit_test(unzip_finds_the_archive_whole),
		cmocka_unit_test(sort_has_nothing_to_do_with_folded_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
