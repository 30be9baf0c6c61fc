#!/bin/bash
# Java classes that are unloaded or redefined all the time, in a small code cache: samples do not
# have names of methods that did not run at their moment. Each class lives for 15 ms, memory is read
# some 50 ms after a sample. One in 1,000 is allowed: a return address that was left on a stack may
# lead to code that is gone. JAVA_UNLOAD_S=120 JAVA_UNLOAD_HZ=4999 for 10^6 samples.
# time limit: 120
. "$TOP/tests/support/cli.sh"
need_perf
if ! command -v javac >/dev/null; then
	echo "skip java_unload: no javac here (apt-get install openjdk-17-jdk-headless)"
	exit 0
fi
seconds=${JAVA_UNLOAD_S:-6} hz=${JAVA_UNLOAD_HZ:-997}
javac -Xlint:-options --release 8 -d . "$TOP/tests/programs/JavaUnload.java" || exit 1
printf 'Premain-Class: JavaUnload\nCan-Redefine-Classes: true\n' >manifest
jar cfm agent.jar manifest JavaUnload*.class || exit 1

# Count the samples whose generated method ran then (right), did not (wrong), and those of the same
# threads without one; a run is told within a millisecond of its edges.
compare()
{
	awk -v slack=2000 '
		FNR == NR { n = ++runs[$1]; from[$1, n] = $3; to[$1, n] = $4; is[$1, n] = $2; next }
		!($1 in runs) { next }
		!$3 { none++; next }
		{
			found = 0
			for (at[$1] += !at[$1]; to[$1, at[$1]] + slack < $2 && at[$1] < runs[$1]; )
				at[$1]++
			for (k = at[$1]; k <= runs[$1] && from[$1, k] - slack <= $2; k++)
				found += is[$1, k] == $3
			if (found) right++
			else if (wrong++ < 5) print "wrong: thread " $1 " at " $2 ": " $3
		}
		END { print right + 0, wrong + 0, none + 0 }' "$1.truth" "$1.samples"
}

unload_of()
{
	local name=$1 home=$2 java right wrong none log=-Xlog:class+unload:file=$1.unloaded
	shift 2
	[ "$major" != 8 ] || log="-XX:+UnlockDiagnosticVMOptions -XX:+TraceClassUnloading
		-XX:+LogVMOutput -XX:-DisplayVMOutput -XX:LogFile=$name.unloaded"
	"$home/bin/java" "$@" $log -XX:ReservedCodeCacheSize=3m -XX:MetaspaceSize=4m \
		-cp . JavaUnload $((seconds + 4)) \
		>"$name.truth" 2>"$name.err" & java=$!
	sleep 1
	"$RECORDER" collect --store "$name.db" --max-collect-sec "$seconds" --freq "$hz" \
		--max-cpu-percent 0 2>"$name.log"
	wait $java
	"$RECORDER" export --store "$name.db" 1 --format sqlite-flat -o "$name.flat.db" \
		2>>"$name.log"
	# "TID WALL_US NUMBER": the number of the innermost generated method, if there is one.
	sqlite3 -separator ' ' "$name.flat.db" "
		WITH RECURSIVE up(sample, id) AS (
			SELECT rowid, stack FROM sample WHERE stream = 'cpu' AND stack IS NOT NULL
			UNION ALL
			SELECT sample, caller FROM up JOIN stack ON stack.id = up.id
			WHERE caller IS NOT NULL),
		named AS (
			SELECT sample,
				max(substr(function, instr(function, 'Gen') + 3, 6)) AS number
			FROM up JOIN stack ON stack.id = up.id JOIN frame ON frame.id = stack.frame
			WHERE function LIKE 'JavaUnload\$Gen%' GROUP BY sample)
		SELECT tid, (w.value - t.value + t_ns) / 1000, coalesce(number, '')
		FROM sample JOIN thread ON thread.id = sample.thread
		LEFT JOIN named ON named.sample = sample.rowid,
		(SELECT value FROM incident WHERE key = 'trigger_wall_ns') w,
		(SELECT value FROM incident WHERE key = 'trigger_ns') t
		ORDER BY t_ns" >"$name.samples"
	compare "$name" >"$name.compared"
	read -r right wrong none < <(tail -1 "$name.compared")
	unloaded=$(wc -l <"$name.unloaded")
	head -5 "$name.compared"
	echo "$name: $unloaded classes unloaded; of their samples $right right, $wrong wrong," \
		"$none without a generated method"
	check "${name}_names_are_not_of_another_time" \
		test $((wrong * 1000)) -le $((right + wrong + none))
	# How many is a matter of how soon they are read: on a quiet machine later.
	check "${name}_samples_are_named" test "$right" -gt 20
}

were_unloaded() { check "$1_classes_were_unloaded" test "$unloaded" -gt 100; }

while read -r major home; do
	name=java$major
	unload_of "$name" "$home"
	were_unloaded "$name"
	unload_of "${name}_c1" "$home" -XX:TieredStopAtLevel=1
	were_unloaded "${name}_c1"
	unload_of "${name}_redefined" "$home" -javaagent:agent.jar
done < <(jdks)
