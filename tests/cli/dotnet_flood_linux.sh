#!/bin/bash
# 64 programs that pretend to be .NET and send descriptions and blocks without end: what the
# recorder keeps for all of them together is bounded, and what it drops is counted. Without the
# shares it held 380 MB and more after 10 s.
. "$TOP/tests/support/cli.sh"
need_perf

high_mb() { awk '/^VmHWM/ { printf "%.0f\n", $2 / 1024 }' "/proc/$recorder/status"; }

"$RECORDER" collect --store d.db --max-rss-mb 100 --stop-on-gc-over-msec 100000 \
	2>log & recorder=$!
wait_for 10 grep -q recording log
"$BUILD/programs/dotnet_flood_linux" 64 10 & flood=$!
sleep 9
high=$(high_mb)
"$RECORDER" status --store d.db >status 2>&1
kill -INT $recorder
wait $recorder
wait $flood
echo "$high MB resident at most, of the recorder with 64 floods" >&2
check memory_has_a_bound_below_160_mb [ "$high" -le 160 ]
check the_status_says_what_was_dropped grep -q 'NET programs exceeded their shares' status
check a_program_gets_one_line_in_the_log \
	[ "$(grep -c 'NET program with pid .* exceed' log)" -le 64 ]
check the_log_has_a_summary grep -q 'NET programs exceeded their shares' log
check it_goes_on_recording grep -q 'incident 1 stored' log
