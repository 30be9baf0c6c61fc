#!/bin/bash
# The HTML report in a real browser; tests/browser/report.mjs lists what is tried.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db XDG_STATE_HOME=$TMP/state HOME=$TMP

. "$TOP/tests/support/browser.sh" report_in_a_browser

"$BUILD/programs/store_fixture" s.db || { echo "not ok store_fixture: failed"; exit 0; }
expect report_is_written 0 '' export --id 1 -o report.html
node "$TOP/tests/browser/report.mjs" "$chromium" "$playwright" report.html shot.png
node "$TOP/tests/browser/recursion.mjs" "$TOP/export/report/data.js"
check a_picture_is_taken [ -s shot.png ]
expect report_without_samples_is_written 0 'holds no samples' export --id 3 -o empty.html
unusual="$TOP/tests/browser/unusual.mjs"
node "$unusual" "$chromium" "$playwright" empty.html a_report_without_samples_is_usable 0
"$BUILD/programs/store_streams" hostile.db >hostile.log
expect report_of_hostile_names_is_written 0 '' export --store hostile.db --id 1 -o hostile.html
node "$unusual" "$chromium" "$playwright" hostile.html hostile_names_are_text 81 \
	'<script>alert(1)</script>'
check a_page_of_a_million_events_is_written "$BUILD/programs/large_page" large.html
node "$TOP/tests/browser/events.mjs" "$chromium" "$playwright" large.html
trace=$TOP/../shared/data/etl/net.4.5.2.x64.etl.zip
if [ -e "$trace" ]; then
	"$RECORDER" collect --from "$trace" --store net.db 2>log
	expect a_page_of_a_windows_trace_is_written 0 '' export 1 --store net.db -o net.html
	node "$TOP/tests/browser/metrics.mjs" "$chromium" "$playwright" net.html
fi
