#!/bin/bash
# A night, told by commands alone: a program begins to load the machine, the recorder is killed, the
# next one is started. What list, show and the HTML report say then.
. "$TOP/tests/support/cli.sh"
need_perf

trap 'kill $hungry $recorder 2>/dev/null' EXIT
cp "$BUILD/programs/burn" hungry
hungry= recorder=
record=("$RECORDER" collect --store n.db --history-sync-sec 1 --max-cpu-percent 0)

# The hours before, in half a minute.
"${record[@]}" --max-collect-sec 32 2>before.log
rm -f n.db.ctl
"${record[@]}" 2>log & recorder=$!
wait_for 20 test -S n.db.ctl
for _ in 1 2; do                         # the largest change, whatever else runs here
	nice -n -10 ./hungry 60 >/dev/null & hungry+=" $!"
done
began=$(date -u +%s)
sleep 9
kill -KILL $recorder
wait $recorder 2>/dev/null
kill $hungry
"${record[@]}" --max-collect-sec 2 2>>log

death=$("$RECORDER" list --store n.db --json |
	jq -r 'select(.trigger == "recorder-ended") | "\(.id) \(.time_utc)"')
id=${death% *}
check the_list_has_the_death test -n "$death"
check it_ends_within_seconds_of_the_kill bash -c "
	at=\$(date -d '${death#* }' +%s)
	[ \$((at - $began)) -ge 4 ] && [ \$((at - $began)) -le 20 ]"
minute=$(date -u -d "@$began" +%H:%M)
"$RECORDER" show "$id" --store n.db >shown 2>err
check show_says_first_what_changed_and_since_when bash -c '
	sed -n 2,4p shown | grep -E "since ('"$minute"'|'"$(date -u -d "@$((began - 9))" +%H:%M)"\
').*hungry took .* of a CPU, which was 0.0 .* just before, in [2-6] earlier windows"'
check it_names_the_function grep -qE '^ .*hungry!burn' shown
expect it_says_how_the_recorder_ended 0 'ended without saying so: why is unknown' \
	show "$id" --store n.db
"$RECORDER" export "$id" --store n.db -o night.html 2>>err
check the_page_says_it_before_anything_else bash -c '
	sed "/<body/,/hungry took/!d" night.html | grep -c "<h2\|<canvas\|<table" | grep -qx 0'
check the_page_says_since_when grep -q 'class="changed">since .* hungry took' night.html
expect another_window_is_compared_the_same_way 0 'hungry' \
	diff --incident "$id" --store n.db --against 'before*3'
