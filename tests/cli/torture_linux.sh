#!/bin/bash
# No wrong name where code comes and goes: programs of Node.js and .NET make and drop functions all
# the time, whose names say which belong together: outer_N calls only inner_N. Both run at once.
# A million judged samples take ten minutes on two CPUs that do nothing else:
#	TORTURE_S=600 TORTURE_HZ=1999 bash tests/run.sh tests/cli/torture_linux.sh
# time limit: 3000
. "$TOP/tests/support/cli.sh"
need_perf
seconds=${TORTURE_S:-6} hz=${TORTURE_HZ:-499} round=$((${TORTURE_S:-6} < 60 ? ${TORTURE_S:-6} : 60))
need_csharp torture
if ! command -v node >/dev/null; then
	echo "skip torture: no node here"
	exit 0
fi
need_dotnet 'torture of .NET' @microsoft/sarif-multitool-linux 'sarif-multitool' multitool

# inner_N is a loop; outer_N calls it 40 times.
cat >torture.cs <<'END'
using System;
using System.Reflection.Emit;

class StartupHook
{
	delegate int Work(int n);

	static DynamicMethod Method(string name)
	{
		return new DynamicMethod(name, typeof(int), new[] { typeof(int) },
		                         typeof(StartupHook).Module, true);
	}

	static Work Make(int g)
	{
		DynamicMethod inner = Method("inner_" + g), outer = Method("outer_" + g);
		Body(inner, null);
		Body(outer, inner);
		return (Work)outer.CreateDelegate(typeof(Work));
	}

	/* s = 0; for (i = 0; i < (calls ? 40 : n); i++) s = calls ? s + calls(n) : s * 3 + i; */
	static void Body(DynamicMethod m, DynamicMethod calls)
	{
		ILGenerator il = m.GetILGenerator();
		Label test = il.DefineLabel(), body = il.DefineLabel();
		il.DeclareLocal(typeof(int));
		il.DeclareLocal(typeof(int));
		il.Emit(OpCodes.Br, test);
		il.MarkLabel(body);
		il.Emit(OpCodes.Ldloc_0);
		if (calls == null) {
			il.Emit(OpCodes.Ldc_I4_3);
			il.Emit(OpCodes.Mul);
			il.Emit(OpCodes.Ldloc_1);
		} else {
			il.Emit(OpCodes.Ldarg_0);
			il.Emit(OpCodes.Call, calls);
		}
		il.Emit(OpCodes.Add);
		il.Emit(OpCodes.Stloc_0);
		il.Emit(OpCodes.Ldloc_1);
		il.Emit(OpCodes.Ldc_I4_1);
		il.Emit(OpCodes.Add);
		il.Emit(OpCodes.Stloc_1);
		il.MarkLabel(test);
		il.Emit(OpCodes.Ldloc_1);
		if (calls == null)
			il.Emit(OpCodes.Ldarg_0);
		else
			il.Emit(OpCodes.Ldc_I4_S, (sbyte)40);
		il.Emit(OpCodes.Blt, body);
		il.Emit(OpCodes.Ldloc_0);
		il.Emit(OpCodes.Ret);
	}

	static void Round(Work outer)
	{
		for (int k = 0; k < 100; k++)
			outer(2000);
	}

	public static void Initialize()
	{
		DateTime end = DateTime.UtcNow.AddSeconds(
			int.Parse(Environment.GetEnvironmentVariable("TORTURE_ROUND_S")));
		for (int g = 0; DateTime.UtcNow < end; g++) {
			Round(Make(g));
			if (g % 50 == 0)
				GC.Collect();
		}
		Environment.Exit(0);
	}
}
END
mcs -target:library -out:torture.dll torture.cs >mcs.out 2>&1 || cat mcs.out
cat >torture.js <<'END'
'use strict';
const end = Date.now() + process.env.TORTURE_ROUND_S * 1000;
for (let g = 0; Date.now() < end; g++) {
	const inner = `function inner_${g}(n) { let s = 0;
		for (let i = 0; i < n; i++) s = (s * 3 + i) | 0; return s; }`;
	const outer = new Function(`${inner} function outer_${g}(n) { let s = 0;
		for (let k = 0; k < 40; k++) s += inner_${g}(n); return s; }
		return outer_${g};`)();
	for (let k = 0; k < 100; k++) outer(2000);
	if (g % 50 === 0) global.gc();
}
END

# judge PID: "RIGHT WRONG UNKNOWN" samples; unknown: one of the two is not named
judge()
{
	"$RECORDER" export 1 --store torture.db --process "$1" --format folded -o - 2>err |
		awk '{ c = $NF; inner = outer = ""
		if (match($0, /inner_[0-9]+/)) inner = substr($0, RSTART + 6, RLENGTH - 6)
		if (match($0, /outer_[0-9]+/)) outer = substr($0, RSTART + 6, RLENGTH - 6)
		if (inner != "" && outer != "") {
			if (inner == outer) right += c
			else { wrong += c; print > "/dev/stderr" }
		} else if ($0 ~ /\[(jit|\.net|javascript)\]!\?/) {
			unknown += c } }
		END { print right + 0, wrong + 0, unknown + 0 }'
}

export TORTURE_ROUND_S=$round
declare -A right wrong unknown
# Whether a program has so few samples, on a machine that is busy, that another round is due.
has_few()
{
	[ "$done" -lt $((seconds + 10 * round)) ] &&
		[ "${right[multitool]:-0}" -lt 300 -o "${right[node]:-0}" -lt 300 ]
}
done=0
while [ "$done" -lt "$seconds" ] || has_few; do
	done=$((done + round))
	rm -rf torture.db*
	"$RECORDER" collect --store torture.db --freq "$hz" --max-cpu-percent 0 --history-mb 0 \
		--buffer-mb 512 --max-collect-sec $((round * 4 + 60)) 2>torture.log & collect=$!
	wait_for 20 grep -q recording torture.log
	DOTNET_TieredPGO=0 DOTNET_STARTUP_HOOKS=$PWD/torture.dll ./multitool version \
		>/dev/null 2>&1 & dotnet=$!
	node --expose-gc torture.js & node=$!
	wait $dotnet $node
	kill -INT $collect
	wait $collect
	for program in multitool node; do
		pid=$dotnet
		[ $program = multitool ] || pid=$node
		read -r r w u <<<"$(judge $pid)"
		right[$program]=$((${right[$program]:-0} + r))
		wrong[$program]=$((${wrong[$program]:-0} + w))
		unknown[$program]=$((${unknown[$program]:-0} + u))
	done
done
for program in multitool node; do
	n=${right[$program]} w=${wrong[$program]} u=${unknown[$program]}
	check "$program: $w of $((n + w)) samples name another generation; $u have no name" \
		[ "$w" = 0 -a "$n" -ge 300 ]
done
