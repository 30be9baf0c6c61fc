# The load of tests/bench: six programs of the distribution, busy at once. Source it, then
#
#	load_start SECONDS      each is ended after that many seconds at the latest
#	load_stop
#
# What runs is in load_names (sh python3 sqlite3 cc1 node java java-fp), and by name in
# load_process: what `recorder show --process` is told, a name or a pid, and in load_task its first
# process. LOAD="java node" starts only these. What is not installed is skipped aloud. Everything
# is written in the current directory; TOP is the repository, whose sources gcc compiles.
# shellcheck shell=bash
load_names=()
declare -A load_process load_task load_pid

# load_one NAME PROCESS SECONDS COMMAND...: start one program; PROCESS "pid" means the command's own
# pid
load_one()
{
	local name=$1 process=$2 seconds=$3 child=
	shift 3
	timeout -k 2 "$seconds" "$@" >/dev/null 2>"load.$name.err" </dev/null &
	load_pid[$name]=$!
	while [ -z "$child" ] && kill -0 "${load_pid[$name]}" 2>/dev/null; do
		read -r child _ <"/proc/${load_pid[$name]}/task/${load_pid[$name]}/children"
	done 2>/dev/null
	[ "$process" != pid ] || process=$child
	load_task[$name]=$child
	load_names+=("$name")
	load_process[$name]=$process
}

load_has()
{
	[ -z "${LOAD:-}" ] || [[ " $LOAD " == *" $2 "* ]] || return
	[ -x "$1" ] && return
	echo "skip: $2 is not in the load:" \
		"$1 is not installed (Debian: dash python3 sqlite3 gcc nodejs default-jdk-headless)"
	return 1
}

load_start()
{
	local s=$1 java

	cat >load.py <<'PY'
import json
def fib(n):
    return n if n < 2 else fib(n - 1) + fib(n - 2)
while True:
    fib(18)
    rows = [{"id": i, "name": "row %d" % i} for i in range(500)]
    json.loads(json.dumps(sorted(rows, key=lambda r: r["name"])))
PY
	cat >load.js <<'JS'
const fib = n => n < 2 ? n : fib(n - 1) + fib(n - 2);
for (;;) {
	fib(20);
	const rows = Array.from({length: 2000},
		(_, i) => ({id: i, name: 'row ' + i * 7919 % 2000}));
	rows.sort((a, b) => a.name < b.name ? -1 : 1);
	JSON.parse(JSON.stringify(rows)).map(r => r.name.replace(/o(.)/g, '$1'));
}
JS
	mkdir -p java
	cat >java/Load.java <<'JAVA'
import java.util.*;
import java.util.stream.*;
public class Load {
	static int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
	static long rows() {
		List<String> rows = IntStream.range(0, 2000).mapToObj(i -> "row " + i * 7919 % 2000)
			.collect(Collectors.toList());
		Collections.sort(rows);
		Map<String, Integer> counts = new TreeMap<>();
		for (String row : rows)
			counts.merge(row.substring(0, 5), 1, Integer::sum);
		return counts.values().stream().mapToLong(Integer::longValue).sum();
	}
	public static void main(String[] args) {
		for (long sum = 0; ; sum += fib(20))
			sum += rows();
	}
}
JAVA
	load_has /bin/dash sh &&
		load_one sh pid "$s" /bin/dash -c 'i=0; while :; do i=$((i + 1)); case $i in
			*7) x=${i#?}$i ;; *) x=$i ;; esac; test "$x" = 1 && echo "$x"; done'
	load_has /usr/bin/python3 python3 &&
		load_one python3 pid "$s" /usr/bin/python3 load.py
	load_has /usr/bin/sqlite3 sqlite3 &&
		load_one sqlite3 pid "$s" /usr/bin/sqlite3 :memory: "
			create table t (a integer, b text);
			with recursive c(x) as (
				select 1 union all select x + 1 from c where x < 50000)
				insert into t select x * 7919 % 50021, 'row ' || x from c;
			with recursive c(x) as (select 1 union all select x + 1 from c)
				select sum((select count(*) from t
					where a between x % 50021 and x % 50021 + 40
					and b like '%7%') + length(hex(x))) from c;"
	# gcc's compiler under a name of its own, because somebody else may be compiling. Each run
	# is a short process.
	if load_has /usr/bin/gcc cc1; then
		cp "$(gcc -print-prog-name=cc1)" ./cc1-load
		load_one cc1 cc1-load "$s" /bin/bash \
			-c 'while :; do for c in "$0"/recorder/*/*.c; do
			./cc1-load -quiet -O2 -D_GNU_SOURCE -w -imultiarch x86_64-linux-gnu \
				-iquote "$0" -iquote "$0/recorder" -o /dev/null "$c"; done; done' \
				"$TOP"
	fi
	load_has /usr/bin/node node &&
		load_one node pid "$s" /usr/bin/node load.js
	java=/usr/bin/java
	if load_has $java java && load_has /usr/bin/javac java; then
		[ -s java/Load.class ] || javac -d java java/Load.java || return
		load_one java pid "$s" $java -Xmx256m -XX:+UseSerialGC -cp java Load
		[ -n "${LOAD:-}" ] || load_one java-fp pid "$s" $java -Xmx256m -XX:+UseSerialGC \
			-XX:+PreserveFramePointer \
			-cp java Load
	fi
}

load_stop()
{
	local pid
	for pid in "${load_pid[@]}"; do
		kill -TERM "$pid" 2>/dev/null
	done
	wait "${load_pid[@]}" 2>/dev/null
}
