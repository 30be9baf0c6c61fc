#!/bin/bash
# Processes by the names that people use: sh is dash here, python3 a link to python3.11; a shell
# script and an applet of busybox are known by their own names. In rules, filters, counters and
# lists.
. "$TOP/tests/support/cli.sh"
need_perf

python=$(readlink -f /usr/bin/python3 2>/dev/null) && [ -x "$python" ] || python=
shell=$(basename "$(readlink -f /bin/sh)")

mkdir links
ln -s "$(command -v sleep)" links/doze
ln -s /bin/sh links/a-shell-with-a-long-name
printf '#!/bin/sh\nsleep "${1:-30}"\ntrue\n' >backup.sh
chmod +x backup.sh

# recorded NAME RULE COMMAND...: the rule must fire into NAME.db while the command runs; the log is
# NAME.log
recorded()
{
	local name=$1 rule=$2 collect
	shift 2
	timeout 60 "$RECORDER" collect --store "$name.db" --delay-after-trigger-sec 0 \
		--stop-on-process "$rule" 2>"$name.log" &
	collect=$!
	wait_for 30 grep -q recording "$name.log"
	"$@"
	wait $collect
}

# ---- rules ---------------------------------------------------------------------------------------

check a_rule_on_sh_fires_at_the_end_of_dash recorded sh 'sh' sh -c 'sleep 0.5; true'
# Somebody else may run shells here, and theirs may have ended first.
check its_reason_shows_the_file_s_name \
	grep -qE "fired: process .*$shell\]? \(pid [0-9]+\) ended" sh.log
check a_link_with_a_name_longer_than_the_kernel_s recorded long 'a-shell-with-a-long-name' \
	links/a-shell-with-a-long-name -c 'sleep 1; true'
check and_it_is_shown_whole grep -qE 'process a-shell-with-a-long-name \[[a-z]+\]' long.log
check a_rule_on_a_script_fires_at_its_end recorded script 'backup.sh;On=exit' sh ./backup.sh 0.5
check and_at_the_start_of_a_script_for_an_interpreter \
	recorded start 'backup.sh;On=start' sh -u ./backup.sh 1
check a_script_with_a_hash_bang_line_is_called_by_its_name recorded bang 'backup.sh' ./backup.sh 0.5
check and_shown_so grep -qE 'process backup.sh \[[a-z]+\]' bang.log

# ---- filters, lists and counters -----------------------------------------------------------------

./links/doze 300 & doze=$!
sh ./backup.sh 300 & script=$!
names="$doze $script"
trap 'kill $names 2>/dev/null' EXIT
check a_counter_by_a_link_has_a_value expect_exit 0 "$RECORDER" counters 'Process:Working Set:doze'
counter()
{
	"$RECORDER" counters --json "$1" 2>>err |
		jq -s -c '.[] | select(.counter == $c)' --arg c "$1" >counter
}

counter 'Process:Working Set:doze'
check and_says_whose jq -e --arg m "doze [sleep] ($doze)" '.value > 0 and .means == $m' counter
counter 'Process:ID Process:backup.sh'
check a_counter_by_a_script_s_name jq -e --argjson p "$script" '.value == $p' counter
"$RECORDER" check --store s.db --stop-on-process 'doze,backup.sh,no-such-program' \
	--stop-on-perf-counter 'Process:Working Set:doze>100G' >rules 2>err
check check_says_which_processes_a_name_means grep -qF "'doze' now means doze [sleep] ($doze)" rules
check and_a_script_s_name grep -qE "'backup.sh' now means backup.sh( \[dash\])? \($script\)" rules
check and_that_nobody_has_one grep -q "no process is called 'no-such-program' now" rules
check and_whose_value_a_counter_is grep -qE "now [0-9]+ bytes, of doze \[sleep\] \($doze\)" rules

if [ "$python" ]; then
	mkdir app
	cat >app/manage.py <<-'PYTHON'
		import time
		end = time.time() + 300
		while time.time() < end: sum(range(1000))
	PYTHON
	/usr/bin/python3 -u app/manage.py runserver & python_pid=$!
	names="$names $python_pid"
	counter 'Process:ID Process:manage.py'
	check manage_py_has_a_counter jq -e --argjson p "$python_pid" '.value == $p' counter
	file=$(basename "$python")
	all_burn 200 $python_pid
	timeout 60 "$RECORDER" collect --store python.db --record-process manage.py \
		--max-collect-sec 3 2>python.log
	check record_process_takes_the_script_s_name \
		"$RECORDER" show --store python.db --id 1 --process python3
	check and_the_file_s_name "$RECORDER" show --store python.db --id 1 --process "$file"
	check and_the_script_s "$RECORDER" show --store python.db --id 1 --process manage.py --json
	"$RECORDER" export --store python.db --id 1 -f >folded 2>>err
	check no_other_process_was_recorded sh -c '! grep -v ^python folded'
	"$RECORDER" show --store python.db --id 1 >show 2>err
	check the_list_shows_the_script_and_the_file \
		grep -qF "manage.py [$file] ($python_pid)" show
	expect another_name_is_refused_with_what_there_is 3 "busiest are manage.py" \
		show --store python.db --id 1 --process nobody-s-name
else
	echo "skip record_process_takes_the_script_s_name: no python3 in /usr/bin"
fi

# ---- busybox: every program has the same file ----------------------------------------------------

if command -v busybox >/dev/null; then
	ln -s "$(command -v busybox)" links/usleep
	./links/usleep 300000000 & applet=$!
	names="$names $applet"
	wait_for 5 grep -qx usleep "/proc/$applet/comm"
	"$RECORDER" check --store s.db --stop-on-process usleep >rules 2>err
	check an_applet_of_busybox_is_known_by_its_link \
		grep -qE "usleep \[busybox\] \($applet\)" rules
	check and_a_rule_on_it_fires recorded applet 'usleep;On=exit;Signal=TERM' \
		sh -c "sleep 0.5; kill -TERM $applet"
	check which_says_so \
		grep -qE "process usleep \[busybox\] \(pid $applet\) was killed by signal 15" \
		applet.log
else
	echo "skip an_applet_of_busybox_is_known_by_its_link: no busybox"
fi
