#!/bin/bash
# Floods, each bounded in count and time (tests/programs/flood_linux.c): short-lived children,
# 100,000 threads, execs, and code that is generated again and again. The recorder's memory stays
# bounded, the history of another program stays whole, no sample is lost, and stacks beyond a
# process's share end in [more] with their weight.
. "$TOP/tests/support/cli.sh"
need_perf

"$RECORDER" collect --store f.db --freq 1999 --buffer-mb 4 --pre-sec 100 --max-cpu-percent 0 \
	/DelayAfterTriggerSec:0 2>log &
recorder=$!
wait_for 10 test -S f.db.ctl
"$BUILD/programs/burn" 90 >/dev/null & burn=$!
trap 'kill $burn 2>/dev/null' EXIT
for flood in 'forks 20000 2' 'threads 100000 2' 'crowd 100000 12' \
		'execs 20000 2' 'code 100000 4'; do
	# shellcheck disable=SC2086
	"$BUILD/programs/flood_linux" $flood >>made
done
cat made >&2
"$RECORDER" status --store f.db --json >status.json
jq -c '{rss_kb, ring_bytes, held_bytes, tables: [.tables[] | select(.table |
	test("frames|processes|threads"))]}' status.json >&2
"$RECORDER" snapshot --store f.db >/dev/null
cpu_s=$(awk -v hz="$(getconf CLK_TCK)" \
	'{ sub(/.*\) /, ""); print ($12 + $13) / hz }' /proc/$burn/stat)
wait_for 20 sh -c '"$RECORDER" list --store f.db --json | grep -q complete'
kill -INT $recorder
wait $recorder
"$RECORDER" show --store f.db --id 1 --json >show.json 2>>err
"$RECORDER" export --store f.db --id 1 -f >all.folded 2>>err
burnt_s=$(awk -v me="^burn [(]$burn[)]" '$0 ~ me { n += $NF } END { print n / 1999 }' all.folded)
jq -c '{samples, lost_by_reason, stack_quality, gap_reason}' show.json >&2
echo "burn: $cpu_s s of CPU time, $burnt_s s in samples" >&2

if ! awk '$2 < ($1 == "crowd" ? 5000 : 100) { bad = 1 } END { exit bad || NR != 5 }' made; then
	echo "skip flood_linux: the machine is too busy to be flooded: $(tr '\n' ' ' <made)"
	exit 0
fi
check each_flood_was_one test -s made
# 64 MB, plus room for the frames of everything else on a busy machine (94,000 were seen), and for
# threads that ended a moment ago (60,000 were seen, with 112 MB).
check its_memory_stays_bounded jq -e '(.rss_kb * 1024 - .ring_bytes) / 1048576 < 128' status.json
check no_sample_was_lost_to_a_queue_or_a_table \
	jq -e '.lost_by_reason.queue == 0 and .lost_by_reason.table == 0' \
	show.json
check the_history_of_all_the_time_is_there \
	jq -e '.gap_reason | startswith("recording had begun")' show.json
check another_program_lost_nothing awk -v cpu="$cpu_s" -v seen="$burnt_s" \
	'BEGIN { exit !(cpu > 1 && seen > 0.85 * cpu && seen < 1.15 * cpu) }'
check its_stacks_are_complete \
	awk '/^burn[ ;(]/ { n += $NF } /^burn[ ;(].*main.*burn_(alpha|beta)/ { whole += $NF }
	END { exit !(whole > 0.9 * n) }' all.folded
check what_is_too_much_ends_in_more grep -q '^flood_linux.*\[more\]' all.folded
check every_sample_keeps_its_weight sh -c '
	[ "$(awk "{ n += \$NF } END { print n }" all.folded)" = "$(jq .samples show.json)" ]'
