#!/bin/bash
# Linux: service by way of systemctl, here one that only notes how it was called; and what a service
# manager is told, here by a socket of our own.
. "$TOP/tests/support/cli.sh"
unset RECORDER_STORE RECORDER_CONFIG

mkdir bin
cat >bin/systemctl <<'END'
#!/bin/sh
echo "$*" >>systemctl.log
echo "said by systemctl"
exit "$(cat systemctl.code)"
END
chmod +x bin/systemctl
PATH=$PWD/bin:$PATH
echo 0 >systemctl.code
expect install_enables_the_unit 0 'recorder.service starts with the machine' service install
expect start_starts_it 0 'recorder.service runs' service start
expect status_shows_it 0 'said by systemctl' service status
expect uninstall_ends_it 0 'has stopped' service uninstall --service-name other
check in_the_words_of_systemctl [ "$(paste -sd, systemctl.log)" = "enable recorder.service,start \
recorder.service,--no-pager status recorder.service,disable --now other.service" ]
echo 3 >systemctl.code
expect status_has_systemctls_exit_code 3 'said by systemctl' service status
expect a_failure_says_what_systemctl_said 1 'exit code 3: said by systemctl' service stop
expect a_verb_is_needed 2 'install, uninstall, start, stop or status' service

if command -v systemd-analyze >/dev/null; then
	check the_unit_is_hardened systemd-analyze security --offline=true --threshold=31 \
		"$TOP/conf/recorder.service"
else
	echo "skip the_unit_is_hardened: no systemd-analyze"
fi

need_perf
if ! command -v python3 >/dev/null; then
	echo "skip a_service_says_when_it_is_ready: no python3 for the socket"
	exit 0
fi
cat >manager.py <<'END'
import socket, sys
s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
s.bind("notify")
s.settimeout(60)
told = ""
while "STOPPING=1" not in told:
    told = s.recv(4096).decode()
    print(told.split("\n")[0], flush=True)
END
python3 manager.py >told &
manager=$!
wait_for 10 test -S notify
NOTIFY_SOCKET=$PWD/notify "$RECORDER" collect --store n.db --max-cpu-percent 0 >/dev/null 2>&1 &
recorder=$!
check a_service_says_when_it_is_ready wait_for 20 grep -q '^READY=1' told
check and_that_it_goes_on wait_for 20 grep -q '^WATCHDOG=1' told
"$RECORDER" stop --store n.db >/dev/null 2>&1
check and_that_it_ends wait_for 20 grep -q '^STOPPING=1' told
wait $recorder
kill $manager 2>/dev/null
exit 0
