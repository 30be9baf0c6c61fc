#!/bin/bash
# Attacks of an unprivileged user all at once, for ATTACK_S seconds (20; the acceptance run takes
# 600): processes, mappings, hard links, .NET and Java programs that are none, a log with lines that
# are expensive to match, names of programs. The recorder's memory and CPU time keep to its limits,
# and another program's samples are all there. From a minute on hard links and expensive lines are
# among them, there are as many programs as the tables have places, and CPU time keeps to its limit
# in each 20 s.
# alone: it attacks whatever else records
# time limit: 900
. "$TOP/tests/support/cli.sh"
need_perf

seconds=${ATTACK_S:-20} cpu_limit=10 rss_limit=100 hz=199
attackers=() as_user=()
nlinks=0 nexpensive=0 ndotnet=64 njava=200
[ "$seconds" -lt 60 ] || nlinks=78000 nexpensive=110 ndotnet=256 njava=257
if [ "$(id -u)" = 0 ] && setpriv --reuid=65534 --regid=65534 --clear-groups \
		test -x "$BUILD/programs/flood_linux" 2>/dev/null; then
	as_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
else
	echo "the attackers are of the recorder's own user here, which has more room" >&2
fi

high_mb() { awk '/^VmHWM/ { printf "%.0f\n", $2 / 1024 }' "/proc/$recorder/status"; }

# CPU time of the recorder so far, with its process that reads symbols and those before, ms.
used_ms()
{
	{ echo "$recorder"; pgrep -P "$recorder"; } |
		sed 's:.*:/proc/&/stat:' | xargs cat 2>/dev/null |
		awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); n += $12 + $13 + $14 + $15 }
			END { printf "%.0f\n", n * 1000 / hz }'
}

now_ms() { echo $(($(date +%s%N) / 1000000)); }

# cpu_pct USED_MS SINCE_MS: of the time since then.
cpu_pct() { echo $((($(used_ms) - $1) * 100 / ($(now_ms) - $2))); }

attack()
{
	"${as_user[@]}" "$@" >/dev/null 2>&1 & attackers+=($!)
}

names()
{
	local i end=$((SECONDS + seconds))
	for ((i = 0; SECONDS < end; i++)); do
		ln -s "$(type -P true)" "name$i" && "./name$i"
		rm -f "name$i"
	done
}

# Each of the first lines costs the rule's pattern all the steps that it may take.
log_lines()
{
	local end=$((SECONDS + seconds)) as
	as=$(printf 'a%.0s' {1..40})
	while [ $SECONDS -lt $end ]; do
		seq -f "error %g $as, for ever" $nexpensive
		seq -f 'error %g of a service that is none' $((500 - nexpensive))
		sleep 0.02
	done >>app.log
}

: >app.log
"$RECORDER" collect --store a.db --freq $hz --max-cpu-percent $cpu_limit \
	--max-rss-mb $rss_limit --pre-sec $((seconds + 60)) --delay-after-trigger-sec 0 \
	--stop-on-gc-over-msec 1000000000 \
	--stop-on-event-log-message "$PWD/app.log@never|(a+)+never" \
	'/StopOnPerfCounter:Process:IO Read Bytes/sec:_Total>1e15' 2>log & recorder=$!
trap 'kill -KILL $recorder "${attackers[@]}" $burn 2>/dev/null' EXIT
wait_for 15 grep -q "recording this machine" log
"$BUILD/programs/burn" $((2 * seconds + 60)) >/dev/null & burn=$!
sleep 2
before=$(used_ms) since=$(now_ms)
attack "$BUILD/programs/flood_linux" forks 100000 "$seconds"
attack "$BUILD/programs/flood_linux" maps 8000 "$seconds"
[ $nlinks = 0 ] || attack "$BUILD/programs/flood_linux" links $nlinks "$seconds"
attack "$BUILD/programs/dotnet_flood_linux" "$ndotnet" "$seconds"
attack "$BUILD/programs/dotnet_flood_linux" 8 "$seconds" events
attack "$BUILD/programs/hsperf_flood_linux" "$njava" "$seconds"
names & attackers+=($!)
log_lines & attackers+=($!)
most_pct=0
for ((left = seconds; left > 0; left -= 20)); do
	# The buffer may not reach back further, under such a limit.
	if [ $left -gt 200 ] || [ ! "${judged_ms:-}" ]; then
		judged_ms=$(now_ms) judged_burnt=$(burnt $burn)
	fi
	piece_used=$(used_ms) piece_since=$(now_ms)
	sleep $((left < 20 ? left : 20))
	pct=$(cpu_pct "$piece_used" "$piece_since")
	most_pct=$((pct > most_pct ? pct : most_pct))
done
cpu_pct=$(cpu_pct "$before" "$since")
kill -STOP $burn
ms=$(($(burnt $burn) - judged_burnt))
"$RECORDER" status --store a.db >status 2>&1
high=$(high_mb)
kill "${attackers[@]}" 2>/dev/null
wait "${attackers[@]}" 2>/dev/null
timeout 60 "$RECORDER" stop --store a.db >stop.out 2>&1
wait $recorder
kill -KILL $burn
wait $burn 2>/dev/null
"$RECORDER" show --store a.db --process $burn --json >show.json 2>err
fired_ms=$(($(date -d "$(jq -r .time_utc show.json)" +%s%N) / 1000000))
# CPU time, also where the rate was lowered.
seen_ms=$("$RECORDER" report --store a.db --process $burn --json \
	--from "$(awk -v ms=$((judged_ms - fired_ms)) 'BEGIN { print ms / 1000 }')" 2>>err |
	jq -s '[.[] | select(.row == "process").inclusive_ms] | add // 0 | round')
grep -A9 '^Health\|^Note\|^Recorder' status >&2
grep -v 'NET program with pid' log | tail -n 12 >&2
{
	echo "what               measured   limit"
	printf '%-18s %8s   %s\n' "memory, MB" "$high" $rss_limit \
		"CPU time, %" "$cpu_pct" "$cpu_limit, twice" \
		"in the worst 20 s" "$most_pct" "$cpu_limit, twice" \
		"samples, ms" "$seen_ms" "$ms of the neighbour's CPU time"
} >&2
check memory_keeps_to_its_limit test "$high" -le $rss_limit
check cpu_time_keeps_to_twice_its_limit test "$cpu_pct" -le $((2 * cpu_limit))
[ "$seconds" -lt 60 ] || check and_in_each_20_s test "$most_pct" -le $((2 * cpu_limit))
# More, too: a timer of the kernel also counts time that a host took from this machine.
check no_sample_of_a_neighbour_is_missing awk -v seen="$seen_ms" -v ms="$ms" \
	'BEGIN { exit !(ms > 500 && seen > 0.95 * ms && seen < 1.15 * ms) }'
check its_incident_is_stored grep -q "incident 1 stored" log
