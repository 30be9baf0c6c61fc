#!/bin/bash
# stacks of Python and Node.js programs that live (-p) and that died (--core), of every one that is
# found here: of Python function for function what the interpreter itself says (faulthandler) of
# threads that stand still in many ways, and of one that computes, stopped anywhere
# (PYTHON_COMPARISONS=1000: so often, instead of 10 times).
# time limit: 900
. "$TOP/tests/support/cli.sh"
ulimit -c unlimited
cores=
case $(cat /proc/sys/kernel/core_pattern) in
core) cores=core ;;
*) echo "skip stacks_of_the_dead: the kernel puts cores elsewhere:" \
	"$(cat /proc/sys/kernel/core_pattern)" ;;
esac

# dies PID NAME: its stacks from its core, in NAME.dead
dies()
{
	local core
	rm -f core core.*
	kill -SEGV "$1"
	wait "$1" 2>/dev/null
	core=$(ls core core.* 2>/dev/null | head -n 1)
	"$RECORDER" stacks --core "${core:-none}" >"$2.dead" 2>"$2.log"
	rm -f core core.*
}

# The names of each thread's functions, innermost first, a line each; of either.
of_itself()
{
	awk '/^(Thread|Current thread)/ { if (c) print c; c = "" }
		/^  File / { sub(/.* in /, ""); c = c " " $0 }
		END { print c }' "$1" | sort
}
of_stacks()
{
	awk '/^thread/ { if (c) print c; c = "" }
		sub(/.*\[python\]!/, "") { sub(/ .*/, ""); sub(/.*\./, ""); c = c " " $0 }
		END { print c }' "$1" | sort
}

said() { [ "$(of_itself "$1" | grep -c .)" -ge 15 ]; }
same() { diff <(of_itself "$1") <(of_stacks "$2"); }

# The files of what 'make interpreters' brought are elsewhere for us, once it is dead.
in_root() { [[ $1 == */build/deps/interpreters/* ]]; }

python_of()
{
	local name=python$1 program
	"$2" python_threads.py >"$name.out" 2>"$name.err" & program=$!
	wait_for 20 grep -q ready "$name.out"
	kill -USR1 $program
	wait_for 10 said "$name.err"
	"$RECORDER" stacks --process $program >"$name.stacks" 2>"$name.log"
	check "${name}_functions_are_those_that_it_says_itself" same "$name.err" "$name.stacks"
	check "${name}_native_frames_are_among_them" \
		grep -qE '^    [^[]*!_?PyEval_(EvalFrameDefault|EvalFrameEx|EvalCode)' \
		"$name.stacks"
	dies $program "$name"
	[ ! "$cores" ] || in_root "$2" ||
		check "${name}_so_it_is_when_it_is_dead" same "$name.err" "$name.dead"
}

cat >stopped.py <<'END'
import faulthandler, signal, sys, threading
# One thread: the kernel gives the signal to any.
threading.Thread.start, threading.Thread.join = threading.Thread.run, lambda self: None
faulthandler.register(signal.SIGUSR1, all_threads=False)
sys.argv = ["python_work.py", "1e9"]
sys.stdout.write("ready\n")
sys.stdout.flush()
import python_work
END

# Its first thread's functions, innermost first; of either.
of_first()
{
	awk -v first="thread $1 " '/^thread/ { on = index($0, first) == 1 }
		on && sub(/.*\[python\]!/, "") { sub(/ .*/, ""); sub(/.*\./, ""); print }' "$2"
}
of_signal() { sed -n 's/^  File .* in //p' "$1"; }
has_said_all() { tail -n 1 "$1" | grep -q 'stopped.py.* in <module>'; }

# stopped_of VERSION PYTHON: what a thread is in that is stopped at any time. Its next instruction
# after that is faulthandler's, in a signal handler of C.
stopped_of()
{
	local name=stopped$1 program n=0 bad=0 unread=0 tries
	# No child of this shell, which would be told of each stop.
	program=$("$2" stopped.py >"$name.out" 2>>"$name.err" </dev/null & echo $!)
	wait_for 20 grep -q ready "$name.out"
	while [ $n -lt "${PYTHON_COMPARISONS:-10}" ]; do
		sleep "0.0$((RANDOM % 10))$((RANDOM % 10))"
		kill -STOP $program
		"$RECORDER" stacks --process $program >"$name.stacks" 2>"$name.log"
		: >"$name.err"
		kill -USR1 $program
		kill -CONT $program
		for ((tries = 0; tries < 2000; tries++)); do
			has_said_all "$name.err" && break
			sleep 0.005
		done
		n=$((n + 1))
		diff <(of_signal "$name.err") <(of_first $program "$name.stacks") >"$name.diff" &&
			[ -s "$name.err" ] && continue
		# A busy machine: the thread that reads memory did not answer in time.
		if ! of_first $program "$name.stacks" | grep -vqx '+0x0'; then
			unread=$((unread + 1))
			continue
		fi
		bad=$((bad + 1))
		cp "$name.diff" "$name.bad"
	done
	kill -9 $program
	check "${name}_$n comparisons, $bad differ, $unread without names" \
		cat_unless $((bad + (unread * 2 > n))) "$name.bad"
}
cat_unless() { [ "$1" = 0 ] || { cat "$2" 2>/dev/null; return 1; }; }

cat >spin.js <<'END'
function inner(n) { let s = 0; for (let i = 0; i < n; i++) s += Math.sqrt(i); return s; }
function outer() { const end = Date.now() + 300000; while (Date.now() < end) inner(1e5); }
console.log("ready");
outer();
END

calls_outer()
{
	awk -v RS= '/!inner spin\.js:1\n(.*\n)? *\[javascript\]!outer spin\.js:2\n/ { found = 1 }
		END { exit !found }' "$1"
}

node_of()
{
	local name program
	name=node$("$1" --version | tr -c 'a-z0-9\n' _)
	"$1" spin.js >"$name.out" & program=$!
	wait_for 20 grep -q ready "$name.out"
	all_burn 300 $program                # its functions are compiled by then
	# A picture may meet it in Date.now(), or a function whose code is just being replaced.
	for _ in 1 2 3; do
		"$RECORDER" stacks --process $program >"$name.stacks" 2>"$name.log"
		calls_outer "$name.stacks" && break
	done
	check "${name}_functions_are_in_its_stack" calls_outer "$name.stacks"
	dies $program "$name"
	[ ! "$cores" ] || in_root "$1" ||
		check "${name}_so_it_is_when_it_is_dead" calls_outer "$name.dead"
}

cp "$TOP"/tests/programs/python_{threads,work}.py .
while read -r version python; do
	python_of "$version" "$python"
	case $version in
	2.*) echo "skip Python $version stopped anywhere: it has no faulthandler" ;;
	*) stopped_of "$version" "$python" ;;
	esac
done < <(pythons)
for node in "$(command -v node)" "$TOP"/build/deps/npm/node_modules/node-*/bin/node \
		"$TOP"/build/deps/interpreters/all/bin/node; do
	[ ! -x "$node" ] || node_of "$node"
done
