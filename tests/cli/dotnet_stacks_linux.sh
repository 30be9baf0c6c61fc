#!/bin/bash
# Stacks of .NET programs that were started without any preparation: generated and precompiled code
# has names. They are compared with those of the runtime's own perf map, which a second recorder
# asks for in the same run.
# time limit: 300
. "$TOP/tests/support/cli.sh"
need_perf
need_dotnet 'stacks of .NET programs' @microsoft/sarif-multitool-linux 'sarif-multitool' stacktool

awk 'BEGIN {
	printf "{\"version\":\"2.1.0\",\"runs\":[{\"tool\":{\"driver\":{\"name\":\"t\"}},"
	printf "\"results\":["
	for (i = 0; i < 400000; i++) {
		printf "%s{\"ruleId\":\"R%d\",", i ? "," : "", i % 50
		printf "\"message\":{\"text\":\"number %d of some text\"}}", i
	}
	printf "]}]}"
}' >huge.sarif

# record NAME OPTION...: into NAME.db; its pid is appended to $recorders.
recorders=
record()
{
	local name=$1
	shift
	"$RECORDER" collect --store "$name.db" --freq 499 --max-cpu-percent 0 --history-mb 0 \
		--max-collect-sec 120 "$@" 2>"$name.log" & recorders+=" $!"
	wait_for 20 grep -q recording "$name.log"
}

end_all()
{
	kill -INT $recorders
	wait $recorders
	recorders=
}

# frames NAME PROGRAM: how many of its frames are generated code: "NAMED UNNAMED"
frames()
{
	awk -v program="$2" '$0 ~ "^" program {
		value = $NF
		sub(/ [0-9]+$/, "")
		n = split($0, f, ";")
		for (i = 2; i <= n; i++) {
			if (f[i] ~ /^\[jit\]!\?/)
				unnamed += value
			else if (f[i] ~ /_\[j\]$/)
				named += value
		}
	}
	END { print named + 0, unnamed + 0 }' "$1.folded"
}

# shares NAME PROGRAM: "SHARE FUNCTION" of managed functions, inclusive, without signature and tier
shares()
{
	awk -v program="$2" '$0 ~ "^" program {
		value = $NF
		all += value
		sub(/ [0-9]+$/, "")
		n = split($0, f, ";")
		split("", seen)
		for (i = 2; i <= n; i++) {
			name = f[i]
			if (!sub(/_\[j\]$/, "", name))
				continue
			if (sub(/^\[jit\]!/, "", name)) {
				if (!match(name, /\[[^]]*\] /))
					continue
				module = substr(name, RSTART + 1, RLENGTH - 3)
				name = substr(name, RSTART + RLENGTH)
				sub(/\(.*/, "", name)
				sub(/::/, ".", name)
				name = module "!" name
			}
			if (name ~ /dynamicClass\./) continue   # which have no module with us
			if (!(name in seen))
				sum[name] += value
			seen[name] = 1
		}
	}
	END { for (name in sum) print 100 * sum[name] / all, name }' "$1.folded"
}

# What the map names with 5 % and more has the same share in ours.
shares_agree()
{
	shares both stacktool >ours
	shares map stacktool >theirs
	awk 'NR == FNR { ours[$2] = $1; next }
		$1 >= 5 {
			d = $1 - ours[$2]
			n++
			if (d <= 8 && d >= -8)
				next
			print $2 ": " ours[$2] + 0 " %, by the map " $1
			bad++
		}
		END { print n + 0 " functions"; exit n < 10 || bad }' ours theirs
}

# as_the_map NAME MAP PROGRAM: "SAME OTHERS" of frames with a name of ours, by whether the map has
# that name, parameters and all; it writes some types in another way. Precompiled code, which it
# has not, and dynamic methods are left out.
as_the_map()
{
	awk -v map="$2" -v program="$3" '
	function argument(from, to) {
		while (match(args, "[(,<]" from "[^A-Za-z0-9_.]"))
			args = substr(args, 1, RSTART) to substr(args, RSTART + 1 + length(from)) }
	BEGIN { while ((getline line < map) > 0) {
		sub(/^[^ ]+ [^ ]+ /, "", line)
		if (!match(line, /\[[^]]*\] /)) continue
		module = substr(line, RSTART + 1, RLENGTH - 3)
		line = substr(line, RSTART + RLENGTH)
		sub(/\[[A-Za-z0-9]*\]$/, "", line); sub(/::/, ".", line)
		at = index(line, "("); args = substr(line, at)
		gsub(/\[[A-Za-z][A-Za-z0-9_.]*\]/, "", args)
		gsub(/valuetype /, "value class ", args)
		argument("object", "class System.Object"); argument("string", "class System.String")
		argument("char", "wchar"); argument("uint8", "unsigned int8")
		argument("uint16", "unsigned int16"); argument("uint32", "unsigned int32")
		known[module "!" substr(line, 1, at - 1) args] = 1 } }
	$0 ~ "^" program { c = $NF; sub(/ [0-9]+$/, ""); n = split($0, f, ";")
		for (i = 2; i <= n; i++) {
			if (!sub(/_\[j\]$/, "", f[i]) || f[i] ~ /^(\[|System\.)/) continue
			if (f[i] in known) same += c
			else { others += c; print c, f[i] > "/dev/stderr" } } }
	END { print same + 0, others + 0 }' "$1"
}

rewrite()
{
	./stacktool rewrite huge.sarif --output out.sarif --log ForceOverwrite >/dev/null 2>&1 &
	program=$!
	wait $program
}
record names
rewrite
end_all
# The first would find the map of the second.
record both
record map --no-dotnet-names --enable-perf-map
rewrite
end_all
for name in names both map; do
	"$RECORDER" export 1 --store $name.db --format folded -o $name.folded 2>err
done
read -r named unnamed <<<"$(frames names stacktool)"
echo "$named frames of generated code have a name, $unnamed have none"
check generated_code_has_names [ "$named" -ge 2000 -a $((unnamed * 50)) -le "$named" ]
check as_the_runtime_itself_tells_them shares_agree
"$RECORDER" export 1 --store both.db --format folded --signatures -o signed.folded 2>err
read -r same others <<<"$(as_the_map signed.folded /tmp/perf-$program.map stacktool 2>others)"
check "of $same frames the map has the name and parameters, of $others it has not" \
	[ "$same" -ge 2000 -a $((others * 100)) -le "$same" ]
check precompiled_code_too grep -q '^stacktool.*;System.Private.CoreLib!System\.' names.folded

# The map has none of these: there they are named by the image itself, without the runtime. What was
# hardly sampled may have been missed by the other recorder.
by_the_image()
{
	awk '$0 !~ /^stacktool/ { next }
		{ c = $NF; sub(/ [0-9]+$/, ""); n = split($0, f, ";") }
		{ for (i = 2; i <= n; i++) {
			told = sub(/_\[j\]$/, "", f[i])
			gsub(/\[[^\]!]*\]/, "", f[i])
			if (FNR == NR)
				known[f[i]] = 1
			else if (!told && f[i] ~ /^System\..*!System\./)
				sum[f[i]] += c } }
		END { for (name in sum)
				if (sum[name] >= 10)
					if (name in known) same += sum[name]
					else { others += sum[name]; print name > "/dev/stderr" }
			print same + 0, others + 0 }' both.folded map.folded
}
read -r same others <<<"$(by_the_image)"
check "of $same frames of precompiled code the runtime tells the name, of $others it does not" \
	[ "$same" -ge 100 -a $((others * 50)) -le "$same" ]

# Without a diagnostics port nothing is told: precompiled code has its names by its file, generated
# code by the program's memory. Its last code may be read too late: the program has ended.
as_told()
{
	awk '$0 !~ /^stacktool/ { next }
		{ c = $NF; sub(/ [0-9]+$/, ""); n = split($0, f, ";") }
		{ for (i = 2; i <= n; i++) {
			if (!sub(/_\[j\]$/, "", f[i])) continue
			gsub(/\[[^\]!]*\]/, "", f[i])
			if (FNR == NR) known[f[i]] = 1
			else if (f[i] !~ /^!/ && f[i] in known) same += c
			else if (f[i] !~ /^!/) { others += c; print c, f[i] > "/dev/stderr" } } }
		END { print same + 0, others + 0 }' names.folded off.folded
}
record off
DOTNET_EnableDiagnostics=0 rewrite
end_all
"$RECORDER" export 1 --store off.db --format folded -o off.folded 2>err
check without_a_port_precompiled_code_has_names \
	grep -q '^stacktool.*;System.Private.CoreLib!System\.' off.folded
read -r named unnamed <<<"$(frames off stacktool)"
echo "$named frames of generated code have a name without a port, $unnamed have none"
check and_so_has_generated_code [ "$named" -ge 1000 -a "$unnamed" -le "$named" ]
read -r same others <<<"$(as_told)"
check "of $same of them the runtime tells the name with its port open, of $others it does not" \
	[ "$same" -ge 1000 -a $((others * 50)) -le "$same" ]

export DOTNET_SYSTEM_GLOBALIZATION_INVARIANT=1 DOTNET_BUNDLE_EXTRACT_BASE_DIR=$PWD/bundle
need_dotnet 'stacks of .NET Core 3.1' sarif-multitool-3.1 'sarif-multitool 2.4.16' stack31
record old
./stack31 rewrite huge.sarif --output out.sarif --force >/dev/null 2>&1
end_all
check core_3_is_not_asked_for_its_code_as_it_can_hang grep -q 'is of .NET Core 3' old.log
"$RECORDER" export 1 --store old.db --format folded -o old.folded 2>err
check but_its_precompiled_code_has_names \
	grep -q '^stack31.*System.Private.CoreLib!System\.' old.folded
