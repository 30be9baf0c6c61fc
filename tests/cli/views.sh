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
