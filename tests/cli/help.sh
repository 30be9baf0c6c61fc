# The table of options, help, manual pages, conf/recorder.conf and the topics name the same options.
# Manual pages are clean; the pager and the completion of bash, zsh and fish work.
# shellcheck shell=bash
. "$TOP/tests/support/cli.sh"
unset RECORDER_CONFIG
export RECORDER_STORE=$TMP/s.db
TOPICS=$TOP/recorder/cli/help
export LC_ALL=C.UTF-8

# ---- an option that is missing somewhere -------------------------------------------------------

# Completion prints the table without any other text.
options() { "$RECORDER" complete "$1" -- | cut -f1; }
commands=$("$RECORDER" complete '' | cut -f1)
every_option=$(for command in $commands; do options "$command"; done | sort -u)

# lacking FILE...: print the options of standard input that no file names; fail if there are any.
lacking()
{
	cat "$@" | sed 's/\\-/-/g' | grep -oE -e '--[a-z][a-z0-9-]*' | sort -u >named
	sort -u | comm -23 - named | tee lacks
	[ ! -s lacks ]
}

pages_tell_all() # DIR
{
	local command bad=0
	for command in $commands; do
		options "$command" | lacking "$1/man1/recorder-$command.1" || bad=1
	done
	return $bad
}

help_tells_all()
{
	local command bad=0
	for command in $commands; do
		"$RECORDER" help "$command" >help.txt
		options "$command" | lacking help.txt || bad=1
	done
	return $bad
}

# --help, --version and --man need no topic.
topics_tell_all() { grep -vxE -e '--(help|version|man)' <<<"$every_option" | lacking "$1"/*.md; }

# Both ways: every key of the table is in the file, and every key of the file in the table.
conf_tells_all() # PAGE CONF
{
	sed -n 's/^\\fB\([a-z][a-z0-9\\-]*\) = .*/\1/p' "$1" | sed 's/\\-/-/g' | sort >table.keys
	sed -n 's/^#\([a-z][a-z0-9-]*\) = .*/\1/p' "$2" | sort -u >conf.keys
	[ -s table.keys ] && diff table.keys conf.keys
}

expect manual_pages_are_written 0 '' help --man "$TMP/man"
check help_tells_every_option help_tells_all
check manual_pages_tell_every_option pages_tell_all man
check topics_tell_every_option topics_tell_all "$TOPICS"
check conf_file_has_every_key conf_tells_all man/man5/recorder.conf.5 "$TOP/conf/recorder.conf"

# Take an option away from each, to see that the checks notice.
without() { cp -r "$2" cut && find cut -type f -exec sed -i "s/$1\b/--gone/g" {} + ; }
fails() { ! "$@"; }
without '\\-\\-stack\\-kb' man && check an_option_missing_in_a_page_is_seen fails pages_tell_all cut
rm -rf cut
without '--stack-kb' "$TOPICS" &&
	check an_option_missing_in_the_topics_is_seen fails topics_tell_all cut
rm -rf cut
grep -v '^#stack-kb' "$TOP/conf/recorder.conf" >cut.conf
check a_key_missing_in_the_conf_file_is_seen fails conf_tells_all man/man5/recorder.conf.5 cut.conf

# The texts name no option that does not exist; three belong to other programs.
told()
{
	grep -ohE -e '(^|[ `(/])--[a-z][a-z0-9-]*' "$TOPICS"/*.md "$TOP/README.md" |
		grep -oE -e '--.*' | sort -u |
		grep -vxE -e '--(buildid-mmap|call-graph|perf-basic-prof)'
}
no_stranger()
{
	for command in $commands; do "$RECORDER" help "$command"; done >help.txt
	told | lacking help.txt
}
check topics_and_readme_name_no_option_that_is_not_there no_stranger

formats_are_told()
{
	"$RECORDER" complete export --format '' | cut -f1 | while read -r format; do
		grep -q "^| \`$format\`" "$TOPICS/export.md" || { echo "$format"; false; }
	done >lacks
	[ ! -s lacks ] || { cat lacks; false; }
}
check the_topic_has_every_format formats_are_told

# Each file of cli/help/ is shown under its name, to its last section.
topics_are_shown()
{
	local file name heading bad=0
	for file in "$TOPICS"/*.md; do
		name=$(basename "$file" .md)
		heading=$(sed -n 's/^## //p' "$file" | tail -1)
		"$RECORDER" help "$name" | grep -qF "$heading" || { echo "$name"; bad=1; }
	done
	return $bad
}
check every_topic_is_shown topics_are_shown

# ---- text ----------------------------------------------------------------------------------------

for name in $commands $("$RECORDER" complete help '' | cut -f1); do
	"$RECORDER" help "$name" >>all.txt || echo "not ok help_of_$name"
done
check help_has_no_escape_codes_in_a_pipe fails grep -q "$(printf '\033')" all.txt
expect an_unknown_topic_has_a_nearest_one 2 \
	"unknown command or topic 'trigers'; did you mean triggers" help trigers
expect a_word_that_is_no_topic_names_those_that_tell_of_it 2 \
	"no command or topic 'heap'; the topics that tell most about it: memory, " help heap
# paged PAGER PATTERN: run "help" on a pseudo-terminal with that pager
paged() { PAGER=$1 script -qec "$RECORDER help store" /dev/null | grep -q "$2"; }
check topics_go_through_the_pager paged 'sed s/^/paged:/' 'paged:.*STORE.lock'
check a_pager_that_fails_loses_nothing paged false STORE.lock

if command -v mandoc >/dev/null; then
	check manual_pages_are_clean mandoc -T lint -W warning man/man?/*
else
	echo "skip manual_pages_are_clean: no mandoc"
fi

# ---- installation and completion ---------------------------------------------------------------

# Pass BUILD as make was given it: another spelling of the folder would link everything again.
make_target() { make -s -C "$TOP" "$1" BUILD="${BUILD#"$TOP"/}" DESTDIR="$TMP/root" PREFIX=/usr; }
check installation make_target install
SHARE=$TMP/root/usr/share
check install_brings_pages_and_completions ls "$SHARE/man/man1/recorder-collect.1" \
	"$SHARE/man/man5/recorder.conf.5" "$SHARE/man/man7/recorder-triggers.7" \
	"$SHARE/bash-completion/completions/recorder" \
	"$SHARE/zsh/site-functions/_recorder" "$SHARE/fish/vendor_completions.d/recorder.fish"

PATH=$TMP/root/usr/bin:$PATH
"$BUILD/programs/store_fixture" s.db || echo "not ok store_fixture: failed"
sleep 60 &
sleeper=$!

cat >bash.rc <<'END'
source "$SHARE/bash-completion/completions/recorder"
COMP_WORDS=(recorder "$@") COMP_CWORD=$#
_recorder 2>/dev/null
printf '%s\n' "${COMPREPLY[@]}"
END
cat >zsh.rc <<'END'
_describe() { print -l -- ${${(P)argv[-1]}%%:*} }
_files() { print -l -- ${words[CURRENT]}* }
words=(recorder "$@") CURRENT=$#words
source "$SHARE/zsh/site-functions/_recorder"
END
cat >fish.rc <<'END'
source "$SHARE/fish/vendor_completions.d/recorder.fish"
complete -C "recorder $argv" | cut -f1
END
export SHARE
# completes SHELL WANTED WORD...: WANTED is the candidate, or one of several.
completes()
{
	local shell=$1 wanted=$2
	shift 2
	if [ "$shell" = fish ]; then
		fish --no-config fish.rc "$*" >got 2>&1
	else
		"$shell" "$shell.rc" "$@" >got 2>&1
	fi
	grep -qxF -e "$wanted" got || { cat got; return 1; }
}
printf x >a_file.conf
for shell in bash zsh fish; do
	if ! command -v $shell >/dev/null; then
		echo "skip completion_of_$shell: no $shell"
		continue
	fi
	check "${shell}_completes_commands" completes $shell snapshot sna
	check "${shell}_completes_options" \
		completes $shell --delay-after-trigger-sec collect --delay
	check "${shell}_completes_formats" completes $shell speedscope export --format spee
	check "${shell}_completes_processes" completes $shell sleep export --process slee
	check "${shell}_completes_choices" completes $shell never list --color ne
	check "${shell}_completes_topics" completes $shell thread-time help thr
	check "${shell}_completes_metrics" completes $shell heap-net export --metric heap-n
	check "${shell}_completes_files" completes $shell a_file.conf collect --config a_f
	check "${shell}_completes_incidents" completes $shell 1 show ''
done
check bash_completes_behind_an_equals_sign completes bash pprof export --format = pp
kill $sleeper

tells_packages()
{
	local text
	for text in 'of make deb, rpm, tarball, zip and msi' /etc/recorder/recorder.conf \
		'the \.deb is on once it is installed' \
		'C:\\ProgramData\\recorder\\recorder.conf'; do
		"$RECORDER" help service | tr -s ' \n' ' ' | grep -q "$text" || {
			echo "no $text"
			return 1
		}
	done
}
check help_service_tells_where_packages_put_things tells_packages
check the_readme_names_them grep -q 'make deb.*rpm.*tarball.*zip.*msi' "$TOP/README.md"

check uninstallation make_target uninstall
check uninstall_leaves_no_file sh -c "! find '$TMP/root' -type f | grep ."
