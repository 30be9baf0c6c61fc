#!/bin/bash
# What a recording of JDK Flight Recorder says about memory: who allocates, and whose objects stay.
# time limit: 200
. "$TOP/tests/support/cli.sh"

cat >Leak.java <<'END'
import java.util.ArrayList;
import java.util.List;

public class Leak {
	static List<byte[]> kept = new ArrayList<>();

	static void leaks() { for (int i = 0; i < 100; i++) kept.add(new byte[1000]); }

	static long churns()
	{
		long sum = 0;

		for (int i = 0; i < 2000; i++) sum += new byte[1000].length;
		return sum;
	}

	public static void main(String[] words)
	{
		long sum = 0;

		for (int i = 0; i < 3000; i++) { leaks(); sum += churns(); }
		System.out.println(sum);
	}
}
END
if ! command -v javac >/dev/null || ! javac Leak.java 2>err; then
	echo "skip java_heap: there is no JDK"
	exit 0
fi
java -Xmx700m -XX:StartFlightRecording=settings=profile,filename=leak.jfr -cp . Leak >out 2>&1
"$RECORDER" collect --from leak.jfr --store j.db 2>log
# pct METRIC METHOD: its part
pct()
{
	"$RECORDER" report --store j.db --metric "$1" --by-name --json 2>/dev/null |
		jq -s "map(select(.self_pct? and (.name | endswith(\"$2\"))).self_pct) | add // 0"
}
check what_stays_is_by_who_leaks [ "$(jq -n "$(pct heap-net Leak.leaks) > 80")" = true ]
check and_not_by_who_churns [ "$(jq -n "$(pct heap-net Leak.churns) < 10")" = true ]
check what_is_allocated_is_by_both [ "$(jq -n "$(pct alloc Leak.churns) > 10")" = true ]
