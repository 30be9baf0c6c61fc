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
for format in folded speedscope.json perfView.xml perfView.xml.zip perfView.json perf.data.txt \
		pb.gz trace.json; do
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

# Thread time stays what it is, and when it was: 30 ms blocked up to 50, by its begin or its end.
cat >waits.txt <<'END'
shop 12/12 [000] 0.010000: 10000000 cpu-clock:
	1 main+0x1 (shop)

shop 12/12 [000] 0.050000: 30000000 off-cpu:
	0 BLOCKED_TIME+0x0 ([thread])
	1 main+0x1 (shop)

END
"$RECORDER" collect --from waits.txt --store waits.db 2>err
for format in folded speedscope.json perfView.xml.zip perfView.json perf.data.txt pb.gz \
		trace.json; do
	"$RECORDER" export 1 --store waits.db --metric off-cpu -o waits.$format
	"$RECORDER" collect --from waits.$format --store waits-$format.db 2>err
	check "thread_time_is_read_from_$format" [ "$("$RECORDER" export 1 --no-ids -f \
		--store waits-$format.db --metric off-cpu)" = \
		'shop;shop;shop!main;[thread]!BLOCKED_TIME 30000000' ]
	check "and_is_no_cpu_time_in_$format" [ "$("$RECORDER" export 1 --metric cpu -f 2>err \
		--store waits-$format.db)" = "" ]
done

echo 'shop;shop;main;[thread]!BLOCKED_TIME 60000000000' >minute.folded
"$RECORDER" collect --from minute.folded --store minute.db 2>err
check a_minute_of_folded_ns_is_a_minute eval '"$RECORDER" report 1 --store minute.db --json \
	--metric off-cpu | jq -s -e "map(select(.row == \"process\").inclusive_ms) == [60000]"'

# Go writes the kind of its period first.
{ printf 'Z\0'; gzip -dc a.pb.gz; } | gzip >go.pb.gz
expect a_profile_that_begins_as_gos_is_read 0 'done: 1000 events.* 1000 of them samples' \
	collect --from go.pb.gz --store go.db

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

# ---- Chrome's trace events, V8's and Java's profiles ---------------------------------------------

corpus=$TOP/tests/fuzz/corpus/fuzz_stackfile_parse
# read_as NAME SUFFIX TEXT: the folded stacks of that file of the corpus, in ms
read_as()
{
	cp "$corpus/$1" "$1$2"
	rm -rf one.db*
	"$RECORDER" collect --from "$1$2" --store one.db 2>err
	"$RECORDER" show 1 --store one.db | grep -q "read from $3" || return
	"$RECORDER" report 1 --store one.db --json --tree |
		jq -r 'select(.row == "node") | "\(.name) \(.inclusive_ms)"'
}

# main has 10 us, of which work takes 3; outer begins 5.5 us before 0, with inner from 0 to 4.
slices=$(read_as trace_events .json "Chrome's trace events; 2 of its lines or items make no sense")
check slices_nest_and_begins_meet_their_ends grep -qx 'app!main 0.01' <<<"$slices"
check slices_count_their_own_time_and_that_of_nested_ones eval \
	'grep -qx "app!work 0.003" <<<"$slices" && grep -qx "outer 0.0145" <<<"$slices" &&
	grep -qx "inner 0.004" <<<"$slices"'
# Samples of a thread are 1 ms apart, the last one counts twice.
samples=$(read_as trace_samples .json "Chrome's trace events")
check samples_with_stack_frames_count_their_distance eval \
	'grep -qx "app!main 4" <<<"$samples" && grep -qx "app!work 2" <<<"$samples"'
check v8_counts_until_the_next_sample_but_no_idle_time grep -qx \
	'\[javascript\]!work b.js:2 1.1' <<<"$(read_as v8 .cpuprofile "V8's CPU profile")"
java=$(read_as jfr .jfr 'a recording of JDK Flight Recorder')
check jfr_counts_the_period_that_its_settings_tell eval \
	'grep -qx "\[java\]!shop.Cart.total 60" <<<"$java" &&
	grep -qx "\[java\]!shop.Cart.price 20" <<<"$java"'
check jfr_has_allocations_in_bytes eval '"$RECORDER" export 1 --store one.db --metric alloc -f |
	grep -q "^java (0);worker-1;\[truncated\];.*shop.Cart.price_\[j\] 4096$"'
read_as trace_zip .trace.zip 'text of perf script; .*events of LTTng in it are not read' >out
check the_text_in_a_zip_of_perfcollect_is_read grep -q 'mas_walk' out

# self_us FILE: "NAME US" of each function, names until the first blank or brace
self_us()
{
	rm -rf other.db*
	"$RECORDER" collect --from "$1" --store other.db 2>err
	"$RECORDER" report 1 --store other.db --json --by-name --rows 10000 |
		jq -r 'select(.row == "function"
		and .self_ms > 0) | "\(.name) \(.self_ms * 1000)"' | sed 's/^[^ ]*!//' | sums
}
sums() { awk '$NF > 0 { n = $NF; $NF = ""; sub(/ .*/, ""); sub(/^\(anonymous.*/, "(anonymous)")
	sum[$0] += n } END { for (i in sum) print i, sum[i] }' | sort; }
# agrees_with_speedscope FILE MORE: within 5 us for each function; ours may have MORE us.
agrees_with_speedscope()
{
	node "$TOP/tests/support/speedscope.js" "$TOP/build/deps/npm" "$1" | sums >theirs
	self_us "$1" >ours
	[ -s ours ] && join -a1 -a2 -e 0 -o 0,1.2,2.2 ours theirs |
		awk -v most="$2" '{ d = $2 - $3 } d > most || d < -5 { print; bad = 1 }
			END { exit bad }'
}
cat >busy.js <<'END'
function work(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
function alpha() { return work(3e6); }
for (const t = Date.now(); Date.now() - t < 300;) alpha();
END
if ! command -v node >/dev/null || [ ! -d "$TOP/build/deps/npm/node_modules/speedscope" ]; then
	echo "skip others_agree: no node, or no speedscope in build/deps/npm (make deps)"
else
	node --cpu-prof --cpu-prof-name=node.cpuprofile busy.js
	# speedscope gives the last sample no time; ours lasts until the profile's end.
	last=$(jq '.endTime - .startTime - (.timeDeltas | add) + 5' node.cpuprofile)
	check node_cpu_prof_is_read_as_speedscope_does \
		agrees_with_speedscope node.cpuprofile "$last"
	node --trace-event-categories v8,node,node.fs.sync busy.js
	mv node_trace.1.log node_trace.json
	check node_trace_events_are_read_as_speedscope_does agrees_with_speedscope node_trace.json 5
fi
if ! command -v jfr >/dev/null; then
	echo "skip jfr_agrees: no jfr of a JDK"
else
	mkdir java && cat >java/Busy.java <<'END'
public class Busy {
	static double work(int n) {
		double s = 0;
		for (int i = 0; i < n; i++)
			s += Math.sin(i);
		return s;
	}
	public static void main(String[] a) {
		for (long t = System.nanoTime(); System.nanoTime() - t < 1000000000L;) work(100000);
	}
}
END
	javac -d java java/Busy.java
	java -XX:StartFlightRecording=filename=busy.jfr,settings=profile -cp java Busy >log 2>&1
	rm -rf other.db*
	"$RECORDER" collect --from busy.jfr --store other.db 2>err
	jfr print --events jdk.ExecutionSample busy.jfr | grep -A1 'stackTrace = \[' |
		sed -n 's/^ *\([^ (]*\)(.*line:.*/\1/p' | sort | uniq -c |
		awk '{ print $2, $1 }' >theirs
	"$RECORDER" report 1 --store other.db --json --by-name --rows 10000 |
		jq -r 'select(.row == "function"
		and .self_ms > 0) | "\(.name) \(.self_ms / 10 | round)"' |
		sed 's/^\[java\]!//' | sort >ours
	check jfr_has_the_samples_that_jfr_print_shows eval '[ -s ours ] && diff ours theirs'
fi

"$RECORDER" collect --from others.txt --store rule.db /StopOnEvent:cpu-counter/page-faults 2>err
check a_rule_fires_on_an_event_of_perf_script grep -q 'fired: cpu-counter/page-faults' err
"$RECORDER" collect --from a.trace.json --store s.db 2>err
check trace_events_are_compared_with_an_incident eval \
	'"$RECORDER" diff 1 6 --store s.db | grep -qE "^ +7992.0 +8000.0 .*server$"'

# ---- what is none --------------------------------------------------------------------------------

echo '{"traceEvents": []}' >other.json
expect json_without_samples_is_refused 1 "other.json is read as Chrome's trace events, but has no" \
	collect --from other.json --store no.db
echo '{"spans": []}' >other.json
expect json_of_others_is_refused 1 'other.json is JSON of a kind that is not read' \
	collect --from other.json --store no.db
echo '{"traceEvents": [' >other.json
expect json_that_is_cut_is_refused 1 'begins as JSON, but is none: is it cut' \
	collect --from other.json --store no.db
head -c 800 "$corpus/jfr" >cut.jfr
expect a_jfr_that_is_cut_is_refused 1 'a chunk in it is cut or was never finished' \
	collect --from cut.jfr --store no.db
cp "$corpus/zip" none.trace.zip
expect a_zip_without_a_text_of_perf_is_refused 1 'no file that ends in .data.txt' \
	collect --from none.trace.zip --store no.db
echo 'no stacks here' >none.txt
expect a_text_without_stacks_is_refused 1 'none.txt is not read as folded stacks' \
	collect --from none.txt --store no.db
head -c 300 a.perfView.xml.zip >cut.perfView.xml.zip
expect a_zip_that_is_cut_is_refused 1 'damaged' collect --from cut.perfView.xml.zip --store no.db
"$RECORDER" export 1 --store s.db --format dtrace -o a.dtrace
expect dtrace_s_stacks_are_no_folded_ones 1 "such as 'sh;main;work 42'; 'recorder help export'" \
	collect --from a.dtrace --store no.db
"$RECORDER" export 1 --store s.db --format perf-script -o a.perfscript
check a_text_is_known_by_how_it_looks "$RECORDER" collect --from a.perfscript --store looks.db
: >empty.folded
expect an_empty_file_is_refused_as_such 1 'empty.folded is empty' \
	collect --from empty.folded --store no.db
expect a_pipe_is_refused_with_what_to_do 1 'is not a regular file.*save what comes from it' \
	collect --from /dev/null --store no.db
