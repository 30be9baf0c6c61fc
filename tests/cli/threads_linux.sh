#!/bin/bash
# recorder stacks: where all threads of a process are now, beside gdb; and nothing stays stopped.
# time limit: 240
. "$TOP/tests/support/cli.sh"

ended() { kill "$@" 2>/dev/null; wait "$@" 2>/dev/null; }
gcc -O1 -g -D_GNU_SOURCE -fno-optimize-sibling-calls -pthread -o waits \
	"$TOP/tests/programs/waits_linux.c" || exit 1
./waits 200 & target=$!
trap 'ended $target' EXIT
all_wait() { [ "$(cat /proc/$target/task/*/comm | grep -c reader)" = 200 ] &&
	! grep -qv "^0 " <(for t in /proc/$target/task/*; do
		[ "$(cat "$t/comm")" != reader ] || cat "$t/syscall"; done); }
if ! cat "/proc/$target/syscall" >/dev/null 2>&1; then
	echo "skip threads_linux: ptrace(2) is not allowed here"
	exit 0
fi
wait_for 20 all_wait

# of NAME: the stack of the thread with this name, one line
of() { awk -v want="$1" '/^thread / { on = $3 == want; next } NF == 0 { on = 0 }
	on { printf "%s;", $1 } END { print "" }' out; }

"$RECORDER" stacks -p "$target" >out 2>err
check it_prints_all_threads [ "$(grep -c '^thread ' out)" = 204 ]
check the_head_names_the_program grep -q "^process $target  .*/waits  204 threads, the longest" out
check main_sleeps grep -qE "^thread $target  waits  waits in (clock_nanosleep|a call that was)" out
check a_mutex_has_its_owner grep -qE \
	'^thread [0-9]+  one  waits for the mutex at 0x[0-9a-f]+, which thread [0-9]+ holds' out
check a_deadlock_is_told grep -qE \
	'^deadlock: thread ([0-9]+) waits for ([0-9]+), \2 waits for \1$' out
check a_busy_thread_runs grep -qE '^thread [0-9]+  burn  runs' out
check a_reader_names_its_pipe grep -qE '^thread [0-9]+  reader  waits in read of pipe:' out
check stacks_reach_the_start_of_the_thread \
	grep -q 'waits!burn;libc.so.6!start_thread;libc.so.6!clone3;' <(of burn)
check deep_ones_are_whole [ "$(of reader | grep -o 'waits!read_deep' | wc -l)" -ge 51 ]
check none_is_cut_or_broken expect_exit 1 grep -E '\[(broken|truncated|fp)\]$' out

"$RECORDER" stacks -p "$target" --group >grouped 2>err
check group_prints_equal_stacks_once \
	grep -qE '^thread [0-9]+  reader  waits .*  and 199 more: [0-9]+, ' grouped
check and_the_others_alone [ "$(grep -c '^thread ' grouped)" = 5 ]

# Three threads with one stack, each of which waits for the next one; main opens a FIFO.
cat >ring.c <<'C'
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>
static pthread_mutex_t m[3] = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_MUTEX_INITIALIZER,
			       PTHREAD_MUTEX_INITIALIZER};
static pthread_barrier_t all;
static void *link_in(void *at)
{
	pthread_mutex_lock(at);
	pthread_barrier_wait(&all);
	return (void *)(long)pthread_mutex_lock((pthread_mutex_t *)at == m + 2 ? m
						: (pthread_mutex_t *)at + 1);
}
int main(void)
{
	pthread_t t;
	pthread_barrier_init(&all, 0, 3);
	for (int i = 0; i < 3; i++)
		pthread_create(&t, 0, link_in, m + i);
	return open("the pipe", O_RDONLY);
}
C
gcc -O1 -pthread -o ring ring.c && mkfifo 'the pipe'
./ring & ring=$!
wait_for 20 eval '[ "$(cat /proc/$ring/task/*/syscall | cut -d" " -f1 | sort -n | tr "\n" " ")" = \
	"202 202 202 257 " ]'
"$RECORDER" stacks -p $ring --group >ring.out 2>err
kill $ring
each='\.\.\. \(for ([0-9]+)\)  and 2 more: \1 \(for ([0-9]+)\), \2 \(for [0-9]+\)$'
check a_group_says_of_each_whom_it_waits_for \
	grep -qE "^thread [0-9]+  ring  waits for the mutex at $each" ring.out
check an_open_names_its_file grep -qE "^thread $ring  ring  waits in openat of the pipe$" ring.out

"$RECORDER" stacks -p "$target" --json >json 2>err
check json_has_an_object_for_each_thread jq -se 'length == 204 and all(.frames | length > 1)' json
check and_who_waits_for_whom jq -se 'map(select(.waits_for_tid)) | length == 2 and
	.[0].waits_for_tid == .[1].tid and .[1].waits_for_tid == .[0].tid' json

"$RECORDER" stacks -p "$target" --format jstack >dump 2>err
check jstack_has_every_thread [ "$(grep -cE '^"[^"]+" #[0-9]+ prio=0 ' dump)" = 204 ]
check in_the_words_of_jstack \
	[ "$(grep -c '^   java.lang.Thread.State: BLOCKED (on object monitor)$' dump)" = 2 ]
check and_frames_in_its_form grep -q "^$(printf '\t')at waits.read_deep(Native Method)$" dump
if command -v node >/dev/null; then
	node "$TOP/tests/support/jstack_readers.js" dump >read
	check programs_that_read_jstack_take_every_thread_and_frame diff \
		<(awk '$1 != "deadlock" && !/ RUNNABLE / { print $1, $4 }' read | sort) \
		<(jq -r 'select(.state | startswith("runs") | not) |
			"\(.tid) \(.frames | length)"' json | sort)
	check and_the_deadlock grep -qx 'deadlock one two' read
	check those_who_wait_for_one_thing_wait_for_one_lock [ "$(grep -c "$(awk '
		$2 == "WAITING" { n[$3]++ } END { for (i in n) if (n[i] > 9) print i }' read)" \
		read)" = 200 ]
else
	echo "skip programs_that_read_jstack_take_every_thread_and_frame: no node"
fi

"$RECORDER" stacks -p "$target" --store s.db >out2 2>err
check store_keeps_them_as_an_incident grep -q 'stored as incident 1' err
check each_thread_is_an_event jq -e '.samples == 204' <("$RECORDER" show --store s.db --json 2>err)
"$RECORDER" show 1 --store s.db --threads >out 2>err
check show_prints_them_with_their_waits [ "$(grep -cE \
	'^thread [0-9]+  (waits|one|two|burn|reader)  (waits|runs)' out)" = 204 ]

"$RECORDER" stacks -p "$target" --repeat 3 --every 100 --store three.db >out 2>err
check repeat_takes_three_pictures [ "$(grep -c "^process $target" out)" = 3 ]
check a_thread_that_waits_has_not_moved \
	[ "$(grep -cE '^thread [0-9]+  one .* has not moved(, 2 times)?$' out)" = 2 ]
check its_frames_are_printed_once [ "$(grep -c "^    waits!take_both" out)" = 2 ]
check all_pictures_are_kept grep -q '612 stacks of the threads of process' \
	<("$RECORDER" show --store three.db)
"$RECORDER" stacks -p "$target" --group --repeat 2 --every 1 >out 2>err
check group_has_no_value_here [ $? = 0 ]
"$RECORDER" stacks -p "$target" --repeat 2 --every 1 --json >json2 2>err
check json_says_how_often jq -se 'length == 408 and
	([.[] | select(.name == "one") | .not_moved_times] == [0, 1])' json2
sleep 1 & short=$!
"$RECORDER" stacks -p $short --repeat 9 --every 300 >out 2>err
check a_process_that_ends_meanwhile_is_no_error [ $? = 0 ]
check and_its_end_is_told grep -q "process $short has ended" err

# ---- without stopping any ----
"$RECORDER" stacks -p "$target" --no-stop >out 2>err
check no_stop_prints_all_threads [ "$(grep -c '^thread ' out) $(wc -l <err)" = "204 0" ]
check and_says_so grep -q '^process .* 204 threads, none was stopped$' out
check one_that_runs_is_sampled \
	grep -q 'waits!burn;libc.so.6!start_thread;libc.so.6!clone3;' <(of burn)
check its_mutex_is_told grep -qE \
	'^thread [0-9]+  one  waits for the mutex at 0x[0-9a-f]+, which thread [0-9]+ holds' out
"$RECORDER" stacks -p "$target" --no-stop --json >json_looked 2>err
# No frame is another one than with a stop: a stack is the same, or ends earlier and is broken.
check no_stop_has_the_same_frames jq -se --slurpfile stopped json '. as $looked |
	($stopped | map({key: "\(.tid)", value: [.frames[].frame]}) | from_entries) as $whole |
	($looked | map(select(.name != "burn") | [.frames[].frame] as $f |
		$whole["\(.tid)"][:($f | length)] == $f and
		(.quality == "broken" or $whole["\(.tid)"] == $f))) |
	length == 203 and all' json_looked
check they_have_no_stops jq -se 'all(.stopped_ns == 0)' json_looked
# Frame pointers: RBP of a thread that waits is worked out from the functions' code.
gcc -O2 -g -fno-omit-frame-pointer -fstack-protector-strong -fstack-clash-protection \
	-fcf-protection -D_GNU_SOURCE -fno-optimize-sibling-calls -pthread -o pointers \
	"$TOP/tests/programs/waits_linux.c" || exit 1
./pointers 20 & pointers=$!
they_wait() { [ "$(cat /proc/$pointers/task/*/syscall | grep -cE '^(0|202) ')" = 22 ]; }
wait_for 20 they_wait
"$RECORDER" stacks -p "$pointers" --json >pointers.stopped 2>err
"$RECORDER" stacks -p "$pointers" --no-stop --json >pointers.looked 2>err
check frame_pointers_are_followed_without_rbp jq -se --slurpfile stopped pointers.stopped '
	($stopped | map({key: "\(.tid)", value: [.frames[].frame]}) | from_entries) as $whole |
	length == 24 and all(.name == "burn" or $whole["\(.tid)"] == [.frames[].frame])' \
	pointers.looked
check and_are_said_to_be grep -q '"quality":"fp"' pointers.looked
ended $pointers
expect no_stop_is_for_the_living 2 'one dead process' stacks --no-stop --core x

# ---- a stack of 200 KiB, of which a part is copied at first ----
gcc -O2 -fomit-frame-pointer -w -pthread -o shapes "$TOP/tests/programs/shapes_linux.c" || exit 1
./shapes deep 100 200 & deep=$!
taken_deep() { "$RECORDER" stacks -p "$deep" >out 2>err && grep -q 'shapes!deep_spin' out; }
check a_very_deep_stack_has_its_leaf wait_for 20 taken_deep
check and_its_root grep -q 'shapes!deep_main;libc.so.6!start_thread;' \
	<(tr -d ' ' <out | tr '\n' ';')
check none_of_it_is_missing expect_exit 1 grep -E '\[(broken|truncated|fp)\]' out
ended $deep

# ---- as part of an incident ----
why=$("$RECORDER" check --json 2>/dev/null |
	jq -r 'select(.check == "source" and .verdict == "missing") | .text' | head -1)
if [ -z "$why" ]; then
	expect a_rule_fires 0 'incident 1 stored' collect --store fired.db \
		--min-sec-for-trigger 1 --delay-after-trigger-sec 0 \
		"/StopOnPerfCounter:Process:Thread Count:pid=$target>100;Stacks"
	"$RECORDER" show 1 --store fired.db --threads >out 2>err
	check the_incident_has_all_threads [ "$(grep -c '^thread ' out)" = 204 ]
	check with_what_they_wait_for grep -qE \
		'^thread [0-9]+  one  waits for the mutex at 0x[0-9a-f]+, which thread [0-9]+' out
	check and_their_stacks \
		grep -q 'waits!burn;libc.so.6!start_thread;libc.so.6!clone3;' <(of burn)
	check deep_ones_too [ "$(of reader | grep -o 'waits!read_deep' | wc -l)" -ge 51 ]
	"$RECORDER" show 1 --store fired.db --threads --json >fired.json 2>err
	check json_has_them_too jq -se 'length == 204 and all(.frames | length > 1) and
		all(.s > -1 and .s < 21)' fired.json
	expect a_rule_may_name_a_process 0 'stacks of nobody-there: there is no such' collect \
		--store other.db --min-sec-for-trigger 1 --delay-after-trigger-sec 1 \
		"/StopOnPerfCounter:Process:Thread Count:pid=$target>100;Stacks=nobody-there"
	expect an_incident_without_threads_says_how 3 'a rule that ends in ;Stacks' \
		show 1 --store other.db --threads
else
	echo "skip rules with ;Stacks: $why"
fi

# ---- beside a program that we did not write ----
if command -v gdb >/dev/null; then
	gdb -nx -batch -p "$target" -ex 'set print frame-arguments none' \
		-ex 'set backtrace limit 200' -ex 'thread apply all backtrace' >gdb.txt 2>/dev/null
	# "LWP: function;function;" of the program's own functions, of both
	awk '/^Thread / { match($0, /LWP [0-9]+/); t = substr($0, RSTART + 4, RLENGTH - 4); next }
		/^#/ && / (at|from) / { f = $2 ~ /^0x/ ? $4 : $2
			if (f ~ /^(one|two|burn|reader|read_deep|take_both|main)$/)
				line[t] = line[t] f ";" }
		END { for (t in line) print t ": " line[t] }' gdb.txt | sort >theirs
	jq -r '"\(.tid): " + ([.frames[].frame | select(test(
		"^waits!(one|two|burn|reader|read_deep|take_both|main)$"))
		| sub("^waits!"; "") + ";"] | add)' json | sort >ours
	check gdb_saw_the_threads [ "$(wc -l <theirs)" -ge 200 ]
	check frames_are_those_of_gdb diff ours theirs
else
	echo "skip frames_are_those_of_gdb: gdb is not installed"
fi

# ---- nothing stays stopped ----
states() { cat /proc/$target/task/*/status | awk '/^State:/ { print $2 }' | sort | uniq -c; }
for ((i = 0; i < ${ROUNDS:-60}; i++)); do
	"$RECORDER" stacks -p "$target" >/dev/null 2>&1 & recorder=$!
	sleep "0.0$((RANDOM % 60 + 10))"
	ended -9 $recorder
done 2>/dev/null
check killed_again_and_again_it_leaves_no_thread_stopped expect_exit 1 grep -iE ' t$' <(states)
kill -STOP "$target"
stopped() { grep -q '^State:.*T' "/proc/$target/status"; }
wait_for 5 stopped
"$RECORDER" stacks -p "$target" >out 2>err
check a_stopped_process_has_stacks [ "$(grep -c '^thread ' out)" = 204 ]
check and_stays_stopped stopped
kill -CONT "$target"
check until_it_is_continued wait_for 5 expect_exit 1 stopped

# ---- every process ----
"$RECORDER" stacks --all-processes --group >out 2>err
check all_processes_have_stacks [ $? = 0 ]
check the_target_is_one_of_them grep -q "^process $target " out
check and_so_is_this_shell grep -q "^process $$ " out
check none_is_left_stopped expect_exit 1 stopped
"$RECORDER" stacks --all-processes -p $$ >out 2>err
check all_and_one_contradict_each_other [ $? = 2 ]

# ---- refusals ----
"$RECORDER" stacks -p no-such-program >out 2>err
check a_process_that_is_not_there [ $? = 3 ]
"$RECORDER" stacks -p $$ -p 1 >out 2>err
check only_one_process_at_a_time [ $? = 2 ]
if command -v strace >/dev/null; then
	strace -o /dev/null -f -p "$target" 2>strace.err & strace=$!
	traced() { grep -q "^TracerPid:[^0]*$strace" "/proc/$target/status"; }
	wait_for 10 traced
	sleep 1
	"$RECORDER" stacks -p "$target" >out 2>err
	check a_debugger_is_named grep -q "process $target is traced by process $strace" err
	kill $strace
	wait $strace 2>/dev/null
fi
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	place=$(mktemp -d /var/tmp/threads.XXXXXX) && chmod 755 "$place"
	cp "$RECORDER" "$place/recorder"
	setpriv --reuid 65534 --regid 65534 --clear-groups "$place/recorder" \
		stacks -p "$target" >out 2>err
	check a_stranger_is_refused grep -q 'may not be stopped: it belongs to another user' err
	rm -rf "$place"
fi

# The linker makes no index of the unwind tables of a static program.
cat >static.c <<'END'
#include <unistd.h>
__attribute__((noinline)) int inner(int n) { return pause() + n; }
int main(int n, char **a) { return a ? inner(n) + 1 : 0; }
END
for bits in 64 32; do
	if ! gcc -m$bits -static -O2 -fomit-frame-pointer -o static$bits static.c 2>err; then
		echo "skip a_static_program_of_${bits}_bits: $(tail -1 err)"
		continue
	fi
	./static$bits & alone=$!
	sleep 0.3
	"$RECORDER" stacks -p $alone >out 2>err
	check a_static_program_of_${bits}_bits_has_whole_stacks eval \
		'grep -q "!inner$" out && grep -q "!_start$" out && ! grep -q "broken\|\[fp\]" out'
	ended $alone || true
done
