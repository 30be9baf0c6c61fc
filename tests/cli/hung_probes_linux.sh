#!/bin/bash
# Programs from a mount whose server no longer answers do not keep rules from the others: rules on
# collections, on exceptions of C++ and on the ends of processes begin beside them, and fire.
# time limit: 150
. "$TOP/tests/support/cli.sh"
need_perf

if [ "$(id -u)" != 0 ] || [ ! -c /dev/fuse ] || ! unshare -m true 2>/dev/null; then
	echo "skip everything: needs root, /dev/fuse and a mount namespace of its own"
	exit 0
fi
if [ ! -d /sys/bus/event_source/devices/uprobe ]; then
	echo "skip everything: this kernel has no probes in programs"
	exit 0
fi
if [ ! "${HUNG_MOUNT_INSIDE:-}" ]; then
	HUNG_MOUNT_INSIDE=1 exec unshare -m bash "$0"
fi

server= others= recorder=
# The server answers again first: what waits for it cannot end before.
clean_up()
{
	[ "$server" ] && kill -USR2 "$server" 2>/dev/null
	kill $others 2>/dev/null
	[ "$recorder" ] && kill -KILL "$recorder" 2>/dev/null
	[ "$server" ] && sleep 0.5 && kill "$server" 2>/dev/null
	wait $server $others $recorder 2>/dev/null
	server= others= recorder=
}
trap clean_up EXIT

fired()
{
	grep -qE "fired: .*$1" collect.log
}

# fires NAME REASON COMMAND...: repeat the command until the rule fires
fires()
{
	local name=$1 reason=$2 i
	shift 2
	for i in {1..40}; do
		fired "$reason" && break
		"$@" >/dev/null 2>&1
		sleep 0.2
	done
	check "$name" fired "$reason"
}

# Its own name, because python's mount hangs: the name of a program is that of its file.
python=$(readlink -f /usr/bin/python3 2>/dev/null)
if ! readelf -n "$python" 2>/dev/null | grep -q gc__start; then
	echo "skip everything: no python3 with probes"
	exit 0
fi
mkdir mount
"$BUILD/programs/hung_mount_linux" mount "$python" python3hung >ready 2>mount.err & server=$!
if ! wait_for 5 grep -q ready ready; then
	echo "skip everything: $(cat mount.err)"
	exit 0
fi
for i in 1 2 3; do
	mount/python3hung -S -c 'import time; time.sleep(120)' & others+=" $!"
done
"$python" -S -c 'import gc, time
while True: gc.collect(); time.sleep(0.05)' & others+=" $!"
"$BUILD/programs/silent_linux" mount/python3hung >silent.out & silent=$!
others+=" $silent"
wait_for 5 grep -q ready silent.out
cat >thrower.cc <<'CC'
#include <stdexcept>
#include <unistd.h>
namespace shop {
struct no_stock : std::runtime_error { using std::runtime_error::runtime_error; };
}
int main()
{
	try { throw shop::no_stock("none left"); } catch (std::exception &) {}
	usleep(200000);                      /* the type is read a little later */
}
CC
throws=()
if g++ -O1 -o thrower thrower.cc 2>gxx.out; then
	throws=('/StopOnException:^shop::no_;Process=thrower'
		'/StopOnException:^shop::no_;Process=python3hung')
else
	echo "skip an_exception_fires_beside_it: no C++ compiler"
	printf '#!/bin/sh\n' >thrower
	chmod +x thrower
fi
sleep 0.5
kill -USR1 $server
sleep 0.1
kill -USR1 $silent                           # nobody gets its command line now
sleep 0.3

since=$SECONDS
"$RECORDER" collect --store h.db --collect-multiple 9 --delay-after-trigger-sec 0 \
	--min-interval-sec 60 /StopOnGen2GC '/StopOnProcess:thrower;On=exit' "${throws[@]}" \
	2>collect.log & recorder=$!
check a_recording_with_rules_begins_within_15_s_beside_a_program_that_hangs \
	wait_for 15 grep -q "recording this machine" collect.log
fires a_collection_of_another_program_fires 'GC of generation 2' true
fires the_end_of_another_process_fires 'process thrower' ./thrower
if [ "${throws[*]}" ]; then
	fires an_exception_fires_beside_it 'exception shop::no_stock, of thrower' ./thrower
fi
# The log's own times: from what is said after half a second to the end of the waiting.
waited_ms()
{
	awk '{ split(substr($1, 12), t, /[:Z]/); ms = 1000 * ((t[1] * 60 + t[2]) * 60 + t[3]) }
	/waiting for .*python3hung/ { from = ms }
	/python3hung.*does not answer.*no probes/ { print int(ms - from + 500); exit }' collect.log
}
check and_is_waited_for_less_than_a_second test "$(waited_ms)" -lt 1000
check what_is_waited_for_is_said grep -q "waiting for .*python3hung.* s at most" collect.log
check the_program_that_hangs_is_named grep -q "python3hung.*does not answer" collect.log
at=$SECONDS
timeout 15 "$RECORDER" stop --store h.db >stop.out 2>&1
expect_ended()
{
	! kill -0 "$1" 2>/dev/null
}
wait_for 30 expect_ended "$recorder"
check it_ends_within_30_s test $((SECONDS - at)) -le 30
echo "--- began after $((at - since)) s"
cat collect.log
