#!/bin/bash
# What grows with the machine: many CPUs, large programs, and the start among many processes; the
# heads of bench_scale_linux.c and bench_start_linux.c say how that is measured. Part of make bench;
# a minute and a half. Needs root.
#
#   tests/bench/scale.sh [cpus] [large] [start]      these rows only
#
# cpus    2 to 512 CPUs' rings, in plain memory, through the real source and engine
# large   until stacks of a program with 3 million rows of unwind tables, which is made here, of
#         clang and of chromium are complete; memory of all tables
# start   until it records, among 1,000 processes with 50,000 mappings
#
# Rows go to stdout, and as JSON with their commands to the end of RESULTS, if that is set.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
PROGRAMS=$TOP/build/linux/programs
RECORDER=${RECORDER:-$TOP/build/linux/recorder}
RESULTS=${RESULTS:-/dev/null}
parts=" ${*:-cpus large start} "
export LC_ALL=C

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM
cd "$work" || exit 1

# rows SECONDS PROGRAM ARGUMENT...
rows()
{
	local seconds=$1 program=$2
	shift 2
	timeout "$seconds" "$PROGRAMS/$program" --json "$@" 3>&1 >rows 2>&3 3>&- ||
		echo "skip: rows of $program: it failed or took more than $seconds s"
	jq -c --arg command "$program --json $*" '. + {command: $command[0:200]}' rows >>"$RESULTS"
}

wants() { [[ $parts == *" $1 "* ]]; }

awk 'BEGIN { for (i = 0; i < 3000; i++)
	printf "int f%d(int *a, int n)\n{\n\tint s = %d, i;\n\tfor (i = 0; i < n; i++)\n\t\t" \
	"switch (a[i] & 7) { case 1: s += a[s & 3]; break; " \
	"case 2: s ^= n; break; default: s = s * 5 + i; }\n" \
	"\treturn s;\n}\n", i, i }' >load.c
if wants cpus; then
	echo
	echo "Many CPUs: their rings in plain memory, with samples of five programs taken here"
	cat >load.py <<-'PY'
	def walk(n, rows):
	    some = sorted(rows, key=lambda r: r % n)[0]
	    return some if n < 3 else walk(n - 1, rows) + walk(n - 2, rows)
	while True:
	    walk(12, list(range(50)))
	PY
	rows 90 bench_scale_linux --dir "$work" cpus 'exec python3 load.py' \
		"exec sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x + 1
			from c) select sum(length(hex(x))) from c'" \
		'i=0; while :; do i=$((i + 1)); case $i in *7) test "$i" = 1 ;; esac; done' \
		"exec $(gcc -print-prog-name=cc1) -quiet -O2 -o /dev/null load.c" \
		"exec node -e 'function f(n) { return n < 2 ? n : f(n - 1) + f(n - 2) }
			for (;;) f(20)'"
fi

# 40 times 18,750 functions of 4 rows.
make_program()
{
	cat >rows.s <<-'S'
		.text
		.rept 18750
		.cfi_startproc
		push %rbx
		.cfi_adjust_cfa_offset 8
		push %rbp
		.cfi_adjust_cfa_offset 8
		sub $16, %rsp
		.cfi_adjust_cfa_offset 16
		add $32, %rsp
		.cfi_adjust_cfa_offset -32
		ret
		.cfi_endproc
		.endr
		.section .note.GNU-stack,"",@progbits
	S
	cat >main.c <<-'C'
	static volatile unsigned long n;
	static __attribute__((noinline)) void leaf(void) { for (;;) n++; }
	static __attribute__((noinline)) void middle(void) { leaf(); n++; }
	int main(void) { middle(); n++; return 0; }
	C
	gcc -c rows.s && gcc -O1 -fomit-frame-pointer -o made main.c $(yes rows.o | head -40)
}

large() { [ ! -x "$(command -v "$1")" ] || rows 60 bench_scale_linux --dir "$work" large "$@"; }

if wants large; then
	echo
	echo "Large programs: from the first sample to the first complete stack, and their tables"
	make_program && PATH=.:$PATH large made 'exec ./made'
	large clang 'while :; do clang -O2 -c -o /dev/null load.c; done'
	large chromium "exec chromium --headless --no-sandbox --disable-gpu --dump-dom \
		--user-data-dir=$work/chromium \
		'data:text/html,<script>for (let i = 0; i < 1e10; i++);</script>'"
fi
if wants start; then
	echo
	echo "Start: recorder collect among 1,000 processes with 50 mappings each, median of 5"
	rows 90 bench_start_linux --dir "$work" "$RECORDER"
fi
