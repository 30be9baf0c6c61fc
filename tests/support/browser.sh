# For tests/cli/*.sh that drive a browser: Debian's chromium, node, and npm's playwright-core in
# build/deps/npm (make deps); all are optional. Source it with the name of what is tested:
#
#	. "$TOP/tests/support/browser.sh" report_in_a_browser
#
# Sets $chromium and $playwright; without one of them it says so and ends the script.
# shellcheck shell=bash
chromium=$(command -v chromium || command -v chromium-browser)
npm=$TOP/build/deps/npm/node_modules
playwright=${PLAYWRIGHT_CORE:-$npm/playwright-core}
for need in "${chromium:-chromium}" node; do
	if ! command -v "$need" >/dev/null; then
		echo "skip $1: no $need here"
		exit 0
	fi
done
if [ ! -e "$playwright/package.json" ]; then
	echo "skip $1: no playwright-core in build/deps/npm (make deps)"
	exit 0
fi
