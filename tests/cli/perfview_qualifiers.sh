#!/bin/bash
# PerfView's qualifiers, commands and command lines: each is accepted, or refused with a sentence
# that names what to use instead. None is unknown.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_STORE RECORDER_CONFIG
export XDG_STATE_HOME=$TMP/state HOME=$TMP
GUIDE=$TOP/../shared/reference/perfview-users-guide.txt

# known ARG...: recorder check with these words says something of them, and not that it does not
# know them
known()
{
	timeout 60 "$RECORDER" check --store "$TMP/x.db" "$@" >out 2>err
	case $? in 0 | 1 | 2 | 3) ;; *) return 1 ;; esac
	! grep -E '^recorder: (unknown|unexpected)' err
}

# known_lines: each line of standard input is one qualifier. --help: it is read, and not tried.
known_lines()
{
	local line bad=0
	while IFS= read -r line; do
		"$RECORDER" collect "$line" --help >out 2>err
		! grep -E '^recorder: (unknown|unexpected)' err || bad=1
	done
	return $bad
}

grep -v '^#' "$TOP/tests/data/perfview_qualifiers.txt" >list
check every_qualifier_is_known known_lines <list

if [ -e "$GUIDE" ]; then
	# After a '/' there are also names of events, and a misspelled qualifier.
	grep -oE '(^|[ "(])/[A-Z][A-Za-z]+' "$GUIDE" | grep -oE '[A-Z][A-Za-z]+' | sort -fu |
		grep -vxE 'CollectMuliple|Provider|Stop|StopOn|Wall|Samples?|StackSource' >names
	sed -n 's|^/\([A-Za-z]*\).*|\1|p' list | tr A-Z a-z | sort >ours
	tr A-Z a-z <names | sort | comm -23 - ours >missing
	check every_qualifier_of_the_guide_is_in_the_list diff missing /dev/null
else
	echo "skip every_qualifier_of_the_guide_is_in_the_list: there is no $GUIDE"
fi

expect a_qualifier_without_counterpart_names_another_way 2 \
	"^recorder: /NetMonCapture: packets are not recorded; run a capture program" \
	collect /NetMonCapture
expect it_is_found_in_any_case_and_with_a_value 2 '^recorder: /maxeventcount: give the part' \
	collect /maxeventcount:5
expect a_command_of_perfview_names_another_way 2 \
	"^recorder: 'unzip' is a command of PerfView: trace files are read as they are" unzip x
expect what_has_no_effect_is_said 0 \
	'--no-ngen-rundown, --rundown-timeout: accepted, without effect' \
	check --store "$TMP/x.db" /NoNGenRundown /RundownTimeout:60 --source none

for misspelled in /ClrEvents:GC+Exceptoin /TplEvents:Defualt /ClrEventLevel:Loud; do
	expect "check_says_so_of_$(echo "${misspelled#/}" | tr -c 'A-Za-z\n' _)" 2 \
		"no keyword '(Exceptoin|Defualt)'|'Loud' is not a level" \
		check --store "$TMP/x.db" "$misspelled"
done
expect an_event_of_app_fabric_names_another_way 2 'use --stop-on-request-over-msec' \
	check --store "$TMP/x.db" /StopOnAppFabricOverMsec:100

# The guide's scenarios as command lines.
check counter_in_percent known '/StopOnPerfCounter=Processor:% Processor Time:_Total>90'
check collections_take_over_a_fifth known \
	'/StopOnPerfCounter:.NET CLR Memory:% Time in GC:_Global_>20'
check memory_of_one_process known '/StopOnPerfCounter=Process:Private Bytes:MyService>1000000000'
check low_memory known '/StopOnPerfCounter:Memory:Available MBytes:<50' /MinSecForTrigger:10
check a_long_collection known /GCCollectOnly /MaxCollectSec:60
check long_collections_with_thread_time known /ThreadTime /StopOnGCOverMsec:5000 \
	/CollectMultiple:3 /NoGui /AcceptEULA /LogFile:x.log
check a_request_of_one_process known /StopOnRequestOverMsec:2000 /Process:w3wp /CollectMultiple:3 \
	/DecayToZeroHours:24
check an_exception_of_a_service known /StopOnException:ApplicationException /Process:MyService \
	/ThreadTime
check an_event_log_message known '/StopOnEventLogMessage:Pattern' /DelayAfterTriggerSec:30
check a_slow_disk known '/StopOnEtwEvent:Windows Kernel Trace/DiskIO/Read;'\
'FieldFilter=DiskServiceTimeMSec>=10000'
KERNEL_PROCESS=Microsoft-Windows-Kernel-Process
check a_process_that_fails known "/StopOnEtwEvent:$KERNEL_PROCESS/ProcessStop/Stop;"\
'FieldFilter=ImageName=GCTest.exe;FieldFilter=ExitCode!=0'
check its_keyword known "/StopOnEtwEvent:$KERNEL_PROCESS/ProcessStart/Start;Keywords=0x10"
check a_request_by_its_address known '/StopOnEtwEvent:Microsoft-Windows-ASPNET/Request/Start;'\
'FieldFilter=FullUrl~/stop.aspx$'
check an_event_source_alone known '/OnlyProviders:*MyCompanyEventSource:@StacksEnabled=true'
check a_stop_command known '/StopCommand:true %OUTPUTDIR% %OUTPUTBASENAME%' \
	'/StopOnPerfCounter=Memory:Available MBytes:<50'
check starts_when_it_is_busy known '/StartOnPerfCounter:Processor:% Processor Time:_Total>80' \
	/StopOnGCOverMsec:100
