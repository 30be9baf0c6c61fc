#!/bin/bash
# run --heap: what a program has allocated and not freed, and by whom, against its own count.
# time limit: 240
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

check not_of_one_that_runs_without_it expect_exit 2 \
	"$RECORDER" run --heap --store x.db -p $$
"$RECORDER" run --heap --store x.db -p $$ 2>log
check it_says_what_else_there_is grep -q -- '--memory-period 61' log
