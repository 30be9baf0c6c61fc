#!/bin/bash
# make check-package: the packages as others will judge them, also in Debian 11 and 13 and as an
# image. Each check is skipped aloud when its tool is missing.
#
# BUILT=yes: what needs no further build nor system, in a minute, for CI: packages of the programs
# in build/linux and build/windows. Only the archives are made twice then, not the programs.
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

level() { systemd-analyze security --offline=true --threshold=31 "conf/$1"; }

pages_are_clean()
{
	mkdir "$work/root" && dpkg-deb -x "$deb" "$work/root" || return 1
	gunzip "$work/root"/usr/share/man/man?/recorder*[0-9].gz
	mandoc -T lint -W warning "$work/root"/usr/share/man/man?/recorder*[0-9]
}

# What is built already; with packages_are_built's folder empty.
pack_built()
{
	local kind variant
	for kind in $kinds; do
		case $kind in zip | msi) variant=windows ;; *) variant=linux ;; esac
		make -s package KIND=$kind VARIANT=$variant || return 1
	done
}

same_archives()
{
	cp -a build/packages "$work/first" && sleep 1 && (umask 077 && pack_built) &&
		diff -r build/packages "$work/first"
}

# Another folder with another name, at another time, by another umask.
same_bytes()
{
	local other=$work/elsewhere/copy file
	(umask 077 && git clone -q . "$other") || return 1
	mkdir -p "$other/build" && ln -s "$top/build/deps" "$other/build/deps"
	make -s -C "$other" $kinds || return 1
	for file in build/packages/*; do
		cmp "$file" "$other/$file" || { differs "$file" "$other/$file" && return 1; }
	done
}

differs()
{
	! command -v diffoscope >/dev/null || diffoscope --max-report-size 4000 "$1" "$2"
	true
}

# Each names what it is of, has a checksum, and relates everything that it lists.
bills_are_whole()
{
	local bill
	for bill in build/packages/*.spdx.json; do
		jq -e '.spdxVersion == "SPDX-2.3" and (.packages | length > 5) and
			(.packages[0].checksums[0].checksumValue | length == 64) and
			all(.packages[]; .versionInfo != "" and .versionInfo != "NOASSERTION") and
			([.packages[].SPDXID] - [.relationships[] |
				.spdxElementId, .relatedSpdxElement] == [])' "$bill" || return 1
	done
}

# needs_glibc_2_28 PROGRAM: that or an older one will do. The log shows what else it needs.
needs_glibc_2_28()
{
	local newer
	newer=$({ echo GLIBC_2.28; objdump -T "$1" | grep -o 'GLIBC_[0-9.]*'; } | sort -Vu |
		sed '1,/^GLIBC_2\.28$/d')
	[ ! "$newer" ] || { objdump -T "$1" | grep -Fw "$newer" && return 1; }
	objdump -T "$1" | grep -q 'GLIBC_2'
}

tarball_needs_glibc_2_28()
{
	local root=$work/portable
	mkdir "$root" &&
		tar -C "$root" -xzf build/packages/recorder-*.tar.gz --strip-components=1 &&
		needs_glibc_2_28 "$root/bin/recorder"
}

# What a recorder of the package answers to Prometheus, about a rule, too.
metrics_are_clean()
{
	local root=$work/metrics port=$((20000 + $$ % 10000)) pid i
	mkdir "$root" && dpkg-deb -x "$deb" "$root" || return 1
	"$root/usr/bin/recorder" collect --config /dev/null --store "$root/r.db" --history-mb 0 \
		--http "127.0.0.1:$port" --stop-on-perf-counter 'Memory:Available MBytes:<1' &
	pid=$!
	for ((i = 0; i < 100; i++)); do
		curl -sf -o "$root/metrics" "http://127.0.0.1:$port/metrics" &&
			grep '^recorder_rule_value' "$root/metrics" && break
		sleep 0.2
	done
	kill -INT $pid
	wait $pid
	[ $i -lt 100 ] && "$promtool" check metrics <"$root/metrics"
}

# runs_in SUITE: a Debian of that name, with nothing in it but the tarball.
runs_in()
{
	local root=$work/$1 uri
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Created-By: Packages' |
		grep -v security | head -n 1)
	mmdebstrap --mode=root --variant=essential "$1" "$root" "deb $uri $1 main" &&
		tar -C "$root" -xzf build/packages/recorder-*.tar.gz --strip-components=1 ||
		return 1
	unshare -m sh -c 'mount -t proc proc "$0/proc" && exec chroot "$0" sh -exc "$1"' "$root" '
		cd /root
		/bin/recorder --version
		/bin/recorder run --store s.db -- \
			sh -c "i=0; while [ \$i -lt 400000 ]; do i=\$((i + 1)); done"
		/bin/recorder export 1 --store s.db -f -o - | grep ";.*libc" | head -n 3'
}

rpm_installs_and_goes()
{
	local root=$work/rpm
	set -- rpm --root "$root" --noscripts --nodeps
	mkdir "$root"
	"$@" -i --ignorearch build/packages/*.rpm && "$root/usr/bin/recorder" --version &&
		needs_glibc_2_28 "$root/usr/bin/recorder" &&
		test -f "$root/etc/recorder/recorder.conf" && "$@" -e recorder &&
		! find "$root" -name '*recorder*' | grep .
}

msi_installs_and_goes()
{
	local wine=$top/tests/support/wine.sh msi at
	local services='HKLM\System\CurrentControlSet\Services'
	export TEST_WINEPREFIX=$work/prefix
	at="$work/prefix/drive_c/Program Files/recorder"
	msi=Z:$(ls "$top"/build/packages/*.msi | tr / '\\')
	"$wine" clone "$TEST_WINEPREFIX" && "$wine" start &&
		timeout 200 "$wine" run msiexec /i "$msi" /qn && test -f "$at/recorder.conf" &&
		timeout 60 "$wine" run "$at/recorder.exe" --version &&
		timeout 60 "$wine" run reg query "$services\\recorder" &&
		timeout 200 "$wine" run msiexec /x "$msi" /qn && test ! -e "$at/recorder.exe"
	set -- $?
	"$wine" stop
	return "$1"
}

if has dpkg-deb packages; then
	kinds=deb
	if [ ! "${BUILT:-}" ]; then
		kinds='deb tarball'
		if has rpmbuild rpm; then kinds="$kinds rpm"; fi
	elif [ ! -e build/windows/recorder.exe ]; then
		make -s windows
	fi
	if has zip zip; then kinds="$kinds zip"; fi
	if has wixl msi; then kinds="$kinds msi"; fi
	rm -rf build/packages
	check packages_are_built $([ "${BUILT:-}" ] && echo pack_built || echo make -s $kinds)
	deb=$(ls build/packages/*.deb)
	if has lintian lintian_is_content; then
		check lintian_is_content lintian --fail-on error,warning "$deb"
	fi
	if has mandoc pages_are_clean; then check pages_are_clean pages_are_clean; fi
	promtool=$(command -v promtool build/deps/servers/usr/bin/promtool | head -n 1)
	if has "${promtool:-promtool}" metrics_are_clean && has curl metrics_are_clean; then
		check metrics_are_clean metrics_are_clean
	fi
	if has jq bills_are_whole; then check bills_are_whole bills_are_whole; fi
	if [ "${BUILT:-}" ]; then
		check two_times_give_the_same_bytes same_archives
	else
		check two_folders_give_the_same_bytes same_bytes
	fi
	if [ ! "${BUILT:-}" ] && has mmdebstrap other_systems && has unshare other_systems; then
		for suite in bullseye trixie; do
			check "the_tarball_runs_in_$suite" runs_in $suite
		done
	fi
	if [ ! "${BUILT:-}" ] && has podman image && has buildah image && has mmdebstrap image; then
		check the_image_records_its_neighbours tests/support/check_image.sh build/packages
	fi
	case $kinds in
	*tarball*) check the_tarball_needs_glibc_2_28 tarball_needs_glibc_2_28 ;;
	esac
	case $kinds in *rpm*) check the_rpm_installs_and_goes rpm_installs_and_goes ;; esac
	if [ "${BUILT:-}" ]; then
		:
	elif ! "$top/tests/support/wine.sh" find >/dev/null 2>&1; then
		echo "skip msi_installs_and_goes: no Wine"
		skipped=$((skipped + 1))
	elif [[ $kinds = *msi* ]]; then
		check the_msi_installs_and_goes msi_installs_and_goes
	fi
fi
if has systemd-analyze units_are_hardened; then
	check the_service_is_hardened level recorder.service
	check the_incident_template_is_hardened level recorder-incident@.service
fi
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
