#!/bin/sh
# Run Windows programs under Wine, in a prefix of this clone's own (build/deps/wineprefix).
#
#   wine.sh run PROG.exe [ARG...]   run it; its exit code is the answer
#   wine.sh start | stop            keep one wineserver running between programs (0.3 s less for
#                                   each); stop ends it and every program left behind
#   wine.sh init                    make the prefix, if there is none
#   wine.sh clone DIR               a copy of it that costs no space, for tests that replace its
#                                   DLLs (cp --remove-destination); TEST_WINEPREFIX=DIR selects it
#   wine.sh clone32 DIR             such a copy that also runs 32-bit programs: they are 64-bit
#                                   processes to the host, as on Windows (WOW64). Fails without the
#                                   DLLs that deps.sh puts into build/deps/wine32
#   wine.sh find                    print where the loader is; fails when there is no Wine
#
# No display and no 32-bit Wine are needed, and any locale will do. Drive Z: is the host's root and
# the current directory is kept, so host paths work as they are.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
prefix=$top/build/deps/wineprefix
export WINEPREFIX="${TEST_WINEPREFIX:-$prefix}"
export WINEDEBUG="${WINEDEBUG:--all}" WINEDLLOVERRIDES="${WINEDLLOVERRIDES:-mscoree,mshtml=}"
unset DISPLAY
# Without a locale Wine cannot give files names outside of ASCII.
case ${LC_ALL:-${LC_CTYPE:-${LANG:-C}}} in
*[Uu][Tt][Ff]*) ;;
*) export LC_ALL=C.UTF-8 ;;
esac
dlls32=$top/build/deps/wine32/i386-windows
# Where the loader looks for the directory of that name.
[ ! -e "$WINEPREFIX/drive_c/windows/syswow64/ntdll.dll" ] || export WINEDLLPATH="${dlls32%/*}"

# Debian keeps these two outside PATH.
find_program()
{
	command -v "/usr/lib/wine/$1" || command -v "$1"
}

wine=$(find_program wine64) || { echo "wine.sh: no wine64: run 'make deps'" >&2; exit 1; }
server=$(find_program wineserver64) || server=$(find_program wineserver)
export WINELOADER="$wine" WINESERVER="$server"

# Windows 10 is said after the fact: a new prefix is Windows 7, and programs ask.
init()
{
	rm -rf "$WINEPREFIX"
	mkdir -p "$WINEPREFIX"
	"$wine" wineboot -i && "$wine" winecfg -v win10 && "$server" -w &&
		touch "$WINEPREFIX/complete"
}

clone()
{
	mkdir -p "$(dirname "$1")" && cp -al "$(realpath "$prefix")" "$1"
	# The server writes these in place when they have two names.
	cp --remove-destination "$(realpath "$prefix")"/*.reg "$1"
}

case ${1:-} in
run)
	shift
	exec "$wine" "$@"
	;;
start) "$server" -p ;;
stop) "$server" -k || true ;;
clone) clone "$2" ;;
clone32)
	if [ ! -e "$dlls32/ntdll.dll" ]; then
		echo "wine.sh: no 32-bit DLLs in build/deps/wine32 ('make deps' fetches them)" >&2
		exit 1
	fi
	clone "$2" && cp -l "$dlls32"/*.dll "$2/drive_c/windows/syswow64/"
	;;
init)
	if [ ! -e "$WINEPREFIX/complete" ]; then
		echo "deps: making a Wine prefix" >&2
		mkdir -p "$top/build/deps"
		log=$top/build/deps/wine.log
		init >"$log" 2>&1 </dev/null || { tail -n 5 "$log" >&2; exit 1; }
	fi
	;;
find) echo "$wine" ;;
*)
	sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
