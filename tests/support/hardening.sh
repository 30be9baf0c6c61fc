#!/bin/bash
# hardening.sh PROGRAM...: fail when a program, ELF or PE, lacks a protection that the Makefile asks
# the compiler and the linker for. Looks at the program itself, not at flags.
set -eu
export LC_ALL=C

rc=0
# want PROGRAM WHAT PATTERN FILE: the pattern stands in what a tool says of the program.
want()
{
	grep -Eq -- "$3" "$4" && return
	echo "$1: has no $2" >&2
	rc=1
}

elf()
{
	readelf -hldW --dyn-syms "$1" >"$said"
	want "$1" "random addresses (PIE)" 'Type: +DYN' "$said"
	want "$1" "read-only relocations (RELRO)" GNU_RELRO "$said"
	want "$1" "binding at start (now)" 'FLAGS.*NOW' "$said"
	want "$1" "stack without code" 'GNU_STACK .* RW +0x' "$said"
	want "$1" "checked copies (FORTIFY_SOURCE)" '__(memcpy|vsnprintf)_chk' "$said"
	objdump -d --no-show-raw-insn "$1" >"$said"
	want "$1" "probe of each page of a large frame" 'orq +\$0x0,\(%rsp\)' "$said"
	sed -n '/<log_line>:$/,/^$/p' "$said" >"$said.one"
	want "$1" "stack protector" 'call .*<__stack_chk_fail' "$said.one"
	want "$1" "landing mark of indirect calls (endbr64)" endbr64 "$said.one"
}

pe()
{
	x86_64-w64-mingw32-objdump -p "$1" >"$said"
	want "$1" "random addresses (DYNAMIC_BASE)" DYNAMIC_BASE "$said"
	want "$1" "64-bit random addresses (HIGH_ENTROPY_VA)" HIGH_ENTROPY_VA "$said"
	want "$1" "data without code (NX_COMPAT)" NX_COMPAT "$said"
	want "$1" "relocations, which random addresses need" 'Base Relocation Directory' "$said"
	x86_64-w64-mingw32-nm "$1" >"$said"
	want "$1" "stack protector" ' __stack_chk_fail$' "$said"
	want "$1" "checked copies (FORTIFY_SOURCE)" ' __(memcpy|strcpy)_chk$' "$said"
}

said=$(mktemp)
trap 'rm -f "$said" "$said.one"' EXIT
for program in "$@"; do
	case $program in
	*.exe) pe "$program" ;;
	*) elf "$program" ;;
	esac
done
exit $rc
