#!/bin/bash
# A process that replaces 8,000 executable mappings again and again (tests/programs/flood_linux.c):
# the recorder names it and skips its changes, at a few microseconds of CPU time each (9 before the
# list of mappings was a tree and had a budget), and another program keeps its samples.
# alone: it compares CPU times
. "$TOP/tests/support/cli.sh"
need_perf

cpu_of()
{
	awk -v hz="$(getconf CLK_TCK)" \
		'{ sub(/.*\) /, ""); print ($12 + $13) / hz }' "/proc/$1/stat"
}
"$RECORDER" collect --store m.db --freq 99 --pre-sec 60 --max-cpu-percent 0 \
	/DelayAfterTriggerSec:0 2>log &
recorder=$!
wait_for 20 test -S m.db.ctl
"$BUILD/programs/burn" 60 >/dev/null & burn=$!
trap 'kill $burn 2>/dev/null' EXIT
sleep 2
before_s=$(cpu_of $recorder)
"$BUILD/programs/flood_linux" maps 8000 8 >made
flood_s=$(awk "BEGIN { print $(cpu_of $recorder) - $before_s }")
replaced=$(awk '{ print $2 }' made)
"$RECORDER" status --store m.db >status.txt
burn_s=$(cpu_of $burn)
"$RECORDER" snapshot --store m.db >/dev/null
kill -INT $recorder
wait $recorder
"$RECORDER" show --store m.db --id 1 --json >show.json 2>>err
"$RECORDER" export --store m.db --id 1 -f >all.folded 2>>err
seen_s=$(awk -v me="^burn [(]$burn[)]" '$0 ~ me { n += $NF } END { print n / 99 }' all.folded)
jq -c .lost_by_reason show.json >&2
echo "$replaced replaced: recorder $flood_s s; burn $burn_s s, $seen_s s in samples" >&2
cat log >&2

if [ "$replaced" -lt 50000 ]; then
	echo "skip flood_maps_linux: the machine is too busy to be flooded: $replaced changes"
	exit 0
fi
check a_change_of_a_mapping_costs_little \
	awk -v n="$replaced" -v s="$flood_s" 'BEGIN { exit !(s < 0.2 + n * 5e-6) }'
check its_process_is_named_once \
	sh -c '[ "$(grep -c "flood_linux (.*changes its executable mappings" log)" = 1 ]'
check its_changes_are_counted grep -q "changes of executable mappings were skipped" log status.txt
check no_sample_was_lost jq -e '.lost_by_reason | .kernel == 0 and .queue == 0 and .table == 0' \
	show.json
check another_program_keeps_its_samples awk -v cpu="$burn_s" -v seen="$seen_s" \
	'BEGIN { exit !(cpu > 1 && seen > 0.85 * cpu && seen < 1.15 * cpu) }'
