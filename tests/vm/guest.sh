# Read by the scripts of this folder, which are the first process of their system, or a service of
# its systemd.
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root TERM=dumb
if [ $$ = 1 ]; then
	mount -t proc proc /proc
	mount -t sysfs sysfs /sys
	mount -t devtmpfs devtmpfs /dev 2>/dev/null
	mount -t tmpfs tmpfs /run
	mount -t tmpfs tmpfs /tmp
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
fi
console=/dev/console
[ ! -e /vm/console ] || console=/vm/console  # in a container
exec </dev/null >>$console 2>&1
recorder=/vm/recorder

# check NAME COMMAND...
check()
{
	local name=$1
	shift
	if "$@" >/tmp/check.out 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name: $*"
		head -n 20 /tmp/check.out | sed 's/^/     | /'
	fi
}

# The end of the system, at once. In a container, sysrq would be the machine's.
finish()
{
	echo "vm: the script has ended"
	if [ -e /run/systemd/container ]; then
		exec systemctl poweroff --force --force
	fi
	sync
	echo o >/proc/sysrq-trigger
	sleep 60
}
