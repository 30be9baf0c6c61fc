#!/bin/bash
# Events of a real .NET program that was started without any preparation: sarif-multitool from npm,
# which brings its own runtime (.NET 8 and Core 3.1). Rules fire on collections, on exceptions and
# on the events of an EventSource.
# time limit: 480
. "$TOP/tests/support/cli.sh"
need_perf
need_dotnet 'events of .NET programs' @microsoft/sarif-multitool-linux 'sarif-multitool' eventtool

# A file of 40,000 results (10 MB), and the same file cut in the middle.
awk 'BEGIN {
	printf "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"t\"}},"
	printf "\"results\":["
	for (i = 0; i < 40000; i++) {
		printf "%s{\"ruleId\":\"R%d\",", i ? "," : "", i % 50
		printf "\"message\":{\"text\":\"number %d of some text\"},\"locations\":[{", i
		printf "\"physicalLocation\":{"
		printf "\"artifactLocation\":{\"uri\":\"src/f%d.c\"},", i % 997
		printf "\"region\":{\"startLine\":%d}}}],", i % 1000 + 1
		printf "\"partialFingerprints\":{\"a\":\"%d\"}}", i * 7919
	}
	printf "]}]}"
}' >big.sarif
head -c 6000000 big.sarif >cut.sarif

# A file that takes some seconds, and one whose end is missing.
awk 'BEGIN {
	printf "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"t\"}},"
	printf "\"results\":["
	for (i = 0; i < 600000; i++) {
		printf "%s{\"ruleId\":\"R%d\",", i ? "," : "", i % 50
		printf "\"message\":{\"text\":\"number %d of some text\"}}", i
	}
	printf "]}]}"
}' >huge.sarif
head -c 16000000 huge.sarif >long.sarif

# record NAME OPTION...: start a recorder that waits for events.
record()
{
	local name=$1
	shift
	timeout 60 "$RECORDER" collect --store "$name.db" \
		--delay-after-trigger-sec 1 --max-cpu-percent 0 \
		--max-collect-sec 45 "$@" 2>"$name.log" & collect=$!
	wait_for 20 grep -q recording "$name.log"
}

# A program that is watched begins once the recorder listens to it. The runtime waits for a command
# (4, 1 of its diagnostics protocol) then.
# The recorder first asks who the program is, on a connection that lasts for some milliseconds.
connected() { [ "$(grep -c "dotnet-diagnostic-$1-" /proc/net/unix)" -ge 2 ]; }
listened() { connected $1 && sleep 0.3 && connected $1; }
resume()
{
	python3 - "$1" <<-'END'
		import glob, os, socket, struct, sys
		s = socket.socket(socket.AF_UNIX)
		s.connect(glob.glob("%s/dotnet-diagnostic-%s-*-socket" %
		                    (os.environ.get("TMPDIR", "/tmp"), sys.argv[1]))[0])
		s.send(b"DOTNET_IPC_V1\0" + struct.pack("<HBBH", 20, 4, 1, 0))
		s.recv(20)
	END
}
watched()
{
	DOTNET_DefaultDiagnosticPortSuspend=1 "$@" >watched.out 2>&1 & program=$!
	wait_for 20 listened $program || echo "the recorder does not listen to $*"
	resume $program
	wait $program
}

record gc --stop-on-gc-over-msec '1;Process=eventtool'
./eventtool rewrite big.sarif --output out.sarif --log ForceOverwrite >/dev/null 2>&1 & program=$!
wait $collect
check a_collection_of_a_net_program_fires \
	grep -qE 'fired: GC of eventtool \(pid [0-9]+\) (took|is still open after) [0-9.]+ ms' \
	gc.log
"$RECORDER" export --store gc.db --format jsonl -o events 2>err
check its_incident_has_the_pause \
	jq -n -e '[inputs | select(.provider? == "Microsoft-Windows-DotNETRuntime") | .name] |
	contains(["GC/SuspendEEStart", "GC/Start", "GC/Stop", "GC/RestartEEStop"])' events
# Other .NET programs may run here, and the first events may come before the name of this one is
# known.
check the_program_is_its_own_process jq -n -e --argjson pid $program \
	'[inputs | select(.provider? == "Microsoft-Windows-DotNETRuntime" and
	.pid == $pid) | .name] |
	contains(["GC/Start", "GC/Stop"])' events
kill $program 2>/dev/null
wait $program 2>/dev/null || true

# Its files say which EventSources it has. A machine that is too busy to read all of them within a
# second takes the rule.
takes() { "$RECORDER" check --stop-on-event "$1" >check.out 2>&1; }
refuses() { ! takes "$1" && grep -q 'no .NET program that runs now has' check.out; }
./eventtool rewrite big.sarif --output out.sarif --log ForceOverwrite >/dev/null 2>&1 & program=$!
check an_event_source_of_a_program_that_runs_is_known \
	wait_for 2 takes '*NativeRuntimeEventSource/X'
check a_name_that_it_has_not_is_refused wait_for 20 refuses '*NativeRuntimeEventSaurce/X'
counter() { "$RECORDER" check --stop-on-perf-counter "System.Runtime:$1>0" >refused 2>&1; }
check a_counter_of_the_runtime_is_near expect_exit 2 counter cpu-usge:eventtool
check and_is_named grep -q "nearest are 'cpu-usage'" refused
kill $program 2>/dev/null
wait $program 2>/dev/null || true

record throw --stop-on-exception '^Newtonsoft\.Json\.Json[A-Za-z]*Exception'
watched ./eventtool rewrite cut.sarif --output out.sarif --log ForceOverwrite
wait $collect
check an_exception_of_a_net_program_fires grep -q 'fired: .*Newtonsoft.Json.Json' throw.log

record source --stop-on-etw-event \
	'*System.Buffers.ArrayPoolEventSource/BufferRented;Level=5;FieldFilter=bufferSize>=16'
while kill -0 $collect 2>/dev/null; do
	./eventtool rewrite cut.sarif --output out.sarif --log ForceOverwrite >/dev/null 2>&1
done
wait $collect
check an_event_of_an_event_source_fires grep -q 'fired: .*BufferRented' source.log

# ---- without a rule: stacks of events ------------------------------------------------------------

timeout 180 "$RECORDER" collect --store stacks.db --max-cpu-percent 0 --providers \
	'Microsoft-Windows-DotNETRuntime:0x8001:5:@ProcessNameFilter=eventtool' \
	2>stacks.log & collect=$!
wait_for 20 grep -q 'recording this machine' stacks.log
DOTNET_EnableEventPipe=1 DOTNET_EventPipeOutputPath=$PWD/own.nettrace \
	DOTNET_EventPipeConfig=Microsoft-Windows-DotNETRuntime:0x8039:5 \
	watched ./eventtool rewrite long.sarif --output out.sarif --log ForceOverwrite
"$RECORDER" stop --store stacks.db >/dev/null 2>&1
wait $collect
"$RECORDER" export --store stacks.db --metric event -f -o stacks 2>err
check exceptions_are_under_the_methods_that_throw_them grep -qE \
	'^eventtool.*Program\.Main.*Newtonsoft.*event!Exception/Start Newtonsoft\.Json\.' stacks
"$RECORDER" export --store stacks.db --metric alloc -f -o allocated 2>err
check allocated_bytes_are_under_types_and_methods grep -qE \
	'^eventtool.*Program\.Main.*Newtonsoft.*event!GC/AllocationTick System\..* [0-9]{5,}$' \
	allocated

# The runtime wrote a file of its own meanwhile. The first half second has no names: the program is
# asked for them when it has run for a while.
"$RECORDER" collect --store own.db --from own.nettrace 2>own.log
"$RECORDER" export --store own.db --metric event -f -o own.stacks 2>err
"$RECORDER" export --store own.db --metric alloc -f -o own.allocated 2>err
thrown() { grep 'event!Exception/Start' "$1" | cut -d';' -f3- | sort; }
check exceptions_have_the_stacks_of_the_runtimes_own_file \
	cmp <(thrown stacks) <(thrown own.stacks)
check six_were_thrown [ "$(thrown stacks | wc -l)" = 6 ]
check allocations_have_the_bytes_of_the_runtimes_own_file awk -F';' '
	{ n = $NF; sub(/.* /, "", n); sub(/^[^;]*;[^;]*;/, ""); sub(/ [0-9]+$/, ""); n += 0 }
	NR == FNR { own[$0] = n; own_bytes += n; next }
	{ bytes += n }
	/\?!\?|\[\.net\]!/ { next }
	{ named++; if (own[$0] < n) excess += n - own[$0] }
	END { print bytes " of " own_bytes ", " named " stacks, " excess + 0 " not in the file"
		exit excess > 0.02 * own_bytes || named < 10 || bytes < 0.98 * own_bytes ||
			bytes > 1.02 * own_bytes }' \
	own.allocated allocated

# ---- without a rule: counters, names of managed functions ----------------------------------------

record counter --enable-perf-map --min-sec-for-trigger 0 --poll-sec 0.5 \
	--stop-on-perf-counter '.NET CLR Memory:% Time in GC:eventtool>0.5'
./eventtool rewrite big.sarif --output out.sarif --log ForceOverwrite >/dev/null 2>&1 & program=$!
wait $collect
check time_in_gc_is_a_counter \
	grep -q 'fired: .NET CLR Memory:% Time in GC:eventtool was' counter.log
"$RECORDER" export --store counter.db -f -o folded 2>err
check managed_functions_have_names grep -q '^eventtool.*Newtonsoft.Json' folded
kill $program 2>/dev/null
wait $program 2>/dev/null || true

# What the program tells of itself, once a second.
record told --min-sec-for-trigger 0 --collect-multiple 2 --max-per-hour 1 --source none \
	--assume-exists \
	--stop-on-perf-counter 'System.Runtime:cpu-usage:eventtool>3' \
	--stop-on-perf-counter 'System.Runtime:alloc-rate:eventtool>100K' \
	--stop-on-perf-counter 'System.Runtime:no-such:eventtool>0'
(
	trap 'kill $one; exit' TERM
	while :; do
		./eventtool rewrite huge.sarif --output out.sarif --log ForceOverwrite & one=$!
		wait $one
	done
) >/dev/null 2>&1 & program=$!
wait $collect
check a_mean_that_a_net_program_tells_fires \
	grep -qE 'fired: System.Runtime:cpu-usage:eventtool was [0-9.]+, over' told.log
check an_increment_fires_as_its_increase_a_second \
	grep -qE 'fired: System.Runtime:alloc-rate:eventtool was [0-9]{6,}, over' told.log
check what_nobody_tells_does_not eval '! grep "fired: System.Runtime:no-such" told.log'
kill $program 2>/dev/null
wait $program 2>/dev/null || true

# ---- the oldest: .NET Core 3.1 -------------------------------------------------------------------

export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_BUNDLE_EXTRACT_BASE_DIR=$PWD/bundle
need_dotnet 'events of .NET Core 3.1' sarif-multitool-3.1 'sarif-multitool 2.4.16' event31
# Any exception of the program; the C++ exception by which the runtime leaves native frames does not
# count.
record event31 --collect-multiple 2 --max-per-hour 1 --stop-on-gc-over-msec '1;Process=event31' \
	--stop-on-exception '.;Process=event31'
died=0
while kill -0 $collect 2>/dev/null; do
	./event31 rewrite cut.sarif --output out.sarif --force >/dev/null 2>&1
	[ $? -lt 128 ] || died=$((died + 1))
done
wait $collect
check none_of_its_programs_dies [ $died = 0 ]
check a_collection_of_core_3_1_fires \
	grep -qE 'fired: GC of event31 \(pid [0-9]+\) (took|is still open after) [0-9.]+ ms' \
	event31.log
check an_exception_of_core_3_1_fires_with_its_message \
	grep -qE 'fired: exception [A-Za-z.]+Exception: .*, of event31' event31.log

# This runtime dies when its peer is gone before it has begun the stream that was asked for: so it
# is asked nothing else until it has said who it is, and a recorder that ends while it stands still
# leaves no such request.
./event31 rewrite cut.sarif --output out.sarif --force >/dev/null 2>&1 & program=$!
wait_for 20 ls /tmp/dotnet-diagnostic-$program-*-socket >/dev/null 2>&1
kill -STOP $program
record stopped --stop-on-gc-over-msec '1000;Process=event31'
sleep 1
kill -INT $collect
wait $collect
kill -CONT $program
wait $program
code=$?
check "one_that_stood_still_while_the_recorder_came_and_went_lives (exit code $code)" \
	[ $code -lt 128 ]
rm -rf bundle
