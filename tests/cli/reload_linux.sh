#!/bin/bash
# recorder reload and SIGHUP: a configuration is taken while recording goes on, or refused whole;
# and recorder mark.
. "$TOP/tests/support/cli.sh"
need_perf
unset RECORDER_STORE RECORDER_CONFIG

cpu='Processor:% Processor Time:_Total'
free='Memory:Available MBytes:'
conf() { printf '%s\n' 'history-mb = 0' 'max-cpu-percent = 0' 'collect-multiple = 9' "$@" >r.conf; }
conf "stop-on-perf-counter = $cpu>1000000;DecayToZeroHours=1" "stop-on-perf-counter = $free<1"

setsid "$RECORDER" collect --config r.conf --store r.db --log-file r.log >/dev/null 2>&1 &
recorder=$!
wait_for 10 grep -q 'recording this machine' r.log
status() { "$RECORDER" status --store r.db --json; }
rule() { status | jq -c ".rules[] | select(.rule | test(\"$1\"))"; }
wait_for 10 sh -c '"$RECORDER" status --store r.db --json | jq -e ".rules[0].limit < 1000000"'
limit=$(rule 'Processor' | jq .limit)

# ---- what changes and what stays -----------------------------------------------------------------

conf "stop-on-perf-counter = $free<2" "stop-on-perf-counter = $cpu>1000000;DecayToZeroHours=1" \
	'pre-sec = 30' 'max-per-hour = 3' 'freq = 199' 'store-mb = 99' 'buffer-mb = 32'
expect reload_says_what_went_on 0 '1 rules go on, 1 are new, 1 have gone' reload --store r.db
check and_what_needs_a_restart grep -q 'needs a restart: buffer-mb$' err
expect the_same_file_says_it_again 0 'needs a restart: buffer-mb$' reload --store r.db
check and_so_does_status sh -c '"$RECORDER" status --store r.db |
	grep -q "^Pending  *needs a restart: buffer-mb$"'
check for_programs_too [ "$(status | jq -r .pending)" = 'needs a restart: buffer-mb' ]
check a_rule_that_did_not_change_keeps_its_limit sh -c "[ \"\$(echo '$(rule Processor)' |
	jq \".limit <= $limit and .limit > 0\")\" = true ]"
check the_new_rule_is_there sh -c "echo '$(rule 'Available')' | grep -q 'Available MBytes:<2'"
check limits_are_taken wait_for 10 sh -c '"$RECORDER" status --store r.db --json |
	jq -e ".limits.incidents_per_rule_and_hour == 3 and .store_max_bytes == 99 * 1048576 and
		.budget.freq_hz == 199"'
check the_new_rule_gets_values wait_for 10 sh -c '"$RECORDER" status --store r.db --json |
	jq -e "[.rules[].value | type] == [\"number\", \"number\"]"'

conf "stop-on-perf-counter = $free<2" "stop-on-perf-counter = $cpu>1000000;DecayToZeroHours=1"
"$RECORDER" reload --store r.db 2>err
check what_runs_already_needs_no_restart sh -c '! grep -q restart err'
check and_nothing_is_pending [ "$(status | jq -r .pending)" = '' ]
conf 'stop-on-perf-counter = Memory:Pages/sec:>1000000'
expect a_rule_that_nothing_feeds_is_named 0 \
	'before a restart these rules see nothing, .*Pages/sec' reload --store r.db

# ---- a mistake changes nothing -------------------------------------------------------------------

before=$(status | jq -c '[.rules[].rule], .limits')
conf 'stop-on-perf-counter = nonsense' 'max-per-hour = 7'
expect a_mistake_is_refused_with_its_line 2 "r.conf:4: .*nonsense" reload --store r.db
check and_nothing_has_changed [ "$(status | jq -c '[.rules[].rule], .limits')" = "$before" ]
conf 'no-such-key = 1'
expect an_unknown_key_too 2 "stays as it was: r.conf:4: unknown key" reload --store r.db
conf "stop-on-perf-counter = $cpu>90" 'max-per-hour = 7'
kill -HUP $recorder
check a_hangup_reloads_too wait_for 10 sh -c '"$RECORDER" status --store r.db --json |
	jq -e ".limits.incidents_per_rule_and_hour == 7"'

# ---- mark ----------------------------------------------------------------------------------------

expect a_mark_is_taken 0 'marked' mark 'load test begins' --store r.db
expect a_mark_needs_a_message 2 'message is missing' mark --store r.db
"$RECORDER" snapshot --store r.db 2>/dev/null
check an_incident_shows_the_mark wait_for 20 sh -c \
	'"$RECORDER" show --store r.db | grep -q "^Mark .* s: load test begins"'
check and_so_do_its_events sh -c '"$RECORDER" events --id 1 --store r.db |
	grep -q "Recorder/Mark.*load test begins"'

# ---- often, under load ---------------------------------------------------------------------------

# RELOAD_TIMES=1000 for a longer run by hand.
times=${RELOAD_TIMES:-100}
"$BUILD/programs/burn" 120 >/dev/null 2>&1 &
burn=$!
lost=$(status | jq '.lost')
for i in $(seq "$times"); do
	conf "stop-on-perf-counter = $free<$((i % 3 + 1))" \
		"stop-on-perf-counter = $cpu>1000000;DecayToZeroHours=1" "pre-sec = $((i % 9 + 1))"
	"$RECORDER" reload --store r.db >/dev/null 2>&1 || echo "not ok reload_$i"
done
kill $burn
check many_reloads_lose_no_sample [ "$(status | jq '.lost')" = "$lost" ]
decayed() { rule Processor | jq -e '.limit < 1000000'; }
check and_the_decay_went_on wait_for 10 decayed
"$RECORDER" stop --store r.db >/dev/null 2>&1
wait $recorder
check it_ends_well [ $? = 0 ]

# ---- without a file ------------------------------------------------------------------------------

"$RECORDER" collect --store n.db --max-cpu-percent 0 >/dev/null 2>&1 &
recorder=$!
wait_for 10 test -S n.db.ctl
expect without_a_file_there_is_nothing_to_reload 2 'without --config' reload --store n.db
"$RECORDER" abort --store n.db >/dev/null 2>&1
wait $recorder
exit 0
