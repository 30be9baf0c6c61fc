#!/bin/bash
# Install more JDKs for the tests of Java, those that Debian's unstable suite has: a root directory
# with all of them in build/deps/jdks/root, and for each a home beside it, build/deps/jdks/21,
# whose programs run there, in a mount namespace of their own and in the directory where they are
# called. 2.4 GB; needs root and mmdebstrap. tests/support/cli.sh (jdks) finds them.
#
#   tests/support/jdks.sh [MAJOR...]       (8 11 21 25 26 27 28); 'make jdks'
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$top/build/deps/jdks
[ $# -gt 0 ] || set -- 8 11 21 25 26 27 28

die()
{
	echo "jdks: $*" >&2
	exit 1
}

command -v mmdebstrap >/dev/null || die "no mmdebstrap here (apt-get install mmdebstrap)"
[ "$(id -u)" = 0 ] || die "only root can make and enter a root directory"
[ ! -e "$dir/root" ] || die "$dir/root is there; remove it first to make it anew"
mkdir -p "$dir" || exit 1

packages=$(printf 'openjdk-%s-jdk-headless,' "$@")
# A mirror that has stopped still has what we need.
mmdebstrap --mode=root --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
	--include="$packages"bash,coreutils,libc-bin unstable "$dir/root" \
	http://deb.debian.org/debian >"$dir/log" 2>&1 ||
	die "mmdebstrap could not fetch $*: see $dir/log"
mkdir -p "$dir"/root/{dev,mnt,proc,tmp}

cat >"$dir/run" <<'X'
#!/bin/bash
# Called as MAJOR/bin/PROGRAM: runs that program of that JDK. Process id and name stay.
set -eu
home=$(cd "$(dirname "$0")/.." && pwd)
[ "${IN_OWN_MOUNTS_OF_JDK:-}" ] || IN_OWN_MOUNTS_OF_JDK=1 exec unshare -m bash "$0" "$@"
unset IN_OWN_MOUNTS_OF_JDK
root=$home/../root
mount -t proc proc "$root/proc"
mount --bind /dev "$root/dev"
mount --bind /tmp "$root/tmp"
mount --bind "$PWD" "$root/mnt"
exec chroot "$root" /bin/bash -c 'cd /mnt && exec "$@"' bash \
	"/usr/lib/jvm/java-${home##*/}-openjdk-amd64/bin/${0##*/}" "$@"
X
chmod +x "$dir/run"
for major; do
	mkdir -p "$dir/$major/bin"
	for program in java jcmd jstack; do
		ln -sf ../../run "$dir/$major/bin/$program"
	done
	(cd /tmp && "$dir/$major/bin/java" -version 2>&1 | sed -n 2p)
done
