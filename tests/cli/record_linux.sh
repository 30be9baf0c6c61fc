#!/bin/bash
# Live recordings of this machine, compared with a program whose shares are known.
. "$TOP/tests/support/cli.sh"
need_perf

# ---- a counter trigger on a known load -----------------------------------------------------------

"$BUILD/programs/burn" 40 >/dev/null & burn=$!
trap 'kill $burn 2>/dev/null' EXIT
timeout 60 "$RECORDER" collect --store s.db --freq 199 --max-cpu-percent 0 \
	--pre-sec 10 /MinSecForTrigger:11 \
	/DelayAfterTriggerSec:0 "/StopOnPerfCounter:Process:% Processor Time:burn>2" 2>log
check collect_ends_with_0_after_its_incident test $? -eq 0
kill $burn

"$RECORDER" show --store s.db --id 1 --json >show.json 2>err
"$RECORDER" export --store s.db --id 1 --process burn -f >burn.folded 2>>err
samples=$(jq .samples show.json)

awk '
	{ n = $NF; total += n }
	/!burn_alpha/ { alpha += n }
	/!burn_beta/  { beta += n }
	/!main[; ]/   { main += n }
	/!\?|\?!/     { unnamed += n }
	END {
		printf "total=%d alpha=%.2f beta=%.2f main=%.2f unnamed=%.2f\n",
			total, 100 * alpha / total, 100 * beta / total, 100 * main / total,
			100 * unnamed / total
	}' burn.folded >shares
. ./shares
cat shares >&2
# 1,990 when it has a CPU of its own; other load on this machine may take most of it.
check ten_seconds_at_199_hz_give_no_more_than_1990_samples \
	awk -v n="$total" 'BEGIN { exit !(n > 80 && n < 1990 * 1.02) }'
# Four standard deviations of a share of that many samples: 4 % of 1,990.
shares_are() # ALPHA BETA
{
	awk -v a="$alpha" -v b="$beta" -v n="$total" -v wa="$1" -v wb="$2" 'BEGIN {
		off = 4 * sqrt(1990 / (n < 1990 ? n : 1990))
		exit !(a >= wa - off && a <= wa + off && b >= wb - off && b <= wb + off) }'
}
check burn_alpha_has_75_and_beta_25_percent shares_are 75 25
check its_stacks_reach_main awk -v p="$main" 'BEGIN { exit !(p >= 99) }'
if ls /usr/lib/debug/.build-id >/dev/null 2>&1; then
	check all_its_names_are_resolved test "$(grep -cE '!\?|\?!' burn.folded)" -eq 0
else
	echo "skip all_its_names_are_resolved: what calls main in libc has a name in libc6-dbg only"
fi
check nothing_was_lost jq -e '.lost == 0' show.json
"$RECORDER" show --store s.db --id 1 --losses --json 2>>err | jq -s '
	(map(.expected) | add) as $e | (map(.unexplained) | add) as $u | $u / $e * 100' >unexplained
check what_is_expected_is_recorded_but_for_15_percent \
	awk '{ exit !($1 > -15 && $1 < 15) }' unexplained
check the_window_is_what_was_asked_for jq -e '.pre_s > 9.9 and .pre_s < 10.1' show.json

# ---- every format agrees -------------------------------------------------------------------------

"$RECORDER" export --store s.db --id 1 -f >all.folded 2>>err
"$RECORDER" export --store s.db --id 1 --format perfview-xml -o all.perfView.xml 2>>err
"$RECORDER" export --store s.db --id 1 -o all.perfView.xml.zip 2>>err
check folded_has_as_many_samples_as_show \
	test "$(awk '{ n += $NF } END { print n }' all.folded)" = "$samples"
check perfview_xml_has_as_many_samples_as_show \
	test "$(grep -c '<Sample ID=' all.perfView.xml)" = "$samples"
check perfview_xml_is_well_formed xmllint --noout all.perfView.xml
check perfview_zip_holds_the_same_xml \
	sh -c 'unzip -p all.perfView.xml.zip all.perfView.xml | cmp - all.perfView.xml'
check the_store_passes_an_integrity_check \
	test "$(sqlite3 s.db 'PRAGMA integrity_check')" = ok
check the_store_is_private test "$(stat -c %a s.db)" = 600

# ---- Ctrl-C, MaxCollectSec, snapshot, status, a second recorder ----------------------------------

"$RECORDER" collect --store run.db --pre-sec 60 2>run.log & recorder=$!
wait_for 10 "$RECORDER" status --store run.db
sleep 1
check status_says_recording \
	sh -c '"$RECORDER" status --store run.db --json | jq -e ".state == \"recording\""'
check status_names_the_limits_that_have_no_table sh -c \
	'"$RECORDER" status --store run.db --json | jq -e "
	.limits.incidents_per_rule_and_hour == 10 and .limits.incidents_per_rule_and_day == 100 and
	.limits.open_starts_per_rule == 65536 and .limits.keep_days == 30 and
	.budget.max_cpu_pct >= 1"'
if [ "$(id -u)" = 0 ]; then
	# "writer 10 idle": name, nice value, I/O class of each thread.
	for task in /proc/$recorder/task/*; do
		echo "$(cat "$task/comm") $(sed 's/.*) //' "$task/stat" |
			cut -d' ' -f17) $(ionice -p "${task##*/}")"
	done >threads
	check what_drains_goes_first_and_what_writes_last sh -c 'grep -q "^perf -10 " threads &&
		grep -q "^merge -10 " threads && grep -q "^writer 10 idle" threads &&
		grep -q "^symbols 10 idle" threads'
else
	echo "skip what_drains_goes_first_and_what_writes_last: only root may raise a priority"
fi
check status_says_what_the_ring_holds sh -c '"$RECORDER" status --store run.db --json | jq -e "
	.history_s > 0 and .history_samples >= 0 and .bytes_per_sample >= 0 and
	.evicted_samples == 0 and .evicted_segments == 0"'
check status_counts_the_events_of_each_source sh -c \
	'"$RECORDER" status --store run.db --json | jq -e "
	.sources | map(select(.name == \"perf\" and .events >= 0 and .lost >= 0)) | length == 1"'
"$RECORDER" collect --store run.db 2>second.log
rc=$?
check a_second_recorder_is_refused test $rc -eq 1
check and_is_told_who_holds_the_store grep -q "$recorder" second.log
"$RECORDER" snapshot --store run.db --reason "by hand" >/dev/null 2>>err
check snapshot_is_accepted test $? -eq 0
kill -INT $recorder
wait $recorder
check ctrl_c_ends_with_0 test $? -eq 0
"$RECORDER" list --store run.db --json >run.list 2>>err
check a_snapshot_and_a_last_incident_are_stored test "$(wc -l <run.list)" -eq 2
check the_snapshot_keeps_its_reason grep -q '"by hand"' run.list
check show_says_what_the_ring_held \
	sh -c '"$RECORDER" show --store run.db --id 1 --json |
	jq -e ".ring.held_s > 0 and .ring.bytes > 0"'
check the_last_one_says_who_stopped_it grep -q 'Ctrl-C or a signal' run.list
check status_without_a_recorder_is_3 expect_exit 3 "$RECORDER" status --store run.db

"$RECORDER" collect --store max.db /MaxCollectSec:2 2>max.log
check max_collect_sec_ends_with_0 test $? -eq 0
check and_its_incident_says_so \
	sh -c '"$RECORDER" list --store max.db --json 2>/dev/null | grep -q MaxCollectSec'
