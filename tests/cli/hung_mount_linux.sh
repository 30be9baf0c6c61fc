#!/bin/bash
# A program from a mount whose server no longer answers does not stop the recording of others.
# time limit: 150
. "$TOP/tests/support/cli.sh"
need_perf

if [ "$(id -u)" != 0 ] || [ ! -c /dev/fuse ] || ! unshare -m true 2>/dev/null; then
	echo "skip everything: needs root, /dev/fuse and a mount namespace of its own"
	exit 0
fi
if [ ! "${HUNG_MOUNT_INSIDE:-}" ]; then
	HUNG_MOUNT_INSIDE=1 exec unshare -m bash "$0"
fi

server= program= burn= recorder=
# The server answers again first: what waits for it cannot end before.
clean_up()
{
	[ "$server" ] && kill -USR2 "$server" 2>/dev/null
	kill $program $burn 2>/dev/null
	[ "$recorder" ] && kill -KILL "$recorder" 2>/dev/null
	[ "$server" ] && sleep 0.5 && kill "$server" 2>/dev/null
	wait $server $program $burn $recorder 2>/dev/null
	server= program= burn= recorder=
}
trap clean_up EXIT

# begin: a mount that answers, and burn beside it
begin()
{
	mkdir -p "$1"
	"$BUILD/programs/hung_mount_linux" "$1" "$BUILD/programs/burn" >ready \
		2>mount.err & server=$!
	if ! wait_for 5 grep -q ready ready; then
		echo "skip everything: $(cat mount.err)"
		exit 0
	fi
	"$BUILD/programs/burn" 60 >/dev/null & burn=$!
}

collect()
{
	"$RECORDER" collect --store "$1.db" --freq 199 --max-cpu-percent 0 2>"$1.log" & recorder=$!
	wait_for 15 grep -q "recording this machine" "$1.log"
}

# stop NAME MS: burn's CPU time before; leaves the time that stopping took in $took, in s
stop()
{
	local since=$SECONDS
	used=$(($(burnt "$burn") - $2))
	timeout 15 "$RECORDER" stop --store "$1.db" >stop.out 2>&1
	wait_for 20 expect_ended "$recorder"
	took=$((SECONDS - since))
}

expect_ended()
{
	! kill -0 "$1" 2>/dev/null
}

# 90 % of one sample for each 5.03 ms of CPU time
recorded()
{
	"$RECORDER" show --store "$1.db" --process "$burn" --json >show.json 2>err
	echo "burn used $used ms; $(cat show.json err)"
	[ -s show.json ] && [ "$used" -gt 200 ] &&
		jq -e --argjson ms "$used" ".samples >= 0.9 * \$ms * 199 / 1000" show.json
}

# ---- the mount hangs before the recorder starts --------------------------------------------------

begin before
before/program 60 >/dev/null & program=$!
sleep 0.3
kill -USR1 $server
sleep 0.1
check a_recording_begins_beside_a_mount_that_hangs collect before
at=$(burnt $burn)
sleep 6
stop before "$at"
check burn_is_recorded_beside_a_mount_that_hung_before recorded before
check its_recording_ends_within_15_s test "$took" -le 15
check the_file_system_is_named grep -q "file system of .*program.* does not answer" before.log
check its_last_incident_is_stored grep -q "incident 1 stored" before.log
clean_up

# ---- it hangs while the recorder records, and a program from it has just begun -------------------

begin later
collect later
at=$(burnt $burn)
sleep 2
later/program 60 >/dev/null & program=$!
sleep 0.02
kill -USR1 $server
sleep 6
stop later "$at"
check burn_is_recorded_while_a_mount_begins_to_hang recorded later
check this_recording_ends_within_15_s_too test "$took" -le 15
check this_last_incident_is_stored_too grep -q "incident 1 stored" later.log
