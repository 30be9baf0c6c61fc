#!/bin/bash
# Java and .NET programs in mount or pid namespaces of their own, with their own /tmp: the recorder
# finds the files they keep there, and its events carry the pid that this machine knows.
. "$TOP/tests/support/cli.sh"
need_perf
if ! unshare -m mount -t tmpfs tmpfs /tmp 2>/dev/null ||
		! unshare -m -pf --mount-proc true 2>/dev/null; then
	echo "skip programs in containers: this user may not make namespaces of mounts and pids"
	exit 0
fi

# contained COMMAND...: run it in namespaces of its own, where /mnt is the current directory.
contained()
{
	exec unshare -m -pf --mount-proc sh -c 'mount --bind "$1" /mnt &&
		mount -t tmpfs tmpfs /tmp && cd /mnt && shift && exec "$@"' \
		sh "$PWD" "$@"
}

# inner PID: print the pid of the process that unshare forked, or PID itself if it forked none.
inner()
{
	local child
	child=$(cat "/proc/$1/task/$1/children" 2>/dev/null)
	echo ${child:-$1}
}

has_forked() { [ "$(inner "$1")" != "$1" ]; }

has_data() { ls "/proc/$1/root/tmp/hsperfdata_"*/*; }

# record NAME OPTION...: record until a rule fires.
record()
{
	local name=$1
	shift
	timeout 40 "$RECORDER" collect --store "$name.db" --source none \
		--delay-after-trigger-sec 0.5 --max-collect-sec 30 \
		"$@" 2>"$name.log" & collect=$!
}

# ends PROGRAM...: end the processes of these programs that this script started, by pid.
ends()
{
	kill "$@" 2>/dev/null
	wait "$@" 2>/dev/null
}

# ---- Java ----------------------------------------------------------------------------------------

if command -v javac >/dev/null && javac --release 11 --version >/dev/null 2>&1; then
	cat >Waste.java <<-'END'
	public class Waste {
		static byte[][] kept = new byte[20000][];
		public static void main(String[] arguments) throws Exception {
			long end = System.nanoTime() + 60_000_000_000L;
			for (int i = 0; System.nanoTime() < end; i++) {
				kept[i % kept.length] = new byte[480];
				if (i % 20000 == 0)
					Thread.sleep(2);
			}
		}
	}
	END
	javac --release 11 Waste.java || exit 1
	# In a pid namespace the JVM would delete the files of this machine's JVMs, because it does
	# not see their pids.
	(contained java -XX:+UseSerialGC -Xmx32m -cp . Waste) & program=$!
	wait_for 10 has_forked $program
	pid=$(inner $program)
	wait_for 10 has_data "$pid"
	record java --stop-on-gc-over-msec "0.1;Process=$pid"
	wait $collect
	how=' took| is still|: [0-9]+ pauses'
	check a_pause_of_java_fires \
		grep -E "fired: GC of .*java\]? \(pid $pid\)($how)" java.log
	sed 's/^/# /' java.log
	"$RECORDER" check --json 2>/dev/null >check.json
	check check_knows_that_it_is_seen jq -s -e --argjson pid "$pid" \
		'[.[] | select(.cause? == "java-pauses-unseen") | .programs[].pid] |
		index($pid) == null' check.json
	ends "$pid" $program
else
	echo "skip Java in containers: no javac here (install a JDK of 11 or later)"
fi

# ---- .NET ----------------------------------------------------------------------------------------

need_dotnet '.NET in containers' @microsoft/sarif-multitool-linux 'sarif-multitool' boxedtool
awk 'BEGIN {
	printf "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"t\"}},"
	printf "\"results\":["
	for (i = 0; i < 60000; i++)
		printf "%s{\"ruleId\":\"R%d\",\"message\":{\"text\":\"number %d of some text\"}}",
		i ? "," : "", i % 50, i
	printf "]}]}"
}' >big.sarif
record net --stop-on-gc-over-msec '0.1;Process=boxedtool'
wait_for 20 grep -q recording net.log
# Try again until the rule fires: the program may end before the recorder has found it.
pids=
while kill -0 $collect 2>/dev/null; do
	(contained ./boxedtool rewrite big.sarif --output /tmp/out.sarif --log ForceOverwrite) \
		>/dev/null 2>&1 & program=$!
	wait_for 5 has_forked $program
	pids="$pids $(inner $program)"
	wait $program
done
wait $collect
fired=$(sed -n 's/.*fired: GC of boxedtool (pid \([0-9]*\)) .*/\1/p' net.log)
check a_collection_of_net_fires grep -qw "${fired:-none}" <<<"$pids"
check its_thread_is_not_called_by_its_number_there sh -c '! grep "fired:.*, thread" net.log'
