#!/bin/bash
# --on-fire gcore: a firing also writes a small core, which gdb and `stacks --core` read; never of a
# process that opted out, and of bounded number.
# time limit: 240
. "$TOP/tests/support/cli.sh"

cat >waits.c <<'C'
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>
static pthread_mutex_t a = PTHREAD_MUTEX_INITIALIZER, b = PTHREAD_MUTEX_INITIALIZER;
static pthread_barrier_t both;
__attribute__((noinline)) static void *take(void *second)
{
	pthread_mutex_lock(second == &a ? &b : &a);
	pthread_barrier_wait(&both);
	pthread_mutex_lock(second);
	return NULL;
}
__attribute__((noinline)) static int deep(int n)
{
	volatile char page[4096];
	page[0] = (char)n;
	return n ? deep(n - 1) + page[0] : pause();
}
static void *secret(void *text)
{
	volatile char on_stack[64];
	strcpy((char *)on_stack, text);
	strcat((char *)on_stack, "-kept-out");
	return (void *)(long)(pause() + on_stack[0]);
}
static void hide(void)
{
	size_t n = 1 << 20;
	char *stack = mmap(0, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_attr_t a;
	pthread_t t;
	madvise(stack, n, MADV_DONTDUMP);
	pthread_attr_init(&a);
	pthread_attr_setstack(&a, stack, n);
	pthread_create(&t, &a, secret, "password");
}
int main(int argc, char **argv)
{
	pthread_t t;
	if (argc > 1 && !strcmp(argv[1], "hides"))
		hide();
	pthread_barrier_init(&both, NULL, 3);
	pthread_create(&t, NULL, take, &a);
	pthread_create(&t, NULL, take, &b);
	pthread_barrier_wait(&both);
	if (argc > 1 && !strcmp(argv[1], "private"))
		prctl(PR_SET_DUMPABLE, 0);
	return deep(20);
}
C
gcc -O1 -g -fno-optimize-sibling-calls -pthread -o waits waits.c || exit 1
./waits & target=$!
trap 'kill $target $others 2>/dev/null' EXIT
others=
if ! cat "/proc/$target/syscall" >/dev/null 2>&1; then
	echo "skip on_fire_linux: ptrace(2) is not allowed here"
	exit 0
fi
rule='/StopOnPerfCounter:System:Uptime:>0'
"$RECORDER" counters System 2>/dev/null | grep -q '^System:Uptime' ||
	rule='/StopOnPerfCounter:Memory:Available MBytes:>1'

# fires PID [OPTION...]: one firing whose rule names this process.
fires()
{
	local of=$1
	shift
	timeout 60 "$RECORDER" collect --source none --store i.db --on-fire gcore --poll-sec 0.1 \
		--min-sec-for-trigger 0.2 --delay-after-trigger-sec 1 --max-collect-sec 20 \
		"$rule;Stacks=$of" "$@" >fires.out 2>fires.err
}

fires $target
core=$(ls i.db.dumps/$target-*.core 2>/dev/null)
check a_firing_writes_a_core [ -s "$core" ]
check the_log_says_where grep -q "a dump of process $target is in $core" fires.err
check nobody_else_can_read_it [ "$(stat -c %a "$core") $(stat -c %a i.db.dumps)" = '600 700' ]
check it_is_small [ "$(stat -c %s "$core")" -lt 1000000 ]
check the_incident_has_its_path sh -c "'$RECORDER' export 1 --store i.db --format events-csv \
	2>/dev/null | grep -q 'Recorder,Dump,.*$core'"
check its_threads_and_their_deadlock_are_shown [ "$("$RECORDER" show 1 --store i.db --threads \
	2>/dev/null | grep -cE '^(thread|deadlock: thread) ')" = 4 ]
"$RECORDER" stacks -p $target 2>/dev/null | sed 1d >live.out
expect stacks_reads_it 0 "^program waits \\($target\\) lived" stacks --core "$core"
calls()
{
	sed 's/^\(thread [0-9]*\)  waits  /\1  /; s/waits in .*//; s/a call that.*//' "$1" |
		grep -E '^thread|^deadlock|!'
}
sed 1,2d out >dead.out
check its_frames_are_those_of_the_living_one diff <(calls live.out) <(calls dead.out)
check its_deadlock_is_told grep -q '^deadlock: thread' dead.out
if command -v gdb >/dev/null; then
	gdb -nx -batch -ex 'thread apply all bt' ./waits "$core" >gdb.out 2>&1
	check gdb_reads_every_frame sh -c "[ \$(grep -c ' deep (n=' gdb.out) -ge 21 ] &&
		[ \$(grep -c ' take (second=' gdb.out) = 2 ] && grep -q clone3 gdb.out"
else
	echo "skip on_fire_linux: no gdb"
fi

for i in 1 2 3 4 5 6 7 8 9; do
	touch -d "2020-01-0$i" "i.db.dumps/$i-1.core"
done
fires $target
check eight_are_kept_the_newest [ "$(ls i.db.dumps/*.core | wc -l) $(ls i.db.dumps | head -1)" = \
	"8 $(ls i.db.dumps | sort | head -1)" ]
check the_oldest_are_removed sh -c "[ ! -e i.db.dumps/1-1.core ] && [ ! -e i.db.dumps/3-1.core ] &&
	[ -e i.db.dumps/9-1.core ]"

# ---- who opted out -------------------------------------------------------------------------------

# opts_out NAME WHY COMMAND...
opts_out()
{
	local name=$1 why=$2 pid
	shift 2
	"$@" & pid=$!
	others="$others $pid"
	wait_for 20 sh -c "[ \$(ls /proc/$pid/task | wc -l) = 3 ]"
	sleep 0.3
	fires $pid
	check "$name" sh -c "grep 'process $pid opted out of dumps: $why' fires.err &&
		! ls i.db.dumps/$pid-*.core 2>/dev/null"
	kill $pid
}
./waits hides & hiding=$!
others="$others $hiding"
wait_for 20 sh -c "[ \$(ls /proc/$hiding/task | wc -l) = 4 ]"
sleep 0.3
fires $hiding
core=$(ls i.db.dumps/$hiding-*.core 2>/dev/null)
check memory_that_is_kept_out_of_cores_is_in_none sh -c "[ -s '$core' ] &&
	grep -qa waits '$core' && ! grep -qa password-kept-out '$core'"
check its_thread_is sh -c "[ \$('$RECORDER' stacks --core '$core' | grep -c '^thread') = 4 ]"
kill $hiding
opts_out a_filter_without_private_memory 'its coredump_filter' \
	sh -c 'echo 0 >/proc/self/coredump_filter; exec ./waits'
opts_out a_hard_limit_of_0 'its hard limit' sh -c 'ulimit -H -c 0; exec ./waits'
if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	chmod 755 . waits
	opts_out one_that_is_not_dumpable 'it is not dumpable' \
		setpriv --reuid 65534 --clear-groups ./waits private
fi
expect another_systems_kind_is_refused 2 'here it is --on-fire gcore' \
	collect --on-fire minidump "$rule" --store x.db
expect no_kind_is_refused 2 "not 'x'" collect --on-fire x "$rule" --store x.db
expect nor_is_it_without_a_rule 2 "not 'x'" collect --on-fire x --store x.db
