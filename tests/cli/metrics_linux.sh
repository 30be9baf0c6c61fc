#!/bin/bash
# Rules on metrics that a service tells by HTTP.
. "$TOP/tests/support/cli.sh"

if ! command -v python3 >/dev/null; then
	echo "skip metrics: python3 is missing, which serves them here"
	exit 0
fi
# The errors grow by 100 a request and the queue by 1, so what is read says how often it was.
cat >serve.py <<'EOF'
import http.server
asked = 0
class Service(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        global asked
        asked += 1
        text = ('# HELP requests_total Requests by code.\n# TYPE requests_total counter\n'
                'requests_total{code="200"} 9\nrequests_total{code="500",path="/a"} %d\n'
                'requests_total{code="500",path="/b"} %d\nqueue_depth %d\n'
                % (50 * asked, 50 * asked, asked)).encode()
        if self.path != '/metrics':
            text = b'<html>\n'
        self.send_response(200)
        self.send_header('Content-Length', str(len(text)))
        self.end_headers()
        self.wfile.write(text)
    def log_message(self, *words):
        pass
server = http.server.HTTPServer(('127.0.0.1', 0), Service)
print(server.server_address[1], flush=True)
server.serve_forever()
EOF
timeout 120 python3 serve.py >port & server=$!
trap 'kill $server 2>/dev/null; wait' EXIT
wait_for 10 test -s port
fails() { ! "$@"; }
url=http://127.0.0.1:$(cat port)/metrics

if ! "$RECORDER" counters "$url" >out 2>err && grep -q 'libcurl.* is missing: install' err; then
	echo "skip metrics: libcurl is missing"
	exit 0
fi
check a_service_is_asked_for_its_metrics \
	grep -q "^Prometheus:requests_total{code=\"200\"}:$url  *9 total  Requests by code.$" out
check and_no_other_counters_are_listed eval '! grep -qv ^Prometheus: out'
"$RECORDER" counters "$url" --json >out
check so_it_is_as_json grep -q '"name":"queue_depth".*"unit":""' out
check what_has_no_metrics_fails fails "$RECORDER" counters "${url%metrics}"
check and_says_so eval '"$RECORDER" counters "${url%metrics}" 2>&1 | grep -q "not with metrics"'

rule() { "$RECORDER" check --stop-on-perf-counter "$1" >out 2>&1; }
check a_wrong_name_is_refused fails rule "Prometheus:queue_dept:$url>1"
check with_the_nearest grep -q "no metric 'queue_dept' now; did you mean 'queue_depth'?" out
check a_service_that_comes_later_is_not rule "Prometheus:queue_depth:http://127.0.0.1:1/m>1"
check an_increase_is_shown_a_second \
	eval 'rule "Prometheus:requests_total{code=\"500\"}:$url>1"; grep -q "now [0-9.]* /sec" out'

"$RECORDER" collect --source none --store s.db --history-mb 0 --min-sec-for-trigger 0 \
	--delay-after-trigger-sec 0 --max-collect-sec 30 --collect-multiple 2 \
	--stop-on-perf-counter "Prometheus:requests_total{code=\"200\"}:$url>0" \
	--stop-on-perf-counter "Prometheus:requests_total{code=\"500\"}:$url>20" \
	--stop-on-perf-counter "Prometheus:queue_depth:$url>1" \
	--stop-on-perf-counter 'Prometheus:queue_depth:http://127.0.0.1:1/m>1' >out 2>err
check an_address_without_a_service_is_told \
	grep -q 'http://127.0.0.1:1/m cannot be read: .*have no value until it answers' err
check the_sum_of_both_paths_fires \
	grep -q 'fired: .*requests_total{code="500"}.* was [0-9.]*, over its limit of 20' err
check a_value_fires_as_it_is grep -q 'fired: .*queue_depth:.* was [0-9]*, over its limit of 1' err
check what_does_not_grow_does_not expect_exit 1 grep 'fired: .*code="200"' err
expect a_long_address_is_refused_as_such 2 'is longer than 399 bytes' \
	counters "http://127.0.0.1:1/$(printf 'm%.0s' {1..400})"
