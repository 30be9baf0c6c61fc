#!/bin/bash
# A program from a mount whose server no longer answers does not stop the recording of others.
# time limit: 240
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

# begin DIR [NAME DEVICE]: a mount that answers, and burn beside it
begin()
{
	mkdir -p "$1"
	"$BUILD/programs/hung_mount_linux" "$1" "$BUILD/programs/burn" "${@:2}" >ready \
		2>mount.err & server=$!
	if ! wait_for 5 grep -q ready ready; then
		echo "skip everything: $(cat mount.err)"
		exit 0
	fi
	"$BUILD/programs/burn" 60 >/dev/null & burn=$!
}

collect()
{
	"$RECORDER" collect --store "$1.db" --freq 199 --max-cpu-percent 0 "${@:2}" \
		2>"$1.log" & recorder=$!
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

# not_in FILE TEXT
not_in()
{
	! grep "$2" "$1"
}

once()
{
	cat "$1"
	[ "$(grep -c "$2" "$1")" -eq 1 ]
}

# 90 % of one sample for each 5.03 ms of CPU time
recorded()
{
	"$RECORDER" show --store "$1.db" --process "$burn" --json >show.json 2>err
	echo "burn used $used ms; $(cat show.json err)"
	[ -s show.json ] && [ "$used" -gt 200 ] &&
		jq -e --argjson ms "$used" ".samples >= 0.9 * \$ms * 199 / 1000" show.json
}

# says FILE PATTERN; else show the file
says()
{
	grep -q -- "$2" "$1" || { cat "$1"; return 1; }
}

stalled()
{
	"$RECORDER" status --store "$1.db" >status.out 2>&1
	says status.out "names: .*$2"
}

# hangs NAME WHAT
hangs()
{
	"$RECORDER" status --store "$1.db" >status.out 2>&1
	says status.out "readers: $2"
}

# named NAME PROCESS MODULE: nearly all of its stacks through the module have names
named()
{
	"$RECORDER" export --store "$1.db" --process "$2" --no-ids -f >out.folded 2>err
	awk -v some="$3!" -v none="$3!?" '
		index($0, some) { n += $NF }
		index($0, some) && !index($0, none) { named += $NF }
		END { print named + 0 " of " n + 0 " have names"
			exit !(n && named >= 0.95 * n) }' out.folded && return
	head -n 3 out.folded err
	return 1
}

# ---- the mount hangs before the recorder starts --------------------------------------------------

begin before
before/program 60 >/dev/null & program=$!
before/program 60 >/dev/null & program="$program $!"
sleep 0.3
kill -USR1 $server
sleep 0.1
check a_recording_begins_beside_a_mount_that_hangs collect before
at=$(burnt $burn)
sleep 6
stop before "$at"
check burn_is_recorded_beside_a_mount_that_hung_before recorded before
check burn_has_names_beside_a_mount_that_hung_before named before "$burn" burn
check the_file_that_keeps_names_waiting_is_in_the_log \
	says before.log "file system of .*/before/program has not answered for .* has no names"
check its_recording_ends_within_15_s test "$took" -le 15
check the_file_system_is_named grep -q "file system of .*program.* does not answer" before.log
check it_is_named_once once before.log \
	"file system of $PWD/before/program, \(a program\|which process\)"
check nothing_stalled_at_the_start not_in before.log "has delivered nothing"
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
check burn_has_names_while_a_mount_begins_to_hang named later "$burn" burn
check this_recording_ends_within_15_s_too test "$took" -le 15
check this_last_incident_is_stored_too grep -q "incident 1 stored" later.log
clean_up

# ---- a process whose command line nobody can read, and a rule that asks for names ----------------

begin silent
"$BUILD/programs/silent_linux" silent/program >silent.out & program=$!
wait_for 5 grep -q ready silent.out
kill -USR1 $server
sleep 0.1
kill -USR1 $program
sleep 0.3
check a_recording_begins_beside_a_process_that_does_not_answer \
	collect silent "/StopOnProcess:nobody;On=crash"
at=$(burnt $burn)
sleep 4
"$RECORDER" status --store silent.db >status.out
stop silent "$at"
check burn_is_recorded_beside_it recorded silent
check the_process_is_named once silent.log "command line of process $program does not answer"
check status_says_that_a_thread_hangs grep -q "1 of at most 4 threads that read .* hang" status.out
clean_up

# ---- a disk whose size nobody can read, and a counter of all disks -------------------------------

begin disk program /dev/hung
kill -USR1 $server
collect disk "/StopOnPerfCounter:LogicalDisk:% Free Space:_Total>200" \
	"/StopOnPerfCounter:System:Processes:>1" --collect-multiple 2 --min-interval-sec 60
check status_says_that_a_source_waits_for_a_disk wait_for 15 hangs disk \
	"1 of at most 4 threads that read .*sizes of disks hang, and"
check other_counters_are_read_beside_it wait_for 15 grep -q "fired: .*System:Processes" disk.log
stop disk 0
clean_up

# ---- it hangs, and answers again -----------------------------------------------------------------

begin again
again/program 60 >/dev/null & program=$!
sleep 0.3
kill -USR1 $server
collect again
wait_for 15 stalled again "/again/program has not"
check status_names_the_file_that_keeps_names_waiting \
	stalled again "file system of .*/again/program has not answered"
kill -USR2 $server
check the_log_says_that_it_answers_again \
	wait_for 15 grep -q "file system of .*/again/program answers again, after" again.log
sleep 1
stop again "$(burnt $burn)"
check what_is_on_the_mount_has_names_then named again "$program" program
