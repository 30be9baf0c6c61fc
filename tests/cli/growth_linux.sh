#!/bin/bash
# Memory by stack: who made it grow, by how much, and that what comes and goes is not growth.
# time limit: 240
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

KINDS="small large threads fork"
MB=600
gcc -O2 -D_GNU_SOURCE -pthread -o grow "$TOP/tests/programs/grow_linux.c" || exit 1
for kind in $KINDS huge; do ln grow "grow_$kind"; done
mkfifo hold

# grown TIMEOUT...: the programs below these wait for their input, after all of their growth.
grown()
{
	local pid

	for pid; do
		pid=$(pgrep -P "$pid")
		grep -q '^0 0x0 ' "/proc/$(pgrep -P "$pid" || echo "$pid")/syscall" || return
	done
}

# record STORE MB KIND... -- OPTION...: programs of these kinds grow for 6 s on a quiet machine, and
# have their memory until let_go.
record()
{
	local store=$1 mb=$2 kinds=() kind pid programs=()
	shift 2
	while [ "$1" != -- ]; do kinds+=("$1"); shift; done
	shift
	"$RECORDER" collect --store "$store" "$@" >log 2>&1 & pid=$!
	wait_for 60 grep -q 'recording this machine' log
	exec 7<>hold
	for kind in "${kinds[@]}"; do
		timeout 100 "./grow_$kind" "$kind" "$mb" 6 <hold 7>&- >/dev/null &
		programs+=($!)
	done
	wait_for 90 grown "${programs[@]}"
	sleep 1                              # the recorder looks at their sizes each second
	kill -INT $pid
	wait $pid
}

let_go() { exec 7>&-; }

# told KIND FILTER: from the objects of report --memory.
told()
{
	"$RECORDER" report --store "$store" --process "grow_$1" --memory --json 2>/dev/null |
		jq -s "$2"
}

# share KIND FUNCTION: of what a program touched and still had, in percent.
share()
{
	told "$1" "map(select(.row == \"function\")) | (map(.mb) | add) as \$all |
		(map(select(.name | endswith(\"!$2\")) | .mb) | add // 0) * 100 / \$all"
}

# within VALUE WANT PLUS_OR_MINUS
within()
{
	awk -v v="$1" -v w="$2" -v d="$3" 'BEGIN { print v; exit !(v >= w - d && v <= w + d) }'
}

# faults KIND: how many of what is still there were recorded.
faults() { told "$1" 'map(select(.row == "function") | .samples) | add // 0'; }

# Where other programs fault as well, fewer faults are recorded, and chance has its part: two and a
# half standard deviations were too few once in a hundred runs.
# margin KIND: 5 points, or four standard deviations
margin()
{
	awk -v n="$(faults "$1")" 'BEGIN { d = 400 * sqrt(0.21 / (n + 1)); print (d > 5 ? d : 5) }'
}

store=all.db
record $store $MB $KINDS -- --memory-period 61
let_go
for kind in $KINDS; do
	check "${kind}_seventy_percent_by_one" \
		within "$(share $kind grow_seventy)" 70 "$(margin $kind)"
	check "${kind}_what_comes_and_goes_is_not_there" within "$(share $kind come_and_go)" 0 2
	check "${kind}_grew_by_so_much" \
		within "$(told $kind 'map(select(.row == "memory") | .grew_mb) | max')" $MB 60
	check "${kind}_page_faults_say_the_same" within "$(told $kind \
		'map(select(.row == "memory" and .grew_mb > 100) | .factor) | max')" 1 0.25
done
report() { "$RECORDER" report --store $store --process grow_small "$@" 2>/dev/null; }
check touched_has_what_comes_and_goes grep -q '!come_and_go' <(report --metric rss --by-name)
check net_has_not expect_exit 1 grep -q '!come_and_go' <(report --metric rss-net --by-name)
check folded_stacks_are_in_bytes grep -qE 'grow_seventy.* [0-9]{6,}$' \
	<("$RECORDER" export --store $store --metric rss-net -f 2>/dev/null)
"$RECORDER" export --store $store --metric rss-net -o page.html 2>/dev/null
python3 - >page.json <<'END'
import base64, re, zlib
text = re.search(r'id="data">(.*?)</script>', open("page.html").read(), re.S).group(1)
print(zlib.decompress(base64.b64decode(text)).decode())
END
check the_page_has_it_in_bytes jq -e \
	'.unit == "bytes" and (tostring | test("grow_seventy"))' page.json

store=huge.db
echo 1 2>/dev/null >/proc/sys/vm/compact_memory
record $store 2000 huge -- --memory-period 7
n=$(faults huge)
# $! is timeout, whose child still has its memory.
got=$(awk '/^AnonHugePages/ { print int($2 / 1024) }' "/proc/$(pgrep -P $!)/smaps_rollup")
let_go
if grep -q '\[never\]' /sys/kernel/mm/transparent_hugepage/enabled; then
	echo "skip growth_linux: this kernel makes no huge pages"
elif [ "${got:-0}" -lt 1800 ]; then
	echo "skip growth_linux: of 2000 MB only ${got:-0} are huge pages: memory is fragmented"
elif [ "$n" -lt 50 ]; then
	echo "skip growth_linux: others fault so much that only $n of 500 huge pages were seen"
else
	check huge_pages_weigh_what_they_are \
		within "$(told huge 'map(select(.row == "memory") | .factor) | max')" 1 \
		"$(awk -v n="$n" 'BEGIN { d = 4 / sqrt(n); print (d > 0.25 ? d : 0.25) }')"
	check huge_seventy_percent_by_one within "$(share huge grow_seventy)" 70 "$(margin huge)"
	check huge_what_comes_and_goes_is_not_there within "$(share huge come_and_go)" 0 2
fi
check a_diff_tells_who_grew_more grep -q '"grew_more\|grow_seventy' <("$RECORDER" diff \
	--base-store $store 1 --store all.db 1 --metric rss-net --json 2>/dev/null)

"$RECORDER" collect --max-collect-sec 1 --store off.db >log 2>&1
check none_where_it_is_off expect_exit 3 "$RECORDER" report --store off.db --metric rss
