#!/bin/bash
# report --runtimes and disk I/O, of Windows traces whose every event is known: sums are those that
# jq finds in the events, and counts are those of PerfView's own listing beside the trace.
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG RECORDER_STORE
export XDG_STATE_HOME=$TMP/state HOME=$TMP COLUMNS=150

etl=$TOP/../shared/data/etl
[ -e "$etl/net.4.5.2.x64.etl.zip" ] || { echo "skip runtimes: no traces in $etl"; exit 0; }
"$RECORDER" collect --from "$etl/net.4.5.2.x64.etl.zip" --store net.db 2>err
"$RECORDER" events --id 1 --store net.db --json >events.json 2>err

rows() { jq -s "map(select(.row == \"$1\"))$2" out; }
of_listing()
{
	sed -n "s|^COUNT Microsoft-Windows-DotNETRuntime/$1:\([0-9]*\)\r*$|\1|p" \
		"$etl/net.4.5.2.x64.baseline.txt"
}
# near A B: equal to a thousandth
near() { awk -v a="$1" -v b="$2" 'BEGIN { d = a - b; exit !(b > 0 && d * d <= b * b * 1e-6) }'; }
of_events() { jq -s "$1" events.json; }

expect what_runtimes_tell 0 '' report 1 --store net.db --runtimes --rows 1000 --json

expect of_a_trace_without_losses_counts_are_exact 0 '' report 1 --store net.db --runtimes
check really expect_exit 1 grep -q 'may be too low' out
cp net.db left.db
sqlite3 left.db "INSERT INTO loss VALUES(1, 'flood', 0, -1, 712)"
expect what_was_left_out_of_counts_is_told 0 \
	'^Counts of events may be too low: 712 were lost or left out; `recorder show --losses`' \
	report 1 --store left.db --runtimes
expect what_runtimes_tell_again 0 '' report 1 --store net.db --runtimes --rows 1000 --json

# ---- collections ---------------------------------------------------------------------------------

check as_many_collections_as_perfview_lists [ "$(rows collection ' | length')" = \
	"$(of_listing GC/Stop)" ]
check and_each_has_one_pause [ "$(rows collection ' | map(.pauses) | unique | .[]')" = 1 ]
# The first in PerfView's listing: 3,228.703 to 3,230.121 ms, and 18,736 bytes promoted.
check a_pause_is_that_of_the_listing [ "$(rows collection ' | map(select(.count == 1)) |
	.[0] | [(.pause_ms * 1000 | round), .promoted_mb * 1e6, .why] | join(" ")')" = \
	'"1418 18736 AllocSmall"' ]
pauses=$(of_events 'map(select(.name == "GC/SuspendEEStart" or .name == "GC/RestartEEStop")) |
	group_by(.pid) | map([range(0; length; 2) as $i | .[$i:$i + 2] |
	select(.[0].fields.Reason == 1) | .[1].t_ms - .[0].t_ms] | add) | add')
check pauses_add_up near "$(rows gc_process ' | map(.pauses_ms) | add')" "$pauses"
check generations_have_all_of_them near "$(rows gc_generation ' | map(.pauses_ms) | add')" "$pauses"
# sizes FIELD: the sum of such fields of the generations, after each collection
sizes()
{
	jq -s "map(select(.name == \"GC/HeapStats\") | .fields |
		with_entries(select(.key | startswith(\"$1\"))) | add)$2" events.json
}
check promoted_bytes_add_up near "$(rows gc_process ' | map(.promoted_mb * 1e6) | add')" \
	"$(sizes TotalPromotedSize ' | add')"
check allocations_add_up near "$(rows gc_process ' | map(.allocated_mb * 1e6) | add')" 1108915440
check the_largest_heap_is_told near "$(rows gc_process ' | map(.heap_peak_mb * 1e6) | max')" \
	"$(sizes GenerationSize ' | max')"

# Two events that know nothing of each other: but for generation 0, which the program fills, a
# collection finds what the one before left.
check what_was_there_before_is_what_was_left of_events '
	map(select(.pid == 3676 and (.name == "GC/HeapStats" or .name == "GC/PerHeapHistory")) |
	.fields) | [range(1; length - 1; 2) as $i | .[$i:$i + 2] |
	[.[0].GenerationSize1, .[0].GenerationSize2, .[0].GenerationSize3] ==
	[.[1].SizeBefore1, .[1].SizeBefore2, .[1].SizeBefore3]] |
	if length == 262 and all then . else error("\(.)") end'
check the_heap_before_is_told near "$(rows collection ' | map(.heap_before_mb * 1e6) | add')" \
	"$(of_events 'map(select(.name == "GC/PerHeapHistory") | .fields | .SizeBefore0 +
	.SizeBefore1 + .SizeBefore2 + .SizeBefore3) | add')"

# ---- compiled methods ----------------------------------------------------------------------------

check as_many_methods_as_perfview_lists [ "$(rows jit_process ' | map(.methods) | add')" = \
	"$(of_listing Method/LoadVerbose)" ]
check their_il_adds_up [ "$(rows jit_process ' | map(.il_bytes) | add')" = "$(of_events '
	map(select(.name == "Method/JittingStarted") | .fields.MethodILSize) | add')" ]
check their_code_adds_up [ "$(rows jit_process ' | map(.native_bytes) | add')" = "$(of_events '
	map(select(.name == "Method/LoadVerbose") | .fields.MethodSize) | add')" ]
check their_times_add_up near "$(rows jit_process ' | map(.ms) | add')" "$(of_events '
	[group_by([.pid, .fields.MethodID])[] | [.[] | select(.name == "Method/JittingStarted" or
	.name == "Method/LoadVerbose")] | select(length == 2) | .[1].t_ms - .[0].t_ms] | add')"
check each_is_there [ "$(rows jit_method ' | length')" = "$(of_listing Method/LoadVerbose)" ]

# ---- exceptions ----------------------------------------------------------------------------------

check an_exception_has_its_type_and_stack [ "$(rows exception ' | map([.type, .count, (.stack |
	test(";Microsoft.Diagnostics.Tracing.TraceEvent.dll!.*TraceEventSession..ctor;"))] |
	join(" ")) | .[]')" = '"System.IO.FileNotFoundException 1 true"' ]
expect the_same_for_people 0 '^ +263 +0 +29\.[0-9] .* 88\.0 +0\.06 +0\.06  Test.x64 \(3676\)$' \
	report 1 --store net.db --runtimes
check no_runtime_left_sizes_out expect_exit 1 grep -q 'No sizes' out
check nothing_is_nan expect_exit 1 grep -qi '\bnan\b' out
"$RECORDER" collect --from "$TOP/tests/data/nettrace/gc.nettrace" --store gc.db 2>err
expect a_concurrent_collection_has_its_pauses_only 0 '' report 1 --store gc.db --runtimes --json
check it_takes_longer_than_its_pauses [ "$(rows collection ' |
	map(select(.duration_ms > 150 and .pause_ms < 10)) | length')" = 1 ]

# ---- activities ----------------------------------------------------------------------------------

# Of Windows' shell, by PerfView's listing: "start ms, length, name".
expect the_activities_of_a_windows_trace_are_told 0 '' \
	report 1 --store net.db --requests --rows 1000 --json
jq -r '"\(.start_s * 1e6 | round / 1e3) \(.ms * 1e3 | round / 1e3) \(.name)"' out | sort -n >told
tr -d , <"$etl/net.4.5.2.x64.baseline.txt" | awk '$3 ~ /^Microsoft-Windows-Immersive-Shell/ {
		n = split($3, part, "/"); name = part[2] }
	$3 ~ /^Microsoft-Windows-Immersive-Shell.*Start$/ { began[name] = $2 + 0 }
	$3 ~ /^Microsoft-Windows-Immersive-Shell.*Stop$/ {
		printf "%.3f %.3f %s\n", began[name], $2 - began[name], name }' | sort -n >listed
check with_the_times_that_perfview_lists awk '
	NR == FNR { at[$3, NR] = $1; ms[NR] = $2; n = NR; next }
	{ d = $1 - at[$3, FNR]; e = $2 - ms[FNR]; bad += d * d > 4e-6 || e * e > 4e-6 }
	END { exit bad || n != 4 || FNR != n }' listed told
check and_one_within_the_other [ "$(jq -s -r 'map("\(.row) \(.in)") | join(" ")' out)" = \
	"request 0 activity 1 request 0 activity 3" ]

# ---- disks ---------------------------------------------------------------------------------------

expect disk_bytes_by_who_asked 0 '' \
	report 1 --store net.db --metric io-bytes --by-name --rows 1000 --json
disk='map(select(.name == "DiskIO/Read" or .name == "DiskIO/Write") | .fields'
check disk_bytes_add_up [ "$(jq -s 'map(.self_kb * 1024) | add | round' out)" = \
	"$(of_events "$disk.TransferSize) | add")" ]
check stacks_begin_in_the_kernel grep -q '"name":"ntoskrnl.exe!?".*"inclusive_kb":19386,' out
expect disk_time_by_who_asked 0 '' \
	report 1 --store net.db --metric io-time --by-name --rows 1000 --json
check disk_times_add_up near "$(jq -s 'map(.self_ms) | add' out)" \
	"$(of_events "$disk.DiskServiceTimeMSec) | add")"
expect both_are_exported 0 '' export 1 --store net.db --metric io-bytes -f
check with_the_file_as_leaf grep -qE ';event!DiskIO/Read.*;event!C:.Windows.System32.srvsvc.dll' out
expect a_runtime_without_sizes_is_named 0 \
	'^No sizes of the heap are told by Microsoft-Windows-DotNETRuntime; ' \
	report 1 --store net.db --runtimes --process PerfView --from 4.7 --to 4.75
