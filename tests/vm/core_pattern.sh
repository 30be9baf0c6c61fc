#!/bin/bash
# Crashes as the kernel tells them: systemd-coredump's by coredumpctl; and by core_pattern's pipe,
# beside a running recorder whose rule keeps the time before.
# under systemd
# time limit: 2400
. /vm/guest.sh
trap finish EXIT
cd /root || exit
pattern=/proc/sys/kernel/core_pattern

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for()
{
	local until=$((SECONDS + $1))
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.3
	done
}
# dies SIGNAL THREADS COMMAND...: after a moment with so many threads; $dead is its pid
dies()
{
	local signal=$1 threads=$2
	shift 2
	"$@" & dead=$!
	wait_for 300 eval '[ "$(ls /proc/$dead/task | wc -l)" -ge $threads ]'
	sleep 3
	kill "-$signal" "$dead"
	wait "$dead"
}
cp /bin/dash victim
cp "$recorder" threads

# ---- coredumpctl ---------------------------------------------------------------------------------

check systemd_keeps_cores_here grep -q systemd-coredump $pattern
dies SEGV 1 ./victim -c 'while :; do :; done'
check it_keeps_this_one wait_for 100 coredumpctl info $dead
coredumpctl dump $dead 2>/dev/null | "$recorder" stacks --core - >out 2>err
sed 's/^/it prints: /' out err
check coredumpctls_core_is_read grep -q "^program victim ($dead) died of SIGSEGV" out
check with_its_stack eval 'grep -q "^thread $dead" out && grep -q "    victim!" out'
coredumpctl dump $dead 2>/dev/null | "$recorder" stacks --core - --store one.db >/dev/null 2>&1
check and_stored eval '"$recorder" list --store one.db --json | jq -e ".reason | test(\"SIGSEGV\")"'

# ---- core_pattern --------------------------------------------------------------------------------

echo "|$recorder stacks --core - --store /root/crashes.db" >$pattern
# has N REASON: so many crashes are kept with that reason
has()
{
	[ "$("$recorder" list --store crashes.db --json | jq -r .reason | grep -c "$2")" = "$1" ]
}
dies ABRT 4 ./threads collect --source none --store s.db --history-mb 0
check the_kernels_pipe_is_read wait_for 60 has 1 "^program threads ($dead) died of SIGABRT"
check all_its_threads_are_there eval '"$recorder" show --store crashes.db --json | jq -e \
	".samples > 3"'
check they_have_functions eval '"$recorder" show --store crashes.db | grep -q "libc.so.6![a-z_]"'

"$recorder" collect --store window.db --history-mb 0 --pre-sec 60 --max-collect-sec 300 \
	--delay-after-trigger-sec 1 '/StopOnProcess:victim;On=crash' 2>collect.err & collect=$!
check a_recorder_runs_beside_it wait_for 300 "$recorder" status --store window.db
sleep 5
dies SEGV 1 ./victim -c 'while :; do :; done'
check its_rule_keeps_the_time_before wait_for 100 eval \
	'"$recorder" show --store window.db --process victim --json | jq -e ".samples > 10"'
check whose_reason_is_the_crash eval '"$recorder" list --store window.db --json | jq -r .reason |
	grep -q "victim.*SIGSEGV"'
check and_the_pipe_the_stacks_at_death wait_for 60 has 1 "^program victim ($dead) died of SIGSEGV"
wait $collect
tail -n 3 collect.err | sed 's/^/it says: /'

for i in 1 2 3 4 5; do
	sleep 1000 & pids[i]=$!
done
sleep 2
kill -TRAP "${pids[@]}"           # SIGQUIT is ignored in the background
check five_at_once_are_all_kept wait_for 300 has 5 '^program sleep .* died of SIGTRAP'
check the_store_is_sound "$recorder" verify --store crashes.db
check no_core_is_left eval '! ls /var/tmp/core* /root/core* 2>/dev/null'
