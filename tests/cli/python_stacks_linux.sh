#!/bin/bash
# Python frames of stock interpreters, of every CPython that is found here: whole chains as the
# program says them itself, in the order of the calls, shares of CPU time as it measures them, and
# no wrong name where functions come and go. That at more length, a million samples that are judged
# (of some 2.4 million, in ten minutes on two CPUs without other load):
#
#   cd "$(mktemp -d)"; export TMP=$PWD TOP=REPOSITORY RECORDER=REPOSITORY/build/linux/recorder
#   PYTHON_CHURN_S=55 PYTHON_CHURN_HZ=4999 bash "$TOP/tests/cli/python_stacks_linux.sh"
# time limit: 1500
. "$TOP/tests/support/cli.sh"
need_perf

# whole NAME: of the samples in the main module or a thread in NAME.folded, how many there are,
# and per cent whose Python frames are callers of a leaf in NAME.out, or a leaf with all of them,
# perhaps with callees that are in no leaf's callers. A chain without one of its frames is none.
whole()
{
	awk -v truth="$1.out" 'BEGIN {
		while ((getline line < truth) > 0) {
			if (line !~ /^leaf_/) continue
			sub(/^[^ ]+ [^ ]+ /, "", line)
			n = split(line, name, ";"); chain = ""
			for (i = 1; i <= n; i++) { chain = chain ";" name[i]; known[chain] = 1
				named[name[i]] = 1 }
		} }
		/site\.<module>/ { next }                # the interpreter is starting
		# The last two: of stripped programs.
		/PyRun_|thread_run|t_bootstrap|pythread_wrapper/ ||
		/Py_RunMain.*PyEval_EvalCode/ || /;\[python\]!threading.Thread._bootstrap/ {
			c = $NF; line = $0; sub(/ [0-9]+$/, "", line)
			n = split(line, frame, ";"); chain = ""
			for (i = 1; i <= n; i++)
				if (sub(/^\[python\]!/, "", frame[i])) {
					sub(/_\[j\]$/, "", frame[i])
					chain = chain ";" frame[i]
				}
			all += c; root = chain
			while (match(root, /;[^;]*$/) && !(substr(root, RSTART + 1) in named))
				root = substr(root, 1, RSTART - 1)
			if (root in known) good += c
			else print c, (chain ? chain : "(none)") > "/dev/stderr" }
		END { printf "%d %.2f\n", all, all ? 100 * good / all : 0 }' "$1.folded"
}

# shares NAME: those that differ from the programs own by over 2 points and 3 sigma.
shares()
{
	awk -v truth="$1.out" 'BEGIN {
		while ((getline line < truth) > 0) { split(line, f, " ")
			if (f[1] ~ /^leaf_/) share[f[1]] = f[2] } }
		{ c = $NF; if (match($0, /\[python\]!python_work\.leaf_[a-z]+_/)) {
			leaf = substr($0, RSTART + 21, RLENGTH - 22); got[leaf] += c; all += c } }
		END { for (leaf in share) {
			if (!all) { print "no samples"; exit }
			p = share[leaf] / 100; d = 100 * got[leaf] / all - share[leaf]
			limit = 2 + 300 * sqrt(p * (1 - p) / all)
			if (d > limit || d < -limit)
				printf "%s: %.1f %% of samples, %.1f %% of time\n", leaf,
					100 * got[leaf] / all, share[leaf] } }' "$1.folded"
}

# wrong NAME: of the samples in NAME.folded whose names have the number of a generation, how many
# there are, and how many have two different numbers.
wrong()
{
	awk '{ n = split($0, f, ";"); k = ""; bad = 0
		for (i = 1; i <= n; i++) {
			s = f[i]
			while (s ~ /^\[python\]!/ && match(s, /_[0-9]+/)) {
				x = substr(s, RSTART + 1, RLENGTH - 1)
				if (k != "" && x != k) bad = 1
				k = x; s = "[python]!" substr(s, RSTART + RLENGTH)
			} }
		if (k != "") all += $NF
		if (bad) wrong += $NF }
		END { printf "%d %d\n", all, wrong }' "$1.folded"
}

# folds ALL FOLDED: the same samples, and callers of Python functions that are not the interpreter's
folds()
{
	awk 'FNR == 1 { file++ }
		{ n[file] += $NF; python[file] += gsub(/;\[python\]!/, "&") }
		/;(lib)?python[23]\.[^;!]*![^;]*;(.*;)?\[python\]!/ { callers[file] += $NF }
		END { print n[1], n[2], callers[1] + 0, callers[2] + 0
			exit n[1] != n[2] || !callers[1] || callers[2] }' "$1" "$2"
}

at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a >= b) }'; }

try()
{
	local version=$1 python=$2 name=py$1 n good wrong
	if ! "$RECORDER" run --store "$name.db" --freq 499 --max-cpu-percent 0 -- "$python" \
			python_work.py 3 >"$name.out" 2>"$name.log"; then
		echo "not ok Python $version: it cannot be recorded: $(tail -3 "$name.log")"
		return
	fi
	"$RECORDER" export 1 --store "$name.db" --interpreter-frames -f -o "$name.folded" \
		2>>"$name.log"
	read -r n good < <(whole "$name" 2>"$name.others")
	if [ "$n" -ge 300 ] && at_least "$good" 98; then
		echo "ok Python $version: $good % of $n samples have the whole chain"
	else
		echo "not ok Python $version: $good % of $n samples have the whole chain:" \
			"$("$RECORDER" show 1 --store "$name.db" | grep ^Lost)" \
			"$(sort -rn "$name.others" | cut -c1-200 | head -5)"
	fi
	"$RECORDER" export 1 --store "$name.db" -f -o "$name.folded.folded" 2>>"$name.log"
	check "Python $version: no frame of the interpreter calls a Python function" \
		folds "$name.folded" "$name.folded.folded"
	shares "$name" >"$name.shares"
	check "Python $version: shares are those that the program measures" \
		expect_empty "$name.shares"
	"$RECORDER" run --store "$name.made.db" \
		--freq "${PYTHON_CHURN_HZ:-997}" --max-cpu-percent 0 -- "$python" \
		python_churn.py "${PYTHON_CHURN_S:-2}" >/dev/null 2>>"$name.log"
	"$RECORDER" export 1 --store "$name.made.db" -f -o "$name.made.folded" 2>>"$name.log"
	read -r n wrong < <(wrong "$name.made")
	judged=$((judged + n))
	if [ "$n" -ge 50 ] && [ "$wrong" = 0 ]; then
		echo "ok Python $version: no name of another generation in $n samples"
	else
		echo "not ok Python $version: $wrong of $n samples name another generation"
	fi
}

expect_empty() { [ ! -s "$1" ] || { cat "$1"; return 1; } }

cp "$TOP"/tests/programs/python_{work,churn}.py .
found=$(pythons) judged=0
[ "$found" ] || echo "skip python stacks: no CPython here (apt-get install python3)"
while read -r version python; do
	[ "$version" ] && try "$version" "$python"
done <<<"$found"
echo "$judged samples were judged by the number of their generation"

# A frame with its line, and a recording without Python frames.
if [ "$found" ]; then
	set -- $(tail -1 <<<"$found")
	expect "a frame has its file and line" 0 \
		'\[python\]!python_work\.all_ways +python_work\.py:[0-9]+' \
		show 1 --store "py$1.db" --lines
	"$RECORDER" run --store without.db --no-python -- "$2" \
		python_work.py 1 >/dev/null 2>&1
	expect "--no-python leaves them out" 0 . show 1 --store without.db
	check "there are none" expect_exit 1 grep -F '[python]' out
fi
