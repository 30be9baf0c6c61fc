#!/bin/bash
# The Windows program records live from an ETW session, under Wine, whose ETW is a stand-in
# (tests/dll/tdh.c): the records of a real trace arrive at the pace at which they were recorded.
# time limit: 300
. "$TOP/tests/support/cli.sh"

need_windows_program windows_etw dll/tdh.dll
export WINEDLLOVERRIDES='mscoree,mshtml=;tdh=n'
own_wine windows_etw tdh.dll

# collect NAME ARG...: record into NAME.db. The session's calls go to NAME.log, messages to
# NAME.err, the exit code to NAME.code. It runs in the background, because the many recordings
# mostly wait.
collect()
{
	local name=$1
	shift
	{
		STANDIN_LOG=$name.log timeout 240 $WINE_RUN "$RECORDER_EXE" collect \
			--store "$name.db" "$@" \
			>"$name.out" 2>"$name.err" </dev/null
		echo $? >"$name.code"
	} &
	pids="$pids $!"
}
pids=
code() { [ "$(cat "$2.code")" = "$1" ]; }

# PerfView's guide has this rule, with 10000.
disk_rule='/StopOnEtwEvent:Windows Kernel Trace/DiskIO/Read;FieldFilter=DiskServiceTimeMSec>=100'

# The records of a real trace take 13 s; the other recordings run meanwhile.
data=$TOP/../shared/data/etl/net.4.5.2.x64.etl.zip
replaying=
if [ -e "$data" ] && command -v unzip >/dev/null && unzip -oq "$data" net.4.5.2.x64.etl &&
	"$BUILD/programs/etw_live_records" net.4.5.2.x64.etl live.rec >records.out; then
	STANDIN_RECORDS=live.rec STANDIN_AFTER_STOP=2000 STANDIN_LOST='700 3' \
		collect live --cpu-sample-msec 1
	STANDIN_RECORDS=live.rec collect disk "$disk_rule" --delay-after-trigger-sec 0 \
		--max-collect-sec 30
	replaying=$pids
	pids=
fi
collect plain --max-collect-sec 0.2 --freq 1000
collect unknown --max-collect-sec 0.2 /ClrEvents:GC+Exceptoin
providers='/Providers:*MyEventSource:0x30:Verbose:@StacksEnabled=true;@ProcessIDFilter=12 34'
providers+=',{11111111-2222-3333-4444-555566667777}::4:@EventIDsToEnable=7 300'
providers+=',*Other:@ProcessNameFilter=a.exe b;@EventIDStacksToDisable=258'
collect chosen --max-collect-sec 0.2 /ThreadTime \
	/KernelEvents:Profile,DiskIO,DiskIOInit /ClrEvents:GC \
	"$providers"
exe unregistered check --providers Foo-Bar
check check_refuses_a_provider_that_is_not_registered sh -c \
	"[ $code = 2 ] && grep -q \"no provider 'Foo-Bar' is registered here\" unregistered.out"
collect misspelled --max-collect-sec 0.2 '/StopOnEtwEvent:Windows Kernel/DiskIO/Raed'
collect groups --max-collect-sec 0.2 /KernelEvents:Verbose /ClrEvents:Default \
	/ClrEventLevel:Informational /TplEvents:Default
STANDIN_COUNTERS='0 Timer,6 BranchMispredictions,11 CacheMisses' collect counters \
	--max-collect-sec 0.2 /CpuCounters:BranchMispredictions:20000,CacheMisses
collect no_counters --max-collect-sec 0.2 --cpu-counters CacheMisses
collect only --max-collect-sec 0.2 '/OnlyProviders:*MyEventSource'
STANDIN_START=5 collect denied --max-collect-sec 0.2
STANDIN_START=1450 collect full --max-collect-sec 0.2
STANDIN_START='183 once' collect taken --max-collect-sec 0.2
STANDIN_START=183 collect foreign --max-collect-sec 0.2
STANDIN_SESSIONS='NT Kernel Logger,recorder-session-999999-1d0,other' collect \
	left --max-collect-sec 0.2
wait $pids
# A program that burns 6 s of CPU, and what it starts, as a session tells of them after 3 s.
"$BUILD/programs/etw_transcript" run.rec <<-'LINES'
	process 1999999999 burn.exe
	process 40 stranger.exe
	samples 100 1999999999 7ff000001000
	samples 100 40 7ff000001000
	start 1000 1999999999 child.exe
	start 2000 1000 grandchild.exe
	samples 100 1000 7ff000001000
	samples 100 2000 7ff000001000
	samples 100 40 7ff000001000
LINES
STANDIN_CHILD=1999999999 STANDIN_RECORDS=run.rec STANDIN_LOG=run.log timeout 90 $WINE_RUN \
	"$RECORDER_EXE" run --store run.db --max-cpu-percent 0 -o run.folded -- \
	"$TOP/build/windows/programs/burn.exe" 6 >run.out 2>run.err </dev/null
echo $? >run.code
STANDIN_LOG=watch.log timeout 60 $WINE_RUN "$RECORDER_EXE" events \
	--live 'Windows Kernel Trace/Registry/Open' --seconds 0.2 >watch.out 2>watch.err </dev/null

timeout 60 $WINE_RUN "$RECORDER_EXE" check --store no.db /KernelEvents:DiskIo+Regsitry \
	>check.txt 2>&1 </dev/null
echo $? >checked.code
timeout 60 $WINE_RUN "$RECORDER_EXE" events Registry >list.out 2>list.err </dev/null

# ---- what the session is told --------------------------------------------------------------------

check a_run_without_events_ends_well code 0 plain
check counters_of_the_processor_are_set_before_they_count sh -c "grep -E \
	'^(interval .* of|source|masks|open)' counters.log | sed 's/ name=.*//' | tr '\n' ';' |
	grep -qx 'interval 20000 of source 6;interval 100003 of source 11;source 6;source 11;\
masks 0x01000007 0x00000400;open;'"
check with_stacks grep -q '^stack ce1dbfb4-137e-4da6-87b0-3f59aa102cbc 47' counters.log
check where_there_are_none_that_is_said code 1 no_counters
check with_the_reason grep -q 'most virtual machines hide the counters' no_counters.err
check what_is_misspelled_is_refused_before_a_recording code 2 checked
check and_named grep -q "there is no keyword 'Regsitry'; near is 'Registry'" check.txt
check the_session_is_real_time_of_the_system_logger \
	grep -q '^start name=recorder-session-.* mode=0x02000110 ' plain.log
check it_has_a_guid_and_clock_of_its_own \
	grep -q ' clock=1 own_guid=1 traced=1 timer=100 error=0' plain.log
check its_flags_are_processes_threads_images_profile grep -q ' flags=0x01000007 ' plain.log
check the_rate_is_asked_of_the_system grep -q '^interval 10000' plain.log
check samples_come_with_stacks grep -q '^stack ce1dbfb4-137e-4da6-87b0-3f59aa102cbc 46' plain.log
check stacks_are_asked_before_the_session_is_read sh -c \
	"[ \$(grep -n '^stack' plain.log | tail -1 | cut -d: -f1) -lt \
	\$(grep -n '^open' plain.log | cut -d: -f1) ]"
dotnet='^enable .*guid=e13c0d23-.* code=1 level=5 keywords=0x4000c039 property=0 filters=0'
check dotnet_is_enabled grep -q "$dotnet" plain.log
check running_dotnet_code_is_asked_for \
	grep -q '^enable .*guid=a669021c-.* code=1 level=5 keywords=0x78 ' plain.log
check it_is_read_raw_as_event_records \
	grep -q '^open name=recorder-session-.* mode=0x10001100 own_name=1' plain.log
check it_is_stopped_once sh -c \
	"[ \$(grep -c '^stop' plain.log) = 1 ] && [ \$(grep -c '^close' plain.log) = 1 ]"

check an_unknown_keyword_is_refused_with_the_nearest \
	grep -q "no keyword 'Exceptoin'; near is 'Exception'" unknown.err
check kernel_events_as_asked grep -q ' flags=0x01000d17 ' chosen.log
check stacks_of_switches_and_readied_threads sh -c \
	"grep -q '^stack 3d6fa8d1-.* 36' chosen.log && grep -q '^stack 3d6fa8d1-.* 50' chosen.log"
check perfviews_verbose_group grep -q ' flags=0x0703ff1f ' groups.log
check stacks_of_operations_on_files \
	grep -q '^stack 90cbdc39-4a3e-11d1-84f4-0000f80464e3 67' groups.log
check perfviews_default_of_dotnet_at_a_level \
	grep -q '^enable .*guid=e13c0d23-.* level=4 keywords=0xc04fccbd property=0' groups.log
check the_tasks_of_dotnet \
	grep -q '^enable .*guid=2e5dba47-.* code=1 level=4 keywords=0xff property=4' groups.log
check stacks_of_what_is_scheduled \
	grep -q '^filter type=0x80001000 bytes=0100030007000a000c00' groups.log
check an_unknown_kernel_event_is_refused_with_the_nearest \
	grep -q "no event 'DiskIO/Raed'; near is 'DiskIO/Read'" misspelled.err
check watching_an_event_of_the_kernel_brings_it_alone \
	grep -q ' flags=0x00020007 ' watch.log
check events_of_the_kernel_are_listed grep -q 'Windows Kernel/Registry/SetValue' list.out
source='guid=8983a2e6-c5d2-5a1f-691f-db243cb1f681.*'
source+=' code=1 level=5 keywords=0x30 property=4 filters=1'
check an_event_source_by_its_name grep -q "$source" chosen.log
check a_filter_of_processes grep -q '^filter type=0x80000004 bytes=0c00000022000000' chosen.log
check a_filter_of_events grep -q '^filter type=0x80000200 bytes=0100020007002c01' chosen.log
check a_filter_of_programs \
	grep -q "^filter type=0x80000008 bytes=61002e006500780065003b0062000000" chosen.log
check a_filter_of_stacks grep -q "^filter type=0x80001000 bytes=000001000201" chosen.log
check only_providers_is_no_system_logger grep -q ' mode=0x00000110 flags=0x00000000 ' only.log
check only_providers_asks_for_no_stacks_nor_dotnet sh -c "! grep -qE '^stack|e13c0d23' only.log"

check a_program_that_run_started_has_ended_well code 0 run
check it_and_all_that_it_starts_is_recorded_and_nothing_else diff - <(tr -d '\r' <run.folded |
	awk -F'[;( ]' '{ n[$1] += $NF } END { for (i in n) print i, n[i] }' | sort) <<-'END'
	burn 100
	child 100
	grandchild 100
END

# ---- what may go wrong ---------------------------------------------------------------------------

check access_denied_is_said grep -q 'access is denied; run the recorder as administrator' denied.err
check its_exit_code_is_1 code 1 denied
check no_room_for_a_session_is_said grep -q 'no room for another' full.err
check a_session_of_our_name_is_replaced sh -c \
	"[ \$(cat taken.code) = 0 ] && [ \$(grep -c '^start' taken.log) = 2 ] &&
	sed -n '/^start/,\$p' taken.log | sed -n 2p | grep -q '^stop .*name=recorder-session-'"
check a_name_that_stays_taken_is_said grep -q 'is there and cannot be stopped' foreign.err
check a_session_that_was_left_is_stopped_and_no_other sh -c \
	"[ \$(grep -c '^stop .*name=.' left.log) = 1 ] &&
	grep -q '^stop .*name=recorder-session-999999-1d0' left.log"

# ---- a real trace's records ----------------------------------------------------------------------

if [ ! "$replaying" ]; then
	echo "skip windows_etw_real_trace: no ../shared/data/etl, or no unzip"
	exit 0
fi
wait_for 150 grep -q '^replayed' live.log
sleep 1                                      # the last events wait half a second for their stacks
$WINE_RUN "$RECORDER_EXE" stop --store live.db >stop.out 2>&1
check stop_is_taken [ $? = 0 ]
wait $replaying
check recording_ends_well_with_records_after_the_stop code 0 live
check all_records_were_handed_out grep -q '^replayed 163139' live.log
"$RECORDER" collect --from net.4.5.2.x64.etl --store file.db >file.err 2>&1
for name in live file; do
	"$RECORDER" export --store $name.db --format perf-script 2>export.err |
		awk -f "$TOP/tests/support/samples.awk" >$name.samples
done
check all_samples_have_come [ "$(wc -l <live.samples)" = 6320 ]
# Times are printed in us: rounding may make them differ by one, and by one more for the first.
check each_sample_is_that_of_the_file awk -F'\t' '
	NR == FNR { line[FNR] = $0; next }
	{
		n = FNR; split(line[n], a); t = a[1] - $1; x = line[n]; y = $0
		sub(/^[^\t]*/, "", x); sub(/^[^\t]*/, "", y)
		if (x != y || t > 2.5e-6 || t < -2.5e-6) { print x; print y; bad = 1; exit }
	}
	END { exit bad || n != 6320 }' live.samples file.samples
"$RECORDER" show --store live.db --json >live.json 2>/dev/null
check losses_of_the_session_are_in_the_incident sh -c \
	"jq -e '.lost_by_reason.kernel == 703' live.json"

# ---- a rule on the kernel ------------------------------------------------------------------------

"$RECORDER" collect --from net.4.5.2.x64.etl --store rule.db "$disk_rule" >rule.err 2>&1
# A live session does not know the name of a file that was open before it began.
for name in disk rule; do
	sed -n 's/.*fired: //; T; s/, FileName=.*//; p' $name.err | tr -d '\r' >$name.fired
done
check a_rule_on_disks_brings_disks_and_names_of_files grep -q ' flags=0x01000307 ' disk.log
check it_fires_live_at_the_event_at_which_it_fires_from_the_file diff rule.fired disk.fired
check it_fires_for_what_the_disk_took grep -q 'DiskServiceTimeMSec=120.7484$' disk.fired
check lost_buffers_are_said grep -q 'ETW lost 3 buffers' live.err
