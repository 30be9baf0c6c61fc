#!/bin/bash
# All descriptors of a recorder are in use while it records: sampling goes on, an incident is
# stored, and the log says what waits for a descriptor. Once some are free again the history is
# written, and nothing of it is missing.
. "$TOP/tests/support/cli.sh"
need_perf

"$BUILD/programs/burn" 120 >/dev/null & burn=$!
trap 'kill -KILL $burn $recorder 2>/dev/null' EXIT
"$RECORDER" collect --store d.db --freq 199 --max-cpu-percent 0 --history-sync-sec 1 \
	--delay-after-trigger-sec 1 2>log & recorder=$!
wait_for 15 grep -q "recording this machine" log
hard=$(awk '/^Max open files/ { print $5 }' "/proc/$recorder/limits")

samples() { "$RECORDER" show --store d.db --process $burn --json "$@" 2>err | jq .samples; }

# From the lowest number on: what is closed meanwhile is not opened again. A status gets no answer.
prlimit --pid $recorder --nofile=3:"$hard"
check the_history_waits wait_for 30 grep -q 'history is not written: .*Too many open files' log
kill -USR2 $recorder
check an_incident_is_stored wait_for 60 grep -q 'incident 1 stored' log
check the_log_says_that_files_have_no_descriptor grep -q 'Too many open files' log
check no_file_is_blamed expect_exit 1 grep 'check that this user may' log
prlimit --pid $recorder --nofile="$hard:$hard"
check the_history_is_written_again wait_for 30 grep -q 'the history is written again' log
before=$(burnt $burn)
sleep 2
used=$(($(burnt $burn) - before))
"$RECORDER" stop --store d.db >stop.out 2>&1
wait $recorder
check it_ends_well [ $? = 0 ]
check the_neighbour_was_recorded_all_the_while test "$(samples 2)" -gt $((used / 10))
check no_second_of_the_history_is_missing bash -c "
	'$RECORDER' export --store d.db --last 10m --format jsonl -o - |
	jq -r 'select(.type == \"sample\") | .t_ms / 1000 | floor' | uniq |
	awk 'NR > 1 && \$1 > last + 2 { print last, \$1; bad = 1 } { last = \$1; n++ }
	     END { print n + 0, \"seconds\"; exit bad || n < 5 }'"
