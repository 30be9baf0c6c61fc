#!/bin/bash
# What a recording of JDK Flight Recorder says about memory: who allocates, and whose objects stay.
# A JVM that runs is asked for its recording, and keeps none of it.
# time limit: 600
. "$TOP/tests/support/cli.sh"

cat >Leak.java <<'END'
import java.util.ArrayList;
import java.util.List;

public class Leak {
	static List<byte[]> kept = new ArrayList<>();
	static byte[] last;              // without it no array would be made, once it is compiled

	static void leaks() { for (int i = 0; i < 100; i++) kept.add(new byte[1000]); }

	static long churns()
	{
		long sum = 0;

		for (int i = 0; i < 2000; i++) sum += (last = new byte[1000]).length;
		return sum;
	}

	public static void main(String[] words)
	{
		long sum = 0;

		for (int i = 0; i < 3000; i++) { leaks(); sum += churns(); }
		System.out.println(sum);
		for (long end = System.currentTimeMillis() + 1000L * words.length;
				System.currentTimeMillis() < end; sum += churns()) {
			if (kept.size() > 300000) kept.clear();
			leaks();
			try { Thread.sleep(5); } catch (InterruptedException e) { }
		}
	}
}
END
if ! command -v javac >/dev/null || ! javac Leak.java 2>err; then
	echo "skip java_heap: there is no JDK"
	exit 0
fi
java -Xmx700m -XX:StartFlightRecording=settings=profile,filename=leak.jfr -cp . Leak >out 2>&1
"$RECORDER" collect --from leak.jfr --store j.db 2>log
# pct METRIC METHOD: its part
pct()
{
	"$RECORDER" report --store j.db --metric "$1" --by-name --json 2>/dev/null |
		jq -s "map(select(.self_pct? and (.name | endswith(\"$2\"))).self_pct) | add // 0"
}
check what_stays_is_by_who_leaks [ "$(jq -n "$(pct heap-net Leak.leaks) > 80")" = true ]
check and_not_by_who_churns [ "$(jq -n "$(pct heap-net Leak.churns) < 10")" = true ]
check what_is_allocated_is_by_both [ "$(jq -n "$(pct alloc Leak.churns) > 10")" = true ]

# mb EVENT FILTER: by the JDK's own reader
mb()
{
	jfr print --json --events "jdk.$1" leak.jfr |
		jq "[.recording.events[].values] | ($2) / 1048576"
}
allocated=$(mb ObjectAllocationSample 'map(.weight) | add')
left=$(mb GCHeapSummary 'map(select(.when == "After GC")) | max_by(.startTime).heapUsed')
echo "# $allocated MB allocated, $left MB left by the last collection"
check a_report_has_what_the_file_tells jq -se --argjson allocated "$allocated" \
	--argjson left "$left" 'map(select(.row == "memory")) | .[0] |
	(.heap_allocated_mb - $allocated | fabs) < 0.1 and (.heap_in_use_mb - $left | fabs) < 0.1' \
	<("$RECORDER" report --store j.db --memory --json 2>/dev/null)

# 90 arguments: it runs for 90 s.
live() { exec java -Xmx700m -Xmn16m "$@" -cp . Leak $(seq 90); }
need_perf
live >out 2>&1 & java=$!
wait_for 30 grep -q '[0-9]' out
"$RECORDER" run --heap --store r.db -p $java --metric heap-net --format folded >folded 2>log &
run=$!
wait_for 30 sh -c "jcmd $java JFR.check | grep -q recorder-heap"
check a_jvm_is_asked_for_its_own_recording [ $? = 0 ]
sleep 4
kill -INT $run
wait $run
check which_becomes_an_incident grep -q "process $java allocated .* incident 2" log
check whose_objects_are_by_who_leaks awk '{ n += $NF } /Leak.leaks/ { l += $NF }
	END { print l, n; exit !(l > 0.8 * n && n > 5e6) }' folded
check nothing_goes_on_in_the_jvm expect_exit 1 sh -c "jcmd $java JFR.check | grep recorder-heap"
check and_nothing_stays_in_tmp [ ! "$(ls /tmp/recorder-*/java-$java.jfr 2>/dev/null)" ]
kill $java

# Of a recorder that was killed, the next one removes what it left.
live >out 2>&1 & java=$!
wait_for 30 grep -q '[0-9]' out
"$RECORDER" run --heap --store k.db -p $java >shown 2>log & run=$!
wait_for 30 sh -c "jcmd $java JFR.check | grep -q recorder-heap"
kill -9 $run
wait $run
check one_that_is_killed_leaves_a_folder test -d "$(echo /tmp/recorder-$run-??????)"
"$RECORDER" run --heap --store k.db -p $java >shown 2>log & next=$!
wait_for 30 test ! -d "$(echo /tmp/recorder-$run-??????)"
check which_the_next_one_removes [ $? = 0 ]
wait_for 30 sh -c "jcmd $java JFR.check | grep -q recorder-heap"
kill -INT $next
wait $next
check and_its_own_at_its_end [ ! "$(ls -d /tmp/recorder-$next-?????? 2>/dev/null)" ]
kill $java

live -XX:+DisableAttachMechanism >out 2>&1 & java=$!
wait_for 30 grep -q '[0-9]' out
"$RECORDER" run --heap --store d.db -p $java >shown 2>log & run=$!
wait_for 30 grep -q 'page faults' log
kill $java
wait $run
check one_that_takes_no_commands_is_not_sent_one grep -q 'started with -XX:+DisableAttach' log
check nor_a_signal expect_exit 1 grep -q 'Full thread dump' out
