#!/bin/bash
# Files of `perf record`, read with collect --from: the same samples, names and shares as perf's own
# report and script of the same file, and stacks that are at least as complete.
. "$TOP/tests/support/cli.sh"
need_perf
if ! perf record -q --buildid-mmap -o try.data true 2>try.log; then
	echo "skip perf_data: perf record does not work here: $(head -1 try.log)"
	exit 0
fi

cat >six.sh <<'END'
perl -e 'while ($i++ < 60) { my %n; $n{$_ % 97} .= chr(65 + $_ % 26) for 1..20000;
	my $t = join "", sort values %n; $t =~ s/([AEIOU])(.)/$2$1/g }' &
awk 'BEGIN { while (i++ < 3000000) t += i % 7; print t }' >/dev/null
wait
sqlite3 :memory: 'with recursive c(x) as (select 1 union all select x + 1 from c where x < 600000)
	select sum(x * x % 7) from c' >/dev/null
seq 200000 | sort -r | xz -6 >/dev/null
seq 600000 | md5sum >/dev/null
i=0; while [ $i -lt 200000 ]; do i=$((i + 1)); done
END
# --buildid-mmap: without it perf 6.1 aborts when some other program records build ids meanwhile.
perf record -q --buildid-mmap -o fp.data -g -F 999 -e cpu-clock -- sh six.sh
perf record -q --buildid-mmap -o dwarf.data --call-graph dwarf,16384 -F 499 -e cpu-clock -- \
	sh six.sh
perf record -q --buildid-mmap -o - -g -F 499 -e cpu-clock -- sh six.sh >pipe.data
perf record -q --buildid-mmap -o many.data -g -F 499 -e cpu-clock -e page-faults -- sh six.sh
for f in fp dwarf pipe many; do
	"$RECORDER" collect --from $f.data --store $f.db 2>$f.log
	perf script --no-inline -F comm,tid,time,event,ip,sym,dso -i $f.data 2>/dev/null |
		awk '/^[^\t ]/ { cpu = /cpu-clock/ } cpu' >$f.theirs
	"$RECORDER" export 1 --store $f.db --format perf-script -o $f.ours 2>>$f.log
done

# ---- shares --------------------------------------------------------------------------------------

# Lines "SELF INCLUSIVE MODULE" (or function: -v by=function), sorted; one sample counts once.
shares()
{
	awk -v by="${2:-module}" '
		function name(line,    f) {
			sub(/^[\t ]+[0-9a-f]+ /, "", line)
			sub(/\+0x[0-9a-f]+ \(/, " (", line)
			sub(/ \(deleted\)\)$/, ")", line)
			f = line
			sub(/^.* \(/, "", f)
			sub(/\)$/, "", f)
			sub(/^.*\//, "", f)
			if (by == "module")
				return f
			sub(/ \([^(]*\)$/, "", line)
			sub(/@.*/, "", line)         # of a version, or a jump table
			# perf prefers other aliases
			sub(/^cfree$/, "free", line)
			sub(/^__fmod$/, "fmod", line)
			return f "!" line
		}
		/^[\t ]+[0-9a-f]+ / {
			n = name($0)
			if (n ~ /^\[unknown\]|^\?/)
				next
			if (!deep++)
				self[n]++
			if (!(n in seen)) { seen[n] = 1; all[n]++ }
			next
		}
		{ deep = 0; split("", seen) }
		END { for (n in all) print self[n] + 0, all[n], n }' "$1" | sort
}

count() { grep -c '^[^	 #]' "$1"; }

# close_to FILE BY MOST self|inclusive: at most that many % of the samples differ.
close_to()
{
	shares "$1.theirs" "$2" >theirs
	shares "$1.ours" "$2" >ours
	awk -v n="$(count "$1.theirs")" -v most="$3" -v what="$4" '
		{ at = what == "self" ? $1 : $2; name = $0; sub(/^[0-9]+ [0-9]+ /, "", name) }
		NR == FNR { theirs[name] = at; next }
		{ d = at - theirs[name]; off += d < 0 ? -d : d; delete theirs[name] }
		END { for (name in theirs) off += theirs[name]
			printf "%.2f %% of %d differ\n", 100 * off / 2 / n, n
			exit !(n > 50 && 100 * off / 2 / n <= most) }' theirs ours
}

for f in fp dwarf pipe many; do
	check "every_sample_of_${f}_is_there" [ "$(count $f.ours)" = "$(count $f.theirs)" ]
	check "and_in_the_same_module_$f" close_to $f module 1 self
	# perf names jumps of stripped programs (strcmp@plt).
	check "and_in_the_same_function_$f" close_to $f function 5 self
done
check inclusive_shares_of_functions_agree close_to fp function 12 inclusive

# perf keeps copies of the kernel's list of functions by build id. One is read instead of making the
# list anew, unless it is cut.
for home in no_copy cut_copy renamed_copy; do
	copy="$home/.debug/[kernel.kallsyms]/$(perf buildid-list -k)"
	mkdir -p "$copy"
	[ $home = no_copy ] || cat /proc/kallsyms >"$copy/kallsyms"
	[ $home != cut_copy ] || truncate -s 2000000 "$copy/kallsyms"
	[ $home != renamed_copy ] ||
		sed -i -E '/ _e?text$/!s/ ([tTwW]) / \1 copied_/' "$copy/kallsyms"
	HOME=$PWD/$home "$RECORDER" collect --from fp.data --store $home.db 2>$home.log
	"$RECORDER" export 1 --store $home.db -f >$home.folded
done
"$RECORDER" export 1 --store fp.db -f >fp.folded
check functions_of_the_kernel_have_names_without_a_copy cmp fp.folded no_copy.folded
check and_with_one_that_is_cut cmp fp.folded cut_copy.folded
check a_whole_copy_is_read cmp fp.folded <(sed 's/copied_//g' renamed_copy.folded)
check instead_of_the_list grep -q copied_ renamed_copy.folded
check a_pipe_s_stream_says_where_it_is_from sh -c '"$RECORDER" show 1 --store pipe.db |
	grep -q "on $(uname -n) (Linux $(uname -r)"'

# ---- stacks --------------------------------------------------------------------------------------

# Stacks with a function where threads and programs begin.
rooted() { awk '/_start|start_thread|clone|_fork/ { at = 1 } !NF { n += at; at = 0 }
	END { print n + at }' "$1"; }
ours=$(rooted dwarf.ours)
theirs=$(rooted dwarf.theirs)
all=$(count dwarf.ours)
check dwarf_stacks_are_at_least_as_complete_as_perf_s [ "$ours" -ge "$theirs" ]
check nearly_all_of_them_reach_the_root [ $((100 * ours)) -ge $((97 * all)) ]

# ---- several events ------------------------------------------------------------------------------

perf report -i many.data --stdio --no-children -g none 2>/dev/null >report
sums() { awk -v e="$1" '/^# Samples:/ { on = index($0, "\047" e) }
	/^# Event count/ && on { print $NF }' report; }
"$RECORDER" report 1 --store many.db --metric event --json >events.json
check counts_of_an_event_are_perf_s [ "$(sums page-faults)" = "$(
	"$RECORDER" export 1 --store many.db --metric event -f |
		awk '{ n += $NF } END { print n }')" ]
check cpu_time_is_the_sum_of_its_periods [ "$(($(sums cpu-clock) / 1000000))" = "$(
	"$RECORDER" report 1 --store many.db --json |
		jq -s 'map(select(.row == "process") | .inclusive_ms) | add | floor')" ]
"$RECORDER" collect --from many.data --store fired.db --collect-multiple 2 \
	"/StopOnEvent:cpu-counter/page-faults" 2>fired.log
check rules_fire_on_its_events grep -q 'fired: cpu-counter/page-faults' fired.log
check a_rule_on_counters_is_refused expect_exit 2 \
	"$RECORDER" collect --from fp.data --store no.db \
	'/StopOnPerfCounter:Memory:Available MBytes<1'

# ---- the whole machine ---------------------------------------------------------------------------

perl -e 'while (1) { $i++ }' &
burner=$!
perf record -q --buildid-mmap -a -o all.data -F 499 -e cpu-clock -- sleep 0.5
kill $burner
wait 2>/dev/null
"$RECORDER" collect --from all.data --store all.db 2>all.log
busy=$(perf script -i all.data -F comm,pid 2>/dev/null | grep -vc '^ *swapper')
check samples_of_idle_cpus_are_left_out [ "$("$RECORDER" export 1 --store all.db -f |
	awk '{ n += $NF } END { print n }')" = "$busy" ]
check who_ran_before_perf_has_its_own_name eval '"$RECORDER" report 1 --store all.db --rows 1000 |
	grep -q " perl ($burner)"'

# ---- comparing -----------------------------------------------------------------------------------

"$RECORDER" collect --from dwarf.data --store fp.db 2>both.log
check two_of_perf_s_files_are_compared sh -c '"$RECORDER" diff 1 2 --store fp.db >diff.out 2>&1 &&
	grep -q RESP diff.out'

# ---- damage --------------------------------------------------------------------------------------

half=$(($(stat -c %s fp.data) / 2))
head -c $half fp.data >cut.data
"$RECORDER" collect --from cut.data --store cut.db 2>cut.log
check a_file_that_is_cut_is_read_up_to_there grep -q 'incident 1 stored' cut.log
check and_said_to_be_cut grep -q 'cut.data is incomplete: perf did not finish it' cut.log
{ printf 2ELIFREP; tail -c +9 fp.data; } >other.data
check the_other_byte_order_is_refused sh -c '! "$RECORDER" events --from other.data --count 2>err &&
	grep -q "the other byte order" err'
check a_compressed_file_is_refused sh -c 'perf record -q -z -o z.data true 2>/dev/null ||
		exit 0
	! "$RECORDER" events --from z.data --count 2>err && grep -q "is compressed" err'
