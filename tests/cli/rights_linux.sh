#!/bin/bash
# A program file with capabilities (recorder help privileges) records for a user without rights, and
# lends that user nothing else: no file of others, no environment.
set -u
. "$TOP/tests/support/cli.sh"
need_perf

if [ "$(id -u)" != 0 ] || ! command -v setcap >/dev/null || ! command -v setpriv >/dev/null; then
	echo "skip rights_linux: not root, or no setcap or setpriv here"
	exit 0
fi

# The directory of the tests may be closed to others.
place=$(mktemp -d /var/tmp/rights.XXXXXX) && chmod 755 "$place"
trap 'rm -rf "$place"' EXIT
cp "$RECORDER" "$place/recorder" && chgrp 65534 "$place/recorder" && chmod 0750 "$place/recorder"
caps=$(sed -n 's/.*setcap \([a-z_,]*+ep\) .*/\1/p' "$TOP/recorder/cli/help/privileges.md")
if ! setcap "$caps" "$place/recorder"; then
	echo "skip rights_linux: this file system has no capabilities"
	exit 0
fi
mkdir "$place/own" && chown 65534 "$place/own"
"$BUILD/programs/store_fixture" "$place/root.db" && echo "geheim = 1" >"$place/secret"
chmod 600 "$place/root.db" "$place/secret"

# as_user ARG...: run the program as a user without rights. The output goes to out and err.
as_user()
{
	(cd "$place/own" && exec setpriv --reuid 65534 --regid 65534 --clear-groups \
		../recorder "$@") >out 2>err
}

fails() { ! "$@"; }

# refused NAME PATTERN ARG...: the command fails with that message and shows nothing of the file.
refused()
{
	local name=$1 pattern=$2
	shift 2
	as_user "$@"
	check "$name" [ $? != 0 ]
	check "${name}_and_says_so" grep -qE "$pattern" err
	check "${name}_and_shows_nothing" fails grep -qE 'geheim|serve\(request' out err
}

refused a_store_of_root_is_not_listed 'belongs to root' list --store "$place/root.db"
refused nor_exported 'belongs to root' export 1 -f --store "$place/root.db"
refused a_closed_file_is_no_configuration 'cannot open .*secret' list --config "$place/secret"
refused nor_of_a_recording 'cannot open .*secret' collect --config "$place/secret" --store x.db
refused nor_of_a_check 'cannot open .*secret' check --config "$place/secret"
refused a_closed_log_is_not_followed 'cannot read the log' collect --store x.db \
	"/StopOnEventLogMessage:$place/secret@geheim"
refused a_recording_writes_where_its_user_may "$place/x.db" collect --store "$place/x.db" \
	--max-collect-sec 1
mkdir -m 700 "$place/closed" && : >"$place/closed/there"
refused nor_tells_an_option_what_is_in_a_closed_directory 'there is no file' \
	collect "$place/closed/there"
RECORDER_CONFIG=$place/secret RECORDER_STORE=$place/root.db as_user list
check and_the_user_is_told grep -q 'RECORDER_STORE is not read.*use --store' err
check the_environment_is_ignored fails grep -q -e secret -e "$place/root.db" err

"$BUILD/programs/burn" 20 >/dev/null &
as_user collect --store own.db --max-collect-sec 4
check it_records [ $? = 0 ]
as_user export 1 -f --store own.db --process burn
check programs_of_root_have_names grep -q 'burn!burn_' out
check the_store_is_the_users_own [ "$(stat -c %u "$place/own/own.db")" = 65534 ]
as_user check --json
check check_finds_that_it_may_record jq -s -e \
	'any(.name == "perf" and .verdict == "ok")' out

# setuid root instead: the caller's rights there too.
setcap -r "$place/recorder" && chmod 4750 "$place/recorder"
refused a_setuid_program_lists_no_store_of_root 'belongs to root' list --store "$place/root.db"
refused and_reads_no_closed_configuration 'cannot open .*secret' collect --config "$place/secret" \
	--store x.db
refused nor_checks_one 'cannot open .*secret' check --config "$place/secret"
as_user collect --store setuid.db --max-collect-sec 2
check it_records_too [ $? = 0 ]
as_user export 1 -f --store setuid.db --process burn
check and_names_programs_of_root grep -q 'burn!burn_' out
check into_a_store_of_its_user [ "$(stat -c %u "$place/own/setuid.db")" = 65534 ]
kill %1 2>/dev/null

chmod 0750 "$place/recorder"
if [ "$(cat /proc/sys/kernel/perf_event_paranoid)" -gt 0 ]; then
	as_user collect --store new/x.db --max-collect-sec 1
	check without_rights_it_is_refused [ $? = 1 ]
	check and_leaves_nothing_behind [ ! -e "$place/own/new" ]
fi
