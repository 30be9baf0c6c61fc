#!/bin/bash
# run --heap: what a program has allocated and not freed, and by whom, against its own count.
# time limit: 400
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

LIBRARY=$BUILD/librecorder-heap.so
gcc -O2 -g -D_GNU_SOURCE -pthread -o heap "$TOP/tests/programs/heap_linux.c" || exit 1

# bytes FUNCTION: that the incident says are in use
bytes()
{
	"$RECORDER" report --store "$store" --memory --json 2>/dev/null | jq -s \
		"map(select(.row == \"heap_function\" and (.name | endswith(\"!$1\"))).mb) |
		(add // 0) * 1048576"
}
# truth KEY FUNCTION
truth() { jq -r "select(.function == \"$2\").$1" told; }
# within VALUE WANT PERCENT
within()
{
	awk -v v="$1" -v w="$2" -v p="$3" 'BEGIN { printf "%.0f of %.0f bytes\n", v, w
		d = v - w; exit !((d < 0 ? -d : d) <= w * p / 100) }'
}

# Ten million calls, 600 MB in use by each: 10,000 samples, right within 1 % or so.
for how in one threads; do
	store=$how.db
	for try in 1 2 3; do
		rm -f $store
		"$RECORDER" run --heap --heap-kb 64 --store $store ./heap 10000000 $how \
			</dev/null >out 2>log
		# Beside a load of 50 the recorder does not keep up.
		lost=$("$RECORDER" show --store $store --json 2>/dev/null | jq '.lost // 0')
		[ "$lost" -gt 100 ] || break
		echo "try $try: $lost events were lost"
	done
	grep '^{"function' out >told
	for function in keep_some grow; do
		check "${how}_in_use_is_within_3_percent: $function" \
			within "$(bytes $function)" "$(truth in_use $function)" 3
	done
	check "${how}_what_is_freed_is_not_in_use" within "$(bytes come_and_go)" 0 0
	check "${how}_allocated_is_within_3_percent" within "$("$RECORDER" report --store $store \
		--memory --json 2>/dev/null | jq 'select(.row == "memory" and
		.heap_allocated_mb > 100).heap_allocated_mb * 1048576')" \
		"$(jq -s 'map(.allocated) | add' told)" 3
done

# Each in a process that was forked, without exec.
"$RECORDER" run --heap --heap-kb 64 --store forks.db ./heap 1000000 forks </dev/null >out 2>log
grep '^{"function' out >told
store=forks.db
for function in keep_some grow; do
	check "forked_in_use_is_within_10_percent: $function" \
		within "$(bytes $function)" "$(truth in_use $function)" 10
done
check what_a_child_frees_is_not_in_use within "$(bytes come_and_go)" 0 0

# The ring that the program shares with the recorder, and what it may write there.
gcc -O1 -w -D_GNU_SOURCE -iquote "$TOP" -o mistakes "$TOP/tests/programs/heap_mistakes_linux.c" ||
	exit 1
"$RECORDER" run --heap --store ring.db ./mistakes ring </dev/null >out 2>log
check samples_go_by_the_ring test "$(grep -xE '[0-9]+' out)" -gt 10000
check there_is_none_without_a_recorder test "$(LD_PRELOAD=$LIBRARY ./mistakes ring)" = none
check another_programs_number_is_not_taken_for_it test "$(LD_PRELOAD=$LIBRARY \
	RECORDER_HEAP_RING=/proc/$$/fd/0:1234 ./heap 10 </dev/null | wc -l)" = 3
"$RECORDER" run --heap --store noise.db ./mistakes noise </dev/null >out 2>log
check it_cannot_be_made_shorter expect_exit 1 grep -q 'became shorter' out
check noise_is_counted_as_lost jq -e '.lost > 0' \
	<("$RECORDER" show --store noise.db --json 2>/dev/null)
store=noise.db
check what_was_there_before_is_right within "$(bytes keep_before)" $((64 << 20)) 40
check nothing_of_the_noise_is_a_sample jq -se 'map(select(.row == "memory" and
	.heap_allocated_mb > 0).process) | all(startswith("mistakes "))' \
	<("$RECORDER" report --store noise.db --memory --json 2>/dev/null)

# The streams in exports and reports.
check heap_has_what_was_freed grep -q '!come_and_go' \
	<("$RECORDER" report --store one.db --metric heap --by-name 2>/dev/null)
check heap_net_has_not expect_exit 1 grep -q '!come_and_go' \
	<("$RECORDER" report --store one.db --metric heap-net --by-name 2>/dev/null)
check folded_stacks_are_in_bytes grep -qE 'keep_some.* [0-9]{6,}$' \
	<("$RECORDER" export --store one.db --metric heap-net -f 2>/dev/null)
check report_tells_the_rate grep -q 'MB allocated (.* MB/s), of these .* not freed' \
	<("$RECORDER" report --store one.db --memory 2>/dev/null)

# Programs of all kinds go on as before; a shell's children inherit it.
echo 'echo 6 | sed s/6/42/ | cat' >child.sh
for program in "python3 -c print(6*7)" "perl -e print(6*7)" "sh child.sh"; do
	check "works_as_before: $program" test "$(LD_PRELOAD=$LIBRARY $program 2>&1)" = 42
done
check the_library_has_the_probes_of_the_contract grep -q 'otel_memory:alloc' \
	<("$RECORDER" events "$LIBRARY")

# A daemon that was started with it, recorded later.
sleep 8 | LD_PRELOAD=$LIBRARY RECORDER_HEAP_BYTES=32768 ./heap 4000000 >told & program=$!
"$RECORDER" collect --heap --store later.db --history-mb 0 --max-collect-sec 6 >log 2>&1
wait $program
store=later.db
check a_program_that_runs_already_is_sampled jq -ne "$(bytes keep_some) > 1000000"

# Who allocated most, and how long it lived: come_and_go frees at once.
check report_tells_the_rate_and_lifetime_of_each jq -se 'map(select(
	.row == "heap_allocated_function" and (.name | endswith("!come_and_go")))) |
	.[0].mb_s > 1 and .[0].freed_mb == .[0].mb and .[0].life_ms < 100' \
	<("$RECORDER" report --store one.db --memory --json 2>/dev/null)

# --heap-next: in a /etc and a /run of its own, so that no other program of this machine loads it.
# It goes on beside what follows.
cat >next.sh <<'END'
mkdir etc && cp -a /etc/. etc && mount --bind etc /etc && mount -t tmpfs none /run || exit 77
cp heap meant
cp heap unmeant
: >next.log
"$RECORDER" collect --heap-next meant --heap-kb 64 --store next.db --history-mb 0 \
	--max-collect-sec 12 >next.log 2>&1 & recorder=$!
while kill -0 $recorder && ! grep -q 'recording this machine' next.log; do sleep 0.1; done
cp /etc/ld.so.preload during
# They are there until it ends: of a process that has ended long before, nothing is in use.
sleep 15 | ./meant 400000 >/dev/null &
sleep 15 | ./unmeant 400000 >/dev/null &
wait $recorder
[ -e /etc/ld.so.preload ] && touch left
"$RECORDER" collect --heap-next meant --store killed.db --history-mb 0 >next.log 2>&1 & recorder=$!
while kill -0 $recorder && ! [ -e /etc/ld.so.preload ]; do sleep 0.1; done
kill -9 $recorder
for i in $(seq 100); do [ -e /etc/ld.so.preload ] || exit 0; sleep 0.1; done
touch left_after_kill
END
export RECORDER
unshare -m bash next.sh & next=$!

# Frees that are mistakes, with both stacks. The C library ends the program, as without the library.
mistakes()
{
	rm -f m.db
	"$RECORDER" run --heap --heap-kb 0 --store m.db ./mistakes "$1" >out 2>&1
	"$RECORDER" report --store m.db --memory --json 2>/dev/null
}
mistakes again >told
for what in "freed again:free_again" "freed first:free_first" allocated:allocate_it; do
	check "a_double_free_has_the_stack_of: ${what%:*}" jq -se "any(.row == \"double_free\" and
		.what == \"${what%:*}\" and (.name | startswith(\"mistakes!${what#*:}\")))" told
done
mistakes unknown >told
check a_free_of_an_unknown_block_has_its_stack jq -se 'any(.row == "unknown_free" and
	(.name | startswith("mistakes!free_unknown")))' told
check nothing_else_is_a_mistake jq -se 'map(select(.row == "double_free")) == []' told
check report_says_it_in_words grep -q 'which no allocation had given' \
	<("$RECORDER" report --store m.db --memory 2>/dev/null)

cat >calloc.c <<'END'
#include <stdio.h>
#include <stdlib.h>
int main(void) { volatile size_t n = (size_t)1 << 33; puts(calloc(n, n) ? "wrong" : "none"); }
END
gcc -O0 -w -o calloc calloc.c
check calloc_sees_an_overflow test "$(LD_PRELOAD=$LIBRARY ./calloc)" = none

# A process that runs without the library.
cp heap without
sleep 30 | timeout 30 ./without 1000 >/dev/null &
wait_for 20 pgrep -x without >/dev/null
timeout -s INT 3 "$RECORDER" run --heap --store x.db -p "$(pgrep -n -x without)" >out 2>log
check page_faults_tell_of_one_that_runs_without_it grep -q 'its page faults tell' log
check it_says_what_probes_would_cost grep -q '0.5 us a call' log
# With --force its malloc is probed.
cp "$(readlink -f "$(command -v bash)")" allocates
./allocates -c 'for ((i = 0; i < 20000000 && SECONDS < 30; i++)); do :; done' & pid=$!
timeout -s INT 6 "$RECORDER" run --heap --force --store forced.db -p $pid >out 2>log
kill $pid
check forced_probes_say_what_they_cost grep -q 'each call takes 0.5 us longer' log
check they_have_the_stacks_of_malloc grep -q 'allocates!' \
	<("$RECORDER" report --store forced.db --metric event --by-name 2>/dev/null)
check not_of_a_process_that_is_not_there expect_exit 3 \
	"$RECORDER" run --heap --store x.db -p 4194304

wait $next
if [ $? = 77 ]; then
	echo "skip heap_linux: --heap-next needs a mount namespace"
else
	store=next.db
	check next_programs_of_that_name_are_sampled jq -ne "$(bytes keep_some) > 1000000"
	# Another test of this machine may use the library meanwhile.
	check others_are_not jq -se 'map(select(.row == "memory" and .heap_allocated_mb > 0)) |
		map(.process) | any(startswith("meant ")) and all(startswith("unmeant ") | not)' \
		<("$RECORDER" report --store next.db --memory --json 2>/dev/null)
	check the_line_was_there grep -q 'meant@65536/librecorder-heap.so' during
	check the_line_goes_at_the_end test ! -e left
	check the_line_goes_after_a_kill test ! -e left_after_kill
fi

# Who asked the system for memory: what comes and goes is in vm, and not in vm-net.
gcc -O2 -D_GNU_SOURCE -pthread -o grow "$TOP/tests/programs/grow_linux.c" || exit 1
cat >asks.sh <<'END'
sleep 40 | ./grow large 100 3 >/dev/null & grow=$!
! command -v python3 >/dev/null || python3 -c 'import mmap, time
for i in range(16):
    m = mmap.mmap(-1, 1 << 20)
    m.madvise(mmap.MADV_DONTNEED)
    time.sleep(0.2)'
# It has grown when it waits for its input, and lives on after the recording.
for i in $(seq 600); do grep -q '^0 0x0 ' /proc/$grow/syscall && break; sleep 0.1; done
END
cp /bin/true outsider
while sleep 0.1; do ./outsider; done & outsiders=$!
for try in 1 2 3; do
	rm -rf vm.db*
	"$RECORDER" collect --event kernel:VirtualAlloc --store vm.db --history-mb 0 -- \
		sh asks.sh </dev/null >out 2>log
	# Samples that are lost are none of these calls.
	lost=$("$RECORDER" show --store vm.db --json 2>/dev/null |
		jq '.lost_by_reason | .events + .queue + .flood')
	[ "$lost" != 0 ] || break
	echo "try $try: $lost events were lost"
done
kill $outsiders
vm() { "$RECORDER" report --store vm.db --process grow --metric "$1" --by-name 2>/dev/null; }
check calls_of_other_programs_are_left_out expect_exit 1 grep -q '^outsider' \
	<("$RECORDER" export --store vm.db --metric event -f 2>/dev/null)
if [ "$lost" != 0 ]; then
	check losses_make_it_an_estimate grep -q '^An estimate: ' \
		<("$RECORDER" report --store vm.db --metric vm 2>/dev/null)
	echo "skip heap_linux: $lost events were lost, as others start many programs"
	exit
fi
! command -v python3 >/dev/null || check madvise_has_its_stack grep -q sys_enter_madvise \
	<("$RECORDER" report --store vm.db --process python3 --metric event --by-name 2>/dev/null)
check memory_asked_for_is_told grep -q '!grow_seventy' <(vm vm)
check the_peak_has_it_too grep -q '!grow_seventy' <(vm vm-peak)
check what_is_kept_is_in_vm_net grep -q '!grow_seventy' <(vm vm-net)
check what_came_and_went_is_not expect_exit 1 grep -q '!come_and_go' <(vm vm-net)
