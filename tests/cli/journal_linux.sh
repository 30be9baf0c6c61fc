#!/bin/bash
# A rule on the journal fires for real: systemd's journald and journalctl, in a mount namespace of
# their own, so that the machine's journal is neither needed nor touched.
. "$TOP/tests/support/cli.sh"
need_perf

journald=/lib/systemd/systemd-journald
if [ ! -x $journald ] || [ ! -x /usr/bin/journalctl ] ||
		! unshare -m --propagation private true 2>/dev/null; then
	echo "skip journal: no $journald, no journalctl, or no mount namespaces for this user"
	exit 0
fi
cat >inside.sh <<'END'
for dir in /run/log /run/systemd/journal /var/log/journal; do
	mkdir -p $dir && mount -t tmpfs none $dir || exit 9
done
mkdir -p /run/log/journal
$1 >journald.out 2>&1 & journald=$!
for i in $(seq 100); do [ -S /run/systemd/journal/stdout ] && break; sleep 0.1; done
echo "long ago out of cheese" | systemd-cat -t app
timeout 100 "$RECORDER" collect --store j.db --delay-after-trigger-sec 0 \
	--stop-on-event-log-message 'out of [a-z]+' 2>log & collect=$!
for i in $(seq 100); do grep -q recording log 2>/dev/null && break; sleep 0.1; done
# Try again until the rule fires: journalctl may start slowly.
for i in $(seq 100); do
	kill -0 $collect 2>/dev/null || break
	echo "all is well" | systemd-cat -t app
	echo "fired: out of luck" | systemd-cat -t recorder    # what recorders say does not fire
	echo "now we are Out of Wine" | systemd-cat -t app -p err
	sleep 0.2
done
wait $collect
echo $? >rc
kill $journald
END
timeout 200 unshare -m --propagation private bash inside.sh $journald
if [ ! -e rc ]; then
	echo "skip journal: $(head -c 200 journald.out) (journald does not run here)"
	exit 0
fi
check a_line_of_the_journal_fires test "$(cat rc)" = 0
check the_sentence_is_the_new_line \
	grep -qE 'fired: log Application: app\[[0-9]+\]: now we are Out of Wine' log
check no_old_line_fires eval '! grep -q cheese log'
check journalctl_has_ended_with_it eval '! grep -q "journalctl has ended" log'
