#!/bin/bash
# `recorder top -e` on Linux: stacks of tracepoints and of .NET events, each counted once.
# time limit: 200
. "$TOP/tests/support/cli.sh"
need_tracefs "$0"
export RECORDER_STORE=$TMP/s.db
unset RECORDER_CONFIG
need_perf

cat >syncs.c <<'C'
#include <stdio.h>
#include <unistd.h>
int main(void)
{
	int i, bad = 0;
	for (i = 0; i < 100; i++) {
		bad += fsync(1) == 0;
		usleep(10000);
	}
	return bad > 100;
}
C
gcc -O1 -o syncs syncs.c || exit 1
"$RECORDER" top -e kernel:syscalls:sys_enter_fsync -P syncs -i 8 -c 1 >out 2>err &
top=$!
wait_for 20 test -S "$TMP/top-$top.db.ctl"
sleep 1
./syncs >file
wait $top
sum=$(sed -nE 's/^ {2}([ 0-9]{10}) \[.*/\1/p' out | awk '{ n += $1 } END { print n + 0 }')
check each_call_has_a_stack [ "$sum" = 100 ]
check they_reach_main grep -qE '^    syncs!main\+0x' out
check and_are_all_that_was_seen grep -q '^Total events seen: 100$' err
check without_the_kernel_s_frames expect_exit 1 grep -q '\[kernel\]' out

(sleep 2; for i in 1 2 3 4 5 6 7 8 9; do /bin/true; sleep 0.1; done) &
expect keywords_of_windows_mean_tracepoints 0 . top -e kernel:process -i 4 -c 1
check without_k_no_frame_of_the_kernel expect_exit 1 grep -q '\[kernel\]' out
expect what_linux_does_not_have_is_said 1 'no tracepoint of Linux means' \
	top -e kernel:imageload -c 1
expect a_misspelled_event_of_dotnet_is_said 2 "the nearest are 'GC/Start'" \
	top -e clr:gc:gc/strat -c 1
