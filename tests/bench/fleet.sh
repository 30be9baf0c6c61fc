#!/bin/bash
# The questions of `recorder fleet` in ClickHouse: a hundred hosts, 20 services and 20,000 stacks,
# and as many rows of samples of the last ten days as asked for, made by the engine itself. Prints
# for each question how long it took, and the CPU time of the server, which other load hardly
# changes: on a quiet machine with N CPUs it takes about an Nth of that. Then the same after fold.
#
#   tests/bench/fleet.sh [MILLIONS]      of rows (100): some 1 GB of disk.
. "$(dirname "$0")/../support/cli.sh"
TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$TOP/tests/support/clickhouse.sh"
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
MILLIONS=${1:-100}

clickhouse_measure

# 100 incidents a million rows, of one host and minute each: 10,000 rows of its 20 services.
incidents=$((MILLIONS * 100))
sql <<-EOF
	INSERT INTO recorder_series (day, series, host, service, version, metric)
	SELECT today(), number, concat('host', toString(intDiv(number, 40))),
		concat('service', toString(number % 20)),
		if(number % 40 < 20, '1.0', '2.0'), 'cpu' FROM numbers(4000)
EOF
sql <<-EOF
	INSERT INTO recorder_stacks (day, stack, frames)
	SELECT today(), toInt64(intDiv(cityHash64(number), 2)),
		arrayMap(i -> concat('module', toString(cityHash64(number, i) % 50), '!function_',
		toString(cityHash64(number, i) % 5000)), range(20)) FROM numbers(20000)
EOF
sql <<-EOF
	INSERT INTO recorder_incidents (day, uuid, batch, host, rule, reason, signature,
		recorder_version, trigger_ns, from_ns, until_ns, samples, lost)
	SELECT today() - 1 - intDiv(number * 10, $incidents), toString(number),
		toInt64(intDiv(cityHash64(number), 2)),
		concat('host', toString(number % 100)), 'CPU', 'busy',
		concat('signature', toString(number % 50)), '1', t, t - 60000000000, t, 20000, 0
	FROM (SELECT number, toInt64(toUnixTimestamp(toDateTime(today()))) * 1000000000 -
		intDiv(number * 864000, $incidents) * 1000000000 AS t FROM numbers($incidents))
EOF
# The versions: a host's services have 1.0 in the first half of its incidents.
for ((i = 0; i < MILLIONS; i++)); do
	sql <<-EOF || { echo "ClickHouse takes no rows: $(tail -1 ch.log)"; exit 1; }
		INSERT INTO recorder_samples (day, batch, series, minute, stack, samples, weight)
		SELECT today() - 1 - intDiv(incident * 10, $incidents),
			toInt64(intDiv(cityHash64(incident), 2)),
			incident % 100 * 40 + row % 20 + if(incident * 2 < $incidents, 0, 20),
			toInt32(intDiv(toUnixTimestamp(toDateTime(today())) -
				intDiv(incident * 864000, $incidents), 60)),
			toInt64(intDiv(cityHash64(row * 7919 % 20000), 2)), 2, 20202020
		FROM (SELECT $i * 100 + intDiv(number, 10000) AS incident,
			number % 10000 * (incident % 2 + 1) AS row FROM numbers(1000000))
	EOF
done
disk() { echo "SELECT table, sum(rows), sum(bytes_on_disk) FROM system.parts WHERE active AND
	database = 'fleet' GROUP BY table" | sql; }
disk | awk '{ printf "%-20s %11d rows, %6.1f MB, %5.2f bytes a row\n", $1, $2, $3 / 1e6, $3 / $2 }'

cpu_ms() { awk -v hz="$(getconf CLK_TCK)" '{ print ($14 + $15) * 1000 / hz }' "/proc/$ch/stat"; }
# ask NAME ARGUMENT...: three times; the shortest of each counts
ask()
{
	local name=$1 best='' least='' from cpu
	shift
	for _ in $([ "$name" = fold ] && echo 1 || echo 1 2 3); do
		from=$(date +%s%N)
		cpu=$(cpu_ms)
		"$RECORDER" fleet "$@" --at "clickhouse+http://127.0.0.1:$http/fleet;Auth=auth" \
			>"$name.out" 2>&1 || { echo "$name: $(head -1 "$name.out")"; return; }
		printf '%s %s\n' $((($(date +%s%N) - from) / 1000000)) $(($(cpu_ms) - cpu))
	done >times
	best=$(cut -d' ' -f1 times | sort -n | head -1)
	least=$(cut -d' ' -f2 times | sort -n | head -1)
	printf '%-26s %6d ms, %6d ms of CPU   load %s\n' "$name" "$best" "$least" \
		"$(cut -d' ' -f1 /proc/loadavg)"
}
questions()
{
	ask list list
	ask top top
	ask top_of_one_host top --host host7
	ask top_of_one_service top --service service3
	ask report report
	ask two_versions diff --version 2.0 --against 1.0
}
questions
for file in *.out; do cp "$file" "$file.before"; done
ask fold fold
disk | grep days
questions
for name in list top top_of_one_host top_of_one_service report two_versions; do
	cmp "$name.out" "$name.out.before" || echo "$name: another answer after fold"
done
