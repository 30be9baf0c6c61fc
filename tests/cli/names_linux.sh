#!/bin/bash
# True names in live recordings: processes that end at once; files that were deleted, hidden in
# another mount namespace or replaced by another build; JavaScript.
# time limit: 240
. "$TOP/tests/support/cli.sh"
need_perf

shapes=$TOP/tests/programs/shapes_linux.c
gcc -O2 -w -pthread -o brief "$shapes" || exit 1

# Each copy has its own build id, whose first byte is its number, and its own function: no copy can
# take its names from another.
id=10251121
gcc -O2 -w -pthread -Wl,--build-id=0x${id}00000000000000000000000000000000 -o gone "$shapes" ||
	exit 1
at=$(LC_ALL=C grep -obUaP '\x10\x25\x11\x21\x00' gone | head -n 1 | cut -d : -f 1)
for ((i = 10; i < 40; i++)); do
	mkdir -p copies/$i
	sed "s/brief_spin/brief_sp$i/g" gone >copies/$i/gone
	chmod +x copies/$i/gone
	printf "\\x$i" | dd of=copies/$i/gone bs=1 seek="$at" conv=notrunc status=none || exit 1
done

# of NAME|PID: write its stacks to out.folded, with frames named "module!function"
of()
{
	"$RECORDER" export --store s.db --id 1 --process "$1" --no-ids -f >out.folded 2>>err
}

# count PATTERN [UNLESS]: samples whose stack matches, and does not match UNLESS
count()
{
	awk -v p="$1" -v unless="${2:-}" '$0 ~ p && (unless == "" || $0 !~ unless) { n += $NF }
		END { print n + 0 }' out.folded
}

# mostly PERCENT PATTERN OF LEAST: LEAST samples or more match OF, and PERCENT of them match PATTERN
mostly()
{
	local n hits
	n=$(count "$3")
	hits=$(count "$2")
	echo "$hits of $n samples that match \"$3\" match \"$2\", expected are $1 %"
	[ "$n" -ge "$4" ] && [ $((100 * hits)) -ge $(($1 * n)) ] && return
	head -n 5 out.folded
	return 1
}

never() { [ "$(count "$1")" = 0 ]; }

# ---- what runs before the recorder does ----------------------------------------------------------

started=()
trap 'kill "${started[@]}" 2>/dev/null; rm -f "/tmp/perf-${node:-none}.map"' EXIT

# Replaced by a newer build while it runs: the path now leads to another program.
gcc -O2 -w -pthread -DBRIEF_SPIN=old_spin -o replaced "$shapes" &&
	gcc -O2 -w -pthread -DBRIEF_SPIN=new_spin -o newer "$shapes" || exit 1
./replaced brief 60000 & started+=($!)
runs_replaced() { [[ $(readlink "/proc/${started[0]}/exe") == */replaced ]]; }
wait_for 10 runs_replaced
mv newer replaced

# The same path is one program in its mount namespace, and another one in ours.
mkdir real mounted
gcc -O2 -w -pthread -DBRIEF_SPIN=inner_spin -o real/inside "$shapes" &&
	gcc -O2 -w -pthread -DBRIEF_SPIN=outer_spin -o mounted/inside "$shapes" || exit 1
why_not_inside=$(unshare -m true 2>&1) && {
	unshare -m sh -c 'mount --bind real mounted &&
		exec "$PWD/mounted/inside" brief 60000' & started+=($!)
}

if command -v node >/dev/null; then
	cat >spin.js <<'JS'
function spinInJavaScript(n) {
	let s = 0;
	for (let i = 0; i < n; i++) s = (s * 31 + i) % 1000003;
	return s;
}
const end = Date.now() + 120000;
while (Date.now() < end) spinInJavaScript(100000);
JS
	node --perf-basic-prof spin.js >/dev/null 2>&1 & node=$!
	started+=($node)
fi

"$RECORDER" collect --store s.db --freq 499 --max-cpu-percent 0 --pre-sec 120 \
	/DelayAfterTriggerSec:0 2>log & recorder=$!
started+=($recorder)
wait_for 10 "$RECORDER" status --store s.db

# ---- 300 processes of 20 ms, and 30 whose file goes 10 ms after their start ----------------------

twice() { "$@" & "$@" & wait; }
briefly() { for ((i = 0; i < 150; i++)); do ./brief brief 20; done; }
(twice briefly)

(for ((i = 10; i < 40; i++)); do
	copies/$i/gone brief 20 &
	echo "$! $i" >>numbers
	sleep 0.01
	rm copies/$i/gone
	wait $!
done)
"$RECORDER" stop --store s.db >/dev/null 2>>err
wait $recorder
check it_records_them_all test $? -eq 0

# Samples in the loader, libc or the kernel before and after main() have no function of the program.
of brief
check names_of_processes_of_20_ms mostly 99 'brief!brief_spin' 'brief!' 500
check and_none_is_without_stack mostly 75 'brief!brief_spin' . 500

of gone
echo "note: $(count 'gone!brief_sp[0-9]') of $(count 'gone!') samples of programs that were" \
	"removed 10 ms after their start have names"
check what_is_removed_after_10_ms_is_recorded mostly 75 'gone!' . 50
check its_names_are_right_or_none mostly 100 \
	'gone!(brief_sp[0-9]+|\?)|gone!(_start|main|turns|now_s)[^;]*( [0-9]+$|;[^g])' 'gone!' 50
"$RECORDER" export --store s.db --id 1 --process gone -f >gone.folded 2>>err
check and_those_of_the_copy_that_ran awk 'NR == FNR { number[$1] = $2; next }
	match($0, /brief_sp[0-9]+/) { own = substr($0, RSTART + 8, RLENGTH - 8)
		pid = $2; sub(/^[(]/, "", pid); sub(/[^0-9].*/, "", pid)
		if (own != number[pid]) { print; bad = 1 } }
	END { exit bad }' numbers gone.folded

of replaced
check names_of_a_replaced_program_are_right_or_none never new_spin
check its_samples_are_there mostly 95 'replaced!(old_spin|\?)' . 30
echo "note: $(count old_spin) of $(count .) samples of a program that was replaced have names"

if [ -z "$why_not_inside" ]; then
	of inside
	check a_program_in_its_own_mount_namespace_has_names mostly 95 'inside!inner_spin' . 30
	check and_not_those_of_another_at_the_same_path never outer_spin
else
	echo "skip a_program_in_its_own_mount_namespace_has_names: $why_not_inside"
fi

if [ "${node:-}" ]; then
	of $node
	# By V8's own objects; with a V8 that is not known by the map.
	check javascript_functions_have_names \
		mostly 80 '(.javascript.!|JS:[*~^+]*)spinInJavaScript .*spin.js:1' . 30
else
	echo "skip javascript_functions_have_names: node is not installed"
fi
