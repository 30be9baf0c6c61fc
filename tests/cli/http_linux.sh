#!/bin/bash
# collect --http: what clients get, what is refused, and that recording does not notice them.
# time limit: 400
. "$TOP/tests/support/cli.sh"
need_perf
unset RECORDER_STORE RECORDER_CONFIG
if ! command -v curl >/dev/null; then
	echo "skip http_linux: no curl here"
	exit 0
fi
if "$RECORDER" check --http 127.0.0.1:1 --store c.db 2>/dev/null | grep -q 'libmicrohttpd.*missing'
then
	echo "skip http_linux: no libmicrohttpd12 here"
	exit 0
fi

printf '0123456789abcdef0123\n' >token
chmod 600 token
port=$((20000 + $$ % 20000))
url=http://127.0.0.1:$port

# ---- what is refused before recording ------------------------------------------------------------

refused() # NAME EXIT PATTERN ARG...
{
	local name=$1 code=$2 pattern=$3
	shift 3
	expect "$name" "$code" "$pattern" collect --store r.db --max-collect-sec 1 "$@"
}
refused no_address_is_refused 2 "give an address and a port" --http localhost
refused a_public_address_needs_token_and_tls 2 "reached from other machines" --http 0.0.0.0:$port
refused the_token_alone_is_not_enough 2 "reached from other machines" --http 0.0.0.0:$port \
	--http-token token
cp token open.token && chmod 644 open.token
refused a_token_that_others_can_read_is_refused 2 "others can read it: chmod 600" \
	--http 127.0.0.1:$port --http-token open.token
(umask 077 && echo short >short.token)
refused a_short_token_is_refused 2 "its first line is no token" --http 127.0.0.1:$port \
	--http-token short.token
refused cert_and_key_go_together 2 "go together" --http 127.0.0.1:$port --http-cert token
refused no_socket_was_passed 2 "passed no socket" --http fd
expect check_says_what_is_wrong 2 "^http +wrong " check --http localhost --store r.db

# ---- recorders of other kinds, beside what follows: in a directory and at a port of their own ----

others()
{
	local recorder
	trap 'kill $recorder 2>/dev/null' EXIT

# ---- a Unix socket -------------------------------------------------------------------------------

	expect a_textfile_ends_in_prom 2 "end in .prom" check --store u.db --textfile u.txt
	"$RECORDER" collect --store u.db --log-file u.log --http "unix:$TMP/u.sock" \
		--textfile u.prom --delay-after-trigger-sec 0 &
	recorder=$!
	wait_for 20 grep -q 'recording this machine' u.log
	check a_textfile_is_written wait_for 20 grep -q '^recorder_recording 1' u.prom
	check and_everybody_reads_it [ "$(stat -c %a u.prom)" = 644 ]
	check the_own_user_is_let_in sh -c \
		'curl -s --unix-socket u.sock http://x/status | grep -q "\"state\":\"recording\""'
	check a_unix_socket_is_closed_to_others [ "$(stat -c %a u.sock)" = 660 ]
	kill -INT $recorder
	wait $recorder
	check and_it_goes_with_the_recorder [ ! -e u.sock ]
	check so_does_the_textfile [ ! -e u.prom ]

# ---- TLS -----------------------------------------------------------------------------------------

	if command -v openssl >/dev/null; then
		(umask 077 && openssl req -x509 -newkey rsa:2048 -nodes -keyout key.pem \
			-out cert.pem -days 2 -subj /CN=localhost \
			-addext 'subjectAltName=DNS:localhost' 2>/dev/null &&
			openssl genrsa -out other.pem 2048 2>/dev/null)
		sed '3s/[A-Z]/0/g' cert.pem >broken.pem
		refused a_broken_certificate 2 "broken.pem with --http-key key.pem: " --http \
			127.0.0.1:$port --http-token token --http-cert broken.pem --http-key key.pem
		refused the_key_of_another_certificate 2 "other.pem: .*key.*match" --http \
			127.0.0.1:$port --http-token token --http-cert cert.pem --http-key other.pem
		"$RECORDER" collect --store s.db --log-file s.log --http 127.0.0.1:$port \
			--http-token token --http-cert cert.pem --http-key key.pem &
		recorder=$!
		wait_for 20 grep -q 'recording this machine' s.log
		check it_speaks_tls sh -c "curl -s --cacert cert.pem -u x:$(cat token) \
			https://localhost:$port/status \
			--connect-to localhost:$port:127.0.0.1:$port | grep -q recording"
		check and_nothing_else sh -c "! curl -s -m 5 $url/healthz"
		kill -INT $recorder
		wait $recorder
	else
		echo "skip it_speaks_tls: no openssl here"
	fi

# ---- a socket that systemd has opened: its first client is why the recorder starts -------------

	if command -v systemd-socket-activate >/dev/null; then
		systemd-socket-activate -l 127.0.0.1:$port "$RECORDER" collect --store fd.db \
			--http fd --history-mb 0 --max-cpu-percent 0 >fd.log 2>&1 & recorder=$!
		wait_for 20 grep -q Listening fd.log
		check the_first_client_waits_until_it_records sh -c \
			"curl -s -m 60 $url/healthz | grep -qE '^(ok|degraded)'"
		# Clients whose requests came in time are not slow when the machine is.
		cat >late.py <<'END'
import os, signal, socket, sys, time
recorder = int(sys.argv[2])
all = [socket.create_connection(("127.0.0.1", int(sys.argv[1]))) for i in range(30)]
time.sleep(1)
os.kill(recorder, signal.SIGSTOP)
for s in all:
    s.sendall(b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
time.sleep(11)
os.kill(recorder, signal.SIGCONT)
print(sum(s.makefile("rb").readline().startswith(b"HTTP/1.1 ") for s in all))
END
		check a_slow_machine_is_not_a_slow_client \
			[ "$(timeout 60 python3 late.py $port $recorder 2>&1 | tail -n 1)" = 30 ]
		kill -INT $recorder
		wait $recorder
	else
		echo "skip the_first_client_waits_until_it_records: no systemd-socket-activate here"
	fi
}

mkdir others
cp token others
(cd others && TMP=$TMP/others && port=$((port + 1)) && url=http://127.0.0.1:$port && others) \
	>others.out 2>&1 & others=$!

# ---- a recorder ----------------------------------------------------------------------------------

"$RECORDER" collect --store r.db --log-file r.log --http 127.0.0.1:$port --http-token token \
	--delay-after-trigger-sec 1 --max-cpu-percent 0 --collect-multiple 1000 \
	--stop-on-perf-counter 'Memory:Available MBytes:<1' &
recorder=$!
trap 'kill $recorder $others 2>/dev/null' EXIT
if ! wait_for 20 grep -q 'recording this machine' r.log; then
	echo "not ok it_records: $(tail -n 3 r.log)"
	exit 1
fi

# get PATH [CURL-ARG...]: the body goes to the file body, the status to $code.
get()
{
	local path=$1
	shift
	code=$(curl -s -m 60 -u "x:$(cat token)" -o body -D head -w '%{http_code}' "$@" "$url$path")
}
# gets NAME STATUS PATTERN PATH [CURL-ARG...]
gets()
{
	local name=$1 want=$2 pattern=$3
	shift 3
	get "$@"
	if [ "$code" != "$want" ]; then
		echo "not ok $name: status $code, not $want: $(head -c 300 body)"
	elif ! grep -qE -e "$pattern" body; then
		echo "not ok $name: no '$pattern' in: $(head -c 300 body)"
	else
		echo "ok $name"
	fi
}

gets health_is_ok_or_says_why 200 '^(ok|degraded)' /healthz
gets status_is_json 200 '"state":"recording"' /status
check and_whole jq -e .rules[0].rule body
gets no_incident_yet 200 '^\[\]$' /incidents

nobody() # NAME STATUS PATH [CURL-ARG...]
{
	local name=$1 want=$2 path=$3
	shift 3
	code=$(curl -s -m 60 -o body -w '%{http_code}' "$@" "$url$path")
	check "$name" [ "$code" = "$want" ]
}
nobody without_a_token_there_is_health 200 /healthz
nobody and_no_status 401 /status
nobody and_no_metrics 401 /metrics
nobody a_wrong_token_is_refused 401 /incidents -H 'Authorization: Bearer 0123456789abcdef0124'
nobody so_is_a_longer_one 401 /incidents -H 'Authorization: Bearer 0123456789abcdef01234'
nobody so_is_an_empty_one 401 /incidents -H 'Authorization: Bearer '
nobody so_is_a_wrong_password 401 /incidents -u x:0123456789abcdef0124
nobody a_bearer_is_let_in 200 /status -H 'Authorization: Bearer 0123456789abcdef0123'
nobody pages_of_other_sites_are_not 403 /status -u x:0123456789abcdef0123 \
	-H 'Origin: http://evil.example'
nobody but_our_own_are 200 /status -u x:0123456789abcdef0123 -H "Origin: http://127.0.0.1:$port"

gets an_unknown_path_is_404 404 'there is no /nothing' /nothing
gets another_method_is_405 405 'POST is not for /status' /status -d x
head -c 1048577 /dev/zero >large
gets a_large_body_is_413 413 'at most 1048576 bytes' /incidents --data-binary @large
gets a_large_body_in_chunks_too 413 'at most 1048576 bytes' /incidents --data-binary @large \
	-H 'Transfer-Encoding: chunked'

# ---- metrics -------------------------------------------------------------------------------------

some_samples() { get /metrics && grep -qE '^recorder_samples_total [1-9]' body; }
wait_for 10 some_samples
cp body metrics.txt
check metrics_are_for_prometheus grep -qi '^content-type: text/plain; version=0.0.4' head
check samples_are_counted grep -qE '^recorder_samples_total [1-9]' metrics.txt
check losses_have_reasons grep -q '^recorder_lost_total{reason="kernel"} ' metrics.txt
check a_rule_has_value_and_limit grep -q \
	'^recorder_rule_limit{rule="Memory:Available MBytes:<1"} 1$' metrics.txt
promtool=$TOP/build/deps/servers/usr/bin/promtool
if [ -x "$promtool" ]; then
	check promtool_has_nothing_to_say sh -c \
		'out=$('"$promtool"' check metrics <metrics.txt 2>&1) && [ -z "$out" ] || {
			echo "$out"; exit 1; }'
else
	echo "skip promtool_has_nothing_to_say: no promtool here"
fi
get /metrics -H 'Accept: application/openmetrics-text; version=1.0.0'
check open_metrics_end_in_eof sh -c '[ "$(tail -n 1 body)" = "# EOF" ]'
check and_counters_are_declared_without_total grep -q '^# TYPE recorder_samples counter' body

# ---- incidents -----------------------------------------------------------------------------------

"$RECORDER" snapshot --store r.db --reason 'with "quotes" & <tags>' 2>/dev/null
stored() { "$RECORDER" list --store r.db --json | jq -se '.[0].state == "complete"'; }
check an_incident_is_stored wait_for 30 stored
gets the_list_has_it 200 '"reason":"with \\"quotes\\" & <tags>"' /incidents
check as_json jq -e '.[0].id == 1 and .[0].samples > 0' body
gets one_incident_is_an_object 200 '"note":null' /incidents/1
gets an_incident_that_is_not_there_is_404 404 'there is no incident 99' /incidents/99
gets and_so_is_its_report 404 'there is no incident 99' /incidents/99.html
gets a_format_that_is_not_there_is_404 404 '/incidents/1.folded' /incidents/1.exe
gets a_path_is_no_number 404 'an incident has a number' /incidents/..%2f..%2fetc%2fpasswd
gets a_process_that_is_not_there_is_404 404 'no-such-process' \
	'/incidents/1.folded?process=no-such-process'

# Every suffix gives what export writes.
same=yes
while read -r suffix; do
	"$RECORDER" export 1 --store r.db -o "x$suffix" --force 2>/dev/null || continue
	get "/incidents/1$suffix"
	if [ "$code" != 200 ] || [ ! -s body ]; then
		same="no: status $code of $suffix"
	elif [[ $suffix != *.gz && $suffix != *.zip && $suffix != *.db ]] &&
		! cmp -s body "x$suffix"; then
		same="no: $suffix differs"
	fi
	echo "$suffix" >>suffixes
done < <(get /incidents/1.exe; sed -n 's:^  /incidents/1\([^ ]*\) .*:\1:p' body | sort -u)
check every_format_is_as_export_writes_it [ "$same" = yes ]
check and_there_are_many [ "$(wc -l <suffixes)" -ge 8 ]

# ---- the past, at once ---------------------------------------------------------------------------

gets a_profile_is_there 200 . '/debug/pprof/profile?seconds=3'
cp body profile.pb.gz
check and_it_is_gzip gzip -t profile.pb.gz
gets seconds_have_a_range 400 'give 1 to 3600' '/debug/pprof/profile?seconds=0'
gets a_process_is_not_cut_off 400 'give 109 characters at most' \
	"/debug/pprof/profile?seconds=3&process=$(printf 'b%.0s' {1..110})"
gets scrapers_find_it 200 'profile' /debug/pprof/
if command -v go >/dev/null && go tool pprof -h >/dev/null 2>&1 || go tool pprof 2>&1 |
	grep -q usage; then
	check go_reads_it_by_its_address sh -c "PPROF_TMPDIR=. go tool pprof -top \
		'http://x:$(cat token)@127.0.0.1:$port/debug/pprof/profile?seconds=3' >go.out"
	check and_finds_three_seconds grep -qE 'Duration: [23](\.[0-9]*)?s' go.out
else
	echo "skip go_reads_it: no go tool pprof here"
fi

gets a_snapshot_waits_for_its_number 201 '^\{"incident":2\}$' /snapshot \
	-d '{"reason":"now","wait":true}'
gets or_does_not 202 'a snapshot is taken' /snapshot -X POST
gets a_window_of_the_past_is_kept 201 '"incident":' /snapshot -d '{"from":"-3s","reason":"past"}'
check with_its_window sh -c "'$RECORDER' list --store r.db --json | jq -se '
	map(select(.reason == \"past\"))[0] | .window_s > 1 and .window_s < 4'"
gets a_moment_that_is_none_is_400 400 'yesterdayish' /snapshot -d '{"from":"yesterdayish"}'
gets a_body_that_is_none_is_400 400 'no JSON object' /snapshot -d 'from=now'
gets the_page_has_rules_and_links 200 'href="incidents/1.html"' /
check and_escapes_reasons grep -q 'with &quot;quotes&quot; &amp; &lt;tags&gt;' body

# ---- alerts --------------------------------------------------------------------------------------

since=$(date -u -d '-2 seconds' +%FT%T.%3NZ)
cat >alerts.json <<END
{"version":"4","status":"firing","receiver":"recorder","alerts":[
 {"status":"firing","labels":{"alertname":"HighCPU","instance":"web1"},
  "annotations":{"summary":"too much"},"startsAt":"$since","endsAt":"0001-01-01T00:00:00Z",
  "fingerprint":"a1b2"},
 {"status":"firing","labels":{"alertname":"Other"},"startsAt":"$since","fingerprint":"c3d4"}]}
END
gets two_alerts_are_two_incidents 200 '"new".*"new"' '/alert?for=1m' --data-binary @alerts.json
id=$(jq '.alerts[0].incident' body)
gets repeats_are_none 200 '"repeated".*"repeated"' '/alert?for=1m' --data-binary @alerts.json
check of_the_same_number jq -e ".alerts[0].incident == $id" body
sed 's/"firing"/"resolved"/g' alerts.json >resolved.json
gets a_resolved_alert_is_known 200 '"resolved"' /alert --data-binary @resolved.json
gets it_adds_a_remark 200 'posted as an alert, labels .*HighCPU.*\\nresolved' "/incidents/$id"
gets pagerduty_is_understood 200 '"P1 since .*"new"' /alert -d "{\"event\":{\"event_type\":
	\"incident.triggered\",\"data\":{\"id\":\"P1\",\"title\":\"x\",\"created_at\":\"$since\"}}}"
gets plain_json_too 200 '"new"' /alert -d '{"name":"plain","for":"30s"}'
undated() # NAME PATTERN STATUS
{
	gets "$1" 200 "$2" /alert \
		-d "{\"status\":\"$3\",\"name\":\"u\",\"fingerprint\":\"u1\"}"
}
undated without_a_beginning_it_begins_now '"new"' firing
id=$(jq '.alerts[0].incident' body)
sleep 0.01
undated and_again_it_is_the_open_one "\"repeated\",\"incident\":$id}" firing
undated it_is_resolved "\"resolved\",\"incident\":$id}" resolved
undated one_that_is_resolved_is_not_resolved_again '"unknown"' resolved
undated after_that_it_is_a_new_one '"new"' firing
gets of_another_number 200 "\"id\":$((id + 1))," /incidents
# What is listed counts a moment later.
counted() { "$RECORDER" status --store r.db --json | jq .incidents; }
wait_for 5 eval '[ "$(counted)" = "$("$RECORDER" list --store r.db --json | wc -l)" ]'
incidents=$(counted)
gets without_a_name_it_says_so 200 '"new"' /alert -d '{}'
gets and_without_both_each_is_one 200 '"new"' /alert -d '{}'
gets one_of_those_can_be_resolved 200 '"resolved"' /alert -d '{"status":"resolved"}'
"$RECORDER" snapshot --store r.db --last 2s 2>/dev/null
check those_of_the_history_are_counted [ "$("$RECORDER" status --store r.db --json |
	jq ".incidents - $incidents")" = 3 ]
sleep 0.3                                    # the desk's status is a quarter of a second old
gets and_so_they_are_for_prometheus 200 "^recorder_incidents_total $((incidents + 3))\$" /metrics
check as_list_sessions_has_them sh -c "'$RECORDER' list-sessions --json | jq -se '
	any(.store == \"$TMP/r.db\" and .incidents == $((incidents + 3)))'"
gets and_so_does_its_incident 200 '"alert without a name \[' /incidents
gets a_beginning_that_is_none_is_400 400 "startsAt of an alert: 'banana'" /alert \
	-d '{"startsAt":"banana"}'
gets a_body_without_an_alert_is_400 400 'no alert in the body' /alert -d '{"alerts":"x"}'
gets a_wrong_duration_is_400 400 'give a duration' '/alert?for=5x' -d '{}'
gets an_alert_that_is_no_json_is_400 400 'no JSON object' /alert -d '['

# ---- crowds and slow clients ---------------------------------------------------------------------

lost() { "$RECORDER" status --store r.db --json | jq .lost; }
before=$(lost)
threads() { ls /proc/$recorder/task | wc -l; }
usual=$(threads)
# A thousand connections that send a part of a request, and then a byte now and then.
cat >slow.py <<'END'
import socket, sys, time
port, n = int(sys.argv[1]), int(sys.argv[2])
all = []
for i in range(n):
    s = socket.socket()
    s.setblocking(False)
    try:
        s.connect(("127.0.0.1", port))
    except BlockingIOError:
        pass
    all.append(s)
time.sleep(1)
print("connected", flush=True)
end = time.time() + 14
while time.time() < end:
    for s in all:
        try:
            s.send(b"G")
        except OSError:
            pass
    time.sleep(2)
END
if command -v python3 >/dev/null; then
	python3 slow.py $port 1000 >slow.out &
	slow=$!
	wait_for 20 grep -q connected slow.out
	most=$(threads)
	check slow_clients_have_few_threads [ "$most" -le $((usual + 34)) ]
	wait $slow
	gets they_are_dropped_and_others_get_in 200 'ok|degraded' /healthz
	get /metrics
	check and_counted grep -qE '^recorder_http_slow_clients_total [1-9]' body
else
	echo "skip slow_clients: no python3 here"
fi
if command -v ab >/dev/null; then
	ab -q -s 200 -n 10000 -c 500 -A "x:$(cat token)" $url/metrics >ab.out 2>&1
	check ten_thousand_requests_are_answered \
		grep -qE '^Complete requests: +10000' ab.out
	check without_a_failure sh -c '! grep -q "^Non-2xx" ab.out'
else
	echo "skip ten_thousand_requests: no ab here"
fi
check nothing_was_lost [ "$(lost)" = "$before" ]

kill -INT $recorder
wait $recorder
check it_ends_well [ $? = 0 ]

wait $others
cat others.out
