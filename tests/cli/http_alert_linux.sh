#!/bin/bash
# A real prometheus scrapes the recorder; a metric rises, its alert goes through a real alertmanager
# to /alert, and becomes one incident whose window holds the rise.
# time limit: 300
. "$TOP/tests/support/cli.sh"
need_perf
unset RECORDER_STORE RECORDER_CONFIG
servers=$TOP/build/deps/servers/usr/bin
share=$TOP/build/deps/servers/usr/share
if [ ! -x "$servers/prometheus" ] || [ ! -x "$servers/prometheus-alertmanager" ]; then
	echo "skip http_alert_linux: no prometheus and alertmanager (make deps unpacks them)"
	exit 0
fi
if "$RECORDER" check --http 127.0.0.1:1 --store c.db 2>/dev/null | grep -q 'libmicrohttpd.*missing'
then
	echo "skip http_alert_linux: no libmicrohttpd12 here"
	exit 0
fi

if ! command -v python3 >/dev/null; then
	echo "skip http_alert_linux: no python3 here"
	exit 0
fi
if ! unshare -m mount --bind "$share" /usr/share 2>/dev/null; then
	echo "skip http_alert_linux: this user may not mount what alertmanager needs"
	exit 0
fi

port=$((20000 + $$ % 10000))
(umask 077 && printf '0123456789abcdef0123' >token)
cat >prometheus.yml <<END
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [rules.yml]
alerting: {alertmanagers: [{static_configs: [{targets: ['127.0.0.1:$((port + 2))']}]}]}
scrape_configs:
  - job_name: recorder
    authorization: {credentials_file: $TMP/token}
    static_configs: [{targets: ['127.0.0.1:$port']}]
END
# The metric is the value of a rule of the recorder, which it reads from a service.
cat >rules.yml <<'END'
groups:
  - name: test
    rules:
      - alert: Rises
        expr: recorder_rule_value > 500
        for: 3s
        labels: {for: 3s}
        annotations: {summary: 'a metric rises'}
      - alert: AlsoRises
        expr: recorder_rule_value > 600
        for: 3s
        labels: {for: 3s}
END
cat >alertmanager.yml <<END
route:
  {receiver: recorder, group_by: [job], group_wait: 1s, group_interval: 3s, repeat_interval: 4s}
receivers:
  - name: recorder
    webhook_configs:
      - url: http://127.0.0.1:$port/alert
        http_config: {authorization: {credentials_file: $TMP/token}}
END
check promtool_accepts_the_files "$servers/promtool" check config prometheus.yml

# A service with one metric, which the recorder watches and prometheus sees through it.
cat >service.py <<'END'
import http.server, sys
class Metrics(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"load " + open("load", "rb").read() + b"\n")
    def log_message(self, *a):
        pass
http.server.HTTPServer(("127.0.0.1", int(sys.argv[1])), Metrics).serve_forever()
END
echo 1 >load
python3 service.py $((port + 3)) 2>/dev/null &
pids=$!
trap 'kill $pids 2>/dev/null' EXIT
"$RECORDER" collect --store r.db --log-file r.log --http 127.0.0.1:$port --http-token token \
	--pre-sec 5 --delay-after-trigger-sec 1 --collect-multiple 1000 --max-cpu-percent 0 \
	--stop-on-perf-counter "Prometheus:load:http://127.0.0.1:$((port + 3))/>1000000" &
recorder=$!
pids="$pids $recorder"
if ! wait_for 20 grep -q 'recording this machine' r.log; then
	echo "not ok it_records: $(tail -n 3 r.log)"
	exit 1
fi
mkdir -p am pr
# It ends without its templates in /usr/share, where nothing is installed here.
unshare -m sh -c 'mount --bind "$0" /usr/share && exec "$@"' "$share" \
	"$servers/prometheus-alertmanager" --config.file=alertmanager.yml --storage.path=am \
	--web.listen-address=127.0.0.1:$((port + 2)) --cluster.listen-address= >am.log 2>&1 &
pids="$pids $!"
"$servers/prometheus" --config.file=prometheus.yml --storage.tsdb.path=pr \
	--web.listen-address=127.0.0.1:$((port + 1)) >pr.log 2>&1 &
pids="$pids $!"

check alertmanager_is_ready wait_for 60 curl -sf "http://127.0.0.1:$((port + 2))/-/ready"

query()
{
	curl -s "http://127.0.0.1:$((port + 1))/api/v1/query" --data-urlencode "query=$1" |
		jq -r '.data.result[0].value[1] // empty'
}
sees() { [ "$(query "$1")" ]; }
check prometheus_scrapes_the_recorder wait_for 60 sees 'recorder_samples_total > 0'
check and_sees_the_value_of_a_rule wait_for 60 sees 'recorder_rule_value == 1'
sleep 6                                      # more than --pre-sec of what was before
rise=$(date +%s.%3N)
echo 700 >load

list() { "$RECORDER" list --store r.db --json; }
has() { [ "$(list | jq -rs 'map(select(.reason | test("^alert "))) | length')" -ge "$1" ]; }
check both_alerts_become_incidents wait_for 90 has 2
repeats()
{
	curl -s -u "x:$(cat token)" http://127.0.0.1:$port/metrics |
		awk '$1 == "recorder_alert_repeats_total" { n = $2 } END { exit n < 4 }'
}
check alertmanager_repeats_them wait_for 60 repeats
check two_alerts_are_one_incident_each sh -c "'$RECORDER' list --store r.db --json | jq -se '
	map(.reason) | length == 2 and any(test(\"^alert Rises: a metric rises\")) and
	any(test(\"^alert AlsoRises\"))'"
# The end of the window is its time; the rise is within.
covers()
{
	list | jq -se --argjson rise "$rise" 'all((.time_utc | sub("\\.[0-9]+Z"; "Z") | fromdate) as
		$until | $until + 1 >= $rise and $until - .window_s <= $rise)'
}
check their_windows_hold_the_rise covers
check and_begin_before_it sh -c "[ \$('$RECORDER' list --store r.db --json |
	jq -s 'map(.window_s) | min > 4') = true ]"
echo 1 >load
noted() { "$RECORDER" show 1 --store r.db --json | grep -q 'resolved, as the alert'; }
check the_end_of_the_alert_is_a_remark wait_for 60 noted
check nothing_was_lost [ "$("$RECORDER" status --store r.db --json | jq .lost)" = 0 ]
kill -INT $recorder
wait $recorder
