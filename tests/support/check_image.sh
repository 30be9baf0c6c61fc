#!/bin/bash
# The image of conf/Containerfile, built by buildah and run by podman as it says there, and with the
# rights of conf/daemonset.yaml: tests/support/check_image.sh FOLDER, which has the .deb. A part of
# make check-package; prints "ok NAME" or "not ok NAME".
#
# Images, containers and the engine's files lie in a folder of their own, and no registry is asked:
# the image's base is made from this machine's apt sources. The containers have the network and the
# kernel of this machine.
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
packages=$(realpath "$1")
work=$(mktemp -d -t check-image.XXXXXX)
cd "$work" || exit 1
failed=0

finish()
{
	podman rm --all --force --time 2 >/dev/null 2>&1
	podman umount --all >/dev/null 2>&1
	rm -rf "$work"
}
trap finish EXIT

# Engines raise limits, which needs CAP_SYS_RESOURCE; crun wants cgroups of one version.
cat >containers.conf <<END
[containers]
default_ulimits = ["nofile=$(ulimit -Hn):$(ulimit -Hn)", "nproc=10000:10000"]
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
runtime = "$(command -v runc >/dev/null && echo runc || echo crun)"
END
cat >storage.conf <<END
[storage]
driver = "$([ "$(stat -f -c %T .)" = overlayfs ] && echo vfs || echo overlay)"
graphroot = "$work/images"
runroot = "$work/run"
END
export CONTAINERS_CONF=$work/containers.conf CONTAINERS_STORAGE_CONF=$work/storage.conf

check() # NAME COMMAND...
{
	local name=$1
	shift
	if "$@" >log 2>&1; then
		echo "ok $name"
	else
		echo "not ok $name"
		tail -n 20 log | sed 's/^/    /'
		failed=1
		false
	fi
}

build() { buildah build --isolation chroot --network host --build-arg BASE=base "$@"; }
images()
{
	local uri suite
	suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
	uri=$(apt-get indextargets --format '$(REPO_URI)' 'Origin: Debian' 'Created-By: Packages' |
		grep -v security | head -n 1)
	mmdebstrap --mode=root --variant=minbase "$suite" base.tar "deb $uri $suite main" &&
		podman import base.tar base && rm base.tar &&
		build -t recorder -f "$top/conf/Containerfile" "$packages" &&
		mkdir shop && cp "$top/build/linux/programs/burn" shop/ &&
		build -t shop -f - shop <<<$'ARG BASE\nFROM $BASE\nCOPY burn /opt/burn'
}

# The options of "podman run" in the Containerfile, and those that say what the DaemonSet does.
as_the_containerfile_says()
{
	eval "$(sed -n '/^#   podman run /,/ recorder$/s/^# *//p' "$top/conf/Containerfile" |
		sed "s:-v /var/lib/recorder\::-v $work/store\::")"
}
as_the_daemonset_says()
{
	local rights
	rights=$(sed -n '/^ *add: \[/,/\]/p' "$top/conf/daemonset.yaml" | grep -oE '[A-Z_]{4,}')
	mkdir conf
	sed -n 's/^    \([a-z-]* = .*\)/\1/p' "$top/conf/daemonset.yaml" >conf/recorder.conf
	podman run -d --name recorder --pid host --cgroupns host --network host --cap-drop all \
		$(printf -- '--cap-add %s ' $rights) --security-opt no-new-privileges --read-only \
		--memory 1g -v "$work/store:/var/lib/recorder" -v "$work/conf:/etc/recorder:ro" \
		--tmpfs /tmp recorder
}

asked() { podman exec recorder recorder "$@" --store /var/lib/recorder/incidents.db; }
wait_for() # SECONDS COMMAND...
{
	local until=$((SECONDS + $1))
	shift
	while ! "$@" >/dev/null 2>&1; do
		[ $SECONDS -lt $until ] || return 1
		sleep 0.3
	done
}
samples() { asked status --json | jq -e '.samples > 100'; }
stored() { asked list --json | jq -se '.[0].state == "complete"'; }

# What the kernel, podman and the machine say of the same.
records_the_neighbours() # NAME
{
	local shop
	shop=$(podman inspect --format '{{.Id}}' shop)
	mkdir -p store
	check "$1" "as_$1" || return
	check it_records wait_for 20 samples || { podman logs recorder | tail -n 5; return; }
	# A program of the machine that has ended before it is asked for.
	"$top/build/linux/programs/burn" 1 >log
	asked snapshot --reason neighbours 2>log
	check it_stores_an_incident wait_for 20 stored || return
	asked export 1 -f -o - --container "$shop" >shop.folded
	check the_neighbour_has_its_id_and_names grep -qE \
		'^burn .*;burn!main;burn!burn_until;burn!b' shop.folded
	check and_nothing_else_is_there eval '! grep -v "^burn (" shop.folded'
	asked export 1 -f -o - >all.folded
	grep '^burn (' all.folded | grep -vFxf shop.folded >machine.folded
	check a_program_of_the_machine_that_has_ended_has_names grep -qF \
		'burn!main;burn!burn_until;burn!b' machine.folded
	check nothing_of_it_lacks_a_name eval '! grep -vF "burn!main" machine.folded'
	check it_stops_in_time eval 'podman stop --time 30 recorder &&
		[ "$(podman inspect --format "{{.State.ExitCode}}" recorder)" = 0 ]'
	podman rm --force recorder >/dev/null
	rm -rf store
}

check images_are_built images || exit 1
podman run -d --name shop --network host shop /opt/burn 120 >/dev/null
records_the_neighbours the_containerfile_says
records_the_neighbours the_daemonset_says
exit $failed
