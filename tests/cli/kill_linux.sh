#!/bin/bash
# kill -9 at random moments, 26 times (or ROUNDS), in two stores side by side: each opens, is sound,
# and keeps every complete incident.
. "$TOP/tests/support/cli.sh"
need_perf

rounds=$((${ROUNDS:-26} / 2))            # of each store

"$BUILD/programs/burn" 230 >/dev/null & burn=$!
trap 'kill $burn 2>/dev/null' EXIT

has_samples()
{
	"$RECORDER" status --store k.db --json | grep -q '"samples":[1-9]'
}

more_stored() # THAN
{
	[ "$(grep -c '^[^ ]* incident [0-9]* stored' log)" -gt "$1" ]
}

# These may not change: the bytes of an incident's segments, and each thread's share of the samples
# in an export. A function's name may still be filled in when a later recorder meets the same file.
sum_of() # ID
{
	echo "$1 $("$RECORDER" export --store k.db --id "$1" -f 2>/dev/null |
		awk -F ';' '{ n = $NF; sub(/.* /, "", n); t[$1 ";" $2] += n }
			END { for (i in t) print i, t[i] }' | sort | md5sum)" \
		"$(sqlite3 k.db \
		"SELECT hex(lists), hex(data) FROM incident_segment JOIN segment ON id = segment_id
			WHERE incident_id = $1 ORDER BY id" | md5sum)"
}

# kills SEED: in a directory of its own, whose file "counts" has how often all was well.
kills()
{
	local opened=0 sound=0 one_partial=0 partials=0 round
	mkdir "$1" && cd "$1" || return
	RANDOM=$1                        # the same moments each time, as far as a machine allows
	: >known.sums
	for ((round = 1; round <= rounds; round++)); do
		rm -f k.db.ctl           # of the one that was killed: it must not look ready
		"$RECORDER" collect --store k.db --pre-sec 2 /DelayAfterTriggerSec:0 --freq 499 \
			--max-cpu-percent 0 2>>log &
		recorder=$!
		wait_for 10 test -S k.db.ctl && wait_for 10 has_samples
		# Let one incident become complete, then keep the writer busy and kill the recorder
		# in the middle of its work.
		stored=$(grep -c '^[^ ]* incident [0-9]* stored' log)
		kill -USR2 $recorder
		wait_for 10 more_stored "$stored"
		for ((n = RANDOM % 3; n >= 0; n--)); do
			kill -USR2 $recorder
			sleep "$(printf '0.%02d' $((RANDOM % 10)))"
		done
		kill -KILL $recorder
		wait $recorder 2>/dev/null

		"$RECORDER" list --store k.db --json >list.json 2>>err && opened=$((opened + 1))
		[ "$(sqlite3 k.db 'PRAGMA integrity_check; PRAGMA foreign_key_check')" = ok ] &&
			sound=$((sound + 1))
		# "state id", the newest first.
		jq -r '"\(.state) \(.id)"' list.json >states
		[ "$(grep -c ^open states)" -le 1 ] && one_partial=$((one_partial + 1))
		partials=$(grep -c ^partial states)

		# How the newest complete incident reads now, and must read after all kills.
		newest=$(awk '$1 == "complete" { print $2; exit }' states)
		[ -z "$newest" ] || grep -q "^$newest " known.sums || sum_of "$newest" >>known.sums
	done
	# The store keeps 500 incidents at most: of more than that the oldest have left.
	if [ "$(wc -l <states)" -ge 500 ]; then
		awk 'NR == FNR { kept[$2] = 1; next } $1 in kept' states known.sums >kept.sums
		mv kept.sums known.sums
	fi
	while read -r id _; do
		sum_of "$id"
	done <known.sums >last.sums
	echo "$rounds kills: $(wc -l <states) incidents, $partials of them partial;" \
		"$(wc -l <known.sums) compared" >&2
	echo "$opened $sound $one_partial" >counts
}

kills 20261121 & first=$!
(kills 20261122)
wait $first
read -r opened sound one_partial < <(awk '{ a += $1; b += $2; c += $3 } END { print a, b, c }' \
	2*/counts)
cat 2*/known.sums >known.sums
cat 2*/last.sums >last.sums
rounds=$((2 * rounds))

check the_store_opens_after_each_kill test $opened -eq $rounds
check integrity_check_is_ok_after_each_kill test $sound -eq $rounds
check earlier_incidents_are_what_they_were cmp known.sums last.sums
check at_most_one_incident_is_incomplete_after_a_kill test $one_partial -eq $rounds
check complete_incidents_were_there_to_compare \
	test "$(awk '{ print $2 }' known.sums | sort -u | wc -l)" -ge 15
check every_partial_incident_can_be_shown_and_exported bash -c '
	for store in 2*; do
		for id in $(sed -n "s/^partial //p" $store/states); do
			"$RECORDER" show --store $store/k.db --id $id >/dev/null || exit 1
			"$RECORDER" export --store $store/k.db --id $id -f >/dev/null || exit 1
		done
	done'
