#!/bin/bash
# A rule that could never fire is refused, with a sentence that says what is near or what to use.
# alone: its refusals say which programs run
. "$TOP/tests/support/cli.sh"

# refused SPEC TEXT: check says TEXT about the rule and exits with 2.
refused()
{
	"$RECORDER" check --stop-on-event "$1" >out 2>err
	[ $? = 2 ] && grep -qF -- "$2" err
}

taken() { "$RECORDER" check "$@" >out 2>err || grep -q 'source is missing' err; }

clr=Microsoft-Windows-DotNETRuntime
check a_provider_of_windows_names_what_to_use \
	refused Microsoft-Windows-Kernel-Process/ProcessStart 'sched/sched_process_exec'
check the_kernel_of_windows_as_well \
	refused 'Windows Kernel Trace/DiskIO/Read' 'the tracepoints of sched, block'
check an_event_of_dotnet_has_near_names refused $clr/GC/Strt "'GC/Start'"
check a_field_of_dotnet_as_well refused "$clr/GC/Start;FieldFilter=Dpth>1" 'nearest are Depth'
check so_has_what_pairs_start_and_stop \
	refused "$clr/GC/Start;TriggerMSec=5;StartStopID=Cuont" 'nearest are Count'
check keywords_must_bring_the_event \
	refused "$clr/GC/Start;Keywords=0x8000" 'needs the keyword 0x1'
check the_level_as_well refused $clr/GC/AllocationTick 'Level=5'
check an_event_source_that_nobody_has \
	refused '*NoSuchEventSource/A' '--assume-exists takes rules on programs that come later'
check it_may_be_assumed taken --assume-exists --stop-on-event '*NoSuchEventSource/A'
check a_recording_waits_for_it_and_says_so expect_exit 0 sh -c "'$RECORDER' check \
	--providers NoSuch-Source | grep -A1 'events *note' | grep -q 'once a program has it'"
check a_name_of_dotnet_itself_is_near \
	refused 'Microsoft.AspNetCore.Hostin/A' 'nearest are Microsoft.AspNetCore.Hosting'
without_perf() { ! "$RECORDER" check --source none "$@" >out 2>err && grep -q 'leaves out' err; }
check a_tracepoint_needs_the_source_of_stacks \
	without_perf --stop-on-event sched/sched_process_exec
check a_probe_as_well without_perf --stop-on-event uprobe:/bin/bash:main
check what_another_source_delivers_does_not \
	taken --source none --stop-on-gc-over-msec 100 --stop-on-exception .
check a_return_implies_no_stop \
	refused 'uprobe:/bin/bash:main%return;TriggerMSec=5' 'does not imply one; add ;StopEvent'
check the_presets_are_taken taken --stop-on-request-over-msec 100 --stop-on-gc-over-msec 100 \
	--stop-on-exception .
if "$RECORDER" check --stop-on-event 'uprobe:/bin/bash:main' >out 2>err; then
	check a_probe_has_its_arguments \
		refused 'uprobe:/bin/bash:main;FieldFilter=Arg7=1' 'it has Arg1, Arg2'
	check a_return_has_no_arguments \
		refused 'uprobe:/bin/bash:main%return;FieldFilter=Arg1=1' 'it has Ret'
else
	echo "skip a_probe_has_its_arguments: $(head -1 err)"
fi
