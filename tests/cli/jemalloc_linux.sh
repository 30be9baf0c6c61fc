#!/bin/bash
# A heap profile that jemalloc wrote itself: what is in use, and by whom, against the program's own
# count.
. "$TOP/tests/support/cli.sh"
jemalloc=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)
gcc -O2 -g -D_GNU_SOURCE -pthread -o heap "$TOP/tests/programs/heap_linux.c" || exit 1
LD_PRELOAD=$jemalloc MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:14,prof_prefix:own \
	./heap 400000 </dev/null >told 2>err
if [ ! -e own.*.heap ]; then
	echo "skip jemalloc: no jemalloc with profiles here (libjemalloc2)"
	exit 0
fi
"$RECORDER" collect --from own.*.heap --store own.db 2>log
"$RECORDER" report --store own.db --memory --json >report 2>>log
# 25 MB of blocks of 500 bytes are 1,500 samples, and 23 MB of 64 KB are all but a few: 3 % or so.
for function in keep_some grow; do
	check "in_use_is_what_the_program_counts: $function" jq -ne --slurpfile told told \
		--slurpfile report report --arg name $function '
		($told | map(select(.function == $name).in_use) | add) as $want |
		($report | map(select(.row == "heap_function" and .name == "heap!" + $name).mb) |
			add * 1048576) as $have |
		($have - $want | fabs) < $want / 8'
done
check what_comes_and_goes_is_not_there expect_exit 1 grep -q come_and_go report
check callers_are_named grep -q 'heap!keep_some < heap!main < ' report
check nothing_is_said_of_what_was_allocated jq -se 'map(select(.row == "memory"))[0] |
	.heap_allocated_mb == 0 and (.process | startswith("heap"))' report

# Another file of that name, by now: names would be wrong, so there are none.
rm heap && cp /bin/true heap
"$RECORDER" collect --from own.*.heap --store other.db 2>>log
check a_file_that_was_replaced_gives_no_names expect_exit 1 grep 'heap!keep_some' \
	<("$RECORDER" report --store other.db --memory 2>/dev/null)
printf 'heap_v2/524288\n  t*: 1: 2 [0: 0]\n' >empty.heap
check one_without_stacks_is_said grep -q 'has no stack' \
	<("$RECORDER" collect --from empty.heap --store x.db 2>&1)
