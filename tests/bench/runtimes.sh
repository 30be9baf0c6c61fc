#!/bin/bash
# What rules on collections cost beside 10 JVMs and 5 .NET programs: the recorder's own CPU time
# (status), by turns with and without such a rule (the same programs, a recorder without sampling
# each). Prints a row, also as JSON to the end of RESULTS, if that is set. The JVMs allocate 2 MB a
# second each, so that they collect every few seconds, as services do.
#
#   tests/bench/runtimes.sh [SECONDS [TURNS]]      of each measurement (20, 3)
#
# RECORDER names another program.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
SECONDS_EACH=${1:-20}
TURNS=${2:-3}
JVMS=${JVMS:-10}
NETS=${NETS:-5}
. "$TOP/tests/bench/rows.sh"

tool=$TOP/build/deps/npm/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
command -v javac >/dev/null || { echo "skip runtimes: no javac"; exit 0; }
[ -f "$tool" ] || { echo "skip runtimes: no sarif-multitool (npm, by 'make deps')"; exit 0; }
work=$(mktemp -d) || exit 1
pids=()
finish()
{
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
	wait 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM
cd "$work" || exit 1

cat >Service.java <<'END'
public class Service {
	static byte[] kept;

	public static void main(String[] arguments) throws Exception {
		long end = System.nanoTime() + Long.parseLong(arguments[0]) * 1_000_000_000L;

		while (System.nanoTime() < end) {
			for (int i = 0; i < 20; i++)
				kept = new byte[1024];
			Thread.sleep(10);
		}
	}
}
END
javac --release 11 Service.java || exit 1
limit=$(((SECONDS_EACH + 8) * TURNS * 2 + 60))
collectors=(Serial G1 Parallel)
for ((i = 0; i < JVMS; i++)); do
	java "-XX:+Use${collectors[i % 3]}GC" -Xmx32m -XX:CICompilerCount=2 -cp . \
		Service $limit & pids+=($!)
done
# An idle .NET program: it waits for input that never comes.
cp "$tool" multitool && chmod +x multitool
mkfifo input.sarif
sleep $limit >input.sarif & pids+=($!)
for ((i = 0; i < NETS; i++)); do
	timeout $limit ./multitool rewrite input.sarif \
		--output "out$i.sarif" >/dev/null 2>&1 & pids+=($!)
done
for _ in $(seq 300); do
	[ "$(ls /tmp/dotnet-diagnostic-*-socket 2>/dev/null | wc -l)" -ge "$NETS" ] && break
	sleep 0.1
done
sleep 3

field() { "$RECORDER" status --store store.db --json 2>/dev/null | jq -r "$1" | head -n 1; }

# one OPTION...: run a recorder for SECONDS_EACH; its cost in 1/1,000 % of a core goes to $took, the
# number of its events to $events
one()
{
	local before after t0 t1 recorder
	rm -rf store.db*
	"$RECORDER" collect --store store.db --source none --max-cpu-percent 0 \
		--symbol-cache-mb 0 "$@" 2>log & recorder=$!
	pids+=("$recorder")
	for _ in $(seq 200); do grep -q recording log && break; sleep 0.1; done
	sleep 4
	before=$(field .cpu_ms) t0=$(field .elapsed_s)
	sleep "$SECONDS_EACH"
	after=$(field .cpu_ms) t1=$(field .elapsed_s)
	events=$("$RECORDER" status --store store.db --json 2>/dev/null |
		jq -r '[.sources[] | select(.name == "java" or .name == "dotnet") |
		"\(.name) \(.events)"] | join(", ")')
	"$RECORDER" abort --store store.db >/dev/null 2>&1
	wait "$recorder" 2>/dev/null
	unset 'pids[-1]'
	took=$(awk -v a="$before" -v b="$after" -v s="$t0" -v t="$t1" \
		'BEGIN { printf "%d", (b - a) / (t - s) * 100 }')
}

without=999999999 with=999999999
for ((turn = 0; turn < TURNS; turn++)); do
	one
	[ "$took" -lt "$without" ] && without=$took
	one --stop-on-gc-over-msec 100000
	[ "$took" -lt "$with" ] && with=$took
done
row "$JVMS JVMs, $NETS .NET programs" "tests/bench/runtimes.sh $SECONDS_EACH $TURNS" \
	without_pct "$(calc "n / 1000" n="$without")" with_pct "$(calc "n / 1000" n="$with")" \
	"added_pct<=0.3" "$(calc "(a - b) / 1000" a="$with" b="$without")"
echo "events: ${events:-none}"
