#!/bin/bash
# A power cut while the history is written: afterwards each of its files opens, nothing in it is
# damaged, and what is missing is what --history-sync-sec promises at most.
# power cuts after: 18 25 33
. /vm/guest.sh
trap finish EXIT
mode=$(sed -n 's/.*\bvm=\([^ ]*\).*/\1/p' /proc/cmdline)
cd /root || exit

if [ "$mode" = record ]; then
	trap - EXIT
	(while :; do :; done) &
	"$recorder" collect --store s.db --source perf --max-cpu-percent 0 --collect-multiple 99 \
		>out 2>err &
	for ((i = 0; i < 600; i++)); do
		grep -q 'recording this' err && break
		sleep 0.1
	done
	echo "vm: begun"
	while :; do
		echo "vm: alive $(date +%s)"
		sleep 1
	done
fi

last=${mode#check,}
ls s.db.history >files
check there_is_a_history grep -q . files
for file in s.db.history/*; do
	case $file in *-redo | *.lock) continue ;; esac
	echo "it is ${file##*/}: $(stat -c %s "$file") bytes"
	check "it_is_whole" eval '[ "$(sqlite3 "file:$file?mode=ro" "PRAGMA integrity_check" \
		2>&1 | tee /tmp/said)" = ok ] || { cat /tmp/said; false; }'
done
"$recorder" list --store s.db >list 2>list.err
check an_incident_tells_of_the_death grep -qE 'recorder' list
sed 's/^/it lists: /' list | cut -c1-200
check the_history_is_listed "$recorder" history --store s.db
"$recorder" export --store s.db --format jsonl -o samples.json --force >/dev/null 2>export.err
check its_samples_have_names grep -q '"type":"sample".*asm_sysvec' samples.json
# The incident ends with the last thing that was written.
newest=$(sed -n 's/^ *[0-9]*  \(20[0-9-]* [0-9:]*\) .*/\1/p' list | tail -n 1)
lost=$((last - $(date -u -d "${newest:-1970-01-01}" +%s)))
echo "it lost the last $lost s before the cut"
check no_more_is_lost_than_promised [ "$lost" -le 12 ]
rm -rf s.db* samples.json
