#!/bin/bash
# symbolize: a stripped program is recorded; its names come afterwards, from a directory or from a
# server of debuginfod, by its build id only.
# time limit: 120
. "$TOP/tests/support/cli.sh"
need_perf

mkdir -p src
cp "$TOP/tests/programs/symbolize_linux.c" src/worker.c
gcc -O1 -g -w -fno-optimize-sibling-calls -Wl,--build-id=sha1 -o whole "$PWD/src/worker.c" || exit 1
mkdir -p run other files/.build-id full
id=$(readelf -n whole | sed -n 's/.*Build ID: //p')
strip -o run/worker whole
objcopy --only-keep-debug whole worker.debug
mkdir -p "files/.build-id/${id:0:2}"
cp worker.debug "files/.build-id/${id:0:2}/${id:2}.debug"

"$RECORDER" collect --store a.db --freq 499 --max-collect-sec 3 2>log & recorder=$!
wait_for 10 test -S a.db.ctl
run/worker 2
wait $recorder

# what the stacks of worker in store $1 are called: counts of frames, "name" or "?"
stacks() { "$RECORDER" export --store "$1" --process worker --no-ids -f 2>err; }
named() { stacks "$1" | grep -c 'main;worker!middle_work;worker!leaf_work'; }
symbolize() { "$RECORDER" symbolize "$@" 2>err; }

copy() { "$RECORDER" salvage bare.db -o "$1" 2>err; }

"$RECORDER" salvage a.db -o bare.db 2>err
check it_was_recorded test "$(stacks a.db | grep -c 'worker!')" -gt 0
check without_names test "$(named a.db)" = 0

# Another build of the same name must not lend it names.
sed 's/leaf_work/other_work/g' "$TOP/tests/programs/symbolize_linux.c" >other.c
gcc -O1 -g -w -Wl,--build-id=sha1 -o other/worker other.c
check a_store_is_copied copy wrong.db
check another_build_names_nothing sh -c '! "$RECORDER" symbolize wrong.db --symbol-path other 2>err
	"$RECORDER" export --store wrong.db --process worker -f 2>&1 | grep -q other_work && exit 1
	exit 0'

check a_program_elsewhere_is_a_store_too copy whole.db
cp whole full/worker
mv run/worker run/gone
check a_file_beside_is_found symbolize whole.db --symbol-path full
check and_names_every_frame test "$(named whole.db)" -gt 0
check all_of_them_of_that_program sh -c '! "$RECORDER" export --store whole.db --process worker \
	--no-ids -f 2>/dev/null | grep -q "worker!?"'

check one_incident_is_named_alone symbolize a.db --id 1 --symbol-path full
check that_of_the_store_is_it test "$(named a.db)" -gt 0
history=$(ls a.db.history/*.db)
in_history() { named "$history"; }
check not_that_of_the_history test "$(in_history)" = 0
check the_store_with_its_history_is_named symbolize a.db --symbol-path full
check so_is_the_history test "$(in_history)" -gt 0
check no_incident_is_named_that_is_not_there expect_exit 3 "$RECORDER" symbolize a.db --id 9
check a_debug_file_needs_its_program copy debug.db
check alone_it_names_nothing sh -c '! "$RECORDER" symbolize debug.db --symbol-path files 2>err'
check what_it_needs_is_told grep -q 'no name was found: name directories or servers' err
cp run/gone files/worker
check with_it_it_does symbolize debug.db --symbol-path files
check and_names_what_was_stripped test "$(named debug.db)" -gt 0
symbolize debug.db --symbol-path files --json >left.json
check what_has_a_name_is_not_listed_again sh -c '! grep -q "worker" left.json'

# A real server, on loopback.
if ! command -v debuginfod >/dev/null || [ ! -e /usr/lib/x86_64-linux-gnu/libdebuginfod.so.1 ]; then
	echo "skip names_come_from_a_server: no debuginfod here"
	exit 0
fi
mkdir served
cp run/gone served/worker
cp worker.debug served/
port=$((20000 + $$ % 20000))
debuginfod -p $port -d :memory: -F served >server.log 2>&1 & server=$!
trap 'kill $server 2>/dev/null' EXIT
check a_server_is_there wait_for 20 sh -c \
	"grep -q 'groom\\|served' server.log && curl -sf http://127.0.0.1:$port/metrics | \
	grep -q 'scanned_files_total.*[1-9]'"
export DEBUGINFOD_CACHE_PATH=$TMP/cache
check a_store_for_it copy served.db
cp other/worker run/worker       # this machine's own is another build
check it_has_the_program_and_its_debug_file wait_for 20 symbolize served.db \
	--symbol-path "http://127.0.0.1:$port"
check another_build_at_its_path_is_no_warning sh -c '! grep -q "is no longer the file" err'
check and_they_name_the_stripped_functions test "$(named served.db)" -gt 0
check and_leave_no_frame_of_that_program sh -c '! "$RECORDER" export --store served.db \
	--process worker --no-ids -f 2>/dev/null | grep -q "worker!?"'
check all_may_be_said sh -c '"$RECORDER" symbolize --all served.db >out 2>err; [ $? != 2 ]'
# Source lines, where neither the debug file nor the source is on this machine.
lines() { "$RECORDER" report --store served.db --source leaf_work "$@" >lines.out 2>err; }
check without_a_server_there_are_no_lines sh -c '! "$RECORDER" report --store served.db \
	--source leaf_work >lines.out 2>&1 && grep -q "has no source lines" lines.out'
check a_directory_has_the_debug_file lines --symbol-path served
check and_the_lines_have_their_text grep -q 'worker.c' lines.out
if unshare -m true 2>/dev/null; then
	check a_server_has_the_text_too unshare -m sh -c 'mount -t tmpfs none src &&
		"$RECORDER" report --store served.db --source leaf_work \
			--symbol-path "http://127.0.0.1:$0" >lines.out 2>err' $port
	check which_stands_beside_its_cost grep -Eq "^ +[0-9.]+ .*$(grep -n 'for (' src/worker.c |
		sed -n '1s/^\([0-9]*\):.*/ \1 /p') .*for \(" lines.out
else
	echo "skip a_server_has_the_text_too: no mount namespace (root) here"
fi
check a_silent_server_is_told sh -c 'DEBUGINFOD_CACHE_PATH=$TMP/none DEBUGINFOD_TIMEOUT=2 \
	"$RECORDER" symbolize a.db --symbol-path http://127.0.0.1:9 2>err; [ $? != 0 ]'
