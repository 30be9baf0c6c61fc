#!/bin/bash
# Heaps, VirtualAlloc, page faults and objects of .NET on Windows: from trace files, and live under
# Wine, whose ETW is a stand-in (tests/dll/tdh.c). The traces are made by hand
# (tests/programs/heap_etl.c), so their sums are known.
# time limit: 240
. "$TOP/tests/support/cli.sh"

# sums STORE METRIC: "MODULE KB ...", the largest first
sums()
{
	"$RECORDER" report --store "$1" --metric "$2" --by-name --json 2>/dev/null |
		jq -r 'select(.self_kb? > 0) | "\(.name | sub("!.*"; "")) \(.self_kb | round)"' |
		tr '\n' ' '
}
# faults STORE: how many there were of each kind
faults()
{
	"$RECORDER" events --id 1 --store "$1" --json 2>/dev/null | jq -r .name |
		grep '^Memory/' | sort | uniq -c | tr -s ' \n' ' '
}
# sums_are HOW STORE
sums_are()
{
	check $1_heap_is_what_was_allocated [ "$(sums $2 heap)" = \
		"keep.dll 2048 seventy.dll 700 churn.dll 488 thirty.dll 300 " ]
	check $1_heap_net_is_what_was_not_freed [ "$(sums $2 heap-net)" = \
		"keep.dll 2048 seventy.dll 700 thirty.dll 300 " ]
	check $1_heap_peak_is_the_most [ "$(sums $2 heap-peak)" = \
		"keep.dll 2048 seventy.dll 700 thirty.dll 300 " ]
	check $1_vm_is_what_was_asked_for [ "$(sums $2 vm)" = \
		"churn.dll 102400 seventy.dll 7168 thirty.dll 3072 " ]
	check $1_vm_net_is_what_was_kept [ "$(sums $2 vm-net)" = \
		"seventy.dll 7168 thirty.dll 3072 " ]
	check $1_vm_peak_is_the_most [ "$(sums $2 vm-peak)" = \
		"seventy.dll 7168 thirty.dll 3072 churn.dll 1024 " ]
	check $1_faults_have_their_kinds [ "$(faults $2)" = \
		" 100 Memory/DemandZeroFault 10 Memory/HardFault " ]
}

# types STORE METRIC: "TYPE KB ..." of objects of .NET, the largest first
types()
{
	"$RECORDER" report --store "$1" --metric "$2" --by-name --json 2>/dev/null |
		jq -r 'select(.self_kb? > 0) | "\(.name | sub(".* "; "")) \(.self_kb | round)"' |
		tr '\n' ' '
}
# objects_are HOW STORE: with collections that move ten and leave five, then leave three
objects_are()
{
	for metric in alloc heap heap-peak; do
		check $1_objects_are_those_of_the_ticks_in_$metric [ "$(types $2 $metric)" = \
			"event!LargeObject 2048 Shop.Cart 700 System.Byte[] 500 Shop.Row 300 " ]
	done
	check $1_collections_leave_what_they_tell_of [ "$(types $2 heap-net)" = \
		"event!LargeObject 2048 Shop.Cart 700 " ]
	check $1_objects_are_of_who_allocated_them [ "$("$RECORDER" report --store $2 --memory \
		--json 2>/dev/null | jq -r 'select(.row == "heap_function") | "\(.name) \(.mb)"' |
		tr '\n' ' ')" = 'keep.dll!? 2 seventy.dll!? 0.68359375 ' ]
}

for what in all kernel heap dotnet; do
	"$BUILD/programs/heap_etl" $what.etl $what || exit 1
	"$BUILD/programs/etw_live_records" $what.etl $what.rec >/dev/null || exit 1
done
"$RECORDER" collect --from all.etl --store file.db >file.err 2>&1
sums_are a_files file.db
"$RECORDER" collect --from dotnet.etl --store dotnet.db >file.err 2>&1
objects_are a_files dotnet.db
check events_of_a_file_have_perfviews_names [ "$(
	"$RECORDER" events --from all.etl --json 2>/dev/null | grep -o '"HeapTrace/[A-Za-z]*"' |
	sort | uniq -c | tr -s ' \n' ' ')" = \
	' 301 "HeapTrace/Alloc" 1 "HeapTrace/Destroy" 100 "HeapTrace/Free" ' ]

# ---- live ----------------------------------------------------------------------------------------

need_windows_program windows_heap dll/tdh.dll
export WINEDLLOVERRIDES='mscoree,mshtml=;tdh=n'
own_wine windows_heap tdh.dll
OPTIONS='HKLM\SOFTWARE\Microsoft\Windows NT\CurrentVersion\Image File Execution Options'
# flag PROGRAM: its TracingFlags; nothing = it has none
flag()
{
	timeout 60 $WINE_RUN reg query "$OPTIONS\\$1" /v TracingFlags 2>/dev/null </dev/null |
		tr -d '\r' | awk '/REG_DWORD/ { print $3 }'
}
collect()
{
	local name=$1
	shift
	STANDIN_LOG=$name.log timeout 100 $WINE_RUN "$RECORDER_EXE" collect --store "$name.db" \
		--history-mb 0 "$@" >"$name.out" 2>"$name.err" </dev/null
}

STANDIN_RECORDS=kernel.rec STANDIN_HEAP_RECORDS=heap.rec collect live /OSHeapProcess:50 \
	/KernelEvents:Profile,VirtualAlloc,MemoryPageFaults,MemoryHardFaults &
live=$!
STANDIN_RECORDS=dotnet.rec collect objects --dotnet-heap & objects=$!
collect plain --max-collect-sec 0.2 &
collect named --max-collect-sec 0.2 --heap-process no_such_program &
wait $!
collect both --max-collect-sec 0.2 /OSHeapProcess:70000 --heap-next b
wait_for 60 sh -c '[ $(grep -c ^replayed live.log) = 2 ]'
sleep 1                                      # the last events wait half a second for their stacks
$WINE_RUN "$RECORDER_EXE" stop --store live.db >stop.out 2>&1
wait $live
wait_for 60 grep -q ^replayed objects.log
sleep 1
$WINE_RUN "$RECORDER_EXE" stop --store objects.db >stop.out 2>&1
wait $objects
timeout 60 $WINE_RUN reg add "$OPTIONS\\old.exe" /v TracingFlags /t REG_DWORD /d 4 /f >reg.out \
	2>&1 </dev/null
collect next --max-collect-sec 60 /OSHeapExe:shop & next=$!
collect again --max-collect-sec 60 --heap-next OLD.EXE & again=$!
wait_for 60 grep -q '^open .*-heap ' next.log
wait_for 60 grep -q '^open .*-heap ' again.log
check the_flag_is_set_while_it_records [ "$(flag shop.exe)" = 0x1 ]
check others_of_its_bits_stay [ "$(flag old.exe)" = 0x5 ]
collect second --max-collect-sec 0.2 --heap-next shop
check the_flag_stays_for_another_recorder [ "$(flag shop.exe)" = 0x1 ]
$WINE_RUN "$RECORDER_EXE" stop --store next.db >stop.out 2>&1
wait $next
check it_goes_with_its_key sh -c \
	"! timeout 60 $WINE_RUN reg query '$OPTIONS\\shop.exe' >reg.out 2>&1"
# Killed: not even its end runs.
timeout 60 $WINE_RUN taskkill /F /IM recorder.exe >kill.out 2>&1 </dev/null
wait $again
check a_kill_leaves_the_flag [ "$(flag old.exe)" = 0x5 ]
collect after --max-collect-sec 0.2
check the_next_start_puts_it_back [ "$(flag old.exe)" = 0x4 ]

session='^heap session guid=222962ab-6180-4b88-a825-346b75f2a24a list=6 2: 2 2 pid'
check the_heap_has_a_session_of_its_own sh -c "[ \$(grep -c '^start ' live.log) = 2 ] &&
	grep -q '^start name=recorder-session-.*-heap mode=0x00000110 ' live.log"
check it_is_of_the_process_with_stacks_of_allocations \
	grep -q "$session 50: 3 3 0x1021 0x1022" live.log
check a_program_that_will_start_is_process_0 grep -q "$session 0: 3 3 0x1021 0x1022" next.log
check a_number_of_more_than_16_bits_is_whole grep -q "$session 70000: " both.log
check without_the_option_there_is_none sh -c "! grep -q '^heap session' plain.log"
check both_sessions_are_stopped_once [ "$(grep -c '^stop handle' both.log)" = 2 ]
check a_name_that_nobody_has_is_said grep -q 'none of .* is named no_such_program' named.err
check virtualalloc_and_faults_are_flags grep -q ' flags=0x01007007 ' live.log
for event in 98 99 11 32; do
	check stack_of_memory_$event grep -q "^stack 3d6fa8d3-.* $event\$" live.log
done
sums_are live live.db
objects_are live objects.db
