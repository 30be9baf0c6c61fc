#!/bin/bash
# Names of code that was loaded into the running kernel: a BPF program from before the recorder
# started, and one from after.
. "$TOP/tests/support/cli.sh"
need_perf

"$BUILD/programs/bpf_filter_linux" early 7 >early.out 2>early.err & early=$!
wait_for 5 grep -q ready early.out || {
	wait $early
	[ $? -eq 77 ] && { echo "skip kernel_names: $(cat early.err)"; exit 0; }
}
"$RECORDER" collect --store s.db --freq 499 --max-cpu-percent 0 /MaxCollectSec:4 2>log & recorder=$!
wait_for 10 "$RECORDER" status --store s.db
sleep 0.5
"$BUILD/programs/bpf_filter_linux" late 2 >late.out 2>late.err
wait $recorder
kill $early 2>/dev/null
"$RECORDER" export --store s.db --id 1 -f --no-ids >all.folded 2>err
grep -o ';[^;]*bpf_prog[^;]*' all.folded | sort | uniq -c >&2
check bpf_program_from_before_the_start_has_its_name \
	grep -qE '^bpf_filter_linux;.*;bpf!bpf_prog_[0-9a-f]{16}_early_\[k\] ' all.folded
check bpf_program_that_came_later_has_its_name \
	grep -qE '^bpf_filter_linux;.*;bpf!bpf_prog_[0-9a-f]{16}_late_\[k\] ' all.folded
check kernel_frames_are_marked_in_folded_output \
	test "$(grep -oE 'kernel\][^;]*!?[^;]*' all.folded | grep -vcE '_\[k\]( [0-9]+)?$')" -eq 0
