#!/bin/bash
# A leak hunt over a day: growth by stack out of a history of 25 hours (tests/programs/
# history_fixture.c), in which "leaky" keeps 7 pages in seventy and 3 in thirty every ten seconds,
# and churn's 20 go after five minutes.
# time limit: 240
. "$TOP/tests/support/cli.sh"

"$BUILD/programs/history_fixture" day.db 25 100 leak >since || exit 1
diff() { "$RECORDER" diff --store day.db --metric rss-net "$@"; }
# kb FUNCTION
kb() { jq -rs "map(select(.name? and (.name | endswith(\"!$1\"))).self_kb) | add // 0 | round" \
	grown; }
within() { awk -v a="$1" -v b="$2" -v c="$3" 'BEGIN { exit !(a >= b && a <= c) }'; }

diff --from -24h --json >grown 2>log
# 8,640 rounds, less what began before the window and what has not come by now.
check who_leaks_most_is_whole within "$(kb seventy)" 241000 241920
check and_the_other within "$(kb thirty)" 103300 103680
check what_comes_and_goes_is_its_last_minutes within "$(kb churn)" 2240 2480
check nothing_is_left_out [ "$(jq -rs 'map(select(.self_kb? > 0)) | length' grown)" = 3 ]
diff --last 6h --json >grown 2>log
check a_part_of_it_is_a_quarter within "$(kb seventy)" 60300 60480
expect another_metric_has_no_earlier_days 2 '^recorder: --against compares CPU time only' \
	diff --store day.db --metric rss-net --last 10 --against 'before*1'
expect as_a_file 0 '^recorder: the history' diff --store day.db --metric rss-net \
	--last 1h --format folded -o net.folded
check it_has_the_same_stacks grep -q 'seventy' net.folded
