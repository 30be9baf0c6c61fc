#!/bin/bash
# Stacks of 32-bit programs, taken by the 64-bit recorder under Wine, whose 32-bit processes are
# 64-bit processes of the host with WOW64, as on Windows: one program of known depths, built with
# unwind tables, and without tables and frame pointers.
# time limit: 600
. "$TOP/tests/support/cli.sh"

need_windows_program windows_wow64
source=$TOP/tests/programs/threads_windows.c
cross=i686-w64-mingw32
if ! command -v $cross-gcc >/dev/null; then
	echo "skip windows_wow64: no $cross-gcc (gcc-mingw-w64-i686, by 'make deps')"
	exit 0
fi
if ! $cross-gcc -O2 -g -gdwarf-4 -static -o tables.exe "$source" 2>build.err; then
	echo "not ok windows_wow64: $(head -n 1 build.err)"
	exit 0
fi
export TEST_WINEPREFIX=$TMP/prefix
wine=$TOP/tests/support/wine.sh
trap 'kill $target 2>/dev/null; "$wine" stop; rm -rf "$TEST_WINEPREFIX"' EXIT
target=
if ! "$wine" clone32 "$TEST_WINEPREFIX" 2>clone.err; then
	echo "skip windows_wow64: $(cat clone.err)"
	exit 0
fi
"$wine" start

# start PROGRAM ARG...: start a program to look at, which writes its id into the file pid.
start()
{
	rm -f pid
	$WINE_RUN "$@" >target.out 2>target.err </dev/null &
	target=$!
	wait_for 60 test -s pid
	pid=$(tr -d '\r\n' <pid 2>/dev/null)
}

stop()
{
	kill $target
	wait $target 2>/dev/null || :
}

# depths FILE: the calls of descend() in each thread.
depths()
{
	tr -d '\r' <"$1" | awk '/^thread/ { name = $3 " " $4; n = 0 } /!descend$/ { n++ }
		/!thread_main$/ { print name, n }' | sort | tr '\n' ,
}

start tables.exe 4 pid
if [ ! "$pid" ]; then
	echo "skip windows_wow64: this Wine runs no 32-bit programs"
	exit 0
fi

# ---- with unwind tables --------------------------------------------------------------------------

root=kernel32.dll!BaseThreadInitThunk
exe tables stacks -p "$pid"
check stacks_of_a_32_bit_program [ $code = 0 ]
check every_stack_is_whole sh -c \
	"[ \$(grep -c '^thread' tables.out) = 5 ] && ! grep '^thread.*\[' tables.out &&
	[ \$(grep -c $root tables.out) = 5 ]"
check every_call_is_there [ "$(depths tables.out)" = \
	"worker 0 1,worker 1 2,worker 2 3,worker 3 4," ]
check every_frame_has_a_name_without_decoration sh -c \
	"! grep -E '!\\+|@|!_main|^ +0x' tables.out && grep -q 'ntdll.dll!NtWaitFor' tables.out"
check the_leaf_is_the_system_call_of_32_bit_code sh -c \
	"! grep -q '^ .*wow64' tables.out && grep -q 'tables.exe!main\$' tables.out"
exe kept stacks -p tables --store k.db
"$RECORDER" export --id 1 --store k.db -f >kept.folded 2>export.err
whole='worker 3-[0-9]+;.*;tables.exe!thread_main(;tables.exe!descend){4};tables.exe!wait_here;.* 1$'
check linux_reads_every_thread_of_it sh -c \
	"[ \$(wc -l <kept.folded) = 5 ] && [ ! -s export.err ] && grep -qE '$whole' kept.folded"
stop

# 16 times 1 to 12 calls, then 1 to 8.
start tables.exe 200 pid
exe many stacks -p "$pid"
check two_hundred_threads_with_every_frame_named sh -c \
	"[ \$(grep -c '^thread [0-9]*  worker ' many.out) = 200 ] &&
	[ \$(grep -c '!descend' many.out) = 1284 ] &&
	[ \$(grep -c '!wait_here' many.out) = 200 ] && ! grep -qE '!\+|^ +0x|\[' many.out"
stop

# ---- as a source ---------------------------------------------------------------------------------

start tables.exe 2 pid busy
at_work='worker 1.*kernel32.dll!BaseThreadInitThunk;.*tables.exe!thread_main;tables.exe!descend'
# On a very busy machine rounds are rare, so the window is made longer.
for delay in 1 4 16; do
	rm -rf s.db*
	exe sampler collect --source sampler --record-process tables --store s.db --poll-sec 0.5 \
		--min-sec-for-trigger 1 --delay-after-trigger-sec $delay \
		'/StopOnPerfCounter:Process:Thread Count:tables>1'
	"$RECORDER" export --id 1 --store s.db -f >cpu.folded 2>/dev/null
	grep -qE "$at_work" cpu.folded && break
done
check the_sampler_takes_32_bit_threads_at_work sh -c \
	"[ $code = 0 ] && grep -qE '$at_work' cpu.folded"
"$RECORDER" show --id 1 --store s.db >show.out 2>&1
check all_of_them_are_complete sh -c \
	"grep -qE '^Stacks +[0-9,]+ complete\$' show.out || { cat show.out; false; }"
stop

# ---- that ends meanwhile, and that a debugger holds ----------------------------------------------

# The sampler meets these programs as they begin and end. On a very busy machine it needs many
# seconds to find one and read its images, so each lives until it was met, and a second longer.
met() { [ "$(grep -c 'sampling the threads of process' ending.err)" -ge "$1" ]; }
{
	wait_for 60 test -s ending.err
	for n in 1 2 3 4 5; do
		start tables.exe 8 pid busy
		wait_for 25 met "$n"
		sleep 1
		stop
	done
	timeout 60 $WINE_RUN "$RECORDER_EXE" stop --store e.db >/dev/null 2>&1 </dev/null
} & target=$!
: >ending.err
timeout 250 $WINE_RUN "$RECORDER_EXE" collect --source sampler --record-process tables \
	--store e.db --max-collect-sec 200 --freq 200 >ending.out 2>ending.err </dev/null
code=$?
wait $target
check the_sampler_survives_32_bit_programs_that_end sh -c "[ $code = 0 ] &&
	grep -q 'sampling the threads of process' ending.err || { cat ending.err; false; }"

start tables.exe 4 pid
if timeout 60 $WINE_RUN winedbg --command "help" >winedbg.out 2>&1; then
	# It holds the program at its own break-in until it has read the end of the pipe.
	{ wait_for 40 test -e looked; echo detach; echo quit; } |
		timeout 60 $WINE_RUN winedbg "$(printf '0x%x' "$pid")" >winedbg.out 2>&1 &
	debugger=$!
	wait_for 30 grep -q 'Wine-dbg>' winedbg.out
	exe held stacks -p "$pid"
	touch looked
	check every_call_is_there_while_a_debugger_holds_it sh -c "[ $code = 0 ] &&
		[ \$(grep -c '!descend' held.out) = 10 ]"
	wait $debugger
else
	echo "skip every_call_is_there_while_a_debugger_holds_it: no winedbg"
fi
stop

# ---- without tables ------------------------------------------------------------------------------

libs=$(dirname "$($cross-gcc -print-libgcc-file-name)")
for kind in omit no-omit; do
	name=${kind}_pointers
	if ! clang --target=$cross -O2 -f$kind-frame-pointer -fno-asynchronous-unwind-tables \
		-fno-unwind-tables -ffunction-sections -g -gcodeview -L"$libs" -fuse-ld=lld \
		-Wl,--pdb=$name.pdb -static -o $name.exe "$source" 2>build.err; then
		echo "skip ${kind}_frame_pointer: clang cannot build it: $(head -n 1 build.err)"
		continue
	fi
	start $name.exe 4 pid
	exe $name stacks -p "$pid"
	check ${kind}_frame_pointer_and_every_call_is_found [ "$(depths $name.out)" = \
		"worker 0 1,worker 1 2,worker 2 3,worker 3 4," ]
	check ${kind}_frame_pointer_to_where_threads_begin sh -c \
		"[ \$(grep -c $root $name.out) = 5 ] && ! grep -E 'broken|truncated' $name.out"
	check ${kind}_frame_pointer_is_not_called_whole sh -c \
		"[ \$(grep -c '^thread.*\[fp\]' $name.out) = 5 ]"
	stop
done
