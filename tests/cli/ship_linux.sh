#!/bin/bash
# Incidents sent to a server that fails in every way, and to an S3 server, and read back from there.
. "$TOP/tests/support/cli.sh"
unset RECORDER_STORE RECORDER_CONFIG AWS_ENDPOINT_URL AWS_REGION AWS_ACCESS_KEY_ID \
	AWS_SECRET_ACCESS_KEY AWS_SESSION_TOKEN RECORDER_SHIP_AUTH http_proxy https_proxy
export XDG_CACHE_HOME=$TMP/cache

if ! command -v python3 >/dev/null; then
	echo "skip ship: python3 is missing, which takes incidents here"
	exit 0
fi
started=
end() { for pid in $started; do kill "$pid" 2>/dev/null; done; wait; }
trap end EXIT
mkdir taken
FATE=ctr5hcctt5rc timeout 300 python3 "$TOP/tests/support/ship_server.py" taken >port &
started="$started $!"
sleep 300 &
sleeper=$!
started="$started $sleeper"
wait_for 10 test -s port
url=http://127.0.0.1:$(cat port)

# incidents STORE N: make N incidents.
incidents()
{
	local i
	for ((i = 0; i < $2; i++)); do
		"$RECORDER" stacks -p "$sleeper" --store "$1" >/dev/null 2>&1 || return
	done
}
uuids() { "$RECORDER" list --store "$1" --json | jq -r .uuid | sort; }
taken() { sed 's/.*+//; s/[.].*//' taken/order | sort; }
ship() { "$RECORDER" ship --store s.db "$@"; }

wait_for 10 "$RECORDER" stacks -p "$sleeper"
incidents s.db 6 || { echo "not ok incidents: none were made"; exit 0; }
if ! ship --to "$url/ok/" >out 2>err && grep -q 'libcurl.* is missing: install' err; then
	echo "skip ship: libcurl is missing"
	exit 0
fi

# ---- what is sent ------------------------------------------------------------------------------

check each_incident_comes_once diff <(uuids s.db) <(taken)
check in_their_order diff <("$RECORDER" list --store s.db --json | jq -r .uuid | tac) \
	<(sed 's/.*+//; s/[.].*//' taken/order)
check and_as_a_store_of_its_own eval 'for file in taken/*.db; do
	"$RECORDER" verify --store "$file" && "$RECORDER" show --store "$file" >/dev/null || exit 1
	done'
expect what_was_sent_is_not_sent_again 0 '' ship --store s.db --to "$url/ok/"
check really [ "$(grep -c . taken/order)" = 6 ]
expect unless_it_is_asked_for 0 'incident 3 is sent' ship 3 --store s.db --to "$url/ok/"
check and_it_has_the_same_name [ "$(sort -u taken/order | grep -c .)" = 6 ]
expect a_format_has_its_suffix 0 'incident 2 is sent' ship 2 --store s.db \
	--to "$url/ok/;Format=jsonl"
check as_the_exporter_writes_it grep -q '"type"' taken/*.jsonl
rm taken/*.db taken/*.jsonl taken/order

# ---- a server that fails -----------------------------------------------------------------------

# Until everything is there; what hangs is given up after 2 s.
again=0
until ship --to "$url/chaos/;RetrySec=1;StallSec=2" >>chaos.out 2>>chaos.err ||
		[ $((again += 1)) = 30 ]; do :; done
check a_server_that_cuts_hangs_and_refuses_gets_everything diff <(uuids s.db) <(taken | sort -u)
check every_fate_was_met eval 'for what in cut taken 429 503 hang; do
	grep -q "^$what PUT /chaos/" taken/log || exit 1; done'
check nothing_came_broken expect_exit 1 grep -E '^(broken|short)' taken/log
check what_came_without_an_answer_came_again_under_its_name [ "$(sort -u taken/order | wc -l)" = 6 ]
check the_log_says_why grep -q 'not sent yet.*the server says 503: not now' chaos.err
expect what_a_server_refuses_is_told_in_its_words 1 \
	'incident 1 is refused: the server says 400: these bytes are of no use$' \
	ship --store s.db --to "$url/no/"
expect and_never_sent_again 0 '"refused":6.*"said":"the server says 400' \
	ship --store s.db --to "$url/no/" --json
check really_never [ "$(grep -c 'PUT /no/' taken/log)" = 6 ]

# ---- profiles of services -----------------------------------------------------------------------

npm=$TOP/build/deps/npm
"$BUILD/programs/store_fixture" f.db || echo "not ok store_fixture: failed"
profile() # SCHEME PATH [KEYS]: send incident 1 there
{
	rm -f taken/profile-*
	"$RECORDER" ship 1 --store f.db --to "$1+$url/$2;RetrySec=1${3:-}"
}
check pyroscope_gets_a_profile_of_each_service eval \
	"profile pyroscope ok 2>err && grep -q 'incident 1 is sent as 2 profiles' err"
window='from=1767323[0-9]*&until=1767323[0-9]*'
check as_its_own_clients_send_them grep -qE \
	"^/ok/ingest[?]name=server%7Bhost%3D[^&]*%7D&$window&format=pprof" \
	taken/profile-*-ingest.head
# What these clients were seen to post: the names of the query, and what kind of value each has.
query_of() { sed 's/^[^?]*[?]//; 1q' "$1" | tr '&' '\n' | grep -v '^sampleRate=' |
	sed -E 's/=[0-9]{10}$/=SECONDS/; s/^(spyName=).*/\1WHO/
		s/^(name=)[^%]+%7B[^%]+%3D.*%7D$/\1NAME{LABELS}/' | sort; }
check the_query_is_that_of_pyroscope_nodejs diff \
	<(query_of "$TOP/tests/data/pyroscope-nodejs-0.6.4.query") \
	<(query_of "$(ls taken/profile-*-ingest.head | head -1)")
profile datadog ok 2>err
check datadog_gets_its_parts eval 'for file in taken/profile-*-profiling+v1+input; do
	grep -aq "name=\"event\"; filename=\"event.json\"" $file &&
	grep -aq "\"attachments\":\[\"profile.pprof\"\],\"tags_profiler\":\"service:" $file &&
	grep -aq "name=\"profile.pprof\"; filename=\"profile.pprof\"" $file || exit 1; done'
event_of() { grep -ah '^{"' "$(ls taken/profile-*-profiling+v1+input | head -1)" | tr -d '\r'; }
check its_event_is_that_of_dd_trace jq -ne --slurpfile ours <(event_of) \
	--slurpfile theirs "$TOP/tests/data/dd-trace-5.60.0.json" '
	def shape: map_values(type) | del(.endpoint_counts);
	def times: [.start, .end] | all(test("^[0-9-]{10}T[0-9:]{8}([.][0-9]+)?Z$"));
	def tags: .tags_profiler | split(",") | all(test("^[a-z_-]+:[^:]"));
	($ours[0] | shape) == ($theirs[0] | shape) and $ours[0].version == $theirs[0].version and
	([$ours[0], $theirs[0]] | all(times and tags)) and
	($ours[0].tags_profiler | test("service:") and test("host:"))'
rm -f taken/profile-*
expect datadogs_agent_has_a_unix_socket 0 'incident 1 is sent as 2 profiles' \
	ship 1 --store f.db --to "datadog+unix://$PWD/taken/socket"
check where_they_come eval '[ "$(ls taken/profile-*-v1+input | wc -l)" = 2 ]'
expect what_otlp_rejects_is_refused_in_its_words 1 \
	'incident 1 is refused: the server says 400: it rejected the profile: too old' \
	ship 1 --store f.db --to "otlp+$url/partial"
expect a_layout_that_is_none_is_told 2 'there are the layouts 1.9 and 1.10' \
	ship --store f.db --to "otlp+$url/ok;Otlp=2"
expect a_profile_has_its_own_format 2 'Format: pyroscope[+]http:// has one of its own' \
	ship --store f.db --to "pyroscope+$url/ok;Format=svg"

# Every second request fails: what was taken is not sent again.
rm -f taken/profile-*
"$BUILD/programs/store_fixture" h.db
again=0
until "$RECORDER" ship 1 --store h.db --to "pyroscope+$url/half;RetrySec=1" >>half.out 2>&1 ||
		[ $((again += 1)) = 20 ]; do :; done
check what_failed_is_sent_again [ "$again" -ge 1 ]
check and_nothing_twice [ "$(ls taken/profile-*-ingest | wc -l)" = 2 ]

if ! command -v node >/dev/null || ! [ -e "$npm/node_modules/protobufjs" ]; then
	echo "skip profiles: no node, or no protobufjs (npm, by 'make deps')"
else
	read_profiles() { node "$TOP/tests/support/profiles_reader.js" "$npm" "$@"; }
	# 1000 samples of 10 ms: all are there, by whatever way they come.
	whole='(map(.sum) | add) == 10000000000'
	profile pyroscope ok 2>/dev/null
	check pyroscope_has_every_sample jq -se "$whole and length == 2" \
		<(read_profiles Sample taken/profile-*-ingest)
	check and_the_metric_alone jq -se 'all(.type == "cpu/nanoseconds")' \
		<(read_profiles Sample taken/profile-*-ingest)
	profile parca ok 2>/dev/null
	check parca_has_every_sample jq -se "$whole"' and (map(.service) | sort) ==
		["batch", "server"] and all(.name == "recorder_cpu")' \
		<(read_profiles Sample taken/profile-*+writeraw)
	profile otlp ok 2>/dev/null
	check otlp_has_every_sample jq -se "$whole"' and (map(.service) | sort) ==
		["batch", "server"] and all(.type == "cpu/nanoseconds" and .time) and
		(map(.id) | unique | length == 2) and
		(map(.kinds) | add | index("kernel") != null)' \
		<(read_profiles Sample taken/profile-*+profiles)
	profile otlp ok ';Otlp=1.9' 2>/dev/null
	check in_the_layout_of_1_9_too jq -se "$whole" \
		<(read_profiles Sample19 taken/profile-*+profiles)
	"$RECORDER" export --id 1 --store f.db -o all.otlp
	check export_writes_each_process jq -se "$whole"' and (map(.pid) | sort) == [100, 200]' \
		<(read_profiles Sample all.otlp)
fi

# ---- secrets -----------------------------------------------------------------------------------

(umask 077 && echo 'Authorization: Bearer t0ps3cret' >auth)
expect a_server_that_does_not_know_us_is_tried_again_later 1 'not sent yet.*401: who are you' \
	ship --store s.db --to "$url/secret/"
expect with_its_secret_it_takes_them 0 'incident 6 is sent' \
	ship --store s.db --to "$url/secret/;Auth=auth"
check it_has_seen_it grep -q '^Bearer t0ps3cret$' taken/auth-secret
chmod 640 auth
expect a_secret_that_others_can_read_is_refused 2 'auth: others can read it: chmod 600' \
	ship --store s.db --to "$url/secret/;Auth=auth"
chmod 600 auth
expect a_password_in_a_url_is_refused 2 'must hold no password' ship --store s.db \
	--to http://me:t0ps3cret@127.0.0.1/
expect a_secret_is_not_sent_in_the_open 2 'use https://' ship --store s.db \
	--to 'http://example.com/;Auth=auth'
expect nor_to_a_host_whose_name_begins_like_this_one 2 'use https://' ship --store s.db \
	--to 'http://localhost.example.com/;Auth=auth'
expect what_is_no_target_is_told 2 "'ftp://x' is no target; it begins with one of s3://" \
	ship --store s.db --to ftp://x
expect nor_is_a_wrong_key 2 "unknown key 'Foo'" ship --store s.db --to "$url/;Foo=1"

# ---- a recorder that sends by itself -----------------------------------------------------------

rm -f taken/*.db taken/order taken/again taken/log
cat >collect.conf <<END
source = none
history-mb = 0
delay-after-trigger-sec = 0
ship = $url/later/;RetrySec=1;Auth=auth
ship = $url/no/all/
END
record() # LOG: start a recorder and wait until it records
{
	"$RECORDER" collect --config collect.conf --store r.db >/dev/null 2>>"$1" &
	recorder=$!
	started="$started $recorder"
	wait_for 10 "$RECORDER" status --store r.db
}
snapshot() { "$RECORDER" snapshot --store r.db --reason "$1" >/dev/null 2>&1; }
stored() { [ "$("$RECORDER" list --store r.db --json 2>/dev/null | wc -l)" -ge "$1" ]; }
all_there() { diff <(uuids r.db) <(taken | sort -u); }
down() { grep -q '503 PUT /later/' taken/log; }
state() { "$RECORDER" status --store r.db --json; }

touch taken/down
record log1
snapshot one
check a_stored_incident_is_sent_at_once wait_for 20 down
snapshot two
check recording_goes_on_while_the_server_is_down wait_for 10 stored 2
check the_server_that_refuses_has_said_so wait_for 10 grep -q 'refused: the server says 400' log1
waits() { state | jq -e --arg n "$1" '.ship[0] | .queued == ($n | tonumber) and .failures > 0 and
	(.said | test("503: down"))'; }
check status_has_what_waits_and_why wait_for 20 waits 2
check status_for_people_too eval '"$RECORDER" status --store r.db >out; [ $? -le 4 ] &&
	grep -q "^Ship .*/later/: 2 queued, 0 sent; the server says 503: down" out &&
	grep -q "/no/all/: 0 queued, 0 sent, 2 refused" out'
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
check nothing_was_taken [ ! -e taken/order ]
record log2
snapshot three
wait_for 10 stored 3
kill -9 "$recorder"
wait "$recorder" 2>/dev/null
rm taken/down
record log3
check the_next_recorder_sends_what_two_that_were_killed_left wait_for 30 all_there
check each_once expect_exit 1 test -e taken/again
check in_the_order_in_which_they_came \
	diff <("$RECORDER" list --store r.db --json | jq -r .uuid | tac) \
	<(sed 's/.*+//; s/[.].*//' taken/order)
sent() { state | jq -e '.ship[0] | .queued == 0 and .sent == 3 and .failures == 0'; }
check status_says_so wait_for 10 sent
# What a core would have. The secret is not in the words of this command, which could be there.
in_memory() # PID: how often
{
	python3 -c 'import re, sys
n, secret = 0, open("auth", "rb").read().split()[-1]
for line in open("/proc/%s/maps" % sys.argv[1]):
    at = re.match("([0-9a-f]+)-([0-9a-f]+) r", line)
    if at and "[v" not in line:
        try:
            with open("/proc/%s/mem" % sys.argv[1], "rb") as memory:
                memory.seek(int(at[1], 16))
                n += memory.read(int(at[2], 16) - int(at[1], 16)).count(secret)
        except OSError:
            pass
print(n)' "$1"
}
bash -c 'secret=$(cat auth); sleep 60; : "$secret"' &
holds=$!
started="$started $holds"
sleep 1
check a_core_of_a_program_that_holds_a_secret_has_it [ "$(in_memory "$holds")" -gt 0 ]
check a_core_of_the_recorder_has_none [ "$(in_memory "$recorder")" = 0 ]
"$RECORDER" stop --store r.db >/dev/null 2>&1
wait "$recorder"
check the_last_incident_is_sent_at_the_end all_there
check the_process_that_sends_had_its_secret grep -q t0ps3cret taken/auth-later
check no_secret_is_in_logs_status_and_stores \
	expect_exit 1 grep -r t0ps3cret log1 log2 log3 out err chaos.out chaos.err s.db r.db
touch taken/down
expect a_lock_is_no_matter_for_a_store_without_recorder 0 '' ship --store r.db \
	--to "$url/later/;RetrySec=1"
incidents r.db 1
expect what_fails_by_hand_is_told 1 'not sent yet, and tried again in 1 s' ship --store r.db \
	--to "$url/later/;RetrySec=1"
"$RECORDER" delete 5 --store r.db 2>/dev/null
expect what_is_deleted_unsent_is_counted 0 '1 incident was deleted before it was sent' \
	ship --store r.db --to "$url/later/;RetrySec=1"
incidents q.db 1
due() { "$RECORDER" ship --due --store q.db --to "$url/later/;RetrySec=1" >>due.out 2>>due.err; }
failed() { due; [ "$(sqlite3 q.db "SELECT tries FROM ship WHERE uuid != ''")" = 3 ]; }
check three_tries_fail wait_for 60 failed
check the_same_failure_is_told_once [ "$(grep -c 'not sent yet' due.err)" = 1 ]
rm taken/down
check and_that_it_is_over wait_for 60 eval 'due; grep -q "/later/: incident 1 is sent" due.err'
expect a_wrong_target_stops_collect_at_once 2 "^recorder: --ship: 'x' is no target" \
	collect --store n.db --source none --ship x
expect so_does_check_say_it 2 "'x' is no target" check --store n.db --source none --ship x

# ---- S3 ----------------------------------------------------------------------------------------

# This server computes each signature again; s3rver does not look at them.
sign()
{
	AWS_ENDPOINT_URL=$url AWS_ACCESS_KEY_ID=AKID AWS_SECRET_ACCESS_KEY=$1 \
		AWS_REGION=eu-west-1 AWS_SESSION_TOKEN=${2:-} \
		"$RECORDER" ship 1 --store s.db --to 's3://signed/a b+c/é;RetrySec=1'
}
check a_signature_of_ours_is_theirs sign s3cr3t
check one_with_a_session_too sign s3cr3t t0ken/+=
check one_with_a_wrong_secret_is_not eval 'sign wrong >out 2>&1; grep -q "403: SignatureDoes" out'

npm=$TOP/build/deps/npm/node_modules
if ! [ -e "$npm/s3rver" ] || ! command -v node >/dev/null; then
	echo "skip ship_to_s3: no s3rver (npm, by 'make deps')"
	exit 0
fi
mkdir bucket
timeout 300 node -e '
	const S3rver = require(process.argv[1] + "/s3rver");
	new S3rver({port: 0, address: "127.0.0.1", silent: true, directory: "bucket",
		configureBuckets: [{name: "evidence"}]})
		.run().then((address) => console.log(address.port));' "$npm" >s3port &
started="$started $!"
wait_for 60 test -s s3port
export AWS_ENDPOINT_URL=http://127.0.0.1:$(cat s3port) AWS_ACCESS_KEY_ID=S3RVER
unset AWS_SECRET_ACCESS_KEY
expect s3_needs_keys 2 'no keys: set AWS_ACCESS_KEY_ID' ship --store s.db --to s3://evidence/prod
export AWS_SECRET_ACCESS_KEY=S3RVER
AWS_ACCESS_KEY_ID=wrongk3y expect a_wrong_key_is_told 1 'not sent yet.*403: InvalidAccessKeyId' \
	ship --store s.db --to 's3://evidence/prod;RetrySec=1'
expect a_bucket_takes_them 0 's3://evidence/prod: incident 6 is sent' \
	ship --store s.db --to s3://evidence/prod
objects() { find bucket -name '*_object' | sed 's/.*\///; s/[.].*//' | sort; }
check each_is_an_object diff <(uuids s.db) <(objects)
day=$(hostname)/$(date -u +%Y/%m/%d)
check by_host_and_day [ "$(find bucket -path "*/evidence/prod/$day/*_object" | wc -l)" = 6 ]
expect a_large_one_goes_in_parts 0 'incident 2 is sent, 108 KB' ship 2 --store s.db \
	--to 's3://evidence/parts;PartKB=50'
whole=$(find bucket -path '*/parts/*_object')
check which_are_one_object_then "$RECORDER" verify --store "$whole"
check as_it_was_sent [ "$(sqlite3 s.db "SELECT sha256 FROM ship WHERE target='s3://evidence/parts'
	AND state='sent'")" = "$(sha256sum <"$whole" | cut -d' ' -f1)" ]
(umask 077 && printf '[default]\naws_access_key_id=S3RVER\naws_secret_access_key = S3RVER\n' >keys)
AWS_ACCESS_KEY_ID=wrongk3y expect keys_may_be_in_a_file 0 'incident 1 is sent' ship --store r.db \
	--to 's3://evidence/prod;Auth=keys'
expect a_bucket_that_is_not_there_is_told 1 '404: NoSuchBucket' ship --store s.db \
	--to 's3://nowhere/x;RetrySec=1'

# Two hosts: the same store under another name.
cp s.db web.db
sqlite3 web.db "UPDATE host SET name='web 1'; UPDATE incident SET
	uuid='00000000' || substr(uuid, 9), trigger_wall_ns=trigger_wall_ns - 9 * 86400000000000;
	DELETE FROM ship"
expect another_host_has_its_own_names 0 'incident 1 is sent' ship --store web.db \
	--to s3://evidence/prod
check under_its_host [ "$(find bucket -path '*/prod/web_1/*_object' | wc -l)" = 6 ]
remote() { local verb=$1; shift; "$RECORDER" "$verb" --store s3://evidence/prod "$@"; }
remote list --json >list.json 2>err
check a_bucket_is_read_as_a_store diff <(jq -r .uuid list.json | sort) \
	<({ uuids s.db; uuids r.db; uuids web.db; } | sort)
check people_see_the_hosts eval 'remote list >out && grep -q " HOST " out && grep -q " web 1 " out'
check one_host_is_chosen [ "$(remote list --host 'web 1' --json | wc -l)" = 6 ]
check or_a_time [ "$(remote list --since 2d --json | grep -c '"host":"web 1"')" = 0 ]
id=$(jq -r --arg uuid "$(uuids s.db | head -1)" 'select(.uuid == $uuid) | .id' list.json)
own=$("$RECORDER" list --store s.db --json | jq -r --arg uuid "$(uuids s.db | head -1)" \
	'select(.uuid == $uuid) | .id')
check an_incident_from_there_is_the_same diff \
	<("$RECORDER" export "$own" --store s.db --format jsonl -o - | sed 's/"id":[0-9]*//') \
	<(remote export "$id" --format jsonl -o - | sed 's/"id":[0-9]*//')
check it_is_shown remote show "$id"
check what_is_here_is_not_fetched_again eval 'find bucket -name "*_object" -exec truncate -s 9 {} +
	remote show "$id" 2>err && ! grep -q "cannot be read" err'
rm -rf cache
remote list >out 2>err
check what_is_no_store_is_told grep -q 'incidents of s3://evidence/prod cannot be read: ' err
rm -rf bucket/evidence/prod/*
remote list >out 2>err
check what_left_the_bucket_leaves_the_cache grep -q 'no incidents in' err
expect a_bucket_is_only_read 2 'pin: a bucket or another recorder is only read' \
	pin 1 --store s3://evidence/prod
check no_key_is_in_a_store_or_message \
	expect_exit 1 grep -rE 'wrongk3y|S3RVER|s3cr3t|t0ken' s.db r.db out err cache
