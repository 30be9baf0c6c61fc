#!/bin/bash
# check --plan predicts the buffer that a recording needs at the same time. Both look at the same
# ten seconds of this machine, so other load disturbs neither. If the load changes within them, the
# segments of the two differ; then the script tries again, three times in all.
# time limit: 180
. "$TOP/tests/support/cli.sh"
need_perf

"$BUILD/programs/burn" 120 >/dev/null & burns=$!
"$BUILD/programs/burn" 120 >/dev/null & burns+=" $!"
# shellcheck disable=SC2086
trap 'kill $burns 2>/dev/null' EXIT
ask=(--freq 1999 --pre-sec 10)           # 1 MB holds some 30 s of that

# Segments are full ones, 8,192 samples; the first lists what was running at the start, so it is
# left out.
look() { "$RECORDER" status --store p.db --json; }
has_a_segment() { [ "$(look | jq .segments)" -ge 1 ]; }
compare()
{
	"$RECORDER" check --plan --json --store none.db --buffer-mb 1 \
		"${ask[@]}" >check.json 2>err & plan=$!
	# its start, which only the recording sees, and its first second
	sleep 3
	look >first.json
	wait $plan
	look >second.json
	jq -c 'select(.check == "plan")' check.json >plan.json
	jq -nc --slurpfile p plan.json --slurpfile a first.json --slurpfile b second.json '
		($b[0].segments - $a[0].segments) as $n | ($b[0].bytes_per_sample * $b[0].segments
			- $a[0].bytes_per_sample * $a[0].segments) as $bytes |
		$p[0].bytes_per_sample as $said | ($bytes / $n) as $is |
		{$said, $is, ratio: ($said / $is),
		seconds: $p[0].history_s, segments: $n}' >compared
	cat compared >&2
	jq -e '.ratio > 0.9 and .ratio < 1.1' compared >/dev/null
}
"$RECORDER" collect --store p.db "${ask[@]}" --max-cpu-percent 0 2>log & recorder=$!
wait_for 10 test -S p.db.ctl
wait_for 40 has_a_segment
compare || compare || compare
kill -INT $recorder
wait $recorder
check plan_says_how_far_the_buffer_reaches jq -e '.verdict == "ok" and .history_s > 0 and
	.samples_per_s > 100 and .memory_bytes > 1048576' plan.json
check plan_stores_nothing test ! -e none.db
check a_sample_takes_as_many_bytes_as_was_said jq -e '.ratio > 0.9 and .ratio < 1.1' compared
# The seconds are those bytes, the samples a second, and whole segments: tests/unit/engine/plan.c
# fills a ring.
check and_that_many_samples_fill_it \
	jq -e '.history_s * .samples_per_s * .bytes_per_sample / 1048576 | . > 0.9 and . < 1.1' \
	plan.json
