#!/bin/bash
# What report shows of one incident: callers and callees together, on stacks made by hand.
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG RECORDER_STORE
export XDG_STATE_HOME=$TMP/state HOME=$TMP RECORDER_STORE=$TMP/s.db

# cells FIELD...: of each row of out, separated by blanks
cells()
{
	jq -r "[$(sed 's/ /,/g; s/[a-z_0-9]\+/.&/g' <<<"$*")]"' |
		map(if type == "number" then (. * 1000 | round) / 1000 else . end | tostring) |
		join(" ")' out
}

total() { jq -s "map(.self_ms) | add | round" out; }

# ---- callers and callees -------------------------------------------------------------------------

printf '%s\n' 'p;t;A;B;C;B;D 6' 'p;t;A;B 2' 'p;t;A;B;C;B;C;B 9' 'p;t;E 1' >around.folded
"$RECORDER" collect --from around.folded 2>err
expect callers_and_callees_stand_together 0 '' report 1 --caller-callee B --json
cells row name self_ms inclusive_ms >rows
# A calls B with 6/2 + 2 + 9/3, C with 6/2 + 2 * 9/3; B calls C with the same, D with 6/2.
cat >wanted <<'END'
caller C 0 90
caller A 0 80
function B 110 170
callee C 0 90
callee D 30 30
END
check each_of_n_calls_has_an_nth_of_a_sample diff wanted rows
expect the_view_is_for_people_too 0 '^ +110\.0 +61\.1 % +170\.0 +94\.4 % +FUNCTION|B$' \
	report 1 --caller-callee B
expect one_view_at_a_time 2 'exclude each other' report 1 --caller-callee B --callers A
expect a_function_that_is_not_there 3 "no function is called 'Nosuch'" \
	report 1 --caller-callee Nosuch

# ---- patterns, columns ---------------------------------------------------------------------------

printf 'group-preset = mine=^A->MINE\ngroup = mine\n' >own.conf
expect a_preset_of_the_conf_file_is_the_default 0 ' MINE$' report 1 --by-name --config own.conf
expect and_another_one_can_be_given 0 ' A$' report 1 --by-name --config own.conf --group '^E->X'
expect a_preset_that_matches_nothing_tells_its_patterns 0 \
	"'no' matches no frame of incident 1; it stands for \"A\"->B" \
	report 1 --group-preset 'no="A"->B' --group no
expect presets_of_ones_own_are_offered 0 'just-my-code, mine$' \
	report 1 --config own.conf --group my
expect more_columns 0 '^ +110\.0 .* +0\.000 +0\.[0-9]+ +0 +1000\.00 .* B$' \
	report 1 --by-name --columns first,last,fold,rate
expect no_such_column 2 "'laast' is not one of first, last, fold, rate" report 1 --columns laast
expect small_functions_are_folded_in_tables 0 '"name":"D"' report 1 --by-name --json
check all_are_there_without_it grep -q '"name":"E"' out
expect with_it_they_are_their_callers 0 '' report 1 --by-name --json --fold-percent 50
check and_nothing_is_lost eval '! grep -q "\"name\":\"D\"" out && [ "$(total)" = 180 ]'
expect one_included_pattern_is_enough 0 '' report 1 --by-name --json --inc '^E;^D'
check both_are_there [ "$(total)" = 70 ]
