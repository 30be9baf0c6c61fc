#!/bin/bash
# make check-vm: what only a kernel of its own can show. Boots Debian's kernel in qemu, without KVM,
# with the recorder of this tree and a script of this folder as the first process; or with systemd,
# which runs the script, and the .deb of the last commit. The script prints its checks on the
# console, as the other tests do. The processor is an emulated one, so times are those of a slow
# machine. Where systemd-nspawn is, a script under systemd has a container of that and this
# machine's kernel instead: a minute, and real times.
#
#	tests/vm/run.sh [NAME...]            scripts without .sh; default: all
#	VM=qemu tests/vm/run.sh systemd      not in a container
#
# The system lies in build/vm (4 GB), made once from this machine's apt sources, and anew when the
# list of packages below changes. The script ends only its own qemu.
set -eu

top=$(cd "$(dirname "$0")/../.." && pwd)
vm=$top/build/vm
packages=linux-image-cloud-amd64,systemd-sysv,dbus,stress-ng,sqlite3,zlib1g,libpcre2-8-0,procps
packages=$packages,libdw1,libmicrohttpd12,curl,jq,podman,crun,busybox-static,systemd-coredump
limit_s=300                                  # for one script: "# time limit: SECONDS" in it
qemu=
passed=0 failed=0

skip()
{
	echo "skip check-vm: $*"
	echo "0 passed, 0 failed, 1 skipped"
	exit 0
}

[ "$(id -u)" = 0 ] || skip "only root can make a system"
for tool in mmdebstrap $([ "$*" = systemd ] && command -v systemd-nspawn >/dev/null ||
	echo qemu-system-x86_64 mke2fs); do
	command -v $tool >/dev/null ||
		skip "no $tool (apt-get install qemu-system-x86 mmdebstrap e2fsprogs)"
done
trap '[ ! "$qemu" ] || pkill -9 -P "$qemu" || true' EXIT

# The system, as a folder.
make_root()
{
	. /etc/os-release
	[ "$(cat "$vm/packages" 2>/dev/null)" != "$VERSION_CODENAME $packages" ] || return 0
	rm -rf --one-file-system "$vm"
	mkdir -p "$vm"
	echo "making a Debian ($VERSION_CODENAME) for check-vm, some minutes, once"
	mmdebstrap --mode=root --variant=minbase --include="$packages" "$VERSION_CODENAME" \
		"$vm/root" >"$vm/log" 2>&1 || skip "mmdebstrap: $(tail -n 1 "$vm/log")"
	cp "$vm"/root/boot/vmlinuz-* "$vm/kernel"
	cp "$vm"/root/boot/initrd.img-* "$vm/initrd"
	echo "$VERSION_CODENAME $packages" >"$vm/packages"
}

in_container() # SCRIPT
{
	[ "${VM:-}" != qemu ] && command -v systemd-nspawn >/dev/null &&
		grep -q '^# under systemd' "$1"
}

# What is written in it lies in memory, and goes with it.
run_container()
{
	mkdir -p "$vm/over"
	: >"$vm/console"
	SYSTEMD_NSPAWN_UNIFIED_HIERARCHY=1 unshare --mount sh -euc 'cd "$1"
		mount -t tmpfs tmpfs over && mkdir over/written over/work over/root
		mount -t overlay -o lowerdir=root,upperdir=over/written,workdir=over/work \
			overlay over/root
		exec timeout -k 5 "$2" systemd-nspawn --quiet --directory over/root --boot \
			--bind "$1/console:/vm/console" --register=no --keep-unit \
			--capability=all \
			--system-call-filter="perf_event_open process_vm_readv"' \
		sh "$vm" "$limit_s" </dev/null >"$vm/nspawn.log" 2>&1
}

# The disk, with the recorder of this tree and a script.
make_disk()
{
	local units=$vm/root/etc/systemd/system
	rm -rf "$vm/root/vm"
	mkdir -p "$vm/root/vm"
	cp "$top/build/linux/recorder" "$1" "$top/tests/vm/guest.sh" "$vm/root/vm/"
	rm -f "$units/multi-user.target.wants/check.service"
	init=/vm/${1##*/}
	if grep -q '^# under systemd' "$1"; then
		init=/lib/systemd/systemd
		make -s -C "$top" deb >"$vm/deb.log" 2>&1 || { cat "$vm/deb.log" && exit 1; }
		cp "$top"/build/packages/*.deb "$vm/root/vm/"
		printf '[Service]\nType=exec\nExecStart=/bin/bash /vm/%s\n' "${1##*/}" \
			>"$units/check.service"
		ln -s ../check.service "$units/multi-user.target.wants/"
	fi
	rm -f "$vm/disk"
	! in_container "$1" || return 0
	mke2fs -qq -t ext4 -d "$vm/root" "$vm/disk" 3G 2>/dev/null
}

# boot SCRIPT MODE: with it as the first process. Its output: $vm/console.
boot()
{
	rm -f "$vm"/monitor.*
	mkfifo "$vm/monitor.in" "$vm/monitor.out"
	timeout -k 5 $limit_s qemu-system-x86_64 -machine accel=tcg -cpu max -smp 2 -m 2048 \
		-nographic -no-reboot -nodefaults -serial "file:$vm/console" \
		-monitor "pipe:$vm/monitor" \
		-drive "file=$vm/disk,if=virtio,format=raw,cache=writeback" \
		-kernel "$vm/kernel" -initrd "$vm/initrd" -append "console=ttyS0 root=/dev/vda rw \
			quiet psi=1 panic=-1 no_timer_check init=$init vm=$2" \
		</dev/null >/dev/null 2>&1 & qemu=$!
}

# Pull the plug SECONDS after the script has begun: what the kernel did not write yet is lost. What
# it handed to the disk is not, so this disk is one that keeps what it took.
cut_power()
{
	local i
	for ((i = 0; i < 10 * limit_s; i++)); do
		! grep -qa '^vm: begun' "$vm/console" || break
		sleep 0.1
	done
	sleep "$1"
	pkill -9 -P $qemu || true
	wait $qemu 2>/dev/null || true
	qemu=
	grep -a '^vm: alive' "$vm/console" | tail -n 1 | tr -d '\r' >"$vm/last"
	echo "power cut ${1} s after the recording began"
}

# Pause the machine for SECONDS when the script asks for it.
pause()
{
	local i
	for ((i = 0; i < 10 * limit_s; i++)); do
		! grep -qa '^vm: pause me' "$vm/console" || break
		sleep 0.1
	done
	echo stop >"$vm/monitor.in"
	sleep "$1"
	echo cont >"$vm/monitor.in"
}

# run_one SCRIPT
run_one()
{
	local name=${1##*/} start=$SECONDS seconds limit_s=$limit_s
	seconds=$(sed -n 's/^# time limit: //p' "$1")
	limit_s=${seconds:-$limit_s}
	make_disk "$1"
	for seconds in $(sed -n 's/^# power cuts after: //p' "$1"); do
		: >"$vm/console"
		boot "$1" record
		cut_power "$seconds"
		: >"$vm/console"
		boot "$1" "check,$(sed 's/.* //' "$vm/last")"
		wait $qemu || true
		qemu=
		read_checks "$name"
	done
	if in_container "$1"; then
		run_container || true
		read_checks "$name"
	elif ! grep -q '^# power cuts after: ' "$1"; then
		: >"$vm/console"
		boot "$1" run
		seconds=$(sed -n 's/^# is paused for: //p' "$1")
		[ ! "$seconds" ] || pause "$seconds"
		wait $qemu || true
		qemu=
		read_checks "$name"
	fi
	echo "$name: $((SECONDS - start)) s"
}

read_checks()
{
	local good bad
	tr -d '\r' <"$vm/console" | grep -aE '^(ok|not ok|skip|it) |^     \|' >"$vm/checks" || true
	good=$(grep -c '^ok ' "$vm/checks" || true)
	bad=$(grep -c '^not ok ' "$vm/checks" || true)
	if ! grep -qa '^vm: the script has ended' "$vm/console"; then
		bad=$((bad + 1))
		echo "not ok $1: it did not end in $limit_s s; the console ends with" >>"$vm/checks"
		tail -n 20 "$vm/console" | tr -d '\r' | sed 's/^/     | /' >>"$vm/checks"
	fi
	cat "$vm/checks"
	passed=$((passed + good)) failed=$((failed + bad))
}

make_root
for script in ${@:-pressure clock power_cut systemd}; do
	run_one "$top/tests/vm/$script.sh"
done
echo "$passed passed, $failed failed, 0 skipped"
[ $failed = 0 ]
