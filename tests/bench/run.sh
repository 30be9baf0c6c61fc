#!/bin/bash
# make bench: what the recorder costs and holds, beside perf where perf is installed. Less than 8
# minutes; BENCH_LONG=1 adds 8 more: the memory of 5.8 days, and what the disk is given.
#
# 1. bench_pipeline: the portable layers on a made stream (see its head for what the stream is).
#    bench_export_linux: `recorder export` of that stream, store to file, with its memory. If
#    Chromium is installed, also how long it takes to load the HTML report.
#    bench_months: 7 hours, with BENCH_LONG=1 5.8 days, of churn through the whole engine. Nothing
#    may be lost, and over days memory must stay where it is.
#    bench_triggers: what 20 rules add per event; a week of limits that move.
#    bench_unwind: real stacks of python3, sqlite3, dash and cc1 with a warm rule cache.
# 2. bench_symbols: the index of a large binary, lookups in it, and the same from the cache on disk.
# 3. bench_etl: a real trace of Windows, if it is there, and the same made 1 GB long; files of perf
#    record, and a .nettrace made 100 MB long.
# 4. live: one `burn` on each CPU, the recorder at 99 Hz, and in the same run, beside it, under the
#    same load, perf with frame pointers (-g) and with stack copies (--call-graph dwarf,16384).
# 5. probes.sh: what rules on tracepoints, and --thread-time, add to a system call and to a switch.
# 6. scale.sh: 2 to 512 CPUs, large programs, the start among many processes.
#
# Goals stand in the rows that hold them. Those that are ratios to commit 386384e (a live sample,
# ETL, loading, exports) need its build beside: make bench-compare OLD=386384e.
#
# Rows go to stdout, the same as JSON with the command that made them to build/bench/results.jsonl.
# Missed goals are named at the end; with BENCH_STRICT=1 they are an error.
# Everything is written below build/bench/; only processes started here are ended. BENCH_LIVE_S=20
# is how long the live part measures; other arguments go to bench_pipeline (--samples 200000).
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
BUILD=$TOP/build/linux
RECORDER=$BUILD/recorder
DIR=$TOP/build/bench
LIVE_S=${BENCH_LIVE_S:-20}
LONG=${BENCH_LONG:-}
MONTHS=${BENCH_MONTHS:-${LONG:+1e8}}
MONTHS=${MONTHS:-5e6}
FREQ=99
FP_RING_KB=128          # of perf's rings per CPU: small enough to be full after a live run
DWARF_RING_KB=4096
export LC_ALL=C

RESULTS=$DIR/results.jsonl
. "$TOP/tests/bench/rows.sh"

command -v jq >/dev/null || { echo "bench: needs jq (make deps installs it)" >&2; exit 1; }
mkdir -p "$DIR" && cd "$DIR" || exit 1
rm -rf work && mkdir work || exit 1
: >"$RESULTS"

# File systems that on_ext4() made.
drop_disks()
{
	local at
	for at in "$DIR"/work/ext4.*/; do
		! mountpoint -q "$at" || umount "$at"
	done
}

started=()
finish()
{
	local pid
	for pid in "${started[@]}"; do
		kill -TERM "$pid" 2>/dev/null
	done
	for pid in "${started[@]}"; do
		timeout 20 tail --pid="$pid" -f /dev/null || kill -KILL "$pid" 2>/dev/null
	done
	drop_disks
	rm -rf "$DIR/work"
}
trap finish EXIT
trap 'exit 130' INT TERM

now_ms() { echo $(($(date +%s%N) / 1000000)); }
status() { "$RECORDER" status --json --store work/live.db 2>/dev/null; }
field()  { jq -r ".$2 // \"?\"" <<<"$1" 2>/dev/null || echo '?'; }
forks()  { awk '/^processes/ { print $2 }' /proc/stat; }
load()   { cut -d ' ' -f 1 /proc/loadavg; }
# Print the smaller of that many seconds and the rest of the 175 s that part 3, and then part 4, may
# take.
left()   { local s=$((175 - SECONDS)); [ $s -gt "$1" ] && s=$1; [ "$s" -gt 1 ] || s=1; echo "$s"; }

# timed SECONDS OUT COMMAND...: run it and put its ms into $took; if it failed, "?" and the reason
# into $failure.
timed()
{
	local limit=$1 out=$2 start
	shift 2
	start=$(now_ms)
	timeout "$limit" "$@" >"$out" 2>work/err
	case $? in
	0)   took=$(($(now_ms) - start)) failure= ;;
	124) took='?' failure="it took more than $limit s" ;;
	134) took='?' failure="it crashed: $(tail -n 1 work/err)" ;;
	*)   took='?' failure=$(tail -n 1 work/err) ;;
	esac
} 2>/dev/null                           # bash's own word on a crash

cpus=$(nproc)
commit=$(git -C "$TOP" describe --always --dirty 2>/dev/null)
echo "machine                 $(uname -srm), $cpus CPUs, $(date -u +%FT%TZ)," \
	"load average $(load), commit ${commit:-unknown}"
jq -nc --arg kernel "$(uname -srm)" --argjson cpus "$cpus" --arg date "$(date -u +%FT%TZ)" \
	--arg commit "$commit" \
	--arg model "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)" \
	--argjson load "$(load)" '{row: "machine", kernel: $kernel, cpus: $cpus, cpu_model: $model,
	date: $date, commit: $commit, load_average_1m: $load,
	command: "uname -srm; nproc; date -u"}' >>"$RESULTS"

# ---- 1. the pipeline -----------------------------------------------------------------------------

echo
echo "Pipeline: a made stream, best of 3"
pipeline=(build/linux/programs/bench_pipeline --json --keep --dir build/bench/work "$@")
(cd "$TOP" && timeout 180 "${pipeline[@]}" 3>&1 >build/bench/work/rows 2>&3)
case $? in
0)   ;;
124) echo "skip: the rest of the pipeline's rows: it took more than 180 s" ;;
*)   echo "bench: bench_pipeline failed" >&2; exit 1 ;;
esac
jq -c --arg command "${pipeline[*]}" '. + {command: $command}' work/rows >>"$RESULTS"

# ---- exports: the whole command ------------------------------------------------------------------

# The HTML report of it in a browser, until it can be used.
html_load()
{
	local chromium=$(command -v chromium || command -v chromium-browser) ms
	local playwright=$TOP/build/deps/npm/node_modules/playwright-core
	if [ ! "$chromium" ] || ! command -v node >/dev/null || [ ! -e "$playwright" ]; then
		echo "skip: html load: no chromium, node or playwright-core (make deps)"
		return
	fi
	"$RECORDER" export --store work/bench.db --id 1 -o work/report.html --force &&
		ms=$(timeout 60 node "$TOP/tests/bench/html_load.mjs" "$chromium" \
		"$playwright" work/report.html) ||
		{ echo "skip: html load: the browser failed or took more than 60 s"; return; }
	local html_load="node tests/bench/html_load.mjs chromium playwright-core report.html"
	row "html load" "recorder export -o report.html; $html_load" \
		load_ms "$ms" file_mb "$(calc "b / 1e6" b="$(stat -c %s work/report.html)")"
}

echo
echo "Exports: recorder export of the same stream from a store; CPU time with loading, best of 3"
if [ -e work/bench.db ]; then
	exports=(build/linux/programs/bench_export_linux --json build/linux/recorder \
		build/bench/work/bench.db build/bench/work)
	(cd "$TOP" && timeout 180 "${exports[@]}" 3>&1 >build/bench/work/rows 2>&3) ||
		echo "skip: the rest of the exports' rows:" \
			"bench_export_linux failed or took more than 180 s"
	jq -c --arg command "${exports[*]}" '. + {command: $command}' work/rows >>"$RESULTS"
	html_load
	rm -f work/bench.db* work/report.html
else
	echo "skip: exports: bench_pipeline left no store"
fi

# ---- ten million samples -------------------------------------------------------------------------

# in_proportion: rows of bench_export_linux of ten million samples, beside those of a million.
in_proportion()
{
	local name wall rss
	while IFS=$'\t' read -r name wall rss; do
		row "10 million: $name" "${store_ten[*]}; ${export_ten[*]}" \
			"times_of_1_million<=10" "$(calc "a / b" a="$wall" b="$(jq -r \
			--arg n "$name" 'select(.row == $n) | .wall_ms' results.jsonl)")" \
			"max_rss_mb<=400" "$rss" wall_ms "$wall"
	done < <(jq -r '"\(.row)\t\(.wall_ms)\t\(.max_rss_mb)"' work/rows)
}

echo
echo "Ten million samples of the same stream, best of 3; what takes over 2 s, once"
store_ten=(build/linux/programs/bench_pipeline --store-only --samples 10000000
	--dir build/bench/work)
export_ten=(build/linux/programs/bench_export_linux --json build/linux/recorder
	build/bench/work/bench.db build/bench/work show folded html)
if [ $# -gt 0 ]; then
	echo "skip: ten million samples: the stream was not of one million"
elif (cd "$TOP" && timeout 120 "${store_ten[@]}" &&
	timeout 120 "${export_ten[@]}" >build/bench/work/rows 2>/dev/null); then
	in_proportion
else
	echo "skip: ten million samples: it failed or took more than 120 s"
fi
rm -f work/bench.db*

# ---- the history on disk -------------------------------------------------------------------------

echo
echo "History on disk: three hours of rounds; BENCH_DAYS=${BENCH_DAYS:-1} days, and windows of them"
mkdir -p work/history
history=(build/linux/programs/bench_history_linux --json --dir build/bench/work/history
	--days "${BENCH_DAYS:-1}" build/linux/recorder)
(cd "$TOP" && timeout 900 "${history[@]}" 3>&1 >build/bench/work/rows 2>&3) ||
	echo "skip: the rows of the history: bench_history failed or took more than 900 s"
jq -c --arg command "${history[*]}" '. + {command: $command}' work/rows >>"$RESULTS"
rm -rf work/history

# What the disk is given, side by side: each on an ext4 of its own, synced every 2 s with a journal
# of 1 s, as 10 s with one of 5 s are. 19,075 bytes are what the history puts at once.
on_ext4() # NAME ARGUMENT...
{
	local at=$DIR/work/ext4.$1 name=$1
	shift
	mkdir "$at" && truncate -s 600M "$at.img" &&
		mke2fs -q -F -t ext4 -b 4096 "$at.img" && mount -o loop,commit=1 "$at.img" "$at" &&
		timeout 600 "$BUILD/programs/bench_history_linux" --json --dir "$at" --pace 2 "$@" \
			3>&1 >"work/$name.rows" 2>&3
}

echo
echo "History on an ext4, and plain files with as many bytes, appended and overwritten; 5 minutes"
if [ ! "$LONG" ]; then
	echo "skip: what the disk is given takes 5 minutes: BENCH_LONG=1"
elif [ "$(id -u)" != 0 ] || ! command -v mke2fs >/dev/null; then
	echo "skip: what the disk is given: only root can mount an ext4 (and needs e2fsprogs)"
else
	on_ext4 history & one=$!
	on_ext4 appended --plain 19075 & two=$!
	on_ext4 overwritten --plain 19075 --in-place & three=$!
	wait $one && wait $two && wait $three ||
		echo "skip: what the disk is given: a file system or bench_history failed"
	drop_disks
	cat work/{history,appended,overwritten}.rows |
		jq -c '. + {command: "bench_history_linux --pace 2"}' >>"$RESULTS"
fi

# ---- months: memory under churn ------------------------------------------------------------------

echo
echo "Months: everything churns; $MONTHS samples (1e8 are 5.8 days)"
months=(build/linux/programs/bench_months --json --dir build/bench/work --samples "$MONTHS")
(cd "$TOP" && timeout 1500 "${months[@]}" 3>&1 >build/bench/work/rows 2>&3) ||
	{ echo "bench: bench_months failed" >&2; exit 1; }
jq -c --arg command "${months[*]}" '. + {command: $command}' work/rows >>"$RESULTS"

# ---- rules ---------------------------------------------------------------------------------------

echo
echo "Rules: 20 of all kinds on a made stream; a week of limits that move"
rules=(build/linux/programs/bench_triggers --json)
(cd "$TOP" && timeout 30 "${rules[@]}" 3>&1 >build/bench/work/rows 2>&3) ||
	echo "skip: the rows of rules: bench_triggers failed or took more than 30 s"
jq -c --arg command "${rules[*]}" '. + {command: $command}' work/rows >>"$RESULTS"

# ---- unwinding -----------------------------------------------------------------------------------

# unwind COMMAND...: print a row, or why there is none
unwind()
{
	[ -x "$(command -v "$1")" ] || { echo "skip: unwinding: $1 is not installed"; return; }
	timeout 30 "$BUILD/programs/bench_unwind_linux" --json "$@" >work/rows 2>work/err ||
		{ echo "skip: unwinding: $1: $(tail -n 1 work/err)"; return; }
	cat work/err
	local command="bench_unwind_linux --json $*"
	jq -c --arg command "${command:0:200}" '. + {command: $command}' work/rows >>"$RESULTS"
}

echo
echo "Unwinding: stacks of real programs, best of 5; a 17-frame stack is to take 4 us at most"
cat >work/unwind.py <<'PY'
def walk(n, rows):
    return sorted(rows, key=lambda r: r % n)[0] if n < 3 else walk(n - 1, rows) + walk(n - 2, rows)
while True:
    walk(12, list(range(50)))
PY
awk 'BEGIN { for (i = 0; i < 3000; i++)
	printf "int f%d(int *a, int n)\n{\n\tint s = %d, i;\n\tfor (i = 0; i < n; i++)\n\t\t" \
	"switch (a[i] & 7) { case 1: s += a[s & 3]; break; " \
	"case 2: s ^= n; break; default: s = s * 5 + i; }\n" \
	"\treturn s;\n}\n", i, i }' >work/unwind.c
unwind python3 work/unwind.py
unwind sqlite3 :memory: "with recursive c(x) as (select 1 union all select x + 1 from c)
	select sum(length(hex(x))) from c;"
unwind dash -c 'i=0; while :; do i=$((i + 1)); case $i in *7) test "$i" = 1 ;; esac; done'
unwind "$(gcc -print-prog-name=cc1)" -quiet -O2 -o /dev/null work/unwind.c

# ---- 2. symbols: a binary of some 80,000 functions: node, else one that is made here -------------

echo
binary=$(readlink -f "$(command -v node)")
if [ -z "$binary" ]; then
	binary=$DIR/work/functions
	awk 'BEGIN { print ".text"; for (i = 0; i < 86000; i++)
		printf ".globl function_%d\n.type function_%d,@function\n" \
			"function_%d: ret\n.size function_%d, 1\n", i, i, i, i }' >work/functions.s
	gcc -shared -nostdlib -o "$binary" work/functions.s || binary=
fi
echo "Symbols: $binary"
symbols=(build/linux/programs/bench_symbols --json "$binary" build/bench/work)
(cd "$TOP" && timeout 30 "${symbols[@]}" 3>&1 >build/bench/work/rows 2>&3) ||
	echo "skip: the rest of the rows of symbols: no binary, or it took more than 30 s"
jq -c --arg command "${symbols[*]}" '. + {command: $command}' work/rows >>"$RESULTS"

SECONDS=0                               # what comes now has 175 s of its own: see left()

# ---- 3. a trace file of Windows ------------------------------------------------------------------

# etl NAME FILE [PROGRAM]: run the file layer alone, or another program, through a trace and print
# its row, which is in $out as JSON.
etl()
{
	local command="build/linux/programs/${3:-bench_etl} --json $2"
	out=$(cd "$TOP" && timeout "$(left 60)" $command) || { echo "skip: $1: it failed"; return; }
	jq -c --arg row "$1" --arg command "$command" \
		'. + {row: $row, command: $command}' <<<"$out" \
		>>"$RESULTS"
	jq -r --arg row "$1" '"\($row): payload \(.payload_mb) mb, \(.records) records; "
		+ "\(.payload_mb_per_s) mb per s, \(.records_per_s) records per s, "
		+ "rss kb \(.rss_kb)"' <<<"$out"
}

echo
trace=../shared/data/etl/net.4.5.2.x64.etl.zip
if [ -e "$TOP/$trace" ]; then
	echo "Trace files: reading alone, best of 3; then decoded, stacks bound and interned," \
		"sealed"
	etl "etl walk" "$trace"
	etl "etl events" "$trace" bench_etl_source
	if (cd "$TOP" && build/linux/programs/bench_etl repeat "$trace" \
			build/bench/work/long.etl 1000); then
		etl "etl walk 1 GB" build/bench/work/long.etl
		etl "etl events 1 GB" build/bench/work/long.etl bench_etl_source
		row "etl goals 1 GB" "bench_etl_source" \
			"wall_ms<=12000" "$(field "$out" wall_ms)" \
			"rss_kb<=102400" "$(field "$out" rss_kb)"
		rm -f work/long.etl
	fi
else
	echo "skip: trace files: $trace is not there"
fi

# from_file NAME FILE COMMAND: read a whole file with the whole command, to an incident in a store:
# the median of 3, and the other two.
from_file()
{
	local name=$1 file=$2 command=$3 size times=()
	size=$(stat -c %s "$file" 2>/dev/null) || { echo "skip: $name: it was not made"; return; }
	for _ in 1 2 3; do
		rm -rf work/from.db*
		timed "$(left 60)" /dev/null "$RECORDER" collect --from "$file" --store work/from.db
		[ "$took" != '?' ] || { echo "skip: $name: $failure"; return; }
		times+=("$took")
	done
	mapfile -t times < <(printf '%s\n' "${times[@]}" | sort -n)
	timed "$(left 10)" work/show.json "$RECORDER" show 1 --store work/from.db --json
	row "$name" "$command; recorder collect --from; recorder show" \
		"mb_per_s>=300" "$(calc "b / 1000 / ms" b="$size" ms="${times[1]}")" \
		wall_ms "${times[1]}" least_ms "${times[0]}" most_ms "${times[2]}" \
		file_mb "$(calc "b / 1e6" b="$size")" "show_ms<=300" "$took" \
		store_bytes_per_sample "$(jq '.bytes / .samples' work/show.json)"
	rm -rf work/from.db* "$file"
}

echo
echo "Files of perf record and dotnet-trace: recorder collect --from, file to store; median of 3"
made="perf record -q --buildid-mmap -F 4999 --call-graph dwarf,8192 -o work/perf.data"
made+=" -- timeout 4 $(gcc -print-prog-name=cc1) -quiet -O2 -o /dev/null work/unwind.c"
command -v perf >/dev/null && $made >/dev/null 2>&1
from_file "perf.data" work/perf.data "$made"
made="nettrace_repeat.py exceptions.nettrace work/long.nettrace 100"
python3 "$TOP/tests/bench/nettrace_repeat.py" "$TOP/tests/data/nettrace/exceptions.nettrace" \
	work/long.nettrace 100
from_file nettrace work/long.nettrace "$made"

SECONDS=0

# ---- 4. live -------------------------------------------------------------------------------------

echo
echo "Live: one burn on each of $cpus CPUs, recorder and perf beside each other at $FREQ Hz," \
	"$LIVE_S s"
why=$("$RECORDER" check --json 2>/dev/null |
	jq -r 'select(.check == "source" and .verdict == "missing") | .text' | head -1)
[ -z "$why" ] || { echo "skip: the live part: $why"; exit 0; }
peer=$(perf --version 2>/dev/null) || echo "skip: the peer's rows: perf is not installed"

for ((i = 0; i < cpus; i++)); do
	"$BUILD/programs/burn" 180 >/dev/null & started+=($!)
done
collect="recorder collect --freq $FREQ --max-cpu-percent 0 --delay-after-trigger-sec 0"
"$RECORDER" collect --freq $FREQ --max-cpu-percent 0 --delay-after-trigger-sec 0 \
	--store work/live.db 2>work/live.log & recorder=$!
started+=("$recorder")
if [ "$peer" ]; then
	# --buildid-mmap: see beside_perf.sh
	perf_common="perf record -F $FREQ -e cpu-clock -a --overwrite"
	perf_common+=" --switch-output=signal --buildid-mmap"
	perf_fp="$perf_common -g -m ${FP_RING_KB}K"
	perf_dwarf="$perf_common --call-graph dwarf,16384 -m ${DWARF_RING_KB}K"
	$perf_fp -o work/fp.data >/dev/null 2>work/fp.log & fp=$!
	$perf_dwarf -o work/dwarf.data >/dev/null 2>work/dwarf.log & dwarf=$!
	started+=("$fp" "$dwarf")
fi

sleep 4                                 # the tables of what runs already are read, names asked for
before=$(status)
forks_before=$(forks)
sleep "$LIVE_S"
after=$(status)
forks_after=$(forks)
if [ -z "$before" ] || [ -z "$after" ]; then
	echo "bench: the recorder does not answer:" >&2
	tail -n 3 work/live.log >&2
	exit 1
fi

# ours: measure the first snapshot, whose samples are not in the store yet
snapshot_ms=$(timeout "$(left 15)" "$BUILD/programs/bench_latency_linux" $recorder \
	store work/live.db 2>work/err)
sleep 0.2
sealed=$(status)
timed "$(left 20)" work/our.folded "$RECORDER" export --store work/live.db --id 1 -f
our_readable_ms=$took
head=$("$RECORDER" show --store work/live.db --id 1 --json 2>/dev/null)

d() { calc "a - b" a="$(field "$after" "$1")" b="$(field "$before" "$1")"; }
elapsed_s=$(d elapsed_s)
cpu_percent=$(calc "c / e / 10" c="$(d cpu_ms)" e="$elapsed_s")
forks_per_s=$(calc "(b - a) / e" a="$forks_before" b="$forks_after" e="$elapsed_s")
read -r burn_percent depth < <(awk '
	{ n = $NF; all += n; frames += n * (gsub(/;/, ";") - 1) }
	/^burn[ ;(]/ { burn += n }
	END { if (all) printf "%.1f %.1f\n", 100 * burn / all, frames / all; else print "? ?" }' \
	work/our.folded)
bytes_per_sample=$(calc "b / n" b="$(field "$sealed" ring_bytes)" n="$(field "$sealed" samples)")
our_s_per_mb=$(calc "1048576 / (b / s)" b="$(field "$sealed" ring_bytes)" \
	s="$(field "$sealed" history_s)")

row noise "$collect" burn_share_percent "$burn_percent" processes_started_per_s "$forks_per_s" \
	load_average_1m "$(load)"
row "recorder" "$collect" "cpu_percent_of_one_core<=0.5" "$cpu_percent" \
	rss_kb "$(field "$after" rss_kb)" "rss_beyond_ring_kb<=65536" \
	"$(calc "r - b / 1024" r="$(field "$after" rss_kb)" b="$(field "$after" ring_bytes)")" \
	samples "$(d samples)" lost "$(d lost)" late "$(d late)"
row "recorder start" "$collect" cpu_ms "$(field "$before" cpu_ms)" \
	elapsed_s "$(field "$before" elapsed_s)"
row "recorder history" "$collect; recorder snapshot; recorder status --json" \
	bytes_per_sample "$bytes_per_sample" s_per_mb "$our_s_per_mb" \
	samples "$(field "$sealed" samples)" frames_per_stack "$depth"
row "recorder snapshot" "kill -USR2 (recorder); recorder export -f" \
	"durable_ms<=150" "$snapshot_ms" \
	readable_ms "$our_readable_ms" window_s "$(calc "a + b" a="$(field "$head" pre_s)" \
	b="$(field "$head" post_s)")" samples "$(field "$head" samples)"

# dump NAME PID: take one snapshot of a peer. Prints its file, the ms until the file existed, its
# samples, the time between a ring's first and last sample (mean over the CPUs), and the ms until it
# was text; "?" for anything that failed.
dump()
{
	samples='?' span='?' took='?' failure=
	rm -f work/"$1".data.*
	file_ms=$(timeout "$(left 15)" "$BUILD/programs/bench_latency_linux" \
		"$2" files work "$1.data." \
		2>work/err)
	file=$(find work -name "$1.data.*" | head -1)
	[ -n "$file" ] || { failure="no file came: $(tail -n 1 "work/$1.log")"; return 1; }
	timed "$(left 20)" work/times.txt perf script --no-inline -i "$file" -F cpu,time
	[ "$took" != '?' ] || return 1  # what a crash left of it would flatter us
	read -r samples span < <(awk -v FS='[][ :]+' '
		{ cpu = $2; t = $3; n++
		  if (!(cpu in first) || t < first[cpu]) first[cpu] = t
		  if (t > last[cpu]) last[cpu] = t }
		END { for (c in first) { sum += last[c] - first[c]; k++ }
		      if (k) printf "%d %.3f\n", n, sum / k; else print "? ?" }' work/times.txt)
	timed "$(left 20)" work/perf.txt perf script --no-inline -i "$file"
	[ "$took" != '?' ]
}

# peer NAME PID RING_KB FILL_S COMMAND: print the row of a peer. perf script 6.1 crashes on some of
# its own snapshots; then take another one after FILL_S, when the ring is full again.
peer()
{
	local name=$1 pid=$2 ring_kb=$3 fill_s=$4 command=$5
	if ! dump "$name" "$pid"; then
		echo "note: perf $name: $failure"
		if [ "$(left 99)" -gt $((fill_s + 30)) ]; then
			sleep "$fill_s"
			dump "$name" "$pid" || echo "skip: perf $name, once more: $failure"
		fi
	fi
	peer_ms=${file_ms:-?} peer_readable_ms=$took
	peer_s_per_mb=$(calc "s / (kb * c / 1024)" s="$span" kb="$ring_kb" c="$cpus")
	row "perf $name" "$command; kill -USR2 (perf); perf script --no-inline" \
		s_per_mb "$peer_s_per_mb" \
		bytes_per_sample \
		"$(calc "kb * 1024 * c / n" kb="$ring_kb" c="$cpus" n="$samples")" \
		window_s "$span" samples "$samples" file_ms "$peer_ms" readable_ms "$took" \
		ring_kb_per_cpu "$ring_kb"
	if awk -v s="$span" -v all="$LIVE_S" 'BEGIN { exit !(s + 0 > all + 0) }'; then
		echo "note: perf $name: its ring was not full yet: its s per mb is more than that"
	fi
}

# wanted RATIO LEAST: print the goal and whether it is met; nothing without LEAST
wanted()
{
	[ -z "$2" ] ||
		awk "BEGIN { printf(\", >= $2: %s\", \"$1\" + 0 >= $2 ? \"holds\" : \"MISSED\") }"
}

# ratio NAME OURS FP DWARF EXPRESSION [FP_LEAST DWARF_LEAST]: print how many times better the
# recorder is; below 1 it is worse
headline=()
ratio()
{
	local fp_ratio dwarf_ratio
	fp_ratio=$(calc "$5" o="$2" p="$3")
	dwarf_ratio=$(calc "$5" o="$2" p="$4")
	headline+=("$(printf '%-22s  %s; perf -g %s (x %s%s), perf dwarf %s (x %s%s)' \
		"$1" "$2" "$3" \
		"$fp_ratio" "$(wanted "$fp_ratio" "${6-}")" "$4" "$dwarf_ratio" \
		"$(wanted "$dwarf_ratio" "${7-}")")")
	jq -nc --arg row "ratio $1" --arg fp "$fp_ratio" --arg dwarf "$dwarf_ratio" \
		--arg fp_least "${6-}" --arg dwarf_least "${7-}" '
		def goal($key; $value; $least): ($least | tonumber? // null) as $l |
			if $l then {($key + "_goal"): ">= \($l)",
				($key + "_holds"): (($value // 0) >= $l)} else {} end;
		($fp | tonumber? // null) as $f | ($dwarf | tonumber? // null) as $d |
		{row: $row, to_perf_fp_ratio: $f, to_perf_dwarf_ratio: $d} +
		goal("to_perf_fp_ratio"; $f; $fp_least) +
		goal("to_perf_dwarf_ratio"; $d; $dwarf_least) +
		{command: "tests/bench/run.sh"}' >>"$RESULTS"
}

if [ "$peer" ]; then
	peer fp "$fp" $FP_RING_KB 15 "$perf_fp"
	fp_s=$peer_s_per_mb fp_ms=$peer_ms fp_readable_ms=$peer_readable_ms
	peer dwarf "$dwarf" $DWARF_RING_KB 5 "$perf_dwarf"
	ratio "history, s per MB" "$our_s_per_mb" "$fp_s" "$peer_s_per_mb" "o / p" 10 800
	ratio "signal to disk, ms" "$snapshot_ms" "$fp_ms" "$peer_ms" "p / o"
	ratio "disk to readable, ms" "$our_readable_ms" "$fp_readable_ms" \
		"$peer_readable_ms" "p / o"
	echo
	echo "Headline: recorder against $peer, same load, same time; x = times better," \
		"below 1 worse"
	printf '%s\n' "${headline[@]}"
fi

export RECORDER RESULTS
"$TOP/tests/bench/probes.sh"
"$TOP/tests/bench/runtimes.sh" 10 2
"$TOP/tests/bench/scale.sh"

cat <<END

How to read it
- Our stacks are unwound from a copy, as dwarf's are: the like for like. perf -g follows frame
  pointers, which few programs of a distribution have.
- The three snapshots hold different windows (window s): each its whole ring. Ours is durable in
  SQLite with names; perf's file has addresses, and their names are found by perf script.
- Ours is the first snapshot, taken while every CPU is busy and nothing of it is stored yet. Its
  durable ms run from the signal until its row says that it is complete: the sources hand over what
  they hold, and the rest is sealed, named, written and synced. perf takes one snapshot each. The
  pipeline's rows are the best of 3; its disk row is what a sync takes there without us.
- Goals stand behind their numbers, with "holds" or "MISSED". They are for two CPUs with nothing
  else to do.
- burn's stacks are shallow (frames per stack). That favours perf -g, whose samples grow with
  depth; the pipeline's density row has deep and diverse stacks.
- Bytes per sample: the recorder's sealed and open segments; perf's rings without the extra ones it
  maps for side-band records. Tables of frames, threads and names are in rss kb on our side.
END
if awk -v b="$burn_percent" -v f="$forks_per_s" 'BEGIN { exit !(b + 0 < 95 || f + 0 > 5) }'; then
	echo "- NOISY: only $burn_percent % of the samples are the load's," \
		"$forks_per_s processes a second were"
	echo "  started by others:" \
		"the recorder's CPU use and bytes per sample include what these cost."
fi
echo
echo "Rows with their commands: build/bench/results.jsonl"
missed=$(jq -r '. as $row | to_entries[] |
	select((.key | endswith("_holds")) and (.value | not)) |
	(.key | rtrimstr("_holds")) as $key |
	"\($row.row): \($key) \($row[$key]), goal \($row[$key + "_goal"])"' results.jsonl)
[ -z "$missed" ] || printf 'Goals missed:\n%s\n' "$missed"
[ -z "$missed" ] || [ -z "${BENCH_STRICT:-}" ]
