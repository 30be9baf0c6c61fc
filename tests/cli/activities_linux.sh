#!/bin/bash
# Where time went, by request: a server of two threads, whose functions have probes.
# time limit: 90
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

cat >server.c <<'END_C'
#define _GNU_SOURCE
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static double cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) static void burns(double s)
{
	double end = cpu_s() + s;

	while (cpu_s() < end)
		;
}

__attribute__((noinline)) int query(int us) { return usleep((unsigned)us); }

/* 30 ms on a CPU; the fourth waits for 400 ms, the others for 20. */
__attribute__((noinline)) int serve(int n, const char *url)
{
	int r;

	burns(0.02);
	r = query(n == 3 ? 400000 : 20000);
	burns(0.01);
	return r + (url != 0);
}

static void *works(void *who)
{
	int n;

	for (n = 0; n < 6; n++) {
		serve(n, who ? "/pay" : "/list");
		usleep(50000);       /* no request's time */
	}
	return who;
}

int main(void)
{
	pthread_t a, b;

	pthread_create(&a, 0, works, (void *)0);
	pthread_create(&b, 0, works, (void *)1);
	pthread_join(a, 0);
	return pthread_join(b, 0);
}
END_C
gcc -O1 -pthread -o server server.c
timeout 60 "$RECORDER" collect --store requests.db --thread-time --record-process server \
	--max-cpu-percent 0 --delay-after-trigger-sec 1 --stop-on-process server \
	--stop-on-event "uprobe:$PWD/server:serve;TriggerMSec=60000;Text=URL:+0(Arg2);Stack=true" \
	--stop-on-event "uprobe:$PWD/server:query;TriggerMSec=60000" 2>log & collect=$!
wait_for 15 grep -q recording log
sleep 0.5
./server
wait $collect
check a_server_with_probes_is_recorded test $? -eq 0

report() { "$RECORDER" report --store requests.db --process server --rows 50 "$@" 2>err; }
report --requests --json >requests.json
holds() { check "$1" jq -n -e "[inputs] as \$all | $2" requests.json; }
holds every_request_is_there '[$all[] | select(.row == "request")] | length == 12'
holds with_its_name '[$all[] | select(.row == "request") | .text] | sort | unique ==
	["/list", "/pay"]'
holds the_slowest_come_first '[$all[] | select(.row == "request") | .ms] | . == (sort | reverse)'
holds a_query_is_nested_in_each '[$all[] | select(.row == "activity" and .name == "query") | .in] |
	length == 12 and length == (unique | length)'
# Exact, whatever else the machine does: the program has waited and burned this long. Where records
# of switches were lost, some of it is unknown.
holds waits_are_those_of_the_program '[$all[] | select(.row == "request")] |
	(map(.blocked_ms + .unknown_ms) | sort | .[0] >= 19.9 and .[10] >= 399.9) and
	(map(.blocked_ms) | sort | .[9] < 399)'
holds so_is_time_on_a_cpu '[$all[] | select(.row == "request") | .cpu_ms + .unknown_ms] |
	min >= 29'
holds times_add_up_to_the_request '[$all[] | select(.row == "request") | (.cpu_ms + .blocked_ms +
	.disk_ms + .network_ms + .ready_ms + .unknown_ms) / .ms] | min > 0.99 and max < 1.01'
# The stack is that of what took longest.
slow='select(.row == "request" and .blocked_ms > 399 and .ready_ms < 399 and .unknown_ms < 399)'
holds each_has_its_stack "[\$all[] | $slow | .stack | contains(\"server!query\")] | all"
report --requests >text
if jq -n -e "[inputs | $slow] | length == 2" requests.json >/dev/null; then
	check its_function_is_shown_without_the_kernels_frames sh -c \
		'grep -A 7 " 40[0-9]\.[0-9] ms in" text | grep -q "^ *server!query$"'
else
	echo "skip its_function_is_shown_without_the_kernels_frames: both waited longer for a CPU"
fi

report --activities --tree --fold-percent 0 >tree
check activities_are_nested grep -qE 'Activity serve\([0-9]+\) /pay$' tree
check threads_are_below_them grep -qE '^.{66,} +Thread \([0-9]+\) server$' tree
check the_rest_is_apart grep -q '(Non-Activities)' tree
sum() { "$RECORDER" export --store requests.db --process server --metric off-cpu -f "$@" 2>err |
	awk '{sum += $NF} END {print sum}'; }
# What is split into requests is as much as before.
check no_time_is_lost_by_grouping awk -v a="$(sum)" -v b="$(sum --activities)" \
	'BEGIN {d = b / a; exit !(d > 0.9999 && d < 1.0001)}'
check a_pair_may_be_named eval 'report --requests --json --activity \
	"uprobe:$PWD/server:query;StopEvent=$PWD/server:query%return" | jq -n -e \
	"[inputs | select(.name == \"query\")] | length == 12"'
check one_that_is_not_there_is_said eval '! report --requests --activity \
	"usdt:/bin/x:a:b;StopEvent=c" && grep -q "has no such start and stop" err'

# A page of --activities has the requests' times and stacks, too, although its threads are requests.
"$RECORDER" export --store requests.db --process server --activities -o page.html 2>err
python3 - page.html >page.json <<'END'
import base64, re, sys, zlib
data = re.search(r'id="data"[^>]*>([^<]*)<', open(sys.argv[1]).read()).group(1)
print(zlib.decompress(base64.b64decode(data)).decode())
END
check a_page_of_activities_has_their_times jq -e '[.runtimes[] | select(.row == "request") |
	.cpu_ms] | length == 12 and max > 10' page.json
