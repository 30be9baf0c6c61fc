#!/bin/bash
# The package in a Debian that systemd has booted: installed, killed, watched, activated by a
# socket, asked by units that fail, upgraded, and purged without a trace.
# under systemd
# time limit: 2400
. /vm/guest.sh
trap finish EXIT
cd /root || exit
store=/var/lib/recorder/incidents.db
unset RECORDER_STORE RECORDER_CONFIG

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for()
{
	local until=$((SECONDS + $1))
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.3
	done
}
show() { systemctl show -p "$1" --value "${2:-recorder}"; }
is() { [ "$(show "$1" "${3:-recorder}")" = "$2" ]; }
reasons() { recorder list --store $store --json | jq -r '.reason'; }
says() { reasons | grep -qE "$1"; }
# What packages put there, not what runs.
# Of /etc/cni: podman, where it is installed, makes a lock there when somebody asks it.
files()
{
	local others='root|tmp|vm|etc/cni|var/(log|cache/private|lib/(containers|dpkg|systemd))'

	find / -xdev | grep -vE "^/($others)(/|$)" | sort
}

files >before
check it_installs dpkg -i /vm/recorder_*.deb
check it_is_on_after_the_installation is UnitFileState enabled
check and_says_that_it_records is ActiveState active
check its_configuration_stands_in_etc grep -q '^stop-on' /etc/recorder/recorder.conf
journalctl -b -u recorder -o cat | head -n 8 | sed 's/^/it says: /'
check nothing_that_the_unit_forbids_is_missing eval \
	'! journalctl -b -u recorder -o cat | grep -iE "permission|not permitted|denied"'
check it_takes_stacks wait_for 200 eval \
	'[ "$(recorder status --store $store --json | jq .samples)" -gt 0 ]'
check it_reads_symbols eval \
	'! journalctl -b -u recorder -o cat | grep "the process that reads symbols"'

# ---- an incident, and its line of the journal ----------------------------------------------------

cat >/etc/recorder/recorder.conf <<'END'
stop-on-perf-counter = Processor:% Processor Time:_Total>60
min-sec-for-trigger = 3
collect-multiple = 1000000
delay-after-trigger-sec = 2
freq = 49
pre-sec = 20
END
check new_rules_are_read_by_a_reload systemctl reload recorder
systemd-run -q --unit burner --slice shop stress-ng --cpu 2 -t 600 -q
check burnt_cpu_is_an_incident wait_for 200 says 'Processor Time:_Total was'
systemctl stop burner
id=$(recorder list --store $store --json | jq -rs 'map(select(.reason | test("_Total was")))[0].id')
recorder list --store $store | cut -c1-110 | sed 's/^/it lists: /'
check the_journal_has_its_line eval 'journalctl -b -o json RECORDER_INCIDENT="$id" |
	jq -e "select(.RECORDER_RULE | test(\"_Total>60\")) | .RECORDER_REASON | test(\"was\")"'
check the_unit_that_burnt_is_named eval \
	'recorder report "$id" --store $store --by unit | grep -q "burner.service"'
recorder report "$id" --store $store --by unit 2>&1 | head -n 12 | sed 's/^/it reports: /'

# ---- its death -----------------------------------------------------------------------------------

# What a recorder kept before it wrote for the first time, some seconds, ends with it.
check it_writes_its_history wait_for 200 eval \
	'recorder history --store $store --json | jq -se "any(.samples > 0)"'
was=$(show MainPID)
killed_us=$(awk '{ printf "%.0f", $1 * 1000000 }' /proc/uptime)
check a_kill_hits_it kill -9 "$was"
check it_is_back wait_for 200 eval '[ "$(show NRestarts)" -ge 1 ] && is ActiveState active'
begun_ms=$((($(show ExecMainStartTimestampMonotonic) - killed_us) / 1000))
echo "it was started $begun_ms ms after the kill, and recorded after" \
	"$((($(show ActiveEnterTimestampMonotonic) - killed_us) / 1000)) ms"
check within_five_seconds [ $begun_ms -gt 0 -a $begun_ms -lt 5000 ]
check and_tells_of_its_death wait_for 200 \
	says 'ended without saying so: somebody killed it with SIGKILL .systemd says so'

# ---- units that fail, a thread that stands -------------------------------------------------------

cat >/etc/systemd/system/pay@.service <<'END'
[Unit]
OnFailure=recorder-incident@%n.service
[Service]
ExecStart=/bin/sh -c 'exit 7'
END
systemctl daemon-reload
systemctl start 'pay@x-1'
check a_unit_that_fails_is_an_incident wait_for 200 \
	says 'the unit pay@x-1.service failed: exit-code, exited 7'
mkdir -p /run/systemd/system/recorder.service.d
printf '[Service]\nWatchdogSec=4\nTimeoutAbortSec=2\n' \
	>/run/systemd/system/recorder.service.d/dog.conf
systemctl daemon-reload
systemctl restart recorder
check it_feeds_its_watchdog eval 'sleep 8 && is NRestarts 0'
kill -STOP "$(show MainPID)"
check one_that_stands_is_started_anew wait_for 200 eval \
	'[ "$(show NRestarts)" = 1 ] && is ActiveState active'
rm -r /run/systemd/system/recorder.service.d

# ---- a socket of systemd -------------------------------------------------------------------------

cat >/etc/systemd/system/recorder.socket <<'END'
[Socket]
ListenStream=/run/recorder.sock
SocketMode=0600
END
echo 'http = fd' >>/etc/recorder/recorder.conf
systemctl daemon-reload
systemctl stop recorder
systemctl start recorder.socket
ask() { curl -s -m 200 --unix-socket /run/recorder.sock "http://x$1"; }
check the_socket_starts_it eval 'ask /healthz | grep -qE "^(ok|degraded)" &&
	wait_for 60 is ActiveState active'
check and_it_answers_there wait_for 200 eval 'ask /metrics | grep "^recorder_samples_total [1-9]"'
sed -i '/^http/d' /etc/recorder/recorder.conf
systemctl stop recorder.socket recorder
rm /etc/systemd/system/recorder.socket
systemctl daemon-reload
systemctl start recorder
check it_records_without_it is ActiveState active

# ---- upgrade, purge ------------------------------------------------------------------------------

sleep 5
n=$(reasons | wc -l)
dpkg-deb -R /vm/recorder_*.deb new
sed -i 's/^Version: .*/&+1/' new/DEBIAN/control
dpkg-deb --root-owner-group -b new new.deb >/dev/null
was=$(show MainPID)
check it_upgrades dpkg -i new.deb
check the_new_one_records eval 'is ActiveState active && [ "$(show MainPID)" != "$was" ]'
check the_rules_of_the_admin_stay grep -q '_Total>60' /etc/recorder/recorder.conf
recorder history --store $store | tail -n 5 | cut -c1-110 | sed 's/^/it has: /'
recorder list --store $store | head -n 4 | cut -c1-110 | sed 's/^/it lists: /'
check the_window_before_is_kept [ "$(reasons | wc -l)" -gt "$n" ]
rm -r new new.deb

check it_is_removed dpkg -r recorder
check incidents_outlive_the_program test -s $store
check it_is_purged dpkg -P recorder
rm -r /etc/systemd/system/pay@.service
files >after
grep recorder <(files) | sed 's/^/it left: /'
check nothing_is_left eval '! grep -vxFf before after'
check systemd_knows_no_such_unit eval '! systemctl cat recorder'
