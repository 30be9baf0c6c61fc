#!/bin/bash
# The live screen of `recorder top` in a real terminal: tmux.
# time limit: 420
. "$TOP/tests/support/cli.sh"
export RECORDER_STORE=$TMP/s.db
unset RECORDER_CONFIG NO_COLOR
need_perf
if ! command -v tmux >/dev/null; then
	echo "skip top_screen_linux: no tmux"
	exit 0
fi

# A name that would set the window's title, clear it, and turn the line around.
hostile=$'\033]0;TAKEN\007\033[2J\u202ehog'
cp "$TOP/build/linux/programs/burn" "./$hostile"
"./$hostile" 300 &
hog=$!
mux() { tmux -S "$TMP/mux$terminals" -f /dev/null "$@"; }
trap 'mux kill-server 2>/dev/null; kill $hog $recorder 2>/dev/null' EXIT
recorder= terminals=0

# start COLUMNS ROWS [NAME=VALUE...]: top in a terminal of that size; what it sends goes to "sent".
start()
{
	local columns=$1 rows=$2
	shift 2
	mux kill-server 2>/dev/null
	terminals=$((terminals + 1))     # the old server may live for a moment
	rm -f sent modes.before modes.after ended
	mux new-session -d -x "$columns" -y "$rows" "sleep 1; stty -g >modes.before
		env $* '$RECORDER' top $OPTIONS 2>err; echo \$? >ended
		stty -g >modes; mv modes modes.after; sleep 1000"
	mux pipe-pane 'cat >sent'
}
OPTIONS=

screen() { mux capture-pane -p; }
shows() { screen | grep -qE -e "$1"; }
keys() { mux send-keys "$@"; }
ended_well()
{
	wait_for 20 test -e modes.after && [ "$(cat ended)" = 0 ] && cmp modes.before modes.after
}

# ---- a recording of its own --------------------------------------------------------------------

start 80 24
check it_shows_the_processes wait_for 30 shows '^ +[0-9.]+ +\|+ +all processes$'
check the_busiest_one_is_there_its_name_as_text wait_for 20 shows 'hog \([0-9]+\)'
check its_functions_too wait_for 20 shows '[0-9.]+ +[0-9.]+ .*!burn_'
check and_a_stack shows '^ STACK 1 of [0-9]+, leaf first'
check nothing_is_longer_than_the_terminal expect_exit 1 grep -E '^.{81}' <(screen)
mux resize-window -x 200 -y 60
check a_larger_window_is_used wait_for 10 shows 'PROCESS .* STACK 1 of '
mux resize-window -x 80 -y 24
check and_a_smaller_one wait_for 10 shows '^ STACK 1 of '
keys /hog Enter Down Enter
check a_process_is_chosen wait_for 10 shows 'FUNCTION, by self, of .*hog'
keys o
check by_inclusive_time wait_for 10 shows 'FUNCTION, by inclusive, of '
keys Space
check a_pause_is_said wait_for 10 shows PAUSED
keys '?'
check there_is_help wait_for 10 shows '  q +quit'
keys x Space
keys sslow Space again Enter
check an_incident_is_kept wait_for 20 shows 'incident 1 is stored: recorder show 1'
expect and_has_its_reason 0 'slow again' show 1
check of_that_process expect_exit 0 "$RECORDER" show 1 --process "$hog"
check no_byte_of_a_name_is_obeyed expect_exit 1 grep -aq $'\033]0;TAKEN' sent
check nor_turns_the_line_around expect_exit 1 grep -aq $'\xe2\x80\xae' sent
keys q
check it_ends_and_the_terminal_is_as_before ended_well
check it_leaves_nothing_behind test -z "$(find . -name 'top-*')"

# ---- signals -----------------------------------------------------------------------------------

pid_of_top() { pgrep -n -f "^$RECORDER top"; }
start 80 24 NO_COLOR=1
wait_for 30 shows 'all processes'
keys C-z
check ctrl_z_stops_it wait_for 10 grep -q '^State:.T' "/proc/$(pid_of_top)/status"
kill -CONT "$(pid_of_top)"
check and_it_comes_back wait_for 20 shows 'all processes'
check without_colours_none_are_sent expect_exit 1 grep -aqE $'\033\\[[0-9;]*(3[0-7]|4[0-7])m' sent
keys C-c
check ctrl_c_gives_the_terminal_back ended_well

start 80 24 TERM=dumb
check a_terminal_without_a_cursor_is_said wait_for 20 grep -q \
	"no live screen: the terminal 'dumb' .* Ctrl-C prints a summary" err
sleep 1
keys C-c
check and_gets_text ended_well
check as_livestacks_has_it grep -qE '^Total events seen: [0-9]+' err

# ---- the recorder that runs --------------------------------------------------------------------

begin_recorder()
{
	"$RECORDER" collect >>log 2>&1 &
	recorder=$!
	wait_for 20 "$RECORDER" status
}
begin_recorder
start 120 40
check the_running_recorder_is_read wait_for 30 shows 'recorder of .*/s\.db'
wait_for 20 shows '!burn_'
before=$(stat -c %s sent)
ticks() { awk '{ print $14 + $15 }' "/proc/$(pid_of_top)/stat"; }
used=$(ticks)
sleep 6
check six_seconds_of_the_screen_cost_two_percent_of_a_cpu_at_most \
	test $(($(ticks) - used)) -le $((6 * $(getconf CLK_TCK) * 2 / 100))
check six_seconds_fit_a_slow_line test $(($(stat -c %s sent) - before)) -le $((6 * 20480))
keys sfrom Space outside Enter
check a_snapshot_is_asked_for wait_for 10 shows 'a snapshot is taken'
kill -9 $recorder
wait $recorder 2>/dev/null
check a_recorder_that_dies_is_said wait_for 20 shows 'trying again'
check and_what_was_seen_stays shows '!burn_'
begin_recorder
check the_next_one_is_read wait_for 40 shows '\? help'
keys q
check and_all_ends_well ended_well
"$RECORDER" stop >/dev/null 2>&1
wait $recorder
recorder=
