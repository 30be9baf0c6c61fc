#!/bin/bash
# The history of many machines on its way to ClickHouse: each with a name and chance of its own, a
# day of 10 Hz, in intervals of ten minutes. Senders are killed with -9 now and then, and the server
# once; at the end each interval and each sample must be there once.
#
#   tests/bench/fleet_history.sh [HOSTS] [HOURS]     (100, 24)
. "$(dirname "$0")/../support/cli.sh"
TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$TOP/tests/support/clickhouse.sh"
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
BUILD=${BUILD:-$TOP/build/linux}
HOSTS=${1:-100} HOURS=${2:-24}

clickhouse_measure
to="clickhouse+http://127.0.0.1:$http/fleet;Auth=auth;History=10m;RetrySec=1"

"$BUILD/programs/store_fixture" all.db
for id in 4 3 2 1; do "$RECORDER" delete "$id" --store all.db 2>/dev/null; done
"$BUILD/programs/history_fixture" all.db "$HOURS" 10 >/dev/null
samples=$("$RECORDER" history --store all.db --json | jq -s 'map(.samples // 0) | add')
for ((i = 0; i < HOSTS; i++)); do
	cp all.db "host$i.db"
	cp -r all.db.history "host$i.db.history"
	for file in "host$i.db.history"/*.db; do
		sqlite3 "$file" "UPDATE host SET name='host$i'"
	done
done

cpu_ms() { awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15 + $16 + $17) * 1000 / hz }' \
	"/proc/$1/stat"; }
from=$(date +%s) mine=$(cpu_ms $$) killed=0
for ((i = 0; i < HOSTS; i++)); do
	"$RECORDER" ship --store "host$i.db" --to "$to" >/dev/null 2>>ship.err &
	sender=$!
	if [ $((i % 5)) = 0 ]; then      # each fifth, somewhere in the middle
		sleep "0.$((RANDOM % 9 + 1))"
		kill -9 "$sender" 2>/dev/null && killed=$((killed + 1))
	elif [ "$i" = $((HOSTS / 2)) ]; then
		kill -9 "$ch"
		wait "$ch" 2>/dev/null
		clickhouse_run
	fi
	wait "$sender" 2>/dev/null
done
for ((i = 0; i < HOSTS; i++)); do
	wait_for 60 "$RECORDER" ship --store "host$i.db" --to "$to"
done
echo "$HOSTS hosts sent $HOURS h each in $(($(date +%s) - from)) s: $killed senders and the" \
	"server were killed; $(($(cpu_ms $$) - mine)) ms of CPU of the senders"
counted="batch IN (SELECT min(batch) FROM recorder_incidents GROUP BY uuid)"
there=$(echo "SELECT sum(samples) FROM recorder_samples WHERE $counted" | sql)
echo "samples: $there there, $((HOSTS * samples)) in the stores"
echo "intervals: $(echo 'SELECT count(), count(DISTINCT uuid), count(DISTINCT host)
	FROM recorder_incidents' | sql) rows, uuids, hosts;" \
	"$(for ((i = 0; i < HOSTS; i++)); do
		sqlite3 "host$i.db" 'SELECT sent FROM ship_past'
	done | awk '{ n += $1 } END { print n }') noted as sent"
[ "$there" = $((HOSTS * samples)) ] || { echo "not each sample is there once"; exit 1; }
"$RECORDER" fleet top --history --at "$to" | head -4
