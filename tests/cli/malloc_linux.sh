#!/bin/bash
# A rule on malloc() of one quiet program, beside ten that call it all the time: the rule sees each
# call of the one and none of the others, which the kernel leaves out, and nothing is lost.
# time limit: 120
. "$TOP/tests/support/cli.sh"
need_perf
libc=$(ldd /bin/true | sed -n 's/.* => \(.*libc\.so[^ ]*\) .*/\1/p')
rule="uprobe:$libc:malloc;Process=quiet;FieldFilter=Arg1=4242"
if ! "$RECORDER" check --json --stop-on-event "$rule" >check.json 2>&1 &&
	grep -q '"verdict":"wrong"' check.json; then
	echo "skip malloc: $(jq -r 'select(.verdict == "wrong") | .text' check.json | head -1)"
	exit 0
fi

# calls N, or until it is killed: quiet asks for 4242 bytes, 50 times in a tenth of a second.
cat >calls.c <<'END'
#include <stdlib.h>
#include <time.h>
int main(int n, char **a)
{
	struct timespec t = {0, 100000000};
	long i, calls = n > 1 ? atol(a[1]) : 0;

	for (i = 0; !calls || i < calls; i++) {
		void *volatile p = malloc(calls ? 4242 : 64);

		free(p);
		if (calls && i % 50 == 49)
			nanosleep(&t, 0);
	}
	return 0;
}
END
gcc -O1 -o quiet calls.c && cp quiet noisy
noisy=
for _ in 1 2 3 4 5 6 7 8 9 10; do
	nice -n 19 timeout 100 ./noisy & noisy="$noisy $!"
done
timeout 100 "$RECORDER" collect --store m.db --history-mb 0 --freq 19 --max-cpu-percent 0 \
	--stop-on-event "$rule" --delay-after-trigger-sec 60 \
	--collect-multiple 2 \
	2>m.log & collect=$!
wait_for 30 grep -q 'recording this machine' m.log
./quiet 2000
seen()
{
	"$RECORDER" status --store m.db --json >status.json &&
		jq -e '.rules[0].seen >= 2000' status.json
}
wait_for 20 seen
"$RECORDER" stop --store m.db >/dev/null 2>&1
wait $collect
kill $noisy 2>/dev/null
wait $noisy 2>/dev/null

check its_first_call_fires grep -q 'fired: uprobe.*:malloc of quiet' m.log
check it_sees_its_2000_calls_and_no_other jq -es '.[0].rules[0] | .seen == 2000 and .matched == 2000
	and .dropped_by_process == 0 and .dropped_by_filter == 0' status.json
check nothing_is_lost jq -es '.[0].lost == 0' status.json
check nor_was_the_probe_switched_off expect_exit 1 grep -E 'times in a second|switched off' m.log
