#!/bin/bash
# Run test programs, one line for each, everything a failing one said, and the totals at the end.
#
#   tests/run.sh PROGRAM...       the Makefile says which, in its targets check and check-*
#
# What a program is shows in its name:
#
#   build/VARIANT/tests/unit/ROOM/X
#                                 cmocka, on this host; .exe: under Wine. It runs in the top
#                                 directory of the repository, and TEST_TMP names an empty directory
#                                 of its own. A test that skips prints why before it calls skip().
#                                 One that does less than elsewhere prints a line "in part: WHAT",
#                                 which is shown.
#   build/VARIANT/fuzz/fuzz_X     replays tests/fuzz/corpus/fuzz_X; counts as one test
#   tests/cli/X.sh                a script about whole programs. Its current directory, TMP, is its
#                                 own and empty. It finds RECORDER (the Linux program), RECORDER_EXE
#                                 (the Windows one), WINE_RUN (command that runs an exe; empty: no
#                                 Wine), BUILD (build/linux) and TOP (the repository), and prints
#                                 "ok NAME", "not ok NAME: why" or "skip NAME: why" for each test.
#
# A crash, a timeout, a non-zero exit without a failed test, and silence count as one failure. The
# limit is 240 s; a script sets another by a line "# time limit: SECONDS". From outside: BUILD (for
# RECORDER), TIME_LIMIT, JOBS.
#
# Two run at a time, and beside two live scripts a third program or script; four where no script is
# live. A script with a line "# alone: WHY" has the machine to itself, and so has one of a sanitized
# recorder: it holds build/quiet.lock, which all that may run beside others share (other programs,
# make check-bare).
#
# A live script, tests/cli/X_linux.sh, records this machine while it runs, and so does the unit test
# perf/live_linux; tests/cli/windows_X.sh and stopped/X_windows.exe stop and sample threads. Other
# load and chance can disturb them. If one fails, it is run again at the end, alone, twice at most,
# and the last result counts. That is reported with all that the failing run printed: "again
# tests/cli/X_linux.sh: N failed at run 1". Nothing else is run again, because unit tests and the
# other scripts give the same result each time; only a Windows program that printed nothing at all
# is: Wine did not start it.
#
# A line ends in the time that a program took and the CPU time of its processes (without Wine's
# server): a large difference is waiting.
#
# Last lines, of many programs: the ten that took longest; the tests that failed, below "failed:";
# "N programs were run again" if any were; "N passed, N failed, N skipped". Exit: 1 if any failed or
# none passed.
set -u

TOP=$(cd "$(dirname "$0")/.." && pwd)
BUILD=$(realpath -m "${BUILD:-$TOP/build/linux}")
WINE_RUN="$TOP/tests/support/wine.sh run"
"$TOP/tests/support/wine.sh" find >/dev/null 2>&1 || WINE_RUN=
export TOP BUILD WINE_RUN
export RECORDER=$BUILD/recorder RECORDER_EXE=$TOP/build/windows/recorder.exe

# cmocka would turn a sanitizer's report of a bad access into a mere "exception". The value 2 keeps
# other handlers out.
GIVEN_ASAN_OPTIONS=${ASAN_OPTIONS:-}
asan_options()
{
	local sigbus=2
	case $1 in
	# these read mappings that may be cut off: mapped_linux.h
	*/host/mapped_linux | */jvm/jvm_linux | */whole_linux*) sigbus=1 ;;
	esac
	local options=handle_segv=2:handle_sigbus=$sigbus:handle_sigfpe=2:detect_leaks=1
	echo "${GIVEN_ASAN_OPTIONS:-$options}"
}
export UBSAN_OPTIONS=${UBSAN_OPTIONS:-print_stacktrace=1}
export TSAN_OPTIONS=${TSAN_OPTIONS:-second_deadlock_stack=1}

# The sanitizers of this age cannot live with kernels that randomize addresses by 32 bits.
FIXED=$(setarch -R true 2>/dev/null && echo setarch -R)

# ---- what a program said: "passed failed skipped", then a line for each test skipped or in part -

read_cmocka()
{
	awk '
	/^\[ RUN      \]/  { why = ""; running = 1; next }
	/^\[       OK \]/  { passed++; running = 0; next }
	running && /^\[  FAILED  \]/ { failed++; running = 0; next }
	running && /^\[  SKIPPED \]/ {
		skipped++; running = 0
		line[++lines] = "skip " $NF ": " (why == "" ? "no reason given" : why); next
	}
	/^in part: /       { line[++lines] = $0 }
	running && NF && !/^\[/ { why = why (why == "" ? "" : " ") $0 }
	/ test\(s\) run\.$/ { whole = 1 }
	END {
		print passed + 0, failed + 0, skipped + 0, whole + 0
		for (i = 1; i <= lines; i++)
			print line[i]
	}'
}

read_script()
{
	awk '
	/^ok /     { passed++ }
	/^not ok / { failed++ }
	/^skip /   { skipped++; line[skipped] = $0 }
	END {
		print passed + 0, failed + 0, skipped + 0, (passed + failed + skipped > 0)
		for (i = 1; i <= skipped; i++)
			print line[i]
	}'
}

# A replay prints how many inputs it survived.
read_replay()
{
	awk '/^[0-9]+ inputs$/ { whole = 1 } END { print whole + 0, 0, 0, whole + 0 }'
}

# ---- one program ---------------------------------------------------------------------------------

run_one()
{
	local name=${1#"$TOP"/} dir=$WORK/dir.$BASHPID log=$WORK/log.$BASHPID
	local limit=${TIME_LIMIT:-240} reader=read_cmocka command verdict='' rc
	local passed failed skipped whole skips seconds cpu TIMEFORMAT='%R %U %S'

	command=("$TOP/$name")
	case $name in
	*/fuzz/*)
		reader=read_replay
		command+=($(ls -d "$TOP/tests/fuzz/corpus/${name##*/}" 2>/dev/null))
		;;
	*.sh)
		reader=read_script
		command=(bash "$TOP/$name")
		limit=$(sed -n 's/^# time limit: \([0-9]*\).*/\1/p' "$TOP/$name" | head -n 1)
		limit=${limit:-${TIME_LIMIT:-240}}
		;;
	*.exe)
		command=($WINE_RUN "$TOP/$name")
		;;
	esac
	case $name in
	build/asan/* | build/tsan/*) command=($FIXED "${command[@]}") ;;
	esac

	local -x ASAN_OPTIONS
	ASAN_OPTIONS=$(asan_options "$name")
	mkdir -p "$dir"
	{ time if [ $reader = read_script ]; then
		(cd "$dir" && TMP=$dir exec timeout -k 5 "$limit" "${command[@]}")
	else
		(cd "$TOP" && TEST_TMP=$dir exec timeout -k 5 "$limit" "${command[@]}")
	fi </dev/null >"$log" 2>&1; } 2>"$log.time"
	rc=$?
	read -r seconds cpu < <(tail -n 1 "$log.time" | awk '{ print $1, $2 + $3 }')
	rm -rf "$dir" 2>/dev/null            # what is written even now goes with $WORK

	{ read -r passed failed skipped whole; skips=$(cat); } < <(tr -d '\r' <"$log" | $reader)
	case $rc in
	0) [ "$whole" = 1 ] || verdict='ended before its tests did' ;;
	124 | 137) verdict="killed after $limit s" ;;
	*) [ "$failed" -gt 0 ] || verdict="exit code $rc" ;;
	esac
	[ -z "$verdict" ] || failed=$((failed + 1))

	# One write at a time, so that two programs' lines do not mix.
	exec 9>"$WORK/lock"
	flock 9
	# A test program begins with a line of cmocka's: without one Wine did not start it.
	if [ "$failed" != 0 ] && [ "${RUN:=1}" -lt 3 ] &&
		[[ $name == tests/cli/*_linux.sh || $name == tests/cli/windows_*.sh ||
			$name == */live_linux || $name == */stopped/*_windows.exe ||
			($name == *.exe && ! -s $log) ]]; then
		echo "again $name: $failed failed at run $RUN${verdict:+: $verdict}"
		show_log "$log"
		echo "$name" >>"$WORK/again.$RUN"
		return
	fi
	echo "$passed $failed $skipped $seconds $cpu $name" >>"$WORK/totals"
	printf '%-4s %-46s %4d passed %3d failed %3d skipped %6.1f s %6.1f s CPU%s\n' \
		"$([ "$failed" = 0 ] && echo ok || echo FAIL)" "$name" \
		"$passed" "$failed" "$skipped" "$seconds" "$cpu" "${verdict:+: $verdict}"
	[ -z "$skips" ] || sed 's/^/       /' <<<"$skips"
	if [ "$failed" != 0 ]; then
		show_log "$log"
		{ echo "$name${verdict:+: $verdict}"; failures "$log"; } >>"$WORK/failed"
	fi
	rm -f "$log"
}

# The tests that failed, with what cmocka or a script says of each.
failures() # LOG
{
	tr -d '\r' <"$1" | awk '
		/^\[  ERROR   \]|^\[   LINE   \]/ { print "    " $0 }
		/^\[  FAILED  \]/ && !seen[$NF]++ { print "  " $NF }
		/^not ok / { print "  " $0; more = 10; next }
		/^ / && more-- > 0 { print "  " $0; next }
		{ more = 0 }' | head -n 60
}

# Print everything that a program printed.
show_log()
{
	[ "$(wc -l <"$1")" -le 400 ] || echo "     | (the last 400 lines)"
	tail -n 400 "$1" | tr -d '\r' | sed 's/^/     | /'
}

# several COUNT [COMMAND...] -- PROGRAM...: run so many at a time, by the command.
several()
{
	local count=$1 by=()
	shift
	while [ "$1" != -- ]; do
		by+=("$1")
		shift
	done
	shift
	[ $# = 0 ] || printf '%s\0' "$@" |
		xargs -0 -n 1 -P "$count" "${by[@]}" "$0" --one 7>&- 8>&-
}

if [ "${1:-}" = --one ]; then
	[ ! -e "$WORK/stop" ] || exit 255            # ends xargs
	[ "${RUN:-}" ] || mkdir "$WORK/begun.${2//\//.}" 2>/dev/null || exit 0
	run_one "$2"
	exit 0
fi

# ---- all of them ---------------------------------------------------------------------------------

wine= third=
WORK=$(mktemp -d)
export WORK
finish()
{
	[ ! "$third" ] || { touch "$WORK/stop" && wait "$third"; }
	# Another run in this clone may be using the server; the last one ends it.
	if [ "$wine" ] && flock -x -n 8; then
		"$TOP/tests/support/wine.sh" stop
	fi
	rm -rf "$WORK"
}
trap finish EXIT
trap 'exit 130' INT TERM

: >"$WORK/totals"
live=() programs=() scripts=() alone=()
for program in "$@"; do
	case $program in
	*.sh) if [[ $BUILD =~ /[at]san$ ]] || grep -q '^# alone: ' "$program"; then
		alone+=("$program")
	elif [[ $program = *_linux.sh ]]; then
		live+=("$program")
	else
		scripts+=("$program")
	fi ;;
	*/live_linux) live+=("$program") ;;
	*) programs+=("$program") ;;
	esac
	case $program in
	*.exe | *.sh) wine=$WINE_RUN ;;
	esac
done
mkdir -p "$TOP/build"
if [ "$wine" ]; then
	exec 8>>"$TOP/build/deps/wine.lock"
	flock -s 8
	"$TOP/tests/support/wine.sh" start 8>&-
fi

exec 7>>"$TOP/build/quiet.lock"
flock -s 7
# Live scripts wait for half of their time: beside two of them runs a third program, in what they
# leave, and then a script that records nothing: one of those that have not begun.
jobs=${JOBS:-2}
rest() { several "$1" nice -n 5 -- "${programs[@]}"; several "$1" -- "${scripts[@]}"; } # COUNT
if [ ${#live[@]} -gt 1 ]; then
	rest 1 & third=$!
	several "$jobs" -- "${live[@]}" "${scripts[@]}"
	wait $third
	third=
else
	several "$jobs" -- "${live[@]}"
	rest $((jobs * 2))       # nothing records, and many wait
fi
flock -u 7
[ ${#alone[@]} = 0 ] && [ ! -e "$WORK/again.1" ] || flock -x 7
for script in "${alone[@]}"; do
	"$0" --one "$script" 7>&- 8>&-
done
for run in 2 3; do
	[ ! -e "$WORK/again.$((run - 1))" ] || while read -r program; do
		RUN=$run "$0" --one "$program" 7>&- 8>&-
	done <"$WORK/again.$((run - 1))"
done
exec 7>&-

read -r passed failed skipped < <(
	awk '{ p += $1; f += $2; s += $3 } END { print p + 0, f + 0, s + 0 }' "$WORK/totals"
)
lost=$(($# - $(wc -l <"$WORK/totals")))
if [ "$lost" != 0 ]; then
	echo "run.sh: $lost programs left no result"
	failed=$((failed + lost))
fi
[ $# -le 10 ] || {
	echo 'the longest:'
	sort -k4,4rn "$WORK/totals" | head -n 10 |
		awk '{ printf "  %6.1f s %6.1f s CPU  %s\n", $4, $5, $6 }'
	awk -v wall=$SECONDS '{ s += $4; cpu += $5 } END {
		printf "all in %d s: programs that took %d s and %d s of CPU\n", wall, s, cpu }' \
		"$WORK/totals"
}
[ ! -e "$WORK/failed" ] || { echo 'failed:'; sed 's/^/  /' "$WORK/failed"; }
[ ! -e "$WORK/again.1" ] || echo "$(wc -l <"$WORK/again.1") programs were run again"
echo "$passed passed, $failed failed, $skipped skipped"
[ "$failed" = 0 ] && [ "$passed" -gt 0 ]
