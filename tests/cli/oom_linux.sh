#!/bin/bash
# A program that the kernel kills because its control group has no memory left: the incident that a
# rule keeps, with no other option, says who grew, by which functions, and what the kernel said.
# time limit: 120
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

# group: a control group with 96 MB, of version 1 or 2
for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
	group=$root/recorder-oom.$$
	mkdir "$group" 2>/dev/null || continue
	limit=$group/memory.limit_in_bytes
	[ -e "$limit" ] || limit=$group/memory.max
	echo 96M 2>/dev/null >"$limit" && break
	rmdir "$group"
	group=
done
if [ -z "$group" ]; then
	echo "skip oom_linux: no control group with a memory limit can be made here"
	exit 0
fi
trap 'rmdir "$group"' EXIT
gcc -O2 -D_GNU_SOURCE -pthread -o shop "$TOP/tests/programs/grow_linux.c" || exit 1
ln shop neighbour

"$RECORDER" collect --store s.db --history-mb 0 --delay-after-trigger-sec 2 --max-collect-sec 60 \
	--stop-on-process '*;On=oom' >log 2>&1 & collect=$!
wait_for 60 grep -q 'recording this machine' log
check page_faults_are_recorded_for_such_a_rule grep -q 'with one page fault in 61' log
sleep 60 | timeout 60 ./neighbour small 60 4 >/dev/null &
sleep 60 | (echo "$BASHPID" >"$group/cgroup.procs"; exec ./shop small 300 6 >/dev/null) &
wait_for 60 grep -q 'incident 1 stored' log
wait $collect

report() { "$RECORDER" report --store s.db --memory "$@" 2>/dev/null; }
told() { report --json | jq -s "$1"; }
check the_reason_names_the_victim grep -q 'fired: process shop (pid .* is being killed' log
check the_victim_stands_first jq -e '.killed and (.process | startswith("shop"))' \
	<(report --json | jq -c 'select(.row == "memory")' | head -1)
kernel_mb=$(told 'map(select(.row == "kernel").line | capture("anon-rss:(?<kb>[0-9]+)kB").kb |
	tonumber / 1024) | first')
grew_mb=$(told 'map(select(.row == "memory" and .killed).grew_mb) | first')
echo "the kernel says $kernel_mb MB, the incident $grew_mb"
check it_grew_by_what_the_kernel_says jq -ne "($grew_mb - $kernel_mb) | fabs < 3"
share=$(report --process shop --json | jq -s 'map(select(.row == "function")) |
	(map(.mb) | add) as $all |
	(map(select(.name | endswith("!grow_seventy")).mb) | add) * 100 / $all')
echo "grow_seventy has $share % of it"
check the_function_that_grew_stands_first jq -ne "$share > 50"
# 3 MB of it may be there when the kernel kills.
share=$(report --process shop --json | jq -s 'map(select(.row == "function" and
	(.name | endswith("!come_and_go"))).mb) | add // 0')
check what_comes_and_goes_is_hardly_there jq -ne "$share < 6"
check the_neighbour_is_told_too jq -e '.process | startswith("neighbour")' \
	<(report --json | jq -c 'select(.row == "memory")' | grep neighbour)
check the_kernels_report_is_there grep -q 'out of memory: Killed process .* (shop)' <(report)
check the_largest_are_told_in_detail jq -ne \
	"$(told 'map(select(.row == "largest" and .rss_mb > 0 and .pss_mb > 0)) | length') >= 3"

"$RECORDER" collect --store none.db --history-mb 0 --max-collect-sec 1 --memory-period 0 \
	--stop-on-process '*;On=oom' >log 2>&1
check none_are_where_the_option_says_none expect_exit 1 grep -q 'page fault' log
"$RECORDER" collect --store counter.db --history-mb 0 --max-collect-sec 1 \
	--stop-on-perf-counter 'Process:Working Set:shop>100G' >log 2>&1
check a_rule_on_the_size_of_a_process_has_them_too grep -q 'with one page fault in 61' log
"$RECORDER" collect --store other.db --history-mb 0 --max-collect-sec 1 \
	--stop-on-perf-counter 'Process:Thread Count:shop>1000' >log 2>&1
check other_rules_have_none expect_exit 1 grep -q 'page fault' log
