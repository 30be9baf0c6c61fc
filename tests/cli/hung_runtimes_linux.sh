#!/bin/bash
# A socket or performance data of one program on a mount whose server no longer answers do not keep
# the events of other .NET and Java programs away.
# time limit: 90
. "$TOP/tests/support/cli.sh"
need_perf

if [ "$(id -u)" != 0 ] || [ ! -c /dev/fuse ] || ! unshare -m true 2>/dev/null; then
	echo "skip everything: needs root, /dev/fuse and a mount namespace of its own"
	exit 0
fi
if ! command -v python3 >/dev/null; then
	echo "skip everything: no python3"
	exit 0
fi
if [ ! "${HUNG_MOUNT_INSIDE:-}" ]; then
	HUNG_MOUNT_INSIDE=1 exec unshare -m bash "$0"
fi

servers= others= recorder=
data=/tmp/hsperfdata_hung$$ ours=/tmp/hsperfdata_other$$
# The servers answer again first: what waits for them cannot end before.
clean_up()
{
	[ "$servers" ] && kill -USR2 $servers 2>/dev/null
	kill $others 2>/dev/null
	[ "$recorder" ] && kill -KILL "$recorder" 2>/dev/null
	[ "$servers" ] && sleep 0.5 && kill $servers 2>/dev/null
	wait $servers $others $recorder 2>/dev/null
	rm -rf "$data" "$ours"
}
trap clean_up EXIT

# dotnet DIR OUT: a program with a diagnostic socket in DIR, which says who calls
dotnet()
{
	python3 -c '
import os, signal, socket, sys
signal.signal(signal.SIGTERM, lambda *ignored: sys.exit())
start = open("/proc/self/stat").read().rsplit(")", 1)[1].split()[19]
path = "%s/dotnet-diagnostic-%d-%s-socket" % (sys.argv[1], os.getpid(), start)
s = socket.socket(socket.AF_UNIX)
s.bind(path)
s.listen(8)
print("ready", flush=True)
try:
	while True:
		calls = s.accept()
		print("called", flush=True)
finally:
	os.unlink(path)' "$1" >"$2" 2>"$2.err" & others+=" $!"
	wait_for 10 grep -q ready "$2"
}

# hang DIR: mount what does not answer over it
hang()
{
	mkdir -p "$1"
	"$BUILD/programs/hung_mount_linux" "$1" "$BUILD/programs/burn" >ready.$# 2>mount.err &
	servers+=" $!"
	if ! wait_for 5 grep -q " $1 fuse" /proc/self/mounts; then
		echo "skip everything: $(cat mount.err)"
		exit 0
	fi
	kill -USR1 $!
	sleep 0.1
}

# says FILE PATTERN; else show the file
says()
{
	grep -q -- "$2" "$1" || { cat "$1"; return 1; }
}

hangs()
{
	"$RECORDER" status --store r.db >status.out 2>&1
	says status.out "$1: [1-4] of at most 4 threads that read $2 hang"
}

# A file of performance data that is not complete yet is kept open.
reads_data_of()
{
	ls -l "/proc/$recorder/fd" | grep -q "$ours/$1\$"
}

mkdir "$PWD/sockets"
dotnet "$PWD/sockets" hung.out
hang "$PWD/sockets"
hang "$data"
"$RECORDER" collect --store r.db --stop-on-gc-over-msec 100000 2>log & recorder=$!
check a_recording_begins_beside_them wait_for 15 grep -q "recording this machine" log
check status_says_that_they_do_not_answer \
	wait_for 10 hangs readers "\(sockets of .NET\|files of Java\) programs"
check the_log_says_that_a_socket_does_not_answer \
	wait_for 10 says log "search for .NET programs hangs"
check the_log_says_that_a_java_file_does_not_answer \
	wait_for 10 says log "search for Java programs hangs"
dotnet /tmp other.out
check a_later_net_program_is_connected_to wait_for 10 says other.out called
mkdir -m 0755 "$ours"
sleep 60 & others+=" $!" java=$!
: >"$ours/$java"
check a_later_java_program_is_found wait_for 10 reads_data_of "$java"

check nothing_is_said_of_a_source_that_delivers_nothing \
	sh -c '! grep "has delivered nothing" log'
timeout 15 "$RECORDER" stop --store r.db >stop.out 2>&1
expect_ended()
{
	! kill -0 "$1" 2>/dev/null
}
check it_ends wait_for 20 expect_ended "$recorder"
check its_incident_is_stored says log "incident 1 stored"
