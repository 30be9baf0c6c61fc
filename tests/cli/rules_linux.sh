#!/bin/bash
# Rules that fire for real on this machine: a counter, a line in a log, the end of a process; and
# StopCommand.
. "$TOP/tests/support/cli.sh"
need_perf

cat >note.sh <<'END'
#!/bin/sh
echo "args=$# incident=$1 reason=$2" | tee "$3/note.txt"
END
chmod +x note.sh

# ---- a line of a file, which is rotated in between; and StopCommand ------------------------------

echo before >app.log
timeout 100 "$RECORDER" collect --store log.db --delay-after-trigger-sec 0 \
	--stop-command "$PWD/note.sh %INCIDENT% %REASON% %OUTPUTDIR%" \
	--stop-on-event-log-message "$PWD/app.log@"'out of [a-z]+: \$\(touch owned\)' 2>log \
	& collect=$!
for i in $(seq 100); do grep -q recording log && break; sleep 0.1; done
echo "nothing of interest" >>app.log
mv app.log app.log.1
echo 'Out of Memory: $(touch owned) killed' >>app.log
wait $collect
check a_log_rule_fires_on_the_line_after_a_rotation test $? -eq 0
"$RECORDER" show --store log.db --id 1 --json >show.json 2>err
check its_reason_is_the_line \
	jq -e '.reason | endswith("app.log: Out of Memory: $(touch owned) killed")' show.json
check stop_command_ran_with_its_arguments grep -q 'args=3 incident=1 reason=log .*killed' note.txt
check its_output_is_in_the_log grep -q 'stop command: args=3 incident=1' log
check and_no_text_of_an_event_is_a_command test ! -e owned

# ---- the same again is counted, and takes nothing of the rule's hour -----------------------------

timeout 200 "$RECORDER" collect --store again.db --delay-after-trigger-sec 0 \
	--dedup 100 --max-per-hour 2 \
	--collect-multiple 50 --stop-on-event-log-message "$PWD/app.log@again" 2>log & collect=$!
wait_for 30 grep -q recording log
# Each once it is decided what the one before was: until then it counts for the hour.
for decided in 'incident 1 stored' 'fired again 1 time' 'fired again 2 times' 'fired again 3 times'
do
	echo again >>app.log
	wait_for 60 grep -q "$decided" log
done
"$RECORDER" stop --store again.db 2>>err
wait $collect
check the_same_again_is_counted_beyond_the_hours_number \
	eval '"$RECORDER" show --store again.db --id 1 | grep -q "fired again 3 times"'

# ---- the end of a process, as a part of an expression --------------------------------------------

cp "$(command -v sleep)" ./napper
timeout 100 "$RECORDER" collect --store exit.db --delay-after-trigger-sec 0 \
	--rule 'gone=StopOnProcess:napper' --rule 'mem=Memory:Available Bytes:>1' \
	--poll-sec 0.2 --stop-on 'mem and gone' 2>log & collect=$!
for i in $(seq 100); do grep -q recording log && break; sleep 0.1; done
sleep 1
./napper 0.5
wait $collect
check a_process_rule_fires_at_the_end_of_the_process test $? -eq 0
check and_says_which \
	grep -qE 'fired: mem and gone; mem: .*; gone: process napper \(pid [0-9]+\) ended' log

# ---- a counter -----------------------------------------------------------------------------------

timeout 100 "$RECORDER" collect --store counter.db --delay-after-trigger-sec 1 \
	--min-sec-for-trigger 0 \
	--poll-sec 0.2 --stop-on-perf-counter 'Memory:Available Bytes:>1' 2>log
check a_counter_rule_fires test $? -eq 0
"$RECORDER" export --store counter.db --format jsonl -o counter.jsonl 2>err
check what_fired_and_what_the_rule_saw_are_events jq -n -e '
	[inputs | select(.provider? == "Recorder" and .payload.Text) | {name, t: .payload.Text}] |
	any(.name == "StopReason" and (.t | test("was"))) and
	any(.name == "Rule" and (.t | test("last .*, average .*, maximum .* seen")))' \
	counter.jsonl
check what_cannot_fire_is_refused eval \
	'! "$RECORDER" check --stop-on-event-log-message /no/such/x@y >out 2>&1'

# ---- how a process ended -------------------------------------------------------------------------

no_endings=$("$RECORDER" check --json --stop-on-process 'x;ExitCode=3' |
	jq -r 'select(.check == "rule" and .verdict == "wrong") | .text')
if [ "$no_endings" ]; then
	echo "skip rules on exit codes and signals: $no_endings"
	exit 0
fi
printf 'int main(int n, char **a) { if (n > 1) *(volatile int *)0 = n; (void)a; return 3; }\n' \
	>dies.c
gcc -O0 -o dies dies.c && cp dies crashes

# fires NAME RULE REASON COMMAND...: run the command once the recorder runs; the rule must fire.
fires()
{
	local name=$1 rule=$2 reason=$3
	shift 3
	timeout 60 "$RECORDER" collect --store "$name.db" --delay-after-trigger-sec 0 \
		--stop-on-process "$rule" 2>log & collect=$!
	wait_for 30 grep -q recording log
	# Try again until the rule fires: on an overloaded machine the first event may come before
	# the source runs.
	while kill -0 $collect 2>/dev/null; do
		"$@" >/dev/null 2>&1
		sleep 0.3
	done
	wait $collect
	check "$name" grep -qE "fired: .*$reason" log
}
# A machine that starts programs all the time, also while the recorder starts.
(while :; do /bin/true; sleep 0.02; done) & others=$!
fires an_exit_code_fires 'dies;ExitCode=3' 'process dies \(pid [0-9]+\) ended with code 3' ./dies
fires a_crash_fires 'crashes;On=crash' \
	'process crashes \(pid [0-9]+\) was killed by signal 11 \(SIGSEGV\)' ./crashes now
kill $others
