#!/bin/bash
# Wrong command lines and conf files: a clear sentence, exit code 2, nothing written. And --help.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_STORE RECORDER_CONFIG
export XDG_STATE_HOME=$TMP/state HOME=$TMP

expect no_command_is_wrong_usage 2 'no command was given'
expect unknown_command_names_the_nearest 2 "unknown command 'lsit'; did you mean list\?" lsit
expect a_process_is_checked_also_without_a_rule 2 "--process ',': an empty process name" \
	collect /Process:,
expect unknown_option_names_the_nearest 2 'did you mean --buffer-mb' collect --bufer-mb 3
expect unknown_perfview_option_names_the_nearest 2 'did you mean --stop-on-perf-counter' \
	collect /StopOnPerfCountr:a:b:c
expect option_of_another_command_says_whose_it_is 2 \
	'option of run, top, export, diff, events and stacks, not of list' \
	list --format x
expect bad_number_says_what_is_allowed 2 \
	"--freq: 'x' is not a whole number; allowed: 1 to 10000 Hz" collect --freq x
expect number_out_of_bounds 2 '/CircularMB: .0. is out of range' collect /CircularMB:0
expect repeated_scalar 2 '--freq was already given' collect --freq 9 /CpuSampleMSec:10
expect value_behind_a_blank_in_perfview_form 2 'after a colon' collect /MaxCollectSec 60
expect stop_command_is_checked 2 'a quote is not closed' collect --stop-command "x 'y" --store s.db
expect what_belongs_to_a_flag_is_no_file 2 \
	"^recorder: unexpected argument ';Process=x'; write it after the option" \
	collect --stop-on-gen2-gc ';Process=x'
expect a_path_that_is_not_there_is_no_unknown_option 2 \
	"unknown option '/no/such/program', and there is no file of that name" \
	events /no/such/program
expect a_wrong_spec_says_whose_it_is 2 \
	"^recorder: --stop-on-gc-over-msec: '1;Measur=x': unknown key 'Measur'" \
	collect '/StopOnGCOverMsec:1;Measur=x' --store s.db
expect a_stop_command_that_is_not_there_is_found_by_check 2 \
	'no executable program .no-such-program.' \
	check --store s.db --stop-command 'no-such-program %INCIDENT%'
expect a_bare_word_is_no_data_file 2 "unexpected word 'foo'.*--data-file foo" \
	collect foo --store s.db
expect a_command_behind_dashes_is_refused 2 \
	"start takes no command; 'recorder run -- /bin/true'" \
	start --store s.db -- /bin/true
expect a_file_and_a_command_contradict_each_other 2 '^recorder: --from reads what was recorded' \
	collect --store s.db --from x.etl -- /bin/true
expect which_incident_is_asked_as_it_is_typed 2 "'recorder pin 3'" pin
expect unknown_path_is_an_unknown_option 2 'unknown option' collect /no/such/path
check nothing_was_written [ ! -e "$TMP/state" -a ! -e s.db ]

expect help_goes_to_stdout 0 '' --help
check help_lists_commands grep -qE '^  export +write' out
expect help_of_a_command_by_option 0 '' export --help
check help_of_export_names_its_options grep -q -- '--no-annotate' out
expect help_of_a_command_by_name 0 '' help collect
check help_of_collect_names_perfview_spelling grep -q '/CircularMB:' out
check help_fits_eighty_columns awk 'length > 79 { exit 1 }' out
expect version 0 '' --version
check version_is_one_line grep -qE '^recorder [0-9.]+$' out

printf 'freq = 99\nbufer-mb = 1\n' >bad.conf
expect conf_error_says_file_line_and_nearest 2 \
	"bad.conf:2: unknown key 'bufer-mb'; did you mean buffer-mb" \
	list --config bad.conf
expect conf_from_the_environment 2 'bad.conf:2' list --config bad.conf
RECORDER_CONFIG=bad.conf expect conf_from_RECORDER_CONFIG 2 'bad.conf:2' list
expect conf_that_is_missing 2 'none.conf' list --config none.conf
printf 'freq = 9\nfreq = 9\n' >twice.conf
expect conf_key_set_twice 2 'twice.conf:2: freq is already set on line 1' list --config twice.conf
# at_its_line NAME PATTERN LINE: a conf file's second line that only collect and check find wrong.
at_its_line()
{
	printf '\n%s\n' "$3" >late.conf
	expect "$1" 2 "^recorder: late.conf:2: $2" collect --config late.conf --store s.db
	expect "$1_by_check" 2 "late.conf:2: $2" check --config late.conf --store s.db
}

at_its_line a_rule '--stop-on-perf-counter: ' 'stop-on-perf-counter = x'
at_its_line a_monitored_counter "'x'" 'monitor-perf-counter = x'
at_its_line a_stop_command '' "stop-command = x 'y"
at_its_line a_source '--source: ' 'source = x'
at_its_line a_size '--stack-kb: ' 'stack-kb = 3'
head -c 1100000 /dev/zero >big.conf
expect conf_that_is_too_large 2 'big.conf' list --config big.conf
expect conf_that_is_a_directory 2 'configuration' list --config .

expect shipped_conf_is_good 0 'rule +note +none' \
	check --store "$TMP/x.db" --config "$TOP/conf/recorder.conf"
