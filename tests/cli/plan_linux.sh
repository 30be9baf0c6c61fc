#!/bin/bash
# check --plan: what it says of the buffer is what a recording needs meanwhile. Both look at the same ten
# seconds of this machine, so that other load on it disturbs neither.
# time limit: 180
. "$TOP/tests/support/cli.sh"
need_perf

"$BUILD/programs/burn" 100 >/dev/null & burn=$!
trap 'kill $burn 2>/dev/null' EXIT
ask=(--freq 1999)

# Segments are full ones, 8,192 samples; the first lists what was running at the start, so it is left out.
look()
{
	"$RECORDER" status --store p.db --json
}
compare()
{
	look >first.json
	"$RECORDER" check --plan --json --store none.db --buffer-mb 1 "${ask[@]}" 2>err |
		jq -c 'select(.check == "plan")' >plan.json
	look >second.json
	jq -n --slurpfile p plan.json --slurpfile a first.json --slurpfile b second.json '
		($b[0].segments - $a[0].segments) as $n | ($b[0].bytes_per_sample * $b[0].segments
			- $a[0].bytes_per_sample * $a[0].segments) as $bytes |
		$p[0].bytes_per_sample as $said | ($bytes / $n) as $is |
		{$said, $is, ratio: ($said / $is), seconds: $p[0].history_s}' >compared
	cat compared >&2
	jq -e '.ratio > 0.9 and .ratio < 1.1' compared >/dev/null          # else once more
}
"$RECORDER" collect --store p.db "${ask[@]}" --max-cpu-percent 0 2>log & recorder=$!
sleep 7
compare || compare || compare
kill -INT $recorder
wait $recorder
check plan_says_how_far_the_buffer_reaches jq -e '.verdict == "ok" and .history_s > 0 and
	.samples_per_s > 100 and .memory_bytes > 1048576' plan.json
check plan_stores_nothing test ! -e none.db
# On a quiet machine they differ by under 10 percent; what else starts here meanwhile adds to that.
check a_sample_takes_about_as_many_bytes_as_was_said jq -e '.ratio > 0.8 and .ratio < 1.25' compared
