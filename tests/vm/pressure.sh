#!/bin/bash
# Rules on memory.events and on pressure of control groups: those of a group at its limit fire,
# those of its neighbour, which works as much within its own limit, do not.
. /vm/guest.sh
trap finish EXIT
groups=/sys/fs/cgroup
echo '+memory +cpu' >$groups/cgroup.subtree_control
mkdir $groups/full $groups/neighbour
echo 64M >$groups/full/memory.max
echo 48M >$groups/full/memory.high
echo 512M >$groups/neighbour/memory.max
check the_kernel_has_memory_events test -r $groups/full/memory.events
check the_kernel_has_pressure_of_groups test -r $groups/full/memory.pressure

# in_group GROUP COMMAND...
in_group()
{
	echo "$BASHPID" >"$groups/$1/cgroup.procs"
	shift
	exec timeout 120 "$@"
}
cd /tmp || exit
"$recorder" collect --source none --store s.db --history-mb 0 --poll-sec 0.25 \
	--min-sec-for-trigger 0 --delay-after-trigger-sec 0 --max-collect-sec 600 \
	--collect-multiple 99 \
	--stop-on-perf-counter 'Cgroup:memory.events high/sec:/full>0' \
	--stop-on-perf-counter 'Cgroup:memory.events high/sec:/neighbour>0' \
	--stop-on-perf-counter 'Cgroup:memory.events max/sec:/full>0' \
	--stop-on-perf-counter 'Cgroup:memory.events max/sec:/neighbour>0' \
	--stop-on-perf-counter 'Cgroup:memory.events oom_kill/sec:/full>0' \
	--stop-on-perf-counter 'Cgroup:memory.events oom_kill/sec:/neighbour>0' \
	--stop-on-perf-counter 'Cgroup:memory.pressure some:/full>5' \
	--stop-on-perf-counter 'Cgroup:memory.pressure some:/neighbour>5' >out 2>err & collect=$!
for ((i = 0; i < 200; i++)); do
	grep -q 'recording counters' err && break
	sleep 0.1
done
fired() { grep -q "fired: .*Cgroup:$1.*:/$2 was " err; }
time_ms() { date -d "$(sed -n "s/ fired: .*Cgroup:$1.*:\/full was .*//p" err | head -1)" +%s%3N; }

# Within its limits, the neighbour the same: no rule fires.
(in_group full stress-ng --vm 1 --vm-bytes 16M --vm-hang 0 -t 100 -q) &
(in_group neighbour stress-ng --vm 1 --vm-bytes 200M --vm-keep -t 100 -q) &
sleep 8
check nothing_fires_within_the_limits eval '! grep "fired: " err'

# More than memory.high, which the kernel reclaims and so slows down. The onset: the group's first
# stall, seen some 50 ms later here too.
mkfifo nobody_writes
onset()
{
	local total was=
	while :; do
		read -r _ _ _ _ total <$groups/full/memory.pressure
		total=${total#total=}
		[ "$total" = "${was:-$total}" ] || break
		was=$total
		read -rt 0.05 <>nobody_writes
	done
	echo "${EPOCHREALTIME/./}" >onset            # in microseconds, at once
}
onset & watch=$!
(in_group full stress-ng --vm 1 --vm-bytes 56M --vm-keep -t 15 -q) &
sleep 15
kill $watch 2>/dev/null
check the_rule_on_high_fires fired 'memory.events high' full
check the_rule_on_pressure_fires fired 'memory.pressure some' full
for name in high pressure; do
	after_ms=$(($(time_ms "memory.*$name") - $(cat onset) / 1000))
	echo "it fired $after_ms ms after the onset: $name"
	check "within_a_second_of_the_onset: $name" eval "[ ${after_ms#-} -lt 1000 ]"
done
check those_of_the_neighbour_do_not eval '! grep "fired: .*neighbour" err'

# More than memory.max: the kernel kills.
echo max >$groups/full/memory.high
(in_group full stress-ng --vm 1 --vm-bytes 200M --vm-keep --oomable -t 10 -q) &
sleep 14
check the_rule_on_max_fires fired 'memory.events max' full
check the_rule_on_oom_kills_fires fired 'memory.events oom_kill' full
check still_those_of_the_neighbour_do_not eval '! grep "fired: .*neighbour" err'
kill -TERM $collect
wait $collect
check the_neighbour_worked eval \
	'[ "$(awk "/usage_usec/ { print \$2 }" $groups/neighbour/cpu.stat)" -gt 1000000 ]'
