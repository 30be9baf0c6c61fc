#!/bin/bash
# The health of a recorder, and what --on-failure does: its store becomes a directory while it
# records, and is a file again later.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_STORE RECORDER_CONFIG
export XDG_STATE_HOME=$TMP/state HOME=$TMP

expect a_policy_that_is_none_is_refused 2 "^recorder: --on-failure: 'cry' is not log, exit or" \
	collect --on-failure cry --store s.db
expect its_command_is_checked 2 '^recorder: --on-failure: a quote is not closed' \
	collect --on-failure "command:x 'y" --store s.db
expect text_of_events_is_no_code_in_it 2 'RECORDER_REASON' \
	collect --on-failure "command:sh -c 'echo %REASON%'" --store s.db
expect check_finds_no_program 2 "no executable program .no-such-program." \
	check --source none --store s.db --on-failure 'command:no-such-program x'
expect check_takes_each_policy 0 'command +ok +exit' \
	check --source none --store s.db --on-failure exit

status() { "$RECORDER" status --store s.db "$@" >status.out 2>&1; }
# health CODE WORD PATTERN
health()
{
	status
	[ $? = "$1" ] && grep -q "^Health  *$2" status.out && grep -q "$3" status.out && return
	cat status.out
	return 1
}
record()
{
	"$RECORDER" collect --source none --store s.db --on-failure "$@" 2>log &
	recorder=$!
	wait_for 10 health 0 ok ''
}
break_store() { rm -f s.db s.db-*; mkdir s.db; }

# shellcheck disable=SC2016
record 'command:sh -c '\''echo "$RECORDER_RULE: $RECORDER_REASON" >>told'\'
check a_recorder_that_records_is_healthy health 0 ok .
break_store
check a_store_that_cannot_be_used_is_a_failure wait_for 10 health 5 failing '  store: '
status --json
if command -v jq >/dev/null; then
	check json_has_the_word_and_its_reason jq -e '.health == "failing" and
		.reasons[0].reason == "store" and (.reasons[0].text | length > 20)' status.out
fi
check the_command_is_told_what_and_why wait_for 10 grep -q '^store: .*s\.db' told
check the_log_says_it grep -q 'recording fails (store): ' log
rmdir s.db
check it_recovers_with_a_new_store wait_for 10 health 4 degraded '  store-replaced: '
check the_log_says_that_too wait_for 10 grep -q 'nothing fails any more' log
"$RECORDER" stop --store s.db 2>/dev/null
wait $recorder
check its_command_ran_once [ "$(wc -l <told)" = 1 ]

record exit
break_store
wait $recorder
check a_failure_ends_it_with_a_code_of_its_own [ $? = 5 ]
check it_says_why grep -q 'recording fails (store) and ends, as --on-failure says: .*s\.db' log

# 100 MB of lines come faster than they are read: those left out are counted, but not as samples.
: >flood.log
"$RECORDER" collect --store f.db --stop-on-event-log-message "$PWD/flood.log@no such line" \
	--max-collect-sec 4 2>log & recorder=$!
wait_for 10 grep -q 'recording this machine' log
yes 'aaaaaaaaaaaaaaaa' | head -c 100000000 >flood.log
wait $recorder
rm flood.log
"$RECORDER" show 1 --losses --store f.db >losses
check they_are_lost_events grep -q '[0-9] events' losses
check lines_left_out_are_not_lost_samples expect_exit 1 grep -E '^Lost +[0-9,]+ samples' losses
