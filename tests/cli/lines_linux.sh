#!/bin/bash
# Source lines and inlined functions: a program with debug information, recorded, against addr2line.
. "$TOP/tests/support/cli.sh"
need_perf
for tool in g++ addr2line sqlite3 jq; do
	command -v $tool >/dev/null || { echo "skip lines_linux: no $tool here"; exit 0; }
done

# ---- record --------------------------------------------------------------------------------------

g++ -g -O2 -Wl,--build-id -o inlined "$TOP/tests/data/lines/inlined.cc" || exit 1
./inlined 60 >/dev/null & program=$!
trap 'kill $program 2>/dev/null' EXIT
# Wait until there are samples enough for many different frames: a second or two, longer on a busy
# machine.
"$RECORDER" collect --store s.db --freq 499 --max-cpu-percent 0 \
	--record-process $program 2>log & recorder=$!
has_samples() { [ "$("$RECORDER" status --store s.db --json | jq .samples)" -ge 800 ]; }
wait_for 50 has_samples
"$RECORDER" stop --store s.db >/dev/null 2>&1
wait $recorder
kill $program
if ! "$RECORDER" export --store s.db -f --inlines >lines.folded 2>err && grep -q libdw err; then
	echo "skip lines_linux: $(cat err)"
	exit 0
fi
"$RECORDER" export --store s.db -f >plain.folded 2>>err

total() { awk '{ n += $NF } END { print n }' "$1"; }
check inlined_functions_change_no_total test "$(total lines.folded)" = "$(total plain.folded)"
check inlined_functions_are_marked \
	grep -q 'inlined!mix::spin;inlined!mix::state::step_\[i\];inlined!mix::stir<24>_\[i\]' \
	lines.folded
check without_the_option_there_are_none sh -c '! grep -q "_\[i\]" plain.folded'
check every_stack_without_inlined_functions_is_a_recorded_one sh -c '
	sed -E "s/;[^;]*_\[i\]//g" lines.folded | sed "s/ [0-9]*$//" | sort -u >a
	sed "s/ [0-9]*$//" plain.folded | sort -u >b
	test -z "$(comm -23 a b)"'

"$RECORDER" show --store s.db --lines >show.txt 2>>err
check show_has_lines grep -qE 'inlined!mix::state::step \(inlined\)  inlined\.cc:[0-9]+$' show.txt
"$RECORDER" show --store s.db --lines --json >show.json 2>>err
check json_has_file_and_line jq -e --arg file "$TOP/tests/data/lines/inlined.cc" \
	'.hottest[0].stack | any(.file == $file and .line > 0 and .inlined)' show.json
"$RECORDER" show --store s.db --json >plain.json 2>>err
check json_counts_are_those_without_lines sh -c \
	'counts="[.samples, .stacks, .frames]" &&
	[ "$(jq "$counts" show.json)" = "$(jq "$counts" plain.json)" ]'

# ---- a function's lines with their cost ----------------------------------------------------------

# The text of each line is that of its file, and the costs of lines are those of the stacks that
# show prints with lines.
expect lines_of_a_function 0 'source_line' \
	report --store s.db --source 'inlined!mix::spin' --json
check each_has_the_text_of_its_file python3 - "$TOP/tests/data/lines/inlined.cc" <<'END'
import json, sys
text = open(sys.argv[1]).read().split('\n')
rows = [json.loads(line) for line in open('out')]
assert len(rows) > 5 and any(r['inclusive_ms'] > 0 for r in rows)
for r in rows:
    assert r['text'].strip() == text[r['line'] - 1].expandtabs(4).strip(), r
END
"$RECORDER" report --store s.db --by-name --json >functions.json 2>>err
inclusive()
{
	jq -s 'map(select(.name == "inlined!mix::spin")) | .[0].inclusive_ms' functions.json
}
check no_line_costs_more_than_the_function eval \
	'jq -s -e --argjson all "$(inclusive)" "map(.inclusive_ms) | max <= \$all + 0.001" out'
check lines_of_a_function_that_calls_add_up eval \
	'jq -s -e --argjson all "$(inclusive)" \
	"map(.inclusive_ms) | add >= \$all * 0.999" out'
expect a_function_without_lines 3 'no function is called|has no source lines' \
	report --store s.db --source 'nosuch!function'
expect lines_for_people 0 '^ +[0-9.]+ +[0-9.]+ % +[0-9.]+ +[0-9.]+ % +[0-9]+  .*step' \
	report --store s.db --source 'inlined!mix::spin'
expect lines_go_into_the_page 0 'newest' \
	export --store s.db --source 'inlined!mix::spin' -o lines.html

# ---- without libdw -------------------------------------------------------------------------------

mkdir fake && : >fake/libdw.so.1
check without_libdw_the_option_is_refused expect_exit 1 env LD_LIBRARY_PATH=fake \
	"$RECORDER" export --store s.db -f --inlines
check and_says_what_to_install grep -q 'install libdw1' expect.out
check everything_else_works_without_libdw expect_exit 0 env LD_LIBRARY_PATH=fake \
	"$RECORDER" export --store s.db -f

# ---- every recorded frame, against addr2line -----------------------------------------------------

# Hexadecimal file offsets; for a PIE, lines_at prints the addresses that addr2line wants.
"$RECORDER" export --store s.db --format sqlite-flat -o rows.db 2>>err
sqlite3 rows.db "SELECT DISTINCT printf('%x', address) FROM frame WHERE module = 'inlined'
	ORDER BY address" >offsets
"$BUILD/programs/lines_at_linux" "$PWD/inlined" --offsets <offsets >ours.all
grep '^0x' ours.all >addresses
addr2line -a -f -i -e inlined <addresses >theirs.all
# Compare files and lines; functions that only the symbol table knows (crt1.o) have none.
simple() { sed -E 's/ \(discriminator [0-9]+\)//; s/:\?$/:0/' "$1" | grep -E '^0x|:[0-9]+$'; }
simple ours.all >ours
simple theirs.all >theirs
check there_are_frames_to_compare test "$(grep -c '^0x' ours)" -gt 20
check files_and_lines_are_those_of_addr2line diff ours theirs

# ---- a binary that has changed since -------------------------------------------------------------

g++ -g -O1 -Wl,--build-id -o inlined.new "$TOP/tests/data/lines/inlined.cc" &&
	mv inlined.new inlined
"$RECORDER" export --store s.db -f --inlines >changed.folded 2>changed.err
check a_changed_binary_is_an_export_all_the_same test $? -eq 0
check a_changed_binary_is_named_once \
	test "$(grep -c "$PWD/inlined is not the file" changed.err)" = 1
check its_names_stay_as_recorded sh -c \
	'sed -E "s/;libc[^;]*_\[i\]//g" changed.folded | cmp - plain.folded'
rm inlined
"$RECORDER" export --store s.db -f --inlines >gone.folded 2>gone.err
check a_binary_that_is_gone_is_said \
	grep -q "the file is missing or unreadable: .*/inlined" gone.err
