#!/bin/bash
# Events that --providers asks for are recorded without a rule: tracepoints by name and by pattern,
# probes in a program with stacks, and what exceeds the ceiling of a second is counted.
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

cat >calls.c <<'END'
#include <stdlib.h>
#include <time.h>
__attribute__((noinline)) void called(long i) { __asm__ volatile("" :: "r"(i)); }
__attribute__((noinline)) void caller(long n) { while (n--) called(n); __asm__ volatile(""); }
int main(int n, char **a)
{
	struct timespec t = {0, 10000000};
	int rounds;

	for (rounds = n > 2 ? atoi(a[2]) : 1; rounds--; nanosleep(&t, 0))
		caller(atoi(a[1]));
	return 0;
}
END
gcc -O1 -o calls calls.c
cp calls other

# record LIST COMMAND...: run the command while these providers are recorded, into events.jsonl
record()
{
	local list=$1
	shift
	rm -rf asked.db*
	timeout 60 "$RECORDER" collect --store asked.db --max-cpu-percent 0 \
		--only-providers "$list" 2>asked.log & collect=$!
	wait_for 20 grep -q 'recording this machine' asked.log
	sleep 0.3                            # beside other load an event of the first ms is missed
	"$@" >/dev/null 2>&1
	sleep 0.2
	"$RECORDER" stop --store asked.db >/dev/null 2>&1
	wait $collect
	"$RECORDER" export --store asked.db --format jsonl --force -o events.jsonl 2>err
}

run_both() { ./calls 3 2; ./other 4 1; }

record "uprobe:$PWD/calls:called:@StacksEnabled=true" run_both
check each_call_is_an_event eval 'jq -es "[.[] | select(.provider == \"uprobe\")] | length == 6 and
	all(.process == \"calls\" and .kind == \"event\")" events.jsonl'
"$RECORDER" export --store asked.db --metric event -f -o folded 2>err
check with_the_stack_of_its_caller \
	grep -qE '^calls.*calls!main;calls!caller;calls!called;event!uprobe:[^;]*called 6$' folded

record "uprobe:$PWD/calls:called:@ProcessNameFilter=another" ./calls 3 1
check calls_of_other_processes_are_left_out eval \
	'! grep -q "\"provider\":\"uprobe\"" events.jsonl'

record 'sched:sched_process_e*' ./calls 1 1
# Prints what there is, for when it fails.
both_events()
{
	jq -c 'select(.provider == "sched") | [.t_ms, .name, .process]' events.jsonl | tail -n 20
	tail -n 2 asked.log
	jq -es '[.[] | select(.provider == "sched" and .process == "calls") | .name] |
		contains(["sched_process_exec", "sched_process_exit"])' events.jsonl
}
check a_pattern_means_several_tracepoints both_events

# 40,002 calls, of which some thousand are kept: kept and lost are all, but for the moments of
# switching.
# What a full ring dropped is told with the next event.
many() { ./calls 200 200; sleep 1.2; ./calls 1 2; }
record "uprobe:$PWD/calls:called" many
check what_exceeds_the_ceiling_is_said grep -q 'more than 1000 times in a second' asked.log
kept=$(grep -c '"provider":"uprobe"' events.jsonl)
lost=$(sed -n 's/.* stored: .*, \([0-9]*\) lost.*/\1/p' asked.log)
left=$(sed -n 's/.* stored: .* lost, \([0-9]*\) events of floods.*/\1/p' asked.log)
all_counted()
{
	echo "$kept kept, $lost lost, ${left:-0} of floods"
	[ $((kept + lost + ${left:-0})) -ge 39000 ] && [ $((kept + lost + ${left:-0})) -le 41000 ]
}
check and_counted all_counted

check what_is_not_there_is_refused expect_exit 2 "$RECORDER" collect --store no.db \
	--providers sched:sched_proces_exit
check nor_is_a_pattern_that_means_nothing expect_exit 2 "$RECORDER" check \
	--providers 'sched:xyz*'
check kernel_and_a_keyword_are_short_for_it "$RECORDER" check -e kernel:ContextSwitch
