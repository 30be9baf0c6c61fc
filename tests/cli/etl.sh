#!/bin/bash
# events and collect --from on a real Windows trace (../shared/data/etl) whose numbers are known.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG RECORDER_STORE
export XDG_STATE_HOME=$TMP/state HOME=$TMP
data=$TOP/../shared/data/etl

echo 'no trace' >none.etl
"$RECORDER" events --from none.etl >out 2>err
if grep -q 'reads no trace files' err; then
	echo "skip etl: this build reads no trace files"
	exit 0
fi

# ---- what is no trace ----------------------------------------------------------------------------

expect what_is_no_trace_is_refused_in_a_sentence 1 'none.etl' events --from none.etl
check a_refusal_is_one_line [ "$(wc -l <err)" = 1 ]
expect collect_refuses_it_as_well 1 'none.etl' collect --from none.etl --store none.db
expect a_file_that_is_missing 1 'gone.etl' collect --from gone.etl --store gone.db
check no_store_is_made_for_a_missing_file [ ! -e gone.db ]
expect counters_are_not_in_a_file 2 'a trace file has no counters' \
	collect --from none.etl --store none.db \
	'/StopOnPerfCounter:Processor:% Processor Time:_Total>80'

if [ ! -d "$data" ]; then
	echo "skip etl_real_traces: no ../shared/data/etl"
	exit 0
fi
if ! command -v unzip >/dev/null; then
	echo "skip etl_real_traces: no unzip here"
	exit 0
fi
unzip -oq "$data/net.4.5.2.x64.etl.zip" net.4.5.2.x64.etl
net=net.4.5.2.x64.etl

# ---- events (that they are PerfView's: trace_events.sh) ------------------------------------------

"$RECORDER" events --from $net --count >all.counts 2>/dev/null
"$RECORDER" events --from "$data/net.4.5.2.x64.etl.zip" --count >zip.counts 2>/dev/null
check a_zip_is_read_in_place cmp all.counts zip.counts
if [ "$WINE_RUN" ] && [ -e "$RECORDER_EXE" ]; then
	$WINE_RUN "$RECORDER_EXE" events --from $net --count >wine.counts 2>/dev/null
	check the_windows_program_counts_the_same cmp all.counts wine.counts
else
	echo "skip the_windows_program_counts_the_same: no Wine, or no $RECORDER_EXE"
fi
expect events_of_a_name 0 '' \
	events --from $net --provider microsoft-windows-dotnetruntime --name gc/start --json
check events_of_a_name_have_its_fields sh -c \
	"grep '\"t_ms\":3228.7778,.*\"name\":\"GC/Start\"' out |
		grep -q '\"pid\":3676,.*\"Count\":1,\"Depth\":0'"
expect events_of_a_process 0 '' events --from $net --process 3988 --name Exception/Start
check an_exception_is_shown_with_its_text \
	grep -qE '^ +9903.345 .*\(3988\).*System.IO.FileNotFoundException' out
check addresses_are_in_hex grep -q 'ExceptionEIP=0xa3910f0 ' out
expect events_of_no_such_name_names_the_near_ones 3 'GC/Start' events --from $net --name GC/Strat
check head_closing_the_pipe_is_quiet bash -c \
	'"$RECORDER" events --from '$net' 2>err | head -n 1 >/dev/null; [ ! -s err ]'
head -c 2000000 $net >cut.etl
expect a_trace_that_is_cut_gives_what_precedes_the_cut 0 '131,[0-9]{3} events' \
	events --from cut.etl --count

# ---- times of threads (their meaning: etw/thread_time) -------------------------------------------

expect a_trace_without_context_switches_says_so 0 'has no context switches' \
	collect --from $net --thread-time \
	--store times.db
expect and_has_no_times 3 'no thread times' report --id 1 --metric off-cpu --store times.db

# ---- kinds of code -------------------------------------------------------------------------------

"$RECORDER" report --id 1 --by-name --store times.db --json >rows 2>err
kind_of()
{
	jq -r "select(.row == \"function\" and (.name | startswith(\"$1\"))).code" rows | sort -u
}
check managed_functions_say_so [ "$(kind_of 'mscorlib.dll!System.DateTime.get_Now')" = .NET ]
check native_ones_too [ "$(kind_of ntdll.dll!)" = native ]
check and_the_kernels [ "$(kind_of ntoskrnl.exe!)" = kernel ]
check people_see_a_column sh -c '"$RECORDER" report --id 1 --by-name --store times.db |
	grep -q "%  \.NET  .*mscorlib.dll!System.DateTime.get_Now$"'
check show_has_the_share_of_a_language sh -c '"$RECORDER" show --id 1 --store times.db |
	grep -qE "Test.x64 \(3676\): .*; \.NET in [0-9]+ %$"'
"$RECORDER" export --id 1 -f --store times.db --process Test.x64 >whole.folded
"$RECORDER" export --id 1 -f --store times.db --process Test.x64 --managed-only >managed.folded
samples() { awk '{ n += $NF } END { print n }' "$1"; }
check managed_only_keeps_every_sample [ "$(samples whole.folded)" = "$(samples managed.folded)" ]
check managed_and_native_code_stand_together grep -q 'clr.dll!.*mscorlib.dll!' whole.folded
check managed_only_leaves_no_native_frame_beside_them \
	[ -z "$(grep mscorlib.dll! managed.folded | grep -E '(clr|ntdll|kernel32).dll!')" ]

# ---- collect: which GCs took over a millisecond --------------------------------------------------

expect two_gcs_over_a_millisecond 0 'done:.*2 stored' \
	collect --from $net --store gc.db /StopOnGCOverMsec:1 /CollectMultiple:3
expect list_of_the_gcs 0 '' list --store gc.db --json
check exactly_these_two sh -c "[ \"\$(wc -l <out)\" = 2 ] &&
	sed -n 2p out | grep -q '3676.* 1.334 ms.*count 1,' && sed -n 1p out |
	grep -q '3988.* 10.8275 ms.*count 12,'"
expect show_the_first 0 '' show --store gc.db --id 1 --json
check the_first_fired_at_the_end_of_its_gc grep -q '"time_utc":"2020-07-29T00:07:03.853Z"' out
expect show_the_second 0 '' show --store gc.db --id 2 --json
check the_second_fired_at_the_end_of_its_gc grep -q '"time_utc":"2020-07-29T00:07:05.378Z"' out
expect it_stops_reading_at_the_first 0 '1 stored' \
	collect --from $net --store one.db /StopOnGCOverMsec:1
expect no_gc_over_100_ms 3 'no rule fired' collect --from $net --store no.db /StopOnGCOverMsec:100

# ---- collect: all of it --------------------------------------------------------------------------

expect all_of_the_file 0 'done:.*1 stored' collect --from $net --store all.db
expect show_all 0 '' show --store all.db --id 1 --json
check the_window_is_the_file sh -c \
	"grep -q '\"state\":\"complete\"' out && grep -q '\"post_s\":12.58' out &&
	grep -q '\"trigger\":\"file\"' out"
# Known numbers of this trace: its samples, samples by leaf, and everything that Main called.
expect export_all 0 '' export --store all.db --id 1 -f
count() { awk -v what="$1" '$0 ~ what { n += $NF } END { print n + 0 }' out; }
check all_samples_are_there [ "$(count .)" = 6320 ]
check those_of_the_program [ "$(count '^Test.x64 \\(3676\\);')" = 5129 ]
check main_inclusive [ "$(count ';Test.x64.exe!Test.Program.Main')" = 4935 ]
check leaves_in_managed_code \
	[ "$(count 'mscorlib.dll!System.DateTime.GetDatePart(_\\[j\\])? [0-9]+$')" = 1856 ]
check leaves_in_native_code [ "$(count ';clr.dll!\\? [0-9]+$')" = 339 ]
expect export_with_addresses 0 '' export --store all.db --id 1 -f --addresses
check native_functions_have_an_rva grep -q ';clr.dll!+0x[0-9A-F]*[; ]' out
check modules_have_no_path sh -c '! grep -qF "Windows\\" out'
