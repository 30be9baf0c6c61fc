#!/bin/bash
# Exports in the real speedscope in a real browser; tests/browser/speedscope.mjs lists what is
# compared.
set -u
. "$TOP/tests/support/cli.sh"
. "$TOP/tests/support/browser.sh" speedscope_in_a_browser
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db XDG_STATE_HOME=$TMP/state HOME=$TMP

if [ ! -d "$npm/speedscope/dist/release" ]; then
	echo "skip speedscope_in_a_browser: no speedscope in build/deps/npm (make deps)"
	exit 0
fi
"$BUILD/programs/store_fixture" s.db || { echo "not ok store_fixture: failed"; exit 0; }
expect folded_for_speedscope 0 '' export --id 1 --no-annotate -o a.folded
for file in a.speedscope.json a.pb.gz a.perf.data.txt; do
	expect "${file}_for_speedscope" 0 '' export --id 1 -o $file
done
node "$TOP/tests/browser/speedscope.mjs" "$chromium" "$playwright" \
	"$npm/speedscope/dist/release" 10000000 \
	a.folded a.folded a.speedscope.json a.pb.gz a.perf.data.txt
