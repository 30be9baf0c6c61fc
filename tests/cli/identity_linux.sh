#!/bin/bash
# Where processes live: container, unit, pod and service of samples; filters, sums, rules and
# exports by them. The control groups are made by hand, with the names that container engines use.
. "$TOP/tests/support/cli.sh"
need_perf

groups=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/self/mounts)
id=$(printf 'c0ffee%058x' $$)
uid=0f5f3e2a_1b2c_4d5e_8f90_$(printf %012x $$)
pod=recorder$$.slice/kubepods-burstable-pod$uid.slice/cri-containerd-$id.scope
unit=recorder$$.slice/shop-$$.service
top=$groups/recorder$$.slice
pids=()
clean()
{
	[ ${#pids[@]} = 0 ] || kill "${pids[@]}" 2>/dev/null
	wait 2>/dev/null
	[ -d "$top" ] && wait_for 5 find "$top" -depth -type d -exec rmdir {} +
}
trap clean EXIT
cron=recorder$$.slice/cron-$$.service
if [ ! "$groups" ] || ! mkdir -p "$groups/$pod" "$groups/$unit" "$groups/$cron" 2>/dev/null; then
	echo "skip identity: control groups of version 2 cannot be made here"
	exit 0
fi

# lives_in GROUP COMMAND...: as an engine starts a program: the group first, then exec.
lives_in()
{
	local group=$1
	shift
	(echo "$BASHPID" >"$groups/$group/cgroup.procs" && exec "$@") & pids+=($!)
}
alarm='BEGIN { alarm 300 }'
lives_in "$pod" perl -e "$alarm 1 while 1"
lives_in "$unit" perl -e "$alarm 2 while 1"
"$BUILD/programs/otel_ctx_linux" checkout >ready & pids+=($!)
perl -e "$alarm 3 while 1" & pids+=($!)
moves=$!
burning=("${pids[@]}")
# It has done nothing since before the recording when it starts others, which soon end.
mkfifo go
cp "$(command -v perl)" shortlived
lives_in "$cron" bash -c 'read -r _ <go
	for ((i = 0; i < 30; i++)); do ./shortlived -e "1 for 1..300000"; done
	touch gone
	sleep 300'

"$RECORDER" collect --store s.db --max-collect-sec 120 --delay-after-trigger-sec 0 \
	--freq 499 --max-cpu-percent 0 --history-mb 0 --collect-multiple 9 \
	--textfile "$TMP/id.prom" --stop-on-process "unit:shop-$$" >collect.out 2>&1 & recorder=$!
wait_for 20 "$RECORDER" status --store s.db
echo >go
wait_for 60 [ -e gone ]
# It gives itself another name, and another home, before anybody looks at it.
perl -e "$alarm"' exit if !open(my $group, ">", shift);
	if (!fork) { alarm 300; $0 = "renamed"; syswrite $group, $$;
		open(my $done, ">", "renamed"); syswrite $done, $$; 1 while 1 }
	sleep 300' "$groups/$cron/cgroup.procs" & pids+=($!)
wait_for 20 [ -s renamed ]
pids+=("$(cat renamed)")
burning+=("$(cat renamed)")
all_burn 1000 "${burning[@]}"
"$RECORDER" snapshot --store s.db --reason first >/dev/null
is_stored()
{
	"$RECORDER" list --store s.db --json |
		jq -se --argjson id "$1" 'any(.[]; .id == $id and .state == "complete")'
}
wait_for 20 is_stored 1

report() { "$RECORDER" report 1 --store s.db --json "$@"; }
has_row()
{
	report "${@:2}" | jq -se --arg n "$1" 'any(.[]; .name == $n and .inclusive_ms > 100)'
}
check a_container_is_summed_up has_row "container $id" --by container
check a_unit_is_summed_up has_row "unit shop-$$.service" --by unit
check a_pod_is_summed_up has_row "pod ${uid//_/-}" --by pod
# Its children without a home would be a row "no unit".
check children_have_the_unit_of_their_parent eval '
	report --by unit --process shortlived | jq -se --arg n "unit cron-$$.service" \
	"map(.name) | any(. == \$n) and all(. != \"no unit\")"'
check a_service_is_summed_up has_row "service checkout" --by service

# only NAME FILTER...: all samples are of one process, which has this command line.
only()
{
	"$RECORDER" export 1 --store s.db --force -o only.flat.db "${@:2}" &&
		sqlite3 only.flat.db "SELECT DISTINCT cmdline FROM sample
			JOIN thread ON thread.id = sample.thread
			JOIN process ON process.id = thread.process" >cmdlines &&
		[ "$(cat cmdlines)" = "$1" ] || { cat cmdlines; false; }
}
check a_container_is_chosen only "perl -e $alarm 1 while 1" --container "${id:0:12}"
check a_unit_is_chosen only "perl -e $alarm 2 while 1" --unit "shop-$$"
check a_pod_is_chosen only "perl -e $alarm 1 while 1" --pod "${uid//_/-}"
check a_service_is_chosen only "$BUILD/programs/otel_ctx_linux checkout" --service checkout
check a_process_is_chosen_by_its_unit only "perl -e $alarm 2 while 1" --process "unit:shop-$$"
expect what_there_is_is_named 3 "no process of unit 'shop' .* there is .*shop-$$.service" \
	show 1 --store s.db --unit shop
expect sums_are_by_what_is_known 2 'container, unit, pod or service' report 1 --store s.db --by it

"$RECORDER" export 1 --store s.db -o all.jsonl
check lines_have_containers jq -se --arg id "$id" \
	'any(.[]; .container == $id and (.pod | length) == 36 and .type == "sample")' all.jsonl
check a_process_with_a_new_name_has_a_unit jq -se --argjson pid "$(cat renamed)" \
	--arg unit "cron-$$.service" 'map(select(.type == "sample" and .pid == $pid) |
		.unit == $unit) |
		length > 20 and (map(select(.)) | length) > 0.9 * length' all.jsonl
check rows_have_control_groups test "$("$RECORDER" export 1 --store s.db -o all.flat.db &&
	sqlite3 all.flat.db "SELECT count(*) FROM process WHERE cgroup = '/$unit'
		AND unit = 'shop-$$.service' AND container IS NULL")" -ge 1
"$RECORDER" export 1 --store s.db -o all.pb --container "$id" --format pprof
check profiles_have_labels test "$(gzip -dc <all.pb | grep -ca "$id")" -ge 1

# It moves: what was stored before keeps where it was; later samples are where it is.
move_ns=$(date +%s%N)
echo "$moves" >"$groups/$unit/cgroup.procs"
moved_ns=$(date +%s%N)
# in_unit INCIDENT: whether the process that moves is in the unit there.
in_unit()
{
	"$RECORDER" report "$1" --store s.db --json --by unit --unit "shop-$$" --rows 100 |
		grep -F "($moves)"
}
moved()
{
	all_burn 2000 "$moves"
	"$RECORDER" snapshot --store s.db --reason again >/dev/null
	wait_for 20 is_stored 2
	in_unit 2
}
check a_process_that_moves_is_where_it_is_seen moved
check and_it_was_where_it_was expect_exit 1 in_unit 1
# In one window, to the sample; its head has its time in ms.
"$RECORDER" export 2 --store s.db -o moved.jsonl
check no_sample_is_of_the_wrong_unit jq -ne --argjson pid "$moves" --argjson from "$move_ns" \
	--argjson to "$moved_ns" --arg unit "shop-$$.service" '
	[inputs] | (.[0] | (.time_utc[0:19] + "Z" | fromdate) * 1000 +
		(.time_utc[20:23] | tonumber) - .trigger_t_ms) as $begin |
	map(select(.type == "sample" and .stream == "cpu" and .pid == $pid) |
		.t_ms += $begin |
		{before: (.t_ms < $from / 1e6 - 5), after: (.t_ms > $to / 1e6 + 5),
		 in: (.unit == $unit)}) |
	(map(select(.before)) | length > 100 and all(.in | not)) and
	(map(select(.after)) | length > 100 and all(.in))' moved.jsonl
check metrics_have_units wait_for 20 grep -q \
	"^recorder_sampled_cpu_seconds_total{unit=\"shop-$$.service\"} [0-9]" id.prom
check metrics_have_containers_and_pods wait_for 20 grep -q \
	"_total{container=\"$id\",.*pod=\"${uid//_/-}\"} [0-9]" id.prom
check metrics_have_services wait_for 20 grep -q '[{,]service="checkout"} [0-9]' id.prom

# A rule on the end of processes of a unit.
kill "${pids[1]}" 2>/dev/null
fired() { "$RECORDER" list --store s.db --json | grep 'perl.* \(ended\|was killed\)'; }
check a_rule_on_a_unit_fires wait_for 20 fired
kill $recorder 2>/dev/null
wait $recorder
