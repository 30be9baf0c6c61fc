#!/bin/bash
# Several recorders on one Windows machine, what a killed recorder leaves behind, and odd paths.
# Under Wine, with a stand-in for ETW (tests/dll/tdh.c) that keeps the machine's sessions and
# sampling interval in a folder.
# time limit: 300
. "$TOP/tests/support/cli.sh"

need_windows_program windows_sessions dll/tdh.dll
export LC_ALL=C.UTF-8                         # Wine takes arguments to be of this encoding
export WINEDLLOVERRIDES='mscoree,mshtml=;tdh,wevtapi=n'
export STANDIN_MACHINE=machine STANDIN_ETW=1
own_wine windows_sessions tdh.dll wevtapi.dll

exe() { timeout 120 $WINE_RUN "$RECORDER_EXE" "$@" </dev/null; }
# record NAME ARG...: start a recording in the background and wait for its session; its pid is in
# $pid.
record()
{
	local name=$1 before
	before=$(own_sessions)
	shift
	$WINE_RUN "$RECORDER_EXE" collect --store "$name.db" \
		"$@" >"$name.out" 2>"$name.err" </dev/null &
	pid=$!
	wait_for 60 more_sessions "$before" && wait_for 60 grep -q 'no rule was given' "$name.err"
}
own_sessions() { find machine -name 'session recorder-*' | wc -l; }
more_sessions() { [ "$(own_sessions)" -gt "$1" ]; }
sessions_are() { [ "$(own_sessions)" = "$1" ]; }
interval_is() { [ "$(cat machine/interval)" = "$1" ]; }
mkdir machine
touch 'machine/session NT Kernel Logger' 'machine/session recorder-session-of somebody else'
echo 12345 >machine/interval

# ---- two at a time -------------------------------------------------------------------------------

record one --freq 99
one=$pid
check the_first_has_a_session_and_its_rate sh -c "[ \$(ls machine |
	grep -c 'session recorder-session-[0-9]*-') = 1 ] && grep -qx 101010 machine/interval"
record two --freq 1000
two=$pid
check two_recorders_have_a_session_each sessions_are 3
check the_shorter_interval_of_both_holds interval_is 10000
check the_second_is_stopped exe stop --store two.db
wait $two
check it_ends_well [ $? = 0 ]
check its_session_is_gone_and_no_other sessions_are 2
check the_interval_is_that_of_the_first interval_is 101010
check the_first_is_stopped exe stop --store one.db
wait $one
check it_ends_well_too [ $? = 0 ]
check the_interval_is_what_it_was interval_is 12345

# ---- killed --------------------------------------------------------------------------------------

record three --freq 49
kill -9 $pid
wait $pid 2>/dev/null
check a_killed_one_leaves_session_and_interval sh -c "[ \$(ls machine |
	grep -c 'session recorder-session-[0-9]*-') = 1 ] && grep -qx 204081 machine/interval"
exe abort --store three.db >abort.out 2>abort.err
check abort_stops_the_session_that_was_left sh -c \
	"[ $? = 0 ] && cat abort.out abort.err | grep -q 'stopped 1 session'"
check abort_gives_the_interval_back interval_is 12345
check foreign_sessions_stay sh -c "[ -e 'machine/session NT Kernel Logger' ] &&
	[ -e 'machine/session recorder-session-of somebody else' ]"
record four --freq 49
kill -9 $pid
wait $pid 2>/dev/null
exe collect --freq 1000 --max-collect-sec 0.2 --store five.db >five.out 2>five.err
check the_next_recorder_clears_and_says_so sh -c \
	"[ $? = 0 ] && grep -q 'stopped 1 ETW sessions left by a killed recorder' five.err"
check what_was_before_the_killed_one_is_set_again interval_is 12345
check no_session_of_ours_is_left sessions_are 1

# ---- the ledger ----------------------------------------------------------------------------------

# Wine says how busy the CPUs are; a session without samples leaves all of it unexplained.
( while :; do :; done ) &
burn=$!
exe collect --freq 1000 --max-collect-sec 4 --store busy.db >busy.out 2>busy.err
kill $burn
"$RECORDER" show --store busy.db --losses --json >busy.json 2>busy.err
check what_is_expected_is_in_the_ledger sh -c \
	"jq -se '[.[] | select(.expected != null) | .expected] | add > 1000' busy.json"

# ---- odd paths -----------------------------------------------------------------------------------

mkdir 'a folder ü 日本'
cp "$RECORDER_EXE" 'a folder ü 日本/'
RECORDER_EXE=$PWD/'a folder ü 日本/recorder.exe'
check from_any_folder_into_a_store_of_any_name \
	exe collect --source none --max-collect-sec 0.2 --store 'Zähler 日本.db'
check its_name_is_utf8 test -s 'Zähler 日本.db'
exe list --store 'Zähler 日本.db' --json >odd.json 2>odd.err
check it_is_read_under_that_name [ "$(wc -l <odd.json)" = 1 ]
printf '\xef\xbb\xbfstore = Zähler 日本.db\r\n' >odd.conf
check a_conf_file_of_notepad_with_its_name expect_exit 0 exe list --config odd.conf
exe list --store nowhere-ü.db >odd.out 2>odd.err
check an_error_names_it_in_utf8 grep -q 'nowhere-ü.db' odd.err
long=$(printf 'a-folder-whose-name-is-rather-long-so-that-the-path-gets-over-the-limit/%.0s' \
	1 2 3 4 5)
check a_store_behind_a_long_path \
	exe collect --source none --max-collect-sec 0.2 --store "${long}long.db"
check it_is_there sh -c "\"$RECORDER\" list --store '${long}long.db' --json | grep -q '\"id\":1'"
check an_export_to_a_long_path exe export --store "${long}long.db" -f -o "${long}out.folded"
check it_is_there_as_well test -e "${long}out.folded"
