#!/bin/bash
# The Windows program under Wine takes names from symbol paths and servers, for a program whose PDB
# (by clang and lld) is not beside it. Stand-ins (tests/dll/dbghelp.c, symsrv.c) replace Windows'
# symbol handler and its server.
# time limit: 240
. "$TOP/tests/support/cli.sh"

dlls=$TOP/build/windows/dll
need_windows_program windows_symbols dll/symsrv.dll
cat >waits.c <<'C'
#include <stdio.h>
#include <windows.h>
__attribute__((noinline)) static int innermost(int n) { Sleep(n); return n + 1; }
__attribute__((noinline)) int middle(int n) { return innermost(n) + 1; }
int main(int argc, char **argv)
{
	FILE *ready = fopen(argv[1], "w");
	fprintf(ready, "%lu\n", GetCurrentProcessId());
	fclose(ready);
	return middle(300000) + argc;
}
C
gcc_dir=$(dirname "$(x86_64-w64-mingw32-gcc -print-libgcc-file-name 2>/dev/null)")
if ! clang --target=x86_64-w64-mingw32 -O1 -g -gcodeview -fuse-ld=lld -L"$gcc_dir" \
		-Wl,--pdb=waits.pdb -Wl,-s \
	-o waits.exe waits.c >clang.log 2>&1; then
	echo "skip windows_symbols: clang and lld make no program with a PDB here:" \
		"$(tail -n 1 clang.log)"
	exit 0
fi
unset _NT_SYMBOL_PATH

export WINEDLLOVERRIDES='mscoree,mshtml=;dbghelp,symsrv=n'
own_wine windows_symbols dbghelp.dll
system=$TEST_WINEPREFIX/drive_c/windows/system32
$WINE_RUN ./waits.exe pid >target.out 2>&1 </dev/null &
wait_for 60 test -s pid
pid=$(tr -d '\r\n' <pid)

# The name that a symbol store gives the PDB comes from a request below.
mkdir away
mv waits.pdb away/
export STANDIN_ASKED=asked STANDIN_SERVER=server
named='!innermost !middle !main '

# look NAME ARG...: write the frames of waits.exe to NAME.names, leaf first, up to main.
look()
{
	local name=$1
	shift
	timeout 60 $WINE_RUN "$RECORDER_EXE" stacks -p "$pid" \
		"$@" >"$name.out" 2>"$name.err" </dev/null
	code=$?
	tr -d '\r' <"$name.out" | sed -n 's/^ *waits.exe\(!.*\)/\1/p' | head -n 3 |
		tr '\n' ' ' >"$name.names"
}
has() { [ $code = 0 ] && [ "$(cat "$1.names")" = "$named" ]; }
lacks() { [ $code = 0 ] && ! grep -q '!middle' "$1.names" && grep -q '^!+0x' "$1.names"; }

look nothing
check without_its_pdb_a_frame_has_module_and_offset lacks nothing
# Both hosts name afterwards what had no name: by the PDB's GUID, in a store that was moved.
look stored --store later.db
"$RECORDER" salvage later.db -o linux.db 2>>err
later() { "$RECORDER" export --store "$1" -f 2>>err | grep -c 'waits.exe!middle;.*innermost'; }
check a_stored_picture_has_no_names_either [ "$(later linux.db)" = 0 ]
check linux_names_it_by_the_pdb "$RECORDER" symbolize linux.db --symbol-path away
check its_frames_have_those_names [ "$(later linux.db)" -gt 0 ]
check and_so_does_windows timeout 60 $WINE_RUN "$RECORDER_EXE" symbolize later.db --symbol-path away
check with_the_same_names [ "$(later later.db)" -gt 0 ]
look directory --symbol-path away
check a_directory_of_the_option has directory
_NT_SYMBOL_PATH='C:\nowhere;away' look environment
check a_directory_of_the_environment has environment
check no_server_is_asked_that_no_path_names [ ! -e asked ]

_NT_SYMBOL_PATH='srv*https://symbols.test/x' look lacking
check without_symsrv_no_server_is_asked sh -c \
	"[ ! -e asked ] && [ \$(grep -c 'System32 has no symsrv.dll' lacking.err) = 1 ]"
check and_names_come_from_local_files lacks lacking
cp "$dlls/symsrv.dll" "$system/"
_NT_SYMBOL_PATH='away2;srv*https://symbols.test/x' look asking
check a_server_is_asked_for_the_pdb_by_guid_and_age \
	grep -qE '^srv\*https://symbols.test/x waits.pdb\\[0-9A-F]{33}.?$' asked
check a_server_that_has_it_not_costs_the_names_only lacks asking
store=server/$(sed -n 's/\r//; s/.* waits.pdb.\([0-9A-F]*\)$/waits.pdb\/\1/p' asked | head -n 1)
mkdir -p "$store"
cp away/waits.pdb "$store/"
_NT_SYMBOL_PATH='srv*https://symbols.test/x' look served
check names_are_those_of_the_pdb_that_it_sends has served
look local --symbol-path "srv*server*https://symbols.test/x"
check a_local_store_is_read_without_asking has local
cp "$RECORDER_EXE" "$store/waits.pdb"
_NT_SYMBOL_PATH='srv*https://symbols.test/x' look wrong
check another_file_than_was_asked_for_is_not_used lacks wrong
cp away/waits.pdb "$store/"
STANDIN_SLOW=100000 _NT_SYMBOL_PATH='srv*https://symbols.test/x' look slow
check a_server_that_takes_too_long_costs_the_names_only lacks slow
check and_it_is_said_once sh -c "[ \$(grep -c 'a symbol server takes too long' slow.err) = 1 ]"
