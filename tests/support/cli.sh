# What the scripts of tests/cli share. Source it first: . "$TOP/tests/support/cli.sh"
#
#	check NAME COMMAND...               the command must succeed
#	expect NAME EXIT PATTERN ARG...     the recorder must end with this exit code and say this
#	expect_exit CODE COMMAND...         for check: the command must end with this exit code
# shellcheck shell=bash
set -u

# The command's output is shown when it fails.
check()
{
	local name=$1
	shift
	if "$@" >check.out 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name: exit $? of: $*"
		sed 's/^/    /' check.out
	fi
}

# PATTERN is an extended regular expression that must match stderr or stdout; if it is '', stderr
# must be empty. The recorder's output is left in the files out and err, its exit code in $code.
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

expect_exit()
{
	local want=$1 got
	shift
	"$@" >expect.out 2>&1
	got=$?
	[ $got -eq "$want" ] && return 0
	echo "exit code $got instead of $want"
	cat expect.out
	return 1
}

# wait_for SECONDS COMMAND...: until the command succeeds.
wait_for()
{
	local tries=$(($1 * 10))
	shift
	while [ $((tries--)) -gt 0 ]; do
		"$@" >/dev/null 2>&1 && return 0
		sleep 0.1
	done
	return 1
}

# burnt PID: print the CPU time of its threads so far, in ms; 0 for a process that is gone.
burnt()
{
	awk -v hz="$(getconf CLK_TCK)" '{ sub(/.*\) /, ""); print int(($12 + $13) * 1000 / hz) }' \
		"/proc/$1/stat" 2>/dev/null || echo 0
}

# all_burn MS PID...: wait until each has had so much more CPU time, a minute at most.
all_burn()
{
	local ms=$1 pid until=$((SECONDS + 60))
	local -A from
	shift
	for pid; do from[$pid]=$(burnt "$pid"); done
	for pid; do
		while [ $(($(burnt "$pid") - from[$pid])) -lt "$ms" ]; do
			[ $SECONDS -lt $until ] || return 1
			sleep 0.1
		done
	done
}

# Skip the rest, aloud, where this machine cannot be recorded.
need_perf()
{
	local why
	why=$("$RECORDER" check --json 2>/dev/null |
		jq -r 'select(.check == "source" and .verdict == "missing") | .text' | head -1)
	[ -z "$why" ] && return
	echo "skip $(basename "$0" .sh): $why"
	exit 0
}

# need_tracefs SCRIPT: make sure that tracefs is mounted, if need be in a mount namespace of its
# own. Where that is not possible, the script is skipped, aloud.
need_tracefs()
{
	[ "${IN_OWN_MOUNTS:-}" ] || [ -d /sys/kernel/tracing/events ] && return
	if ! unshare -m mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null; then
		echo "skip $(basename "$1" .sh):" \
			"this user may not mount tracefs in a namespace of its own"
		exit 0
	fi
	IN_OWN_MOUNTS=1 exec unshare -m sh \
		-c 'mount -t tracefs tracefs /sys/kernel/tracing && exec "$@"' sh bash "$1"
}

# Print "MAJOR HOME" for the JDKs that are installed or that 'make jdks' brought, one of each major
# version. JAVA_HOMES names others.
jdks()
{
	local home

	for home in ${JAVA_HOMES:-/usr/lib/jvm/* "$TOP"/build/deps/jdks/[0-9]*}; do
		[ -x "$home/bin/java" ] && [ -x "$home/bin/jstack" ] && readlink -f "$home"
	done | sort -u | while read -r home; do
		echo "$("$home/bin/java" -XshowSettings:properties -version 2>&1 |
			sed -n 's/.*java.specification.version = //p' | sed 's/^1\.//') $home"
	done | awk '!had[$1]++'
}

# Print "VERSION PROGRAM" for each CPython that is installed or that 'make interpreters' brought.
# The latter see no files but those in this directory and in /tmp.
pythons()
{
	local python
	for python in /usr/bin/python[23].* "$HOME"/.pyenv/versions/*/bin/python \
			"$TOP"/build/deps/interpreters/all/bin/python*; do
		[ -x "$python" ] && [[ $python != *-config ]] || continue
		case $python in "$TOP"*) echo "$python" ;; *) readlink -f "$python" ;; esac
	done | sort -u | while read -r python; do
		"$python" -c 'import sys, platform
if platform.python_implementation() == "CPython":
    print("%d.%d " % sys.version_info[:2] + sys.argv[1])' "$python"
	done | sort -u -k1,1 -V
}

# need_csharp WHAT: the script says that WHAT is skipped, and ends, where no C# compiler is.
need_csharp()
{
	if ! command -v mcs >/dev/null; then
		echo "skip $1: no C# compiler here (Debian's mono-mcs)"
		exit 0
	fi
}

# need_dotnet WHAT PACKAGE TOOL NAME: copy the .NET program Sarif.Multitool of that npm package,
# which brings its runtime, to ./NAME. If it is not installed or does not run, the script says that
# WHAT is skipped and ends.
need_dotnet()
{
	local file=$TOP/build/deps/npm/node_modules/$2/Sarif.Multitool
	if [ ! -f "$file" ]; then
		echo "skip $1: no $3 (npm, by 'make deps')"
		exit 0
	fi
	cp "$file" "./$4" && chmod +x "./$4"
	if ! "./$4" version >version 2>&1; then
		echo "skip $1: $3 does not run here: $(head -n 1 version)"
		exit 0
	fi
}

# dotnet_tells PID: whether two sessions of a recorder, of its code and of its events, listen to a
# .NET program beside its own socket, and the one that asks for what is there already has come and
# gone.
dotnet_sockets() { grep -c "dotnet-diagnostic-$1-" /proc/net/unix; }
dotnet_tells() { [ "$(dotnet_sockets "$1")" = 3 ] && sleep 1 && [ "$(dotnet_sockets "$1")" = 3 ]; }

# need_windows_program SCRIPT [FILE...]: skip the script, aloud, unless the Windows program runs
# here and these test files in build/windows were built. The store and conf file of whoever runs the
# tests are not used.
need_windows_program()
{
	local script=$1 file
	shift
	unset RECORDER_STORE RECORDER_CONFIG
	if [ ! "$WINE_RUN" ]; then
		echo "skip $script: no Wine here"
		exit 0
	fi
	for file in "$RECORDER_EXE" "${@/#/$TOP/build/windows/}"; do
		[ ! -e "$file" ] || continue
		echo "skip $script: no $file; run 'make VARIANT=windows programs'"
		exit 0
	done
}

# own_wine SCRIPT [DLL...]: use a Wine prefix of its own, with these stand-ins (build/windows/dll)
# as system DLLs. The prefix is removed when the script ends. The script sets WINEDLLOVERRIDES.
own_wine()
{
	local script=$1
	shift
	export TEST_WINEPREFIX=$TOP/build/windows/$script-prefix.$$
	wine=$TOP/tests/support/wine.sh
	trap '"$wine" stop; rm -rf "$TEST_WINEPREFIX"' EXIT
	"$wine" clone "$TEST_WINEPREFIX" &&
		{ [ $# = 0 ] || cp --remove-destination "${@/#/$TOP/build/windows/dll/}" \
			"$TEST_WINEPREFIX/drive_c/windows/system32/"; } &&
		"$wine" start && return
	echo "not ok $script: no prefix"
	exit 0
}

# exe NAME ARG...: run the Windows program. Its stdout goes to NAME.out, its stderr to NAME.err, its
# exit code to $code.
exe()
{
	local name=$1
	shift
	timeout 90 $WINE_RUN "$RECORDER_EXE" "$@" >"$name.out" 2>"$name.err" </dev/null
	code=$?
}

# tomcat_pages FILE: a web.xml with which Tomcat runs .jsp pages; its own is in a package that would
# start a service here.
tomcat_pages()
{
	cat >"$1" <<-'END'
		<web-app xmlns="https://jakarta.ee/xml/ns/jakartaee" version="6.0">
		<servlet><servlet-name>jsp</servlet-name>
		<servlet-class>org.apache.jasper.servlet.JspServlet</servlet-class></servlet>
		<servlet-mapping><servlet-name>jsp</servlet-name>
		<url-pattern>*.jsp</url-pattern></servlet-mapping>
		</web-app>
	END
}
