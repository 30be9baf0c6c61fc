#!/bin/bash
# make check-bare: does the README's first command work on a machine where nothing is installed yet?
#
# Makes a minimal Debian with git, make and ca-certificates from this system's apt sources and
# clones the current commit into it. There it runs the demo (a live recording of this machine), the
# installation, and the "deps" step of `make check`. Each step prints a line with its seconds; one
# that fails prints its output and ends the run. The last line has the totals, as in tests/run.sh.
#
# The new system lies in memory (about 4 GB), in a mount namespace of this script. The kernel frees
# both when the last process in them ends: nothing is removed file by file, so the parts of this
# machine that are mounted there are safe.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)

skip()
{
	echo "skip check-bare: $*"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

if [ "${1:-}" != --inside ]; then
	[ "$(id -u)" = 0 ] || skip "only root can make a system of its own and record in it"
	command -v mmdebstrap >/dev/null || skip "no mmdebstrap ('make deps' installs it)"
	[ "$(awk '/^MemAvailable:/ { print int($2 / 1048576) }' /proc/meminfo)" -ge 6 ] ||
		skip "less than 6 GB of memory are free"
	why=$(unshare --mount --pid --fork mount -t tmpfs tmpfs /mnt 2>&1) ||
		skip "no namespaces: $why"
	# Meanwhile no test runs that must be alone: tests/run.sh.
	mkdir -p "$top/build"
	exec 7>>"$top/build/quiet.lock"
	flock -s 7
	exec unshare --mount "$0" --inside
fi

# ---- in the mount namespace ----------------------------------------------------------------------

work=$(mktemp -d -t check-bare.XXXXXX)
root=$work/root
child=

# End every process that runs in the new system, then let go of it.
finish()
{
	local process found=1
	[ ! "$child" ] || { kill -9 "$child" && wait "$child"; } 2>/dev/null || true
	while [ $found ]; do
		found=
		for process in /proc/[0-9]*; do
			[ "$process/root" -ef "$root" ] || continue
			kill -9 "${process#/proc/}" 2>/dev/null || true
			found=1
		done
		sleep 0.1
	done
	umount --recursive --lazy "$work"
	rmdir "$work"
}

trap finish EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

# step NAME COMMAND...: the command runs in the background, so that a signal does not wait for it.
step()
{
	local name=$1 start=$EPOCHREALTIME verdict=ok why
	shift
	"$@" >"$work/log" 2>&1 </dev/null &
	child=$!
	wait "$child" || verdict=FAIL
	child=
	printf '%-4s %-70s %6.1f s\n' $verdict "$name" \
		"$(echo "$start $EPOCHREALTIME" | awk '{ print $2 - $1 }')"
	[ $verdict = FAIL ] || return 0
	why=$(grep -A 1 '^demo: this machine cannot be recorded' "$work/log" | tail -n 1)
	[ ! "$why" ] || skip "$why"
	tail -n 100 "$work/log" | sed 's/^/     | /'
	echo "0 passed, 1 failed, 0 skipped"
	exit 1
}

# A command in the new system, without the environment of this one.
bare()
{
	exec chroot "$root" /usr/bin/env -i HOME=/root TERM=dumb \
		PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
		bash -euo pipefail -c "cd ~/recorder 2>/dev/null || cd; $1"
}

bare_step()
{
	step "$1" bare "${2:-$1}"
}

# Of this system's sources, the distribution's own: a new system has no keys of others.
distribution_sources()
{
	local list suite=" $1(-updates|-security)?( |\n|\$)"
	for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		[ -s "$list" ] || continue
		case $list in
		*.sources) awk -v RS= -v ORS='\n\n' "/(^|\n)Suites:[^\n]*$suite/" "$list" ;;
		*.list) awk "/^deb .*$suite/" "$list" ;;
		esac >"$work/sources/${list##*/}"
	done
	find "$work/sources" -empty -delete
}

mount -t tmpfs -o mode=755,size=90% tmpfs "$work"
mkdir "$root" "$work/sources"
. /etc/os-release
distribution_sources "$VERSION_CODENAME"
[ -d "$work/sources" ] || skip "no apt source of $VERSION_CODENAME in /etc/apt"

# Its processes, some of them not in the new system, have a PID namespace: they end with its first.
step "make a minimal Debian ($VERSION_CODENAME) with git, make, ca-certificates" \
	unshare --pid --fork --kill-child --mount-proc \
	mmdebstrap --mode=root --variant=minbase --include=git,make,ca-certificates \
	"$VERSION_CODENAME" "$root" "$work"/sources/*
mount --rbind /proc "$root/proc"
mount --rbind /sys "$root/sys"
git clone -q --bare --depth 1 "file://$top" "$root/root/recorder.git"

bare_step "git clone" "git clone -q recorder.git"
bare_step "make demo"
bare_step "make && make install" "make && make install && cd / && recorder help"
bare_step "recorder list, show, export: the demo's stacks have names" "
	cd build/demo
	recorder list --store incidents.db
	recorder show --store incidents.db --id 1
	recorder export --store incidents.db --id 1 -f | grep 'burn!burn_until;burn!burn_alpha'"
bare_step "make deps, without node and npm" "! command -v npm && make deps"
bare_step "make deps again: nothing is missing" '[ ! "$(make deps 2>&1 | tee /dev/stderr)" ]'
echo "1 passed, 0 failed, 0 skipped"
