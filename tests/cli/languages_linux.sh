#!/bin/bash
# All languages at once in one incident: C, Go, Rust, Java, Python, JavaScript and .NET. Each
# process has the kinds of frames that it should, and complete stacks; what the recorder costs is
# printed. LANGUAGES_S=60 is the long variant.
# time limit: 400
. "$TOP/tests/support/cli.sh"
need_perf
seconds=${LANGUAGES_S:-8}
lives=$((seconds * 2 + 150))                  # until they are ended
export RECORDER_STORE=$TMP/s.db GOCACHE=$TMP/gocache

cat >go.go <<'END'
package main

//go:noinline
func turns(n uint64) (s uint64) { for i := uint64(0); i < n; i++ { s = s*31 + i }; return }
func main() { for s := uint64(0); ; { s += turns(100000); if s == 1 { println(s) } } }
END
cat >rust.rs <<'END'
#[inline(never)]
fn turns(n: u64) -> u64 { (0..n).fold(1, |s, i| std::hint::black_box(s * 31 ^ i)) }
fn main() { loop { std::hint::black_box(turns(100000)); } }
END
cat >node.js <<'END'
function turns(n) { let s = 0; for (let i = 0; i < n; i++) s = (s * 31 + i) | 0; return s; }
function round() { return JSON.stringify([turns(100000), turns(20000)]); }
for (;;) round();
END
cat >python.py <<'END'
def turns(n):
    return sum(i * i % 7 for i in range(n))
while True:
    turns(10000)
END
awk 'BEGIN { printf "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"t\"}},"
	printf "\"results\":["
	for (i = 0; i < 400000; i++)
		printf "%s{\"ruleId\":\"R%d\",\"message\":{\"text\":\"%d\"}}",
			i ? "," : "", i % 50, i
	printf "]}]}" }' >huge.sarif

# start NAME COMMAND...: it runs until the end.
started=
start()
{
	local name=$1
	shift
	"$@" >"$name.out" 2>&1 &
	pid[$name]=$!
	started+=" $name"
}
declare -A pid
trap 'kill "${pid[@]}" 2>/dev/null' EXIT

# rewrites: .NET's program ends each time; another one follows.
rewrites()
{
	local until=$((SECONDS + lives)) program=
	trap 'kill $program; exit' TERM
	while [ $SECONDS -lt $until ]; do
		./dotnetwork rewrite huge.sarif --output out.sarif --log ForceOverwrite & program=$!
		wait $program
	done
}

start burn "$TOP/build/linux/programs/burn" $lives
command -v go >/dev/null && CGO_ENABLED=0 go build -o gowork go.go 2>err && start gowork ./gowork
command -v rustc >/dev/null && rustc -g -O -o rustwork rust.rs 2>err && start rustwork ./rustwork
command -v javac >/dev/null && javac -Xlint:-options --release 8 -d . \
	"$TOP/tests/programs/JavaWork.java" && start java java -cp . JavaWork $lives
start python /usr/bin/python3 python.py
command -v node >/dev/null && start node node node.js
dotnet=$TOP/build/deps/npm/node_modules/@microsoft/sarif-multitool-linux/Sarif.Multitool
[ -f "$dotnet" ] && cp "$dotnet" dotnetwork && chmod +x dotnetwork &&
	./dotnetwork version >version 2>&1 && start dotnetwork rewrites
for name in gowork rustwork java node dotnetwork; do
	[[ " $started " == *" $name "* ]] || echo "skip $name: it is not here, or does not run"
done
sleep 3

# Until each has had CPU time enough for 50 samples, on a machine that is busy otherwise too.
TIMEFORMAT='%U %S %R'
{ time "$RECORDER" collect --history-mb 0 --max-collect-sec 300 2>log; } 2>cost & recorder=$!
wait_for 20 grep -q recording log
until=$((SECONDS + seconds))
all_burn 500 "${pid[@]/${pid[dotnetwork]:-none}/${pid[burn]}}"
while [ $SECONDS -lt $until ]; do sleep 0.1; done
kill -INT $(ps -o pid= --ppid $recorder)
wait $recorder
awk '{ printf "the recorder took %.2f s of CPU for %.0f s, its start and its writing included: " \
	"%.2f %% of a core\n", $1 + $2, $3, 100 * ($1 + $2) / $3 }' cost
kill "${pid[@]}"
wait "${pid[@]}" 2>/dev/null

# kinds PROCESS: "SAMPLES WHOLE TEXT" of its processes together, as `show` prints them: WHOLE per
# cent have their root, by whatever means. Go's stacks end where its frame pointers do.
kinds()
{
	"$RECORDER" show 1 --process "$1" >"$1.show" 2>err
	awk '/ %  .*\([0-9]+\): [0-9]+ %/ {
		n = $1; gsub(",", "", n)
		n *= $2 == "s" ? 99 : 1      # CPU time, where the rate was lowered
		all += n
		for (i = 4; i < NF; i++)
			if ($(i + 1) == "%" && $(i + 2) ~ /^(complete|by|stitched|read)/)
				good += n * $i
		if (match($0, /; .*/)) text = substr($0, RSTART + 2) }
		END { printf "%d %.1f %s\n", all, all ? good / all : 0, text }' "$1.show"
}

for name in $started; do
	of=${pid[$name]}
	kind=
	case $name in
	java) kind=Java ;;
	python) kind=Python ;;
	node) kind=JavaScript ;;
	dotnetwork) kind=.NET of=dotnetwork ;;
	esac
	read -r n complete text < <(kinds "$of")
	echo "$name: $n samples, $complete % complete; $text"
	check "${name}_has_complete_stacks" awk -v n="$n" -v c="$complete" \
		'BEGIN { exit !(n >= 20 && c >= 90) }'
	[ ! "$kind" ] ||
		check "${name}_has_$kind" grep -Eq "$kind in ([2-9][0-9]|100) %" <<<"$text"
done
