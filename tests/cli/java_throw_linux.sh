#!/bin/bash
# Exceptions of stock JVMs, of every JDK that is installed: each that a program makes is one event,
# with its class, message and Java stack, in each way that a JVM lays out objects and runs code; and
# a rule fires on one of them.
# time limit: 400
# alone: reads of the JVM that come late leave it alone for a while
. "$TOP/tests/support/cli.sh"
need_perf
if [ "$(id -u)" != 0 ]; then
	echo "skip java_throw: probes in programs need root"
	exit 0
fi
if ! command -v javac >/dev/null; then
	echo "skip java_throw: no javac here (apt-get install openjdk-17-jdk-headless)"
	exit 0
fi
javac -Xlint:-options --release 8 -encoding UTF-8 -d . \
	"$TOP"/tests/programs/Java{Throw,Threads}.java || exit 1
rounds=20

# record NAME OPTION...: into NAME.db; $collect is its pid.
record()
{
	local name=$1
	shift
	"$RECORDER" collect --store "$name.db" --max-collect-sec 300 --max-cpu-percent 0 "$@" \
		2>"$name.log" & collect=$!
	wait_for 20 grep -q recording "$name.log"
}

# NAME.truth has what the program $java counted, NAME.seen what was recorded in $store: "COUNT TYPE:
# MESSAGE". The JVM makes some of its own as it starts. An exception without a message is written
# alike in both; one that notes no stack is in neither; nor are the JVM's own errors where it has no
# symbols.
list_exceptions()
{
	sed -n 's/: null$/: /; s/^[0-9]* //p' "$1.truth" | grep -vE "Quiet$unseen" >"$1.thrown"
	"$RECORDER" export --store "$store.db" 1 --format jsonl 2>>"$store.log" |
		jq -r --argjson pid $java '
		select(.type == "event" and .provider == "Java" and .name == "Exception/Start"
			and .pid == $pid) |
		(.payload.ExceptionType // "?") + ": " + (.payload.ExceptionMessage // "")' \
		>"$1.seen"
}

# Each is seen once, as what it is. A program whose memory does not answer within 20 ms is left
# alone for a while: what was thrown meanwhile has no type or message, and counts as unread.
same_exceptions()
{
	list_exceptions "$1"
	awk -v rounds=$rounds -v major="$major" '
		FNR == NR { thrown[$0] = 1; type[substr($0, 1, index($0, ":"))] = 1; n++; next }
		$0 in thrown { seen[$0]++; next }
		$0 == "?: " || substr($0, 1, index($0, ":")) in type { unread++; next }
		{ other++ }
		END {
			for (e in thrown) {
				all += seen[e]
				# In 8 each of two loaders throws it.
				if (seen[e] <= rounds * (major == 8 && e ~ /ClassNot/ ? 2 : 1))
					continue
				print seen[e] " of " rounds ": " e
				bad = 1
			}
			print n " kinds, " all + 0 " seen as what they are, " unread + 0 \
				" unread, " other + 0 " of the JVM"
			exit bad || n < 6 || all + unread < n * rounds || unread > n * rounds / 5 ||
				other > rounds / 2
		}' "$1.thrown" "$1.seen" >"$1.compared"
	local code=$?
	cat "$1.compared"
	return $code
}

# check_seen NAME: skips where other programs threw so much that events were lost.
check_seen()
{
	local lost
	lost=$("$RECORDER" show --store "$store.db" 1 --json 2>>"$store.log" |
		jq '.lost_by_reason | .events + .flood')
	if [ "$lost" = 0 ]; then
		check "${1}_exceptions_are_each_seen_once" same_exceptions "$1"
	else
		same_exceptions "$1" >&2
		echo "skip ${1}_exceptions_are_each_seen_once: $lost events were lost"
	fi
	tail -1 "$1.compared"
}

stop_recording()
{
	sleep 0.3
	kill $collect
	wait $collect
}

# throws NAME HOME OPTION...: JavaThrow with these options. $thrown has each and its process.
throws()
{
	local name=$1 home=$2
	shift 2
	if ! "$home/bin/java" "$@" -version >/dev/null 2>&1; then
		echo "skip $name: this JDK has no $*"
		return
	fi
	"$home/bin/java" "$@" -XX:-OmitStackTraceInFastThrow -Dstdout.encoding=UTF-8 \
		-Dfile.encoding=UTF-8 -cp . JavaThrow $rounds 30 >"$name.truth" 2>"$name.err" &
	thrown+=("$name $!")
	wait $!
}

# A JVM of another root directory, of a file that nobody has seen when recording begins: what it
# throws is seen from when the log says so.
comes_later()
{
	local name=$1 home=$2
	if ! "$home/bin/jlink" --add-modules java.base --output later.jre >"$name.log" 2>&1 ||
	   ! unshare -m mount -t tmpfs none "$TMP" 2>>"$name.log"; then
		echo "skip $name: no jlink, or no right to mount: $(tail -1 "$name.log")"
		return
	fi
	record "$name" '/StopOnException:^no such type'
	unshare -m bash -c 'mkdir later && mount -t tmpfs none later &&
		mv later.jre later/jre && exec later/jre/bin/java "$@"' - \
		-XX:-OmitStackTraceInFastThrow -Dstdout.encoding=UTF-8 -Dfile.encoding=UTF-8 \
		-cp . JavaThrow $rounds 30 "$name.begin" >"$name.truth" 2>"$name.err" &
	java=$! store=$name
	check "${name}_is_said_to_be_seen" wait_for 60 grep -q \
		'exceptions of Java are seen in /proc/[0-9]*/root/.*libjvm.so from now on' \
		"$name.log"
	touch "$name.begin"
	wait $java
	stop_recording
	check_seen "$name"
}

fires_of()
{
	local name=$1 home=$2
	record "$name" '/StopOnException:^JavaThrow\$NoStock: none left;Process=java' \
		--delay-after-trigger-sec 0
	"$home/bin/java" -Dfile.encoding=UTF-8 -cp . JavaThrow 60 50 >"$name.out" 2>"$name.err" &
	java=$!
	wait $collect
	kill $java 2>/dev/null
	wait $java 2>/dev/null
	check "${name}_an_exception_fires_with_its_message" grep -q \
		'fired: .*exception JavaThrow$NoStock: none left of é€, of .*java' "$name.log"
	"$RECORDER" show --store "$name.db" 1 --json >"$name.json" 2>>"$name.log"
	check "${name}_and_with_its_stack" jq -e '[.event_stack[].frame |
		select(startswith("[java]!JavaThrow")) | sub("^\\[java\\]!"; "")] ==
		["JavaThrow$NoStock.<init>", "JavaThrow.order", "JavaThrow.act",
		"JavaThrow.main"]' \
		"$name.json"
}

found=0
while read -r major home; do
	found=$((found + 1))
	name=java$major
	# Where its libjvm.so is not below /usr/lib/jvm, one that runs makes it known.
	"$home/bin/java" -cp . JavaThreads >idle & idle=$!
	wait_for 30 grep -q ready idle
	unseen=
	nm "$(grep -om1 '/.*libjvm.so' "/proc/$idle/maps")" 2>/dev/null | grep -q . ||
		unseen='|java.lang.(OutOfMemory|StackOverflow)Error'
	# One recording has them all, from their starts.
	record "$name" '/StopOnException:^no such type'
	thrown=()
	throws "${name}_default" "$home"
	throws "${name}_interpreter" "$home" -Xint
	throws "${name}_wide" "$home" -XX:-UseCompressedOops
	throws "${name}_wide_classes" "$home" -XX:-UseCompressedClassPointers
	throws "${name}_compact" "$home" -XX:+UseCompactObjectHeaders
	throws "${name}_z" "$home" -XX:+UseZGC
	stop_recording
	store=$name
	for one in "${thrown[@]}"; do
		java=${one#* }
		check_seen "${one% *}"
	done
	fires_of "${name}_rule" "$home"
	[ $found != 1 ] || comes_later "${name}_that_comes_later" "$home"
	kill $idle
	wait $idle 2>/dev/null
done < <(jdks)
check a_jdk_was_found test $found -gt 0
