#!/bin/bash
# Trace files of .NET programs (.nettrace): rules fire as they would have live, and damage is
# reported.
. "$TOP/tests/support/cli.sh"
gc=$TOP/tests/data/nettrace/gc.nettrace

"$RECORDER" collect --store a.db --from "$gc" --stop-on-gc-over-msec 50 --collect-multiple 9 2>log
check collections_over_50_ms_fire test "$(grep -c 'fired: GC of Sarif.Multitool' log)" = 2
check they_have_the_times_of_the_runtime \
	grep -q 'took 74.0941 ms, over its limit of 50 ms, thread 5391, count 5' log
check exceptions_have_their_type grep -q 'fired: exception Newtonsoft.Json.JsonReaderException' <(
	"$RECORDER" collect --store b.db --from "${gc%/*}/exceptions.nettrace" \
		--stop-on-exception JsonReader 2>&1)
"$RECORDER" events --from "$gc" --count >count 2>err
check its_events_are_listed grep -qE ' 10  Microsoft-Windows-DotNETRuntime/GC/Start$' count
head -c 9000 "$gc" >cut.nettrace
"$RECORDER" collect --store c.db --from cut.nettrace --stop-on-gc-over-msec 5 2>log
check a_file_that_is_cut_is_read_up_to_there grep -q 'fired: GC' log
check and_said_to_be_cut grep -q "cut.nettrace is incomplete: it ends before its end mark" log
(head -c 8000 "$gc"; head -c 4000 /dev/zero) >bad.nettrace
"$RECORDER" events --from bad.nettrace --count >count 2>err
check damage_is_no_crash test $? -le 3
head -c 20 "$gc" >tiny.nettrace
check a_file_without_events_is_refused expect_exit 1 "$RECORDER" events --from tiny.nettrace --count
echo 'this is text, longer than the magic word' >text.nettrace
check and_one_that_is_none_is_not_called_an_etl eval \
	'! "$RECORDER" events --from text.nettrace 2>err &&
	grep -q "text.nettrace is not a .NET trace: it does not begin with" err'
"$RECORDER" events GC/Start >list 2>err
check events_of_the_runtime_can_be_listed_with_their_fields \
	grep -q '^Microsoft-Windows-DotNETRuntime/GC/Start  Count Depth' list
"$RECORDER" export --store b.db --metric event -f -o folded 2>err
check their_stacks_are_in_the_flame_graph \
	grep -q ';event!Exception/Start Newtonsoft.Json.JsonReaderException' folded

# objects.nettrace: a program of .NET 8 that keeps 1,000 arrays of 1,000 bytes (1,024,000 bytes by
# its own count) and drops 9,000; then one collection. Keywords GC, GCHeapSurvivalAndMovement, Jit
# and Stack.
objects=${gc%/*}/objects.nettrace
"$RECORDER" collect --store d.db --from "$objects" 2>log
bytes()                                  # METRIC FUNCTION
{
	"$RECORDER" export --store d.db --metric "$1" -f 2>>err |
		awk -v f="$2" 'index($0, f) { n += $NF } END { printf "%d\n", n }'
}
all=$(bytes heap '')
check all_that_is_allocated_is_10_000_arrays test "$all" -gt 10240000 -a "$all" -lt 10400000
keep=$(bytes heap-net StartupHook.Keep)
# 26 samples: 20 %, twice that here.
check what_survives_is_in_use_by_who_allocated_it \
	test "$keep" = "$(bytes heap StartupHook.Keep)" -a "$keep" -gt 614400 -a "$keep" -lt 1433600
check what_does_not_was_allocated_only test "$(bytes heap-net StartupHook.Drop)" = 0
# Each is one line with its fields, and not one more for each sample that is made of it: one for
# each 100 KB.
"$RECORDER" events --from "$objects" --name '^GC/AllocationTick$' >ticks 2>err
check an_event_with_a_stack_is_listed_once test "$(wc -l <ticks)" = 97
check and_with_its_fields test \
	"$(grep -c ' AllocationAmount=1[0-9]* .* TypeName=System\.Byte\[\] ' ticks)" = 97
