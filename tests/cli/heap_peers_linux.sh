#!/bin/bash
# run --heap, heaptrack and jemalloc's profile of the same run: the same five stacks keep most. Each
# of the three libraries passes a call on to the next.
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"
jemalloc=$(ls /usr/lib/*/libjemalloc.so.2 2>/dev/null | head -n 1)
if [ ! -e "$jemalloc" ] || ! command -v heaptrack >/dev/null || ! command -v jeprof >/dev/null; then
	echo "skip heap_peers_linux: no heaptrack, jemalloc, jeprof (heaptrack, libjemalloc-dev)"
	exit
fi

# Seven callers of the same two functions: what each keeps is 1.6 times what the next one does.
cat >peers.c <<'END'
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
#define APART __attribute__((noinline, noipa))
static void **kept;
APART void keep(size_t n) { void **p = malloc(n); *p = kept; kept = (void **)p; }
APART void drop(size_t n) { volatile char *p = malloc(n); *p = 1; free((void *)p); }
#define CALLER(name) APART void name(int i) { drop(9000); keep(100 + i % 4000); }
CALLER(a) CALLER(b) CALLER(c) CALLER(d) CALLER(e) CALLER(f) CALLER(g)
static void (*const callers[])(int) = {a, b, c, d, e, f, g};
int main(void)
{
	double part = 40000;
	printf("pid %d\n", getpid());
	fflush(stdout);
	nanosleep(&(struct timespec){.tv_sec = 1}, NULL);
	for (int k = 0; k < 7; k++, part /= 1.6)
		for (int i = 0; i < part; i++) {
			callers[k](i);
			if (i % 2000 == 0)
				nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
		}
	while (getchar() != EOF)
		;
	return 0;
}
END
gcc -O1 -g -w -o peers peers.c || exit 1

MALLOC_CONF=prof:true,prof_final:true,lg_prof_sample:14,prof_prefix:je LD_PRELOAD=$jemalloc \
	"$RECORDER" run --heap --heap-kb 16 --store peers.db heaptrack -o track ./peers \
	</dev/null >out 2>log
lost=$("$RECORDER" show --store peers.db --json 2>>log | jq '.lost // 0')
if [ "$lost" -gt 100 ]; then
	echo "skip heap_peers_linux: $lost events were lost, as this machine is busy"
	exit
fi
"$RECORDER" export --store peers.db --metric heap-net -f --process peers >recorder.all 2>>log
heaptrack_print -f track.* -F heaptrack.all --flamegraph-cost-type leaked >/dev/null 2>>log
jeprof --collapsed peers je."$(sed -n 's/^pid //p' out)".*.heap >jemalloc.all 2>>log

# Stacks of main() as "a;keep BYTES", most first: without modules, files and addresses.
for who in recorder heaptrack jemalloc; do
	sed -E 's/ \([^)]*\)//g; s/<[0-9a-f]*>//g; s/[^;]*!//g' $who.all |
		sed -nE 's/.*main;([a-g];(keep|drop))[^ ]* ([0-9]+)$/\1 \3/p' | sort -rnk2 |
		head -n 5 >$who
	echo "# $who: $(tr '\n' ' ' <$who)"
done
for who in recorder heaptrack jemalloc; do
	check "the_five_stacks_that_keep_most_are_the_same: $who" \
		test "$(cut -d' ' -f1 $who | tr '\n' ' ')" = 'a;keep b;keep c;keep d;keep e;keep '
done
# The fifth has 600 samples: 4 %. jemalloc counts what it gave, which is more than was asked for.
check their_bytes_are_those_that_heaptrack_counts awk '
	{ d = ($2 - $4) / $4; bad += d < -0.15 || d > 0.15 }
	END { exit !(NR == 5 && !bad) }' <(paste -d' ' recorder heaptrack)
