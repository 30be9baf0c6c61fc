#!/bin/bash
# SIGHUP: a recorder without a terminal reopens its log and continues. A recorder whose terminal
# hangs up saves what it has and ends. Two signals at once count as one. The script also checks the
# priorities of the threads with --low-priority.
. "$TOP/tests/support/cli.sh"
need_perf

setsid "$RECORDER" collect --store d.db --log-file d.log \
	--low-priority --max-cpu-percent 0 >/dev/null 2>&1 &
recorder=$!
wait_for 10 test -S d.db.ctl
mv d.log d.log.1
kill -HUP $recorder
wait_for 10 test -e d.log
nice_of() { awk '{ sub(/.*\) /, ""); print $17 }' \
	"$(grep -lx "$1" /proc/$recorder/task/*/comm | sed 's/comm$/stat/')"; }
writer=$(nice_of writer) symbols=$(nice_of symbols) merge=$(nice_of merge)
"$RECORDER" snapshot --store d.db >/dev/null
"$RECORDER" stop --store d.db >/dev/null
wait $recorder
code=$?
check a_daemon_goes_on_after_a_hangup \
	grep -q 'hang-up without a terminal: recording continues' d.log.1
check and_its_log_goes_on_in_a_new_file grep -q 'stored: stopped by' d.log
check and_it_ends_well test $code = 0
check low_priority_is_the_lowest test "$writer $symbols" = '19 19'
check low_priority_leaves_sampling_alone test "$merge" -le 0

# Signal the program and then its group, as timeout(1) does. Try again if this shell had to wait for
# a CPU in between.
took=1000
for try in 1 2 3; do
	[ $took -lt 150 ] && break
	rm -f e.db*
	"$RECORDER" collect --store e.db --max-cpu-percent 0 2>e.log &
	recorder=$!
	wait_for 10 test -S e.db.ctl
	sleep 0.5
	began=${EPOCHREALTIME/./}
	kill -TERM $recorder
	sleep 0.005
	kill -TERM $recorder 2>/dev/null
	took=$(((${EPOCHREALTIME/./} - began) / 1000))
	wait $recorder
	code=$?
done
if [ $took -lt 150 ]; then
	check two_signals_at_once_end_it_once test $code = 0
	check and_what_it_holds_is_stored sh -c \
		'"$RECORDER" list --store e.db --json | grep -q complete'
else
	echo "skip two_signals_at_once_end_it_once: they were $took ms apart"
fi

if command -v script >/dev/null; then
	script -qfc "'$RECORDER' collect --store t.db --max-cpu-percent 0" \
		typescript >/dev/null 2>&1 </dev/null &
	terminal=$!
	wait_for 10 test -S t.db.ctl
	sleep 0.3
	kill -KILL $terminal             # its side of the terminal is closed
	wait $terminal 2>/dev/null
	wait_for 20 sh -c '"$RECORDER" list --store t.db --json 2>/dev/null | grep -q complete'
	check at_a_terminal_a_hangup_saves_and_ends sh -c \
		'"$RECORDER" list --store t.db | grep -q "signal"'
else
	echo "skip at_a_terminal_a_hangup_saves_and_ends: no script(1) here"
fi
