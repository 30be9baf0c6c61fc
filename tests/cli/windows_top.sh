#!/bin/bash
# `recorder top` on Windows, under Wine with a stand-in for ETW that replays the records of a real
# trace: the transcripts of LiveStacks, byte for byte but for numbers.
# time limit: 600
. "$TOP/tests/support/cli.sh"

need_windows_program windows_top dll/tdh.dll
data=$TOP/../shared/data/etl/net.4.5.2.x64.etl.zip
if [ ! -e "$data" ] || ! command -v unzip >/dev/null; then
	echo "skip windows_top: no $data, or no unzip"
	exit 0
fi
export WINEDLLOVERRIDES='mscoree,mshtml=;tdh=n'
own_wine windows_top tdh.dll
unzip -oq "$data" net.4.5.2.x64.etl
"$BUILD/programs/etw_live_records" net.4.5.2.x64.etl live.rec >records.out || exit 1

# top NAME WANT SECONDS TIMES ARG...: what it prints to NAME.out, its remarks to NAME.err. On a busy
# machine the stand-in hands out its records later: where WANT events were not counted, once more,
# with summaries three times as long.
records=live.rec
top()
{
	local name=$1 want=$2 seconds=$3 times=$4 longer
	shift 4
	for longer in 1 3; do
		rm -f "$name.log"
		STANDIN_LOG=$name.log STANDIN_RECORDS=$records timeout 150 $WINE_RUN \
			"$RECORDER_EXE" top --store "$name.db" -i $((seconds * longer)) \
			-c "$times" "$@" >"$name.out" 2>"$name.err" </dev/null
		tr -d '\r' <"$name.out" >"$name.text"
		[ "$(total "$name")" -lt "$want" ] || break
	done
}
total() { tr -d '\r' <"$1.err" | awk '/^Total events seen: / { n = $4 } END { print n + 0 }'; }
# The records take 13 s; there is no other summary than the one at the end.
top cpu 0 20 1 --cpu-sample-msec 1 --max-cpu-percent 0 -T 2 &
top triggered 264 20 1 -e clr:gc:gc/triggered -T 1 &
top disk 1000 20 1 -e kernel:diskioinit &
top start 0 20 1 -e clr:gc:gc/start -f &
wait
# The other examples of its page: -p PID finds no process here, as none of the trace's lives.
top files 0 20 1 -e kernel:fileioinit -T 1 &
top images 31 1 20 -e kernel:imageload -T 5 &
top named 0 20 1 -P Test.x64 --cpu-sample-msec 1 --max-cpu-percent 0 -f &
top calls 0 20 1 -e kernel:systemcall -T 1 &
top gone 0 1 1 -p 7408 &
wait

numbers() { sed -E 's/^ {2}[ 0-9]{10} /  N /; s/ [0-9]+\]$/ N]/; s/\+0x[0-9A-F]+$/+0xN/' "$1"; }
times_look_like_livestacks()
{
	sed -nE '1p' "$1" | tr -d '\r' | grep -qE '^(1[0-2]|[1-9]):[0-5][0-9]:[0-5][0-9] [AP]M$' &&
		sed -nE '2p' "$1" | tr -d '\r' | grep -qE '^  Time aggregating/resolving: [0-9]+ms$'
}

cat >expected <<'TEXT'
  N [Test.x64 N]
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    mscorlib.dll!System.TimeZoneInfo.GetIsDaylightSavingsFromUtc+0xN
    mscorlib.dll!System.TimeZoneInfo.GetDateTimeNowUtcOffsetFromUtc+0xN
    mscorlib.dll!System.DateTime.get_Now+0xN
    Test.x64.exe!Test.Program.Main+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    clr.dll!+0xN
    mscoreei.dll!+0xN
    mscoree.dll!+0xN
    kernel32.dll!+0xN
    ntdll.dll!+0xN

TEXT
check collections_that_a_program_asks_for_as_livestacks_prints_them \
	diff expected <(numbers triggered.text)
# seen NAME LEAST MOST: so many, or fewer where it says that some were lost.
seen()
{
	echo "$(total "$1") events"
	[ "$(total "$1")" -le "$3" ] &&
		{ [ "$(total "$1")" -ge "$2" ] || grep -q '^  Lost: [1-9]' "$1.err"; }
}
# As PerfView counts them in this trace, in the text beside it: GC/Triggered 264; DiskIO/Read 1208,
# Write 21, Flush 4, of which those before the summary began are not in it.
check each_of_them_is_counted seen triggered 264 264
check times_and_costs_are_where_livestacks_has_them times_look_like_livestacks triggered.err
check the_busiest_program_is_first grep -q '\[Test\.x64 3676\]' <(head -1 cpu.out)
check its_code_has_its_names grep -q '^    mscorlib.dll!System\..*+0x[0-9A-F]*' cpu.out
check no_line_has_another_form expect_exit 1 grep -vE \
	'^( {2}[ 0-9]{10} \[.* [0-9]+\]| {4}[^ ]+!.*\+0x[0-9A-F]+| {4} {0,15}[0-9A-F]+|)$' \
	<(tr -d '\r' <cpu.out)
check the_kernel_is_told_of_the_keyword grep -q ' flags=0x01000407 ' disk.log
check reads_and_writes_have_their_stacks seen disk 1000 1233
check events_that_always_come_are_no_part_of_it expect_exit 1 grep -q 'ThreadStart' disk.out
check dotnet_is_asked_for_the_keyword \
	grep -qE '^enable .*guid=e13c0d23-.* code=1 level=5 keywords=0x4' triggered.log
check stacks_can_be_folded grep -qE '^Test\.x64 \(3676\);.*;clr\.dll!\+0x[0-9A-F]+ [0-9]+' start.out
check it_leaves_nothing_behind test -z "$(find . -name 'top-*' -o -name '*.top.history')"
head='^ {2}[ 0-9]{10} \[.* [0-9]+\]$' frame='^ {4}([^ ]+!.*\+0x[0-9A-F]+| {0,15}[0-9A-F]+)$'
images_look_like_livestacks()
{
	! grep -vE -e "$head" -e "$frame" -e '^$' <(tr -d '\r' <images.out) &&
		grep -qE "$head" <(tr -d '\r' <images.out) &&
		[ "$(tr -d '\r' <images.err |
			grep -cE '^ {2}Time aggregating/resolving: [0-9]+ms$')" = 20 ]
}
check loads_of_images_have_their_stacks_each_second images_look_like_livestacks
check each_load_is_counted seen images 31 35
check they_begin_in_the_loader grep -q '^    ntdll.dll!+0x' images.out
check one_program_by_its_name grep -q '^Test\.x64 (3676);' named.out
check and_no_other expect_exit 1 grep -v '^Test\.x64 (3676);' named.out
check the_kernel_is_told_of_file_io grep -q ' flags=0x05000007 ' files.log
check and_of_system_calls grep -q ' flags=0x01000087 ' calls.log
check what_does_not_happen_is_nothing_seen [ "$(cat files.out calls.out)" = "" ]
check a_number_that_no_process_has_is_said grep -q "there is no process '7408'" gone.err

# ---- the transcripts of its page, byte for byte with their numbers ----
modules=$TEST_WINEPREFIX/drive_c/windows/page page=$TOP/tests/data/livestacks.txt
mkdir -p "$modules/unnamed"
awk -v dir="$modules" -f "$TOP/tests/support/livestacks_page.awk" "$page" >page.lines
for module in "$modules"/*.s "$modules"/*/*.s; do
	strip=
	[[ $module != */unnamed/* ]] || strip=-s
	x86_64-w64-mingw32-gcc -shared -nostdlib -Wl,-e,0 $strip -o "${module%.s}" "$module"
done
"$BUILD/programs/etw_transcript" page.rec <page.lines
records=page.rec
# Its programs have 32 bits, where names of compilers for x86 are shown without their decoration.
plain() { sed 's/Start@8/Start/' "$page"; }
top eat_cpu 1211 10 1 -P EatCPU --max-cpu-percent 0 -T 2 &
top system_call 17275 10 1 -e kernel:systemcall &
wait
check the_page_of_livestacks_is_reproduced \
	diff <(plain) <(cat eat_cpu.text system_call.text)

# ---- the screen ----
# Wine 8's console shows escape sequences as text and breaks its lines anywhere, and its size stays
# as it was at the beginning. So what is sent is judged; tests/unit/screen/page.c has a terminal
# that obeys it and shows each character in its place.
if ! command -v tmux >/dev/null; then
	echo "skip the_screen_shows_processes: no tmux"
	exit 0
fi
terminals=0                              # the old server may live for a moment
mux() { tmux -S "$TMP/mux$terminals" -f /dev/null "$@"; }
shows() { tr -d '\r\n' <screen.raw | grep -qaF -e "$1"; }
export STANDIN_LOG=screen.log STANDIN_RECORDS=live.rec
start() # COLUMNS ROWS
{
	terminals=$((terminals + 1))
	rm -f ended screen.raw
	mux new-session -d -x "$1" -y "$2" "cd '$TMP'
		$WINE_RUN '$RECORDER_EXE' top --store screen.db 2>screen.err
		echo \$? >ended; sleep 1000"
	mux set-option status off
	mux pipe-pane -o "cat >'$TMP/screen.raw'"
}
# The rows of the first page, each from its first column on.
rows()
{
	tr -d '\r\n' <screen.raw | grep -aoE '\[[0-9]+;1H' | head -n "$1" | tr -d '[' | tr '\n' ' '
}
has_rows() { rows "$(($1 + 1))" | grep -qxF "$(seq -f '%g;1H' -s ' ' "$1") 1;1H "; }

start 200 60
check a_large_console_has_all_its_rows wait_for 60 has_rows 60
mux send-keys q
check q_ends_it wait_for 30 grep -qx 0 ended
mux kill-server
start 80 24
check and_so_has_a_small_one wait_for 60 has_rows 24
mux send-keys + + +                  # a longer time than the 13 s that have something
check the_screen_shows_processes wait_for 60 shows 'Test.x64 (3676)'
check and_functions wait_for 20 shows 'mscorlib.dll!System.'
mux send-keys '?'
check a_key_shows_help wait_for 20 shows 'quit'
mux send-keys x q
check and_q_ends_it wait_for 30 grep -qx 0 ended
mux kill-server
check without_a_complaint [ ! -s screen.err ]
