#!/bin/bash
# make bench-beside: the recorder and perf record --call-graph dwarf,16384 at the same time on the
# same load (tests/bench/load.sh). For each program the ten functions with the largest inclusive
# share by either: both shares, and whether they differ by at most 3 points + 3 sigma of the two
# counts. BESIDE_S=120 is for how long, BESIDE_HZ=499 how often; 20 s are enough to see whether it
# works.
#
# On a quiet machine: BESIDE_S=120 make bench-beside (10 minutes, of which perf script takes most)
# Other programs beside it only make the counts smaller, and sigma larger with them; the load's own
# processes are told from others by pid, and cc1 by a name of its own.
#
# sigma belongs to the difference of two shares p and q of n and m stacks: sqrt(p(1-p)/n +
# q(1-q)/m). The formula assumes independent samples; neighbouring samples of one run are alike.
#
# The comparison uses stacks of both sides that reach a root (_start, a thread's start). perf cuts
# stacks at 16 KiB and does not mark the cut; the share of stacks that is compared is printed for
# each side. Roots and functions without a name cannot be among the ten. Names of one address
# (malloc, __libc_malloc) count as one, as nm lists them.
#
# Exit 1 when a row differs by more. perf.data grows by 16 MB per second and busy pair of CPUs; it
# is below build/bench/beside and is removed at the end. perf script takes minutes.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
FOR_S=${BESIDE_S:-120}
HZ=${BESIDE_HZ:-499}
export LC_ALL=C

command -v perf >/dev/null || { echo "skip: perf is not installed (Debian: linux-perf)"; exit 0; }
mkdir -p "$TOP/build/bench/beside" && cd "$TOP/build/bench/beside" || exit 1
rm -rf live.db* ./*.perf ./*.perf.all ./*.ours perf.data*
. "$TOP/tests/bench/load.sh"
recorder=
trap 'load_stop; [ -z "$recorder" ] || kill -TERM "$recorder" 2>/dev/null
	rm -f perf.data* script.txt' EXIT
trap 'exit 130' INT TERM

load_start $((FOR_S + 60))
sleep 3                                 # JITs warm up
"$RECORDER" collect --freq "$HZ" --max-cpu-percent 0 --pre-sec "$FOR_S" --store live.db \
	--delay-after-trigger-sec 0 \
	--max-collect-sec "$FOR_S" 2>live.log &
recorder=$!
# --buildid-mmap: when one perf event asks for build ids, as the recorder does, the kernel (6.18 at
# least) marks the mmap records of all perf events as having one, and perf script crashes on records
# without. perf runs in slices, so that a crash costs only one slice.
perf record -q -N --buildid-mmap -F "$HZ" -e cpu-clock -p "$(IFS=,; echo "${load_task[*]}")" \
	--call-graph dwarf,16384 -m 8M --switch-output=10s -o perf.data sleep \
	"$FOR_S" >perf.log 2>&1 ||
	{ tail -n 3 perf.log; exit 1; }
wait "$recorder" || { tail -n 3 live.log; exit 1; }
recorder=
load_stop

# ---- aliases: "name <tab> the first name of its address", for the libraries with most of them ----

libc=$(ldd /usr/bin/env | awk '/libc\.so/ { print $3 }')
id=$(readelf -n "$libc" 2>/dev/null | awk '/Build ID/ { print $3 }')
for file in "$libc" "/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug" \
		/usr/bin/python3 /usr/bin/dash \
	/usr/lib/x86_64-linux-gnu/libsqlite3.so.0; do
	[ -e "$file" ] || continue
	{ nm --defined-only "$file"; nm -D --defined-only "$file"; } 2>/dev/null
	echo "end"
done | awk '$1 == "end" { module++; next }
	$2 ~ /[TtWwi]/ { sub(/@.*/, "", $3); print module + 0 "." $1, $3 }' | sort -u |
	awk '$1 != at { at = $1; first = $2 } $2 != first { print $2 "\t" first }' >aliases

# ---- both as "count root;...;leaf" with bare names -----------------------------------------------

bare='
	function bare(name) {
		sub(/@.*/, "", name)
		sub(/ \[clone .*/, "", name)
		while (name ~ /\(anonymous namespace\)/)
			sub(/\(anonymous namespace\)/, "_anonymous_", name)
		if (name !~ /^operator/)
			sub(/\(.*/, "", name)
		gsub(/ /, "", name)
		return name in alias ? alias[name] : name
	}
	BEGIN {
		while ((getline line < "aliases") > 0) {
			split(line, p, "\t")
			alias[p[1]] = p[2]
		}
	}'

# perf script: a line of the thread with its pid, a line per frame leaf first, an empty line. To
# NAME.perf of each program; pids: "pid=name pid=name", comms likewise.
perf_stacks()
{
	local pids='' comms='' name
	for name in "${load_names[@]}"; do
		case ${load_process[$name]} in
		*[!0-9]*) comms+=" ${load_process[$name]}=$name" ;;
		*)        pids+=" ${load_process[$name]}=$name" ;;
		esac
		: >"$name.perf.all"
	done
	slices=0 dead=0
	for slice in perf.data.*; do
		slices=$((slices + 1))
		perf script -i "$slice" \
			--no-inline -F comm,pid,ip,sym,dso 2>script.log >script.txt ||
			dead=$((dead + 1))
		awk -v pids="$pids" -v comms="$comms" "$bare"'
		BEGIN {
			n = split(pids " " comms, pair, " ")
			for (i = 1; i <= n; i++) {
				split(pair[i], p, "=")
				program[p[1]] = p[2]
			}
			n = 0
		}
		/^$/ { if (n && of != "") print stack >>(of ".perf.all"); n = 0; stack = ""; next }
		/^[^ \t]/ || n == 0 && /^ *[^ ]+ +[0-9]+ *$/ {
			pid = $NF
			comm = $1
			of = pid in program ? program[pid] : comm in program ? program[comm] : ""
			next
		}
		of != "" {
			name = $0
			sub(/^[ \t]*[0-9a-f]+ /, "", name)
			kernel = name ~ /\(\[kernel|\(\[[a-z0-9_]+\]\)$/
			sub(/ \([^()]*( \(deleted\))?\)$/, "", name)
			name = name ~ /\[unknown\]/ ? "?" : bare(name)
			if (kernel)
				name = name "_[k]"
			stack = n++ ? name ";" stack : name
		}' script.txt
		rm -f "$slice"
	done
	for name in "${load_names[@]}"; do
		sort "$name.perf.all" | uniq -c | sed 's/^ *//' >"$name.perf"
	done
}

our_stacks()
{
	"$RECORDER" export --store live.db --id 1 --process "$1" --no-ids -f 2>/dev/null |
		awk "$bare"'
	{
		count = $NF
		sub(/ [0-9]+$/, "")
		n = split($0, frame, ";")
		stack = ""
		for (i = 3; i <= n; i++) {
			name = frame[i]
			sub(/^[^!]*!/, "", name)
			kernel = sub(/_\[k\]$/, "", name)
			sub(/_\[j\]$/, "", name)
			stack = stack (i > 3 ? ";" : "") bare(name) (kernel ? "_[k]" : "")
		}
		print count " " stack
	}'
}

# perf cannot walk through JIT code. For programs with a JIT, compare the part of each stack between
# the leaf and the first jitted frame, in all samples.
compare()
{
	awk -v program="$1" '
	function is_root(f) {
		return f ~ /^(_start|__libc_start_call_main|__libc_start_main)$/ ||
			f ~ /^(start_thread|_*(GI_)?_*clone3?)$/
	}
	function rooted() {
		return is_root(frame[1]) || (frame[1] == "?" && frame[2] == "__libc_start_main")
	}
	{
		count = $1
		sub(/^[0-9]+ /, "")
		n = split($0, frame, ";")
		all[side] += count
		root = rooted()
		if (root)
			whole[side] += count
		split("", seen)
		native = 1
		for (i = n; i >= 1; i--) {
			f = frame[i]
			if (f == "?" || f == "" || f ~ /^Builtins_/)
				native = 0
			if (f == "?" || f ~ /^\?_/ || f == "" || f in seen || is_root(f))
				continue
			seen[f] = 1
			names[f] = 1
			if (root)
				hits[0, side, f] += count
			if (native)
				hits[1, side, f] += count
		}
	}
	END {
		leaf = whole[2] < all[2] / 2
		printf "\n%s: ours %d samples, %.1f %% with a root; perf %d, %.1f %%%s\n",
		program, all[1],
			100 * whole[1] / all[1], all[2], 100 * whole[2] / all[2],
			leaf ? ": compared below jitted code" : ""
		for (side = 1; side <= 2; side++)
			of[side] = leaf ? all[side] : whole[side]
		if (!of[1] || !of[2]) {
			print "NOT compared: one side has nothing"
			exit 1
		}
		printf "    %8s %8s %8s %8s %8s  %s\n", "ours %", "perf %", "differ",
		"sigma", "allowed", "function"
		for (side = 1; side <= 2; side++) {
			split("", taken)
			for (k = 0; k < 10; k++) {
				best = ""
				for (f in names)
					if (!(f in taken) && (best == "" ||
					    hits[leaf, side, f] > hits[leaf, side, best] ||
					    (hits[leaf, side, f] == hits[leaf, side, best] &&
					    f < best)))
						best = f
				if (best == "" || !hits[leaf, side, best])
					break
				taken[best] = 1
				if (best in shown)
					continue
				shown[best] = 1
				a = hits[leaf, 1, best] / of[1]
				b = hits[leaf, 2, best] / of[2]
				sigma = 100 * sqrt(a * (1 - a) / of[1] + b * (1 - b) / of[2])
				allowed = 3 + 3 * sigma
				d = 100 * (a - b)
				ok = d <= allowed && -d <= allowed
				bad += !ok
				rows++
				worst = sigma &&
				(d < 0 ? -d : d) / sigma > worst ? (d < 0 ? -d : d) / sigma : worst
				printf "%s %8.2f %8.2f %8.2f %8.2f %8.2f  %s\n",
				ok ? "ok " : "NOT", 100 * a,
					100 * b, d, sigma, allowed, substr(best, 1, 80)
			}
		}
		printf "    %d rows, %d beyond their limit; the largest difference is %.1f sigma\n",
		rows, bad, worst
		exit bad > 0
	}' side=1 "$1.ours" side=2 "$1.perf"
}

bad=0
echo "Load average at the end of the recording:" \
	"$(cut -d ' ' -f 1 /proc/loadavg) (the load itself is ${#load_names[@]})"
echo "Inclusive shares, recorder beside $(perf --version) --call-graph dwarf,16384; $HZ Hz," \
	"$FOR_S s"
"$RECORDER" show --store live.db --id 1 | grep -E '^(Samples|Lost|Stacks)'
grep -i -E 'lost|chunk' perf.log
perf_stacks
echo "perf script: $slices slices, died of $dead"
for name in "${load_names[@]}"; do
	[ "$name" != java ] ||
		{ echo; echo "java: without frame pointers neither has its stacks"; continue; }
	process=${load_process[$name]}
	our_stacks "$process" >"$name.ours"
	compare "$name" || bad=$((bad + 1))
done
echo
[ $bad = 0 ] && echo "every row within its limit" ||
	echo "$bad programs have rows beyond their limit"
[ $bad = 0 ]
