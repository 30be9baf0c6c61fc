#!/bin/bash
# Kill -9 at random moments, 12 times, or ROUNDS (SEED chooses the moments), in two histories side
# by side: every file opens and is sound, what was brought to the disk is there, and each death of a
# recorder that had written something becomes one incident, which ends where the data ends.
. "$TOP/tests/support/cli.sh"
need_perf

rounds=$((${ROUNDS:-12} / 2))            # of each history
sync=1                                   # --history-sync-sec: seconds that a kill may cost
slack=1500                               # ms: a wait for names and a write
seed=${SEED:-20261121}
nice "$BUILD/programs/burn" $((60 + rounds * 10)) 0.1 0.1 >/dev/null & burn=$!
trap 'kill $burn 2>/dev/null' EXIT

now_ms() { date +%s%3N; }
# Without one that was begun by the last kill, and holds nothing: the next recorder takes it away.
files() { find h.db.history -name '*.db' -size +0 | sort; }
ended()
{
	"$RECORDER" list --store h.db --json 2>>err |
		jq -r 'select(.trigger == "recorder-ended") | .time_utc + " " + .reason'
}

# Files with something in them; and how many this round's recorder began.
holding() { "$RECORDER" history --store h.db --json 2>>err | jq -s 'map(.files) | add // 0'; }
written() { echo $(($(holding) - before)); }

# kills SEED: in a directory of its own, whose file "counts" has how often all was well.
kills()
{
	local fresh=0 right=0 sound=0 early=0 dead=0 most=0 round
	mkdir "$1" && cd "$1" || return
	RANDOM=$1
	for ((round = 1; round <= rounds; round++)); do
		rm -f h.db.ctl
		before=$(holding)
		"$RECORDER" collect --store h.db --history-sync-sec $sync \
			--max-cpu-percent 0 2>>log & recorder=$!
		wait_for 10 test -S h.db.ctl
		began=$(now_ms)
		pause=$((RANDOM % 4 * 1000 + RANDOM % 1000))
		sleep "$(printf '%d.%03d' $((pause / 1000)) $((pause % 1000)))"
		kill -KILL $recorder
		killed=$(now_ms)
		wait $recorder 2>/dev/null

		last=$began
		if [ "$(written)" -gt 0 ]; then
			dead=$((dead + 1))
			utc=$("$RECORDER" history --store h.db --json 2>>err |
				jq -r '.to_utc' | tail -1)
			last=$(date -d "$utc" +%s%3N)
		else
			early=$((early + 1))
		fi
		# A machine that stands still stops the recorder as long as this script.
		missing=$((killed - last)) stood=$((killed - began - pause))
		[ $missing -gt $most ] && most=$missing
		if [ $missing -le $((sync * 1000 + slack + stood)) ]; then
			fresh=$((fresh + 1))
		else
			echo "round $round: $missing ms are missing: began $began," \
			     "killed $killed, data until $last" >&2
		fi

		# The list settles the death.
		ended | sort >deaths
		if [ "$(wc -l <deaths)" -eq $dead ] && { [ "$last" = "$began" ] ||
		   tail -1 deaths |
			grep -qE "^$utc the recorder ended .*: why is unknown: the machine"; }
		then
			right=$((right + 1))
		else
			echo "round $round: $dead deaths, $(wc -l <deaths) incidents;" \
			     "last data $utc" >&2
			tail -1 deaths >&2
		fi
	done
	for file in $(files); do
		if [ "$(sqlite3 "$file" 'PRAGMA integrity_check')" = ok ] &&
		   "$RECORDER" verify "$file" >/dev/null 2>>err; then
			sound=$((sound + 1))
		else
			echo "$file is not sound" >&2
		fi
	done
	echo "$rounds kills, $early before the first write, $(files | wc -l) files, $sound sound;" \
	     "$fresh lost at most a sync, the most $most ms; $right deaths told right" >&2
	echo "$fresh $right $sound $(files | wc -l) $dead" >counts
}

kills $seed & first=$!
(kills $((seed + 1)))
wait $first
read -r fresh right sound files dead < <(
	awk '{ for (i = 1; i <= 5; i++) n[i] += $i } END { print n[1], n[2], n[3], n[4], n[5] }' \
		./*/counts)
rounds=$((2 * rounds))

check every_file_is_sound_after_a_kill test $sound -eq "$files"
check some_kills_came_after_a_write test $dead -gt 0
check a_kill_costs_one_sync_at_most test $fresh -eq "$rounds"
check each_death_is_one_incident_that_ends_with_the_data test $right -eq "$rounds"
