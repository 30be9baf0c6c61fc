#!/bin/bash
# The history on disk: kill -9 at random moments, twice (more: history_kill_linux.sh). Every file
# opens and is sound, what was brought to the disk is there, and the next command makes an incident
# of the end.
. "$TOP/tests/support/cli.sh"
need_perf

rounds=${ROUNDS:-2}
sync=1                                   # --history-sync-sec: seconds that a kill may cost
RANDOM=${SEED:-20261121}
"$BUILD/programs/burn" $((60 + rounds * 8)) >/dev/null & burn=$!
trap 'kill $burn 2>/dev/null' EXIT

now_ms() { date +%s%3N; }
files() { ls h.db.history/*.db 2>/dev/null; }
ended()
{
	"$RECORDER" list --store h.db --json 2>>err |
		jq -r 'select(.trigger == "recorder-ended").id'
}

samples_of_last() # SECONDS
{
	"$RECORDER" export --store h.db --last "$1" -f 2>>err |
		awk '{ n += $NF } END { print n + 0 }'
}

sound=0 incidents=0 fresh=0 named=0
for ((round = 1; round <= rounds; round++)); do
	rm -f h.db.ctl
	"$RECORDER" collect --store h.db --history-sync-sec $sync --max-cpu-percent 0 2>>log &
	recorder=$!
	wait_for 10 test -S h.db.ctl
	before=$(files | wc -l)
	wait_for 10 test "$(files | wc -l)" -ge 1
	sleep "$(printf '%d.%03d' $((2 + RANDOM % 3)) $((RANDOM % 1000)))"
	kill -KILL $recorder
	killed=$(now_ms)
	wait $recorder 2>/dev/null

	# What is there ends at most a sync, a wait for names and a write before the kill.
	last=$("$RECORDER" history --store h.db --json 2>>err | jq -r '.to_utc' | tail -1)
	missing=$((killed - $(date -d "$last" +%s%3N)))
	if [ "$missing" -le $((sync * 1000 + 1500)) ]; then
		fresh=$((fresh + 1))
	else
		echo "round $round: $missing ms are missing" >&2
	fi
	[ "$(samples_of_last 20)" -gt 20 ] && named=$((named + 1))
	newest=$(files | tail -1)
	[ "$(sqlite3 "$newest" 'PRAGMA integrity_check')" = ok ] && sound=$((sound + 1))
	[ "$(ended | wc -l)" -eq "$round" ] && incidents=$((incidents + 1))
done
echo "$rounds kills: $sound files sound, $fresh lost at most a sync, $incidents incidents" >&2

check every_file_is_sound_after_a_kill test $sound -eq $rounds
check a_kill_costs_one_sync_at_most test $fresh -eq $rounds
check the_last_seconds_are_there_after_a_kill test $named -eq $rounds
check each_kill_becomes_one_incident test $incidents -eq $rounds
check no_incident_is_made_twice bash -c '
	"$RECORDER" list --store h.db >/dev/null; "$RECORDER" list --store h.db --json |
		jq -r "select(.trigger == \"recorder-ended\").id" | wc -l | grep -qx '$rounds
check each_recorder_has_its_row bash -c '
	"$RECORDER" history --store h.db --json | grep -c "without saying so" | grep -qx '$rounds
expect its_reason_guesses_nothing 0 'why is unknown: the machine went on' show --store h.db
expect its_stacks_name_the_program 0 'burn' show --store h.db
expect all_files_are_stores 0 'is sound: 1 incident' verify "$(files | head -1)"
expect a_file_is_listed_like_a_store 0 'the history from' list --store "$(files | head -1)"
expect a_window_has_a_length_and_no_trigger 0 '^Window +300 s$' show --store h.db --last 5m
expect its_events_are_counted 0 'process-start' events --store h.db --last 5m --count
expect minutes_ago_until_seconds_ago_are_one_too 0 '^Window' show --store h.db --from -5m --to -1s
expect minutes_ago_until_now_are_a_window 0 "burn" report --store h.db --from -5m --to now
expect a_window_is_reported 0 'burn' report --store h.db --last 5m
expect events_of_a_window_are_printed 0 'expected' events --store h.db --last 5m
expect they_have_times_of_the_wall_clock 0 "^$(date +%Y)-[0-9-]+ [0-9:]+[.][0-9]{3}  " \
	events --store h.db --last 5m
expect they_are_counted 0 ' of .* events' events --store h.db --from -5m --to now --count
expect events_know_one_place 2 'give one of them' events --store h.db --last 5m --live sched/x
expect a_window_becomes_an_incident 0 'is stored' snapshot --store h.db --last 1m --reason late
expect it_is_in_the_list 0 'late' list --store h.db
at=$(date -u -d "$last - 3 seconds" +%Y-%m-%dT%H:%M:%S)
"$RECORDER" snapshot --store h.db --from "@$(date -d "$last - 9 seconds" +%s)" --at "${at}Z" \
	--to "@$(date -d "$last" +%s)" --reason about 2>>err
expect a_window_has_the_moment_that_it_is_about 0 "${at/T/ } .*about" list --store h.db
expect that_moment_is_in_the_window 2 'between --from and --to' snapshot --store h.db \
	--from "@$(date -d "$last - 9 seconds" +%s)" --at @1000 --to now
check it_holds_what_the_window_holds bash -c '
	a=$("$RECORDER" export --store h.db -f 2>/dev/null | wc -l)
	[ "$a" -gt 5 ]'
expect what_is_not_there_is_named 3 'it begins at' show --store h.db --at 'yesterday 03:12'
expect nothing_to_read_without_a_history 3 'there is no history' history --store none.db
expect a_window_needs_a_beginning 2 'give --from' show --store h.db --to 03:10
expect two_windows_are_one_too_many 2 'give one of them' show --store h.db --last 5 --at 03:10

# Rules on what was recorded before there was a rule that fires.
"$RECORDER" collect --store rule.db --max-collect-sec 4 --history-sync-sec 1 \
	/StopOnPerfCounter:'Memory:Available MBytes:<1' 2>>log
expect a_rule_is_tried_on_the_history 0 'Available MBytes' backtest --store rule.db --last 1m \
	/StopOnPerfCounter:'Memory:Available MBytes:>1' --min-sec-for-trigger 1
expect all_of_the_history_is_tried 0 "^$(date +%Y)-.*Available MBytes: was" \
	backtest --store rule.db --history --since 7d \
	/StopOnPerfCounter:'Memory:Available MBytes:>1' --min-sec-for-trigger 1
expect a_window_between_times_is_tried 3 'no rule would have fired' \
	backtest --store rule.db --from -5m --to now \
	/StopOnPerfCounter:'Memory:Available MBytes:<1' --min-sec-for-trigger 1
expect an_incident_and_the_history_are_too_much 2 'give one of them' \
	backtest --store rule.db 1 --history /StopOnPerfCounter:'Memory:Available MBytes:<1'
expect what_changed_needs_other_windows 3 'none of those windows whole' \
	diff --store rule.db --last 5 --against week

# Another rate, as after a step of the budget: another row, and why.
echo 'freq = 199' >rate.conf
"$RECORDER" collect --store rate.db --config rate.conf --history-sync-sec 1 --max-cpu-percent 0 \
	2>>log & recorder=$!
wait_for 10 test -S rate.db.ctl
sleep 2
echo 'freq = 49' >rate.conf
"$RECORDER" reload --store rate.db >>log 2>&1
sleep 2
"$RECORDER" stop --store rate.db >>log 2>&1
wait $recorder
expect a_step_of_the_rate_is_told 0 'sampling went on at 49 Hz: the configuration was read anew' \
	history --store rate.db
check each_rate_has_its_row bash -c '"$RECORDER" history --store rate.db --json | jq -se "
	map(.rate_hz | round) == [199, 49] and all(.samples > 0) and .[0].gap_after_s < 1"'

# A recorder that takes no samples leaves events.
"$RECORDER" collect --store idle.db --source none --history-sync-sec 1 --max-cpu-percent 0 \
	/StopOnPerfCounter:'Memory:Available MBytes:<1' 2>>log & recorder=$!
wait_for 20 bash -c '"$RECORDER" history --store idle.db --json | grep -q "\"samples\":0"'
# What waits for a CPU is lost with a kill: at a load of 14 and nice 10 it waited for 3 s.
check what_writes_the_history_does_not_wait_behind_others bash -c '
	ps -L -o comm=,ni= -p '"$recorder"' | awk "\$1 == \"history\" { n++; bad += \$2 > 0 }
		END { exit n != 1 || bad }"'
kill -KILL $recorder
wait $recorder 2>/dev/null
expect a_death_without_samples_is_told_too 0 'recorder ended without saying so' list --store idle.db

# A line that speaks of a moment before this recorder began: the history of the one before has it.
echo 'a line' >app.log
"$RECORDER" collect --store h.db --history-sync-sec 1 --max-cpu-percent 0 --max-collect-sec 30 \
	--replay-late --collect-multiple 9 --pre-sec 2 --delay-after-trigger-sec 1 \
	/StopOnEventLogMessage:"$PWD/app.log@slow" 2>late.log & recorder=$!
wait_for 10 grep -q 'recording this' late.log
at=$(date -d "$last - 1 second" -u +%Y-%m-%dT%H:%M:%SZ)
echo "$at a slow request" >>app.log
check a_late_line_becomes_an_incident_of_the_history \
	wait_for 20 grep -q 'is stored, out of the history' late.log
"$RECORDER" stop --store h.db >>log 2>&1
wait $recorder
check it_has_the_time_that_the_line_speaks_of bash -c '"$RECORDER" list --store h.db --json |
	jq -se "map(select(.reason | test(\"before it came.$\"))) | length == 1 and
		.[0].samples > 0 and (.[0].time_utc | startswith(\"'"${at%Z}"'\"))"'

"$RECORDER" collect --store small.db --history-mb 0 --max-collect-sec 2 2>>log
check no_history_when_it_is_off test ! -e small.db.history

"$BUILD/programs/history_fixture" bad.db 1 10 >/dev/null
file=$(echo bad.db.history/*.db)
dd if=/dev/zero of="$file" bs=4096 seek=1 count=1 conv=notrunc 2>/dev/null
expect a_damaged_file_is_named 3 'cannot be read: .recorder salvage' history --store bad.db
expect also_where_it_is_missed 3 '1 of its 1 files cannot be read' \
	report --store bad.db --last 2h
expect what_is_readable_can_be_saved 0 'saved.db has 1 incident' salvage "$file" -o saved.db
check all_of_it_here [ "$("$RECORDER" list --store saved.db --json | jq .samples)" = 36100 ]
