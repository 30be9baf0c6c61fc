#!/bin/bash
# Exports of a store, read by what they are for: speedscope and pprof-format from npm. And --all.
set -u
. "$TOP/tests/support/expect.sh"
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db XDG_STATE_HOME=$TMP/state HOME=$TMP
npm=$TOP/build/deps/npm

if ! "$BUILD/programs/store_fixture" s.db; then
	echo "not ok store_fixture: failed"
	exit 0
fi

mkdir all
expect export_all_writes_the_usual_set 0 'incident-1' export --id 1 --all all
for suffix in folded perfView.xml.zip speedscope.json pb.gz trace.json events.csv counters.csv jsonl svg html; do
	verify "export_all_writes_$suffix" [ -s "all/incident-1.$suffix" ]
done
expect export_all_does_not_overwrite 1 '--force' export --id 1 --all all
expect export_all_into_a_directory_that_is_missing 1 'no/such' export --id 1 --all no/such
expect export_all_chooses_itself 2 'leave -o and --format away' export --id 1 --all all -f
verify export_all_leaves_no_temporary_file sh -c '! ls all | grep -q tmp'
expect export_of_another_stream_says_what_there_is 0 'see --metric' export --id 1 -f --metric off-cpu
expect export_of_an_unknown_stream 2 'cpu, off-cpu, alloc, event' export --id 1 -f --metric gpu
if [ -w /dev/full ]; then
	"$RECORDER" export --id 1 --format pprof >/dev/full 2>err
	verify export_to_a_full_disk_fails [ $? -eq 1 ]
fi

# An incident without samples is a file that readers take.
for format in livestacks dtrace perf-script speedscope pprof trace; do
	expect "export_of_nothing_as_$format" 0 'holds no samples' export --id 3 --format $format -o "empty.$format"
done
if command -v jq >/dev/null; then
	verify nothing_is_valid_json jq -e .traceEvents empty.trace
	verify nothing_is_a_speedscope_file jq -e '.profiles == []' empty.speedscope
fi

if ! command -v node >/dev/null || [ ! -d "$npm/node_modules/speedscope" ]; then
	echo "skip export_readers: no node, or no speedscope in build/deps/npm (make deps)"
	exit 0
fi
"$RECORDER" export --id 1 --evented -o all/evented.speedscope.json
"$RECORDER" export --id 1 -o all/incident-1.perf.data.txt
node "$TOP/tests/support/export_readers.js" "$npm" 1000 10000000 \
	all/*.folded all/*.speedscope.json all/*.pb.gz all/*.perf.data.txt all/*.trace.json ||
	echo "not ok export_readers: exit $?"
