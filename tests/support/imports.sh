#!/bin/sh
# imports.sh PROG.exe...: fail when a Windows program needs a DLL that is not part of Windows.
set -eu

# dbghelp is loaded when it is needed: the program starts without it.
system='advapi32 bcrypt kernel32 msvcrt ntdll ole32 oleaut32 pdh psapi rpcrt4 secur32 shell32
shlwapi tdh user32 version wevtapi ws2_32'

rc=0
for program in "$@"; do
	for dll in $(x86_64-w64-mingw32-objdump -p "$program" | sed -n 's/^.*DLL Name: //p'); do
		name=$(echo "${dll%.*}" | tr '[:upper:]' '[:lower:]')
		case " $(echo $system) " in
		*" $name "*) ;;
		*)
			echo "$program: imports $dll, which Windows does not have" >&2
			rc=1
			;;
		esac
	done
done
exit $rc
