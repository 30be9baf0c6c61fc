#!/bin/bash
# Python as it runs in production: a Flask server under load, a pool of worker processes and
# coroutines; Django. Nearly all samples have the whole chain of Python functions, from the thread's
# first one over the framework's to the program's own.
# time limit: 300
. "$TOP/tests/support/cli.sh"
need_perf

# python_with MODULE: the last Python that has it
python_with()
{
	local each
	for each in /usr/bin/python3 $(pythons | awk '{ print $2 }'); do
		"$each" -c "import werkzeug, $1" 2>/dev/null && echo "$each"
	done | tail -n 1
}
python=$(python_with flask)
if [ ! "$python" ]; then
	echo "skip python server: no Flask here (apt-get install python3-flask)"
	exit 0
fi

# chains FOLDED: of the samples in the evaluator or a Python function, how many there are, and per
# cent that begin with a thread's first function and have Flask's between it and a request's.
chains()
{
	awk 'BEGIN {
			root = "^(python_server\\.<module>|threading\\.Thread\\._bootstrap_)"
			request = "!python_server\\.(django_)?(page|search)_"
			flask = "!(flask\\.app\\.Flask\\.(wsgi_app|dispatch_request)_" \
				"|django\\.core\\.handlers\\.base\\.BaseHandler\\.).*" request
		}
		# The interpreter starts, or imports before the program begins.
		/site\.<module>|pymain_init/ { next }
		/_PyEval_EvalFrameDefault|\[python\]!/ {
			first = ""
			if (match($0, /\[python\]![^;]*/))
				first = substr($0, RSTART + 9, RLENGTH - 9)
			if (first ~ /^importlib\._bootstrap/ && !/python_server/) next
			all += $NF
			if (first ~ root && !/\[python\]!\?/ && ($0 !~ request || $0 ~ flask))
				good += $NF
			else
				print $NF, $0 > "/dev/stderr" }
		END { printf "%d %.2f\n", all, all ? 100 * good / all : 0 }' "$1"
}

# record NAME ARGUMENT...: NAME.folded, n and good; for longer where the machine is so busy that the
# server has had hardly any CPU time
record()
{
	local name=$1 seconds
	shift
	for seconds in 6 60; do
		rm -rf "$name".db*
		"$RECORDER" run --store "$name.db" --freq 997 --max-cpu-percent 0 -- "$python" \
			python_server.py $seconds "$@" >out 2>log
		"$RECORDER" export 1 --store "$name.db" --interpreter-frames -f -o "$name.folded" \
			2>>log
		read -r n good < <(chains "$name.folded" 2>others)
		[ "$n" -le 1000 ] || break
	done
}

cp "$TOP/tests/programs/python_server.py" .
record s
check "$good % of $n samples have the whole chain" awk -v n="$n" -v good="$good" \
	'BEGIN { exit !(n > 200 && good >= 97) }'
sort -rn others | cut -c1-300 | head -5
for each in 'python_server\.page_.*jinja2' \
		'flask\.app\.Flask\.dispatch_request_.*python_server\.search_' \
		'python_server\.task_.*json' \
		'asyncio\.runners\.run_.*!python_server\.step_'; do
	check "there is ${each//\\/}" grep -Eq "$each" s.folded
done

python=$(python_with django)
if [ ! "$python" ]; then
	echo "skip Django: not here (apt-get install python3-django)"
	exit 0
fi
record d django
check "$good % of $n samples of Django have the whole chain" awk -v n="$n" -v good="$good" \
	'BEGIN { exit !(n > 200 && good >= 97) }'
sort -rn others | cut -c1-300 | head -5
check there_is_djangos_template grep -Eq 'python_server\.django_page_.*django\.template' d.folded
