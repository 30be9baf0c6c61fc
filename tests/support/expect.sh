# For tests/cli/*.sh: run the recorder, look at what it said, print one result line.
#
#	expect NAME EXIT PATTERN ARG...    exit code, and an extended regular expression that must be
#	                                   found in stderr (or in stdout); '' = stderr must be empty
#	verify NAME COMMAND...             the command must succeed
#
# Leaves what the recorder printed in the files out and err, its exit code in $code.

expect()
{
	local name=$1 want=$2 pattern=$3
	shift 3
	"$RECORDER" "$@" >out 2>err </dev/null
	code=$?
	if [ "$code" != "$want" ]; then
		echo "not ok $name: exit code $code, not $want: $(head -c 400 err | tr '\n' ' ')"
	elif [ ! "$pattern" ] && [ -s err ]; then
		echo "not ok $name: unexpected remark: $(head -c 400 err | tr '\n' ' ')"
	elif [ "$pattern" ] && ! cat err out | grep -qE -e "$pattern"; then
		echo "not ok $name: no '$pattern' in: $(cat err out | head -c 400 | tr '\n' ' ')"
	else
		echo "ok $name"
	fi
}

verify()
{
	local name=$1
	shift
	if "$@" >verify.log 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name: '$*' failed: $(head -c 400 verify.log | tr '\n' ' ')"
	fi
}
