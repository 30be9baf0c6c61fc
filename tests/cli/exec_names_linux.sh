#!/bin/bash
# Programs that change their names by exec(2) all the time, and recorders that are killed (kill -9)
# at random moments: each sample of what is stored has a name that its process had at that time, by
# the programs' own log.
#
# KILLS=200 RECORDERS=4 make it the long test: so many kills in all, of recorders side by side.
# time limit: 2400
. "$TOP/tests/support/cli.sh"
need_perf

kills=${KILLS:-6} recorders=${RECORDERS:-2}
RANDOM=${SEED:-20261125}

for name in a b c; do
	for i in 0 1 2 3 4 5 6 7 8 9; do
		ln "$BUILD/programs/hop_linux" $name$i 2>/dev/null ||
			cp "$BUILD/programs/hop_linux" $name$i
	done
done
export HOP_LOG=$PWD/hop.log
pids=
trap 'kill $pids 2>/dev/null; kill -KILL $(cat ./*.pid) 2>/dev/null' EXIT
trap 'exit 130' INT TERM
for name in a b c; do
	./${name}0 $((kills * 60 + 60)) & pids="$pids $!"
done

has_samples()
{
	"$RECORDER" status --store "$1" --json | grep -q '"samples":[1-9]'
}

# kill_often WHICH: record, ask for incidents, and kill the recorder in between.
kill_often()
{
	local store=$1.db n recorder
	RANDOM=$((${SEED:-20261125} + $1))
	for ((n = 1; n <= kills / recorders; n++)); do
		rm -f "$store.ctl"
		"$RECORDER" collect --store "$store" --freq 499 --max-cpu-percent 0 --pre-sec 20 \
			--history-sync-sec 1 /DelayAfterTriggerSec:0 2>>"$1.log" & recorder=$!
		echo $recorder >"$1.pid"
		wait_for 30 has_samples "$store"
		sleep "$(printf '%d.%02d' $((RANDOM % 2)) $((RANDOM % 100)))"
		kill -USR2 $recorder
		sleep "$(printf '0.%02d' $((RANDOM % 60)))"
		kill -KILL $recorder
		wait $recorder 2>/dev/null
		rm "$1.pid"
	done
	# It settles the deaths: each that had written something is an incident.
	"$RECORDER" list --store "$store" --json >"$1.list" 2>>err
}

writers=
for ((r = 1; r <= recorders; r++)); do
	kill_often $r & writers="$writers $!"
done
# shellcheck disable=SC2086
wait $writers

unreadable=0 incidents=0 files=()
for ((r = 1; r <= recorders; r++)); do
	while read -r id t0; do
		incidents=$((incidents + 1))
		"$RECORDER" export --store $r.db --id "$id" --format perf-script >$r.$id.txt \
			2>>err || unreadable=$((unreadable + 1))
		files+=("t0=$t0" "$r.$id.txt")
	done < <(sqlite3 -separator ' ' $r.db \
		'SELECT id, t0_ns FROM incident WHERE t0_ns NOT NULL AND samples')
done
sort -k1,1n -k2,2n hop.log | awk -f "$TOP/tests/support/names_had.awk" - "${files[@]}" >names
read -r right wrong unnamed <<<"$(tail -n 1 names)"
head -n -1 names >&2
echo "$kills kills, $incidents incidents: $right samples under a name that their process had" \
	"then, $wrong under another, $unnamed without a name; $(wc -l <hop.log) lines by the" \
	"programs" >&2

check every_incident_can_be_exported test $unreadable -eq 0
check there_are_incidents_to_look_at test $incidents -ge $((kills / 2))
check there_are_samples_to_look_at test "$right" -gt $((kills * 20))
check no_sample_has_a_name_that_its_process_had_not test "$wrong" -eq 0
