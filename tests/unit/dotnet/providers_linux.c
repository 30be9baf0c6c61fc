#include "source/dotnet/providers_linux.h"
#include "tests/support/test.h"

#include <stdlib.h>
#include <string.h>

static int check(const char *provider, struct err *err)
{
	struct needs *needs = calloc(1, sizeof(*needs));
	int rc;

	assert_non_null(needs);
	assert_int_equal(needs_provider(needs, provider, 1, 4, NULL), 0);
	rc = dotnet_providers_check(needs, err);
	free(needs);
	return rc;
}

TEST(providers_are_of_dotnet_by_their_names)
{
	assert_true(dotnet_provider_is("Microsoft-Windows-DotNETRuntime"));
	assert_true(dotnet_provider_is("*Shop"));
	assert_false(dotnet_provider_is("sched"));
	assert_false(dotnet_provider_is("kernel:sched"));
	assert_string_equal(dotnet_provider_exact("e13c0d23-ccbc-4e12-931b-d9cc2eee27e4"),
			    DOTNET_CLR);
	assert_string_equal(dotnet_provider_exact("SYSTEM.RUNTIME"), "System.Runtime");
}

TEST(a_provider_that_nobody_has_is_refused_with_what_to_do)
{
	struct err err;

	assert_int_equal(check(DOTNET_CLR, &err), 0);
	assert_int_equal(check("*Nobody-Has-This", &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "--assume-exists"));
	assert_int_equal(check("{00000000-1111-2222-3333-444444444444}", &err), ERR_USAGE);
	assert_non_null(strstr(err.text, "no source on this system delivers events of {0000"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(providers_are_of_dotnet_by_their_names),
		cmocka_unit_test(a_provider_that_nobody_has_is_refused_with_what_to_do),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
