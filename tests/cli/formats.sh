#!/bin/bash
# Every format of three incidents: one recorded here, one of a Windows trace, one synthetic with all
# streams and hostile names. Each export has the weight of its incident, and the same bytes when it
# is written again or by the Windows program under Wine.
# time limit: 240
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG RECORDER_STORE
export XDG_STATE_HOME=$TMP/state HOME=$TMP
npm=$TOP/build/deps/npm
weighs='folded perfView.xml.zip speedscope.json pb.gz trace.json jsonl svg html livestacks.txt
	stacks perf.data.txt perfView.xml simple.xml perfView.json flat.db'

reader=node
if ! command -v node >/dev/null || [ ! -d "$npm/node_modules/pprof-format" ]; then
	echo "skip weights_of_formats: no node, or no pprof-format in build/deps/npm (make deps)"
	reader=
fi
wine=$WINE_RUN
if [ ! "$wine" ] || [ ! -e "$RECORDER_EXE" ]; then
	echo "skip the_windows_program_writes_the_same: no Wine, or no $RECORDER_EXE"
	wine=
fi

# formats DIR STORE STREAM PROGRAM...: write all formats into DIR; if DIR is "short", only the usual
# ones, which one command writes.
formats()
{
	local dir=$1 store=$2 stream=$3 format
	shift 3
	mkdir "$dir" &&
		"$@" export --store "$store" --id 1 --metric "$stream" --all "$dir" || return
	[ "$dir" != short ] || return 0
	for format in livestacks:livestacks.txt dtrace:stacks perf-script:perf.data.txt \
			perfview-xml:perfView.xml \
		perfview-simple:simple.xml perfview-json:perfView.json sqlite-flat:flat.db; do
		"$@" export --store "$store" --id 1 --metric "$stream" \
			--format "${format%:*}" --top 0 \
			-o "$dir/incident-1.${format#*:}" || return
	done
}

# same DIR: DIR holds at least the ten usual files, each byte-identical to the file of that name in
# "one".
same()
{
	local file
	[ "$(ls "$1" | wc -l)" -ge 10 ] || { tail -n 2 log; return 1; }
	for file in "$1"/*; do
		cmp "$file" "one/${file##*/}" || return
	done
}

# try NAME STORE STREAM SAMPLES WEIGHT
try()
{
	local name=$1 store=$2 stream=$3 file dir
	rm -rf one two other short
	formats one "$store" "$stream" "$RECORDER" >log 2>&1 ||
		{ echo "not ok formats_of_$name: $(tail -1 log)"; return; }
	formats two "$store" "$stream" "$RECORDER" >log 2>&1
	check "${name}_is_the_same_when_written_again" same two
	if [ "$wine" ]; then
		dir=other
		# checks of single formats, which need samples of the CPU
		[ "$stream" = cpu ] || dir=short
		formats $dir "$store" "$stream" $wine "$RECORDER_EXE" >log 2>&1
		check "${name}_is_the_same_by_the_windows_program" same $dir
	fi
	[ "$reader" ] || return
	for file in $weighs; do
		echo "one/incident-1.$file"
	done | xargs node "$TOP/tests/support/export_totals.mjs" "$npm" "$stream" "$4" "$5" |
		sed "s/weight_of_incident-1/${name}_weight/"
}

# ---- made: all streams, hostile names ------------------------------------------------------------

"$BUILD/programs/store_streams" made.db >made || { echo "not ok store_streams: failed"; exit 0; }
while read -r stream samples weight; do
	try "made_$stream" made.db "$stream" "$samples" "$weight"
done <made

# ---- recorded, and of a trace --------------------------------------------------------------------

# The rows of the flat database say what is stored: samples and ns.
stored()
{
	rm -f rows.db
	"$RECORDER" export --store "$1" --id 1 --sqlite-flat -o rows.db 2>/dev/null
	sqlite3 rows.db "SELECT count(*), sum(weight) FROM sample WHERE stream = 'cpu'" | tr '|' ' '
}

data=$TOP/../shared/data/etl/net.4.5.2.x64.etl.zip
if [ -e "$data" ]; then
	"$RECORDER" collect --from "$data" --store trace.db >log 2>&1
	read -r samples weight < <(stored trace.db)
	check the_trace_has_6320_samples [ "$samples" = 6320 ]
	try trace trace.db cpu "$samples" "$weight"
else
	echo "skip formats_of_a_trace: no ../shared/data/etl"
fi

need_perf
"$BUILD/programs/burn" 20 >/dev/null & burn=$!
trap 'kill $burn 2>/dev/null' EXIT
timeout 30 "$RECORDER" collect --store live.db --freq 99 --max-cpu-percent 0 \
	--max-collect-sec 2 >log 2>&1
read -r samples weight < <(stored live.db)
"$RECORDER" show --store live.db --id 1 --json >show.json 2>>log
check the_recording_has_the_samples_that_show_says [ "$(jq .samples show.json)" = "$samples" ]
check the_recording_has_samples [ "$samples" -gt 50 ]
try recorded live.db cpu "$samples" "$weight"
