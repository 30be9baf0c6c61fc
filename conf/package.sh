#!/bin/bash
# make deb, tarball and zip: conf/package.sh deb|tarball|zip BUILD MAKE...
#
# Packages of the program that was built in BUILD, into build/packages/. The same commit gives the
# same bytes in any folder at any time: times are the commit's ($SOURCE_DATE_EPOCH), names are
# sorted, owners are root, and the build keeps its folder out of the program (see the Makefile).
set -eu

kind=$1
build=$2
top=$(cd "$(dirname "$0")/.." && pwd)
out=$top/build/packages
authors='The authors <recorder@packages.recorder.invalid>'
version=$(sed -n 's/^#define RECORDER_VERSION "\(.*\)"/\1/p' "$top/recorder/base/version.h")
export SOURCE_DATE_EPOCH="${SOURCE_DATE_EPOCH:-$(git -C "$top" log -1 --format=%ct)}"
export LC_ALL=C TZ=UTC
umask 022
root=$(mktemp -d)
chmod 755 "$root"
trap 'rm -rf "$root"' EXIT
mkdir -p "$out"
cd "$top"

# Every file and folder gets the commit's time.
same_times() { find "$1" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +; }

debug_beside() # PROGRAM STRIP: the symbols go into PROGRAM.debug
{
	"${2}objcopy" --only-keep-debug "$1" "$1.debug"
	"${2}strip" --strip-all --remove-section=.comment "$1"
	(cd "$(dirname "$1")" &&
		"${2}objcopy" --add-gnu-debuglink="$(basename "$1").debug" "$(basename "$1")")
}

make_tarball()
{
	local name=recorder-$version-linux-x86_64
	make -s install BUILD="$build" DESTDIR="$root/$name" PREFIX=
	debug_beside "$root/$name/bin/recorder" ''
	chmod 644 "$root/$name/bin/recorder.debug"
	same_times "$root/$name"
	tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner -c "$name" |
		gzip -9n >"$out/$name.tar.gz"
	echo "$out/$name.tar.gz"
}

make_zip()
{
	local name=recorder-$version-windows-x86_64
	mkdir -p "$root/$name/examples"
	install -m 755 "$build/recorder.exe" "$root/$name"
	debug_beside "$root/$name/recorder.exe" x86_64-w64-mingw32-
	chmod 644 "$root/$name/recorder.exe.debug"
	install -m 644 conf/recorder.conf README.md "$root/$name"
	install -m 644 conf/examples/*.conf "$root/$name/examples"
	same_times "$root/$name"
	rm -f "$out/$name.zip"
	(cd "$root" && find "$name" | sort | zip -X -9 -q -@ "$out/$name.zip")
	echo "$out/$name.zip"
}

# What debhelper would write; it is not needed to build.
scripts()
{
	cat >"$root/DEBIAN/postinst" <<'END'
#!/bin/sh
# The service is on after the installation, as services of Debian are, and records with the rules of
# /etc/recorder/recorder.conf. An upgrade starts it again: it stores what it holds, and is away for
# some seconds.
set -e
if [ "$1" = configure ]; then
	deb-systemd-helper unmask recorder.service >/dev/null || true
	if deb-systemd-helper --quiet was-enabled recorder.service; then
		deb-systemd-helper enable recorder.service >/dev/null || true
	else
		deb-systemd-helper update-state recorder.service >/dev/null || true
	fi
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
		deb-systemd-invoke "$([ "$2" ] && echo restart || echo start)" recorder.service \
			>/dev/null || true
	fi
fi
END
	cat >"$root/DEBIAN/prerm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] && [ -d /run/systemd/system ]; then
	deb-systemd-invoke stop recorder.service >/dev/null || true
fi
END
	cat >"$root/DEBIAN/postrm" <<'END'
#!/bin/sh
set -e
if [ "$1" = remove ] || [ "$1" = purge ]; then
	if [ -d /run/systemd/system ]; then
		systemctl --system daemon-reload >/dev/null || true
	fi
fi
if [ "$1" = purge ]; then
	if command -v deb-systemd-helper >/dev/null; then
		deb-systemd-helper purge recorder.service >/dev/null || true
		deb-systemd-helper unmask recorder.service >/dev/null || true
	fi
	rm -rf /var/lib/recorder
	if [ -d /etc/recorder ]; then
		rmdir --ignore-fail-on-non-empty /etc/recorder
	fi
fi
END
	chmod 755 "$root"/DEBIAN/p*
}

# The libraries' packages, as dpkg-shlibdeps finds them; it wants a file debian/control.
depends()
{
	mkdir -p "$root.dep/debian"
	printf 'Source: recorder\n\nPackage: recorder\nArchitecture: amd64\n' \
		>"$root.dep/debian/control"
	(cd "$root.dep" && dpkg-shlibdeps -O -e"$root/usr/bin/recorder" 2>/dev/null) |
		sed 's/^shlibs:Depends=//'
	rm -rf "$root.dep"
}

make_deb()
{
	local doc=$root/usr/share/doc/recorder page deb
	make -s install BUILD="$build" DESTDIR="$root" PREFIX=/usr
	strip --strip-all --remove-section=.comment --remove-section=.note "$root/usr/bin/recorder"
	mkdir -p "$root/DEBIAN" "$doc" "$root/lib/systemd" "$root/etc/recorder"
	mv "$root/usr/lib/systemd/system" "$root/lib/systemd/"
	rmdir -p "$root/usr/lib/systemd" 2>/dev/null || true
	mkdir -p "$root/usr/share/zsh/vendor-completions"
	mv "$root/usr/share/zsh/site-functions/_recorder" "$root/usr/share/zsh/vendor-completions/"
	rmdir "$root/usr/share/zsh/site-functions"
	install -m 644 conf/examples/always-on.conf "$root/etc/recorder/recorder.conf"
	ln -s recorder-run.1 "$root/usr/share/man/man1/recorder-dtrace.1"
	for page in "$root"/usr/share/man/man?/*; do
		if [ -h "$page" ]; then
			ln -s "$(readlink "$page").gz" "$page.gz" && rm "$page"
		else
			gzip -9n "$page"
		fi
	done
	cat >"$doc/copyright" <<'END'
Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/
Upstream-Name: recorder

Files: *
Copyright: 2026, the authors of the recorder
License: none-yet
 The sources name no license yet: see their README.
END
	{
		echo "recorder ($version) unstable; urgency=medium"
		printf '\n  * The program of this commit.\n\n'
		echo " -- $authors  $(date -R -d "@$SOURCE_DATE_EPOCH")"
	} | gzip -9n >"$doc/changelog.gz"
	scripts
	echo /etc/recorder/recorder.conf >"$root/DEBIAN/conffiles"
	cat >"$root/DEBIAN/control" <<END
Package: recorder
Version: $version
Architecture: amd64
Maintainer: $authors
Installed-Size: $(du -sk --apparent-size "$root" | cut -f1)
Depends: $(depends)
Recommends: libdw1, libmicrohttpd12, libncursesw6
Section: utils
Priority: optional
Description: flight recorder for call stacks
 Records the call stacks of all programs of a machine, all the time and at a low
 cost, keeps the recent past in memory and on disk, and when a rule fires (a
 counter, an event, a log line, the end of a process) keeps the time around it
 as an incident, for reports, flame graphs and PerfView.
END
	(cd "$root" && find . -type f -not -path './DEBIAN/*' -printf '%P\n' | sort |
		xargs md5sum >DEBIAN/md5sums)
	same_times "$root"
	deb=$out/recorder_${version}_amd64.deb
	dpkg-deb --root-owner-group -Zxz --build "$root" "$deb" >/dev/null
	echo "$deb"
}

"make_$kind"
