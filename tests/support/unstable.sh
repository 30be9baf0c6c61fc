# For scripts that install programs of Debian's unstable suite beside the installed ones, in a root
# directory of their own: they run there, in a mount namespace of their own and in the directory
# where they are called. Process id and name stay. Needs root and mmdebstrap.

# unstable_root WHO DIR PACKAGES: into DIR/root; packages with commas between.
unstable_root()
{
	command -v mmdebstrap >/dev/null ||
		unstable_die "$1" "no mmdebstrap here (apt-get install mmdebstrap)"
	[ "$(id -u)" = 0 ] || unstable_die "$1" "only root can make and enter a root directory"
	[ ! -e "$2/root" ] ||
		unstable_die "$1" "$2/root is there; remove it first to make it anew"
	mkdir -p "$2" || exit 1
	# A mirror that has stopped still has what we need.
	mmdebstrap --mode=root --variant=extract --aptopt='Acquire::Check-Valid-Until "false"' \
		--include="$3",bash,coreutils,libc-bin unstable "$2/root" \
		http://deb.debian.org/debian >"$2/log" 2>&1 ||
		unstable_die "$1" "mmdebstrap could not fetch $3: see $2/log"
	mkdir -p "$2"/root/{dev,mnt,proc,tmp}
}

unstable_die()
{
	echo "$1: $2" >&2
	exit 1
}

# unstable_run DIR PROGRAMS: make DIR/run, which is called as DIR/X/bin/PROGRAM, by a link, and runs
# that program in DIR/root. PROGRAMS: its directory there, of X: '/usr/lib/jvm/java-$x'.
unstable_run()
{
	cat >"$1/run" <<END
#!/bin/bash
set -eu
x=\$(cd "\$(dirname "\$0")/.." && pwd)
root=\$x/../root
x=\${x##*/}
[ "\${IN_OWN_MOUNTS:-}" ] || IN_OWN_MOUNTS=1 exec unshare -m bash "\$0" "\$@"
unset IN_OWN_MOUNTS
mount -t proc proc "\$root/proc"
mount --bind /dev "\$root/dev"
mount --bind /tmp "\$root/tmp"
mount --bind "\$PWD" "\$root/mnt"
exec chroot "\$root" /bin/bash -c 'cd /mnt && exec "\$@"' bash "$2/\${0##*/}" "\$@"
END
	chmod +x "$1/run"
}
