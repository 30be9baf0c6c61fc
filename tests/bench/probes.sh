#!/bin/bash
# What rules on tracepoints and --thread-time add to a system call and to a switch between two
# threads. Measured five times by turns, without and with a recorder; the least of each counts.
# Prints rows; needs root.
#
#   tests/bench/probes.sh [SECONDS]      of each measurement (1); RECORDER names another program
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
BENCH=$TOP/build/linux/programs/bench_probes_linux
SECONDS_EACH=${1:-1}

if [ -z "${IN_OWN_MOUNTS:-}" ] && [ ! -d /sys/kernel/tracing/events ]; then
	unshare -m mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null ||
		{ echo "skip probes: tracefs cannot be mounted in a namespace of its own"; exit 0; }
	IN_OWN_MOUNTS=1 exec unshare -m sh -c 'mount -t tracefs tracefs /sys/kernel/tracing &&
		exec "$@"' sh bash "$0" "$@"
fi
work=$(mktemp -d) || exit 1
pid=
finish() { [ -n "$pid" ] && kill -TERM "$pid" 2>/dev/null &&
	wait "$pid" 2>/dev/null; rm -rf "$work"; }
trap finish EXIT

# with NAME WHAT OPTION...: measure and print one row.
with()
{
	local name=$1 what=$2 without=999999999 with=999999999 n i
	shift 2
	for i in 1 2 3 4 5; do
		n=$("$BENCH" "$what" "$SECONDS_EACH")
		[ "$n" -lt "$without" ] && without=$n
		"$RECORDER" collect --store "$work/store.db" --symbol-cache-mb 0 \
			"$@" 2>"$work/log" & pid=$!
		for _ in $(seq 100); do grep -q recording "$work/log" && break; sleep 0.1; done
		sleep 0.5
		n=$("$BENCH" "$what" "$SECONDS_EACH")
		[ "$n" -lt "$with" ] && with=$n
		"$RECORDER" abort --store "$work/store.db" >/dev/null 2>&1
		wait "$pid" 2>/dev/null
		pid=
	done
	printf '%-34s  without ns %5d  with ns %5d  added ns %5d\n' "$name" "$without" \
		"$with" $((with - without))
}

with 'recorder, no rule' syscall
with 'sys_enter, kernel filter, no match' syscall \
	'/StopOnEvent:raw_syscalls/sys_enter;FieldFilter=id=999999'
with 'sys_enter_fsync' syscall '/StopOnEvent:syscalls/sys_enter_fsync;FieldFilter=fd=999999'
with 'switch, --thread-time' switch --thread-time
