#!/bin/bash
# A recorder that stands still (SIGSTOP; a paused VM, a frozen cgroup, swap look the same) and goes
# on: no sample gets the name of another process. Programs change their names by exec(2) all the
# time, and each stack says which name its process had.
#
# STOPS=50 STOP_MIN_S=1 STOP_MAX_S=60 RECORDERS=5 make it the long test: so many stops in all, of
# recorders side by side. The short ones here are over the 10 s after which tables were swept once.
# alone: full rings
. "$TOP/tests/support/cli.sh"
need_perf

stops=${STOPS:-4} recorders=${RECORDERS:-2}
shortest=${STOP_MIN_S:-11} longest=${STOP_MAX_S:-13}
RANDOM=20261122

for name in a b c; do
	for i in 0 1 2 3 4 5 6 7 8 9; do
		ln "$BUILD/programs/hop_linux" $name$i 2>/dev/null ||
			cp "$BUILD/programs/hop_linux" $name$i
	done
done
export HOP_LOG=$PWD/hop.log
pids=
finish()
{
	local recorder
	for recorder in $(cat ./*.pid); do
		kill -KILL "$recorder"
	done
	# shellcheck disable=SC2086
	kill $pids && wait $pids             # they write their log until then
}
trap 'finish 2>/dev/null' EXIT
trap 'exit 130' INT TERM
for name in a b c; do
	./${name}0 $((stops / recorders * longest + 120)) & pids="$pids $!"
done

# stop_often WHICH: record, and stop the recorder in between. The last stop is the longest.
stop_often()
{
	local store=$1.db n each=$((stops / recorders)) recorder s
	"$RECORDER" collect --store "$store" --max-cpu-percent 0 --pre-sec 600 \
		/DelayAfterTriggerSec:0 2>"$1.log" & recorder=$!
	echo $recorder >"$1.pid"
	wait_for 20 grep -q recording "$1.log"
	sleep 2
	for ((n = 1; n <= each; n++)); do
		s=$((shortest + RANDOM % (longest - shortest + 1)))
		[ $n -lt $each ] || s=$longest
		kill -STOP $recorder
		sleep $s
		kill -CONT $recorder
		sleep "$(printf '1.%02d' $((RANDOM % 100)))"
	done
	kill -TERM $recorder
	wait $recorder
	echo $? >"$1.code"
	rm "$1.pid"
}

writers=
for ((r = 1; r <= recorders; r++)); do
	stop_often $r & writers="$writers $!"
done
# shellcheck disable=SC2086
wait $writers

# The samples in a spin, then lines "NAME SPIN COUNT": what a process was called, and where it was.
for ((r = 1; r <= recorders; r++)); do
	"$RECORDER" export --store $r.db --id 1 -f 2>>err
done | grep -E '!spin_[0-9][ ;]' >spinning
sed -nE 's/^([abc])([0-9]) [^;]*;.*!spin_([0-9])[ ;](.* )?([0-9]+)$/\2 \3 \5/p' spinning >spins
right=$(awk '$1 == $2 { n += $3 } END { print n + 0 }' spins)
wrong=$(awk '$1 != $2 { n += $3 } END { print n + 0 }' spins)
strange=$(grep -vcE '^[abc][0-9] ' spinning)

# The same of all samples, by the programs' own log of their names.
logged=()
for ((r = 1; r <= recorders; r++)); do
	"$RECORDER" export --store $r.db --id 1 --format perf-script >$r.txt 2>>err
	logged+=("t0=$(sqlite3 $r.db 'SELECT t0_ns FROM incident WHERE id = 1')" $r.txt)
done
sort -k1,1n -k2,2n hop.log | awk -f "$TOP/tests/support/names_had.awk" - "${logged[@]}" >names
read -r had not_had unnamed <<<"$(tail -n 1 names)"
head -n -1 names >&2
echo "by their log: $had samples under a name that their process had then, $not_had under" \
	"another, $unnamed without a name" >&2
echo "$stops stops: $right samples under the right name, $wrong under another of its process," \
	"$strange under one of another" >&2

check every_recorder_ended_well sh -c '! grep -v "^0$" ./*.code'
# Hundreds, where other programs leave these their CPUs.
check there_were_samples_to_look_at test "$right" -gt 20
check no_sample_has_the_name_of_another_process test "$strange" -eq 0
check no_sample_has_an_earlier_or_later_name test "$wrong" -eq 0
check all_samples_have_names_that_their_processes_had \
	test "$had" -gt "$right" -a "$not_had" -eq 0
check the_log_says_that_the_recorder_stood_still \
	grep -q 'merge thread did not come round for' 1.log
