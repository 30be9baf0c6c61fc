#!/bin/bash
# Exports of a store, read by the programs they are made for (speedscope and pprof-format from npm),
# and --all.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db XDG_STATE_HOME=$TMP/state HOME=$TMP
npm=$TOP/build/deps/npm

if ! "$BUILD/programs/store_fixture" s.db; then
	echo "not ok store_fixture: failed"
	exit 0
fi

expect export_all_writes_the_usual_set 0 'incident-1' export --id 1 --all all
for suffix in folded perfView.xml.zip speedscope.json pb.gz trace.json events.csv \
		counters.csv jsonl svg html; do
	check "export_all_writes_$suffix" [ -s "all/incident-1.$suffix" ]
done
expect export_all_does_not_overwrite 1 '--force' export --id 1 --all all
expect export_all_chooses_itself 2 'omit -o and --format' export --id 1 --all all -f
check export_all_leaves_no_temporary_file sh -c '! ls all | grep -q tmp'
expect export_of_another_stream_says_what_there_is 3 \
	'no samples of off-cpu: it has samples of --metric cpu$' \
	export --id 1 -f --metric off-cpu -o none.folded
check and_writes_no_empty_file [ ! -e none.folded ]
expect export_of_an_event_that_is_not_there 3 'no samples of gpu' export --id 1 -f --metric gpu

# The suffix asks for compression; the content is the same.
expect export_packs_by_suffix 0 '' export --id 1 -o all/packed.trace.json.gz
check export_packed_is_the_same sh -c \
	'gzip -dc all/packed.trace.json.gz | cmp - all/incident-1.trace.json'
rm all/packed.trace.json.gz

# One file per process; together they hold every sample.
mkdir each
expect export_of_each_process 0 'each/cpu-server-100.folded' \
	export --id 1 --per-process -o each/cpu.folded
check export_of_each_process_adds_up sh -c \
	"[ \$(cat each/*.folded | awk '{ n += \$NF } END { print n }') = 1000 ]"
check export_of_each_process_has_its_own sh -c "! grep -v '^batch (200);' each/cpu-batch-200.folded"
expect export_of_each_process_overwrites_nothing 1 '--force' \
	export --id 1 --per-process -o each/cpu.folded
rm each/cpu-server-100.folded
expect export_of_each_process_begins_nothing 1 'batch-200' \
	export --id 1 --per-process -o each/cpu.folded
check export_of_each_process_has_begun_nothing [ ! -e each/cpu-server-100.folded ]
expect export_of_each_process_wants_a_file 2 'give -o FILE' export --id 1 --per-process -f
expect export_of_each_process_of_nothing 3 'no file was written' \
	export --id 3 --per-process -o each/none.pb.gz

# A stand-in for stackcollapse.pl on DTrace's text: skip 3 header lines, read frames leaf first
# until a count, and drop what follows the last +. The result must equal the folded file without its
# threads and without frames that are not code.
sums() { awk '{ n = $NF; sub(/ [0-9]+$/, ""); sum[$0] += n } END {
	for (s in sum) print s, sum[s] }' | sort; }
"$RECORDER" export --id 1 --format dtrace | awk '
	NR <= 3 { next }
	/^ *[0-9]+$/ { print stack, $1; stack = ""; next }
	/^ *$/ { next }
	{
		sub(/^ */, ""); sub(/[+][^+]*$/, ""); sub(/`/, "!"); gsub(/;/, ":");
		sub(/^(process|walk)!/, "")
		stack = stack == "" ? $0 : $0 ";" stack
	}' | sums >collapsed
"$RECORDER" export --id 1 -f --no-annotate | sed 's/;[^;]*//' | sums >folded
check dtrace_text_collapses_to_the_folded_stacks cmp collapsed folded

if ! command -v node >/dev/null || [ ! -d "$npm/node_modules/speedscope" ]; then
	echo "skip export_readers: no node, or no speedscope in build/deps/npm (make deps)"
	exit 0
fi
"$RECORDER" export --id 1 --evented -o all/evented.speedscope.json
"$RECORDER" export --id 1 -o all/incident-1.perf.data.txt
node "$TOP/tests/support/export_readers.js" "$npm" 1000 10000000 \
	all/*.folded all/*.speedscope.json all/*.pb.gz all/*.perf.data.txt all/*.trace.json ||
	echo "not ok export_readers: exit $?"
