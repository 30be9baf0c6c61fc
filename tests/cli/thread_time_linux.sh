#!/bin/bash
# Thread time: a program that burns, sleeps, waits for a lock and reads a cold file, and measures
# itself; each of these is found where it belongs, and each thread's times add up to its life.
# time limit: 90
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

cat >spends.c <<'END'
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static double clock_s(clockid_t id)
{
	struct timespec t;

	clock_gettime(id, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

__attribute__((noinline)) void burns(double s)
{
	double end = clock_s(CLOCK_THREAD_CPUTIME_ID) + s;

	while (clock_s(CLOCK_THREAD_CPUTIME_ID) < end)
		;
}

__attribute__((noinline)) void sleeps(unsigned us) { usleep(us); }
__attribute__((noinline)) void waits(void)
{
	pthread_mutex_lock(&lock);
	pthread_mutex_unlock(&lock);
}

__attribute__((noinline)) void reads_cold(int fd)
{
	char page[4096];
	off_t at;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	for (at = 0; pread(fd, page, sizeof(page), at) > 0; at += 4 * (off_t)sizeof(page))
		;
}

/* By the kernel's own count: its second number, in ns. */
static double waited_for_a_cpu_s(void)
{
	unsigned long long ran, waited = 0;
	FILE *f = fopen("/proc/thread-self/schedstat", "r");

	if (!f || fscanf(f, "%llu %llu", &ran, &waited) != 2)
		puts("no_schedstat 1");
	return (double)waited / 1e9;
}

static void *holds(void *arg)
{
	pthread_mutex_lock(&lock);
	usleep(2700000);             /* longer than the second after which a part is told */
	pthread_mutex_unlock(&lock);
	return arg;
}

/* What took how long: seconds, one a line. */
int main(int n, char **v)
{
	double begin = clock_s(CLOCK_MONOTONIC), at = begin;
	pthread_t thread;
	int fd = n > 1 ? open(v[1], O_RDONLY) : -1;

#define NOW clock_s(CLOCK_MONOTONIC)
#define SAY(what) printf("%s %.6f\n", what, NOW - at), at = NOW
	pthread_create(&thread, 0, holds, 0);
	usleep(100000);
	SAY("starts");
	waits();
	SAY("waits");
	sleeps(500000);
	SAY("sleeps");
	reads_cold(fd);
	SAY("reads_cold");
	burns(0.7);
	SAY("burns");
	pthread_join(thread, 0);
	printf("ready %.6f\n", waited_for_a_cpu_s());
	printf("cpu %.6f\nwhole %.6f\n", clock_s(CLOCK_THREAD_CPUTIME_ID), NOW - begin);
	return fflush(stdout);
}
END
gcc -O1 -pthread -o spends spends.c
head -c 16000000 /dev/urandom >cold.bin
sync cold.bin

timeout 80 "$RECORDER" collect --store time.db --wakers --delay-after-trigger-sec 1 \
	--stop-on-process spends \
	2>log & collect=$!
wait_for 15 grep -q recording log
sleep 0.5
# The time that interrupts and a hypervisor took from the CPUs, in s (proc(5)). The clock of a
# running thread goes on meanwhile, but the kernel does not count that time as the thread's.
taken() { awk -v hz="$(getconf CLK_TCK)" '$1 == "cpu" {print ($7 + $8 + $9) / hz}' /proc/stat; }
began=$EPOCHREALTIME
taken=$(taken)
./spends cold.bin >said
taken=$(awk -v a="$taken" -v b="$(taken)" 'BEGIN {print b - a}')
awk -v a="$began" -v b="$EPOCHREALTIME" 'BEGIN {printf "outside %.6f\n", b - a}' >>said
sleep 0.2
wait $collect
check a_run_with_thread_time_ends_well test $? -eq 0
"$RECORDER" export --store time.db --metric off-cpu -f --process spends >folded 2>err
"$RECORDER" show --store time.db --process spends --json >show.json 2>err

# seconds PATTERN KIND: print the seconds of the main thread's folded stacks that match and end in
# that leaf.
main=spends-$(grep -o 'spends (pid [0-9]*' log | head -1 | grep -o '[0-9]*$')
seconds()
{
	grep -F "$main;" folded | grep -E "$1" |
		grep -E "!($2)_TIME( [0-9]+$|;\[thread\]!(READIED_BY|NOT_READIED_YET))" |
		awk '{s += $NF} END {printf "%.6f\n", s / 1e9}'
}
said() { awk -v what="$1" '$1 == what {print $2}' said; }
# near A B PERCENT SLACK: A equals B within that percentage or within SLACK seconds
near() { echo "$1 $2" && awk -v a="$1" -v b="$2" -v p="$3" -v s="$4" \
	'BEGIN {d = a > b ? a - b : b - a; exit !(d <= b * p / 100 + s)}'; }

# between A B C: A <= B <= C, with a tolerance of 2 % and 0.03 s
between() { echo "$1 $2 $3" && awk -v a="$1" -v b="$2" -v c="$3" \
	'BEGIN {exit !(b >= a * 0.98 - 0.03 && b <= c * 1.02 + 0.03)}'; }

# Its own measurement begins after its first instruction and ends before its last.
check all_its_times_add_up_to_its_life \
	between "$(said whole)" "$(seconds . 'CPU|BLOCKED|DISK|READIED|UNKNOWN')" "$(said outside)"
if jq -e '.thread_time.unknown_s > 0.02' show.json >json.out; then
	check what_is_not_known_is_said eval \
		'"$RECORDER" show --store time.db --process spends 2>err | grep -q "s unknown"'
	echo "skip times_are_where_they_were_spent: the kernel lost switches," \
		"or they were not recorded yet when it began"
	exit 0
fi
# cpu_is SECONDS S: SECONDS equal S, give or take the time that the machine took meanwhile
cpu_is() { between "$2" "$1" "$(awk -v s="$2" -v t="$taken" 'BEGIN {print s + t}')"; }
check its_cpu_time_is_what_the_kernel_counts cpu_is "$(seconds . CPU)" "$(said cpu)"
if [ "$(said no_schedstat)" ]; then
	echo "skip its_time_without_a_cpu_is_what_the_kernel_counts:" \
		"this kernel counts none (CONFIG_SCHED_INFO)"
else
	check its_time_without_a_cpu_is_what_the_kernel_counts \
		near "$(seconds . READIED)" "$(said ready)" 10 0.1
fi
if grep -q 'context switches a second' log; then
	echo "skip times_are_where_they_were_spent: over 10,000 context switches a second here," \
		"not all have stacks"
elif jq -e '.lost > 0' show.json >json.out; then
	echo "skip times_are_where_they_were_spent:" \
		"the kernel lost $(jq .lost show.json) records, which may be their stacks"
else
	check what_it_slept_is_blocked_there near "$(seconds '!sleeps;' BLOCKED)" \
		"$(awk -v s="$(said sleeps)" -v r="$(seconds '!sleeps;' READIED)" \
		'BEGIN {print s - r}')" 5 0
	check what_it_waited_for_a_lock_is_blocked_there \
		near "$(seconds '!waits;' 'BLOCKED|READIED')" "$(said waits)" 5 0.02
	spends='\[thread\]!spends \([0-9]+\) thread [0-9]+'
	check what_it_burnt_is_cpu_there cpu_is "$(seconds '!burns;' CPU)" 0.7
	check what_it_read_is_where_it_reads near \
		"$(seconds '!reads_cold;' 'CPU|BLOCKED|DISK|READIED')" "$(said reads_cold)" 5 0.03
	check a_wait_has_the_stack_of_who_ended_it grep -qE \
		"!waits;.*!BLOCKED_TIME;.thread.!READIED_BY;$spends;.*!holds;.*unlock" folded
	check all_of_a_long_wait_has_it eval \
		'! grep -F "$main;" folded | grep "!waits;" | grep -E "(BLOCKED_TIME|YET) "'
	disk=$(seconds '!reads_cold;' DISK)
	rest=$(awk -v r="$(said reads_cold)" \
		-v c="$(seconds '!reads_cold;' 'CPU|READIED')" 'BEGIN {print r - c}')
	if awk -v r="$rest" 'BEGIN {exit !(r < 0.03)}'; then
		echo "skip waits_for_the_disk_are_disk_time: the file was in memory," \
			"or its disk is as fast"
	else
		check waits_for_the_disk_are_disk_time near "$disk" "$rest" 10 0.03
	fi
fi
check show_says_what_they_are_in_all \
	jq -e '.thread_time.threads == 2 and .thread_time.blocked_s > 1.5' show.json
check report_has_them_as_a_tree eval \
	'"$RECORDER" report --store time.db --metric off-cpu --process spends \
	--by-name --json 2>err |
	jq -es "any(.name == \"[thread]!BLOCKED_TIME\" and .inclusive_ms > 1500)"'
check samples_of_the_cpu_are_counted_alone \
	jq -e '[.hottest[].stack[].frame | select(endswith("_TIME"))] == []' show.json
