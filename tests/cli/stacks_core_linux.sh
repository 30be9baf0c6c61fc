#!/bin/bash
# recorder stacks --core: the stacks of dead processes, each frame's address beside gdb's.
# time limit: 900
. "$TOP/tests/support/cli.sh"

cat >crash.c <<'C'
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
static const char *how;
__attribute__((noinline)) static void *take(void *second)
{
	pthread_mutex_lock(second == &a ? &b : &a);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(second);
	return NULL;
}
__attribute__((noinline)) static void on_signal(int n) { (void)n; abort(); }
__attribute__((noinline)) static int deep(int n)
{
	volatile char page[4096];
	page[0] = (char)n;
	return n ? deep(n - 1) + page[0] : *(volatile int *)0x10;
}
__attribute__((noinline)) static int compare(const void *x, const void *y)
{
	(void)x, (void)y;
	if (!strcmp(how, "abort"))
		abort();
	if (!strcmp(how, "call"))
		((void (*)(void))0)();
	if (!strcmp(how, "pause"))
		pause();
	if (!strcmp(how, "handler"))
		raise(SIGUSR1);
	return deep(!strcmp(how, "deep") ? 300 : 0);
}
int main(int argc, char **argv)
{
	pthread_t t;
	stack_t alt = {.ss_sp = malloc(65536), .ss_size = 65536};
	struct sigaction handler = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	int v[4] = {3, 1, 2, 0};
	how = argc > 1 ? argv[1] : "";
	sigaltstack(&alt, NULL);
	sigaction(SIGUSR1, &handler, NULL);
	pthread_barrier_init(&both, NULL, 3);
	pthread_create(&t, NULL, take, &a);
	pthread_create(&t, NULL, take, &b);
	pthread_barrier_wait(&both);
	usleep(200000);
	qsort(v, 4, sizeof(*v), compare);
	return 0;
}
C
gcc -O1 -fno-optimize-sibling-calls -w -pthread -o crash crash.c || exit 1
ulimit -c unlimited
if ! { ./crash; } 2>/dev/null && [ ! -s core ]; then
	echo "skip stacks_core_linux: the kernel writes no core here:" \
		"$(cat /proc/sys/kernel/core_pattern)"
	exit 0
fi

# dies NAME COMMAND...: its core is NAME.core
dies()
{
	local name=$1
	shift
	rm -f core
	{ "$@"; } >"$name.out" 2>&1
	mv core "$name.core" 2>/dev/null
}

# gdb's frames without those that it makes up for inlined functions and tail calls
cat >frames.py <<'PY'
import gdb
gdb.execute("set backtrace past-main on")
for t in sorted(gdb.selected_inferior().threads(), key=lambda t: t.ptid[1]):
    t.switch()
    f, pcs = gdb.newest_frame(), []
    while f:
        if f.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
            pcs.append(hex(f.pc()))
        f = f.older()
    print("FRAMES", t.ptid[1], *pcs)
PY
why_no_gdb="gdb with Python is not installed (apt-get install gdb)"
gdb -batch -ex 'python print("works")' 2>/dev/null | grep -q works && why_no_gdb=

# as_gdb NAME PROGRAM [CORE]: the same frames in all threads, of those that gdb can follow
as_gdb()
{
	local core=${3:-$1.core}
	if [ "$why_no_gdb" ]; then
		echo "skip $1_is_as_gdb_says: $why_no_gdb"
		return
	fi
	gdb -batch -x frames.py "$2" "$core" 2>/dev/null | sed -n 's/^FRAMES //p' >"$1.gdb"
	"$RECORDER" stacks --core "$core" --json 2>"$1.err" | jq -r '[.tid, (.frames[] |
		.address // (if .frame == "0x0" then "0x0" else "-" end))] | join(" ")' |
		sort -n >"$1.ours"
	# Generated code has no address here, and gdb does not know its frames.
	awk 'NR == FNR { theirs[$1] = $0; next }
		{ n = split($0, mine, " "); split(theirs[$1], gdb, " "); threads++
			for (i = 1; i <= n && mine[i] != "-"; i++)
				if (mine[i] != gdb[i]) { bad++; print theirs[$1]; print; break }
			if (i > n && gdb[n + 1] && gdb[n + 1] != "0x0") { bad++; print; }
			frames += i - 2 }
		END { printf "%d threads, %d frames, %d differ\n", threads, frames, bad
			exit !(threads && frames && !bad) }' "$1.gdb" "$1.ours" >"$1.compared"
	check "$1_is_as_gdb_says" cat_fails "$1.compared"
}
cat_fails() { cat "$1"; grep -q ' 0 differ$' "$1"; }

dies segv ./crash
"$RECORDER" stacks --core segv.core >out 2>err
check the_cause_stands_first grep -qE \
	'^program crash \([0-9]+\) died of SIGSEGV at address 0x10 \(not mapped\), thread [0-9]+$' \
	<(head -n 1 out)
check the_thread_that_died_is_the_first \
	[ "$(sed -n 's/.*, thread //p;q' out)" = "$(awk '/^thread/ { print $2; exit }' out)" ]
check nothing_is_in_doubt [ ! -s err ]
check the_deadlock_is_told grep -qE \
	'^deadlock: thread ([0-9]+) waits for ([0-9]+), \2 waits for \1$' out
check and_the_mutex_has_its_owner \
	grep -cqE '^thread [0-9]+  waits for the mutex at 0x[0-9a-f]+, which thread [0-9]+' out
check no_stack_is_cut_or_broken expect_exit 1 grep -E '\[(broken|truncated|fp)\]$' out
as_gdb segv ./crash
for how in abort call handler deep; do
	dies $how ./crash $how
	as_gdb $how ./crash
done

check json_has_the_cause jq -se '.[0].died_of == "SIGSEGV" and .[0].fault_address == "0x10" and
	(map(select(.died_of)) | length == 1)' <("$RECORDER" stacks --core segv.core --json)
check a_pipe_is_as_good_as_a_file cmp <("$RECORDER" stacks --core segv.core) \
	<(cat segv.core | "$RECORDER" stacks --core -)
check group_folds_equal_stacks [ "$("$RECORDER" stacks --core segv.core --group |
	grep -c '^thread')" = 2 ]
check jstack_has_its_form grep -q '^   java.lang.Thread.State: BLOCKED (on object monitor)$' \
	<("$RECORDER" stacks --core segv.core --format jstack)
"$RECORDER" stacks --core segv.core --store s.db >/dev/null 2>err
check store_keeps_it_as_an_incident grep -q 'stored as incident 1' err
check whose_cause_is_the_death jq -e '.samples == 3 and
	(.reason | test("^program crash .* died of SIGSEGV"))' \
	<("$RECORDER" show --store s.db --json)

check without_any_output_it_is_stored_too expect_exit 1 bash -c \
	'"$RECORDER" stacks --core - --store pipe.db <segv.core >&- 2>&-'
check and_is_sound "$RECORDER" verify --store pipe.db
check and_complete jq -e '.samples == 3' <("$RECORDER" show --store pipe.db --json 2>err)

crashes=()
for i in 1 2 3 4 5; do
	"$RECORDER" stacks --core segv.core --store five.db >/dev/null 2>"five.$i" & crashes+=($!)
done
wait "${crashes[@]}"
check crashes_at_the_same_moment_are_all_kept \
	[ "$("$RECORDER" list --store five.db --json | wc -l)" = 5 ]

# ---- Go ------------------------------------------------------------------------------------------

cat >go.go <<'GO'
package main

import ("sync"; "time")

//go:noinline
func crash(p *int) int { return *p }
//go:noinline
func deep(n int, p *int) int {
	if n == 0 { return crash(p) }
	return deep(n-1, p) + 1
}
func main() {
	var mu sync.Mutex
	mu.Lock()
	go func() { for i := 0; ; i++ { if i < 0 { println(i) } } }()
	go mu.Lock()
	time.Sleep(200 * time.Millisecond)
	deep(20, nil)
}
GO
# Each thread's frames are gdb's first ones, and those that gdb has more are what is left on the
# stack of a scheduler: three at most.
as_gdb_of_go()
{
	awk 'NR == FNR { theirs[$1] = $0; next }
		{ n = split($0, mine, " "); m = split(theirs[$1], gdb, " "); threads++
			for (i = 1; i <= n && i <= m && gdb[i] != "0x7"; i++)
				if (mine[i] != gdb[i]) { bad++; print theirs[$1]; print; break }
			if (n < m - 3) { bad++; print theirs[$1]; print } }
		END { printf "%d threads, %d differ\n", threads, bad
			exit !(threads > 2 && !bad) }' \
		go.gdb go.ours
}
why_no_go=$why_no_gdb
[ "$why_no_go" ] || command -v go >/dev/null || why_no_go="Go is not installed"
[ "$why_no_go" ] || why_no_go=$(GOCACHE=$TMP/gocache go build -o go go.go 2>&1)
if [ ! "$why_no_go" ]; then
	GOTRACEBACK=crash dies go ./go
	gdb -batch -x frames.py go go.core 2>/dev/null | sed -n 's/^FRAMES //p' >go.gdb
	"$RECORDER" stacks --core go.core --json 2>err |
		jq -r '[.tid, (.frames[].address // "-")] | join(" ")' >go.ours
	check frames_of_go_are_as_gdb_says as_gdb_of_go
	check a_panic_has_the_calls_that_led_to_it \
		[ "$("$RECORDER" stacks --core go.core | grep -c 'go!main.deep$')" -ge 20 ]
else
	echo "skip frames_of_go_are_as_gdb_says: $why_no_go"
fi

# ---- what is not there ---------------------------------------------------------------------------

head -c $(($(stat -c %s segv.core) - 200000)) segv.core >cut.core
expect a_core_that_is_cut_off_says_so 0 'cut off: .* MB of memory are missing' \
	stacks --core cut.core
head -c 1000 segv.core >short.core
expect one_without_a_thread_is_refused 1 'short.core' stacks --core short.core
echo hello >text.core
expect so_is_what_is_no_core 1 'text.core: it is neither a core dump' stacks --core text.core
printf '\x28\xb5\x2f\xfd1234' >packed.core
expect a_packed_one_says_how_to_unpack_it 1 'coredumpctl' stacks --core packed.core
expect exe_needs_a_core 2 'of a --core' stacks --exe crash -p 1
expect a_core_has_no_pid 2 'not with each other, -p' stacks --core segv.core -p 1

cp crash moved && mv crash crash.was
gcc -O0 -w -pthread -o crash crash.c
expect another_program_at_the_path_is_not_used 0 'crash is not used: its build id is not' \
	stacks --core segv.core
check so_its_frames_have_no_names grep -qE '^    crash!\+0x[0-9A-F]+$' out
expect exe_says_where_it_is 0 '' stacks --core segv.core --exe moved
check and_gives_the_names grep -q '^    moved!compare$' out
expect exe_is_checked_too 0 'crash is not used: its build id' \
	stacks --core segv.core --exe crash
mv crash.was crash

# ---- cores of others -----------------------------------------------------------------------------

if why=$(gcc -m32 -O1 -fno-optimize-sibling-calls -w -pthread -o crash32 crash.c 2>&1); then
	dies bits32 ./crash32
	if [ -s bits32.core ]; then
		as_gdb bits32 ./crash32
		check bits32_has_its_deadlock grep -q '^deadlock: thread' \
			<("$RECORDER" stacks --core bits32.core)
	else
		echo "skip bits32: this kernel runs no 32-bit programs"
	fi
else
	echo "skip bits32: $(head -n 1 <<<"$why")"
fi

if command -v gcore >/dev/null; then
	./crash pause & target=$!
	wait_for 20 grep -q '^34 ' /proc/$target/syscall
	gcore -o living $target >gcore.out 2>&1
	kill $target; wait $target 2>/dev/null
	mv living.$target living.core
	as_gdb living ./crash
	expect gcores_dump_is_of_one_that_lived 0 'lived when its memory was dumped' \
		stacks --core living.core
	check it_waits_in_pause grep -q '^thread [0-9]*  waits in pause' out
else
	echo "skip gcore: gdb is not installed"
fi

cat >crash.cc <<'C'
#include <stdexcept>
struct Work {
	template <class T> [[gnu::noinline]] T run(T v)
	{
		if (v > 2)
			throw std::runtime_error("too many");
		return v;
	}
};
int main(int argc, char **) { return Work().run<int>(argc + 5) + 1; }
C
if command -v g++ >/dev/null; then
	g++ -O1 -o crashcc crash.cc && dies cc ./crashcc
	as_gdb cc ./crashcc
	check a_throw_nobody_catches_has_its_function grep -q 'crashcc!Work::run<int>' \
		<("$RECORDER" stacks --core cc.core)
else
	echo "skip cc: g++ is not installed"
fi

cat >crash.rs <<'C'
#[inline(never)]
fn inner(v: &[u32], i: usize) -> u32 { v[i] }
fn main() { println!("{}", inner(&vec![1, 2, 3], std::env::args().count() + 9)); }
C
if command -v rustc >/dev/null && rustc -g -C panic=abort -O -o crashrs crash.rs 2>rustc.out; then
	dies rs ./crashrs
	as_gdb rs ./crashrs
	check a_panic_has_its_function grep -q 'crashrs!crash::inner' \
		<("$RECORDER" stacks --core rs.core)
else
	echo "skip rs: no rustc here"
fi

cat >crash.py <<'C'
import ctypes
def deep(n):
    return deep(n - 1) if n else ctypes.string_at(0x10)
deep(5)
C
if command -v python3 >/dev/null; then
	python=$(python3 -c 'import os, sys; print(os.path.realpath(sys.executable))')
	dies py "$python" crash.py
	as_gdb py "$python"
else
	echo "skip py: no python3 here"
fi

# Java's frames are those of jstack, and the native ones those of gdb.
if command -v javac >/dev/null && command -v jstack >/dev/null; then
	javac --release 11 -d . "$TOP/tests/programs/JavaThreads.java" >javac.out 2>&1
	java=$(readlink -f "$(command -v java)")
	"$java" -Xmx64m -cp . JavaThreads >java.out 2>&1 & target=$!
	wait_for 60 grep -q ready java.out
	jstack $target >java.jstack
	rm -f core
	kill -ABRT $target; wait $target 2>/dev/null
	mv core java.core
	as_gdb java "$java"
	"$RECORDER" stacks --core java.core --store java.db >java.txt 2>&1
	"$RECORDER" export --store java.db --metric event -f >java.folded 2>err
	awk -f "$TOP/tests/support/java_stacks.awk" java.folded java.jstack >java.same
	check java_frames_are_those_of_jstack awk '{ print }
		END { exit !($2 >= 500 && $4 == 0 && $6 >= 18) }' java.same
else
	echo "skip java: no JDK here"
fi
