#!/bin/bash
# Who waits for the lock of a Python process (GIL), how long, and who holds it meanwhile: of every
# CPython from 3.7 on that is found here, beside what the program measures itself.
# time limit: 300
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

# sums NAME WAITER HOLDER: of NAME.folded, ms of the thread WAITER in GIL and READIED_TIME, and per
# cent of its GIL time that is held by HOLDER with a stack that has the words of NAME.
sums()
{
	awk -v waiter="-$2;" -v holder="thread $3" -v held="$4" '
		{ n = $NF; if (!index($0, waiter)) next }
		/\[thread\]!READIED_TIME/ { ready += n }
		match($0, /\[thread\]!GIL/) { gil += n; by = substr($0, RSTART)
			gsub(/thread_/, "thread ", by)
			if (index(by, holder)) { known += n; if (by ~ held) good += n } }
		END { printf "%d %d %.1f %.1f\n", gil / 1e6, ready / 1e6,
			gil ? 100 * known / gil : 0, known ? 100 * good / known : 0 }' "$1.folded"
}

try()
{
	local version=$1 python=$2 how=$3 held=$4 name=gil$1$3
	local holder waiter waited gil ready known good lost tries
	# A holder that waits for a CPU is in no function, and a busy machine has many that wait.
	for tries in 1 2 3; do
		rm -rf "$name.db"*
		"$RECORDER" run --store "$name.db" --thread-time --freq 499 --max-cpu-percent 0 \
			-- "$python" python_gil.py "$how" 3 >"$name.out" 2>"$name.log"
		"$RECORDER" export 1 --store "$name.db" --metric off-cpu -f -o "$name.folded" \
			2>>"$name.log"
		read -r holder waiter waited < <(grep -E '^[0-9]+ [0-9]+ [0-9.]+$' "$name.out")
		read -r gil ready known good < <(sums "$name" "${waiter:-x}" "${holder:-x}" "$held")
		lost=$("$RECORDER" show 1 --store "$name.db" | grep '^Lost ' | grep -v ' nothing$')
		[ ! "$lost" ] && [ "${good%.*}" -lt 80 ] || break
	done
	if [ "$lost" ]; then
		echo "skip Python $version, $how: this machine is so busy that switches were lost"
		return
	fi
	check "Python $version, $how: $gil ms of GIL, $ready ms ready, of ${waited:-?} s measured" \
		awk -v gil="$gil" -v ready="$ready" -v ms="$waited" 'BEGIN { ms *= 1000
			exit !(ms > 100 && gil < 1.05 * ms + 20 && gil + ready > 0.85 * ms - 20) }'
	# 95 to 100 and 100 on a machine that has nothing else to do.
	check "Python $version, $how: $known % have the holder, $good % of these its function" \
		awk -v known="$known" -v good="$good" 'BEGIN { exit !(known >= 80 && good >= 80) }'
}

cp "$TOP/tests/programs/python_gil.py" .
found=$(pythons)
[ "$found" ] || echo "skip python gil: no CPython here (apt-get install python3)"
while read -r version python; do
	case $version in
	'') ;;
	2.* | 3.6) echo "skip Python $version: its lock has no address that is known" ;;
	*) try "$version" "$python" computes '\[python\]!python_gil\.computes'
	   try "$version" "$python" sleeps 'nanosleep'
	   last=gil${version}sleeps.db ;;
	esac
done <<<"$found"
[ ! "${last-}" ] ||
	expect "show sums it up" 0 "waiting for Python's lock" show 1 --store "$last"
