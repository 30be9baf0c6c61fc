#!/bin/bash
# The Windows program under Wine, on a store that Linux wrote: the same output, byte for byte.
# time limit: 300
. "$TOP/tests/support/cli.sh"

need_windows_program windows
export XDG_STATE_HOME=$TMP/state HOME=$TMP

if ! "$BUILD/programs/store_fixture" s.db; then
	echo "not ok store_fixture: failed"
	exit 0
fi

# same NAME ARG...: both programs print the same and end with the same code.
same()
{
	local name=$1 linux windows
	shift
	"$RECORDER" "$@" >linux.out 2>linux.err </dev/null
	linux=$?
	$WINE_RUN "$RECORDER_EXE" "$@" >windows.out 2>windows.err </dev/null
	windows=$?
	if [ $linux != $windows ]; then
		echo "not ok $name: exit code $windows, on Linux $linux: $(head -c 300 windows.err)"
	elif ! cmp linux.out windows.out >cmp.log 2>&1; then
		echo "not ok $name: $(cat cmp.log)"
	elif ! cmp linux.err windows.err >cmp.log 2>&1; then
		echo "not ok $name: remarks differ: $(head -c 200 windows.err | tr '\n' ' ')"
	else
		echo "ok $name"
	fi
}

store='--store s.db'
same windows_list list $store
same windows_list_json list --json $store
same windows_show show --id 1 $store
same windows_show_json show --id 1 --json $store
same windows_show_partial show --id 4 --kernel $store
same windows_export_folded export --id 1 -f $store
same windows_export_xml export --id 1 --format perfview-xml $store
same windows_export_zip export --id 1 --format perfview-xml-zip $store
for format in livestacks dtrace perf-script speedscope pprof trace perfview-json events-csv \
	counters-csv jsonl sqlite-flat svg html; do
	same windows_export_$format export --id 1 --format $format $store
done
same windows_export_simple export --id 1 --format perfview-simple --no-kernel $store
same windows_unknown_incident show --id 99 $store
same windows_unknown_option list --stor s.db
same windows_perfview_style list /Store:s.db /JSON
same windows_unknown_format export --id 1 --format nope $store
same windows_help help collect
same windows_version --version

$WINE_RUN "$RECORDER_EXE" export --id 1 -o win.folded $store >out 2>err </dev/null
"$RECORDER" export --id 1 -o linux.folded $store
if cmp -s win.folded linux.folded; then
	echo "ok windows_export_to_a_file"
else
	echo "not ok windows_export_to_a_file: $(head -c 300 err)"
fi
$WINE_RUN "$RECORDER_EXE" export --id 1 -f --inlines $store >out 2>err </dev/null
if [ $? = 1 ] && grep -q 'read on Linux only' err && [ ! -s out ]; then
	echo "ok windows_inlines_is_refused_with_a_sentence"
else
	echo "not ok windows_inlines_is_refused_with_a_sentence: $(cat out err | head -c 300)"
fi
$WINE_RUN "$RECORDER_EXE" delete --id 2 $store >out 2>err </dev/null
if grep -q 'incident 2 is deleted' err && ! "$RECORDER" list $store | grep -q '^ *2 '; then
	echo "ok windows_delete_is_seen_by_linux"
else
	echo "not ok windows_delete_is_seen_by_linux: $(head -c 300 err)"
fi
$WINE_RUN "$RECORDER_EXE" pin --id 1 $store >out 2>err </dev/null
if "$RECORDER" list --json $store | grep '"id":1,' | grep -q '"pinned":true'; then
	echo "ok windows_pin_is_seen_by_linux"
else
	echo "not ok windows_pin_is_seen_by_linux: $(head -c 300 err)"
fi
$WINE_RUN "$RECORDER_EXE" check $store >out 2>err </dev/null
if [ $? = 0 ] && grep -q '^source *ok *etw' out; then
	echo "ok windows_check_names_the_live_source"
else
	echo "not ok windows_check_names_the_live_source: $(cat out err | head -c 300)"
fi
$WINE_RUN "$RECORDER_EXE" status --store none.db >out 2>err </dev/null
if [ $? = 3 ] && grep -q 'no recorder is running' err; then
	echo "ok windows_status_without_a_recorder"
else
	echo "not ok windows_status_without_a_recorder: $(cat out err | head -c 300)"
fi
