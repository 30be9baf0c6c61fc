#!/bin/bash
# report, export and diff of several incidents: which ones, what each has of the whole, and that
# their sum is that of each alone.
# time limit: 120
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db XDG_STATE_HOME=$TMP/state HOME=$TMP COLUMNS=150

# s.db: 1,000 and 470 samples of 10 ms in incidents 1 and 2, none in 3, 500 in 4; a quarter of
# server in burn_beta, in t.db half of it.
"$BUILD/programs/store_fixture" s.db && "$BUILD/programs/store_fixture" t.db 2 ||
	{ echo "not ok store_fixture: failed"; exit 0; }

expect several_are_shown_as_one 0 '^2 incidents as one.*: 1, 2$' report 1-2
check several_have_the_sum grep -q '1,470 samples, 14.7 s of CPU time' out
check each_has_its_share grep -qE ' 10000.0 +68.0 % .* 9_  Incident 1$' out
check each_has_its_processes grep -qE ' 3760.0 +25.6 % .* _9   Process server \(100\)$' out
check which_has_a_letter_for_each grep -qE ' 8820.0 +60.0 % .* 63  server!burn_alpha$' out
expect a_tree_has_a_top_node_for_each 0 '' report --id 1,2 --tree
check a_tree_has_the_first grep -q ' 9_  Incident 1$' out
check a_tree_has_the_second grep -q ' _9  Incident 2$' out
expect all_is_all 0 '^4 incidents as one' report --all
expect a_missing_one_is_noted 0 'incident 99 is not in .*: the others are taken' report 2,99,1
expect a_rule_chooses_by_its_text 0 '^1 incidents as one.*: 3$' report --rule maxcollect
expect since_chooses_by_time 3 'no incident matches' report --all --since 1d
expect a_process_that_one_lacks 0 '1 of 4 incidents have no match' report --all -p batch
expect a_process_that_none_has 3 "none of 2 incidents matches: .*'nobody'" report 1-2 -p nobody
expect stores_are_named 0 ': 1 of s.db, 2 of s.db, 1 of t.db, 2 of t.db$' \
	report 1-2 --store s.db --store t.db
check stores_add_up grep -q '2,940 samples, 29.4 s of CPU time' out
expect only_report_and_export_take_stores 2 'only report, export and show --group-id take several' \
	list --store s.db --store t.db
expect show_takes_one 2 'show takes one incident at a time' show 1-2
expect a_range_has_a_limit 2 'more than 4096 incidents' report 1-99999
expect a_range_goes_up 2 "'9-3' is not the number" report 9-3

cp s.db remarks.db
expect one_of_them_has_a_remark 0 '' note --store remarks.db --id 2 'after the deployment'
expect several_have_the_remarks_of_each 0 '^Remark: Incident 2: .*Z after the deployment$' \
	report 1-2 --store remarks.db
expect a_diff_has_them_too 0 '^Test remarks: .*Z after the deployment$' \
	diff 1 2 --store remarks.db

# ---- export --------------------------------------------------------------------------------------

expect export_of_several 0 '' export 1,2 -f
sort out >joined
for i in 1 2; do "$RECORDER" export $i -f | sed "s/^/Incident $i;/"; done | sort >each
check export_of_several_is_that_of_each cmp joined each
for format in perfView.xml perfView.xml.zip perfView.json pb.gz svg speedscope.json; do
	expect "several_in_$format" 0 '' export 1,2 -o "x.$format"
done
if command -v xmllint >/dev/null; then
	check several_in_svg_are_well_formed xmllint --noout x.svg
	check several_in_perfview_add_up sh -c \
		"[ \$(xmllint --xpath 'count(//Sample)' x.perfView.xml) = 1470 ]"
fi
for format in perfView.xml perfView.json; do
	"$RECORDER" collect --from x.$format --store again.db 2>err
	"$RECORDER" report --store again.db --tree >out 2>err
	check "read_again_${format}_has_its_processes" grep -q ' Process server (100)$' out
	check "with_their_incidents_below_$format" grep -q '   Incident 1$' out
done
check several_in_pprof_are_labelled sh -c 'gzip -dc x.pb.gz | grep -aq "Incident 2"'
expect a_format_of_one_says_so 2 'jsonl holds one incident; several as one are written as folded' \
	export 1,2 --format jsonl
expect several_are_one_file 2 'omit --per-process' export 1,2 -f --per-process -o y.folded

# ---- diff ----------------------------------------------------------------------------------------

sets="diff --store t.db --base-store s.db --base 1,2 --test 1,2"
expect sets_are_compared_by_their_means 0 '' $sets
check a_set_names_what_grew grep -qE ' 23.5 .* 11.8 .* function +server!burn_beta$' out
check a_set_does_not_name_what_did_not sh -c "! grep -qE 'server!main|batch|program' out"
expect a_set_against_itself 0 'Nothing does' diff 1,2 1-2
expect sets_have_json 0 '' $sets --json
check sets_have_the_spread grep -q '"now_spread_percent":' out
expect one_incident_alone_is_said_to_have_no_spread 0 'one incident alone has none' \
	diff --store t.db --base-store s.db --base 1 --test 1,2
check and_has_no_column_of_it [ "$(grep -o SPREAD out | wc -l)" = 1 ]
expect sets_are_a_table 2 'sets of incidents are compared by CPU time' $sets -o x.html

# Of 1000 samples, 10 s each, without pids: B has 200 in incidents 1 to 5 and 360 in 6 to 10; C has
# 100, but 600 in incident 3, and 700 in incident 14 of 11 to 15, where B is as it was.
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15; do
	b=200 c=100
	case $i in 3) c=600 ;; 14) c=700 ;; 6|7|8|9|10) b=360 ;; esac
	printf "shop;A %d\\nshop;B %d\\nshop;C %d\\n" \
		$((1000 - b - c + i % 3)) $((b - i % 3)) $c >n.folded
	"$RECORDER" collect --from n.folded --store noisy.db 2>err
done
expect what_changed_is_named_beside_a_noisy_incident 0 \
	'^ +36\.0 +[0-9.]+ +19\.9 +[0-9.]+ +function +B$' \
	diff --base 1-5 --test 6-10 --store noisy.db
check and_the_noise_is_not sh -c "! grep -qE ' C\$' out"
expect one_noisy_incident_is_no_change 0 'Nothing does' \
	diff --base 1,2,4,5 --test 11-15 --store noisy.db
expect processes_without_pids_are_not_idle 0 ' 1,000 samples, 10\.0 s of CPU time' \
	report 1 --no-idle --store noisy.db

# ---- sets of files -------------------------------------------------------------------------------

mkdir -p set/deep
printf 'shop;t;main;work 3\n' >set/one.folded
printf 'shop;t;main;work 1\nother;t;main 5\n' >set/deep/two.folded
cat >set/shop.scenarioSet.xml <<'END'
<?xml version="1.0"?>
<ScenarioSet>
  <Scenarios files="*.folded" namePattern="Shop &amp; co [$1]"/>
  <Scenarios files="deep/two.*" name="second" process="shop"/>
</ScenarioSet>
END
expect a_set_of_scenarios_is_read 0 'incident 1 stored: second;' \
	collect --from set/shop.scenarioSet.xml --store set.db
expect each_has_its_name 0 'WHICH' report --all --store set.db
check the_first_line_matches grep -qE ' 30.0 +75.0 % .*Incident 2: Shop & co \[one\]$' out
check the_last_line_wins_and_keeps_its_process grep -qE ' 10.0 +25.0 % .*Incident 1: second$' out
"$RECORDER" export 1 --store s.db -o set/a.perfView.xml
"$RECORDER" export 2 --store s.db -o set/deep/b.perfView.xml.zip
expect a_directory_is_read 0 'reading set/deep/b.perfView.xml.zip' \
	collect --from set --store dir.db
expect each_of_its_traces_is_there 0 '^4 incidents as one' report --all --store dir.db
check with_all_that_they_have grep -qE '1,479 samples, 14.8 s' out
expect a_set_has_a_page 0 '' export --id 1-2 --store s.db -o set.html
check it_says_whose_it_is grep -q '>Several incidents on ' set.html
check and_names_them grep -q 'Incident 1, Incident 2' set.html
echo '<ScenarioSet><Scenarios name="x"/></ScenarioSet>' >set/bad.xml
expect a_scenario_without_files 1 'bad.xml: a <Scenarios> has no files=' \
	collect --from set/bad.xml --store bad.db
echo '<ScenarioSet><Scenarios files="*.nosuch"/></ScenarioSet>' >set/none.xml
expect a_scenario_that_matches_nothing 3 'none of its [0-9]+ files is one of the set' \
	collect --from set/none.xml --store bad.db
echo '<ScenarioConfig><Scenarios files="*.etl" start="5"/></ScenarioConfig>' >set/none.xml
expect a_part_of_a_scenario 1 'omit them, and give' collect --from set/none.xml --store bad.db
