#!/bin/bash
# The wall clock is set forward and back, the machine sleeps, and the virtual machine is paused: the
# incident of each time has the time of day of its moment, says what happened to the clock, and the
# distances of its events stay right.
# time limit: 700
# is paused for: 8
. /vm/guest.sh
trap finish EXIT
cd /tmp || exit
: >log
"$recorder" collect --store s.db --source perf --max-cpu-percent 0 --history-mb 0 \
	--delay-after-trigger-sec 0 --min-interval-sec 0 --collect-multiple 99 \
	--stop-on-event-log-message '/tmp/log@moment \w+' 2>err & collect=$!
for ((i = 0; i < 900; i++)); do
	grep -q 'recording this' err && break
	sleep 0.1
done
sleep 3                                      # the first look at the clock is behind us

# moment NAME: an incident now; what the clock says goes to NAME.at.
moment()
{
	local i n
	n=$(grep -c ' stored: ' err)
	date +%s >"$1.at"
	echo "moment $1" >>log
	for ((i = 0; i < 300; i++)); do
		[ "$(grep -c ' stored: ' err)" -gt "$n" ] && break
		sleep 0.1
	done
}
uptime_s() { cut -d. -f1 /proc/uptime; }

# said WORDS...: within 10 s
said()
{
	local i
	for ((i = 0; i < 100; i++)); do
		grep -qE "$1" err && return 0
		sleep 0.1
	done
	tail -n 5 err
	return 1
}

began=$(date +%s)
moment plain
date -s "@$(($(date +%s) + 3600))" >date.out
check a_step_forward_is_logged said 'the wall clock was set forward by 3[56][0-9][0-9]\.'
moment forward
date -s "@$(($(date +%s) - 7200))" >date.out
check a_step_back_is_logged said 'the wall clock was set back by 7[12][0-9][0-9]\.'
moment back

rtc=/sys/class/rtc/rtc0
echo deep >/sys/power/mem_sleep
echo +6 >$rtc/wakealarm
check it_sleeps eval 'echo mem >/sys/power/state'
check that_it_slept_is_logged said 'the machine slept for [4-9]\.[0-9] s'
moment slept

# The hardware clock is that of the host, and goes on while the virtual machine does not.
behind() { echo $(($(cat $rtc/since_epoch) - $(date +%s))); }
before=$(behind)
echo "vm: pause me"
for ((i = 0; i < 600; i++)); do
	[ $(($(behind) - before)) -ge 5 ] && break
	sleep 0.1
done
check it_was_paused test $(($(behind) - before)) -ge 5
date -s "@$(cat $rtc/since_epoch)" >date.out # as an agent of the host, or NTP, does
moment paused
check the_clock_put_right_is_logged test "$(grep -c 'the wall clock was set forward' err)" = 2
kill -INT $collect
wait $collect

"$recorder" list --store s.db --json >list
sed 's/^/it lists: /' list | cut -c1-300
for name in plain forward back slept paused; do
	jq -r "select(.reason | test(\"moment $name\")) | .time_utc" list >"$name.time"
	at=$(date -d "$(head -n 1 "$name.time")" +%s)
	echo "it is $name: $((at - $(cat "$name.at"))) s from its moment"
	check "its_time_is_right: $name" test ${at:-0} -ge $(($(cat "$name.at") - 1)) -a \
		${at:-0} -le $(($(cat "$name.at") + 5))
done

# Each has all since the beginning: minutes, whatever the clock says.
id=$(jq -r 'select(.reason | test("moment paused")) | .id' list)
"$recorder" export --store s.db --id "$id" --format jsonl -o paused.json --force 2>export.err
check the_incident_has_what_happened_to_the_clock test "$(jq -r \
	'select(.provider? == "Recorder" and .name? == "Clock") | .payload.Text' paused.json |
	grep -cE 'was set forward|was set back|slept')" = 4
check its_events_are_in_order jq -n -e '[inputs | select(.type == "event") | .t_ms] | . == sort' \
	paused.json
