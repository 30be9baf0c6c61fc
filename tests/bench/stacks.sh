#!/bin/bash
# make bench-stacks: how many stacks of the programs of tests/bench/load.sh reach their root, and what
# recording them costs. STACKS_S=30 is for how long, STACKS_HZ=499 how often; what the recorder promises
# for 99 Hz is measured by STACKS_HZ=99 STACKS_S=66.
#
# Rows go to stdout, and as JSON to build/bench/stacks.jsonl; everything else is below
# build/bench/stacks. The last line is the verdict; exit 1 when a row is short of its goal.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
SECONDS_TO_RECORD=${STACKS_S:-30}
HZ=${STACKS_HZ:-499}
export LC_ALL=C

command -v jq >/dev/null || { echo "stacks: needs jq (make deps installs it)" >&2; exit 1; }
mkdir -p "$TOP/build/bench/stacks" && cd "$TOP/build/bench/stacks" || exit 1
rm -rf live.db* ./*.json
. "$TOP/tests/bench/load.sh"
recorder=
trap 'load_stop; [ -z "$recorder" ] || kill -TERM "$recorder" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

# "all capture samples lost elapsed": ns of CPU time of the whole recorder, of the threads that drain,
# unwind and intern; from its own status the samples, the lost ones, and for how many ms it has run.
costs()
{
	local task all=0 capture=0 ns
	for task in /proc/"$recorder"/task/*; do
		read -r ns _ <"$task/schedstat"
		all=$((all + ns))
		case $(<"$task/comm") in
		perf | merge) capture=$((capture + ns)) ;;
		esac
	done
	echo "$all $capture $("$RECORDER" status --json --store live.db |
		jq -r '"\(.samples) \(.lost) \(.elapsed_s * 1000)"')"
}

load_start $((SECONDS_TO_RECORD + 60))
sleep 3                                 # JITs warm up
"$RECORDER" collect --freq "$HZ" --max-cpu-percent 0 --pre-sec "$SECONDS_TO_RECORD" --store live.db \
	--delay-after-trigger-sec 0 --max-collect-sec "$SECONDS_TO_RECORD" 2>live.log &
recorder=$!
sleep 4                                 # tables and names of what runs already
from=$(costs)
sleep $((SECONDS_TO_RECORD - 6))
to=$(costs)
wait "$recorder" || { cat live.log >&2; exit 1; }
recorder=
"$RECORDER" show --store live.db --id 1 >all.txt
"$RECORDER" show --store live.db --id 1 --json >all.json

: >"$TOP/build/bench/stacks.jsonl"
short=0
echo "Stacks of ${#load_names[@]} busy programs, $HZ Hz, $SECONDS_TO_RECORD s, 16 KiB of stack copied with each sample"
printf '%-9s %8s %9s %9s %9s %9s %9s %9s  %s\n' program samples complete stitched remote fp \
	truncated broken verdict
for name in "${load_names[@]}"; do
	"$RECORDER" show --store live.db --id 1 --process "${load_process[$name]}" --json >one.json || continue
	case $name in
	java)    goal=0 ;;
	java-fp) goal=99 ;;
	*)       goal=98 ;;
	esac
	jq -r --arg name "$name" --argjson goal $goal '.samples as $n | .stack_quality as $q |
		def pct(k): 10000 * ($q[k] // 0) / $n | round / 100;
		{program: $name, samples: $n, complete_pct: pct("complete"), stitched_pct: pct("stitched"),
		 remote_pct: pct("remote"), fp_pct: pct("fp"), truncated_pct: pct("truncated"),
		 broken_pct: pct("broken"), goal_pct: $goal}' one.json >row.json || continue
	jq -c . row.json >>"$TOP/build/bench/stacks.jsonl"
	verdict=$(jq -r 'if .goal_pct == 0 then "incomplete: see below"
		elif .complete_pct + .stitched_pct + .remote_pct >= .goal_pct then "ok, \(.goal_pct) % asked"
		else "SHORT of \(.goal_pct) %" end' row.json)
	[[ $verdict != SHORT* ]] || short=1
	printf '%-9s %8s %9s %9s %9s %9s %9s %9s  %s\n' $(jq -r '.program, .samples, .complete_pct,
		.stitched_pct, .remote_pct, .fp_pct, .truncated_pct, .broken_pct' row.json) "$verdict"
done
echo
echo "$from $to" | awk -v hz="$HZ" -v load="$(cut -d " " -f 1 /proc/loadavg)" '{
	n = $8 - $3; ms = $10 - $5
	printf "Cost at %d Hz: %.1f us a sample to drain, unwind and intern (goal at 499 Hz: 12); all threads %.2f %% " \
		"of a core\n(goal at 99 Hz: 0.5); %d samples lost (goal 0) in %.0f s; load average %s\n",
		hz, ($7 - $2) / n / 1000, ($6 - $1) / ms / 10000, $9 - $4, ms / 1000, load
}'
if [ "${load_process[java]:-}" ]; then
	echo
	echo "What show says of the JVM that was started without -XX:+PreserveFramePointer:"
	grep -A 1 -F "java (${load_process[java]})" all.txt | head -n 2
	grep -A 1 -F "java (${load_process[java]})" all.txt | grep -q PreserveFramePointer || short=1
fi
exit $short
