#!/bin/bash
# make check-package: the packages as others will judge them. Each check is skipped aloud when its
# tool is missing.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d -t check-package.XXXXXX)
trap 'rm -rf "$work"' EXIT
cd "$top" || exit 1
passed=0 failed=0 skipped=0

has()
{
	command -v "$1" >/dev/null && return
	echo "skip $2: no $1"
	skipped=$((skipped + 1))
	return 1
}

check() # NAME COMMAND...
{
	local name=$1
	shift
	if "$@" >"$work/log" 2>&1; then
		echo "ok $name"
		passed=$((passed + 1))
	else
		echo "not ok $name"
		tail -n 30 "$work/log" | sed 's/^/    /'
		failed=$((failed + 1))
	fi
}

level() { systemd-analyze security --offline=true --threshold=30 "conf/$1"; }

pages_are_clean()
{
	mkdir "$work/root" && dpkg-deb -x "$deb" "$work/root" || return 1
	gunzip "$work/root"/usr/share/man/man?/recorder*[0-9].gz
	mandoc -T lint -W warning "$work/root"/usr/share/man/man?/recorder*[0-9]
}

# Another folder with another name, at another time, by another umask.
same_bytes()
{
	local other=$work/elsewhere/copy file
	(umask 077 && git clone -q . "$other") || return 1
	mkdir -p "$other/build" && ln -s "$top/build/deps" "$other/build/deps"
	make -s -C "$other" deb tarball zip || return 1
	for file in build/packages/*; do
		cmp "$file" "$other/$file" || return 1
	done
}

if has dpkg-deb packages; then
	check packages_are_built make -s deb tarball zip
	deb=$(ls build/packages/*.deb)
	if has lintian lintian_is_content; then
		check lintian_is_content lintian --fail-on error,warning "$deb"
	fi
	if has mandoc pages_are_clean; then check pages_are_clean pages_are_clean; fi
	check two_folders_give_the_same_bytes same_bytes
fi
if has systemd-analyze units_are_hardened; then
	check the_service_is_hardened level recorder.service
	check the_incident_template_is_hardened level recorder-incident@.service
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
