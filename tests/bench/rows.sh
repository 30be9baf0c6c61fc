# Rows of tests/bench, for people and as JSON. Source it; RESULTS is where the JSON is appended
# (nowhere, if unset). bench_rows.h does the same for programs.
# shellcheck shell=bash
RESULTS=${RESULTS:-/dev/null}

# row NAME COMMAND KEY VALUE...: print a row. Values are numbers; anything else becomes "?" and
# null. KEY may end with a goal, as in load_ms<=300: the row then says whether it is met.
row()
{
	local name=$1 command=$2 text object='{}' key goal value holds
	shift 2
	text=$(printf '%-22s' "$name")
	while [ $# -gt 1 ]; do
		key=${1%%[<>]=*} goal=${1#"${1%%[<>]=*}"} value=$2
		[[ $value =~ ^-?[0-9]+(\.[0-9]+)?$ ]] || value=null
		text+="  ${key//_/ } ${value/null/?}"
		object=$(jq -c --arg k "$key" --argjson v "$value" '. + {($k): $v}' <<<"$object")
		if [ "$goal" ] && [ "$value" != null ]; then
			holds=$(awk "BEGIN { print ($value $goal ? \"true\" : \"false\") }")
			text+=" (${goal/=/= }: $([ "$holds" = true ] && echo holds || echo MISSED))"
			object=$(jq -c --arg k "$key" --arg goal "${goal/=/= }" \
				--argjson holds "$holds" \
				'. + {($k + "_goal"): $goal, ($k + "_holds"): $holds}' <<<"$object")
		fi
		shift 2
	done
	echo "$text"
	jq -c --arg row "$name" --arg command "$command" '{row: $row} + . + {command: $command}' \
		<<<"$object" >>"$RESULTS"
}

# calc EXPRESSION [NAME=VALUE...]: a number with up to 4 digits, or ? when a value is missing.
calc()
{
	local expression=$1
	shift
	[[ " $* " == *'=? '* || " $* " == *'= '* ]] && { echo '?'; return; }
	awk "BEGIN { $(printf '%s; ' "$@") v = $expression
		printf((v >= 100 || v == int(v)) ? \"%.0f\" : \"%.4g\", v) }" 2>/dev/null ||
		echo '?'
}
