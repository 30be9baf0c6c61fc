#!/bin/bash
# check names the running processes whose stacks will be incomplete, and says why.
. "$TOP/tests/support/cli.sh"
command -v jq >/dev/null || { echo "skip check_linux: no jq here"; exit 0; }

pids=
trap 'kill $pids 2>/dev/null' EXIT
run() { "$@" >/dev/null 2>&1 & pids="$pids $!"; }

# A program that only waits: it calls pause() for ever, by the bare system call.
cat >wait64.s <<'S'
	.globl _start
_start:	mov $34, %eax
	syscall
	jmp _start
S
cat >wait32.s <<'S'
	.globl _start
_start:	mov $29, %eax
	int $0x80
	jmp _start
S
cat wait64.s - >waitgo.s <<'S'
	.section .note.go.buildid, "a", @note
	.long 4, 4, 4
	.ascii "Go\0\0", "test"
S
gcc -nostdlib -static -o check-bare wait64.s
gcc -nostdlib -static -o check-go waitgo.s
run ./check-bare
run ./check-bare
run ./check-go
cat wait64.s - >waitimage.s <<'S'
	.section .svm_heap, "a", @progbits
	.quad 1
S
gcc -nostdlib -static -o check-image waitimage.s
run ./check-image
thirty_two=
if gcc -m32 -nostdlib -static -o check-32 wait32.s 2>err32; then
	run ./check-32
	thirty_two=$!
fi

# One program whose library was deleted, and one with code made at run time.
cat >lib.c <<'C'
int nothing(void) { return 0; }
C
cat >uses.c <<'C'
#include <sys/mman.h>
#include <unistd.h>
int nothing(void);
int main(int argc, char **argv)
{
	if (argc > 1)
		mmap(0, 2 << 20, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	while (!nothing())
		pause();
	(void)argv;
	return 0;
}
C
gcc -shared -fPIC -o libcheck.so lib.c &&
	gcc -o check-old uses.c ./libcheck.so && cp check-old check-jit
run ./check-old
# OpenJ9 is known by the name of its library.
gcc -shared -fPIC -o libj9vm29.so lib.c && gcc -o check-j9 uses.c ./libj9vm29.so && run ./check-j9
sleep 0.3
cp libcheck.so again.so && mv again.so libcheck.so
run ./check-jit code
[ -x /usr/bin/java ] && {
	printf 'public class W { public static void main(String[] a) throws Exception { %s } }\n' \
		'Thread.sleep(60000);' >W.java
	run java -Xmx64m W.java
	java=$!
}
cp /bin/sleep check-plain && run ./check-plain 60
# Three programs called node: one has the function that V8 collects in, one is stripped of its name,
# and one has it in a library.
echo 'void _ZN2v88internal4Heap24PerformGarbageCollectionEv(void) { }' >v8.c
echo '#include <unistd.h>
int main(void) { for (;;) pause(); }' >node.c
mkdir named stripped shared
gcc -o named/node node.c v8.c && gcc -s -o stripped/node node.c v8.c &&
	gcc -s -shared -fPIC -o libnode.so.1 v8.c &&
	gcc -Wl,--no-as-needed -o shared/nodejs node.c ./libnode.so.1
run named/node
run stripped/node
run shared/nodejs

# check spends at most 2 s on this, so repeat it until it has listed all of them.
programs() { jq -r --arg c "$1" \
	'select(.check == "stacks" and .cause == $c).programs[].name' found; }
all_there()
{
	"$RECORDER" check --json --store s.db >found 2>err
	programs no-unwind-tables | grep -q check-bare && programs jit-names | grep -q check-jit &&
		programs replaced | grep -q check-old &&
		programs node-collections-unseen | grep -q node &&
		programs node | grep -q nodejs && { [ ! "${java-}" ] ||
		jq -r '.programs[]?.name' found | grep -qx java; }
}
wait_for 20 all_there

has() { programs "$1" | grep -qx "$2"; }
check a_program_without_unwind_tables_is_named has no-unwind-tables check-bare
check two_of_one_name_are_counted_together \
	jq -s -e 'any(.[] | select(.cause == "no-unwind-tables").programs[];
	.name == "check-bare" and .processes == 2)' found
check a_go_program_is_told_apart has go check-go
check a_native_image_is_told_apart has native-image check-image
check openj9_is_told_apart has jvm check-j9
check and_not_called_broken sh -c \
	'! jq -r "select(.cause == \"no-unwind-tables\").programs[].name" found | grep -q check-go'
if [ "$thirty_two" ]; then
	check a_32_bit_program_is_judged_like_others has no-unwind-tables check-32
else
	echo "skip a_32_bit_program_is_judged_like_others: $(head -1 err32)," \
		"or the kernel runs none"
fi
check a_replaced_library_is_found has replaced check-old
check code_made_at_run_time_has_no_names has jit-names check-jit
if [ "${java-}" ]; then
	check a_stock_jvm_has_no_gaps sh -c '! jq -r "select(.cause == \"jvm\" or
		.cause == \"jit-names\").programs[].name" found | grep -qx java'
else
	echo "skip a_stock_jvm_has_no_gaps: no java here"
fi
check a_node_with_symbols_can_be_seen_collecting has node node
check and_one_that_has_them_in_a_library has node nodejs
check one_that_was_stripped_cannot has node-collections-unseen node
check a_plain_program_is_not_named sh -c '! grep -q check-plain found'
"$RECORDER" check --store s.db >text 2>err
check the_text_gives_advice grep -q 'rebuild with -fasynchronous-unwind-tables' text
check it_says_whether_tracepoints_can_be_had \
	jq -s -e 'any(.check == "source" and .name == "tracepoints" and
	(.verdict == "ok" or (.verdict == "note" and (.text | test("mount|root|kernel")))))' found
check and_probes_in_programs jq -s -e 'any(.check == "source" and .name == "uprobes")' found
"$RECORDER" check --store s.db --stop-on-gc-suspend-over-msec '5;Process=check-plain' >rule 2>err
check a_rule_that_only_net_programs_can_fire_is_noted \
	grep -q 'only .NET programs can fire it, and none of those it names runs' rule

# Mistakes that would otherwise stay silent: a rule that is switched off, names that do not exist,
# an option whose source is missing.
doubts() { "$RECORDER" check --json --store s.db "$1" 2>/dev/null |
	jq -r 'select(.check == "rule").text' >rule; }
doubts '/StopOnGCOverMsec:0'
check a_limit_of_0_is_said_to_be_off grep -q 'never fires' rule
doubts '/StopOnGCOverMsec:5;Process=check-pl'
check a_name_that_begins_that_of_a_process_is_noted \
	grep -q "no process is called 'check-pl' now.*'check-plain'" rule
doubts '/StopOnGCOverMsec:5;Process=check-plain'
check and_the_whole_name_is_said_to_mean_it \
	grep -qE "^'check-plain' now means check-plain \([0-9]+\)$" rule
doubts '/StopOnEtwEvent:Microsoft-Windows-DotNETRuntime/GC/Strt'
check an_event_that_net_has_not_is_told_the_nearest grep -q "the nearest are 'GC/Start'" rule
doubts '/StopOnEtwEvent:Microsoft-Windows-DotNETRuntime/GCStart'
check and_one_in_another_spelling_is_known [ "$(cat rule)" = "" ]
doubts '/StopOnEtwEvent:CPython/GCStop;FieldFilter=PauseMSec>50'
check a_field_that_a_collection_has_not_is_told_those_that_it_has \
	grep -q "has no field 'PauseMSec'; it has Reason" rule
timeout 20 "$RECORDER" events --live 'Microsoft-Windows-DotNETRuntime/GC/Strt' \
	--seconds 0.1 >out 2>err
check and_events_live_says_so_too grep -q "the nearest are 'GC/Start'" err
if [ "$(id -u)" = 0 ] && unshare -m true 2>/dev/null; then
	cat >untraced.sh <<-'UNTRACED'
		mount -t tmpfs none /sys/kernel || exit 0
		"$RECORDER" check --store s.db --thread-time >without 2>/dev/null
		echo $? >status
		"$RECORDER" check --store s.db --wakers >wakers 2>/dev/null
	UNTRACED
	unshare -m bash untraced.sh
	check thread_time_without_tracefs_is_no_success [ "$(cat status)" = 1 ]
	check and_says_that_it_is_missing grep -q '^source   missing  tracepoints' without
	check and_for_which_option sh -c "grep -q -e '--thread-time needs' without &&
		grep -q -e '--wakers needs' wakers"
else
	echo "skip thread_time_without_tracefs_is_no_success: not root, or no namespaces here"
fi
check and_counts grep -qE '^stacks   note     [0-9]+ processes: ' text

# ---- who may see the programs of others ----------------------------------------------------------

if [ "$(id -u)" = 0 ] && command -v setpriv >/dev/null; then
	verdicts() { jq -s -c '[.[] | select(.check == "source" and (.name |
		endswith("-of-others"))) | .verdict] | unique'; }
	check root_sees_java_and_net_of_others \
		[ "$("$RECORDER" check --json 2>/dev/null | verdicts)" = '["ok"]' ]
	check another_user_does_not_and_check_says_so \
		[ "$(setpriv --reuid 65534 --clear-groups "$RECORDER" check --json 2>/dev/null |
		verdicts)" = '["note"]' ]
	# The setcap command of 'recorder help privileges' is enough to read files of other users,
	# but not to connect to their sockets.
	caps=+sys_ptrace,+dac_read_search
	setpriv --reuid 65534 --clear-groups --inh-caps $caps --ambient-caps $caps "$RECORDER" \
		check --json >given 2>/dev/null
	check with_two_capabilities_java_of_others_is_seen jq -s -e \
		'any(.name == "java-of-others" and .verdict == "ok") and
		any(.name == "dotnet-of-others" and (.text | test("cap_dac_override")))' given
	run setpriv --reuid 65534 --clear-groups ./check-plain 60
	root_is_refused()
	{
		setpriv --bounding-set -sys_ptrace "$RECORDER" check --json 2>/dev/null |
			jq -r 'select(.cause == "unreadable").text' >rooted
		[ -s rooted ]
	}
	wait_for 10 root_is_refused
	check root_that_may_not_look_is_told_why grep -q 'not even root.*cap_sys_ptrace' rooted
	check and_not_to_be_root sh -c '! grep -q "run as root" rooted'
	# The file of somebody else's program is hidden from that user; its arguments are not.
	cp /bin/sleep check-payment-gateway && run ./check-payment-gateway 60
	named() { setpriv --reuid 65534 --clear-groups "$RECORDER" check \
		--json "/StopOnGCOverMsec:5;Process=$1" 2>/dev/null |
		jq -r 'select(.check == "rule").text' >rule; }
	wait_for 5 grep -qx check-payment-g /proc/$!/comm
	named check-payment-gateway
	check a_name_cut_by_the_kernel_is_known_by_the_arguments \
		grep -q "now means check-payment-gateway (" rule
	named check-pay
	check while_a_shorter_one_is \
		grep -q "no process is called 'check-pay' now.*'check-payment-gateway'" rule
else
	echo "skip another_user_does_not_and_check_says_so: not root, or no setpriv here"
fi
