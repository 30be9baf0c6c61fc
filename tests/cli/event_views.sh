#!/bin/bash
# recorder events: filters by name, text, time and fields; columns, histogram, CSV and XML. Each is
# held against the JSON of all events, filtered by jq. Skipped in part if the traces are missing.
. "$TOP/tests/support/cli.sh"

trace=$TOP/../shared/data/etl/gcevents.etl.zip

events() { "$RECORDER" events --from "$trace" "$@" 2>err; }

# The times of events that jq selects are those that the options select.
same()
{
	local selection=$1

	shift
	jq -r "select($selection) | .t_ms" all.json >theirs
	events --json "$@" | jq -r .t_ms >ours
	[ -s theirs ] && [ -s ours ] && cmp theirs ours
}

# Each row of the histogram, by another program that knows the letters.
same_histogram()
{
	events --histogram --json >histogram.json
	python3 - <<'EOF'
import json
events = [json.loads(line) for line in open('all.json')]
t0, t1 = min(e['t_ms'] for e in events), max(e['t_ms'] for e in events)

def letter(n, most):
    share = n / most
    if not n:
        return '_'
    if share < 0.01:
        return 'o' if share >= 0.001 else '.'
    return '0123456789A'[int(share * 10)]

def row(wanted):
    buckets = [0] * 32
    for e in events:
        if wanted(e):
            buckets[min(31, int((e['t_ms'] - t0) / (t1 - t0) * 32))] += 1
    return ''.join(letter(n, max(buckets)) for n in buckets), sum(buckets)

rows = [json.loads(line) for line in open('histogram.json')]
for r in rows:
    all_of_them = r['name'] == '(all)'
    assert (r['when'], r['count']) == row(lambda e: all_of_them or e['name'] == r['name']), r
assert len(rows) == len({e['name'] for e in events}) + 1
EOF
}

# csv.reader and xml.etree are not ours; each event has the same fields there as in JSON.
same_fields()
{
	events --format csv >all.csv && events --format xml >all.xml && xmllint --noout all.xml &&
		python3 - <<'EOF'
import csv, json, xml.etree.ElementTree as tree
events = [json.loads(line) for line in open('all.json')]
rows = list(csv.DictReader(open('all.csv')))
tags = list(tree.parse('all.xml').getroot())
assert len(events) == len(rows) == len(tags) > 0
for e, r, t in zip(events, rows, tags):
    assert (e['name'], e['provider']) == (r['name'], r['provider'])
    assert (e['name'], e['provider']) == (t.get('EventName'), t.get('ProviderName'))
    assert abs(e['t_ms'] - float(r['ms'])) < 1e-3 and t.get('MSec') == r['ms']
    assert str(e['pid']) == r['pid'] == t.get('PID') and str(e['tid']) == r['tid']
    for name, value in e['fields'].items():
        text = t.get(name)
        if isinstance(value, int):
            assert int(text.replace(',', '')) == value, (name, text)
        elif str(value).startswith('0x') and text.startswith('0x'):
            assert int(text, 16) == int(value, 16), (name, text)
        elif isinstance(value, str):
            assert text == value, (name, text)
EOF
}

columns_are()
{
	events --format csv --name GC/CreateSegment --columns 'Type,Size' >columns.csv
	[ "$(head -n 1 columns.csv)" = ms,process,pid,tid,cpu,provider,name,Type,Size ] &&
		jq -r 'select(.name == "GC/CreateSegment") | "\(.fields.Type),\(.fields.Size)"' \
			all.json >theirs && tail -n +2 columns.csv | cut -d, -f 8,9 | cmp theirs -
}

the_rest_is_last()
{
	events --name GC/CreateSegment --columns 'Type,*' --rows 1 |
		grep -q 'GC/CreateSegment Type=3 Address=0x1b0f1000028 Size=0x1ffffd8 Clr'
}

same_process()
{
	"$RECORDER" events --id 1 --store net.db --name GC/Start --json 2>err |
		jq -r 'select(.process | test("^Te.t")) | .t_ms' >theirs
	"$RECORDER" events --id 1 --store net.db --name GC/Start --json --process '^Te.t' 2>err |
		jq -r .t_ms >ours
	[ "$(wc -l <ours)" -gt 100 ] && cmp theirs ours
}

# A recorder keeps one of the two GC/Start that the CLR writes, and no ManifestData.
sampled_as_in_the_trace()
{
	sed -n 's/.*;event!\([^; ]*\)[^;]* \([0-9]*\)$/\1 \2/p' event.folded |
		awk '{ n[$1] += $2 } END { for (name in n) print name, n[name] }' | sort |
		grep -v '^GC/Start ' >ours
	events --json | jq -r 'select(.stack_frames > 0) | .name' |
		grep -vE '^(PerfInfo/Sample|GC/Start|ManifestData)$' | sort | uniq -c |
		awk '{ print $2, $1 }' >theirs
	[ -s theirs ] && diff ours theirs
}

allocated_as_in_the_trace()
{
	"$RECORDER" export --store net.db --metric alloc -f 2>>err |
		awk '{ n += $NF } END { printf "%d\n", n }' >ours
	events --json --name '^GC/AllocationTick$' |
		jq -s 'map(select(.stack_frames > 0) | .fields |
			(.AllocationAmount64 // .AllocationAmount | tonumber)) | add' >theirs
	[ -s theirs ] && cmp theirs ours
}

# Nothing survived the last collection of these two programs: there are what they allocated since.
kept_as_in_the_trace()
{
	"$RECORDER" export --store net.db --metric heap-net -f 2>>err >net.folded
	sed -n 's/^\([^ ]*\) (.*;event!GC\/AllocationTick .* \([0-9]*\)$/\1 \2/p' net.folded |
		awk '{ n[$1] += $2 } END { for (name in n) print name, n[name] }' | sort >ours
	events --json --name '^GC/(Stop|AllocationTick)$' | jq -rs 'group_by(.process)[] |
		(map(select(.name == "GC/Stop").t_ms) | max) as $last |
		[.[0].process, (map(select(.t_ms > $last and .stack_frames > 0).fields |
			.AllocationAmount64 | tonumber) | add)] | join(" ")' | sort >theirs
	[ "$(wc -l <theirs)" = 2 ] && diff ours theirs
}

if [ -e "$trace" ]; then
	events --json >all.json
	check names_are_regular_expressions \
		same '.name | test("^GC/S|Method"; "i")' --name '^gc/s|Method'
	check and_may_have_their_provider \
		same '.name | test("^GC/Mark")' --name 'DotNETRuntime/GC/Mark'
	check a_text_is_part_of_the_line same '.fields.Reason == 1' --text ' Reason=1\b'
	check or_must_not_be same '.name | test("GC/") | not' --text '!GC/'
	check times_are_those_that_are_printed \
		same '.t_ms >= 11607.7 and .t_ms <= 11608.2' --start 11607.7 --end 11608.2
	check conditions_on_columns_select \
		same '.fields.Count != null and .fields.Count >= 5' --columns 'Count>=5,Reason'
	check all_of_them_must_hold same '.fields.Count == 8 and .fields.PauseMode == 1' \
		--columns 'Count=8,PauseMode=1'
	expect a_number_is_compared_with_a_number 2 \
		"the field 'Count' of GC/[A-Za-z]+ is a number, and '1KB' is none" \
		events --from "$trace" --columns 'Count>=1KB'
	expect a_field_that_no_event_has_is_named 3 "has a field 'Cuont'; without --columns" \
		events --from "$trace" --name GC/ --columns 'Cuont>=1'
	check columns_of_csv_are_fields columns_are
	check the_others_come_with_a_star the_rest_is_last
	check csv_and_xml_say_what_json_says same_fields
	check a_histogram_has_PerfViews_letters same_histogram
	check rows_end_it test "$(events --rows 3 | wc -l)" = 3

	# Stacks of events and of allocations: each event of the trace that has a stack is a sample.
	trace=$TOP/../shared/data/etl/net.4.5.2.x64.etl.zip
	"$RECORDER" collect --from "$trace" --store net.db 2>err
	"$RECORDER" export --store net.db --metric event --no-annotate -f -o event.folded 2>>err
	check a_process_may_be_a_regular_expression same_process
	check a_process_that_is_not_there_is_said sh -c '! "$RECORDER" events --id 1 \
		--store net.db --process Tes --max 1 2>err && grep -q "is of a process .Tes." err'
	check every_event_with_a_stack_is_a_sample sampled_as_in_the_trace
	check allocations_have_their_bytes allocated_as_in_the_trace
	check what_no_collection_found_dead_is_net kept_as_in_the_trace
	check PerfViews_views_are_metrics cmp net.folded <("$RECORDER" export --store net.db -f \
		--metric 'GC Heap Net Mem (Coarse Sampling) Stacks' 2>>err)
	check stacks_of_one_event_are_a_metric sh -c '"$RECORDER" report --store net.db \
		--metric Memory/HardFault 2>&1 | grep -q "153 of Memory/HardFault"'
	check as_event_with_its_name sh -c '"$RECORDER" report --store net.db \
		--metric event:Memory/HardFault 2>&1 | grep -q "153 of event:Memory"'
	check metrics_that_are_not_there_are_not_offered sh -c '! "$RECORDER" report \
		--store net.db --metric nope >err 2>&1 && ! grep -q off-cpu err &&
		grep -q "its metrics: cpu, alloc, event" err'
else
	echo "skip event_views: $trace is not there"
fi

export RECORDER_STORE=$TMP/store.db
check a_store_is_made "$BUILD/programs/store_fixture" store.db
expect an_incidents_events_are_xml_too 0 '^<Event MSec=' events --id 1 --format xml
check which_is_well_formed \
	sh -c '"$RECORDER" events --id 1 --format xml 2>/dev/null | xmllint --noout -'
expect a_wrong_expression_is_told 2 "'--name': the regular expression '\\('" \
	events --id 1 --name '('
expect so_is_an_empty_column 2 'between two commas there is no field' \
	events --id 1 --columns 'A,,B'
expect so_is_a_condition_without_value 2 'nothing to compare with' events --id 1 --columns 'A>'
expect so_is_an_unknown_format 2 'none of text, json, csv, xml' events --id 1 --format yaml
expect counts_are_no_xml 2 'counts are text or --json' events --id 1 --format xml --count
