#!/bin/bash
# The whole program at once: a live recording with every source, rules of most kinds, snapshots,
# marks, reloads, stacks, top and floods, for WHOLE_S seconds (10), and then every command and
# format on what it kept. It has no command to run, so the kernel refuses it what it never does
# (help security). `make check-asan` and `make check-tsan` run it under the sanitizers, which report
# here what unit tests of one room do not reach.
# time limit: 600
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

# The sanitizers of this age cannot live with kernels that randomize addresses by 32 bits.
if [ ! "${WHOLE_FIXED:-}" ] && setarch -R true 2>/dev/null; then
	WHOLE_FIXED=1 exec setarch -R bash "$0"
fi

seconds=${WHOLE_S:-10}
# Over HTTP and page faults where they can be had.
more=(--memory-period 61)
url=http://127.0.0.1:$((20000 + $$ % 20000))
printf '0123456789abcdef0123\n' >token
chmod 600 token
if command -v curl >/dev/null &&
	! "$RECORDER" check --http 127.0.0.1:1 --store c.db 2>/dev/null |
		grep -q 'libmicrohttpd.*missing'; then
	more+=(--http "${url#http://}" --http-token token)
fi
programs=$BUILD/programs
started=()
trap 'kill "${started[@]}" 2>/dev/null' EXIT
start() { "$@" >/dev/null 2>&1 & started+=($!); }

cat >app.conf <<'END'
freq = 199
END
: >app.log
"$RECORDER" collect --config app.conf --store w.db --max-cpu-percent 0 --pre-sec 10 \
	--delay-after-trigger-sec 1 --collect-multiple 1000 --thread-time --history-sync-sec 1 \
	--stop-on-perf-counter 'Processor:% Processor Time:_Total>0.5' --min-sec-for-trigger 1 \
	--min-interval-sec 3 --monitor-perf-counter 'Memory:Available MBytes:' \
	--stop-on-gc-over-msec 1 --stop-on-exception . --stop-on-process 'hop0,a3;On=exit' \
	--stop-on-event-log-message "$PWD/app.log@boom" \
	--stop-on-event 'syscalls/sys_enter_nanosleep;FieldFilter=rqtp>0;Stack=true' \
	--rule 'cpu=Processor:% Processor Time:_Total>1' --rule 'p=StopOnProcess:sleep' \
	--stop-on 'cpu for 1s and p within 10s' --data-file kept.html \
	--enable-perf-map "${more[@]}" 2>log & recorder=$!
check it_begins wait_for 150 grep -q "recording this machine" log
end=$((SECONDS + seconds))

ln "$programs/hop_linux" a0 2>/dev/null || cp "$programs/hop_linux" a0
for i in 1 2 3 4 5 6 7 8 9; do ln a0 a$i; done
start ./a0 "$seconds"
start nice "$programs/burn" "$seconds" 0.1
start nice "$programs/flood_linux" forks 20000 "$seconds"
start nice "$programs/dotnet_flood_linux" 4 "$seconds" events
start nice "$programs/hsperf_flood_linux" 20 "$seconds"
! command -v java >/dev/null || start java -Xmx64m "$TOP/tests/programs/JavaWork.java" "$seconds"
! command -v node >/dev/null || start node --perf-basic-prof -e "
	const end = Date.now() + $seconds * 1000; while (Date.now() < end) JSON.stringify({end})"
! command -v python3 >/dev/null || start python3 -c "
import time, gc
end = time.time() + $seconds
while time.time() < end: [{} for i in range(1000)]; gc.collect()"

# A sanitized recorder on a busy machine may say that it is too busy, but it says something.
asked=0 unanswered=0 over_http=0
ask()
{
	asked=$((asked + 1))
	timeout 60 "$RECORDER" "$@" </dev/null >>asked.out 2>>asked.err
	[ $? != 124 ] || unanswered=$((unanswered + 1))
}
while [ $SECONDS -lt $end ]; do
	echo "a line, and boom" >>app.log
	sleep 0.3
	ask status --json --store w.db
	ask snapshot --reason "now and then" --store w.db
	ask mark "here" --store w.db
	echo "freq = $((99 + RANDOM % 400))" >app.conf
	ask reload --store w.db
	ask stacks -p $$ --no-stop
	ask stacks -p ${started[0]}
	ask top -i 1 -c 1 -f --store w.db
	[ ${#more[@]} = 2 ] || for path in healthz metrics incidents; do
		curl -sfm 60 -o /dev/null -u "x:$(cat token)" "$url/$path" &&
			over_http=$((over_http + 1))
	done
done
timeout 120 "$RECORDER" stop --store w.db >stop.out 2>&1
wait $recorder
code=$?
kill "${started[@]}" 2>/dev/null
grep -v '^[^ ]* *[0-9]* s:' log | tail -n 5 >&2

# ---- every command and format on what it kept ----------------------------------------------------

"$RECORDER" export --format '?' 2>&1 | sed 's/.*one of: //; s/, /\n/g' >formats
failed=0 ran=0
run() # ARG...
{
	ran=$((ran + 1))
	timeout 120 "$RECORDER" "$1" --store w.db "${@:2}" >run.out 2>run.err && return
	# 3: found nothing
	[ $? = 3 ] && return
	echo "recorder $*: $(head -c 300 run.err)"
	failed=$((failed + 1))
}
last=$("$RECORDER" list --store w.db --json 2>/dev/null | jq -s 'map(.id) | max')
for format in $(cat formats); do
	for metric in cpu off-cpu; do
		run export "$last" --format "$format" --metric $metric -o "out.$format" --force
	done
done >failures
{
	run list; run history; run show "$last"; run show "$last" --losses; run report "$last"
	run show "$last" --json; run diff 1 "$last"; run events "$last"; run verify
	run export "$last" --inlines -f; run export --last 10s -f
	run backtest "$last" '/StopOnPerfCounter:Processor:% Processor Time:_Total>1'
	run delete 1
	! command -v python3 >/dev/null ||
		run run --heap -- python3 -c 'kept = [bytes(1000) for i in range(100000)]'
} >>failures
cat failures >&2
echo "$asked questions, $unanswered without an answer, $over_http over HTTP;" \
	"$(wc -l <formats) formats, $ran commands, incident $last" >&2

check it_ended_well test $code -eq 0
check it_kept_incidents test "$last" -ge 2
check it_answered_all_the_time test $unanswered -eq 0
[ ${#more[@]} = 2 ] || check it_answered_over_http test $over_http -ge 1
check every_command_works_on_what_it_kept test $failed -eq 0 -a $ran -gt 20
check no_sanitizer_complained sh -c '! grep -hE \
	"(Address|Thread|Leak|UndefinedBehavior)Sanitizer|runtime error:" -A 12 \
	log stop.out asked.err run.err failures'
