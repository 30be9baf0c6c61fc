#!/bin/bash
# Heap profiles that jemalloc and tcmalloc wrote themselves: what is in use, what was allocated, and
# by whom, against the program's own count.
. "$TOP/tests/support/cli.sh"
gcc -O2 -g -D_GNU_SOURCE -pthread -o heap "$TOP/tests/programs/heap_linux.c" || exit 1

# Whether NAME.report has of a function what NAME.told has, give or take one part in so many.
agrees()                                 # NAME FUNCTION in_use|allocated PARTS
{
	jq -ne --slurpfile told "$1.told" --slurpfile report "$1.report" --arg name "$2" \
		--arg which "$3" --argjson part "$4" '
		{in_use: "heap_function", allocated: "heap_allocated_function"}[$which] as $row |
		($told | map(select(.function == $name)[$which]) | add) as $want |
		($report | map(select(.row == $row and .name == "heap!" + $name).mb) |
			add * 1048576) as $have |
		($have - $want | fabs) <= $want / $part'
}

read_profile()                           # NAME FILE: into NAME.db and NAME.report
{
	"$RECORDER" collect --from "$2" --store "$1.db" 2>"$1.log"
	"$RECORDER" report --store "$1.db" --memory --json >"$1.report" 2>>"$1.log"
}

jemalloc=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)
LD_PRELOAD=$jemalloc MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:14,prof_prefix:je \
	./heap 400000 </dev/null >je.told 2>err
if [ -e je.*.heap ]; then
	read_profile je je.*.heap
	# 25 MB of blocks of 500 bytes are 1,500 samples, and 23 MB of 64 KB are all but a few: 3 %
	# or so.
	for function in keep_some grow; do
		check "in_use_is_what_the_program_counts: $function" agrees je $function in_use 8
	done
	check what_comes_and_goes_is_not_there expect_exit 1 grep -q come_and_go je.report
	check callers_are_named grep -q 'heap!keep_some < heap!main < ' je.report
	check nothing_is_said_of_what_was_allocated jq -se 'map(select(.row == "memory"))[0] |
		.heap_allocated_mb == 0 and (.process | startswith("heap"))' je.report
else
	echo "skip jemalloc: no jemalloc with profiles here (libjemalloc2)"
fi

tcmalloc=$(ls /usr/lib/*/libtcmalloc.so.4 2>/dev/null | head -n 1)
LD_PRELOAD=$tcmalloc HEAPPROFILE=$PWD/tc ./heap 400000 </dev/null >tc.told 2>err
if [ -e tc.0001.heap ]; then
	read_profile tc tc.0001.heap
	# Its profile counts each block, also 2 % of come_and_go before the program counts, and what
	# aligned_alloc adds to a size.
	for function in keep_some grow; do
		check "tcmalloc_in_use_is_what_the_program_counts: $function" \
			agrees tc $function in_use 100
	done
	for function in keep_some grow come_and_go; do
		check "tcmalloc_allocated_is_what_the_program_counts: $function" \
			agrees tc $function allocated 12
	done
	check tcmalloc_knows_what_comes_and_goes_is_not_there jq -se \
		'any(.row == "heap_function" and .name == "heap!come_and_go") | not' tc.report
	check callers_are_named grep -q 'heap!keep_some < heap!main < ' tc.report
else
	echo "skip tcmalloc: no tcmalloc with profiles here (libgoogle-perftools4)"
fi

# Another file of that name, by now: names would be wrong, so there are none.
rm heap && cp /bin/true heap
for profile in je tc; do
	[ -e $profile.db ] || continue
	"$RECORDER" collect --from $profile.*.heap --store other.$profile.db 2>>$profile.log
	check a_file_that_was_replaced_gives_no_names expect_exit 1 grep 'heap!keep_some' \
		<("$RECORDER" report --store other.$profile.db --memory 2>/dev/null)
done

says()                                   # WORDS: those that reading the profile of stdin prints
{
	cat >hostile.heap
	"$RECORDER" collect --from hostile.heap --store x.db 2>&1 | grep -q "$1"
}
maps='MAPPED_LIBRARIES:\n1000-2000 r-xp 00000000 00:00 7 /x\n'
check one_without_stacks_is_said says 'has no stack' \
	< <(printf "heap_v2/524288\n  t*: 1: 2 [0: 0]\n\n$maps")
check one_that_is_cut_is_said says 'no MAPPED_LIBRARIES' \
	< <(printf 'heap profile: 1: 8 [1: 8] @ heapprofile\n1: 8 [1: 8] @ 0x1010\n')
check growth_of_tcmalloc_is_no_heap says "of the kind 'growthz'" \
	< <(printf "heap profile: 1: 8 [1: 8] @ growthz\n1: 8 [1: 8] @ 0x1010\n\n$maps")
check what_google_pprof_printed_is_said says 'printed: give the profile that it had read' \
	< <(printf -- '--- symbol\nbinary=./shop\n0x1010 main\n---\n--- profile\n\0\0\0\0')
check a_cpu_profile_of_gperftools_is_said says "go tool pprof -proto" \
	< <(printf '\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0')
