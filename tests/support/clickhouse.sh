# A server of ClickHouse in ./ch, for fleet_linux.sh and bench/fleet.sh. Source it, then:
#
#	clickhouse_start    false: there is none, or it does not start; $clickhouse_why says why
#	sql [DATABASE]      ask it; the statement comes on stdin
#	tables DATABASE     make it, with our tables
#	clickhouse_measure  for a script of bench/: all of that in a folder that ends with it
#
# $ch is its process, $http its port, ./auth has its secret for ;Auth=. Its caller ends $started.
# shellcheck shell=bash disable=SC2154
servers=$TOP/build/deps/servers
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0))
print(s.getsockname()[1])'; }

sql() { curl -sf -H 'X-ClickHouse-User: default' -H 'X-ClickHouse-Key: t0ps3cret' \
	--data-binary @- "http://127.0.0.1:$http/?database=${1:-fleet}"; }

clickhouse_run()
{
	LD_LIBRARY_PATH=$servers/usr/lib/x86_64-linux-gnu \
		"$clickhouse" --config-file="$PWD/ch/config.xml" >>ch.log 2>&1 &
	ch=$!
	started="$started $ch"
	wait_for 60 eval 'echo "SELECT 1" | sql default'
}

clickhouse_start()
{
	clickhouse=$(command -v clickhouse-server /usr/sbin/clickhouse-server \
		"$servers/usr/sbin/clickhouse-server" | head -1)
	clickhouse_why="no clickhouse-server (Debian's, by 'make deps')"
	[ "$clickhouse" ] || return
	http=$(port)
	mkdir ch
	cat >ch/config.xml <<-EOF
		<yandex><logger><level>warning</level><console>1</console></logger>
		<http_port>$http</http_port><tcp_port>$(port)</tcp_port>
		<listen_host>127.0.0.1</listen_host><path>$PWD/ch/data/</path>
		<tmp_path>$PWD/ch/tmp/</tmp_path><users_config>$PWD/ch/users.xml</users_config>
		<default_profile>default</default_profile>
		<default_database>default</default_database>
		<mark_cache_size>5368709</mark_cache_size></yandex>
	EOF
	cat >ch/users.xml <<-EOF
		<yandex><profiles><default></default></profiles><users><default>
		<password>t0ps3cret</password><networks><ip>127.0.0.1</ip></networks>
		<profile>default</profile><quota>default</quota></default></users>
		<quotas><default></default></quotas></yandex>
	EOF
	(umask 077; printf 'X-ClickHouse-User: default\nX-ClickHouse-Key: t0ps3cret\n' >auth)
	clickhouse_run && return
	clickhouse_why=$(tail -1 ch.log)
	return 1
}

tables()
{
	"$RECORDER" fleet schema --clickhouse | tr '\n' ' ' | sed 's/;/\n/g' |
		while read -r statement; do
			[ -z "$statement" ] || echo "$statement" | sql "$1"
		done
}

clickhouse_measure()
{
	unset http_proxy https_proxy
	work=$(mktemp -d) && cd "$work" || exit 1
	started=
	finish() { for pid in $started; do kill -9 "$pid" 2>/dev/null; done; wait; rm -rf "$work"; }
	trap finish EXIT
	trap 'exit 130' INT TERM
	clickhouse_start || { echo "no ClickHouse: $clickhouse_why"; exit 1; }
	echo 'CREATE DATABASE fleet' | sql default
	tables fleet
}
