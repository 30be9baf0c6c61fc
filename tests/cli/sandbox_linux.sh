#!/bin/bash
# The process that reads symbols: it has no rights, and whatever becomes of it, recording goes on
# and what runs later has names.
set -u
. "$TOP/tests/support/cli.sh"
need_perf

children() { cat /proc/"$recorder"/task/*/children | tr ' ' '\n' | grep .; }
sandbox() { for child in $(children); do
	[ "$(cat "/proc/$child/comm" 2>/dev/null)" = recorder-names ] && echo "$child"; done; }
field() { sed -n "s/^$2:\t*//p" "/proc/$1/status"; }
has_three() { [ "$(ls "/proc/$pid/fd" | tr '\n' ' ')" = '0 1 2 ' ]; }
has_sandbox() { [ -n "$(sandbox)" ]; }

"$BUILD/programs/burn" 60 >/dev/null & burn=$!
"$RECORDER" collect --store s.db --symbol-cache-mb 0 2>log & recorder=$!
trap 'kill $burn $recorder 2>/dev/null' EXIT
check there_is_one wait_for 20 has_sandbox
pid=$(sandbox)
check it_has_no_capability [ "$(field "$pid" CapPrm)" = 0000000000000000 ]
check it_gets_none [ "$(field "$pid" NoNewPrivs)" = 1 ]
check its_system_calls_are_filtered [ "$(field "$pid" Seccomp)" = 2 ]
check the_recorder_s_are_filtered_too [ "$(field "$recorder" Seccomp)" = 2 ]
check it_has_three_descriptors_at_rest wait_for 20 has_three
if [ "$(id -u)" = 0 ]; then
	check it_is_a_user_of_its_own [ "$(field "$pid" Uid | cut -f 1)" = 1879048192 ]
	check whom_nobody_else_can_kill expect_exit 1 \
		setpriv --reuid=65534 --clear-groups kill -KILL "$pid"
	# Bit 16 is CAP_SYS_MODULE, 22 CAP_SYS_BOOT, 19 CAP_SYS_PTRACE.
	rights=$((16#$(field "$recorder" CapPrm)))
	check the_recorder_keeps_what_it_uses [ $((rights >> 19 & 1)) = 1 ]
	check the_recorder_loads_no_modules [ $((rights >> 16 & 1)) = 0 ]
	check the_recorder_reboots_nothing [ $((rights >> 22 & 1)) = 0 ]
fi
for i in 1 2 3 4 5; do
	kill -9 $(sandbox) 2>/dev/null
	objcopy --remove-section .note.gnu.build-id "$BUILD/programs/burn" "late$i"   # another file
	"./late$i" 0.5 >/dev/null
done
check status_tells_what_it_takes eval \
	'"$RECORDER" status --json --store s.db | jq -e ".sandbox_cpu_ms > 0"'
"$RECORDER" stop --store s.db 2>/dev/null
wait $recorder
check it_ends_with_the_recorder [ ! -d "/proc/$pid" ]
for i in 1 2 3 4 5; do
	"$RECORDER" export 1 -f --store s.db --process "late$i" >out
	check "program_${i}_has_names" grep -q 'burn_' out
done

"$RECORDER" collect --store c.db --stop-command 'true %ID%' 2>log2 & recorder=$!
check with_a_command_it_records wait_for 20 grep -q 'recording this machine' log2
check whose_program_may_do_what_it_likes [ "$(field "$recorder" Seccomp)" = 0 ]
"$RECORDER" stop --store c.db 2>/dev/null
wait $recorder
