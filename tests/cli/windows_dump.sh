#!/bin/bash
# recorder stacks --dump: minidumps of x64 and of 32-bit programs, by Wine's dbghelp and by a writer
# of the test's own, read on both hosts: the frames that `stacks -p` gives while the program lives.
# time limit: 300
. "$TOP/tests/support/cli.sh"

need_windows_program windows_dump programs/minidump_windows.exe
cp "$BUILD/../windows/programs/"{threads,minidump}_windows.exe . || exit 1
export TEST_WINEPREFIX=$TMP/prefix
wine=$TOP/tests/support/wine.sh
trap 'kill $target 2>/dev/null; "$wine" stop; rm -rf "$TEST_WINEPREFIX"' EXIT
target=
kind=clone32
"$wine" clone32 "$TEST_WINEPREFIX" 2>/dev/null ||
	{ kind=clone; "$wine" clone "$TEST_WINEPREFIX"; } || exit 1
"$wine" start
windows=$TEST_WINEPREFIX/drive_c/windows
path=".;$windows/syswow64;$windows/system32"

# start PROGRAM ARG...: start a program to look at; $pid is its id.
start()
{
	rm -f pid
	$WINE_RUN "$@" >target.out 2>target.err </dev/null &
	target=$!
	wait_for 60 test -s pid
	pid=$(tr -d '\r\n' <pid 2>/dev/null)
}

# bare FILE: stacks without the names of threads, which a minidump of Wine lacks, and without heads.
bare()
{
	tr -d '\r' <"$1" | sed -n '/^thread/,$p' | sed 's/  worker [0-9]*//'
}

# same NAME DUMP: its stacks on both hosts are those of the file live.out.
same()
{
	"$RECORDER" stacks --dump "$2" --symbol-path "$path" >"$2.linux" 2>"$2.linux.err"
	check "$1_on_linux" diff <(bare live.out) <(bare "$2.linux")
	check "$1_without_remark" [ ! -s "$2.linux.err" ]
	exe "$2.exe" stacks --dump "$2" --symbol-path .
	check "$1_on_windows" diff <(bare live.out) <(bare "$2.exe.out")
}

start threads_windows.exe 12 pid
exe live stacks -p "$pid"
check the_living_one_has_its_threads [ "$(grep -c '!wait_here' live.out)" = 12 ]
$WINE_RUN minidump_windows.exe x64.dmp "$pid" >made.out 2>&1
$WINE_RUN minidump_windows.exe full.dmp "$pid" full >>made.out 2>&1
$WINE_RUN minidump_windows.exe own.dmp "$pid" own >>made.out 2>&1
same a_minidump_has_the_frames_of_the_living_process x64.dmp
same a_dump_of_all_memory_has_them_too full.dmp
same one_by_another_writer_has_them_too own.dmp
check its_head_says_that_it_lived grep -q \
	"^program threads_windows.exe ($pid) lived when its memory was dumped" x64.dmp.linux
check all_memory_needs_no_files sh -c "'$RECORDER' stacks --dump full.dmp 2>full.err |
	grep -c 'threads_windows.exe!+' | grep -qx 105"
"$RECORDER" stacks --dump x64.dmp >alone.out 2>alone.err
check without_its_files_it_says_what_is_missing grep -q \
	'not found as the process had loaded them: .*ntdll.dll.*--symbol-path' alone.err
check without_its_files_no_stack_is_called_whole sh -c \
	"[ \$(grep -c '^thread' alone.out) = 13 ] && ! grep '^thread' alone.out | grep -v broken"
cp minidump_windows.exe other.exe
expect another_file_is_not_taken_for_it 0 'not found.*threads_windows' \
	stacks --dump x64.dmp --exe other.exe --symbol-path "$windows/system32"
timeout 90 $WINE_RUN "$RECORDER_EXE" collect --source none --store f.db --on-fire minidump \
	--poll-sec 0.1 --min-sec-for-trigger 0.2 --delay-after-trigger-sec 60 \
	'/StopOnPerfCounter:System:Threads:>1;Stacks=threads_windows' \
	>fire.out 2>fire.err </dev/null & fire=$!
wait_for 80 grep -q 'a dump of process' fire.err
exe stop stop --store f.db
wait $fire
dump=$(ls f.db.dumps/"$pid"-*.dmp 2>/dev/null)
check a_firing_writes_one [ -s "$dump" ]
check and_says_where grep -q "a dump of process $pid is in f.db.dumps" fire.err
[ ! "$dump" ] || mv "$dump" fired.dmp
same it_has_the_same_frames fired.dmp
kill $target
wait $target 2>/dev/null

$WINE_RUN minidump_windows.exe crash.dmp crash >crash.out 2>&1
expect a_crash_says_why_and_where 0 \
	'died of access violation at address 0x10 \(reading\), thread' \
	stacks --dump crash.dmp --symbol-path "$path"
check its_first_frame_is_the_one_that_crashed sh -c \
	"grep -m1 -A2 '^thread' out | tr -d '\n' | grep -q '!crash_here .*!crash_below'"
"$RECORDER" stacks --dump crash.dmp --symbol-path "$path" --store c.db >/dev/null 2>&1
check a_crash_is_stored_as_an_incident sh -c \
	"'$RECORDER' list --store c.db | grep -q 'minidump_windows.exe .* died of access'"
head -c 20000 x64.dmp >cut.dmp
check one_that_is_cut_off_is_read_or_refused sh -c \
	"'$RECORDER' stacks --dump cut.dmp >cut.out 2>cut.err; [ \$? -le 1 ] && [ -s cut.err ]"
check a_short_one_is_a_sentence sh -c "head -c 100 x64.dmp >short.dmp;
	! '$RECORDER' stacks --dump short.dmp 2>short.err && grep -q short.dmp: short.err"

# ---- 32-bit programs -----------------------------------------------------------------------------

cross=i686-w64-mingw32-gcc
if [ $kind != clone32 ] || ! command -v $cross >/dev/null; then
	echo "skip windows_dump: no 32-bit programs here (Wine's i386 DLLs, gcc-mingw-w64-i686)"
	exit 0
fi
programs=$TOP/tests/programs
$cross -O2 -g -gdwarf-4 -static -o threads32.exe "$programs/threads_windows.c" &&
	$cross -O2 -static -o own32.exe "$programs/minidump_windows.c" -lntdll -lpsapi || exit 1
start threads32.exe 12 pid
if [ ! "$pid" ]; then
	echo "skip windows_dump: this Wine runs no 32-bit programs"
	exit 0
fi
exe live stacks -p "$pid"
check the_living_32_bit_one_has_its_threads [ "$(grep -c '!wait_here' live.out)" = 12 ]
$WINE_RUN minidump_windows.exe wow64.dmp "$pid" own >>made.out 2>&1
$WINE_RUN own32.exe x86.dmp "$pid" own >>made.out 2>&1
same a_minidump_by_a_32_bit_program x86.dmp
same registers_of_64_bit_code_lead_to_the_32_bit_stacks wow64.dmp
