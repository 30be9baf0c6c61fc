#!/bin/bash
# recorder run: a program and all that it starts, from their first instruction to their end.
# time limit: 600
. "$TOP/tests/support/cli.sh"
need_perf
export RECORDER_STORE=$TMP/s.db

samples_of() { awk -v p="^$1[^;]*;" '$0 ~ p { n += $NF } END { print n + 0 }' out.folded; }
newest() { "$RECORDER" list --json | head -n 1 | jq -r "$1"; }
ms_of() { awk '{ printf "%d", ($1 + $2) * 1000 }' <<<"$1"; }

# ---- exit codes and streams ----
"$RECORDER" run sh -c 'read line; echo "got $line"; echo oops >&2; exit 7' <<<hello >out 2>err
check the_exit_code_is_the_programs [ $? = 7 ]
check it_has_our_streams grep -q 'got hello' out
check and_standard_error grep -q oops err
check the_incident_says_how_it_ended grep -q 'Fired.*sh ended with exit code 7' out
"$RECORDER" run -- sh -c 'kill -9 $$' >out 2>err
check a_signal_is_128_and_its_number [ $? = 137 ]
"$RECORDER" run no-such-program >out 2>err
check a_program_that_is_not_there_is_said [ $? = 3 ]
check and_nothing_was_stored [ "$(newest .id)" = 2 ]
"$RECORDER" run >out 2>err
check without_a_program_it_asks grep -q "which program? 'recorder run make -j8'" err
"$RECORDER" run --format no-such-format true >out 2>err
check a_wrong_format_is_said_before_the_program_runs [ $? = 2 ]
echo '#!/no/such/interpreter' >script && chmod +x script
"$RECORDER" run ./script >out 2>err
check a_file_that_cannot_be_executed_is_said grep -q './script cannot be started' err

# ---- what is recorded ----
cat >burn.c <<'C'
#include <stdlib.h>
int main(int argc, char **argv)
{
	volatile unsigned long i;
	for (i = 0; i < strtoul(argv[1], NULL, 10) * 1000000; i++) ;
	return argc - 2;
}
C
gcc -O1 -o burn burn.c || exit 1
times=$( { TIMEFORMAT='%U %S'; time "$RECORDER" run --freq 499 -o out.folded --force -- \
	sh -c './burn 300; ./burn 300 & wait' >run.out 2>err; } 2>&1)
# The recorder's own time, as the incident tells it, is no part of the program's.
own=$("$RECORDER" show --json 2>/dev/null | jq .recorder.cpu_ms)
program=$(awk -v a="$(ms_of "$times")" -v o="$own" 'BEGIN { print int(a - o) }')
check nothing_is_shown_beside_a_file [ ! -s run.out ]
check children_are_recorded [ "$(samples_of burn)" -ge 10 ]
others=$(awk '!/^(burn|sh|dash|recorder)[^;]*;/ { n += $NF } END { print n + 0 }' out.folded)
check no_other_program_is [ "$others" = 0 ]
check the_samples_are_the_programs_cpu_time awk -v ms="$program" \
	'{ n += $NF } END { have = n * 1000 / 499
		printf "%d ms in samples, %d ms by times(2)\n", have, ms
		exit have < 0.8 * ms || have > 1.2 * ms + 20 }' out.folded
check stacks_reach_main grep -q '__libc_start_main.*burn!main' out.folded

cp /bin/true ./stranger
while sleep 0.05; do ./stranger; done & strangers=$!
# Each is shorter than a period: a timer of each task's own would never fire.
times=$( { TIMEFORMAT='%U %S'; time "$RECORDER" run -- \
	bash -c 'for ((i = 0; i < 3000; i++)); do /bin/true; done' >run.out 2>err; } 2>&1)
"$RECORDER" show --json >show.json 2>/dev/null
program=$(awk -v a="$(ms_of "$times")" -v o="$(jq .recorder.cpu_ms show.json)" \
	'BEGIN { print int(a - o) }')
check short_programs_have_their_share awk -v n="$(jq .samples show.json)" -v ms="$program" \
	'BEGIN { have = n * 1000 / 99
		printf "%d ms in samples, %d ms by times(2)\n", have, ms
		exit have < 0.7 * ms || have > 1.3 * ms + 100 }'
check and_nothing_was_lost [ "$(jq .lost show.json)" = 0 ]
# More starts and ends than one segment keeps of a machine: 8,192.
check each_of_them_has_its_start_and_its_end awk -F, '$7 == "true" { n[$5]++ }
	END { print n["process-start"], n["process-exit"]
		exit n["process-start"] < 3000 || n["process-exit"] < 3000 }' \
	<("$RECORDER" export --format events-csv 2>/dev/null)

check and_no_other_program_has expect_exit 1 grep stranger \
	<("$RECORDER" export --format events-csv 2>/dev/null)
# ---- collect: the same with rules ----
# Counters are read once a second: burn of the tests' programs lasts for 3, on any machine.
"$RECORDER" collect --store rules.db --pre-sec 5 --delay-after-trigger-sec 0 \
	--min-sec-for-trigger 0 "/StopOnPerfCounter:Process:Thread Count:sh>0" \
	-- sh -c 'read line; echo "got $line"; "$BUILD/programs/burn" 3 >&2; exit 7' \
	<<<hello >out 2>err
check collects_exit_code_is_the_programs [ $? = 7 ]
check it_has_the_streams_too grep -qx 'got hello' out
check the_log_says_what_is_recorded grep -q 'recording sh and all that it starts at 99 Hz' err
"$RECORDER" list --store rules.db --json | jq -r .reason | sort >reasons
check a_rule_fires_and_the_end_is_an_incident sh -c \
	"grep -q 'Thread Count' reasons && grep -q 'sh ended with exit code 7' reasons"
"$RECORDER" export --store rules.db -f 2>/dev/null | sed 's/ (.*//' | sort -u >names
check nothing_else_is_recorded expect_exit 1 grep -qvxE 'burn|sh|dash|recorder' names
check its_child_is grep -qx burn names

"$RECORDER" collect --store rules.db --collect-multiple 1 -- true >out 2>err
check it_has_no_other_end [ $? = 2 ]

# ---- a process that runs already, and the stand-in for dtrace ----
./burn 900 & burning=$!
wait_for 20 grep -qx burn /proc/$burning/comm        # no sample of the shell before its exec
"$RECORDER" run -p $burning --freq 499 -o out.folded --force 2>err
check it_is_recorded_until_it_ends [ $? = 0 -a ! -e /proc/$burning ]
check alone test "$(samples_of burn)" = "$(awk '{ n += $NF } END { print n }' out.folded)"
check and_has_samples [ "$(samples_of burn)" -ge 20 ]
check nobody_else_starts_in_it expect_exit 1 grep stranger \
	<("$RECORDER" export --format events-csv 2>/dev/null)
kill $strangers
"$RECORDER" run -p $burning 2>err
check one_that_is_not_there_is_said grep -q "there is no process '$burning'" err
"$RECORDER" run -p $$ true 2>err
check only_one_of_both [ $? = 2 ]
ln -s "$RECORDER" recorder-dtrace
script='profile-499 /pid == $target/ { @[ustack(100)] = count(); }'
./recorder-dtrace -x ustackframes=100 -n "$script" -o a.stacks -c './burn 300' 2>err
check dtrace_records_a_command grep -q '^ *burn`main+0x' a.stacks
check its_ustack_has_no_frame_of_the_kernel expect_exit 1 grep -qF '[kernel]' a.stacks
./burn 300 & burning=$!
./recorder-dtrace -x ustackframes=100 -n "$script" -o a.stacks -p $burning 2>err
check dtrace_records_a_process grep -q '^ *burn`main+0x' a.stacks
cp burn burn2
./burn 300 & burning=$!
./burn2 300 & burning2=$!
wait_for 20 grep -qx burn2 /proc/$burning2/comm
./recorder-dtrace -x ustackframes=100 -n "$script" -o a.stacks -p $burning -p $burning2 2>err
check dtrace_records_several grep -q '^ *burn2`main+0x' a.stacks
check and_each_of_them grep -q '^ *burn`main+0x' a.stacks
./recorder-dtrace -l 2>err
check dtrace_refuses_the_rest [ $? = 2 ]

check it_keeps_no_history_beside_its_incident [ ! -e s.db.history ]

# ---- its end ----
"$RECORDER" run sleep 1000 >out 2>err & recorder=$!
wait_for 20 "$RECORDER" status
kill -TERM $recorder
wait $recorder
check a_stopped_recorder_ends_the_program [ $? = 143 ]
check and_shows_what_there_was grep -q 'Fired.*stopped by' out
check nothing_is_left expect_exit 1 pgrep -f '^sleep 1000$'

cat >asks.c <<'C'
#include <signal.h>
#include <unistd.h>
static void asked(int signal) { _exit(signal); }
int main(void)
{
	signal(SIGINT, asked);
	signal(SIGTERM, asked);
	write(1, "ready\n", 6);
	for (;;)
		pause();
}
C
gcc -o asks asks.c || exit 1
# asked NAME NUMBER: how a program ends when its recorder gets that signal, alone. A shell without
# job control starts what is in the background with SIGINT ignored.
asked()
{
	setsid env --default-signal=INT "$RECORDER" run ./asks >out 2>err & recorder=$!
	wait_for 20 grep -q ready out
	kill "-$1" $recorder
	wait $recorder
	check "the_program_is_asked_to_end_by_SIG$1" [ $? = "$2" ]
}
asked INT 2
asked TERM 15
"$RECORDER" run sleep 1000 >out 2>err & recorder=$!
wait_for 20 "$RECORDER" status
kill -INT $recorder
wait $recorder
check where_SIGINT_is_ignored_it_is_SIGTERM [ $? = 143 ]

# ---- beside the machine's recorder, which has the usual store ----
unset RECORDER_STORE
export XDG_STATE_HOME=$TMP/state
"$RECORDER" collect 2>log & recorder=$!
wait_for 20 "$RECORDER" status
"$RECORDER" run true >out 2>err
check it_runs_beside_a_recorder [ $? = 0 ]
check and_says_where grep -q 'recorder is running on .*this run is kept in .*/runs.db' err
check and_shows_that grep -q 'Fired.*true ended with exit code 0' out
"$RECORDER" stop >/dev/null 2>&1
wait $recorder

# ---- without rights ----
paranoid=$(cat /proc/sys/kernel/perf_event_paranoid)
if [ "$(id -u)" != 0 ] || [ "$paranoid" -gt 2 ]; then
	echo "skip a_user_without_rights: not root, or kernel.perf_event_paranoid is $paranoid"
	exit 0
fi
# The directory of the tests may be closed to others.
place=$(mktemp -d /var/tmp/run.XXXXXX)
trap 'rm -rf "$place"' EXIT
cp burn "$RECORDER" "$place" && chown 65534 "$place"
(cd "$place" && exec setpriv --reuid 65534 --regid 65534 --clear-groups env HOME="$place" \
	RECORDER_STORE="$place/s.db" ./recorder run ./burn 300) >out 2>err
check a_user_may_record_programs_of_their_own [ $? = 0 ]
check and_is_told_what_is_missing grep -q 'may not sample the whole machine: what runs for less' err
check their_stacks_are_complete grep -qE 'burn \([0-9]+\): (100|9[0-9]) % complete' out
