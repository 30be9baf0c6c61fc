#!/bin/bash
# Pauses of real Java programs, against what the JVM itself logs (-Xlog:gc): one that ran before the
# recorder, one that starts after it.
# time limit: 180
. "$TOP/tests/support/cli.sh"
need_perf
if ! command -v javac >/dev/null || ! javac --release 11 --version >/dev/null 2>&1; then
	echo "skip pauses of Java programs: no javac here (install a JDK of 11 or later)"
	exit 0
fi

cat >Churn.java <<'EOF'
import java.util.Random;

/* Churn SECONDS: a live set of 50 MB of small arrays, parts of which are replaced all the time. */
public class Churn {
	static final byte[][] kept = new byte[100000][];

	public static void main(String[] arguments) throws Exception {
		long end = System.nanoTime() + (long)(Double.parseDouble(arguments[0]) * 1e9);
		Random random = new Random(1);

		for (long n = 0; System.nanoTime() < end; n++) {
			byte[] bytes = new byte[480];

			if ((n & 3) == 0)
				kept[random.nextInt(kept.length)] = bytes;
			if (n % 20000 == 0)
				Thread.sleep(2);
		}
	}
}
EOF
javac --release 11 Churn.java || exit 1
churn()
{
	local name=$1 collector=$2
	shift 2
	exec java "-XX:+Use${collector}GC" -Xmn64m -Xmx400m -XX:+PreserveFramePointer \
		"-Xlog:gc,safepoint:file=$name.gc:utctime" -cp . Churn "$@"
}

(churn before Serial 120) & before=$!
wait_for 20 grep -q Pause before.gc
timeout 100 "$RECORDER" collect --store java.db --max-collect-sec 90 --max-cpu-percent 0 \
	--stop-on-gc-over-msec 100000 2>log & collect=$!
wait_for 20 grep -q recording log
reader() { pgrep -P "$(pgrep -P $collect)" -x recorder-java; }
check a_process_reads_their_files wait_for 20 reader
check without_rights grep -q '^CapPrm:.*0000000000000000$' "/proc/$(reader)/status"
check and_its_system_calls_are_filtered grep -q '^Seccomp:.*2$' "/proc/$(reader)/status"
kill -9 "$(reader)"                    # for what starts later there is another one
sleep 0.5
began=$(date -u +%FT%T.%3N)
(churn after G1 60) & after=$!
# Two seconds will do where pauses are long; a fast machine has few over 5 ms.
long_pauses()
{
	awk -v began="$began" 'substr($0, 2, 23) >= began && / Pause / && $NF + 0 > 5 { n++ }
		END { exit n < 5 }' "$1.gc"
}
sleep 2
enough() { long_pauses after && long_pauses before; }
wait_for 40 enough
jcmd $after GC.run >/dev/null
ended=$(date -u +%FT%T.%3N)
sleep 0.5
kill $collect                          # it keeps what it has
wait $collect

# Numbers that a JVM keeps of itself, as jcmd prints them.
live=$(jcmd $before PerfCounter.print 2>/dev/null | sed -n 's/^java.threads.live=//p')
timeout 60 "$RECORDER" collect --source none --store values.db --history-mb 0 \
	--max-collect-sec 30 --collect-multiple 4 \
	--stop-on-perf-counter 'JVM:java.threads.livePeak:churn>0' \
	--min-sec-for-trigger 0 --delay-after-trigger-sec 0 \
	--stop-on-perf-counter "JVM:java.threads.live:pid=$before>$((live - 1))" \
	--stop-on-perf-counter "JVM:java.threads.live:pid=$before>$live" \
	--stop-on-perf-counter "JVM:sun.gc.collector.0.invocations:pid=$before>0.1" \
	--stop-on-perf-counter "JVM:sun.rt.safepointTime:pid=$before>0" \
	--stop-on-perf-counter "JVM:sun.rt.safepointTime:pid=$before>100" >out 2>values.log
rule() { "$RECORDER" check --stop-on-perf-counter "JVM:$1>0" "${@:2}" >rule.out 2>&1; }
check a_number_that_it_does_not_keep_is_refused expect_exit 2 rule java.threads.livve:Churn
check with_the_nearest grep -q "nearest are 'java.threads.live'" rule.out
check so_it_is_for_a_program_that_is_not_there expect_exit 2 rule java.threads.livve:NotHere
check one_that_it_keeps_is_taken expect_exit 1 grep -q 'wrong.*JVM:' <(
	rule java.threads.live:Churn; cat rule.out)
check another_may_be_assumed expect_exit 1 grep -q 'wrong.*JVM:' <(
	rule java.threads.livve:Churn --assume-exists; cat rule.out)
"$RECORDER" counters JVM: >rule.out
check they_are_listed grep -q "^JVM:java.threads.live:pid=$before  *$live" rule.out
kill $before $after
wait $before $after 2>/dev/null
value()
{
	sed -n "s/.*fired: JVM:$1:[^ ]* was \([0-9.]*\), over its limit of $2\$/\1/p" values.log
}
check numbers_of_a_jvm_are_those_of_jcmd [ "$(value java.threads.live $((live - 1)))" = "$live" ]
check the_main_class_is_its_name [ "$(value java.threads.livePeak 0)" ]
check and_no_higher [ ! "$(value java.threads.live "$live")" ]
check what_grows_is_its_increase_a_second [ "$(value sun.gc.collector.0.invocations 0.1)" ]
check and_a_time_is_a_percentage [ "$(value sun.rt.safepointTime 0)" ]
check no_window_is_longer_than_the_recording eval '! grep "18446744" values.log'

# Every pause over 5 ms ends within 50 ms of its line in the log and is equally long, to 0.5 ms. It
# equals the log's collection or, if the JVM lost its CPU between the two, the log's safepoint. One
# in ten may be less exact, such as the sum of several pauses (GC/Pauses), because the recorder too
# may have to wait for a CPU. No pause is missing.
"$RECORDER" export --store java.db --format jsonl -o events 2>err
cat >compare.jq <<'EOF'
def near($at; $ms): (.at - $at | fabs) < 50 and (.ms - $ms | fabs) < 0.5;
def ms: .[11:23] | split(":") | map(tonumber)
   | .[0] * 3600000 + .[1] * 60000 + .[2] * 1000;
[inputs | select(.provider? == "JVM" and .pid == $pid)] as $ours
| def spans($from; $to): [$ours[] | select(.name == $from or .name == $to)]
   | group_by(.payload.ClrInstanceID)
   | [.[] | range(length - 1) as $i | select(.[$i].name == $from and .[$i + 1].name == $to)
      | {at: (.[$i + 1].time_utc | ms), ms: (.[$i + 1].t_ms - .[$i].t_ms)}];
spans("GC/Start"; "GC/Stop") as $collections
| spans("GC/SuspendEEStart"; "GC/RestartEEStop") as $pauses
| [$log | split("\n")[]
   | capture("^\\[(?<t>[^]+]*)[^]]*\\].* Safepoint .* At safepoint: (?<ns>[0-9]+) ns")
   | {at: (.t | ms), ms: ((.ns | tonumber) / 1e6)}] as $stops
| [$log | split("\n")[] | capture("^\\[(?<t>[^]+]*)[^]]*\\].* Pause .* (?<ms>[0-9.]+)ms$")
   | select(.t >= $from and .t < $until) | {at: (.t | ms), ms: (.ms | tonumber)} | select(.ms > 5)
   | . as $l
   | .stop = ([$stops[] | select(.at >= $l.at - 1 and .ms >= $l.ms - 0.1)] | first | .ms)] as $log
| [$log[] | . as $l
   | select((any($collections[]; near($l.at; $l.ms)) or
             any($pauses[]; near($l.at; $l.stop // 0))) | not)] as $unseen
| [$ours[] | select(.name == "GC/Pauses") | {at: (.time_utc | ms), ms: .payload.PauseMSec}]
  + $pauses + $collections
| . as $told
| [$unseen[] | . as $l
   | select(any($told[]; (.at - $l.at | fabs) < 500 and .ms > $l.ms / 2) | not)] as $silent
| "\($log | length) pauses over 5 ms from \($from | ms) to \($until | ms), "
  + "\($unseen | length) not seen: \($unseen | tojson), "
  + "\($silent | length) not even told less exactly",
  (($log | length) >= 3 and ($silent | length) == 0 and
   ($unseen | length) * 10 <= ($log | length) + 10)
EOF
pauses_agree()
{
	jq -n -r --argjson pid "$1" --arg from "$began" --arg until "$ended" --rawfile log "$2.gc" \
		-f compare.jq events | tee verdict
	[ "$(tail -n 1 verdict)" = true ]
}
check pauses_of_a_jvm_that_starts_later_are_those_of_its_log pauses_agree $after after
check pauses_of_a_jvm_that_ran_before_are_those_of_its_log pauses_agree $before before

# What collections left, in MB without the rest, is in the log in that order: "64M->15M(380M)".
sizes_agree()
{
	jq -n -r --argjson pid "$1" 'inputs | select(.name? == "GC/HeapStats" and .pid == $pid) |
		.payload | [((.GenerationSize0 + .GenerationSize2) / 1048576 | floor), .Depth] |
		join(" ")' events >told
	sed -n 's/.* Pause .*[0-9]M->\([0-9]*\)M(.*/\1/p' "$2.gc" >logged
	awk 'NR == FNR { logged[++n] = $1; next }
		{ while (++i <= n && logged[i] != $1); }
		END { printf "%d sizes of %d collections\n", FNR, n
			exit !(FNR >= 2 && i <= n) }' logged told
}
check sizes_after_collections_are_those_of_the_log_g1 sizes_agree $after after
check after_a_full_one_too grep -q ' 2$' told
check sizes_after_collections_are_those_of_the_log_serial sizes_agree $before before
"$RECORDER" report 1 --store java.db --runtimes --json >gc.json 2>err
check the_report_has_the_largest_of_them [ "$(jq --argjson pid $before 'select(.pid == $pid and
	.row == "gc_process") | .heap_peak_mb * 1e6 / 1048576 | floor' gc.json)" = \
	"$(sort -n told | tail -n 1 | cut -d' ' -f1)" ]

# % TIME is the share of the window that the log's collections fill: at least the lengths of those
# that are a second from its edges, at most those of the safepoints of all that reach into it.
cat >share.jq <<'EOF'
def s: .[11:23] | split(":") | map(tonumber) | .[0] * 3600 + .[1] * 60 + .[2];
def lines($pattern): [$log | split("\n")[] | capture("^\\[(?<t>[^]+]*)[^]]*\\].* " + $pattern)
	| {at: (.t | s), s: ((.ms // "0" | tonumber) / 1e3 + (.ns // "0" | tonumber) / 1e9)}];
input as $head
| ($head.time_utc | s) as $fired
| ($fired - $head.trigger_t_ms / 1e3) as $from | ($from + $head.window_ms / 1e3) as $until
| def share($spans): [$spans[] | .s] | add * 1e5 / $head.window_ms;
($rows[] | select(.pid == $pid and .row == "gc_process") | .pauses_pct) as $told
| share([lines("Pause .* (?<ms>[0-9.]+)ms$")[]
	 | select(.at - .s >= $from + 1 and .at <= $until - 1)]) as $least
| share([lines("Safepoint \"(G1|Gen|Serial|Parallel).* At safepoint: (?<ns>[0-9]+) ns")[]
	 | select(.at >= $from and .at - .s <= $until)]) as $most
| "\($told) % of the window, by the log \($least) to \($most) %",
  ($told > 0 and $told * 1.05 + 0.5 > $least and $told < $most * 1.05 + 0.5)
EOF
share_agrees()
{
	jq -n -r --argjson pid "$1" --rawfile log "$2.gc" --slurpfile rows gc.json -f share.jq \
		events | tee verdict
	[ "$(tail -n 1 verdict)" = true ]
}
check time_in_gc_is_that_of_the_log_g1 share_agrees $after after
check time_in_gc_is_that_of_the_log_serial share_agrees $before before

# ---- a rule, and what its incident holds ---------------------------------------------------------

(churn fires Parallel 90) & fires=$!
wait_for 20 grep -q Pause fires.gc
timeout 60 "$RECORDER" collect --store fires.db --delay-after-trigger-sec 3 --max-collect-sec 40 \
	--enable-perf-map --stop-on-gc-over-msec "5;Process=$fires" 2>log
check a_pause_fires grep -qE "fired: .*GC .*java\]? \(pid $fires\)" log
kill $fires
wait $fires 2>/dev/null
"$RECORDER" export --store fires.db --format jsonl -o events 2>err
check the_window_contains_the_pause \
	jq -n -e '[inputs | select(.name? == "GC/Stop" and .payload.Collector)] | length > 0' events
"$RECORDER" export --store fires.db --process $fires -f -o folded 2>err
check and_the_stacks_of_java_threads grep -q '^java' folded
if java -version 2>&1 | grep -qE '"(1[7-9]|[2-9][0-9])'; then
	check whose_functions_have_names grep -q 'Churn.main' folded
else
	echo "skip whose_functions_have_names: Java of 17 or later only"
fi

# ---- without performance data: by probes in libjvm.so --------------------------------------------

(JAVA_TOOL_OPTIONS=-XX:-UsePerfData churn blind G1 90 2>/dev/null) & blind=$!
wait_for 20 grep -q Pause blind.gc
"$RECORDER" check --json 2>/dev/null >check.json
if [ "$(id -u)" != 0 ] || [ ! -e /sys/bus/event_source/devices/uprobe/type ]; then
	echo "skip a_pause_of_a_jvm_without_performance_data_fires:" \
		"probes in programs need root and uprobes"
elif ! jq -s -e 'any(.[]; .cause? == "java-by-probes")' check.json >/dev/null; then
	echo "skip a_pause_of_a_jvm_without_performance_data_fires:" \
		"this JVM has no probes (built without dtrace)"
else
	sleep 1                        # one that has just begun may have its data in a moment
	timeout 60 "$RECORDER" collect --store blind.db \
		--delay-after-trigger-sec 1 --max-collect-sec 40 \
		--stop-on-gc-over-msec "1;Process=$blind" 2>log
	check a_pause_of_a_jvm_without_performance_data_fires \
		grep -qE "fired: .*GC of .*java\]? \(pid $blind\) (took|is still open)" log
	"$RECORDER" export --store blind.db --format jsonl -o events 2>err
	check it_is_told_once_for_each_jvm jq -n -e --argjson pid $blind \
		'[inputs | select(.provider? == "JVM") |
		(.pid == $pid) == (.payload.Collector == "HotSpot (probes)")] | all' events
fi
kill $blind
wait $blind 2>/dev/null
exit 0
