#!/bin/bash
# make bench-stacks: how many stacks of the programs of tests/bench/load.sh reach their root, and
# what recording them costs. STACKS_S=30 is for how long, STACKS_HZ=499 how often, STACKS_KB=32 what
# --stack-kb is; what the recorder promises for 99 Hz is measured by STACKS_HZ=99 STACKS_S=66.
# LOAD=java measures Java alone. STACKS_WARM_S=0 begins with the JVM, whose methods are compiled and
# met first then; else all have run for 11 s.
#
# Of these costs, walking alone has a goal of 8 us for Java, once warm: all frames of a stack are
# stepped over and named, and the thread memory reads what that needs of the process. perf(1) tells
# the part of the thread perf, so the row is there only where that is installed.
#
# The cost is the CPU time of each thread from schedstat, the kernel's work on its behalf included.
# The threads perf and merge drain, unwind and intern; rows beside them show names (symbols), unwind
# tables (loader), and the whole recorder.
#
# Rows go to stdout, and as JSON to build/bench/stacks.jsonl; everything else is below
# build/bench/stacks. Exit 1 when a row is short of its goal.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
SECONDS_TO_RECORD=${STACKS_S:-30}
HZ=${STACKS_HZ:-499}
KB=${STACKS_KB:-32}
WARM_S=${STACKS_WARM_S:-8}
export LC_ALL=C

command -v jq >/dev/null || { echo "stacks: needs jq (make deps installs it)" >&2; exit 1; }
mkdir -p "$TOP/build/bench/stacks" && cd "$TOP/build/bench/stacks" || exit 1
rm -rf live.db* ./*.json
. "$TOP/tests/bench/load.sh"
recorder=
trap 'load_stop; [ -z "$recorder" ] || kill -TERM "$recorder" 2>/dev/null' EXIT
trap 'exit 130' INT TERM

# Print "TIME thread NAME NS WAKE-UPS" for each thread of the recorder (NS is its CPU time), and
# "TIME status SAMPLES LOST MS" from its own status (MS is how long it has run). TIME is $1.
costs()
{
	local task ns
	for task in /proc/"$recorder"/task/*; do
		read -r ns _ <"$task/schedstat"
		echo "$1 thread $(tr ' ' _ <"$task/comm") $ns" \
			"$(sed -n 's/^voluntary_ctxt_switches:\s*//p' "$task/status")"
	done
	"$RECORDER" status --json --store live.db |
		jq -r --arg time "$1" '"\($time) status \(.samples) \(.lost) \(.elapsed_s * 1000)"'
}

[ "$WARM_S" = 0 ] || load_start $((SECONDS_TO_RECORD + 60))
sleep 3                                 # JITs warm up
"$RECORDER" collect --freq "$HZ" --stack-kb "$KB" --max-cpu-percent 0 \
	--pre-sec "$SECONDS_TO_RECORD" \
	--store live.db --delay-after-trigger-sec 0 \
	--max-collect-sec $((SECONDS_TO_RECORD + 10)) 2>live.log &
recorder=$!                             # it goes on for 10 s, so that it is there when it is asked
sleep "$WARM_S"                          # tables and names of what runs already
if [ "$WARM_S" = 0 ]; then
	sleep 2
	load_start $((SECONDS_TO_RECORD + 60))
fi
costs from >costs.txt
sleep $((SECONDS_TO_RECORD - 6))
costs to >>costs.txt
rm -f self.data                          # after the costs, because this adds to them
! command -v perf >/dev/null ||
	perf record -q -e cpu-clock -F 4999 -g -p "$recorder" -o self.data sleep 6 2>self.err
wait "$recorder" || { cat live.log >&2; exit 1; }
recorder=
"$RECORDER" show --store live.db --id 1 >all.txt
"$RECORDER" show --store live.db --id 1 --json >all.json

: >"$TOP/build/bench/stacks.jsonl"
short=0
echo "Stacks of ${#load_names[@]} busy programs, $HZ Hz, $SECONDS_TO_RECORD s," \
	"$KB KiB of stack copied with each sample"
printf '%-9s %8s %9s %9s %9s %9s %9s %9s  %s\n' program samples complete stitched remote fp \
	truncated broken verdict
for name in "${load_names[@]}"; do
	"$RECORDER" show --store live.db --id 1 --process "${load_process[$name]}" \
		--json >one.json || continue
	case $name in
	java*)   goal=99 ;;
	*)       goal=98 ;;
	esac
	jq -r --arg name "$name" --argjson goal $goal '.samples as $n | .stack_quality as $q |
		def pct(k): 10000 * ($q[k] // 0) / $n | round / 100;
		{program: $name, samples: $n, complete_pct: pct("complete"),
		stitched_pct: pct("stitched"),
		 remote_pct: pct("remote"), fp_pct: pct("fp"), truncated_pct: pct("truncated"),
		 broken_pct: pct("broken"), goal_pct: $goal}' one.json >row.json || continue
	jq -c . row.json >>"$TOP/build/bench/stacks.jsonl"
	verdict=$(jq -r 'if .complete_pct + .stitched_pct + .remote_pct >= .goal_pct
		then "ok, \(.goal_pct) % asked"
		else "SHORT of \(.goal_pct) %" end' row.json)
	[[ $verdict != SHORT* ]] || short=1
	printf '%-9s %8s %9s %9s %9s %9s %9s %9s  %s\n' $(jq -r '.program, .samples, .complete_pct,
		.stitched_pct, .remote_pct, .fp_pct, .truncated_pct, .broken_pct' row.json) \
		"$verdict"
done
echo
jq -R -s -c --argjson hz "$HZ" --argjson load "$(cut -d " " -f 1 /proc/loadavg)" '
	[splits("\n") | select(. != "") | split(" ")] |
	def status: map(select(.[1] == "status")) | map(.[2:] | map(tonumber))
		| [.[0], .[-1]] | transpose | map(.[1] - .[0]);
	status as [$samples, $lost, $ms] |
	map(select(.[1] == "thread")) | group_by(.[2]) | map({name: .[0][2],
		ns: (map((.[3] | tonumber) * (if .[0] == "to" then 1 else -1 end)) | add),
		wakes: (map((.[4] | tonumber) * (if .[0] == "to" then 1 else -1 end)) | add)}) |
	def us: . / $samples / 10 | round / 100;
	{row: "cost", hz: $hz, seconds: ($ms / 1000), samples: $samples, lost: $lost,
	 load_average_1m: $load,
	 capture_us: (map(select(.name == "perf" or .name == "merge") | .ns) | add | us),
	 all_us: (map(.ns) | add | us), all_pct: ((map(.ns) | add) / $ms / 100 | round / 100),
	 threads: (sort_by(-.ns) | map({name, us: (.ns | us),
		wakes_per_s: (.wakes * 10000 / $ms | round / 10)}))}' \
	costs.txt >cost.json
cat cost.json >>"$TOP/build/bench/stacks.jsonl"
jq -r 'def right($n): tostring | " " * ([$n - length, 0] | max) + .;
	"Cost at \(.hz) Hz, CPU time of \(.samples) samples in \(.seconds | round) s, " +
	"load average \(.load_average_1m):",
	"  \(.capture_us) us a sample to drain, unwind and intern: " +
	"the threads perf and merge (goal at 499 Hz: 12)",
	"  \(.all_us) us a sample, \(.all_pct) % of a core: " +
	"all threads (goal at 99 Hz, two busy CPUs: 0.5 %)",
	"  \(.lost) samples lost (goal at 99 Hz: 0)",
	"  thread     us a sample  wake-ups a second",
	(.threads[] |
	"  \((.name + "         ")[:10]) \(.us | right(11))  \(.wakes_per_s | right(17))")' \
	cost.json
# Each stack of the thread perf is a paragraph of addresses and names.
[ ! -s self.data ] || perf script -i self.data --comm perf -F ip,sym 2>/dev/null | awk -v RS= '
	/ perf_walk\n/ {walk++}
	END {if (NR) print walk / NR, NR}' >walk.txt
[ ! -s walk.txt ] || read -r share n <walk.txt && jq -r --argjson share "$share" --argjson n "$n" '
	def us(name): [.threads[] | select(.name == name) | .us] | add // 0;
	(us("perf") * $share) as $walk |
	"  \($walk * 100 | round / 100) us a sample to walk (\($share * 100 | round) % of the " +
	"thread perf, by \($n) samples of it) + \(us("memory")) us to read of the process = " +
	"\(($walk + us("memory")) * 100 | round / 100) us (goal for Java, once warm: 8)"' cost.json
exit $short
