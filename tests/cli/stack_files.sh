#!/bin/bash
# Files with names instead of addresses, read with collect --from. What we export and read again has
# equal totals and an equal tree, in each format; and files of other programs are read.
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG RECORDER_STORE
export XDG_STATE_HOME=$TMP/state HOME=$TMP

"$BUILD/programs/store_fixture" s.db || { echo "not ok store_fixture: failed"; exit 0; }

# PerfView wants no ".so.6", and not every format tells what is jitted, or more of a process than
# its threads' names.
tree()
{
	"$RECORDER" export 1 --store "$1" -f |
		sed -E 's/_\[[a-z]\]//g; s/\.so(\.[0-9]+)*!/!/g; '"${2:-}" | sort
}
total_ms() { "$RECORDER" report 1 --store "$1" --json |
	jq -s 'map(select(.row == "process") | .inclusive_ms) | add | round'; }

total=$(total_ms s.db)
for format in folded speedscope.json perfView.xml perfView.xml.zip perf.data.txt pb.gz; do
	edit=
	[ $format = perf.data.txt ] && edit='s/^[^;]*;[^;]*;//'
	"$RECORDER" export 1 --store s.db -o a.$format
	expect "${format}_is_read" 0 'done: 1000 events.* 1000 of them samples; 1 stored' \
		collect --from a.$format --store $format.db
	check "it_gives_the_same_tree_$format" cmp <(tree s.db "$edit") <(tree $format.db "$edit")
	check "and_the_same_total_$format" [ "$(total_ms $format.db)" = "$total" ]
done
"$RECORDER" collect --from a.perfView.xml --store s.db 2>err
check a_file_of_perfview_is_compared_with_an_incident eval \
	'"$RECORDER" diff 1 5 --store s.db | grep -qE "^ +7992.0 +8000.0 .*server$"'

# ---- files of others -----------------------------------------------------------------------------

cat >others.folded <<'END'
java;start_thread;main;work 3
java;start_thread;main 1
END
"$RECORDER" collect --from others.folded --store others.db 2>err
"$RECORDER" export 1 --store others.db -f --no-ids >out
check folded_stacks_without_modules_are_read grep -qx 'java;java;start_thread;main;work 3' out
check that_they_have_no_times_is_said eval '"$RECORDER" show 1 --store others.db |
	grep -q "it has no times: its samples follow each other, 10 ms each"'

cat >others.txt <<'END'
# ========
Web Content 12/34 [001]   152.483135:     667111 cpu-clock:u:
	        1bccb _dl_start_final+0x55b (inlined)
	        1bccb _dl_start+0x55b (/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2)

   sh    77   153.000000001:   2   page-faults: 
	ffffffff821c9cb2 mas_walk+0x2 ([kernel.kallsyms])
	               0 [unknown] ([unknown])

END
"$RECORDER" collect --from others.txt --store text.db 2>err
"$RECORDER" export 1 --store text.db -f >out
ld=ld-linux-x86-64.so.2
check names_with_blanks_and_inlined_functions_are_read grep -qxF \
	"Web Content (12);Web Content-34;$ld!_dl_start;$ld!_dl_start_final_[i] 1" out
"$RECORDER" export 1 --store text.db -f --metric event >out
check an_event_is_no_time_but_weighed_by_its_count grep -qx \
	'sh (77);sh-77;?!?;\[kernel\]!mas_walk_\[k\];event!page-faults_\[j\] 2' out

# ---- what is none --------------------------------------------------------------------------------

echo '{"traceEvents": []}' >other.json
expect json_of_others_is_refused 1 "other.json is not read as speedscope's JSON" \
	collect --from other.json --store no.db
echo 'no stacks here' >none.txt
expect a_text_without_stacks_is_refused 1 'none.txt is not read as folded stacks' \
	collect --from none.txt --store no.db
head -c 300 a.perfView.xml.zip >cut.perfView.xml.zip
expect a_zip_that_is_cut_is_refused 1 'damaged' collect --from cut.perfView.xml.zip --store no.db
