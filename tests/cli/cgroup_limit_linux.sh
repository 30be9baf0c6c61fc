#!/bin/bash
# A recorder in a control group with a memory limit, beside a process with thousands of mappings:
# with a --max-rss-mb that leaves 48 MB for what else counts there (rings, files, recorder-names)
# the kernel does not end it.
. "$TOP/tests/support/cli.sh"
need_perf

if [ -d /sys/fs/cgroup/memory ]; then
	group=/sys/fs/cgroup/memory/recorder-$$ limit=memory.limit_in_bytes kills=memory.oom_control
else
	group=/sys/fs/cgroup/recorder-$$ limit=memory.max kills=memory.events
fi
if ! mkdir $group 2>/dev/null || ! echo 128M 2>/dev/null >$group/$limit; then
	rmdir $group 2>/dev/null
	echo "skip cgroup_limit_linux: this user cannot make a control group with a memory limit"
	exit 0
fi
trap 'kill -KILL $flood $recorder 2>/dev/null; sleep 0.5; rmdir $group' EXIT
"$BUILD/programs/flood_linux" maps 4000 60 >/dev/null 2>&1 & flood=$!
(echo $BASHPID >$group/cgroup.procs && exec "$RECORDER" collect --store c.db --freq 999 \
	--max-cpu-percent 0 --max-rss-mb 80 --max-collect-sec 15 2>log) & recorder=$!
wait $recorder
check it_ends_well [ $? = 0 ]
check its_incident_is_stored grep -q 'incident 1 stored' log
check the_kernel_has_killed_nothing grep -qx 'oom_kill 0' $group/$kills
