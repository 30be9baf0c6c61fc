#!/bin/bash
# --max-rss-mb: the buffer shrinks to fit the limit, a flood of table entries does not exceed it for
# long, and a limit that cannot be kept is refused.
. "$TOP/tests/support/cli.sh"
need_perf

resident_mb() { awk '/^VmRSS/ { printf "%.0f\n", $2 / 1024 }' "/proc/$recorder/status"; }
below() { [ "$(resident_mb)" -le 56 ]; }

"$RECORDER" collect --store m.db --freq 1999 --max-rss-mb 56 --max-cpu-percent 0 2>log & recorder=$!
wait_for 10 test -S m.db.ctl
for flood in 'code 100000 2' 'threads 100000 2' 'forks 20000 2'; do
	# shellcheck disable=SC2086
	nice "$BUILD/programs/flood_linux" $flood
	echo "$flood: $(resident_mb) MB resident"
done >&2
wait_for 30 below && touch got_below
echo "$(resident_mb) MB resident, $(awk '/^VmHWM/ {
	printf "%.0f\n", $2 / 1024 }' "/proc/$recorder/status") at most" >&2
check what_is_resident_comes_below_the_limit test -e got_below
"$RECORDER" status --store m.db --json >status.json
jq -c '[.budget.max_rss_mb, .ring_max_bytes, (.tables[] | select(.table |
	test("unwind|symbol cache bytes$")))]' status.json >&2
check the_buffer_is_what_fits \
	jq -e '.budget.max_rss_mb == 56 and .ring_max_bytes <= 2.5 * 1048576' status.json
check it_says_so grep -q 'max-rss-mb 56 leaves 2.5 MB for the buffer, not --buffer-mb 64' log
kill -INT $recorder
wait $recorder
check what_was_recorded_is_stored grep -q 'incident 1 stored' log
check a_limit_that_cannot_be_kept_is_refused \
	expect_exit 2 "$RECORDER" collect --store n.db --max-rss-mb 55
check with_what_could grep -q 'give it 56 or more' expect.out
check and_so_does_check expect_exit 2 "$RECORDER" check --store n.db --max-rss-mb 55
