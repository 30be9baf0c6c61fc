#!/bin/bash
# tests/windows-acceptance.cmd: its steps are the steps of tests/README.md, and the shell runs it to
# its end. Only a real Windows can pass them; here recorder.exe and the tools are empty programs
# that succeed (findstr is real).
# time limit: 200
. "$TOP/tests/support/cli.sh"

script=$TOP/tests/windows-acceptance.cmd
# Numbers of the steps that need no person, from the list and from the script's labels.
sed -n '/(by hand)/d; s/^\([0-9]*\)\. .*/\1/p' "$TOP/tests/README.md" | sort -nu >table
grep -oE 'call :(is|has|hasnot) [0-9]+_' "$script" | grep -oE '[0-9]+' | sort -nu >labels
check the_script_has_the_steps_of_the_table diff table labels
check each_label_is_there_once \
	[ "$(grep -oE 'call :(is|has|hasnot) [0-9a-z_]+' "$script" | sort | uniq -d | wc -l)" = 0 ]

tools=$TOP/build/windows/programs/tools_windows.exe
if [ ! "$WINE_RUN" ] || [ ! -e "$tools" ]; then
	echo "skip windows_acceptance_run: no Wine here, or no $tools;" \
		"run 'make VARIANT=windows programs'"
	exit 0
fi
mkdir shells
for name in findstr logman wpr net ping powershell eventcreate taskkill sc recorder; do
	ln "$tools" shells/$name.exe 2>/dev/null || cp "$tools" shells/$name.exe
done
cp "$script" .
cp "$tools" recorder.exe
# Ours come first on the path: Wine's own versions of some tools fail, and its findstr finds
# everything.
timeout 180 $WINE_RUN cmd /c \
	'set PATH=%CD%\shells;%PATH%&windows-acceptance.cmd' >out 2>err </dev/null
code=$?
tr -d '\r' <out | grep -oE '^(passed|failed) [0-9a-z_]+' | sed 's/.* //' | sort >ran
grep -oE 'call :(is|has|hasnot) [0-9a-z_]+' "$script" | sed 's/.* //' | sort >meant
check every_step_says_passed_or_failed diff meant ran
check steps_that_fail_make_it_fail [ $code = 1 ]
passed=$(grep -c '^passed' out) failed=$(grep -c '^failed' out)
check its_last_line_has_the_sums grep -q "^$passed passed, $failed failed; " out
# The empty programs print nothing: exit codes are right, no unwanted text appears, and no wanted
# one.
check exit_codes_and_what_must_not_be_said_pass sh -c \
	"grep -q '^passed 1_check_exit_code' out && grep -q '^passed 3_lost_nothing' out &&
	grep -q '^failed 1_etw: no .etw. in ' out"
