#!/bin/bash
# --dotnet-heap: what a real .NET program keeps, by who allocated it, beside its own count. The
# program is a startup hook of sarif-multitool from npm, which brings .NET 8: 60,000 steps, each of
# which keeps one array of 1,000 bytes and drops nine.
. "$TOP/tests/support/cli.sh"
need_perf
need_csharp 'objects of .NET programs'
need_dotnet 'objects of .NET programs' @microsoft/sarif-multitool-linux 'sarif-multitool' heaptool

cat >heap.cs <<'END'
using System;
using System.Collections.Generic;
using System.Runtime.CompilerServices;

class StartupHook
{
	public static readonly List<byte[]> kept = new List<byte[]>();
	public static byte[] last;

	[MethodImpl(MethodImplOptions.NoInlining)]
	static void Keep() { kept.Add(new byte[1000]); }

	[MethodImpl(MethodImplOptions.NoInlining)]
	static void Drop() { last = new byte[1000]; }

	public static void Initialize()
	{
		while (!System.IO.File.Exists("go"))
			System.Threading.Thread.Sleep(20);
		for (int i = 0; i < 60000; i++) {
			Keep();
			for (int k = 0; k < 9; k++)
				Drop();
		}
		GC.Collect();
		Console.WriteLine("{0} {1}", kept.Count * 1024L, GC.GetTotalMemory(false));
		GC.KeepAlive(kept);
		while (System.IO.File.Exists("go"))
			System.Threading.Thread.Sleep(20);
		Environment.Exit(0);
	}
}
END
mcs -target:library -out:heap.dll heap.cs >mcs.out 2>&1 || cat mcs.out

# bytes METRIC [FUNCTION]: of the program, allocated by this function. Its module has a name once
# the recorder has asked for what is there already, which a busy machine may put off to the end.
bytes()
{
	"$RECORDER" export --store "$run.db" --metric "$1" -f 2>>err |
		awk -v f="!StartupHook.$2" '/^heaptool / && index($0, f) { n += $NF }
			END { printf "%d\n", n }'
}

# record NAME OPTION...: the program's own count goes to NAME.out
record()
{
	run=$1
	shift
	rm -f go
	DOTNET_STARTUP_HOOKS=$PWD/heap.dll ./heaptool version >"$run.out" 2>&1 & program=$!
	"$RECORDER" collect --store "$run.db" --history-mb 0 --max-cpu-percent 0 \
		--max-collect-sec 120 "$@" 2>"$run.log" & collect=$!
	wait_for 60 grep -q recording "$run.log"
	wait_for 60 dotnet_tells $program
	touch go
	wait_for 60 grep -q . "$run.out"
	rm -f go
	wait $program
	wait_for 60 left $program            # a busy recorder reads the last events later
	kill -INT $collect
	wait $collect
}
left() { [ "$(dotnet_sockets "$1")" = 0 ]; }

record heap --dotnet-heap
read -r kept all <heap.out
echo "# the program counts $kept kept, $all in all; recorded: Keep $(bytes heap-net Keep)," \
	"Drop $(bytes heap-net Drop) of $(bytes heap Drop)"
keep=$(bytes heap-net Keep) drop=$(bytes heap-net Drop)
check what_a_function_keeps_is_what_the_program_counts \
	test $((keep * 100)) -gt $((kept * 85)) -a $((keep * 100)) -lt $((kept * 115))
check it_is_most_of_what_is_there test $((keep * 100)) -ge $(((keep + drop) * 80))
check what_was_dropped_had_been_allocated test "$(bytes heap Drop)" -gt $((kept * 7))
"$RECORDER" report --store heap.db --memory --process heaptool >report 2>>err
check a_report_says_who_keeps_it \
	grep -qE '^ +[0-9.]+ +[0-9.]+ % .*!StartupHook\.Keep$' report

record ticks --dotnet-alloc-sampled
check without_survivals_nothing_is_net \
	test "$(bytes alloc Keep)" -gt 0 -a "$(bytes heap-net Keep)" = 0
