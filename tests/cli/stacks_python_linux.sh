#!/bin/bash
# stacks of Python programs, of every CPython that is found here: function for function what the
# interpreter itself says (faulthandler) of threads that stand still in many ways.
. "$TOP/tests/support/cli.sh"

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

found=0
while read -r version python; do
	found=$((found + 1)) name=python$version
	"$python" "$TOP/tests/programs/python_threads.py" >"$name.out" 2>"$name.err" & program=$!
	wait_for 20 grep -q ready "$name.out"
	kill -USR1 $program
	wait_for 10 said "$name.err"
	"$RECORDER" stacks --process $program >"$name.stacks" 2>"$name.log"
	kill $program
	wait $program 2>/dev/null
	of_itself "$name.err" >"$name.wanted"
	of_stacks "$name.stacks" >"$name.seen"
	check "${name}_functions_are_those_that_it_says_itself" diff "$name.wanted" "$name.seen"
	check "${name}_native_frames_are_among_them" \
		grep -qE '^    [^[]*!(_PyEval_EvalFrameDefault|PyEval_EvalFrameEx)' "$name.stacks"
done < <(pythons)
[ $found -gt 0 ] || echo "skip stacks_python: no CPython here (apt-get install python3)"
