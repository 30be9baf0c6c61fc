#!/bin/bash
# Install more JDKs for the tests of Java, those that Debian's unstable suite has: a root directory
# with all of them in build/deps/jdks/root, and for each a home beside it, build/deps/jdks/21
# (tests/support/unstable.sh). 2.4 GB. tests/support/cli.sh (jdks) finds them.
#
#   tests/support/jdks.sh [MAJOR...]       (8 11 21 25 26 27 28); 'make jdks'
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$top/build/deps/jdks
. "$top/tests/support/unstable.sh"
[ $# -gt 0 ] || set -- 8 11 21 25 26 27 28

unstable_root jdks "$dir" "$(printf 'openjdk-%s-jdk-headless\n' "$@" | paste -sd,)"
unstable_run "$dir" '/usr/lib/jvm/java-$x-openjdk-amd64/bin'
for major; do
	mkdir -p "$dir/$major/bin"
	for program in java jcmd jstack; do
		ln -sf ../../run "$dir/$major/bin/$program"
	done
	(cd /tmp && "$dir/$major/bin/java" -version 2>&1 | sed -n 2p)
done
