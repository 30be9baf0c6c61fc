#!/bin/bash
# Rules on real Windows traces (../shared/data/etl): each fires at the time and with the value that
# PerfView's listing and the trace's own records give, and backtest gives the same answer twice.
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG RECORDER_STORE
export XDG_STATE_HOME=$PWD/state HOME=$PWD
data=$TOP/../shared/data/etl
net=$data/net.4.5.2.x64.etl.zip gc=$data/gcevents.etl.zip types=$data/primitive-types.etl.zip

if [ ! -e "$net" ]; then
	echo "skip rules_file: no ../shared/data/etl"
	exit 0
fi

# rule NAME TIME VALUE RULE: add a rule for fire_in, with the time and value of its first firing;
# time null: it must not fire.
rules=()
rule() { rules+=("$@"); }

# fire_in TRACE: run all of those rules, which are independent, in one pass.
fire_in()
{
	local trace=$1 given=() i
	for ((i = 0; i < ${#rules[@]}; i += 4)); do given+=("/${rules[i + 3]}"); done
	"$RECORDER" backtest --from "$trace" --delay-after-trigger-sec 0 \
		--json "${given[@]}" >fired.json 2>err
	for ((i = 0; i < ${#rules[@]}; i += 4)); do
		fired_first "${rules[i]}" "${rules[i + 1]}" "${rules[i + 2]}" "${rules[i + 3]}"
	done
	rules=()
}

# fired_first NAME TIME VALUE RULE: check the rule's first firing in fired.json; time null: there is
# none
fired_first()
{
	local as=${4/#StopOnEvent:/StopOnEtwEvent:}
	as=${as%:}
	check "$1" jq -se --argjson t "$2" --argjson v "$3" --arg rule "$as" \
		'map(select(.rule == $rule))[0] |
		if $t == null then . == null else (.time_s - $t | fabs) < 0.0000006 end and
		(if $v == null then .value == null else (.value - $v | fabs) < 0.00005 end)' \
		fired.json
}

# silent NAME TRACE RULE...
silent()
{
	local name=$1 trace=$2
	shift 2
	"$RECORDER" backtest --from "$trace" "$@" >fired 2>err
	check "$name" test ! -s fired
}

rule gc_over_1_ms                 3.230112 1.3340 StopOnGCOverMsec:1
rule gc_over_10_ms                4.755194 10.8275 StopOnGCOverMsec:10
rule gc_of_a_process              4.755194 10.8275 'StopOnGCOverMsec:1;Process=PerfView.exe'
rule gc_pause_over_10_ms          4.755218 10.8771 'StopOnGCOverMsec:10;Measure=pause'
rule gc_suspension_over_50_us     3.228763 0.0601 'StopOnGCSuspendOverMSec:0.05;Process=3676'
rule exception                    9.903345 null 'StopOnException:^System.IO.FileNotFoundException: '
rule any_exception                9.903345 null StopOnException:
rule process_start                2.733176 null 'StopOnProcess:Test.x64;On=start'
rule process_exit_0               8.202285 null 'StopOnProcess:3676;ExitCode=0'
rule event_pair_by_hand           4.755194 10.8263 \
	'StopOnEtwEvent:Microsoft-Windows-DotNETRuntime/GC/Start;TriggerMSec=5;StopEvent=GC/Stop'
rule event_by_guid_with_a_filter  2.733176 null \
	'StopOnEtwEvent:Windows Kernel Trace/Process/Start;FieldFilter=ImageFileName~^test'
rule event_by_its_number          3.228778 null \
	'StopOnEtwEvent:Microsoft-Windows-DotNETRuntime/EventID(1)'
rule pair_by_its_numbers          4.755194 10.8263 \
	'StopOnEtwEvent:Microsoft-Windows-DotNETRuntime/EventID(1);TriggerMSec=5'
rule no_background_gc             null null StopOnBGCFinalPauseOverMsec:0.0001
rule no_gen2_gc                   null null StopOnGen2GC
rule no_such_exception            null null 'StopOnException:^filenotfound'
rule exit_code_that_was_not       null null 'StopOnProcess:Test.x64;ExitCode!=0'
fire_in "$net"
rule event_of_an_event_source     2.942306 null 'StopOnEtwEvent:*solar_system/PrimitiveTypesTest'
rule event_with_a_text_filter     3.814002 null \
	'StopOnEvent:solar_system/PrimitiveTypesTest;FieldFilter=string_type=earth'
rule event_with_a_number_filter   3.381259 null \
	'StopOnEvent:solar_system/PrimitiveTypesTest;FieldFilter=int32_type<=-190'
fire_in "$types"
rule gen1_gc_of_net_8             11.608135 0.7027 StopOnGCOverMsec:0.6
rule gen2_gc_at_its_start         11.608181 2 StopOnGen2GC
rule gc_pause_of_net_8            11.608145 0.7867 'StopOnGCOverMsec:0.7;Measure=pause'
fire_in "$gc"
"$RECORDER" backtest --from "$net" --delay-after-trigger-sec 0 \
	--json --rule gc=StopOnGCOverMsec:10 \
	--rule ex=StopOnException:File --stop-on 'gc then ex within 6s' >fired.json 2>err
fired_first one_after_the_other   9.903345 null 'gc then ex within 6s'

silent gc_over_11_ms                "$net" /StopOnGCOverMsec:11
check how_near_it_came_is_told grep -q '; nearest 10.83 ms at 4.755 s; [0-9]* seen, 264 matched' err
"$RECORDER" collect --from "$net" --store w.db /StopOnGCOverMsec:11 \
	'/StopOnException:^filenotfound' 2>log
check as_collect_does \
	grep -q 'StopOnGCOverMsec:11: .*; nearest 10.83 ms at 4.755 s; [0-9]* seen, 264 matched' log
check and_where_the_events_went grep -q 'filenotfound: armed; 1 seen, 1 dropped by a filter' log
silent too_late_after_it            "$net" --rule gc=StopOnGCOverMsec:10 \
	--rule ex=StopOnException:File --stop-on 'gc then ex within 5s'

# A name that is not in the trace is reported with the nearest names, and the exit code is 3.
clr=Microsoft-Windows-DotNETRuntime
"$RECORDER" backtest --from "$net" "/StopOnEvent:$clr/GC/Start;FieldFilter=Dept>1" \
	'/StopOnGCOverMsec:1;Process=Test.x46' "/StopOnEvent:$clr/GC/Start;FieldFilter=Depth>1" \
	--rule p=StopOnProcess:tset --rule gc=StopOnGCOverMsec:1 \
	--stop-on 'gc then p within 5s' >fired 2>err
check nothing_fires_is_3 eval "test $? -eq 3"' && grep -q "^recorder: no rule would have fired" err'
check unknown_field grep -q "'GC/Start' has no field 'Dept' in net.*; did you mean 'Depth'" err
check unknown_process grep -q "has no process 'Test.x46'; did you mean 'Test.x64'" err
check part_of_a_rule grep -q "has no process 'tset'" err
check no_other_name_is_blamed test "$(grep -c "has no\|holds no\|knows no" err)" = 3
"$RECORDER" backtest --from "$net" /StopOnGCOverMsec:1 /Process:PerfView >fired 2>err
check process_is_for_all_rules_on_events eval \
	'test "$(wc -l <fired)" = 1 && grep -q "PerfView (pid 3988)" fired'
check counters_of_a_file_are_refused_as_by_collect expect_exit 2 \
	"$RECORDER" backtest --from "$net" '/StopOnPerfCounter:Memory:Available Bytes:>1'
"$RECORDER" collect --from "$net" --store u.db /StopOnGCOverMsec:1 \
	"/StopOnEvent:$clr/GC/Strt" /CollectMultiple:9 2>log
check collect_tells_too grep -q "has no event 'GC/Strt' in net" log

# 263 collections of Test.x64 and one of PerfView; each starts twice in the trace (versions 1 and
# 2).
"$RECORDER" backtest --from "$net" --delay-after-trigger-sec 0 /StopOnGCOverMsec:0.0001 >all 2>err
check each_of_264_collections_once test "$(wc -l <all)" = 264
"$RECORDER" backtest --from "$net" --delay-after-trigger-sec 0 /StopOnGCOverMsec:0.0001 >again 2>err
check the_same_twice cmp all again
"$RECORDER" backtest --from "$net" --delay-after-trigger-sec 0 --json --sweep 1:11:5 \
	/StopOnGCOverMsec:7 >sweep 2>err
check a_sweep_counts_for_each_limit \
	jq -se 'map([.limit, .incidents]) == [[1, 2], [6, 1], [11, 0]]' sweep
check a_sweep_needs_a_limit \
	expect_exit 2 "$RECORDER" backtest --from "$net" --sweep 1:5:1 /StopOnException:x
check a_sweep_is_checked \
	expect_exit 2 "$RECORDER" backtest --from "$net" --sweep 5:1 /StopOnGCOverMsec:1

# As in a live recording, a rule pauses for the delay after a firing, and the output says so.
"$RECORDER" backtest --from "$net" /StopOnGCOverMsec:1 >fired 2>err
more='^recorder: StopOnGCOverMsec:1: 1 more firings within the delay of 5 s after one; --delay'
check what_the_delay_hides_is_told eval 'test "$(wc -l <fired)" = 1 && grep -q "$more" err'
"$RECORDER" backtest --from "$net" --sweep 1:11:5 /StopOnGCOverMsec:7 >sweep 2>err
check by_a_sweep_too grep -q "^recorder: firings within the delay of 5 s after an incident" err
"$RECORDER" backtest --from "$net" --delay-after-trigger-sec 0 /StopOnGCOverMsec:1 >fired 2>err
check without_a_delay_there_is_nothing_to_tell eval \
	'test "$(wc -l <fired)" = 2 && ! grep -q "within the delay" err'

# /DataFile: the file exists when StopCommand runs; an older file is kept and the next one gets a
# number.
echo mine >slow.perfView.xml.zip
"$RECORDER" collect --from "$net" --store d.db --collect-multiple 2 \
	/StopOnGCOverMsec:1 /DataFile:slow.etl \
	/StopCommand:"/bin/ls %OUTPUTDIR%/%OUTPUTBASENAME%.zip %OUTPUTFILE%" 2>log
check a_data_file_for_each_incident test -s slow.1.perfView.xml.zip -a -s slow.2.perfView.xml.zip
check one_that_was_there_is_kept test "$(cat slow.perfView.xml.zip)" = mine
check the_stop_command_finds_it grep -q 'stop command: ./slow.1.perfView.xml.zip' log
check its_name_is_right eval '! grep -q "cannot access" log'
"$RECORDER" collect --from "$net" --store f.db /StopOnGCOverMsec:1 /DataFile:/proc/x.html \
	/StopCommand:"/bin/echo then %OUTPUTFILE%." 2>log
check a_file_that_cannot_be_written_is_no_failure test $? -eq 0
check but_the_log_says_so grep -q 'the data file of incident 1 was not written: ' log
check and_the_stop_command_runs grep -q 'stop command: then .$' log
"$RECORDER" collect --from "$net" --store e.db /StopOnGCOverMsec:1 /DataFile:gone/x.html 2>log
check a_directory_that_is_not_there_is_refused grep -q 'there is no directory gone' log

# collect --from stores what backtest says.
"$RECORDER" collect --from "$net" --store s.db --collect-multiple 9 /StopOnGCOverMsec:1 2>log
check collect_keeps_the_same_two expect_exit 0 "$RECORDER" show --store s.db --id 2
"$RECORDER" backtest --store s.db --id 2 --json /StopOnGCOverMsec:10 >fired.json 2>err
check and_a_backtest_of_the_incident_finds_its_trigger \
	jq -se 'length == 1 and (.[0].time_s | fabs) < 0.000001 and (.[0].value - 10.8275 |
	fabs) < 0.0002' fired.json
"$RECORDER" backtest --store s.db --id 2 "/StopOnEvent:$clr/EventID(1)" >fired 2>err
check numbers_of_events_are_in_the_store test -s fired
"$RECORDER" backtest --store s.db --id 2 '/StopOnPerfCounter:Memory:Available Bytes:>1' >fired 2>err
check a_counter_that_is_not_in_the_incident_is_told \
	eval "test $? -eq 3"' &&
	grep -q "incident 2 has no value of counter .Memory:Available Bytes:., nor of any" err'
