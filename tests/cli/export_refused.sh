#!/bin/bash
# Errors of an export in every format: unknown names, missing folders, full disks, nothing to write.
set -u
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db XDG_STATE_HOME=$TMP/state HOME=$TMP
formats='folded livestacks dtrace perf-script perfview-xml perfview-xml-zip perfview-simple
	perfview-json speedscope pprof trace events-csv counters-csv jsonl sqlite-flat svg html'

"$BUILD/programs/store_fixture" s.db || { echo "not ok store_fixture: failed"; exit 0; }

# ---- names and places ----------------------------------------------------------------------------

expect an_unknown_format_is_told_which_there_are 2 \
	'unknown format nope; --format is one of: folded' \
	export --id 1 --format nope
for format in $formats; do
	grep -q "$format" err || echo "not ok the_list_has_$format: $(cat err)"
done
expect an_unknown_suffix_is_told_which_there_are 2 'no format has the suffix of a\.nope.*html' \
	export --id 1 -o a.nope
expect a_folder_that_is_missing_is_named 1 'there is no directory no/such/; make it first' \
	export --id 1 -o no/such/a.svg
expect a_folder_that_cannot_be_made_is_named_for_all 1 's\.db' export --id 1 --all s.db/such
mkdir folder
expect a_folder_is_no_file 2 'folder is a directory; name a file in it' \
	export --id 1 --format folded -o folder --force
check nothing_was_left_of_these sh -c '! ls -A . folder | grep -E "tmp|nope|svg"'

# ---- patterns ------------------------------------------------------------------------------------

expect a_pattern_that_does_not_parse_is_marked 2 "pattern '\{%!' at column 1 is wrong" \
	report --id 1 --group '{%!->x'
expect a_later_pattern_is_marked 2 "pattern 'b\}' at column 3 is wrong" report --id 1 --fold 'a;b}'
expect a_pattern_of_inc_is_marked 2 "pattern '\}\{' at column 1 is wrong" report --id 1 --inc '}{'

expect a_group_that_matches_nothing_names_the_presets 0 \
	"--group 'nosuch' matches no frame of incident 1; presets are module, .*just-my-code" \
	report --id 1 --group nosuch
expect so_does_one_in_brackets 0 "near is 'module'" report --id 1 --group '[modul]'
expect no_grouping_is_meant_so 0 '' report --id 1 --group '[no grouping]'
expect a_preset_that_matches_says_nothing 0 '' report --id 1 --group module

# ---- a full disk ---------------------------------------------------------------------------------

if [ -w /dev/full ]; then
	for format in $formats; do
		"$RECORDER" export --id 1 --format "$format" >/dev/full 2>err </dev/null
		code=$?
		check "a_full_disk_is_an_error_of_$format" [ $code = 1 ]
	done
	check it_is_said_in_one_line [ "$(wc -l <err)" = 1 ]
fi

# fill KB: on a file system of this size, an export that does not fit leaves no file, and an older
# file stays.
fill()
{
	local kb=$1 format code
	mkdir -p small && mount -t tmpfs -o size=64k tmpfs small || return 77
	echo kept >small/old
	head -c $((60 - kb))K /dev/zero >small/filler
	for format in $formats; do
		"$RECORDER" export --id 1 --format "$format" -o small/new 2>err </dev/null
		code=$?
		if [ "$(stat -c %s "full.$format")" -gt $((kb * 1024)) ]; then
			grep -q 'No space left' err && [ $code = 1 ] ||
				{ echo "$format: exit $code: $(cat err)"; return 1; }
			[ "$(ls small)" = $'filler\nold' ] ||
				{ echo "$format left $(ls small)"; return 1; }
			"$RECORDER" export --id 1 --format "$format" \
				-o small/old --force 2>err </dev/null
			[ "$(cat small/old)" = kept ] ||
				{ echo "$format spoiled what was there"; return 1; }
		else
			cmp "full.$format" small/new ||
				{ echo "$format: exit $code: $(cat err)"; return 1; }
			rm small/new
		fi
	done
}
for format in $formats; do
	"$RECORDER" export --id 1 --format "$format" -o "full.$format" 2>err </dev/null ||
		echo "not ok export_$format: $(cat err)"
done
export -f fill
export formats
for kb in 0 4 20; do
	unshare -m bash -c "fill $kb" >fill.log 2>&1
	case $? in
	0)  echo "ok a_disk_with_${kb}_kb_left_gets_no_half_file_of_any_format" ;;
	77) echo "skip a_full_disk_of_$kb: no right to mount a small file system" ;;
	*)  grep -q 'unshare failed' fill.log &&
		echo "skip a_full_disk_of_$kb: no right to mount a small file system" ||
		echo "not ok a_full_disk_of_$kb: $(tail -n 1 fill.log)" ;;
	esac
done
(ulimit -f 20; "$RECORDER" export --id 1 --format html -o limited.html) 2>err
code=$?
check a_limit_on_files_is_an_error_not_the_end sh -c \
	"[ $code = 1 ] && [ ! -e limited.html ] && [ ! -e limited.html.tmp ]"

# ---- an incident without samples -----------------------------------------------------------------

for format in $formats; do
	expect "nothing_as_$format" 0 \
		'incident 3 holds no samples: no sample was taken: the machine was idle' \
		export --id 3 --format "$format" -o "empty.$format"
done
expect nothing_that_was_asked_for_by_name_is_not_found 3 \
	'holds no samples of cpu: no sample was taken: the machine' \
	export --id 3 --metric cpu -o empty.named.svg
for format in folded livestacks perf-script; do
	check "nothing_as_${format}_is_an_empty_file" [ "$(stat -c %s "empty.$format")" = 0 ]
done
check nothing_as_dtrace_is_its_header [ "$(wc -l <empty.dtrace)" = 3 ]
for format in perfview-xml perfview-simple svg; do
	check "nothing_as_${format}_is_valid_xml" xmllint --noout "empty.$format"
done
check nothing_as_a_zip_is_an_archive unzip -tqq empty.perfview-xml-zip
check nothing_as_perfview_json_has_no_sample jq -e '.StackSource.Samples == []' empty.perfview-json
check nothing_as_speedscope_has_no_profile jq -e '.profiles == []' empty.speedscope
check nothing_as_pprof_is_a_whole_gzip gzip -t <empty.pprof
check nothing_as_a_trace_has_no_slice \
	jq -e '[.traceEvents[] | select(.ph == "X")] == []' empty.trace
check nothing_as_jsonl_is_the_incident \
	jq -es '[.[] | select(.type == "sample")] == [] and .[0].id == 3' empty.jsonl
check nothing_as_events_is_the_line_of_columns \
	grep -q '^time_utc,t_ms,provider,event,kind' empty.events-csv
check nothing_as_counters_is_the_line_of_columns grep -q '^time_utc,t_ms,counter' empty.counters-csv
check nothing_as_a_database_has_no_row \
	[ "$(sqlite3 empty.sqlite-flat 'SELECT count(*) FROM sample')" = 0 ]
check nothing_as_a_report_is_a_whole_page sh -c 'tail -n 1 empty.html | grep -q "</html>"'
