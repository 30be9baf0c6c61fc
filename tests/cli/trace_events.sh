#!/bin/bash
# recorder events, compared with PerfView on the same traces: how many events of each kind; the
# time, CPU and length of the first five of each kind. Skipped if the traces are missing.
. "$TOP/tests/support/cli.sh"

traces=$TOP/../shared/data/etl
if [ ! -d "$traces" ]; then
	echo "skip trace_events: $traces is not there"
	exit 0
fi
if "$RECORDER" events --from "$traces/lxcore_kernel.etl" --count 2>&1 |
		grep -q 'reads no trace files'; then
	echo "skip trace_events: this version reads no trace files"
	exit 0
fi

# Events that PerfView's baselines leave out.
left_out='^Windows Kernel/(Thread/DCSt(art|op)|FileIO/(Name|File[A-Z][a-z]+)'
left_out+='|StackWalk/.*|.*Opcode\([0-9]+\)):'
left_out+='|/ClrStack/Walk:|ILToNativeMap|Rundown/Method/DCStopVerbose:|/Image/HypercallPage:'

# Samples of idle CPUs: thread 0, in neither a DPC nor an ISR.
idle='"name":"PerfInfo/Sample".*"ThreadID":0,.*"ExecutingDPC":"False","ExecutingISR":"False"'

# Print the events of trace $1 as "provider/name:count".
our_counts()
{
	local nidle=0

	"$RECORDER" events --from "$1" --count --json >counts.json || return
	if grep -q PerfInfo/Sample counts.json; then
		nidle=$("$RECORDER" events --from "$1" --name PerfInfo/Sample --json |
			grep -c "$idle")
	fi
	jq -r --argjson nidle "$nidle" \
		'if .name == "PerfInfo/Sample" then .count -= $nidle else . end |
		"\(.provider)/\(.name):\(.count)"' counts.json
}

counts_are_the_same()
{
	our_counts "$1" | sort >ours
	sed -n 's/^COUNT //p' "$2" | tr -d '\r' | sort >theirs
	[ -s theirs ] || return
	if [ -n "$(comm -13 ours theirs)" ]; then
		echo 'PerfView has:' && comm -13 ours theirs
		echo 'we have:' && comm -23 ours theirs
		return 1
	fi
	comm -23 ours theirs | grep -vE "$left_out" && return 1
	return 0
}

# Whom PerfView tells of these is not who issued or wrote them.
others='/DiskIO\/(WriteInit|FlushBuffers)|SystemConfig\/Services/s|/-?[0-9]+ |/? |'

# "ms cpu/pid bytes name", of events whose kind the baseline lists.
theirs_listed()
{
	local line='EVENT ([0-9.,]+): (.*) PID=(-?[0-9]+);.*; ProceNum=([0-9]+);'
	line+=' DataLen=([0-9]+);.*'

	tr -d '\r' <"$1" | sed -nE '
		s|^(\xef\xbb\xbf)?'"$line"'|\2 \5/\4 \6 \3|p' |
		awk '{ gsub(",", "", $1); print }' | sed -E "$others"
}

ours_listed()
{
	"$RECORDER" events --from "$1" --json |
		grep -vE "$idle" |
		grep -vE '"name":"(StackWalk|ClrStack|FileIO|Method/IL|Method/DCStopVerbose)' |
		jq -r '"\(.t_ms) \(.cpu)/\(.pid // -1) \(.payload_bytes) \(.provider)/\(.name)"' |
		awk 'NR == FNR { kinds[substr($0, index($0, $4))]; next }
		     { name = substr($0, index($0, $4)) }
		     (name in kinds) && ++seen[name] <= 5' theirs.listed - | sed -E "$others"
}

listed_events_are_the_same()
{
	theirs_listed "$2" >theirs.listed
	ours_listed "$1" >ours.listed
	[ -s theirs.listed ] || return
	paste -d '\n' theirs.listed ours.listed | awk '
		NR % 2 { ms = $1; $1 = ""; rest = $0; next }
		{ d = $1 - ms; $1 = ""; n++ }
		d > 0.00051 || d < -0.00051 || $0 != rest {
		print "theirs " ms rest "; ours off by " d " ms:" $0; bad++ }
		END { print n " events"; exit bad > 0 }'
}

for trace in net.4.5.2.x64 gcevents primitive-types; do
	check "$trace.counts" \
		counts_are_the_same "$traces/$trace.etl.zip" "$traces/$trace.baseline.txt"
	check "$trace.listed" \
		listed_events_are_the_same "$traces/$trace.etl.zip" "$traces/$trace.baseline.txt"
done

# What is stored has them too: no event that PerfView gives to a process is nobody's.
"$RECORDER" collect --from "$traces/net.4.5.2.x64.etl.zip" --store net.db 2>log
"$RECORDER" events --id 1 --store net.db --json | jq -r 'select(.pid == null) | .name' |
	sort -u >nobody
check stored_events_have_their_process [ "$(tr '\n' ' ' <nobody)" = \
	"FileIO/FileCreate FileIO/FileDelete Image/KernelBase " ]
