# top: stacks of what happens now, from a recorder of its own and from the one that runs. Two
# programs share a CPU three to one or so; what each had is the kernel's word.
# shellcheck shell=bash
# alone: it looks at all that runs
. "$TOP/tests/support/cli.sh"
export RECORDER_STORE=$TMP/s.db
unset RECORDER_CONFIG
need_perf

cp "$TOP/build/linux/programs/burn" ./quick
cp "$TOP/build/linux/programs/burn" ./slow
taskset -c 0 ./quick 300 &
quick=$!
taskset -c 0 nice -n 5 ./slow 300 &
slow=$!
trap 'kill $quick $slow $recorder 2>/dev/null' EXIT
recorder=
all_burn 50 $quick $slow

# Sum the folded stacks of a process in the file out.
samples() { awk -v name="$1" 'index($0, name " (") == 1 { n += $NF } END { print n + 0 }' out; }

# What quick had of both, in percent: of the samples, and of the CPU time by the kernel.
share_is_right()
{
	local q=$(($(burnt $quick) - quick_from)) s=$(($(burnt $slow) - slow_from))
	awk -v a="$(samples quick)" -v b="$(samples slow)" -v q="$q" -v s="$s" 'BEGIN {
		if (a + b < 300) { print "only " a + b " samples"; exit 1 }
		got = 100 * a / (a + b); is = 100 * q / (q + s)
		print got " % of " a + b " samples, " is " % by the kernel"
		exit !(got - is < 3 && is - got < 3) }'
}

note_times() { quick_from=$(burnt $quick) slow_from=$(burnt $slow); }

HEAD='^ {2}[ 0-9]{10} \[.* [0-9]+\]$'
FRAME='^ {4}([^ ]+!.*\+0x[0-9A-F]+| {0,15}[0-9A-F]+|\[[a-z-]+\]|BROKEN)$'

# "10:47:58 AM", stacks, "Time aggregating/resolving" for each of N summaries, then the sum.
looks_like_livestacks() # N
{
	[ "$(grep -cE "$HEAD" out)" -ge "$1" ] || return 1
	! grep -vE -e "$HEAD" -e "$FRAME" -e '^$' out || return 1
	[ "$(grep -cE '^(1[0-2]|[1-9]):[0-5][0-9]:[0-5][0-9] [AP]M$' err)" = "$1" ] || return 1
	[ "$(grep -cE '^ {2}Time aggregating/resolving: [0-9]+ms$' err)" = "$1" ] || return 1
	grep -qE '^Total events seen: [0-9]+$' err
}

left_nothing()
{
	[ -z "$(find . -name 'top-*' -o -name '*.top.history')" ] && return
	find .
	return 1
}

# ---- a recorder of its own ---------------------------------------------------------------------

expect summaries_have_the_text_of_livestacks 0 . top -i 1 -c 3 -T 5
check times_stacks_and_costs_are_where_livestacks_has_them looks_like_livestacks 3
check at_most_five_stacks_each expect_exit 1 test "$(grep -cE "$HEAD" out)" -gt 15
note_times
expect stacks_can_be_folded 0 . top -i 4 -c 2 -f --freq 499 --max-cpu-percent 0
check shares_are_those_of_the_kernel share_is_right
expect one_process_by_number 0 . top -i 1 -c 1 -f -p $slow
check nothing_else_is_shown expect_exit 1 grep -v '^slow (' out
expect one_process_by_name 0 . top -i 1 -c 1 -f -P quick
check its_functions_have_names \
	grep -q '^quick ([0-9]*);.*quick!main+0x[0-9A-F]*;quick!burn_[a-z]*+0x' out
check kernel_frames_are_left_out expect_exit 1 grep -q 'kernel' out
"$RECORDER" top -T 1 >out 2>err &
top=$!
sleep 2
kill -INT $top
wait $top
check without_an_interval_it_prints_at_ctrl_c looks_like_livestacks 1
check it_leaves_nothing_behind left_nothing
check it_leaves_no_store expect_exit 1 test -e s.db

# ---- the recorder that runs --------------------------------------------------------------------

expect a_recorder_that_does_not_run_is_named 3 'no recorder is running' top -c 1 --source running
"$RECORDER" collect --freq 499 --max-cpu-percent 0 >log 2>&1 &
recorder=$!
wait_for 20 "$RECORDER" status
wait_for 20 grep -q 'recording this machine' log
note_times
expect the_running_recorder_is_read 0 . top -i 4 -c 2 -f
check its_shares_are_those_of_the_kernel share_is_right
expect it_has_the_same_text 0 . top -i 1 -c 2 -T 5 --source running
check of_the_same_form looks_like_livestacks 2
"$RECORDER" stop 2>/dev/null
wait $recorder
recorder=
check no_other_recorder_was_started expect_exit 1 grep -q 'error' log
check one_incident_is_there_that_of_the_end test "$("$RECORDER" list --json | wc -l)" = 1
check nothing_is_left_of_what_top_read left_nothing
expect a_process_that_is_not_there_is_said 3 "there is no process '99999999'" top -c 1 -p 99999999
expect a_name_may_still_start 0 "there is no process 'nosuch' now" top -c 1 -i 1 -P nosuch
expect other_formats_are_refused 2 'prints the formats livestacks and folded' top -c 1 --format html
