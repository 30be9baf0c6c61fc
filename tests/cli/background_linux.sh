#!/bin/bash
# start, list-sessions, stop and abort: a recorder that goes on after the command has returned.
. "$TOP/tests/support/cli.sh"
need_perf
unset RECORDER_STORE RECORDER_CONFIG

# Its streams are let go: else this pipe would stay open until it ends.
check start_returns_when_it_records sh -c \
	'timeout 30 "$RECORDER" start --store s.db --max-cpu-percent 0 2>&1 | cat >said'
check and_says_which_process_it_is \
	grep -q 'in the background, process [0-9]*; .* log is s.db.log' said
expect it_records 0 'State +recording' status --store s.db
check its_log_is_beside_the_store wait_for 20 grep -q 'recording this machine' s.db.log
pid=$("$RECORDER" status --store s.db --json | jq .pid)
check it_has_a_session_of_its_own test "$(ps -o sid= -p "$pid" | tr -d ' ')" = "$pid"
expect a_second_one_is_refused_with_its_exit_code 1 'another recorder' start --store s.db
expect a_mistake_has_its_own_too 2 'no operator' start --store x.db /StopOnPerfCounter:nonsense
expect perfviews_spelling_works 0 "^ *$pid .*$TMP" listSessions
has_the_whole_path() { "$RECORDER" list-sessions --json |
	jq -s -e "any(.pid == $pid and .store == \"$PWD/s.db\")"; }
check list_sessions_has_the_whole_path has_the_whole_path
expect stop_ends_it 0 'last incident' stop --store s.db
wait_for 20 sh -c "! kill -0 $pid"
check with_an_incident sh -c '"$RECORDER" list --store s.db | grep -q "stopped by"'

"$RECORDER" start --store a.db --max-cpu-percent 0 2>/dev/null
pid=$("$RECORDER" status --store a.db --json | jq .pid)
expect abort_ends_it 0 'nothing more is stored' abort --store a.db
wait_for 20 sh -c "! kill -0 $pid"
expect without_an_incident 3 'no incidents' list --store a.db
is_gone() { ! "$RECORDER" list-sessions --json | grep -q "\"pid\":$pid,"; }
check it_is_no_session_any_more is_gone
