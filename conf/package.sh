#!/bin/bash
# make deb, rpm, tarball, zip and msi: conf/package.sh KIND BUILD
#
# Packages of the program that was built in BUILD, into build/packages/. The same commit gives the
# same bytes in any folder at any time: times are the commit's ($SOURCE_DATE_EPOCH), names are
# sorted, owners are root, and the build keeps its folder out of the program (see the Makefile).
# What is in a package stands beside it and in it as SPDX 2.3: PACKAGE.spdx.json.
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
trap 'rm -rf "$root" "$root".*' EXIT
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

# ---- what is in it -------------------------------------------------------------------------------

# component NAME VERSION LICENCE static|dynamic|optional: one more in the files components and
# relations.
component()
{
	local how
	case $4 in
	static) how="SPDXRef-recorder\", \"relationshipType\": \"STATIC_LINK\", \
\"relatedSpdxElement\": \"SPDXRef-$1" ;;
	dynamic) how="SPDXRef-recorder\", \"relationshipType\": \"DYNAMIC_LINK\", \
\"relatedSpdxElement\": \"SPDXRef-$1" ;;
	optional) how="SPDXRef-$1\", \"relationshipType\": \"OPTIONAL_DEPENDENCY_OF\", \
\"relatedSpdxElement\": \"SPDXRef-recorder" ;;
	esac
	printf ',\n  {"SPDXID": "SPDXRef-%s", "name": "%s", "versionInfo": "%s",
   "downloadLocation": "NOASSERTION", "filesAnalyzed": false, "copyrightText": "NOASSERTION",
   "licenseConcluded": "NOASSERTION", "licenseDeclared": "%s"}' "$1" "$1" "$2" "$3" >>"$root.parts"
	printf ',\n  {"spdxElementId": "%s"}' "$how" >>"$root.relations"
}

of_package() { dpkg-query -W -f '${source:Version}' "$1" 2>/dev/null || echo NOASSERTION; }

# pinned NAME: the version that tests/support/deps.sh builds for Windows.
pinned() { sed -n "s/^[0-9a-f]* *$1_\(.*\)\.orig\.tar.*/\1/p" tests/support/deps.sh | head -n 1; }

# bill PROGRAM: into $root.spdx.json.
bill()
{
	local name=recorder-$version-$kind commit
	commit=$(git rev-parse HEAD)
	: >"$root.parts" >"$root.relations"
	case $kind in
	zip | msi)
		component sqlite3 "$(pinned sqlite3)" blessing static
		component pcre2 "$(pinned pcre2)" BSD-3-Clause static
		component libiberty "$(pinned libiberty)" LGPL-2.0-or-later static
		component zlib "$(of_package libz-mingw-w64-dev)" Zlib static
		component mingw-w64 "$(of_package mingw-w64-x86-64-dev)" ZPL-2.1 static
		component libgcc "$(of_package gcc-mingw-w64-x86-64-posix-runtime)" \
			GPL-3.0-or-later static ;;
	*)
		component sqlite3 "$(of_package libsqlite3-0)" blessing "$libraries"
		component pcre2 "$(of_package libpcre2-8-0)" BSD-3-Clause "$libraries"
		component zlib "$(of_package zlib1g)" Zlib "$libraries"
		component libiberty "$(of_package libiberty-dev)" LGPL-2.0-or-later static
		component glibc "$(of_package libc6)" LGPL-2.1-or-later dynamic
		component libdw "$(of_package libdw1)" LGPL-3.0-or-later optional
		component libmicrohttpd "$(of_package libmicrohttpd12)" LGPL-2.1-or-later \
			optional ;;
	esac
	cat >"$root.spdx.json" <<END
{"spdxVersion": "SPDX-2.3", "dataLicense": "CC0-1.0", "SPDXID": "SPDXRef-DOCUMENT",
 "name": "$name",
 "documentNamespace": "https://recorder.invalid/spdx/$name-$commit",
 "creationInfo": {"created": "$(date -u -d "@$SOURCE_DATE_EPOCH" +%FT%TZ)",
  "creators": ["Organization: the authors of the recorder", "Tool: conf/package.sh"]},
 "packages": [
  {"SPDXID": "SPDXRef-recorder", "name": "recorder", "versionInfo": "$version",
   "primaryPackagePurpose": "APPLICATION", "downloadLocation": "NOASSERTION",
   "sourceInfo": "commit $commit", "filesAnalyzed": false, "copyrightText": "NOASSERTION",
   "checksums": [{"algorithm": "SHA256", "checksumValue": "$(sha256sum <"$1" | cut -d' ' -f1)"}],
   "licenseConcluded": "NOASSERTION", "licenseDeclared": "NOASSERTION"}$(cat "$root.parts")],
 "relationships": [
  {"spdxElementId": "SPDXRef-DOCUMENT", "relationshipType": "DESCRIBES",
   "relatedSpdxElement": "SPDXRef-recorder"}$(cat "$root.relations")]}
END
	rm "$root.parts" "$root.relations"
}

# ---- archives ------------------------------------------------------------------------------------

make_tarball()
{
	local name=recorder-$version-linux-x86_64
	make -s install BUILD="$build" DESTDIR="$root/$name" PREFIX=
	debug_beside "$root/$name/bin/recorder" ''
	chmod 644 "$root/$name/bin/recorder.debug"
	libraries=static
	bill "$root/$name/bin/recorder"
	install -m 644 "$root.spdx.json" "$root/$name/share/recorder/recorder.spdx.json"
	cp "$root.spdx.json" "$out/$name.tar.gz.spdx.json"
	same_times "$root/$name"
	tar -C "$root" --sort=name --owner=0 --group=0 --numeric-owner -c "$name" |
		gzip -9n >"$out/$name.tar.gz"
	echo "$out/$name.tar.gz"
}

stage_windows() # FOLDER
{
	local name=$1
	mkdir -p "$root/$name/examples"
	install -m 755 "$build/recorder.exe" "$root/$name"
	debug_beside "$root/$name/recorder.exe" x86_64-w64-mingw32-
	chmod 644 "$root/$name/recorder.exe.debug"
	install -m 644 conf/recorder.conf README.md "$root/$name"
	install -m 644 conf/examples/*.conf "$root/$name/examples"
	bill "$root/$name/recorder.exe"
	install -m 644 "$root.spdx.json" "$root/$name/recorder.spdx.json"
	same_times "$root/$name"
}

make_zip()
{
	local name=recorder-$version-windows-x86_64
	stage_windows "$name"
	cp "$root.spdx.json" "$out/$name.zip.spdx.json"
	rm -f "$out/$name.zip"
	(cd "$root" && find "$name" | sort | zip -X -9 -q -@ "$out/$name.zip")
	echo "$out/$name.zip"
}

# An identifier that is the same whenever it is asked for: of TEXT.
uuid_of()
{
	printf %s "$1" | sha256sum |
		sed 's/^\(.\{8\}\)\(.\{4\}\).\(...\).\(...\)\(.\{12\}\).*/\1-\2-5\3-8\4-\5/'
}

msi_file() # NUMBER FILE
{
	echo "<Component Id=\"c$1\" Guid=\"$(uuid_of "$2")\" Win64=\"yes\">"
	echo " <File Id=\"f$1\" Source=\"files/$2\" KeyPath=\"yes\"/></Component>"
}

# wixl gives each package a code (property 9) and times (12, 13) of its own: those of the commit.
msi_same_summary() # FILE
{
	local table=$root/_SummaryInformation.idt code time
	code=$(uuid_of "package $version $(git rev-parse HEAD)" | tr a-f A-F)
	time=$(date -u -d "@$SOURCE_DATE_EPOCH" '+%Y/%m/%d %H:%M:%S')
	msiinfo export "$1" _SummaryInformation |
		sed -E "s|^9\t[^\r]*|9\t{$code}|; s|^(1[23]\t)[^\r]*|\1$time|" >"$table"
	msibuild "$1" -i "$table"
}

# The service is installed, not started: it waits for C:\ProgramData\recorder\recorder.conf.
make_msi()
{
	local name=recorder-$version-windows-x86_64 file i=0
	local run='service run --service-name recorder --config'
	stage_windows files
	cp "$root.spdx.json" "$out/$name.msi.spdx.json"
	{
		cat <<END
<?xml version="1.0" encoding="utf-8"?>
<Wix xmlns="http://schemas.microsoft.com/wix/2006/wi">
 <Product Id="$(uuid_of "recorder $version $(git rev-parse HEAD)")" Name="recorder" Language="1033"
   Version="$version" Manufacturer="the authors of the recorder"
   UpgradeCode="6b9e0f36-4a52-5d0c-8e37-c2a1f5b79d10">
  <Package InstallerVersion="200" Compressed="yes" InstallScope="perMachine"
    Description="Flight recorder for call stacks"/>
  <Media Id="1" Cabinet="recorder.cab" EmbedCab="yes"/>
  <MajorUpgrade DowngradeErrorMessage="A newer recorder is installed."/>
  <Directory Id="TARGETDIR" Name="SourceDir"><Directory Id="ProgramFiles64Folder">
   <Directory Id="INSTALLDIR" Name="recorder">
    <Component Id="program" Guid="$(uuid_of program)" Win64="yes">
     <File Id="exe" Source="files/recorder.exe" KeyPath="yes"/>
     <ServiceInstall Id="service" Name="recorder" DisplayName="recorder" Start="demand"
       Type="ownProcess" ErrorControl="normal" Description="Flight recorder for call stacks"
       Arguments='$run "[CommonAppDataFolder]recorder\recorder.conf"'/>
     <ServiceControl Id="control" Name="recorder" Stop="both" Remove="uninstall" Wait="yes"/>
     <RegistryKey Root="HKLM"
       Key="SYSTEM\CurrentControlSet\Services\EventLog\Application\recorder">
      <RegistryValue Name="EventMessageFile" Type="expandable"
        Value="%SystemRoot%\System32\EventCreate.exe"/>
      <RegistryValue Name="TypesSupported" Type="integer" Value="7"/>
     </RegistryKey>
    </Component>
END
		for file in recorder.exe.debug recorder.conf README.md recorder.spdx.json; do
			i=$((i + 1))
			msi_file $i "$file"
		done
		echo '    <Directory Id="examples" Name="examples">'
		for file in "$root"/files/examples/*; do
			i=$((i + 1))
			msi_file $i "examples/${file##*/}"
		done
		echo '   </Directory></Directory></Directory></Directory>'
		echo '  <Feature Id="all" Level="1"><ComponentRef Id="program"/>'
		seq -f '   <ComponentRef Id="c%g"/>' $i
		echo '  </Feature></Product></Wix>'
	} >"$root/recorder.wxs"
	(cd "$root" && wixl -a x64 -o "$out/$name.msi" recorder.wxs)
	msi_same_summary "$out/$name.msi"
	echo "$out/$name.msi"
}

# ---- packages of Linux ---------------------------------------------------------------------------

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

stage_linux()
{
	make -s install BUILD="$build" DESTDIR="$root" PREFIX=/usr
	strip --strip-all --remove-section=.comment --remove-section=.note "$root/usr/bin/recorder"
	strip --strip-unneeded --remove-section=.comment --remove-section=.note \
		"$root/usr/lib/recorder/librecorder-heap.so"
	mkdir -p "$root/etc/recorder" "$root/usr/share/doc/recorder"
	install -m 644 conf/examples/always-on.conf "$root/etc/recorder/recorder.conf"
	bill "$root/usr/bin/recorder"
	install -m 644 "$root.spdx.json" "$root/usr/share/doc/recorder/recorder.spdx.json"
}

# The program of the tarball, which runs on older systems than this one.
make_rpm()
{
	local rpm=recorder-$version-1.x86_64.rpm
	libraries=static
	stage_linux
	same_times "$root"
	mkdir "$root.rpm"
	cat >"$root.rpm/recorder.spec" <<END
Name: recorder
Version: $version
Release: 1
Summary: Flight recorder for call stacks
License: LicenseRef-none-yet
Recommends: elfutils-libs
Recommends: libmicrohttpd
%description
Records the call stacks of all programs of a machine, all the time and at a low cost, keeps the
recent past in memory and on disk, and when a rule fires keeps the time around it as an incident.
%install
cp -a $root/. %{buildroot}/
%post
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	[ \$1 != 1 ] || systemctl preset recorder.service
fi
exit 0
%preun
if [ \$1 = 0 ] && [ -d /run/systemd/system ]; then
	systemctl disable --now recorder.service
fi
exit 0
%postun
if [ -d /run/systemd/system ]; then
	systemctl daemon-reload
	[ \$1 = 0 ] || systemctl try-restart recorder.service
fi
exit 0
%files
%dir /etc/recorder
%config(noreplace) /etc/recorder/recorder.conf
$(cd "$root" && find usr \( -type f -o -type l \) -printf '/%p\n' | sort)
%dir /usr/share/recorder
%dir /usr/share/recorder/examples
%dir /usr/share/recorder/requests
%dir /usr/share/doc/recorder
END
	rpmbuild --quiet -bb --target x86_64 --define "_topdir $root.rpm" \
		--define "_rpmdir $root.rpm" \
		--define '_buildhost recorder.invalid' --define 'debug_package %{nil}' \
		--define 'use_source_date_epoch_as_buildtime 1' --define '_build_id_links none' \
		--define 'clamp_mtime_to_source_date_epoch 1' --define '__os_install_post %{nil}' \
		--define '_rpmfilename %{name}-%{version}-%{release}.%{arch}.rpm' \
		"$root.rpm/recorder.spec"
	cp "$root.rpm/$rpm" "$out/"
	cp "$root.spdx.json" "$out/$rpm.spdx.json"
	echo "$out/$rpm"
}

make_deb()
{
	local doc=$root/usr/share/doc/recorder page deb
	libraries=dynamic
	stage_linux
	mkdir -p "$root/DEBIAN" "$root/lib/systemd"
	mv "$root/usr/lib/systemd/system" "$root/lib/systemd/"
	rmdir -p "$root/usr/lib/systemd" 2>/dev/null || true
	mkdir -p "$root/usr/share/zsh/vendor-completions"
	mv "$root/usr/share/zsh/site-functions/_recorder" "$root/usr/share/zsh/vendor-completions/"
	rmdir "$root/usr/share/zsh/site-functions"
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
	cp "$root.spdx.json" "$deb.spdx.json"
	dpkg-deb --root-owner-group -Zxz --build "$root" "$deb" >/dev/null
	echo "$deb"
}

"make_$kind"
