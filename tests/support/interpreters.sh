#!/bin/bash
# Install newer CPythons and a stripped Node.js for the tests of their stacks, those that Debian's
# unstable suite has: build/deps/interpreters/all/bin/python3.14 and so on (tests/support/
# unstable.sh). 0.5 GB. tests/support/cli.sh (pythons) and node_stacks_linux.sh find them.
#
#   tests/support/interpreters.sh          'make interpreters'
set -u
top=$(cd "$(dirname "$0")/../.." && pwd)
dir=$top/build/deps/interpreters
. "$top/tests/support/unstable.sh"

unstable_root interpreters "$dir" python3.14,python3.15,nodejs
unstable_run "$dir" /usr/bin
mkdir -p "$dir/all/bin"
for program in python3.14 python3.15 node; do
	ln -sf ../../run "$dir/all/bin/$program"
	(cd /tmp && echo "$program: $("$dir/all/bin/$program" --version)")
done
