#!/bin/bash
# Rules on kernel events that fire for real: tracepoints with filters, pairs of events, crashes with
# their stacks; and rules that are refused.
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

# recording NAME RULE...: record in the background until each rule has fired, with the log NAME.log.
recording()
{
	local name=$1 n
	shift
	n=$(printf '%s\n' "$@" | grep -c '^/Stop')
	timeout 30 "$RECORDER" collect --store "$name.db" --delay-after-trigger-sec 0 \
		--collect-multiple "$n" \
		--min-interval-sec 60 "$@" 2>"$name.log" &
	collect=$!
	run=$name
	wait_for 10 grep -q recording "$name.log"
}

# fires NAME REASON COMMAND...: repeat the command until the rule fires, as a busy kernel may drop
# the first event.
fires()
{
	local name=$1 reason=$2
	shift 2
	while kill -0 $collect 2>/dev/null && ! grep -qE "fired: .*$reason" "$run.log"; do
		"$@" >/dev/null 2>&1
		sleep 0.2
	done
	check "$name" grep -qE "fired: .*$reason" "$run.log"
}

# shown REASON: write the incident with that reason to show.json, as JSON
shown()
{
	local id
	id=$("$RECORDER" list --store "$run.db" --json |
		jq -r --arg r "$1" 'select(.reason | test($r)) | .id' | head -1)
	"$RECORDER" show --store "$run.db" --id "$id" --json >show.json 2>err
}

cp /bin/true once
recording begun '/StopOnEvent:sched/sched_process_exec;FieldFilter=filename~once$'
./once
wait $collect
check what_comes_after_it_says_that_it_records_is_seen \
	grep -q 'fired: sched/sched_process_exec of once' begun.log

cat >probed.c <<'END'
#include <time.h>
__attribute__((noinline)) int innermost(volatile int *p) { return *p + 1; }
__attribute__((noinline)) int middle(int n) { return innermost((int *)(long)(n - 1)) + n; }
int main(int n, char **a)
{
	struct timespec t = {0, n > 1 ? 70000000 : 0};

	nanosleep(&t, 0);
	return a[1] && a[1][0] == 'c' ? middle(n - 1) * 2 : 0;
}
END
gcc -O1 -o probed probed.c

exits='/StopOnEvent:sched/sched_process_exit;FieldFilter=comm=PROBED;FieldFilter=pid>1'
exits+=';FieldFilter=pid<=4194304;FieldFilter=prio!=-1;FieldFilter=comm~^prob'
recording kernel "$exits" \
	'/StopOnEvent:syscalls/sys_enter_clock_nanosleep;TriggerMSec=50;Process=probed' \
	'/StopOnProcess:probed;On=crash;Stack=true'
fires an_event_fires_whose_fields_pass 'sched/sched_process_exit of probed .* comm=probed' ./probed
fires a_system_call_that_takes_long_fires \
	'sys_enter_clock_nanosleep of probed .* took (7|8|9|1.)[0-9.]+ ms, over' ./probed long
fires a_crash_fires_with_its_stack \
	'process probed \(pid [0-9]+\) was killed by signal 11 \(SIGSEGV\)' \
	./probed crash 2>/dev/null
wait $collect
check all_of_them_end_the_run test $? -eq 0
shown SIGSEGV
check its_stack_is_that_of_the_fault jq -e '[.event_stack[0:3][].frame] == ["probed!innermost",
	"probed!middle", "probed!main"]' show.json
check and_the_fields_of_events_are_kept eval \
	'"$RECORDER" export --store kernel.db --format jsonl 2>err |
	jq -es "any(.name == \"sched_process_exit\" and .payload.pid > 1)"'

# ---- in programs ---------------------------------------------------------------------------------

cat >thrower.cc <<'END'
#include <stdexcept>
#include <unistd.h>
namespace shop {
struct no_stock : std::runtime_error { using std::runtime_error::runtime_error; };
}
__attribute__((noinline)) void order(int n) { if (n) throw shop::no_stock("none left"); }
extern "C" __attribute__((noinline)) int handle(int n)
{
	try { order(n); } catch (std::exception &) { usleep(30000); return 7; }
	return 0;
}
int main() { return handle(1) - 7; }
END
if ! g++ -O1 -o thrower thrower.cc 2>gxx.out; then
	echo "skip probes_in_cxx_programs: no C++ compiler"
else
	recording cxx '/StopOnException:^shop::no_;Process=thrower' \
		"/StopOnEvent:uprobe:$PWD/thrower:handle;TriggerMSec=20"
	fires a_throw_of_cxx_fires_with_its_type 'exception shop::no_stock, of thrower' ./thrower
	fires a_function_that_takes_long_fires \
		':handle of thrower .* took [3-9][0-9.]+ ms, over' ./thrower
	wait $collect
	shown no_stock
	check and_with_its_stack \
		jq -e '[.event_stack[1:3][].frame] == ["thrower!order", "thrower!handle"]' show.json
	timeout 20 "$RECORDER" events --live "uprobe:$PWD/thrower:handle%return" --rows 1 \
		--json >ret.json 2>err & live=$!
	while kill -0 $live 2>/dev/null; do ./thrower; sleep 0.1; done
	check a_return_has_its_value jq -e '.fields.Ret == 7' ret.json
fi

# The library is linked into the program, which must run when recording starts.
cat >>thrower.cc <<'END'
extern "C" void each_100_ms() { for (int i = 0; i < 300; i++) { handle(1); usleep(70000); } }
END
sed -i -e '/^int main() {/i extern "C" void each_100_ms();' \
	-e 's/^int main() {/int main(int n, char **) { if (n > 1) each_100_ms();/' thrower.cc
if ! g++ -O1 -static-libstdc++ -static-libgcc -o inside thrower.cc 2>gxx.out; then
	echo "skip a_throw_of_a_library_in_the_program_fires: $(head -1 gxx.out)"
else
	./inside long & inside=$!
	recording inside '/StopOnException:^shop::no_;Process=inside'
	wait $collect
	shown no_stock
	check a_throw_of_a_library_in_the_program_fires \
		grep -q 'fired: .*exception shop::no_stock, of inside' inside.log
	check and_with_its_stack_too \
		jq -e '[.event_stack[1:3][].frame] == ["inside!order", "inside!handle"]' show.json
	kill $inside
	wait $inside 2>/dev/null
fi

python=$(realpath /usr/bin/python3)
if ! "$RECORDER" events "$python" 2>&1 | grep -q ':python:gc__start  Arg1'; then
	echo "skip probes_that_programs_bring: $python brings none with it"
else
	timeout 20 "$RECORDER" events \
		--live "usdt:$python:python:gc__start;FieldFilter=Arg1=1;Stack=true" --rows 1 \
		--json >usdt.json 2>err & live=$!
	while kill -0 $live 2>/dev/null; do "$python" -c 'import gc; gc.collect(1)'; sleep 0.1; done
	check a_probe_of_a_program_is_seen_with_its_argument jq -e '.fields.Arg1 == 1' usdt.json

	recording a_collection_of_python_fires '/StopOnGen2GC' --process "$(basename "$python")"
	fires a_collection_of_python_fires "GC of generation 2 of python" "$python" \
		-c 'import gc; gc.collect(1); gc.collect()'
fi
node=/usr/bin/node
if [ ! -x $node ] || ! nm "$node" 2>/dev/null |
		grep -q 'T _ZN2v88internal4Heap24PerformGarbageCollection'; then
	echo "skip a_collection_of_node_fires: no node with a table of symbols"
else
	recording a_collection_of_node_fires /StopOnGCOverMsec:0.01 --process node
	fires a_collection_of_node_fires 'GC of node .* took [0-9.]+ ms' \
		"$node" --expose-gc -e 'gc()'
fi

# Debian's node is a small program with V8 in a library; this one collects for 20 ms at a time.
cat >v8.c <<'END'
#include <unistd.h>
void _ZN2v88internal4Heap24PerformGarbageCollectionEv(void *heap, int collector) { usleep(20000); }
END
cat >node.c <<'END'
#include <unistd.h>
void _ZN2v88internal4Heap24PerformGarbageCollectionEv(void *heap, int collector);
int main(void)
{
	for (int i = 0; i < 300; i++) {
		_ZN2v88internal4Heap24PerformGarbageCollectionEv(0, 1);
		usleep(80000);
	}
}
END
gcc -s -shared -fPIC -o libnode.so.1 v8.c && gcc -s -o nodejs node.c ./libnode.so.1
./nodejs & nodejs=$!
recording a_library_of_node '/StopOnGCOverMsec:5;Process=nodejs'
wait $collect
check a_collection_of_a_node_in_a_library_fires \
	grep -qE 'fired: GC of nodejs .* took [0-9.]+ ms.*generation 2' a_library_of_node.log
kill $nodejs
wait $nodejs 2>/dev/null

# The cost of an event without a limit of its own is bounded and reported.
timeout 20 "$RECORDER" collect --store flood.db --max-collect-sec 2 \
	'/StopOnEvent:raw_syscalls/sys_enter;FieldFilter=args0=123456789' 2>flood.log &
collect=$!
wait_for 10 grep -q recording flood.log
timeout 3 dd if=/dev/zero of=/dev/null bs=1 2>dd.err
wait $collect
check what_happens_too_often_is_switched_off_and_said \
	grep -q 'raw_syscalls/sys_enter happened more than 10000 times' flood.log

# ---- one quiet program beside many that call the same function all the time ----------------------

cat >calls.c <<'END'
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) int called(int n) { __asm__ volatile("" : "+r"(n)); return n; }
int main(int n, char **a)
{
	struct timespec t = {0, 2000000};
	int i;

	for (i = 0; n < 2 || i < atoi(a[1]); i++)
		if (called(n < 2 ? 1 : i) >= 0 && n > 1)
			nanosleep(&t, 0);
	return 0;
}
END
gcc -O1 -o loud calls.c && ln -f loud quiet
loud=
for i in 1 2 3 4 5 6; do timeout 100 ./loud & loud="$loud $!"; done
# counted FILTER: how often the function is called as the recorder sees it, while quiet calls it 900
# times in 3 runs, and the loud ones as often as they can
counted()
{
	"$RECORDER" events --live "uprobe:$PWD/loud:called;$1" --count --seconds 25 \
		>counted 2>counted.err & live=$!
	sleep 3
	for i in 1 2 3; do ./quiet 300; done
	sleep 1
	kill -INT $live
	wait $live
	awk '{ print $1 }' counted
}
is_counted() { [ "$(counted "$1")" = "$2" ] && ! grep -qE 'lost|too often' counted.err; }
if unshare -pf --mount-proc true 2>/dev/null; then
	check a_quiet_process_is_counted_exactly is_counted 'Process=quiet' 900
	check so_are_calls_whose_fields_pass is_counted 'Process=quiet;FieldFilter=Arg1>=200' 300
	timeout 20 unshare -pf --mount-proc "$RECORDER" events --count --seconds 3 \
		--live "uprobe:$PWD/loud:called;Process=quiet" >nested 2>nested.err
	check where_the_kernel_cannot_filter_that_is_said \
		grep -q 'so calls of all processes reach the recorder' nested.err
fi
kill $loud
wait $loud 2>/dev/null

# ---- what there is, and as it comes --------------------------------------------------------------

check tracepoints_are_listed_with_their_fields eval \
	'"$RECORDER" events sched_process_exit | grep -q "^sched/sched_process_exit  comm pid prio"'
check as_objects_with_types eval '"$RECORDER" events --json mark_victim |
	jq -e ".provider == \"oom\" and .fields[0] == {name: \"pid\", type: \"signed\"}"'
check what_is_not_there_is_said expect_exit 3 "$RECORDER" events no_such_event
check providers_are_counted eval '"$RECORDER" events --count sched/ --json |
	jq -e ".count == $("$RECORDER" events sched/ | grep -c ^sched/)"'
timeout 20 "$RECORDER" events \
	--live 'sched/sched_process_exec;FieldFilter=filename~/probed$' --rows 2 \
	--seconds 15 --json >live.json 2>live.err & live=$!
while kill -0 $live 2>/dev/null; do ./probed; sleep 0.1; done
wait $live
check live_events_are_printed_as_they_come eval 'test $? -eq 0 && jq -es "length == 2 and
	all(.name == \"sched_process_exec\" and .process == \"probed\" and
		.fields.pid == .pid)" live.json'

# ---- what is refused -----------------------------------------------------------------------------

# refused RULE SENTENCE
refused()
{
	"$RECORDER" check "$1" >refused.out 2>&1
	[ $? -eq 2 ] && grep -q "$2" refused.out
}
check a_tracepoint_that_is_not_there_is_refused refused /StopOnEvent:sched/sched_proces_exit \
	'the nearest are sched/sched_process_exit'
check nor_is_its_provider refused /StopOnEvent:shed/sched_process_exit 'the nearest are sched'
check a_field_that_it_does_not_have_is_refused \
	refused '/StopOnEvent:sched/sched_process_exit;FieldFilter=prioo=3' \
	"sched_process_exit has no field 'prioo'; the nearest are prio; it has comm, pid, prio"
check a_number_that_is_to_be_a_text_is_refused \
	refused '/StopOnEvent:sched/sched_process_exit;FieldFilter=pid=abc' \
	"'pid' is a number, and never equals 'abc'"
check nor_can_a_number_be_over_a_text \
	refused '/StopOnEvent:sched:sched_process_exit;FieldFilter=pid>1M' \
	"'pid' is a number, and '1M' is none"
check a_name_is_not_a_path refused /StopOnEvent:sched/../../../etc 'this kernel has no tracepoint'
check a_function_that_is_not_there_is_refused \
	refused "/StopOnEvent:uprobe:$PWD/probed:mian" 'the nearest are main'
check nor_is_a_file_that_is_no_program \
	refused "/StopOnEvent:uprobe:$PWD/probed.c:main" 'cannot put a probe into'
check a_program_without_probes_is_refused \
	refused "/StopOnEvent:usdt:$PWD/probed:x:y" 'has no probes of its own'
# In a namespace of its own: other scripts, and the machine's owner, use the one that is there.
cat >without.sh <<'SH'
umount /sys/kernel/tracing && [ ! -d /sys/kernel/tracing/events ] || exit 9
"$RECORDER" check /StopOnEvent:sched/sched_process_exit
SH
unshare -m sh without.sh >without.out 2>&1
[ $? = 9 ] ||
	check without_tracefs_that_is_what_it_says grep -q 'tracefs is not mounted' without.out
