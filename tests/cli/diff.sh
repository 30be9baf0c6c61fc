#!/bin/bash
# diff: two incidents, as a report and in each format, read by the programs that they are for.
#
# Synthetic incidents always; incidents of the real trace in ../shared/data if it is there.
# flamegraph.pl comes from Debian's libdevel-nytprof-perl.
# time limit: 180
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db XDG_STATE_HOME=$TMP/state HOME=$TMP
npm=$TOP/build/deps/npm/node_modules
flamegraph=/usr/share/perl5/Devel/NYTProf/flamegraph.pl

# 1,000 samples of 10 ms, 800 of them in server: 600 burn_alpha and 200 burn_beta before, 400 and
# 400 after.
"$BUILD/programs/store_fixture" s.db && "$BUILD/programs/store_fixture" t.db 2 ||
	{ echo "not ok store_fixture: failed"; exit 0; }
two="diff --base-store s.db --store t.db --base 1 --test 1"

# sum COLUMN-FROM-THE-END FILE
sum()
{
	awk -v at="$1" '{ n += $(NF - at) } END { print n }' "$2"
}

# ---- the report ----------------------------------------------------------------------------------

expect diff_is_for_people 0 '' $two
base='^Base window: -12.000 s to 5.000 s .*; 1000 samples, 10.000 s of CPU time; 7 lost'
check diff_says_what_was_compared grep -qE "$base" out
check diff_says_whose_the_base_is grep -q '^Base: incident 1 of s.db, 2026-01-02' out
check diff_has_both_times \
	grep -qE ' n/a +n/a +6000.0 +4000.0 +-2000.0 +60.0 % +40.0 %  server!burn_alpha$' out
check diff_has_the_change_of_own_times \
	grep -qE '^ +5000.0 +3000.0 +-2000.0 +50.0 % +30.0 %  server!burn_alpha$' out
check diff_leaves_out_what_did_not_change sh -c '! grep -q server!main out'
check diff_has_the_processes grep -qE ' 8000.0 +8000.0 +\+0.0 +80.0 % +80.0 %  server$' out
expect diff_of_a_shorter_window 0 '' diff 1 2
check diff_multiplies_the_base grep -qE '^Base multiplied by: 0.470588' out
expect diff_without_scaling 0 '' diff --base 1 --test 2 --normalize none
check diff_without_scaling_has_the_recorded_times \
	grep -qE ' 10.000 s of CPU time -> 4.700 s .*-53.0 %' out
expect diff_of_shares 0 '' diff --base 1 --test 2 --normalize samples
check diff_of_shares_weighs_the_same grep -qE '4.700 s of CPU time -> 4.700 s' out
expect diff_of_each_process 0 '' $two --per-process
check diff_of_each_process_has_tables sh -c '[ $(grep -c PROCESS$ out) = 2 ]'
expect diff_of_one_process 0 '' $two --process server
check diff_of_one_process_has_no_other sh -c '! grep -q batch out'
expect diff_by_groups 0 '' $two --group module
check diff_by_groups_has_modules sh -c '! grep -q burn_alpha out'
if command -v jq >/dev/null; then
	expect diff_json 0 '' $two --json
	check diff_json_values jq -e -s '.[0].base.ms == 10000 and .[0].base_factor == 1 and
		any(.[]; .name == "server!burn_beta" and .base_ms == 2000 and .test_ms == 4000 and
		.responsibility_pct == null)' out
else
	echo "skip diff_json: no jq here"
fi

# ---- formats -------------------------------------------------------------------------------------

for suffix in folded perfView.xml pb.gz svg html; do
	expect "diff_writes_$suffix" 0 '' $two -o "d.$suffix"
done
check diff_folded_adds_up sh -c \
	"[ $(sum 1 d.folded) = 10000000 ] && [ $(sum 0 d.folded) = 10000000 ]"
expect diff_packs_by_suffix 0 '' $two -o d.folded.gz
check diff_packed_is_the_same sh -c 'gzip -dc d.folded.gz | cmp - d.folded'
# Each column is the export of that side: 10 ms a sample, 10,000 us.
column() { awk -v at="$1" -v us="$2" \
	'{ n = $(NF - at); sub(/ [0-9]+ [0-9]+$/, ""); if (n) print $0, n / us }' "$3"; }
column 1 10000 d.folded >base.column; column 0 10000 d.folded >test.column
"$RECORDER" export --store s.db --id 1 -f --no-ids >base.folded
"$RECORDER" export --store t.db --id 1 -f --no-ids >test.folded
check diff_folded_is_both_exports sh -c 'cmp base.column base.folded && cmp test.column test.folded'
check diff_folded_has_two_columns sh -c "! grep -vqE '^[^ ].* [0-9]+ [0-9]+$' d.folded"
if command -v xmllint >/dev/null; then
	check diff_svg_and_xml_are_well_formed xmllint --noout d.svg d.perfView.xml
	check diff_perfview_is_test_minus_base sh -c \
		"[ \$(xmllint --xpath 'sum(//Sample/@Metric)' d.perfView.xml) = 0 ]"
else
	echo "skip diff_svg_and_xml_are_well_formed: no xmllint here"
fi
if [ -e $flamegraph ]; then
	perl $flamegraph d.folded >flame.svg 2>flame.log
	check flamegraph_pl_adds_up grep -q '<title>all (10,000,000 samples, 100%)' flame.svg
	check flamegraph_pl_has_the_difference grep -q 'burn_beta (.*+[1-9][0-9.]*%)' flame.svg
	perl $flamegraph --negate d.folded >negated.svg 2>>flame.log
	check flamegraph_pl_negates grep -q 'burn_beta (.*-[1-9][0-9.]*%)' negated.svg
	check flamegraph_pl_says_nothing [ ! -s flame.log ]
else
	echo "skip flamegraph_pl: none here (Debian's libdevel-nytprof-perl)"
fi
if command -v node >/dev/null && [ -d "$npm/pprof-format" ]; then
	check pprof_format_reads_the_diff \
		node "$TOP/tests/support/diff_reader.js" "$npm" d.pb.gz 1000 10000000000
else
	echo "skip pprof_format_reads_the_diff: no node," \
		"or no pprof-format in build/deps/npm (make deps)"
fi
if [ -n "$WINE_RUN" ] && [ -e "$RECORDER_EXE" ]; then
	for format in folded perfview-xml pprof svg html; do
		$WINE_RUN "$RECORDER_EXE" $two --format $format >windows.$format 2>/dev/null
		"$RECORDER" $two --format $format >linux.$format
		check "diff_as_${format}_has_the_same_bytes_on_both_hosts" \
			cmp linux.$format windows.$format
	done
else
	echo "skip diff_has_the_same_bytes_on_both_hosts: no Wine here"
fi

# ---- what is refused -----------------------------------------------------------------------------

expect diff_wants_two 2 'which two incidents' diff --base 1
expect diff_wants_two_different_ones 2 'both incident 1' diff --base 1 --test 1
expect diff_with_an_unknown_incident 3 'test, incident 99: there is no incident 99' \
	diff --base 1 --test 99
expect diff_with_an_empty_incident 3 'test, incident 3, has no CPU samples' diff --base 1 --test 3
expect diff_with_a_partial_incident 0 'the test, incident 4, is partial' diff --base 1 --test 4
expect diff_of_a_process_that_is_not_there 3 'base, incident 1: .*server' \
	diff --base 1 --test 2 --process no
expect diff_of_a_stream_that_is_not_there 3 'has no allocated memory' \
	diff --base 1 --test 2 --metric alloc
expect diff_of_an_event_that_is_not_there 3 'no stacks of such an event; its metrics: cpu' \
	diff --base 1 --test 2 --metric gpu
expect diff_scaled_by_what 2 'duration, samples, none' diff --base 1 --test 2 --normalize yes
expect diff_in_an_unknown_format 2 'folded, perfview-xml, pprof, svg, html' \
	diff --base 1 --test 2 --format speedscope
expect diff_of_each_process_is_a_report 2 'apply to the report only' \
	diff --base 1 --test 2 --per-process -f
expect diff_with_an_unknown_suffix 2 'folded, perfview-xml, pprof, svg, html' \
	diff --base 1 --test 2 -o x.txt
expect diff_to_standard_output_wants_a_format 2 'no format was given' diff --base 1 --test 2 -o -
expect diff_with_a_store_that_is_missing 3 'no.db' diff --base 1 --test 2 --base-store no.db
expect diff_does_not_overwrite 1 '--force' diff --base 1 --test 2 -o d.svg
expect diff_overwrites_by_force 0 '' diff --base 1 --test 2 -o d.svg --force
expect diff_with_a_bad_pattern 2 'column 1' diff --base 1 --test 2 --inc '@('

# A limit of 1 KB on the file stands for a full disk.
for suffix in perfView.xml svg html; do
	( trap '' XFSZ; ulimit -f 1; "$RECORDER" diff --base 1 --test 2 --rows 1 \
		-o "full.$suffix" 2>err )
	code=$?
	check "diff_leaves_no_half_$suffix" sh -c \
		"[ $code = 1 ] && [ ! -e full.$suffix ] && [ ! -e full.$suffix.tmp ]"
done

# ---- a real trace --------------------------------------------------------------------------------

trace=$TOP/../shared/data/etl/net.4.5.2.x64.etl.zip
if [ -e "$trace" ]; then
	"$RECORDER" collect --from "$trace" /StopOnGCOverMsec:1 /CollectMultiple:2 \
		--store etl.db 2>/dev/null
	expect diff_of_a_real_trace 0 '' diff --store etl.db --base 1 --test 2
	check diff_of_a_real_trace_says_its_samples \
		grep -qE '; 6050 samples, 6.050 s of CPU time' out
	expect diff_of_a_real_trace_folded 0 '' \
		diff --store etl.db --base 1 --test 2 --normalize none -o etl.folded
	column 0 1000 etl.folded >etl.column
	"$RECORDER" export --store etl.db --id 2 -f --no-ids >etl.export
	check diff_of_a_real_trace_is_its_export cmp etl.column etl.export
	check diff_of_a_real_trace_adds_up sh -c \
		"[ $(sum 1 etl.folded) = 6050000 ] && [ $(sum 0 etl.folded) = 6166000 ]"
else
	echo "skip diff_of_a_real_trace: no net.4.5.2.x64.etl.zip in ../shared/data/etl"
fi

# ---- a browser -----------------------------------------------------------------------------------

chromium=$(command -v chromium || command -v chromium-browser)
if [ -z "$chromium" ] || ! command -v node >/dev/null ||
		[ ! -e "$npm/playwright-core/package.json" ]; then
	echo "skip diff_in_a_browser: no chromium, no node," \
		"or no playwright-core in build/deps/npm (make deps)"
	exit 0
fi
node "$TOP/tests/browser/diff.mjs" "$chromium" "$npm/playwright-core" d.html shot.png
check a_picture_of_the_diff_is_taken [ -s shot.png ]
