#!/bin/bash
# status, snapshot, stop and abort while no recorder runs; check and counters, which need none.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_STORE RECORDER_CONFIG
export XDG_STATE_HOME=$TMP/state HOME=$TMP

for command in status snapshot stop abort; do
	expect "${command}_without_a_recorder_says_what_to_do" 3 "recorder collect" \
		$command --store "$TMP/none.db"
done
expect reason_belongs_to_snapshot 2 'option of snapshot' stop --reason x

# ---- check: what is wrong is said, all of it, and nothing is written -----------------------------

cpu='Processor:% Processor Time:_Total'
expect check_shows_the_value_of_a_good_rule 0 'now [0-9]' \
	check --store "$TMP/x.db" --stop-on-perf-counter "$cpu>80"
check check_records_nothing [ ! -e "$TMP/x.db" ]
expect check_a_spec_without_a_limit 2 'rule +wrong' \
	check --store "$TMP/x.db" /StopOnPerfCounter:"$cpu"
expect check_a_spec_without_colons 2 'wrong' check --store "$TMP/x.db" /StopOnPerfCounter:"CPU>80"
expect check_a_bad_number 2 'wrong' check --store "$TMP/x.db" /StopOnPerfCounter:"$cpu>8x"
expect check_an_unknown_category_names_the_nearest 2 'Processor' \
	check --store "$TMP/x.db" /StopOnPerfCounter:"Procesor:% Processor Time:_Total>80"
expect check_an_unknown_counter_names_the_nearest 2 '% Processor Time' \
	check --store "$TMP/x.db" /StopOnPerfCounter:"Processor:% Procesor Time:_Total>80"
expect check_an_absent_instance_is_no_error 0 'does not exist now' \
	check --store "$TMP/x.db" /StopOnPerfCounter:"Process:% Processor Time:no-such-program>80"
expect check_a_pid_that_no_process_has_is_noted 0 'no process has the pid 99999999 now' \
	check --store "$TMP/x.db" --stop-on-process 99999999
check as_a_note_and_no_error grep -q '^rule     note     StopOnProcess:99999999' out
expect check_a_pid_that_is_there 0 'rule +ok' check --store "$TMP/x.db" --stop-on-process $$
expect check_a_misspelled_log_is_noted 0 'did you mean Application@' \
	check --store "$TMP/x.db" --stop-on-event-log-message Aplication@x
expect check_a_user_at_a_host_is_none 0 '^rule +ok' \
	check --store "$TMP/x.db" --stop-on-event-log-message user@host
expect check_names_options_without_effect 0 'without effect here' \
	check --store "$TMP/x.db" /StopOnPerfCounter:"$cpu>80" /Zip:true /AcceptEULA
expect check_several_rules_in_one_option 2 '1 setting is wrong' \
	check --store "$TMP/x.db" /StopOnPerfCounter:"$cpu>80,$cpu>90" /StopOnPerfCounter:nonsense
check check_ends_with_what_is_wrong \
	grep -q "1 setting is wrong: .*'nonsense': no operator" err
check check_prints_each_rule sh -c '[ "$(grep -c "^rule" out)" = 3 ]'
expect check_counts_what_is_wrong 2 '2 settings are wrong; the first: ' \
	check --store "$TMP/x.db" --stop-on-perf-counter nonsense --stop-on-perf-counter "$cpu"
expect check_refuses_a_stack_that_collect_refuses 2 '1 setting is wrong: --stack-kb: 5 is not' \
	check --store "$TMP/x.db" --stack-kb 5
check and_marks_it grep -Eq '^setting +wrong +stack-kb' out
expect check_json 0 '' check --json --store "$TMP/x.db" /StopOnPerfCounter:"$cpu>80"
if command -v jq >/dev/null; then
	check check_json_is_one_object_a_line \
		jq -e -s 'length > 5 and all(has("check") and has("name") and
		has("verdict"))' out
	check check_json_has_the_rule \
		jq -e -s 'map(select(.check == "rule"))[0] | .verdict == "ok" and
		.limit == 80 and (.value | type) == "number"' out
else
	echo "skip check_json_keys: no jq here"
fi
echo foreign >foreign.db
expect check_a_store_that_cannot_be_used 1 'store +wrong' check --store foreign.db

# ---- counters ------------------------------------------------------------------------------------

expect counters_by_pattern 0 'Memory:Available MBytes:' counters 'available mbytes'
expect counters_that_match_nothing 3 'no counter matches' counters no-such-counter
expect counters_json 0 '' counters --json memory
if command -v jq >/dev/null; then
	check counters_json_is_one_object_a_line jq -e -s 'length > 3' out
else
	echo "skip counters_json_is_one_object_a_line: no jq here"
fi
