/* Symbol paths: which directories and which servers they name. */
#include "symbol/symbol_path.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

/* "DIR,DIR;DIR!": the elements with ';' behind, their directories with ',', '!' for a server. */
static const char *told(const char *path)
{
	static char text[400];
	struct symbol_element e, dir;
	unsigned i;

	text[0] = '\0';
	while (symbol_path_next(&path, &e)) {
		for (i = 0; symbol_path_directory(&e, i, &dir); i++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%.*s",
				 i ? "," : "", (int)dir.nbytes, dir.text);
		strcat(text, symbol_path_is_server(&e) ? "!;" : ";");
	}
	return text;
}

TEST(directories_are_themselves)
{
	assert_string_equal(told("C:\\a b"), "C:\\a b;");
	assert_string_equal(told(";/x;;/y/srv;"), "/x;/y/srv;");
	assert_string_equal(told(""), "");
	assert_string_equal(told(NULL), "");
}

TEST(a_server_has_its_local_stores)
{
	assert_string_equal(told("srv*C:\\sym*https://s/symbols"), "C:\\sym!;");
	assert_string_equal(told("SRV*https://s"), "!;");
	assert_string_equal(told("srv*C:\\a*\\\\host\\b*http://s;C:\\c"),
			    "C:\\a,\\\\host\\b!;C:\\c;");
	assert_string_equal(told("symsrv*symsrv.dll*C:\\a*https://s"), "C:\\a!;");
	assert_string_equal(told("cache*C:\\a;srv*C:\\b"), "C:\\a;C:\\b;");
	assert_string_equal(told("srv*"), ";");
}

TEST(an_address_that_no_server_word_precedes_is_asked_by_nobody)
{
	assert_string_equal(told("https://s/symbols"), ";");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(directories_are_themselves),
		cmocka_unit_test(a_server_has_its_local_stores),
		cmocka_unit_test(an_address_that_no_server_word_precedes_is_asked_by_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
