#!/bin/bash
# The history on its way to servers: each sample of it arrives, once and in order, though the server
# fails and is away for a day, and the sender is killed.
. "$TOP/tests/support/cli.sh"
unset RECORDER_STORE RECORDER_CONFIG RECORDER_SHIP_AUTH http_proxy https_proxy

if ! command -v python3 >/dev/null; then
	echo "skip ship_history: python3 is missing, which takes profiles here"
	exit 0
fi
started=
end() { for pid in $started; do kill "$pid" 2>/dev/null; done; wait; }
trap end EXIT
mkdir taken
FATE=hctr5hcctt5rc timeout 600 python3 "$TOP/tests/support/ship_server.py" taken >port &
started="$started $!"
wait_for 10 test -s port
url=http://127.0.0.1:$(cat port)

# past STORE HOURS: a store whose incidents were sent, and HOURS of history at 10 Hz, which end with
# 10 s in which a second CPU was busy. Wall clock: until a second ago.
past()
{
	"$BUILD/programs/store_fixture" "$1" && "$BUILD/programs/history_fixture" "$1" "$2" 10 &&
		for id in 4 3 2 1; do "$RECORDER" delete "$id" --store "$1" 2>&1; done
}
past h.db 1 >/dev/null || { echo "not ok past: none was made"; exit 0; }
"$RECORDER" ship --store h.db --to "$url/ok/" >out 2>err
if grep -q 'libcurl.* is missing: install' err; then
	echo "skip ship_history: libcurl is missing"
	exit 0
fi
counts() { cat taken/*.folded | awk '{ n += $NF } END { print n + 0 }'; }
names() { sed 's/^[^?]*?//' taken/order; }

# ---- what is sent --------------------------------------------------------------------------------

expect an_interval_has_a_length 2 'how long is an interval[?] 10s to 600s' ship --store h.db \
	--to "pyroscope+$url/ok;History=5s"
expect a_file_of_it_needs_a_format 2 'History= needs ;Format=' ship --store h.db \
	--to "$url/ok/;History=60s"
expect a_peer_has_its_own 2 'a peer has a history of its own' ship --store h.db \
	--to "peer+$url;History=60s"
expect profiles_of_each_minute_are_sent 0 'the history from .*:00Z to .*Z is sent as' \
	ship --store h.db --to "pyroscope+$url/ok;History=60s"
check a_minute_is_a_profile [ "$(ls taken/profile-*-ingest | wc -l)" -ge 61 ]
starts() { grep -ho 'from=[0-9]*' taken/*.head; }
check in_order diff <(starts) <(starts | sort -n)
expect once 0 '' ship --store h.db --to "pyroscope+$url/ok;History=60s"
npm=$TOP/build/deps/npm
if ! command -v node >/dev/null || ! [ -e "$npm/node_modules/protobufjs" ]; then
	echo "skip every_sample: no node, or no protobufjs (npm, by 'make deps')"
else
	# 36,000 samples of one CPU and 100 of the other, each 100 ms.
	check every_sample_is_there jq -se 'map(.sum) | add == 3610000000000' \
		<(node "$TOP/tests/support/profiles_reader.js" "$npm" Sample taken/profile-*-ingest)
fi

# ---- a server that fails, a sender that is killed ------------------------------------------------

to="$url/chaos/;Format=folded;History=10m"
"$RECORDER" ship --store h.db --to "$to" 2>/dev/null &
sender=$!
started="$started $sender"
check a_first_interval_is_being_sent wait_for 30 grep -q '^hang' taken/log
kill -9 "$sender"
wait "$sender" 2>/dev/null
check its_name_will_be_the_same [ "$(sqlite3 h.db \
	"SELECT length(series) FROM ship_past WHERE target LIKE '%chaos%'")" = 32 ]
again=0
to="$url/chaos/;Format=folded;History=10m;RetrySec=1;StallSec=2"
until "$RECORDER" ship --store h.db --to "$to" >>chaos.out 2>&1 ||
		[ $((again += 1)) = 30 ]; do :; done
check whatever_a_server_does_every_sample_is_there [ "$(counts)" = 36100 ]
check it_did_cut_hang_and_refuse eval 'for what in cut taken 429 503 hang; do
	grep -q "^$what PUT /chaos/" taken/log || exit 1; done'
rm -f taken/*.folded taken/order
for many in 5 20 35; do
	"$RECORDER" ship --store h.db --to "$url/ok/killed/;Format=folded;History=1m" 2>/dev/null &
	sender=$!
	started="$started $sender"
	some() { [ "$(ls taken/*.folded | wc -l)" -ge "$many" ]; }
	wait_for 30 some
	kill -9 "$sender" 2>/dev/null
	wait "$sender" 2>/dev/null
done
"$RECORDER" ship --store h.db --to "$url/ok/killed/;Format=folded;History=1m" 2>/dev/null
check a_sender_that_was_killed_sends_no_sample_twice [ "$(counts)" = 36100 ]
check one_interval_at_most_came_again eval \
	'[ "$(cat taken/again 2>/dev/null | grep -c folded)" -le $((3 + 12)) ]'

# ---- a day without network -----------------------------------------------------------------------

past day.db 24 >/dev/null
file=$(ls day.db.history/*.db)
mv "$file" "${file/000001/000007}"
there=$("$RECORDER" history --store day.db --json | jq -s 'map(.samples // 0) | add')
rm -f taken/*.folded taken/order
touch taken/down
to="$url/later/;Format=folded;History=10m;RetrySec=1"
to_profiler="pyroscope+$url/later;History=10m;RetrySec=1"
rm -f taken/profile-*
expect a_day_without_network_is_told_once 1 'the history from .* is not sent yet' ship \
	--store day.db --to "$to" --to "$to_profiler"
check nothing_else_was_tried [ "$(wc -l <err)" -le 3 ]
rm taken/down
expect then_all_of_the_day_follows 0 '"queued":0.*"history_sent":14[4-6],"history_refused":0' \
	ship --store day.db --to "$to" --to "$to_profiler" --json
check in_the_order_in_which_it_was diff <(starts) <(starts | sort -n)
check all_intervals_of_it [ "$(starts | sort -u | wc -l)" -ge 144 ]
check with_every_sample [ "$(counts)" = "$there" ]
check which_is_a_day_of_it [ "$there" -ge $((24 * 36000 + 100)) ]
rm -r day.db.history
"$BUILD/programs/history_fixture" day.db 1 10 >/dev/null
expect a_history_that_was_begun_anew_is_sent_too 0 '"history_sent":15[1-5]' ship --store day.db \
	--to "$to" --json

# ---- a recorder that sends by itself -------------------------------------------------------------

if ! [ -e "$npm/node_modules/protobufjs" ]; then
	exit 0                       # as said above
fi
rm -f taken/profile-*
to="pyroscope+$url/ok;History=10s"
"$RECORDER" collect --store live.db --ship "$to" >/dev/null 2>live.log &
recorder=$!
started="$started $recorder"
if ! wait_for 20 "$RECORDER" status --store live.db; then
	echo "skip ship_history_live: collect: $(head -c 200 live.log | tr '\n' ' ')"
	exit 0
fi
"$BUILD/programs/burn" 60 >/dev/null 2>&1 &
started="$started $!"
came() { ls taken/profile-*-ingest; }
check a_recorder_sends_its_history_meanwhile wait_for 120 came
check status_says_how_far wait_for 30 eval '"$RECORDER" status --store live.db |
	grep -q "^Ship .*, the history until 20"'
"$RECORDER" abort --store live.db >/dev/null 2>&1
wait "$recorder"
"$RECORDER" ship --store live.db --to "$to" 2>live.err
# Of CPU time, in ns: what came, and what the files of the history hold.
cpu_ns() { node "$TOP/tests/support/profiles_reader.js" "$npm" Sample "$@" |
	jq -s 'map(select(.type == "cpu/nanoseconds") | .sum) | add'; }
for file in live.db.history/*.db; do
	"$RECORDER" export --store "$file" -o "$(basename "$file").otlp" 2>live.err
done
check every_sample_of_it_came_once \
	[ "$(cpu_ns ./*.otlp)" = "$(cpu_ns taken/profile-*-ingest)" ]
check and_there_were_some [ "$(cpu_ns taken/profile-*-ingest)" -gt 1000000000 ]
