#!/bin/bash
# The incidents of many machines on their way to ClickHouse, PostgreSQL and S3 at once: each machine
# with a name and clock of its own. Every connection is cut after a random number of bytes, senders
# are killed with -9 now and then, and each server once; at the end every incident must be in each
# of the three, once.
#
#   tests/bench/fleet_incidents.sh [HOSTS] [INCIDENTS]     of each host (100, 100)
. "$(dirname "$0")/../support/cli.sh"
TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$TOP/tests/support/clickhouse.sh"
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
BUILD=${BUILD:-$TOP/build/linux}
HOSTS=${1:-100} INCIDENTS=${2:-100}

clickhouse_measure

# ---- servers -------------------------------------------------------------------------------------

pg_port=$(port) s3_port=$(port) as=
PATH=$PATH:$(ls -d /usr/lib/postgresql/*/bin "$servers"/usr/lib/postgresql/*/bin 2>/dev/null |
	head -1)
home=$(mktemp -d /tmp/fleet.XXXXXX)
trap 'finish; rm -rf "$home"' EXIT
if [ "$(id -u)" = 0 ]; then
	as="setpriv --reuid=nobody --clear-groups"
	chown nobody "$home"
fi
$as initdb -D "$home/pg" -A trust -U recorder --no-sync >initdb.out 2>&1 ||
	{ echo "no PostgreSQL: $(tail -1 initdb.out)"; exit 1; }
pg_sql() { psql -h 127.0.0.1 -p "$pg_port" -U recorder -Atq "${1:-fleet}"; }
pg_run()
{
	$as postgres -D "$home/pg" -k "$home" -p "$pg_port" -c fsync=off >>pg.log 2>&1 &
	pg=$!
	started="$started $pg"
	wait_for 60 eval 'echo "SELECT 1" | pg_sql postgres'
}
s3_run()
{
	node -e 'const S3rver = require(process.argv[1] + "/s3rver");
		new S3rver({port: +process.argv[2], address: "127.0.0.1", silent: true,
			directory: "bucket", configureBuckets: [{name: "evidence"}]}).run();' \
		"$TOP/build/deps/npm/node_modules" "$s3_port" >>s3.log 2>&1 &
	s3=$!
	started="$started $s3"
	wait_for 60 curl -s "http://127.0.0.1:$s3_port/"
}
mkdir bucket
pg_run && s3_run || { echo "a server does not start: $(tail -n 1 pg.log s3.log)"; exit 1; }
echo 'CREATE DATABASE fleet' | pg_sql postgres
"$RECORDER" fleet schema --postgresql | pg_sql

# through NAME PORT: the port of a line to it that breaks
through()
{
	python3 "$TOP/tests/support/cutting_proxy.py" "$2" 1500000 >"$1.port" 2>>cuts &
	started="$started $!"
	wait_for 20 test -s "$1.port"
}
through ch "$http" && through pg "$pg_port" && through s3 "$s3_port" || exit 1
export AWS_ACCESS_KEY_ID=S3RVER AWS_SECRET_ACCESS_KEY=S3RVER
export AWS_ENDPOINT_URL=http://127.0.0.1:$(cat s3.port)
to=(--to "clickhouse+http://127.0.0.1:$(cat ch.port)/fleet;Auth=auth;RetrySec=1;StallSec=20"
	--to "postgresql://recorder@127.0.0.1:$(cat pg.port)/fleet;RetrySec=1;StallSec=20"
	--to "s3://evidence/prod;RetrySec=1;StallSec=20")

# ---- stores --------------------------------------------------------------------------------------

# Copies of the fixture's first incident, a minute apart; then each host's own.
"$BUILD/programs/store_fixture" all.db
columns=$(sqlite3 all.db "SELECT group_concat(name) FROM pragma_table_info('incident')
	WHERE name NOT IN ('id', 'uuid', 'trigger_wall_ns')")
uuid="lower(printf('%s-%s-4%s-8%s-%s', hex(randomblob(4)), hex(randomblob(2)),
	substr(hex(randomblob(2)), 2), substr(hex(randomblob(2)), 2), hex(randomblob(6))))"
some="WITH RECURSIVE n(k) AS (SELECT 1 UNION ALL SELECT k + 1 FROM n WHERE k < $INCIDENTS)"
{
	echo "PRAGMA foreign_keys=ON; $some INSERT INTO incident (id, uuid, trigger_wall_ns,
		$columns) SELECT 1000 + k, $uuid, trigger_wall_ns + k * 60000000000, $columns
		FROM incident, n WHERE id = 1;"
	for table in incident_segment stream loss quality; do
		rest=$(sqlite3 all.db "SELECT group_concat(name) FROM
			pragma_table_info('$table') WHERE name <> 'incident_id'")
		echo "$some INSERT INTO $table (incident_id, $rest) SELECT 1000 + k, $rest
			FROM $table, n WHERE incident_id = 1;"
	done
	echo "DELETE FROM incident WHERE id < 1000;"
} | sqlite3 all.db
for ((i = 0; i < HOSTS; i++)); do
	cp all.db "host$i.db"
	sqlite3 "host$i.db" "UPDATE host SET name='host$i'; UPDATE incident SET uuid=$uuid,
		trigger_wall_ns=trigger_wall_ns + ($i - $HOSTS / 2) * 7777777777"
	sqlite3 "host$i.db" "SELECT uuid FROM incident"
done | sort >want

# ---- sending -------------------------------------------------------------------------------------

ship() { "$RECORDER" ship --store "host$1.db" "${to[@]}" >/dev/null 2>>ship.err; }
from=$(date +%s) killed=0 senders=
for ((i = 0; i < HOSTS; i++)); do
	ship "$i" &
	sender=$!
	if [ $((i % 5)) = 0 ]; then          # each fifth, somewhere in the middle
		sleep "$((RANDOM % 3)).$((RANDOM % 9 + 1))"
		child=$(ps -o pid= --ppid "$sender" | head -1)
		[ "$child" ] && kill -9 "$child" 2>/dev/null && killed=$((killed + 1))
	fi
	case $i in
	$((HOSTS * 3 / 10))) kill -QUIT "$pg"; wait "$pg" 2>/dev/null; pg_run ;;
	$((HOSTS / 2))) kill -9 "$ch"; wait "$ch" 2>/dev/null; clickhouse_run ;;
	$((HOSTS * 7 / 10))) kill -9 "$s3"; wait "$s3" 2>/dev/null; s3_run ;;
	esac
	senders="$senders $sender"           # four send at once
	# shellcheck disable=SC2086
	[ $((i % 4)) != 3 ] || { wait $senders 2>/dev/null; senders=; }
done
# shellcheck disable=SC2086
[ ! "$senders" ] || wait $senders 2>/dev/null
again()
{
	local tries=0
	until ship "$1" || [ $((tries += 1)) = 100 ]; do :; done
}
senders=
for ((i = 0; i < HOSTS; i++)); do
	again "$i" &
	senders="$senders $!"
	# shellcheck disable=SC2086
	[ $((i % 4)) != 3 ] || { wait $senders; senders=; }
done
# shellcheck disable=SC2086
[ ! "$senders" ] || wait $senders
echo "$HOSTS hosts sent $INCIDENTS incidents each to three places in $(($(date +%s) - from)) s:" \
	"$killed senders and each server were killed, $(wc -l <cuts) connections cut"

# ---- what is there -------------------------------------------------------------------------------

samples=$(($(sqlite3 host0.db 'SELECT sum(samples) FROM incident') * HOSTS))
failed=0
# there NAME FILE SAMPLES: the uuids of a file are those of the stores
there()
{
	echo "$1: $(wc -l <"$2") incidents, $(sort -u "$2" | wc -l) uuids, $3 samples;" \
		"in the stores $(wc -l <want) and $samples"
	cmp -s want <(sort "$2") && [ "$3" = "$samples" ] || { failed=1; echo "$1: not the same"; }
}
counted="SELECT sum(samples) FROM recorder_samples WHERE batch IN (SELECT min(batch) FROM
	recorder_incidents GROUP BY uuid)"
uuids() { "$RECORDER" fleet list --rows 1000000 --json --at "$1" | jq -r .uuid; }
uuids "clickhouse+http://127.0.0.1:$http/fleet;Auth=auth" >ch.uuids
there ClickHouse ch.uuids "$(echo "$counted" | sql)"
echo "  rows of incidents: $(echo 'SELECT count() FROM recorder_incidents' | sql); of cut" \
	"uploads: $(echo "SELECT count(DISTINCT batch) FROM recorder_samples WHERE batch NOT IN
	(SELECT batch FROM recorder_incidents)" | sql)"
uuids "postgresql://recorder@127.0.0.1:$pg_port/fleet" >pg.uuids
there PostgreSQL pg.uuids "$(echo "$counted" | pg_sql)"
find bucket -name '*_object' | sed 's/.*\///; s/[.].*//' >s3.uuids
there S3 s3.uuids "$(find bucket -name '*_object' -exec sqlite3 {} \
	'SELECT sum(samples) FROM incident' \; | awk '{ n += $1 } END { print n }')"
exit $failed
