#!/bin/bash
# Incidents of several machines in PostgreSQL and ClickHouse, and questions to all of them: the
# answers are those of the stores themselves, and each incident is there once, whatever was cut.
. "$TOP/tests/support/cli.sh"
. "$TOP/tests/support/clickhouse.sh"
unset RECORDER_STORE RECORDER_CONFIG RECORDER_SHIP_AUTH http_proxy https_proxy PGHOST PGPORT \
	PGUSER PGDATABASE PGPASSWORD PGSERVICE

started=
end() { for pid in $started; do kill -9 "$pid" 2>/dev/null; done; wait; }
trap end EXIT
fleet() { "$RECORDER" fleet "$@" --at "$url"; }

# ---- what needs no server ------------------------------------------------------------------------

expect a_schema_is_for_one_of_both 2 'clickhouse or --postgresql' fleet schema
expect it_has_the_tables 0 \
	'= ReplacingMergeTree.day. ORDER BY stack TTL day [+] INTERVAL 9 DAY' \
	fleet schema --clickhouse --ttl-days 9
expect of_a_cluster_each_server_has_its_part 0 \
	"Distributed.'c1', currentDatabase.., recorder_samples" \
	fleet schema --clickhouse --cluster c1
expect a_question_needs_a_database 2 'which database' fleet list
expect a_bucket_is_none 2 'a bucket is no database' fleet list --at s3://evidence/prod
expect nor_is_a_profiler 2 'is no database' fleet list --at otlp+http://127.0.0.1:1
expect what_fleet_does_not_know_is_told 2 'list, top, report, diff, fold or schema' fleet frobnicate
expect a_password_in_a_url_is_refused 2 'must hold no password' fleet list \
	--at postgresql://me:s3cret@db/fleet
expect a_metric_that_is_not_sent_is_told 2 'these are: cpu, ' fleet top --metric event \
	--at clickhouse+http://127.0.0.1:1/fleet
expect a_server_that_is_not_there_is_told 1 'fleet: .*[Cc]onnect' fleet list \
	--at clickhouse+http://127.0.0.1:1/fleet

# ---- stores of five machines ---------------------------------------------------------------------

# The fixture as machines web1 to web5, each with uuids of its own; the last two are another
# version, which burns elsewhere.
for n in 1 2 3 4 5; do
	"$BUILD/programs/store_fixture" "web$n.db" $([ $n -ge 4 ] && echo 1) ||
		{ echo "not ok stores: none were made"; exit 0; }
	sqlite3 "web$n.db" "UPDATE host SET name='web$n'"
done
# An hour of history of two machines: 36,000 samples of one CPU and 100 of another, 100 ms each.
for n in 1 2; do
	"$BUILD/programs/history_fixture" "web$n.db" 1 10 >/dev/null
	for file in "web$n.db.history"/*.db; do
		sqlite3 "$file" "UPDATE host SET name='web$n'"
	done
done
# own HOST...: what the stores themselves say of their functions: name, own ns.
own()
{
	local n id
	for n; do
		for id in $("$RECORDER" list --store "$n.db" --json | jq -r .id); do
			"$RECORDER" report "$id" --store "$n.db" --by-name --rows 1000 --json \
				2>/dev/null | jq -r 'select(.row == "function") |
					[.name, .self_ms] | @tsv'
		done
	done | awk -F'\t' '{ s[$1] += $2 }
		END { for (n in s) if (s[n] > 0) printf "%s %.1f\n", n, s[n] }' | sort
}
there() { fleet top --rows 1000 --json "$@" | jq -r 'select(.row == "function") |
	[.name, .self_ms] | @tsv' | awk -F'\t' '{ printf "%s %.1f\n", $1, $2 }' | sort; }
uuids() { local n; for n; do "$RECORDER" list --store "$n.db" --json; done | jq -r .uuid | sort; }
in_fleet() { fleet list --rows 1000 --json | jq -r .uuid | sort; }
everyone="web1 web2 web3 web4 web5"

# The same of each database. $url, and sql STATEMENT, are its own.
questions()
{
	local what=$1 n
	for n in 1 2 3; do
		"$RECORDER" ship --store "web$n.db" --to "$url" 2>>ship.err
	done
	"$RECORDER" ship --store web4.db --to "$url;Version=2.0" 2>>ship.err
	"$RECORDER" ship --store web5.db --to "$url;Version=2.0" 2>>ship.err
	check "${what}_has_each_incident_once" diff <(uuids $everyone) <(in_fleet)
	"$RECORDER" ship --all --store web1.db --to "$url" 2>>ship.err
	check "${what}_has_them_once_when_they_are_sent_again" diff <(uuids $everyone) <(in_fleet)
	check "${what}_says_what_the_stores_say" diff <(own $everyone) <(there)
	check "${what}_of_one_host" diff <(own web5) <(there --host web5)
	check "${what}_of_one_version" diff <(own web4 web5) <(there --version 2.0)
	check "${what}_of_one_service" [ "$(there --service batch | wc -l)" = 1 ]
	check "${what}_of_one_rule" [ "$(fleet list --rule memory --json | wc -l)" = 5 ]
	check "${what}_of_a_time" expect_exit 3 fleet list --since 1h
	check "${what}_names_no_rule_of_an_attack" \
		expect_exit 3 fleet list --rule "'; DROP TABLE recorder_samples; --\\"
	fleet report --json >report
	check "${what}_names_the_host_that_differs" [ "$(jq -r 'select(.row == "outlier") |
		[.host, .name] | join(" ")' report | sort | head -1)" = "web4 server!burn_alpha" ]
	check "${what}_counts_hosts_of_a_signature" jq -se 'map(select(.row == "signature" and
		.rule == "manual")) | map(.hosts) | add == 5' report
	check "${what}_has_services_and_versions" jq -se 'map(select(.row == "service" and
		.version == "2.0")) | length == 2 and all(.hosts == 2)' report
	check "${what}_for_people" eval 'fleet report | grep -q "^Fleet  *20 incidents of 5 hosts"'
	check "${what}_tells_two_versions_apart" expect_exit 3 \
		fleet diff --host web5 --version 2.0 --against 9.9
	check "${what}_has_nothing_of_a_week_before" expect_exit 3 \
		fleet diff --since 1d --against 1w
	check "${what}_knows_what_is_no_time" expect_exit 2 fleet diff --since 1d --against 7x
	fleet report -o "$what.html"
	check "${what}_has_a_page_with_a_lane_for_each_host" \
		[ "$(grep -c 'class="lane"' "$what.html")" = 5 ]
	check "${what}_has_a_mark_for_each_incident" \
		[ "$(grep -c '<rect class="mark"' "$what.html")" = "$(in_fleet | wc -l)" ]
	check "${what}_has_the_time_of_each_host" diff \
		<(sed -n 's/^<.svg><i>\(.*\) s<.*/\1/p' "$what.html") \
		<(for n in $everyone; do
			own "$n" | awk '{ n += $2 } END { printf "%.1f\n", n / 1e3 }'
		done)
	# The history, apart from incidents; it may be sent in two rounds, or again.
	for n in 1 2; do
		"$RECORDER" ship --store "web$n.db" --to "$url;History=10m" 2>>ship.err
	done
	check "${what}_still_says_so_beside_the_history" diff <(own $everyone) <(there)
	check "${what}_has_the_history_of_both" diff <(there --history) \
		<(printf '%s\n' 'nightly!burn 20000.0' 'steady!idle_along 7200000.0')
	sqlite3 web1.db 'UPDATE ship_past SET next_wall_ns=0, file=0'
	"$RECORDER" ship --store web1.db --to "$url;History=10m" 2>>ship.err
	check "${what}_has_it_once_when_it_is_sent_again" diff <(there --history --host web1) \
		<(printf '%s\n' 'nightly!burn 10000.0' 'steady!idle_along 3600000.0')
	# 9.85 s of 33.483 s of each host, and nothing: without samples there is no version.
	fleet diff --version 2.0 --against 0201020300000000 --json >report
	check "${what}_compares_them" jq -se 'map(select(.name == "server!burn_alpha")) |
		last | .base_cpus > 0.2941 and .base_cpus < 0.2943 and .test_cpus == 0' report
}

# ---- PostgreSQL ----------------------------------------------------------------------------------

postgresql()
{
	local bin as= n pg
	home=$(mktemp -d /tmp/fleet.XXXXXX)  # of a short name, as a socket's must be
	trap 'end; rm -rf "$home"' EXIT
	bin=$(ls -d "$servers"/usr/lib/postgresql/*/bin /usr/lib/postgresql/*/bin 2>/dev/null |
		tail -1)
	PATH=$PATH:$bin
	if ! [ -x "$bin/postgres" ] || ! command -v psql >/dev/null; then
		echo "skip fleet_postgresql: no postgresql (Debian's package, by 'make deps')"
		return
	fi
	if [ "$(id -u)" = 0 ]; then  # it does not run as root
		as="setpriv --reuid=nobody --clear-groups"
		chown nobody "$home"
	fi
	if ! $as "$bin/initdb" -D "$home/pg" -A trust -U recorder --no-sync >initdb.out 2>&1; then
		echo "skip fleet_postgresql: initdb: $(tail -1 initdb.out)"
		return
	fi
	start_pg()
	{
		$as "$bin/postgres" -D "$home/pg" -k "$home" -c listen_addresses= -c fsync=off \
			>>pg.log 2>&1 &
		pg=$!
		started="$started $pg"
		wait_for 60 psql -h "$home" -U recorder postgres -c 'SELECT 1'
	}
	start_pg || { echo "skip fleet_postgresql: $(tail -1 pg.log)"; return; }
	url="postgresql://recorder@/fleet?host=$home"
	sql() { psql -h "$home" -U recorder -Atq -v ON_ERROR_STOP=1 fleet "$@"; }
	psql -h "$home" -U recorder -q postgres -c 'CREATE DATABASE fleet'
	expect no_tables_are_told 1 'does not exist.*fleet schema' fleet list --at "$url"
	"$RECORDER" fleet schema --postgresql | sql
	check a_schema_may_be_run_again eval \
		'"$RECORDER" fleet schema --postgresql | sql 2>/dev/null'
	questions postgresql

	# Killed in the middle: a lock holds the sender in its transaction.
	"$BUILD/programs/store_fixture" cut.db
	sqlite3 cut.db "UPDATE host SET name='cut'"
	psql -h "$home" -U recorder -q fleet >lock.out 2>&1 \
		-c 'BEGIN; LOCK recorder_incidents; SELECT 1; SELECT pg_sleep(600)' &
	started="$started $!"
	held() { [ "$(sql -c "SELECT count(*) FROM pg_locks WHERE NOT granted")" -ge 1 ]; }
	locked() { [ "$(sql -c "SELECT count(*) FROM pg_locks WHERE mode = 'AccessExclusiveLock' AND
		relation = 'recorder_incidents'::regclass AND granted")" = 1 ]; }
	wait_for 60 locked
	"$RECORDER" ship --store cut.db --to "$url;RetrySec=1" 2>cut.err &
	n=$!
	started="$started $n"
	check a_sender_waits wait_for 60 held
	$as kill -QUIT "$pg"         # at once, as a crash
	wait "$pg"
	check a_server_that_dies_is_told expect_exit 1 wait "$n"
	start_pg
	check nothing_of_it_is_there [ "$(sql -c "SELECT count(*) FROM recorder_incidents i JOIN
		recorder_samples s USING (batch) WHERE host = 'cut'")" = 0 ]
	sent() { "$RECORDER" ship --store cut.db --to "$url;RetrySec=1" 2>>cut.err; }
	check then_it_is_sent wait_for 60 sent
	check once diff <(uuids cut) \
		<(sql -c "SELECT uuid FROM recorder_incidents WHERE host = 'cut'" | sort)
	check a_recorder_listens_to_it eval 'psql -h "$home" -U recorder fleet <<-EOS | grep -q \
			"notification \"recorder_incident\""
		LISTEN recorder_incident;
		\! "$BUILD/programs/store_fixture" n.db
		\! "$RECORDER" ship 1 --store n.db --to "$url" 2>&1
		SELECT 1;
	EOS'
	sql -c 'DROP FUNCTION recorder_day'
	"$RECORDER" fleet schema --postgresql --ttl-days 30 | sql 2>/dev/null
	sql -c 'DROP TABLE recorder_samples_20260102'
	"$BUILD/programs/store_fixture" late.db
	expect what_is_too_old_is_refused_for_good 1 \
		'is refused: the server says 400: ERROR:  older than the 30 days that are kept' \
		ship --store late.db --to "$url"
}
(postgresql)

# ---- ClickHouse ----------------------------------------------------------------------------------

clickhouse()
{
	trap end EXIT                        # a subshell has no trap of its parent's
	if ! clickhouse_start; then
		echo "skip fleet_clickhouse: $clickhouse_why"
		return
	fi
	echo 'CREATE DATABASE fleet' | sql default
	url="clickhouse+http://127.0.0.1:$http/fleet;Auth=auth"
	expect no_tables_of_clickhouse_are_told 1 "doesn't exist.*fleet schema" \
		fleet list --at "$url"
	tables fleet
	questions clickhouse
	expect days_that_are_over_are_summed_up 0 '^2026-01-02: 20 incidents' fleet fold --at "$url"
	check with_the_same_answers diff <(own $everyone) <(there)
	# Until noon of the day that is summed up: all of it, though the day is not taken whole.
	noon=$(($(date +%s) - $(date +%s -d 2026-01-02T12:00Z)))
	fleet diff --since $((noon + 86400))s --against ${noon}s >report
	check of_a_part_of_a_day_as_well eval \
		'[ $(grep -c "20 incidents of 5 hosts" report) = 2 ] &&
		! grep -E "(burn|idle)" report'
	check of_a_host_and_of_a_version_too diff <(own web4 web5) <(there --version 2.0)
	expect once_only 0 'summed up already' fleet fold --at "$url"

	# What an upload that was cut has left counts for nobody.
	"$BUILD/programs/store_fixture" cut2.db
	sqlite3 cut2.db "UPDATE host SET name='cut2'"
	echo 'RENAME TABLE recorder_incidents TO away' | sql
	expect a_cut_upload_is_told 1 'not sent yet' ship 1 --store cut2.db --to "$url;RetrySec=1"
	echo 'RENAME TABLE away TO recorder_incidents' | sql
	echo "INSERT INTO recorder_samples SELECT day, batch + 1, series, minute, stack, samples,
		weight FROM recorder_samples" | sql
	check no_half_of_it_counts diff <(own $everyone) <(there)
	kill -9 "$ch"
	wait "$ch" 2>/dev/null
	expect a_dead_server_is_told 1 'not sent yet' ship --store cut2.db --to "$url;RetrySec=1"
	clickhouse_run
	check it_is_sent_later wait_for 60 \
		"$RECORDER" ship --store cut2.db --to "$url;RetrySec=1"
	check each_once diff <(uuids $everyone cut2) <(in_fleet)
	# Two rows of one incident, as after an answer that was lost: it counts once.
	echo "INSERT INTO recorder_incidents SELECT day, uuid, batch + 1, host, rule, reason,
		signature, recorder_version, trigger_ns, from_ns, until_ns, samples, lost
		FROM recorder_incidents" | sql
	check twice_there_counts_once diff <(own $everyone cut2) <(there)
	expect a_day_that_has_one_more_is_summed_up_again 0 '^2026-01-02: 24 incidents' \
		fleet fold --at "$url"
	echo "ALTER TABLE recorder_samples DROP PARTITION '2026-01-02'" | sql
	check its_sums_alone_are_read diff <(own $everyone cut2) <(there)
	check no_secret_is_in_stores_and_messages expect_exit 1 \
		grep -r t0ps3cret web1.db ship.err err out
}
(clickhouse)
