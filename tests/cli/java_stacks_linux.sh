#!/bin/bash
# Stacks of stock JVMs, of every JDK that is installed: complete and named in each mode of the
# compiler and with each collector; frame for frame as jstack shows them where threads stand still;
# and shares of time as the program measures them itself.
# time limit: 400
# alone: reads of the JVM that come late leave stacks broken
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"
if ! command -v javac >/dev/null; then
	echo "skip java stacks: no javac here (apt-get install openjdk-17-jdk-headless)"
	exit 0
fi
javac -Xlint:-options --release 8 -d . "$TOP"/tests/programs/Java{Work,Threads}.java || exit 1

# record NAME SECONDS OPTION...: into NAME.db, in the background; $collect is its pid.
record()
{
	local name=$1 seconds=$2
	shift 2
	"$RECORDER" collect --store "$name.db" --max-collect-sec "$seconds" --max-cpu-percent 0 \
		"$@" 2>"$name.log" & collect=$!
	wait_for 20 grep -q recording "$name.log"
}

# Of the samples of java in NAME.folded: how many there are, per cent that are complete, per cent
# of Java frames with a name.
quality()
{
	awk '/^java / {
		n = split($0, frame, ";"); c = $NF; samples += c
		for (i = 1; i <= n; i++) {
			if (frame[i] == "BROKEN" || frame[i] == "[truncated]") { cut += c }
			if (frame[i] ~ /^\[(java|jit)\]!/) { frames += c
				if (frame[i] ~ /^\[(java|jit)\]!\?/) bare += c } } }
		END { if (!samples || !frames) { print "0 0 0"; exit }
			printf "%d %.2f %.3f\n", samples, 100 - 100 * cut / samples,
				100 - 100 * bare / frames }' "$1.folded"
}

at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

# stacks_of NAME HOME OPTION...: record JavaWork with these options, warm.
stacks_of()
{
	local name=$1 home=$2 samples complete named java
	shift 2
	"$home/bin/java" "$@" -cp . JavaWork 20 >"$name.out" 2>&1 & java=$!
	sleep 1
	record "$name" 4 --freq 499
	wait $collect
	kill $java
	wait $java 2>/dev/null
	"$RECORDER" export --store "$name.db" 1 --format folded -o "$name.folded" 2>>"$name.log"
	read -r samples complete named < <(quality "$name")
	echo "$name: $samples samples, $complete % complete, $named % of Java frames named"
	check "${name}_stacks_are_complete" at_least "$complete" 99
	check "${name}_frames_have_names" at_least "$named" 99.5
}

# The kinds of work, against what the program measured: within 2 points and 3 standard deviations.
# Told to, the JVM keeps what was inlined for each instruction. By default it keeps that for calls
# only, so what a loop without one is part of may be named after the call that follows.
shares_agree()
{
	awk 'FNR == NR { if (NF == 2 && $2 ~ /^[0-9]+$/) { spent[$1] = $2; all += $2 }; next }
		/^java / && /JavaWork\.loop/ { c = $NF; n += c
			for (name in spent)
				if (index($0, "JavaWork." name "_[")) seen[name] += c }
		END {
			if (n < 500 || all < 1000) { print "too little: " n " samples"; exit 1 }
			for (name in spent) {
				truth = spent[name] / all; share = seen[name] / n
				limit = 0.02 + 3 * sqrt(truth * (1 - truth) / n)
				off = share > truth ? share - truth : truth - share
				printf "%-12s %5.1f %% measured, %5.1f %% of samples\n", name,
					100 * truth, 100 * share
				bad += off > limit
			}
			exit bad > 0
		}' "$1.out" "$1.folded"
}

# What JFR sampled in the same run, of the kinds that it can: its samples have no stack in stubs,
# vtable calls (of 17) and native code, and while an exception is thrown. Shares are of these kinds
# only, on both sides, and within 2 points and 3 standard deviations of both counts.
jfr_agrees()
{
	awk -v kinds="streams sorts regex reflection maps locks strings" '
		BEGIN { n = split(kinds, kind, " ") }
		FNR == 1 { file++ }
		file == 1 && /^jdk\.ExecutionSample/ { got = "" }
		file == 1 { for (i = 1; i <= n; i++)
				if (index($0, "JavaWork." kind[i] "(")) got = kind[i] }
		file == 1 && /JavaWork\.loop\(/ && got { jfr[got]++; njfr++; got = "" }
		file == 2 && /^java / && /JavaWork\.loop/ { for (i = 1; i <= n; i++)
				if (index($0, "JavaWork." kind[i] "_[")) {
					ours[kind[i]] += $NF; nours += $NF } }
		END {
			if (njfr < 100 || nours < 500) {
				print "too little: " njfr + 0 " of JFR, " nours + 0 " of ours"
				exit 1
			}
			print njfr " samples of JFR, " nours " of ours"
			for (i = 1; i <= n; i++) {
				a = jfr[kind[i]] / njfr; b = ours[kind[i]] / nours
				spread = a * (1 - a) / njfr + b * (1 - b) / nours
				limit = 0.02 + 3 * sqrt(spread)
				off = a > b ? a - b : b - a
				printf "%-12s %5.1f %% of JFR, %5.1f %% of ours\n",
					kind[i], 100 * a, 100 * b
				bad += off > limit
			}
			exit bad > 0
		}' "$1.jfr.txt" "$1.folded"
}

shares_of()
{
	local name=$1 home=$2 jfr=()
	[ ! -x "$home/bin/jfr" ] || jfr=(-XX:FlightRecorderOptions=stackdepth=128
		"-XX:StartFlightRecording=settings=profile,filename=$name.jfr")
	record "$name" 60 --freq 499
	"$home/bin/java" -XX:+UnlockDiagnosticVMOptions -XX:+DebugNonSafepoints \
		"${jfr[@]}" -cp . JavaWork 10 >"$name.out"
	kill $collect
	wait $collect
	"$RECORDER" export --store "$name.db" 1 --format folded -o "$name.folded" 2>>"$name.log"
	check "${name}_are_those_that_the_program_measured" shares_agree "$name"
	[ "${jfr[*]}" ] || { echo "skip ${name}_are_those_of_JFR: this JDK has no jfr"; return; }
	"$home/bin/jfr" print --events jdk.ExecutionSample --stack-depth 128 "$name.jfr" \
		>"$name.jfr.txt"
	check "${name}_are_those_of_JFR_in_the_same_run" jfr_agrees "$name"
}

# Threads that stand still, as jstack sees them at the same time.
beside_jstack()
{
	local name=$1 home=$2 java
	rm -rf "$name.db"*
	record "$name" 60 --thread-time
	"$home/bin/java" -cp . JavaThreads >"$name.out" & java=$!
	wait_for 30 grep -q ready "$name.out"
	sleep 5
	"$home/bin/jstack" $java >"$name.jstack"
	sleep 0.5
	kill $collect
	wait $collect
	kill $java
	wait $java 2>/dev/null
	"$RECORDER" export --store "$name.db" 1 --format folded --metric off-cpu \
		-o "$name.folded" 2>>"$name.log"
	awk -f "$TOP/tests/support/java_stacks.awk" "$name.folded" "$name.jstack" >"$name.compared"
	tail -1 "$name.compared"
}
same_frames()
{
	awk '{ print }
		END { exit !($2 >= 500 && $6 >= 18 && $2 >= 99 * ($2 + $4) / 100) }' "$1.compared"
}

# A thread that began to wait while reads came late has no other stack: then once more.
jstack_of()
{
	local try
	for try in 1 2 3; do
		beside_jstack "$1" "$2"
		! same_frames "$1" >/dev/null || break
	done
	check "${1}_frames_are_those_of_jstack" same_frames "$1"
	lines_of "$1"
}

# Each method and line that jstack showed is one that was recorded.
lines_of()
{
	local name=$1
	"$RECORDER" export --store "$name.db" 1 --format sqlite-flat --inlines --metric off-cpu \
		-o "$name.flat.db" 2>>"$name.log"
	sqlite3 -separator ' ' "$name.flat.db" "SELECT DISTINCT function, file || ':' || line
		FROM frame WHERE module = '[java]' AND line > 0" >"$name.lines"
	sed -nE 's/^\tat ([^ ]*\/)?([^ /]*)\(([^ )]*\/)?([^ /)]*:[0-9]+)\)$/\2 \4/p' \
		"$name.jstack" | grep -v Lambda | sort -u >"$name.wanted"
	sort -u "$name.lines" | comm -13 - "$name.wanted" >"$name.missing"
	echo "$(wc -l <"$name.wanted") methods and lines of jstack; missing:"
	cat "$name.missing"
	check "${name}_lines_are_those_of_jstack" awk -v n="$(wc -l <"$name.wanted")" \
		'END { exit !(n >= 20 && NR * 100 <= n) }' "$name.missing"
}

# What is shown on request: parameters, and how a frame was run.
details_of()
{
	"$RECORDER" export --store "$1.db" 1 --format folded --signatures --frame-kinds \
		-o "$1.detailed" 2>>"$1.log"
	check "$1_methods_have_parameters" grep -qF 'JavaWork.main(String[])' "$1.detailed"
	check "$1_frames_say_how_they_were_run" eval "grep -q '\\[C2\\]' $1.detailed &&
		grep -q '\\[interpreted\\]' $1.detailed && ! grep -q '\\[C2\\]' $1.folded"
}

found=0
while read -r major home; do
	found=$((found + 1))
	java=$home/bin/java
	stacks_of "java${major}_default" "$home"
	details_of "java${major}_default"
	stacks_of "java${major}_interpreter" "$home" -Xint
	stacks_of "java${major}_c1" "$home" -XX:TieredStopAtLevel=1
	stacks_of "java${major}_c2" "$home" -XX:-TieredCompilation
	for gc in Serial Parallel G1 Z Shenandoah; do
		if "$java" -XX:+Use${gc}GC -version >/dev/null 2>&1; then
			stacks_of "java${major}_${gc}GC" "$home" -XX:+Use${gc}GC
		else
			echo "skip java${major}_${gc}GC: this JDK has no such collector"
		fi
	done
	shares_of "java${major}_shares" "$home"
	jstack_of "java${major}_stopped" "$home"
done < <(jdks)
check a_jdk_was_found test $found -gt 0
