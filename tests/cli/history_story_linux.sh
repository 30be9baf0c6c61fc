#!/bin/bash
# A night, told by commands alone: a program begins to load the machine, the recorder is killed, the
# next one is started. What list, show and the HTML report say then.
. "$TOP/tests/support/cli.sh"
need_perf

trap 'kill $hungry $recorder $hours 2>/dev/null' EXIT
cp "$BUILD/programs/burn" hungry
hungry= recorder= hours=
record=("$RECORDER" collect --store n.db --history-sync-sec 1 --max-cpu-percent 0)

# The hours before the night, in half a minute or more, meanwhile the rest of this script.
SECONDS=0
"${record[@]}" 2>before.log & hours=$!

# ---- an alert that comes 20 minutes late ---------------------------------------------------------

# Eight hours of a quiet machine; 21 minutes ago "nightly" took a CPU for a minute.
since=$("$BUILD/programs/history_fixture" late.db 8 1260)
minute=$(date -d "@$since" +%H:%M:%S)
utc=$(date -u -d "@$((since + 50))" +%Y-%m-%dT%H:%M:%S)
touch app.log
late=("${record[@]}" --replay-late --pre-sec 50 --delay-after-trigger-sec 5 --collect-multiple 9)
late[3]=late.db
http= port=$((20000 + $$ % 20000))
if command -v curl >/dev/null &&
	! "$RECORDER" check --http 127.0.0.1:1 --store c.db 2>/dev/null |
		grep -q 'libmicrohttpd.*missing'; then
	(umask 077 && echo 0123456789abcdef0123 >token)
	http=yes
	late+=(--http "127.0.0.1:$port" --http-token token)
else
	echo "skip the_webhook: no curl or no libmicrohttpd12 here"
fi
"${late[@]}" --stop-on-event-log-message "$PWD/app.log@ERROR" 2>late.log & recorder=$!
wait_for 20 grep -q 'recording this' late.log
echo "${utc}Z ERROR payments are slow" >>app.log
check the_late_line_becomes_an_incident wait_for 30 grep -q 'out of the history: .*ERROR' late.log
[ ! "$http" ] || curl -sS "http://127.0.0.1:$port/alert" \
	-H "Authorization: Bearer $(cat token)" -d "{\"status\":\"firing\",\"alerts\":[{
		\"status\":\"firing\",\"labels\":{\"alertname\":\"SlowPayments\"},
		\"startsAt\":\"${utc}Z\",\"fingerprint\":\"a1\"}]}" >answer 2>>err
"$RECORDER" stop --store late.db 2>>log
wait $recorder
"$RECORDER" list --store late.db --json >incidents 2>>err

# told NAME PATTERN: the incident with this reason has that minute, its window, program and change.
told()
{
	local id page
	id=$(jq -r "select(.reason | test(\"$2\")) | .id" incidents | head -n 1)
	check "$1_is_an_incident_of_its_own_time" jq -se "map(select(.id == ${id:-0}))[0] |
		(.time_utc | startswith(\"$utc\")) and .window_s >= 50 and .window_s < 60" incidents
	"$RECORDER" show "${id:-0}" --store late.db >shown 2>>err
	check "$1_says_first_what_changed_against_the_hours_before" bash -c "sed -n 2,4p shown |
		grep -E ' since $minute nightly took (9[0-9]|100)[.0-9]* % of a CPU, which was' |
		grep -q ' 0.0 . 0.0 % an hour apart, in 6 earlier windows'"
	check "$1_names_the_function" grep -q 'nightly!burn' shown
	"$RECORDER" export "${id:-0}" --store late.db -o "$1.html" 2>>err
	page=$(sed '/<body/,/nightly took/!d' "$1.html")
	check "$1_page_says_it_before_anything_else" bash -c '
		grep -q "class=\"changed\">since $1 nightly took" <<<"$2" &&
		! grep -q "<h2\|<canvas\|<table" <<<"$2"' _ "$minute" "$page"
}
told the_late_line 'before it came.$'
[ ! "$http" ] || told the_late_alert 'SlowPayments'

# ---- eight days: the same minute of other days ---------------------------------------------------

# "nightly" took 2, 3, 1, 2, 3, 1, 2 % of a CPU in this minute of the seven days before: 2.0 with a
# standard deviation of 0.8.
export TZ=UTC
since=$("$BUILD/programs/history_fixture" week.db 192 1260)
"$RECORDER" collect --store week.db --history-mb 0 --max-collect-sec 1 2>>err
"$RECORDER" snapshot --store week.db --from "@$since" --to "@$((since + 60))" --reason alarm 2>>err
id=$("$RECORDER" list --store week.db --json | jq -r 'select(.reason == "alarm").id')
for days in yesterday=0 week=0.8 same-hour\*7=0.8 same-hour\*3=1; do
	"$RECORDER" diff --store week.db --incident "$id" --against "${days%=*}" --json \
		>against 2>>err
	check "nightly_is_compared_with_${days%=*}" jq -se "map(select(.kind == \"program\"))[0] |
		.name == \"nightly\" and .now_percent > 99 and .now_percent < 101 and
		(.was_percent - 2 | fabs) < 0.1 and
		(.spread_percent // 0 | . * 10 | round) / 10 == ${days#*=}" against
	check "nothing_else_exceeds_the_spread_of_${days%=*}" \
		jq -se 'all(.name | test("nightly"))' against
done
"$RECORDER" show "$id" --store week.db >shown 2>>err
check show_says_the_days_before_first bash -c "sed -n 2,4p shown |
	grep -E 'since $(date -d "@$since" +%H:%M:%S) nightly took (99|100)[.0-9]* % of a CPU,' |
	grep -q ' was 2.0 . 0.8 % at this hour of 7 earlier days'"

# "steady" took 100 % all the time; half of this window was not recorded.
check a_window_that_is_not_whole_is_judged_where_it_was_recorded bash -c '
	"$RECORDER" show --store week.db --from "@$(($1 + 90))" --to "@$(($1 + 2400))" >part 2>&1 &&
	grep -q "nothing from" part && ! grep -q "^Changed" part' _ "$since"
rm -f week.db week.db.lock week.db.reserve week.db-*
expect a_window_is_kept_where_no_store_is_yet 0 'is stored' snapshot --store week.db \
	--from "@$since" --to "@$((since + 60))"

# ---- a night -------------------------------------------------------------------------------------

wait_for 60 eval '[ $SECONDS -ge 33 ]'
kill -INT $hours
wait $hours
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
