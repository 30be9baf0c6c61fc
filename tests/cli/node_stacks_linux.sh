#!/bin/bash
# JavaScript frames of stock Node.js: names and shares beside those of --cpu-prof in the same run,
# of each version that is here; workers; and no wrong name where functions come and go.
# The programs end after so many ms of CPU time: a busy machine takes longer, and has as many
# samples.
# time limit: 900
. "$TOP/tests/support/cli.sh"
need_perf

cat >work.js <<'END'
'use strict';
const { Worker, isMainThread } = require('worker_threads');
function roots(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i ^ s & 7); return s; }
function text(n) { let h = 7; const t = 'the quick brown fox ' + n;
	for (let i = 0; i < n; i++) h = (h * 31 + t.charCodeAt(i % t.length)) | 0; return h; }
class Shop {
	serve(n) { return this.count(n) + roots(n * 4); }
	count(n) { return text(n * 3); }
}
const sorter = (n) => {
	const a = new Int32Array(n);
	for (let i = 0; i < n; i++) a[i] = (i * 7919) % n;
	const b = Array.from(a);
	b.sort((x, y) => x - y);
	return b[0];
};
function deep(n) { return n ? deep(n - 1) + 1 : text(400); }
function* numbers(n) { for (let i = 0; i < n; i++) yield roots(200) + i; }
async function later(n) { await null; let s = 0; for (const x of numbers(n)) s += x; return s; }
// Rounds of one length would come in step with the clock of a profiler.
async function round() {
	const k = 0.5 + Math.random();
	let s = new Shop().serve(20000 * k) + sorter(Math.floor(3000 * k)) + deep(200) +
		await later(40 * k);
	return JSON.parse(JSON.stringify({ s })).s;
}
async function main(ms) {
	while (process.cpuUsage().user < ms * 1000) await round();
}
if (isMainThread && process.argv[3] === 'worker')
	new Worker(__filename, { argv: process.argv.slice(2, 3) });
main(Number(process.argv[2]));
END

cp "$TOP/tests/programs/node_server.js" .

# Functions that live for moments: outer_N calls only inner_N.
cat >torture.js <<'END'
'use strict';
for (let g = 0; process.cpuUsage().user < process.argv[2] * 1000; g++) {
	const inner = `function inner_${g}(n) { let s = 0;
		for (let i = 0; i < n; i++) s = (s * 3 + i) | 0; return s; }`;
	const outer = new Function(`${inner} function outer_${g}(n) { let s = 0;
		for (let k = 0; k < 40; k++) s += inner_${g}(n); return s; }
		return outer_${g};`)();
	for (let k = 0; k < 60; k++) outer(2000);
	if (g % 50 === 0 && global.gc) global.gc();
}
END

# Builtins that make no frame, called by optimized code: they are in nothing but operations.
cat >builtins.js <<'END'
'use strict';
const keys = Array.from({ length: 64 }, (_, i) => 'key' + i);
const objects = keys.map((_, i) => Object.assign(
	Object.fromEntries(keys.slice(i, i + 1 + i % 16).map((k) => [k, i])), { v: i }));
const words = Array.from({ length: 100 }, (_, i) => 'word' + i % 50 + (i & 1 ? 'x' : ''));
function operations(n) {
	let h = 0;
	for (let i = 0; i < n; i++) {
		const o = objects[i & 63], a = words[i % 100], b = words[(i * 3) % 100];
		h += o.v | 0;
		if (o[keys[(i * 7) & 63]] !== undefined) h++;
		if (a === b) h += 2;
		if (a < b) h++;
		h += (a + b).length + a.charCodeAt(i & 3) + (a.indexOf('x') | 0);
		if (words.includes(a)) h ^= 1;
	}
	return h;
}
function middle(n) { let h = 0; for (let i = 0; i < 8; i++) h += operations(n + i); return h; }
while (process.cpuUsage().user < process.argv[2] * 1000) middle(500);
END

# outer() of WebAssembly calls inner(), a loop, twice: (i32) -> i32 both.
cat >wasm.js <<'END'
const f = (body) => [body.length, ...body];
const inner = f([1, 1, 0x7f, 3, 0x40, 0x20, 1, 0x41, 31, 0x6c, 0x20, 0, 0x6a, 0x21, 1, 0x20, 0,
	0x41, 1, 0x6b, 0x22, 0, 0x0d, 0, 0x0b, 0x20, 1, 0x0b]);
const outer = f([0, 0x20, 0, 0x10, 0, 0x20, 0, 0x10, 0, 0x6a, 0x0b]);
const code = [2, ...inner, ...outer];
const { outer: run } = new WebAssembly.Instance(new WebAssembly.Module(new Uint8Array([
	0, 0x61, 0x73, 0x6d, 1, 0, 0, 0, 1, 6, 1, 0x60, 1, 0x7f, 1, 0x7f, 3, 3, 2, 0, 0,
	7, 9, 1, 5, ...Buffer.from('outer'), 0, 1, 10, code.length, ...code]))).exports;
function callsWasm() { return run(100000); }
while (process.cpuUsage().user < process.argv[2] * 1000) callsWasm();
END

# skipped FOLDED: samples that stopped in a builtin, and how many of these are without operations()
skipped()
{
	awk '/\]!middle / { c = $NF; sub(/ [0-9]+$/, ""); n = split($0, f, ";")
			while (n && f[n] ~ /_\[k\]$/) n--
			if (f[n] !~ /!Builtins_|^libnode.*!\?/) next
			all += c
			if ($0 !~ /\]!operations /) bad += c }
		END { print all + 0, bad + 0 }' "$1"
}

# The version that is installed, those that npm has, and a stripped one ('make interpreters').
nodes()
{
	command -v node
	ls -d "$TOP"/build/deps/npm/node_modules/node-[0-9]*/bin/node \
		"$TOP"/build/deps/interpreters/all/bin/node 2>/dev/null
}

# record NAME COMMAND...: run the command while the machine is recorded, into NAME.folded
record()
{
	local name=$1 option=
	shift
	case $1 in --no-*) option=$1; shift ;; esac
	"$RECORDER" collect --store "$name.db" $option --freq 499 --max-cpu-percent 0 \
		--history-mb 0 --max-collect-sec 600 2>"$name.log" & recorder=$!
	wait_for 60 grep -q recording "$name.log"
	"$@" >"$name.out" 2>&1 & program=$!
	wait $program
	kill -INT $recorder
	wait $recorder
	"$RECORDER" export 1 --store "$name.db" --format folded --process $program \
		-o "$name.folded" 2>err
}

# profile SCRIPT BELOW: "SHARE FUNCTION" below the script's own functions, of the main thread's
# profile; only of samples with a function like BELOW, and none in cpuUsage(): where a program asks
# for its CPU time the kernel likes to give the CPU to another, and --cpu-prof counts that time.
profile()
{
	jq -r --arg script "$1" --arg below "$2" '.samples as $samples |
		(reduce $samples[] as $s ({}; .[$s | tostring] += 1)) as $own |
		(reduce .nodes[] as $n ({}; .[$n.id | tostring] = $n)) as $nodes |
		[.nodes[] | .id as $p | (.children // [])[] | {key: tostring, value: $p}] |
		from_entries as $parent | $own | to_entries[] | .value as $c |
		[.key | recurse($parent[.] // empty | tostring)] | map($nodes[.].callFrame) |
		select(.[0].functionName | . != "(garbage collector)" and . != "cpuUsage") |
		map(select(.url | endswith($script)) | "\(.functionName |
			if . == "" then "(anonymous)" else . end) \($script):\(.lineNumber + 1)") |
		select(length > 0) | select(join(" ") | test($below)) | unique |
		"\($c) \(join("\t"))"' \
		./CPU.*.*.*.0.*.cpuprofile |
		awk '{ c = $1; all += c; sub(/^[0-9]+ /, ""); n = split($0, f, "\t")
			for (i = 1; i <= n; i++) sum[f[i]] += c }
			END { for (x in sum) printf "%.2f %s\n", 100 * sum[x] / all, x }'
}

# ours SCRIPT FOLDED BELOW: the same; and "SHARE hidden FUNCTION" of samples that stopped in a
# builtin that the function called. If that makes no frame, --cpu-prof does not see the caller.
ours()
{
	awk -v script=" $1:[0-9]+" -v below="$3" '$0 ~ script && $0 ~ below &&
			!/Heap::CollectGarbage|Scavenger|MarkCompact|!cpuUsage / {
		c = $NF; sub(/ [0-9]+$/, ""); n = split($0, f, ";")
		pid = f[1]; gsub(/.*\(|\)/, "", pid)
		if (f[2] !~ "-" pid "$") next
		all += c
		while (n && f[n] ~ /_\[k\]$/) n--
		for (i = 1; i <= n; i++)
			if (sub(/^\[javascript\]!/, "", f[i]) && f[i] ~ script) {
				sub(/_\[[ij]\]$/, "", f[i])
				if (i == n - 1 && f[n] ~ /!Builtins_|^libnode.*!\?/)
					sum["hidden " f[i]] += c
				if (seen[f[i]] != NR) sum[f[i]] += c
				seen[f[i]] = NR } }
		END { print all, "(samples)"
			for (x in sum) printf "%.2f %s\n", 100 * sum[x] / all, x }' "$2"
}

# shares_agree SCRIPT FOLDED BELOW [hidden]: functions of 5 % and more are within 3 points and three
# standard deviations; hidden: ours may have that much more of a function.
shares_agree()
{
	profile "$1" "$3" >theirs
	ours "$1" "$2" "$3" >ours.txt
	awk -v hidden="${4:-}" 'NR == FNR {
			share = $1; sub(/^[^ ]+ /, ""); ours[$0] = share; next }
		{ share = $1; sub(/^[^ ]+ /, "") }
		share >= 5 {
			n++
			p = share / 100
			d = share - ours[$0]
			more = hidden ? ours["hidden " $0] + 0 : 0
			d = d >= 0 ? d : -d > more ? -d - more : 0
			if (d > 3 + 300 * sqrt(p * (1 - p) / ours["(samples)"])) {
				print $0 ": " ours[$0] + 0 " %, " more " hidden; --cpu-prof: " share
				bad++ } }
		END { print n + 0 " functions"; exit n < 5 || bad }' ours.txt theirs
}

# named FOLDED: per cent of the samples with generated code all of which has names
named()
{
	awk '/\[(javascript|jit)\]!/ {
			all += $NF
			if (!/\[(javascript|jit)\]!\?/) good += $NF }
		END { printf "%d %.2f\n", all, all ? 100 * good / all : 0 }' "$1"
}

tried=0
for node in $(nodes); do
	version=$("$node" --version)
	v8=$("$node" -p 'process.versions.v8.split(".").slice(0, 2).join(".")')
	case " 10.2 11.3 11.8 12.4 12.9 13.6 14.1 14.6 " in
	*" $v8 "*) ;;
	*)
		echo "skip $version: its V8 $v8 is not known"
		continue
		;;
	esac
	tried=$((tried + 1))
	rm -rf ./*.cpuprofile work.db* work.folded
	# Up to 24 --cpu-prof gives what is inlined into a running loop to the outer function.
	flags=
	case $version in v18.* | v2[0-4].*) flags=--no-turbo-inlining ;; esac
	record work "$node" $flags --cpu-prof work.js 3000
	check "$version: shares are those of --cpu-prof" shares_agree work.js work.folded .
	read -r all good <<<"$(named work.folded)"
	check "$version: $good % of $all samples have all names" \
		awk "BEGIN { exit !($all > 500 && $good >= 97) }"
	rm -rf builtins.db* builtins.folded
	record builtins "$node" --max-inlined-bytecode-size=0 --max-inlined-bytecode-size-small=0 \
		builtins.js 2000
	read -r all bad <<<"$(skipped builtins.folded)"
	check "$version: of $all builtins $bad are without their caller" \
		[ "$all" -ge 200 -a $((bad * 50)) -le "$all" ]
	rm -rf wasm.db* wasm.folded
	record wasm "$node" wasm.js 1000
	read -r all good <<<"$(awk '/!callsWasm / { all += $NF }
		/!callsWasm [^;]*;(.*;)?\[javascript\]!\[wasm\]_\[j\];\[javascript\]!\[wasm\]/ {
			good += $NF }
		END { print all + 0, good + 0 }' wasm.folded)"
	check "$version: $good of $all samples have both functions of WebAssembly" \
		[ "$all" -ge 100 -a $((good * 100)) -ge $((all * 95)) ]
	rm -rf torture.db* torture.folded
	record torture "$node" --expose-gc torture.js 2000
	read -r wrong right <<<"$(awk '{ c = $NF; inner = outer = ""
		if (match($0, /inner_[0-9]+/)) inner = substr($0, RSTART + 6, RLENGTH - 6)
		if (match($0, /outer_[0-9]+/)) outer = substr($0, RSTART + 6, RLENGTH - 6)
		if (inner != "" && outer != "") {
			if (inner == outer) right += c; else wrong += c } }
		END { print wrong + 0, right + 0 }' torture.folded)"
	check "$version: $wrong of $((wrong + right)) samples name another generation" \
		[ "$wrong" = 0 -a "$right" -ge 60 ]
done
if [ $tried = 0 ]; then
	echo "skip node: none of a known version is here"
	exit 0
fi

# A service under load, with a worker. --cpu-prof counts time, not CPU time: where the server is not
# waiting, that is the same.
rm -f ./*.cpuprofile
record shares node --no-turbo-inlining --cpu-prof node_server.js 8000
check "a service's shares are those of --cpu-prof" shares_agree node_server.js shares.folded \
	'(renderPage|search) ' hidden
record server node --cpu-prof node_server.js 4000
cat server.out
grep 'node_server\.js' server.folded >served.folded
read -r all good <<<"$(named served.folded)"
# 97 %, less three times what a draw of so many varies by.
check "$good % of $all samples of a service have all names" \
	awk "BEGIN { exit !($all > 500 && $good >= 97 - 3 * sqrt(97 * 3 / $all)) }"
check its_worker_has_names awk '/!checksum node_server\.js/ { split($0, f, ";"); pid = f[1]
	gsub(/.*\(|\)/, "", pid); if (f[2] !~ "-" pid "$") n += $NF }
	END { exit n < 20 }' served.folded

record without --no-node node work.js 300
check no_node_leaves_them_out eval '! grep -q "work\.js" without.folded'
rm -rf worker.db*
record worker node work.js 4000 worker
check workers_have_names awk '/round work\.js/ { split($0, f, ";"); t[f[2]] += $NF }
	END { for (x in t) if (t[x] > 200) n++; exit n < 2 }' worker.folded
check show_says_what_language_it_is sh -c '
	"$RECORDER" show 1 --store worker.db --process node >shown 2>err
	grep -A 3 "AND ITS STACKS" shown; grep -q "[0-9]): .*JavaScript in [0-9]* %" shown'
