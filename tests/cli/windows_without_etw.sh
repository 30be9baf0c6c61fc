#!/bin/bash
# What the Windows program records without ETW, under Wine: counters, first with Wine's own PDH,
# which knows two, so that the system's own values replace the others, then with a stand-in that
# reads values from a file (tests/dll/pdh.c); log events, from a stand-in too (tests/dll/wevtapi.c);
# starts and ends of processes.
# time limit: 200
. "$TOP/tests/support/cli.sh"

need_windows_program windows_without_etw dll/pdh.dll programs/threads_windows.exe

# ---- Wine's own PDH ------------------------------------------------------------------------------

exe own check '/StopOnPerfCounter:Memory:Available MBytes:<1' \
	'/StopOnPerfCounter:Process:Working Set:recorder>1024G' \
	'/StopOnPerfCounter:Process:Thread Count:pid=999999>5' \
	'/StopOnPerfCounter:System:Threads:>1' --store x.db
check values_of_the_system_where_pdh_fails sh -c \
	"[ $code = 0 ] && [ \$(grep -cE '^ +now [0-9]{2,}' own.out) = 3 ] &&
	grep -q 'does not exist now' own.out"

# ---- the stand-in --------------------------------------------------------------------------------

export WINEDLLOVERRIDES='mscoree,mshtml=;pdh,wevtapi=n'
export STANDIN_PDH=values STANDIN_EVENTS=events
own_wine windows_without_etw pdh.dll wevtapi.dll
printf '%s\t%s\n' '\Processor(_Total)\% Processor Time' '? 10 20 95 97 99' \
	'\Memory\Available MBytes' '512' \
	'\Process(java)\Working Set' '100' '\Process(java)\ID Process' '11' \
	'\Process(java#1)\Working Set' '20' '\Process(java#1)\ID Process' '12' \
	'\Process(javaw)\Working Set' '7' '\Process(javaw)\ID Process' '13' \
	'\Process(late)\Working Set' '- - - 50' '\Process(late)\ID Process' '- - - 14' \
	'\Process(reborn)\Working Set' '900 900 900 1' \
	'\Process(reborn)\ID Process' '21 21 22 22' >values

exe list counters java
check counters_lists_names_and_values sh -c \
	"[ $code = 0 ] && grep -qE '^Process:Working Set:java +100' list.out &&
	grep -qE '^Process:Working Set:java#1 +20' list.out"
exe json counters 'Processor:*' --json
check counters_as_json_reads_rates_twice sh -c \
	"jq -e 'select(.counter == \"Processor:% Processor Time:_Total\" and
	.value == 10)' json.out"
exe none counters nothingofthat
check counters_that_match_nothing [ $code = 3 ]
exe near check '/StopOnPerfCounter:Process:Workin Set:java>1' --store x.db
check an_unknown_counter_has_its_nearest sh -c \
	"[ $code = 2 ] && grep -q \"the nearest are 'Working Set'\" near.out"
exe nearer check '/StopOnPerfCounter:Proces:Working Set:java>1' --store x.db
check an_unknown_category_has_its_nearest sh -c "[ $code = 2 ] && grep -q \"'Process'\" nearer.out"
exe many check '/StopOnPerfCounter:Process:Working Set:java#*>1000' \
	'/StopOnPerfCounter:Process:Working Set:pid=13>1000' \
	'/StopOnPerfCounter:Process:Working Set:j*>1000' \
	'/StopOnPerfCounter:Process:Working Set:gone>1000' --store x.db
check sums_pids_and_patterns sh -c "[ $code = 0 ] &&
	[ \"\$(grep -oE 'now [0-9]+|instance does not exist' many.out | tr '\n' ,)\" = \
	'now 120,now 7,now 127,instance does not exist,' ]"

# A value every 0.1 s. The processor is over 90 from its fourth reading on.
exe cpu collect --source none --poll-sec 0.1 --min-sec-for-trigger 0.2 \
	--delay-after-trigger-sec 0 --store cpu.db \
	'/StopOnPerfCounter:Processor:% Processor Time:_Total>90' \
	'/MonitorPerfCounter:Memory:Available MBytes:@0.1' \
	'/MonitorPerfCounter:Process:Working Set:late@0.1' \
	'/MonitorPerfCounter:Process:Working Set:reborn@0.1'
check a_rule_on_a_counter_fires [ $code = 0 ]
"$RECORDER" list --store cpu.db --json >cpu.json 2>/dev/null
check linux_opens_the_store_and_sees_it sh -c \
	"jq -e 'select(.id == 1)' cpu.json | grep -q 'Processor:% Processor Time:_Total'"
"$RECORDER" export --id 1 --store cpu.db --format counters-csv >cpu.csv 2>/dev/null
check monitored_counters_are_kept sh -c "grep -q 'Memory:Available MBytes,.*,512' cpu.csv"
check an_instance_that_comes_late_is_read_then sh -c "grep -q 'Working Set,late,,50' cpu.csv"
check another_process_of_the_name_is_absent_once sh -c \
	"[ \$(grep -c 'Working Set,reborn,,900' cpu.csv) = 2 ]"
$WINE_RUN "$RECORDER_EXE" export --id 1 --store cpu.db \
	--format counters-csv 2>/dev/null </dev/null >win.csv
check windows_exports_the_same cmp cpu.csv win.csv

# ---- stacks without ETW, stopped by a counter ----------------------------------------------------

$WINE_RUN "$TOP/build/windows/programs/threads_windows.exe" 2 pid busy >target.out 2>&1 </dev/null &
target=$!
wait_for 30 test -s pid
at_work='worker 1.*ntdll.dll!RtlUserThreadStart;.*threads_windows.exe!thread_main'
at_work+=';threads_windows.exe!descend'
# On a very busy machine rounds are rare, so the window is made longer.
for delay in 1 4 16; do
	rm -f sampler.db*
	exe sampler collect --source sampler --record-process threads_windows --poll-sec 0.1 \
		--min-sec-for-trigger 0.2 \
		--delay-after-trigger-sec $delay --store sampler.db \
		'/StopOnPerfCounter:Processor:% Processor Time:_Total>90'
	"$RECORDER" export --id 1 --store sampler.db -f >sampler.folded 2>/dev/null
	grep -qE "$at_work" sampler.folded && break
done
check a_counter_stops_the_sampler sh -c \
	"[ $code = 0 ] &&
	grep -qE 'fired: Processor:% Processor Time:_Total was 9[579]' sampler.err &&
	grep -q '1 stored' sampler.err"
check linux_exports_its_stacks grep -qE "$at_work" sampler.folded
$WINE_RUN "$RECORDER_EXE" export --id 1 --store sampler.db \
	-f 2>/dev/null </dev/null >sampler.windows
check windows_exports_the_same_stacks cmp sampler.folded sampler.windows
"$RECORDER" show --id 1 --store sampler.db --json >show.linux 2>/dev/null
$WINE_RUN "$RECORDER_EXE" show --id 1 --store sampler.db --json 2>/dev/null </dev/null >show.windows
check and_both_show_the_same cmp show.linux show.windows
kill $target

# ---- log events ----------------------------------------------------------------------------------

printf '%s\t%s\t%s\t%s\t%s\t%s\n' \
	Application 'Some Service' 7 4 0 'started' Application 'Gone Service' 1026 2 0 \
	'!System.OutOfMemoryException at Main' \
	Application 'Some Service' 8 4 0 'idle' 'Microsoft-Windows-Kernel-Power/Thermal' \
	Power 9 3 0 'hot' >events
exe log collect --source none --delay-after-trigger-sec 0.1 --store log.db \
	'/StopOnEventLogMessage:EventId: 1026 .*outofmemory'
check an_event_of_a_provider_that_is_gone_fires_by_its_strings sh -c \
	"[ $code = 0 ] &&
	grep -q 'fired: log Application: System.OutOfMemoryException at Main' log.err"
"$RECORDER" export --id 1 --store log.db --format events-csv >log.csv 2>/dev/null
check all_events_of_the_log_are_kept_and_none_of_others sh -c \
	"grep -q 'started' log.csv && ! grep -q 'hot' log.csv"
exe channel collect --source none --delay-after-trigger-sec 0 --store channel.db \
	'/StopOnEventLogMessage:Microsoft-Windows-Kernel-Power/Thermal@Type: Warning .*hot'
check a_channel_with_a_slash sh -c "[ $code = 0 ] && grep -q 'fired: ' channel.err"
exe nolog collect --source none --max-collect-sec 1 --store nolog.db \
	'/StopOnEventLogMessage:System@x'
check a_log_that_is_not_there sh -c "[ $code = 2 ] && grep -q \"unknown log 'System'\" nolog.err"
exe locked collect --source none --max-collect-sec 1 --store locked.db \
	'/StopOnEventLogMessage:Log=Locked@x'
check a_log_that_is_closed sh -c \
	"[ $code = 1 ] && grep -q 'this user may not read the log' locked.err"
exe file check --store x.db '/StopOnEventLogMessage:/var/log/syslog@x'
check a_file_is_no_log_of_windows sh -c \
	"[ $code = 2 ] && grep -q 'channel of the event log' file.out"

# ---- processes -----------------------------------------------------------------------------------

exe ends collect --source none --delay-after-trigger-sec 0 --max-collect-sec 60 --store ends.db \
	'/StopOnProcess:cmd;ExitCode=3' &
recorder=$!
wait_for 30 grep -q 'rule: ' ends.err
# The process list is read five times a second; on a very busy machine a process that lives for one
# second may be missed.
for i in 1 2 3 4 5 6 7 8; do
	$WINE_RUN cmd /c 'ping -n 2 127.0.0.1 >nul & exit 3' >/dev/null 2>&1 </dev/null
	wait_for 2 grep -q 'fired: ' ends.err && break
done
wait $recorder
check an_end_with_its_exit_code_fires \
	grep -qE 'fired: process cmd .pid [0-9]+. ended with code 3' ends.err
