#!/bin/bash
# make bench-heap: CPU time of a malloc and its free under what samples heaps, and what
# librecorder-heap.so takes of servers' CPU time (with valgrind). Peers that are not installed are
# left out: jemalloc (libjemalloc2), heaptrack, perf, redis-server, nginx (with ab of
# apache2-utils).
#
#   tests/bench/heap.sh [TURNS]          of each measurement (5); the median counts
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
LIBRARY=$TOP/build/linux/librecorder-heap.so
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
PAIRS=$TOP/build/linux/programs/heap_linux
JEMALLOC=$(echo /usr/lib/*/libjemalloc.so.2)
LIBC=$(echo /lib/*/libc.so.6)
TURNS=${1:-5}
export LC_ALL=C

work=$(mktemp -d) && cd "$work" || exit 1
server=
finish()
{
	[ -z "$server" ] || kill "$server" 2>/dev/null
	perf probe -q -d 'probe_libc:*' 2>/dev/null
	rm -rf "$work"
}
trap finish EXIT
trap 'exit 130' INT TERM

median() { sort -n | awk '{ v[NR] = $0 } END { print v[int((NR + 1) / 2)] }'; }

# pair NAME CALLS COMMAND...: which ends in heap_linux
pair()
{
	local name=$1 calls=$2
	shift 2
	for _ in $(seq "$TURNS"); do
		"$@" "$PAIRS" "$calls" pairs 2>/dev/null </dev/null | grep -E '^[0-9.]+ [0-9.]+$'
	done >got
	printf '%-26s 16 B to 1 KB %7.1f ns   8 KB %7.1f ns\n' "$name" \
		"$(cut -d' ' -f1 got | median)" "$(cut -d' ' -f2 got | median)"
}

echo "CPU time of a malloc and its free, of the quickest tenth; median of $TURNS:"
pair 'nobody' 20000000 env
pair 'library, not recorded' 20000000 env LD_PRELOAD="$LIBRARY"
pair 'run --heap' 20000000 "$RECORDER" run --heap --store run.db
if [ -e "$JEMALLOC" ]; then
	pair 'jemalloc' 20000000 env LD_PRELOAD="$JEMALLOC"
	pair 'jemalloc, its profile' 20000000 env LD_PRELOAD="$JEMALLOC" \
		MALLOC_CONF=prof:true,lg_prof_sample:19
fi
! command -v heaptrack >/dev/null || pair 'heaptrack' 2000000 heaptrack -o track
if perf probe -q -x "$LIBC" --add malloc 2>/dev/null; then
	pair 'perf uprobe, one in 1,000' 2000000 perf record -q -e probe_libc:malloc -c 1000 -o data
	perf probe -q -d 'probe_libc:*'
fi

# serve HOW COMMAND...: start it; its pid is $pid once ready() says so.
serve()
{
	local how=$1
	shift
	[ "$how" = without ] || set -- "$RECORDER" run --heap --store "$work/served.db" "$@"
	"$@" >/dev/null 2>&1 & server=$!
	for _ in $(seq 100); do pid=$(ready) && [ "$pid" ] && return; sleep 0.1; done
	echo "heap: a server did not start: $*" >&2
	exit 1
}

# costs NAME COMMAND...: what the library takes of the server's CPU time while load() runs. Times
# of two runs differ by more than that on most machines, so it is its share of the instructions
# (by callgrind), times the part of the CPU time that is not the kernel's.
costs()
{
	local name=$1 user all own
	shift
	serve without "$@"
	load 10 >/dev/null 2>&1
	user=$(awk '{ printf "%.1f", 100 * $14 / ($14 + $15) }' "/proc/$pid/stat")
	kill "$pid"; wait "$server"; server=
	serve with valgrind -q --tool=callgrind --callgrind-out-file="$work/calls" "$@"
	load 1 >/dev/null 2>&1
	kill "$pid"; wait "$server"; server=
	callgrind_annotate --threshold=100 calls >annotated
	all=$(sed -n 's/,//g; s/^ *\([0-9]*\).*PROGRAM TOTALS/\1/p' annotated)
	own=$(tr -d , <annotated | awk '/librecorder-heap.so]/ { n += $1 } END { print n }')
	awk -v all="$all" -v own="$own" -v user="$user" -v name="$name" 'BEGIN {
		format = "%-26s %.2f %% of its instructions, these %.0f %% of its CPU: %.2f %%\n"
		printf format, name, 100 * own / all, user, user * own / all }'
	rm -rf served.db* calls annotated
}

command -v callgrind_annotate >/dev/null || exit 0
if command -v redis-server >/dev/null; then
	ready() { redis-cli -p 7399 info server 2>/dev/null | tr -d '\r' |
		awk -F: '/^process_id/ { print $2 }'; }
	load() { redis-benchmark -p 7399 -q -n "${1}0000" -c 20 -t set,get; }
	costs 'redis, set and get' redis-server --port 7399 --save ''
fi
if command -v nginx >/dev/null && command -v ab >/dev/null; then
	mkdir -p n && cat >n/conf <<END
daemon off; master_process off; pid $work/n/pid; error_log $work/n/log; events {}
http { access_log off; client_body_temp_path $work/n/1; proxy_temp_path $work/n/2;
fastcgi_temp_path $work/n/3; uwsgi_temp_path $work/n/4; scgi_temp_path $work/n/5;
server { listen 127.0.0.1:7398; location / { return 200 "hello"; } } }
END
	ready() { curl -s -o /dev/null http://127.0.0.1:7398/ && cat n/pid; }
	load() { ab -q -n "${1}0000" -c 20 http://127.0.0.1:7398/; }
	costs 'nginx, answers of 5 bytes' nginx -c "$work/n/conf"
fi
