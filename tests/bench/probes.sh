#!/bin/bash
# What rules on tracepoints and --thread-time add to a system call and to a switch between two
# threads. Measured five times by turns, without and with a recorder; the least of each counts.
# Prints rows, also as JSON to the end of RESULTS, if that is set; needs root. Of switches at a
# rate, the recorder's own CPU time counts, too, less what it takes while they rest.
#
#   tests/bench/probes.sh [SECONDS]      of each measurement (1); RECORDER names another program
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
BENCH=$TOP/build/linux/programs/bench_probes_linux
SECONDS_EACH=${1:-1}
COMMAND="tests/bench/probes.sh $SECONDS_EACH"
. "$TOP/tests/bench/rows.sh"

if [ -z "${IN_OWN_MOUNTS:-}" ] && [ ! -d /sys/kernel/tracing/events ]; then
	unshare -m mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null ||
		{ echo "skip probes: tracefs cannot be mounted in a namespace of its own"; exit 0; }
	IN_OWN_MOUNTS=1 exec unshare -m sh -c 'mount -t tracefs tracefs /sys/kernel/tracing &&
		exec "$@"' sh bash "$0" "$@"
fi
work_dir=$(mktemp -d) || exit 1
pid=
finish() { [ -n "$pid" ] && kill -TERM "$pid" 2>/dev/null &&
	wait "$pid" 2>/dev/null; rm -rf "$work_dir"; }
trap finish EXIT

end_recorder()
{
	"$RECORDER" abort --store "$work_dir/store.db" >/dev/null 2>&1
	timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid"
	wait "$pid" 2>/dev/null
	pid=
}

# with NAME WHAT OPTION...: measure and print one row.
with()
{
	local name=$1 what=$2 without=999999999 with=999999999 n i
	shift 2
	for i in 1 2 3 4 5; do
		n=$("$BENCH" "$what" "$SECONDS_EACH")
		[ "$n" -lt "$without" ] && without=$n
		"$RECORDER" collect --store "$work_dir/store.db" --symbol-cache-mb 0 \
			"$@" 2>"$work_dir/log" & pid=$!
		for _ in $(seq 100); do grep -q recording "$work_dir/log" && break; sleep 0.1; done
		sleep 0.5
		n=$("$BENCH" "$what" "$SECONDS_EACH")
		[ "$n" -lt "$with" ] && with=$n
		end_recorder
	done
	row "$name" "$COMMAND" without_ns "$without" with_ns "$with" added_ns $((with - without))
}

with 'recorder, no rule' syscall
with 'sys_enter, kernel filter, no match' syscall \
	'/StopOnEvent:raw_syscalls/sys_enter;FieldFilter=id=999999'
with 'sys_enter_fsync' syscall '/StopOnEvent:syscalls/sys_enter_fsync;FieldFilter=fd=999999'
with 'switch, --thread-time' switch --thread-time

cpu_ns() { awk '{s += $1} END {print s}' /proc/"$1"/task/*/schedstat; }

# at_a_rate NAME WORK GOAL: the mean of a switch, whose threads do so much work before each.
at_a_rate()
{
	local name=$1 work=$2 goal=$3 without=999999999 with=999999999 own=999999999 lost=0
	local n count from idle rate=0
	for _ in 1 2 3 4 5; do
		read -r n count < <("$BENCH" switch "$SECONDS_EACH" "$work")
		[ "$n" -lt "$without" ] && without=$n
		"$RECORDER" collect --store "$work_dir/store.db" --symbol-cache-mb 0 \
			--thread-time --max-cpu-percent 0 2>"$work_dir/log" & pid=$!
		for _ in $(seq 100); do grep -q recording "$work_dir/log" && break; sleep 0.1; done
		"$BENCH" switch 2 "$work" >/dev/null         # until the rate is known
		idle=$(cpu_ns $pid)
		sleep "$SECONDS_EACH"
		from=$(cpu_ns $pid)
		idle=$((from - idle))
		read -r n count < <("$BENCH" switch "$SECONDS_EACH" "$work")
		rate=$(awk -v n="$count" -v s="$SECONDS_EACH" 'BEGIN {printf "%d", n / s}')
		from=$((($(cpu_ns $pid) - from - idle) / count))
		[ "$n" -lt "$with" ] && with=$n
		[ "$from" -ge 0 ] || from=0
		[ "$from" -lt "$own" ] && own=$from
		n=$("$RECORDER" status --store "$work_dir/store.db" --json |
			sed -n 's/.*"lost": *\([0-9]*\).*/\1/p' | head -1)
		lost=$((lost + ${n:-0}))
		end_recorder
	done
	row "$name" "$COMMAND" a_second "$rate" kernel_ns $((with - without)) own_ns "$own" \
		"lost<=0" "$lost" "ns_a_switch<=$goal" $((with - without + own))
}

# Half of what perf's own records cost; 10 % of a CPU.
at_a_rate 'switches, few' 80000 2500
at_a_rate 'switches, many' 12000 1000
