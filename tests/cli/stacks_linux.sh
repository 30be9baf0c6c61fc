#!/bin/bash
# Stacks of awkward shapes, recorded for real: a throw, a signal handler, assembly, 32 bits, 24 and
# 200 KiB.
# time limit: 240
. "$TOP/tests/support/cli.sh"
need_perf

# All programs run at once, in one recording: NAME -> pid.
declare -A pids
start()
{
	local name=$1
	shift
	"$@" >/dev/null 2>&1 & pids[$name]=$!
}
recorder= id=1
trap 'kill "${pids[@]}" $recorder 2>/dev/null' EXIT

# look NAME: write this program's stacks to out.folded, with frames named "module!function".
look()
{
	looked_at=$1
	"$RECORDER" show --store s.db --id "$id" --from "$from" \
		--process "${pids[$1]}" --json >show.json 2>err
	"$RECORDER" export --store s.db --id "$id" --from "$from" --process "${pids[$1]}" \
		--no-ids -f >out.folded 2>>err
}

# at_least PERCENT PATTERN: there are 30 samples or more, and PERCENT of them match
at_least()
{
	awk -v p="$2" -v want="$1" '{ n += $NF } $0 ~ p { hits += $NF }
		END { printf "%d of %d samples match, expected are %s %%\n", hits, n, want
			exit !(n >= 30 && 100 * hits >= want * n) }' out.folded && return
	head -n 5 out.folded
	cat show.json err log "/proc/${pids[$looked_at]}/status"
	return 1
}

# rooted PERCENT: at least that many stacks reach their root
rooted()
{
	jq -e --argjson want "$1" '.samples >= 30 and (.stack_quality as $q |
		100 * ($q.complete + $q.stitched + $q.remote) / .samples >= $want)' show.json &&
		return
	cat show.json
	return 1
}

# within_copy PERCENT: at least that many reach it with the stack copy of the sample alone
within_copy()
{
	jq -e --argjson want "$1" \
		'.samples >= 30 and 100 * .stack_quality.complete / .samples >= $want' \
		show.json && return
	cat show.json
	return 1
}

gcc -O2 -fomit-frame-pointer -w -pthread -o shapes "$TOP/tests/programs/shapes_linux.c" || exit 1
if why_no_shapes32=$(gcc -m32 -O2 -fomit-frame-pointer -w -pthread -o shapes32 \
		"$TOP/tests/programs/shapes_linux.c" 2>&1); then
	why_no_shapes32="this kernel runs no 32-bit programs"
	./shapes32 brief 10 && start handler32 ./shapes32 handler 200 &&
		start calls32 ./shapes32 calls 200
fi
start handler ./shapes handler 200
start deep ./shapes deep 100 200
start kib24 ./shapes deep 12 200

why_no_throw="g++ is not installed"
command -v g++ >/dev/null &&
	why_no_throw=$(g++ -O2 -o throw50 "$TOP/tests/programs/throw50.cc" 2>&1) &&
	start throw50 ./throw50 200

command -v openssl >/dev/null && for what in sha256 aes-256-gcm; do
	start $what openssl speed -seconds 200 -evp $what
done

# Freestanding, so that no 32-bit libraries are needed.
cat >bits32.c <<'C'
__attribute__((noinline)) static void bits_spin(void)
{
	for (volatile unsigned i = 0; i < 1000000; i++) ;
}
__attribute__((noinline)) static void bits_caller(void)
{
	for (;;) { bits_spin(); __asm__ volatile(""); }
}
void _start(void) { bits_caller(); __builtin_unreachable(); }
C
if why_no_32=$(gcc -m32 -nostdlib -static -ffreestanding -fno-pie -no-pie -O1 \
		-fno-omit-frame-pointer -o bits32 bits32.c 2>&1); then
	why_no_32="this kernel runs no 32-bit programs"
	timeout 0.1 ./bits32
	[ $? != 124 ] || start bits32 ./bits32
fi

# Wait by CPU time, because the machine may be loaded: 200 samples of each program after its unwind
# tables are loaded.
"$RECORDER" collect --store s.db --freq 499 --max-cpu-percent 0 --pre-sec 200 \
	/DelayAfterTriggerSec:0 2>log & recorder=$!
wait_for 20 "$RECORDER" status --store s.db
all_burn 100 "${pids[@]}"
from=$EPOCHREALTIME
check it_records_them_all all_burn 400 "${pids[@]}"
from=-$(awk -v from="$from" -v to="$EPOCHREALTIME" 'BEGIN { print to - from }')
"$RECORDER" stop --store s.db >/dev/null 2>>err
wait $recorder
check and_ends_well test $? -eq 0

look handler
check a_handlers_stack_goes_on_in_the_leaf_it_interrupted \
	at_least 15 \
	'shapes!main;(shapes!handler;)?shapes!leaf_spin;[^;]*;shapes!on_alarm;shapes!handler_spin'
check the_leafs_stack_goes_on_to_main \
	at_least 95 '_start;.*shapes!main;(shapes!handler;)?shapes!leaf_spin'
check stacks_with_a_handler_are_complete rooted 97

if [ "${pids[calls32]:-}" ]; then
	leaf='shapes32!main;(shapes32!handler;)?shapes32!leaf_spin'
	look handler32
	check a_32_bit_programs_handler_goes_on_in_its_leaf at_least 15 \
		"$leaf;[^;]*;shapes32!on_alarm;shapes32!handler_spin"
	check and_its_leaf_to_the_start at_least 95 "_start;.*$leaf"
	check without_frame_pointers_too rooted 97
	look calls32
	# The library's own call of the kernel is in the vDSO.
	check a_32_bit_programs_system_calls_have_their_callers at_least 50 \
		'_start;.*shapes32!main;.*shapes32!call_once[^;]*;[^;]*;.vdso32.!__kernel_vsyscall'
	check and_are_complete rooted 97
else
	echo "skip a_32_bit_programs_stacks: $(head -n 1 <<<"$why_no_shapes32")"
fi

look kib24
check a_stack_24_kib_deep_is_complete_without_reading_more within_copy 97

look deep
check a_stack_200_kib_deep_has_its_leaf at_least 95 'shapes!deep_spin'
check a_stack_200_kib_deep_has_its_start \
	at_least 90 'start_thread;shapes!deep_main;shapes!deep_down;.*shapes!deep_spin'
check nearly_all_of_them_reach_their_root rooted 90

if [ "${pids[throw50]:-}" ]; then
	look throw50
	check a_throw_through_50_frames_is_seen \
		at_least 80 'throw50!throw_below.*;throw50!throw_below.*Unwind_'
	check stacks_within_the_throw_are_complete rooted 97
else
	echo "skip stacks_within_the_throw_are_complete: $(head -n 1 <<<"$why_no_throw")"
fi

for what in sha256 aes-256-gcm; do
	if [ "${pids[$what]:-}" ]; then
		look $what
		check "assembly_of_openssl_${what//-/_}_is_complete" rooted 95
	else
		echo "skip assembly_of_openssl_${what//-/_}_is_complete: openssl is not installed"
	fi
done

if [ "${pids[bits32]:-}" ]; then
	# Once the kernel gave no bytes of this program's stack, and then no samples, in two
	# recordings in a row: another process has another stack.
	look bits32
	if ! at_least 90 'bits32!bits_caller;bits32!bits_spin' >first.out 2>&1; then
		sed 's/^/# /' first.out
		kill "${pids[bits32]}"
		start bits32 ./bits32
		"$RECORDER" collect --store s.db --freq 499 --max-cpu-percent 0 --pre-sec 200 \
			--max-collect-sec 3 2>log
		id=2 from=-3 look bits32
	fi
	check a_32_bit_process_has_its_module at_least 95 'bits32!'
	check and_its_functions at_least 90 'bits32!bits_caller;bits32!bits_spin'
else
	echo "skip a_32_bit_process_has_its_module: $(head -n 1 <<<"$why_no_32")"
fi
