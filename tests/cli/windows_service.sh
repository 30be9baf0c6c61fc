#!/bin/bash
# The Windows program under Wine as a service, and ended from outside: what it saves.
# time limit: 300
. "$TOP/tests/support/cli.sh"

need_windows_program windows_service
own_wine windows_service
exe() { timeout 120 $WINE_RUN "$RECORDER_EXE" "$@" </dev/null; }
here=Z:$(pwd | tr / '\\')
cat >svc.conf <<EOF
source = none
store = $here\\svc.db
monitor-perf-counter = Memory:Available MBytes:@0.2
delay-after-trigger-sec = 0
EOF

# ---- the service ---------------------------------------------------------------------------------

check there_is_none_yet expect_exit 3 exe service start
check install_wants_a_conf_file expect_exit 2 exe service install
echo 'frek = 99' >bad.conf
check a_wrong_conf_file_is_told_at_once expect_exit 2 exe service install --config "$here\\bad.conf"
check install exe service install --config "$here\\svc.conf"
check twice_is_refused expect_exit 1 exe service install --config "$here\\svc.conf"
source='HKLM\SYSTEM\CurrentControlSet\Services\EventLog\Application\recorder'
source_is_known() { timeout 60 $WINE_RUN reg query "$source" | grep -q EventCreate.exe; }
check its_event_source_has_messages source_is_known
check start exe service start
check it_answers wait_for 60 exe status --store svc.db
check it_writes_its_log_beside_the_store \
	wait_for 60 grep -q 'counters, logs and processes' svc.db.log
check a_snapshot_is_taken exe snapshot --store svc.db --reason now
check a_snapshot_is_stored wait_for 60 grep -q 'incident 1 stored' svc.db.log
check stop exe service stop
check stop_stores_a_last_incident grep -q 'incident 2 stored' svc.db.log
check linux_opens_its_store sh -c "[ \$(\"$RECORDER\" list --store svc.db --json | wc -l) = 2 ]"
check started_again exe service start
check it_answers_again wait_for 60 exe status --store svc.db
"$RECORDER" list --store svc.db >/dev/null 2>&1
pid=$(pgrep -f "service run --service-name recorder --config .*$(basename "$PWD")" | head -1)
check its_process_is_found [ "$pid" ]
[ ! "$pid" ] || kill -9 "$pid"
check after_a_kill_the_store_opens sh -c \
	"[ \$(\"$RECORDER\" list --store svc.db --json | wc -l) -ge 2 ]"
check uninstall exe service uninstall
check so_is_its_event_source expect_exit 1 source_is_known
check it_is_gone expect_exit 3 exe service stop
check run_is_for_the_service_manager expect_exit 2 exe service run

# ---- the console ---------------------------------------------------------------------------------

WINEDEBUG=trace+eventlog timeout -s INT 120 $WINE_RUN "$RECORDER_EXE" collect --source none \
	--store ctrl.db --log-file ctrl.log </dev/null 2>ctrl.err &
wait_for 60 grep -q 'no rule was given' ctrl.log
kill -INT $!
wait $!
check ctrl_c_stores_a_last_incident sh -c "[ $? = 0 ] && grep -q 'incident 1 stored' ctrl.log"
check it_is_an_event_of_the_system grep -qa 'incident 1: stopped by' ctrl.err
