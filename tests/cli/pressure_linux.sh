#!/bin/bash
# Rules on pressure stall: of the machine, and of one control group beside a quiet one.
. "$TOP/tests/support/cli.sh"
need_perf

if [ ! -r /proc/pressure/cpu ]; then
	echo "skip pressure: this kernel has no /proc/pressure"
	exit 0
fi
"$RECORDER" counters 'Pressure:% some Time:cpu' >out
check the_machines_pressure_is_listed grep -q '^Pressure:% some Time:cpu .* %' out

groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
busy=recorder-busy-$$ quiet=recorder-quiet-$$
if [ ! "$groups" ] || ! mkdir "$groups/$busy" "$groups/$quiet" 2>/dev/null; then
	echo "skip pressure_of_groups: control groups of version 2 cannot be made here"
	exit 0
fi
# More threads than CPUs in one group; a thread that sleeps in the other.
in_group() { echo "$BASHPID" >"$groups/$1/cgroup.procs"; shift; exec timeout 60 "$@"; }
pids=()
for ((i = 0; i < $(nproc) + 2; i++)); do
	(in_group "$busy" sh -c 'while :; do :; done') & pids+=($!)
done
(in_group "$quiet" sleep 60) & pids+=($!)
clean()
{
	kill "${pids[@]}" 2>/dev/null
	wait 2>/dev/null
	wait_for 5 rmdir "$groups/$busy" "$groups/$quiet"
}
trap clean EXIT
both_run() { [ "$(wc -l <"$groups/$busy/cgroup.procs")" -gt "$(nproc)" ] &&
	grep -q . "$groups/$quiet/cgroup.procs"; }
wait_for 10 both_run
if [ ! -r "$groups/$busy/cpu.pressure" ]; then
	echo "skip pressure_of_groups: this kernel has no cpu.pressure"
	exit 0
fi

"$RECORDER" collect --source none --store s.db --history-mb 0 --poll-sec 0.5 \
	--min-sec-for-trigger 0 --delay-after-trigger-sec 0 --max-collect-sec 6 \
	--collect-multiple 9 \
	--stop-on-perf-counter "Cgroup:cpu.pressure some:/$busy>20" \
	--stop-on-perf-counter "Cgroup:cpu.pressure some:/$quiet>20" \
	--stop-on-perf-counter "Pressure:% some Time:cpu>20" >out 2>err
fired() { grep "fired: .*$1" err; }
check the_group_under_pressure_fires fired "cpu.pressure some:/$busy.* was "
check its_neighbour_does_not expect_exit 1 fired "$quiet"
check the_machine_fires fired 'Pressure:% some Time:cpu.* was '
