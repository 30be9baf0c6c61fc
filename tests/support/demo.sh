#!/bin/bash
# make demo: record this machine under a real load, let a counter trigger fire twice, and show what
# was kept. Everything goes to build/demo/; nothing outside is touched. About 35 s.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
RECORDER=$TOP/build/linux/recorder
BURN=$TOP/build/linux/programs/burn
DIR=$TOP/build/demo

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
[ -t 1 ] || say() { printf '\n%s\n' "$*"; }
# What is run, as a user would type it; the rest of the line is what it prints.
show()
{
	local word
	printf '$ recorder'
	for word; do
		case $word in
		*[\ \>\%]*) printf ' "%s"' "$word" ;;
		*) printf ' %s' "$word" ;;
		esac
	done
	echo
	"$RECORDER" "$@"
}

rm -rf "$DIR"
mkdir -p "$DIR"
cd "$DIR" || exit 1
export RECORDER_STORE=$DIR/incidents.db

if ! why=$("$RECORDER" collect /MaxCollectSec:0.2 --store probe.db 2>&1); then
	echo "demo: this machine cannot be recorded by this user:"
	echo "$why" | tail -n 1
	[ "$(id -u)" != 0 ] && command -v sudo >/dev/null || exit 1
	say "Once more with sudo"
	sudo "$TOP/tests/support/demo.sh"
	rc=$?
	sudo chown -R "$(id -u):$(id -g)" "$DIR"
	exit $rc
fi
rm -rf probe.db*

say "1. A load, from 10 s on: bursts of 6 s with 8 s between (burn_alpha 75 %, burn_beta 25 %)"
# On a busy machine only real-time priority gives it the CPU time that the rule waits for.
real_time='chrt --fifo 1'
$real_time true 2>/dev/null || real_time=
(sleep 10 && exec $real_time "$BURN" 60 6 8 >/dev/null) &
burn=$!
trap 'kill $burn 2>/dev/null' EXIT

say "2. Record unattended until its CPU use has been over 30 % for 2 s, twice"
show collect "/StopOnPerfCounter:Process:% Processor Time:burn>30" /MinSecForTrigger:2 \
	/CollectMultiple:2 /DelayAfterTriggerSec:2 /MaxCollectSec:75 --pre-sec 10 --freq 199 ||
	exit 1
kill $burn 2>/dev/null

say "3. What was kept"
show list || exit 1

say "4. What happened before the alarm"
show show --id 1 --process burn || exit 1

say "5. Exports"
show export --id 1 -o cpu.folded || exit 1
show export --id 1 -o cpu.perfView.xml || exit 1
show export --id 1 -o cpu.perfView.xml.zip || exit 1
ls -l cpu.* | awk '{ printf "%10d bytes  %s\n", $5, $NF }'
echo
echo "The hottest stacks of burn, folded (flamegraph.pl cpu.folded > cpu.svg, or speedscope.app):"
echo '$ recorder export --id 1 --process burn --no-kernel --no-ids -f | sort -k2 -rn | head -n 4'
"$RECORDER" export --id 1 --process burn --no-kernel --no-ids -f | sort -k2 -rn | head -n 4

say "Kept in build/demo/. Try:
RECORDER_STORE=build/demo/incidents.db build/linux/recorder show --id 2"
