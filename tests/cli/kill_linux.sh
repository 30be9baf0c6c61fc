#!/bin/bash
# kill -9 at random moments, 50 times: the store opens, is sound, and keeps what was complete.
# time limit: 240
. "$TOP/tests/support/cli.sh"
need_perf

rounds=50
RANDOM=20261121                          # the same moments each time, as far as a machine allows
opened=0 sound=0 same=0 one_partial=0 partials=0
: >known.sums

sums_of() { # ID...: "ID md5-of-its-folded-export", for each
	local id
	for id in "$@"; do
		echo "$id $("$RECORDER" export --store k.db --id "$id" -f 2>/dev/null | md5sum)"
	done
}

for ((round = 1; round <= rounds; round++)); do
	rm -f k.db.ctl                   # of the one that was killed: it must not look ready
	"$RECORDER" collect --store k.db --pre-sec 2 /DelayAfterTriggerSec:0 --freq 499 --max-cpu-percent 0 2>>log &
	recorder=$!
	wait_for 10 test -S k.db.ctl
	# Keep the writer busy, then kill it in the middle of something.
	for ((n = RANDOM % 4; n >= 0; n--)); do
		kill -USR2 $recorder
		sleep "0.$((RANDOM % 18 + 2))"
	done
	kill -KILL $recorder
	wait $recorder 2>/dev/null

	"$RECORDER" list --store k.db --json >list.json 2>>err && opened=$((opened + 1))
	[ "$(sqlite3 k.db 'PRAGMA integrity_check; PRAGMA foreign_key_check')" = ok ] &&
		sound=$((sound + 1))
	open=$(jq -r 'select(.state == "open") | .id' list.json | wc -l)
	[ "$open" -le 1 ] && one_partial=$((one_partial + 1))
	partials=$(jq -r 'select(.state == "partial") | .id' list.json | wc -l)

	# Complete ones of this round are added; those of earlier rounds must read as they did.
	known=$(cut -d' ' -f1 known.sums)
	# shellcheck disable=SC2086
	sums_of $known | cmp -s - known.sums && same=$((same + 1))
	for id in $(jq -r 'select(.state == "complete") | .id' list.json | sort -n); do
		grep -q "^$id " known.sums || sums_of "$id" >>known.sums
	done
	# Not all 200 each time: a handful of the oldest and the newest are compared.
	{ head -n 3 known.sums; tail -n +4 known.sums | tail -n 3; } >kept.sums
	mv kept.sums known.sums
done
echo "$rounds kills: $(jq -s length list.json) incidents, $partials of them partial" >&2

check the_store_opens_after_each_kill test $opened -eq $rounds
check integrity_check_is_ok_after_each_kill test $sound -eq $rounds
check earlier_incidents_read_byte_identically test $same -eq $rounds
check at_most_one_incident_is_incomplete_after_a_kill test $one_partial -eq $rounds
check complete_incidents_were_there_to_compare test "$(wc -l <known.sums)" -ge 4
check every_partial_incident_can_be_shown_and_exported bash -c '
	for id in $(jq -r "select(.state == \"partial\") | .id" list.json); do
		"$RECORDER" show --store k.db --id $id >/dev/null || exit 1
		"$RECORDER" export --store k.db --id $id -f >/dev/null || exit 1
	done'
