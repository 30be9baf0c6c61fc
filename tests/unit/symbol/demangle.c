#include "symbol/demangle.h"

#include "base/array.h"
#include "tests/support/test.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

TEST(demangle_prints_names_without_parameters_as_perf_does)
{
	/* Right column: c++filt --no-params --no-verbose of binutils 2.40. */
	static const char *const table[][2] = {
		{"_ZN3foo3barILi3EEEvi", "foo::bar<3>"},
		{"_ZNSt6vectorIiSaIiEE9push_backERKi",
		 "std::vector<int, std::allocator<int> >::push_back"},
		{"_ZNK3foo1K3bazEi", "foo::K::baz"},
		{"_ZN3foo3barILi3EEEvi.cold", "foo::bar<3>"},
		{"_ZplRK1AS1_", "operator+"},
		{"_ZN1AC2Ev", "A::A"},
		{"_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()"},
		{"_RNvCs6xxl1lAjzDf_1a5plain", "a::plain"},
		{"_RNvMNtCs6xxl1lAjzDf_1a5innerINtB2_1ShE4showB4_", "<a::inner::S<u8>>::show"},
		{"_ZN4core3fmt9Formatter3pad17h0123456789abcdefE", "core::fmt::Formatter::pad"},
		{"_ZN60_$LT$alloc..string..String$u20$as$u20$core..fmt..Display$GT$"
		 "3fmt17h0123456789abcdefE",
		 "<alloc::string::String as core::fmt::Display>::fmt"},
		{"memcpy@@GLIBC_2.14", "memcpy"},
		{"realpath@GLIBC_2.2.5", "realpath"},
		{"_ZN3foo3barEv@@LIBFOO_1", "foo::bar"},
		{"_ZN3foo3barEv@plt", "foo::bar@plt"},
	};
	unsigned i;

	for (i = 0; i < COUNT_OF(table); i++) {
		char out[200];

		assert_true(demangle(table[i][0], out, sizeof(out)));
		assert_string_equal(out, table[i][1]);
	}
}

TEST(demangle_leaves_other_names_alone)
{
	static const char *const names[] = {
		"",
		"main",
		"_start",
		"__libc_start_main",
		"_Z",
		"_R",
		"_Zfoo",
		"_IO_puts",
		"@",
		"@@X",
		"memcpy@plt",
		"foo.isra.0",
		"runtime.mcall",
		"main.(*T).Run",
		"Builtins_InterpreterEntryTrampoline",
		"_Z\377\376",
		"_RNvC",
		"?Call@Function@v8@@QEAAXXZ",
	};
	unsigned i;

	for (i = 0; i < COUNT_OF(names); i++) {
		char out[200] = "untouched";

		if (demangle(names[i], out, sizeof(out)))
			fail_msg("%s became %s", names[i], out);
	}
}

TEST(demangle_does_not_look_at_names_over_its_ceiling)
{
	char *name = calloc(1, 200000), out[64];

	memset(name, 'N', 199999);
	memcpy(name, "_Z", 2);
	assert_false(demangle(name, out, sizeof(out)));
	name[DEMANGLE_MAX_BYTES] = '\0';
	assert_false(demangle(name, out, sizeof(out)));        /* recursion without end */
	memset(name + 2, 'P', DEMANGLE_MAX_BYTES - 2);
	assert_false(demangle(name, out, sizeof(out)));
	name[1000] = '\0';
	demangle(name, out, sizeof(out));
	free(name);
}

TEST(demangle_cuts_a_name_to_the_room_there_is)
{
	char out[8];

	assert_true(demangle("_ZN3foo3barILi3EEEvi", out, sizeof(out)));
	assert_string_equal(out, "foo::ba");
}

TEST(demangle_cuts_names_that_expand_without_end)
{
	/* Each tuple is the one before, twice, by back references: 2^32 times (). */
	static const char rust[] =
		"_RINvC1a1bTuuETB7_B7_ETBb_Bb_ETBj_Bj_ETBr_Br_ETBz_Bz_ETBH_BH_ETBP_BP_ETBX_BX_E"
		"TB15_B15_ETB1d_B1d_ETB1n_B1n_ETB1x_B1x_ETB1H_B1H_ETB1R_B1R_ETB21_B21_ETB2b_B2b_E"
		"TB2l_B2l_ETB2v_B2v_ETB2F_B2F_ETB2P_B2P_ETB2Z_B2Z_ETB39_B39_ETB3j_B3j_ETB3t_B3t_E"
		"TB3D_B3D_ETB3N_B3N_ETB3X_B3X_ETB47_B47_ETB4h_B4h_ETB4r_B4r_EE";
	static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
	char name[1024] = "_Z1fI1tI1AS1_E", one[64], out[4001];
	unsigned i;

	/* Each argument is t<the one before, the one before>: 2^28 times A. */
	for (i = 2; i < 30; i++) {
		snprintf(one, sizeof(one), "S0_IS%c_S%c_E", digits[i], digits[i]);
		strcat(name, one);
	}
	strcat(name, "Evv");
	assert_true(demangle(name, out, sizeof(out)));
	assert_int_equal(strlen(out), 4000);
	assert_memory_equal(out, "f<t<A, A>, t<t<A, A>, t<A, A> >", 31);
	assert_true(demangle(rust, out, sizeof(out)));
	assert_int_equal(strlen(out), 4000);
	assert_memory_equal(out, "a::b::<((), ()), (((), ()), ((), ()))", 37);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(demangle_prints_names_without_parameters_as_perf_does),
		cmocka_unit_test(demangle_leaves_other_names_alone),
		cmocka_unit_test(demangle_does_not_look_at_names_over_its_ceiling),
		cmocka_unit_test(demangle_cuts_a_name_to_the_room_there_is),
		cmocka_unit_test(demangle_cuts_names_that_expand_without_end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
