#!/bin/bash
# Peers: what fires on one recorder is kept by others, too. Three recorders and one that is down;
# the clock of one is 3 s ahead.
# time limit: 300
. "$TOP/tests/support/cli.sh"
need_perf
unset RECORDER_STORE RECORDER_CONFIG RECORDER_SHIP_AUTH
for program in curl python3; do
	command -v $program >/dev/null && continue
	echo "skip peers_linux: no $program here"
	exit 0
done
if "$RECORDER" check --http 127.0.0.1:1 --ship https://localhost/x --store c.db 2>/dev/null |
		grep -qE 'libmicrohttpd.*missing|libcurl.*missing'; then
	echo "skip peers_linux: no libmicrohttpd12 or no libcurl4 here"
	exit 0
fi

token=0123456789abcdef0123
(umask 077; echo $token >token)
port=$((20000 + $$ % 20000))

# ---- what is refused before recording ------------------------------------------------------------

expect a_rule_needs_peers_that_are_known 2 "no recorder is known that Peers= names" check \
	--store c.db --stop-on-event-log-message 'a.log@boom;Peers=web9'
expect and_names 2 "Peers= names other recorders" check \
	--store c.db --stop-on-event-log-message 'a.log@boom;Peers='
expect nobody_is_no_peer 2 "expected 1 to 64 names" snapshot --store c.db --peers ,web1
expect a_secret_does_not_go_by_http 2 "would be readable on the way" snapshot --store c.db \
	--peers "http://web1:9427;Auth=token"

# ---- recorders -----------------------------------------------------------------------------------

pids=
trap 'kill $pids 2>/dev/null; wait' EXIT

# Root gives each a host name of its own.
as_host()
{
	local name=$1
	shift
	# shellcheck disable=SC2016
	if unshare --uts true 2>/dev/null; then
		exec unshare --uts sh -c 'hostname "$0" && exec "$@"' "$name" "$@"
	fi
	exec "$@"
}

record() # NAME PORT ARG...
{
	local name=$1 at=$2
	shift 2
	as_host "$name" "$RECORDER" collect --store "$name.db" --log-file "$name.log" --freq 49 \
		--http "127.0.0.1:$at" --http-token token --pre-sec 20 --delay-after-trigger-sec 1 \
		--max-cpu-percent 0 --collect-multiple 1000 "$@" &
	pids="$pids $!"
}
records() { grep -q 'recording this machine' "$1.log"; }

touch app.log
record web2 $((port + 2))
record web3 $((port + 3))
python3 "$TOP/tests/support/peer_clock.py" "http://127.0.0.1:$((port + 3))" 3 >clock.port &
pids="$pids $!"
wait_for 20 test -s clock.port
ahead=$(cat clock.port)
record web1 $((port + 1)) --stop-on-event-log-message "$PWD/app.log@boom;Peers=10.*,127.*" \
	--stop-on-event-log-message "$PWD/app.log@alone" \
	--ship "peer+http://127.0.0.1:$((port + 1));Auth=token" \
	--ship "peer+http://127.0.0.1:$((port + 2));Auth=token" \
	--ship "peer+http://127.0.0.1:$ahead;Auth=token" \
	--ship "peer+http://127.0.0.1:$((port + 4));Auth=token" \
	--ship "peer+http://localhost:$((port + 2));Auth=token"
for host in web1 web2 web3; do
	if ! wait_for 30 records $host; then
		echo "not ok it_records: $(tail -n 3 $host.log)"
		exit 1
	fi
done

heads() { "$RECORDER" list --store "$1.db" --json 2>/dev/null; }
has() { heads "$1" | jq -se --argjson n "$2" 'map(select(.state == "complete")) | length == $n'; }
# The reason's end, of the newest incident.
group_of() { heads "$1" | jq -rs '.[0].reason' | sed -n 's/.*\[group \([0-9a-f-]*\)\]$/\1/p'; }

# ---- a rule fires --------------------------------------------------------------------------------

sleep 2                                      # some past
echo boom >>app.log
if ! wait_for 30 has web1 1; then
	echo "not ok the_incident_is_stored: $(tail -n 3 web1.log)"
	exit 1
fi
check a_peer_keeps_it_too wait_for 60 has web2 1
check and_one_with_another_clock wait_for 30 has web3 1
uuid=$(heads web1 | jq -r .uuid)
check they_are_one_group [ "$(group_of web2) $(group_of web3)" = "$uuid $uuid" ]
remarks() { "$RECORDER" show --store web1.db --id 1 --json 2>/dev/null | jq -r .remarks; }
told() { [ "$(remarks | grep -c 'has the same window')" = 2 ]; }
check the_incident_tells_who_has_it wait_for 30 told
remarks >told
# "... its clock is 3.000123 s ahead of ours, to within 0.000456 s": is it N s, to within that?
says_ahead() # PORT SECONDS
{
	awk -v port=":$1)" -v want="$2" '
		index($0, port) {
			for (i = 1; i < NF; i++) {
				if ($i == "is")
					is = $(i + 1) * ($(i + 3) == "behind" ? -1 : 1)
				if ($i == "within")
					within = $(i + 1)
			}
			found = 1
		}
		END { exit !(found && is - want <= within + 2e-6 && want - is <= within + 2e-6) }
	' told
}
check the_clock_is_ours says_ahead $((port + 2)) 0
check the_other_is_3_s_ahead says_ahead "$ahead" 3
check and_so_is_its_reason grep -qE 'clock is [23]\.[0-9]+ s behind ours' <<<"$(heads web3)"
# The moments are the same, but for what the clocks are known to.
trigger() { heads "$1" | jq -rs '.[-1].time' | sed 's/.*T..:\(..\):\(.*\)Z/\1 \2/' |
	awk '{ print $1 * 60 + $2 }'; }
within() { sed -n 's/.*to within \([0-9.]*\) s.*/\1/p' told | sort -rn | head -1; }
check the_moment_is_the_same awk -v a="$(trigger web1)" -v b="$(trigger web2)" \
	-v c="$(trigger web3)" -v w="$(within)" 'BEGIN {
		exit !(a - b <= w + 0.002 && b - a <= w + 0.002 &&
		       a - c <= w + 0.002 && c - a <= w + 0.002) }'
check and_it_has_samples sh -c '"$0" list --store web2.db --json | jq -e ".samples > 0"' "$RECORDER"

# ---- who is down, and who is not meant -----------------------------------------------------------

status() { "$RECORDER" status --store web1.db --json 2>/dev/null; }
queued() { status | jq -e --arg at "$1" --argjson n "$2" \
	'.ship[] | select(.target | endswith($at)) | .queued == $n'; }
ours() { status | jq -e --arg at ":$((port + 1))" \
	'.ship[] | select(.target | endswith($at)) | .queued == 0 and .sent == 0'; }
check we_are_no_peer_of_ourselves wait_for 30 ours
check and_have_one_of_it has web1 1
check one_that_is_down_waits wait_for 30 queued ":$((port + 4))" 1
check the_rule_does_not_name_the_other queued "localhost:$((port + 2))" 0
echo alone >>app.log
check a_rule_without_peers wait_for 30 has web1 2
check is_for_nobody wait_for 30 queued ":$((port + 2))" 0
check and_nobody_has_it has web2 1

record web4 $((port + 4))
wait_for 30 records web4
again() { "$RECORDER" ship --store web1.db --id 1 \
	--to "peer+http://127.0.0.1:$((port + $1));Auth=token" >again.out 2>&1; }
gone() { again 4; grep -q 'says 410: the history' again.out; }
kept() { [ "$(group_of web4)" = "$uuid" ]; }
# It began after the window: there is nothing to keep, unless its buffer is young enough.
either() { again 4; gone || kept; }
check what_came_back_has_it_or_says_no wait_for 30 either
check asked_again_it_is_the_same again 2
check and_is_no_second_one has web2 1

# ---- a snapshot ----------------------------------------------------------------------------------

nobody=$((port + 5))
expect a_snapshot_tells_who_did_not 1 "kept here, but not by every peer" snapshot \
	--store web2.db --last 2 --reason 'it is slow' \
	--peers "127.0.0.1:$((port + 1)),127.0.0.1:$nobody,127.0.0.1:$((port + 3));Auth=token"
check the_others_have_it has web3 2
check all_of_them has web1 3
check with_its_reason sh -c '"$0" list --store web3.db --json | jq -se ".[0].reason |
	test(\": it is slow; that clock is .*\\\\[group \")"' "$RECORDER"
group=$(group_of web3)
check of_the_group_of_the_first [ "$group" = "$(heads web2 | jq -rs '.[0].uuid')" ]
expect a_wrong_token_is_told 1 "the server says 401: this needs the token" ship --store web2.db \
	--id 2 --to "peer+http://127.0.0.1:$((port + 1))"
code=$(curl -s -o body -w '%{http_code}' -u "x:$token" "http://127.0.0.1:$((port + 1))/snapshot" \
	-d "{\"from\":\"2020-01-01\",\"to\":\"2020-01-02\",\"group\":\"$group-\"}")
check a_group_is_a_uuid [ "$code" = 400 ]
code=$(curl -s -o body -w '%{http_code}' -u "x:$token" "http://127.0.0.1:$((port + 1))/snapshot" \
	-d '{"from":"2020-01-01","to":"2020-01-02","group":"01234567-89ab-cdef-0123-456789abcdef"}')
check what_nobody_has_any_more_is_gone [ "$code" = 410 ]

# ---- side by side --------------------------------------------------------------------------------

stores="--store web1.db --store web2.db --store web3.db"
# shellcheck disable=SC2086
"$RECORDER" show $stores --group-id "${uuid:0:8}" --json >side 2>err
check hosts_side_by_side sh -c 'jq -se "map(select(.row == \"host\")) |
	length == 3 and (map(select(.fired == true)) | length == 1)" side'
check functions_have_a_share_of_each sh -c 'jq -se "map(select(.row == \"function\")) |
	length > 0 and length % 3 == 0" side'
# Counted by report of one store alone.
one=$(jq -rs 'map(select(.row == "function" and .self_pct > 0)) | .[0].name' side)
all=$("$RECORDER" show --store web2.db --id 1 --json 2>/dev/null | jq .samples)
check the_samples_are_those_of_the_store sh -c "jq -se 'map(select(.row == \"host\" and
	.fired == false)) | map(.samples) | contains([$all])' side"
check they_have_names [ -n "$one" ]
# shellcheck disable=SC2086
expect for_people 0 'FUNCTION, BY ITS OWN SHARE' show $stores --group-id "$uuid"
# shellcheck disable=SC2086
expect a_report_of_the_group 0 '3 incidents as one' report $stores --group-id "$uuid"
expect one_of_one_store 0 'boom' list --store web1.db --group-id "$uuid"
check has_one_row [ "$(grep -c boom out)" = 1 ]
expect no_such_group 3 'no incident of the group' show --store web1.db --group-id 00000000
expect a_short_id_is_refused 2 'give 8 digits' show --store web1.db --group-id 0000
expect several_stores_are_for_groups 2 'show --group-id take several' show --store a.db \
	--store b.db

# ---- the same over HTTP, while one is down -------------------------------------------------------

export XDG_CACHE_HOME=$PWD/cache
for i in 1 2 3 5; do echo "ship = peer+http://127.0.0.1:$((port + i));Auth=token"; done >group.conf
"$RECORDER" show --store web1.db --config group.conf --group-id "$uuid" --json >far 2>err
check hosts_side_by_side_by_http cmp side far
check who_does_not_answer_is_told [ "$(grep -c "left out: .*:$nobody: .*[Cc]onnect" err)" = 1 ]
check and_nobody_else [ "$(grep -c 'left out' err)" = 1 ]
expect a_report_by_http 0 '3 incidents as one' report --store web1.db --config group.conf \
	--group-id "$uuid"
expect one_that_is_down_may_be_the_first 0 '127.0.0.1|web2' show --group-id "$uuid" \
	--store "peer+http://127.0.0.1:$nobody" \
	--store "peer+http://127.0.0.1:$((port + 2));Auth=token"
"$RECORDER" show --store web1.db --config group.conf --group-id "$uuid" --json \
	--store "peer+http://127.0.0.1:$((port + 2));Auth=token" >twice 2>err
check one_that_is_named_twice_is_one cmp side twice
expect another_recorder_is_a_store 0 'ID  TIME' list \
	--store "peer+http://127.0.0.1:$((port + 2));Auth=token"
expect which_needs_the_token 1 'the server says 401: this needs the token' list \
	--store "peer+http://127.0.0.1:$((port + 2))"
expect all_of_them_may_be_down 1 'none of the stores' show --group-id "$uuid" \
	--store "peer+http://127.0.0.1:$nobody"

# ---- a peer that lies ----------------------------------------------------------------------------

python3 "$TOP/tests/support/peer_clock.py" "http://127.0.0.1:$((port + 3))" 1e290 >liar.port &
pids="$pids $!"
wait_for 20 test -s liar.port
expect a_clock_that_cannot_be_is_none 1 'tells no clock' snapshot --store web2.db --last 2 \
	--reason 'a lie' --peers "127.0.0.1:$(cat liar.port);Auth=token"

# ---- secrets -------------------------------------------------------------------------------------

status >status.json
check the_token_is_where_it_is_put grep -qs $token token
check and_nowhere_else sh -c \
	"! cat *.log *.db *.db-* status.json again.out err far \
		cache/recorder/*/* 2>/dev/null | grep -q $token"
