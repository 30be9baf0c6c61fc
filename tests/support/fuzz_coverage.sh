#!/bin/bash
# make fuzz-coverage: run fuzz targets (arguments) for FUZZ_SECONDS each, from their corpora, and
# print the lines of their rooms' files that they reach together, by llvm-cov. Files that none of
# them reaches are left out. Programs and profiles: build/coverage.
set -u
cd "$(dirname "$0")/../.." || exit 1
out=build/coverage
for tool in llvm-cov llvm-profdata; do
	version=$(clang -dumpversion | cut -d. -f1)
	declare "${tool//-/_}=$(command -v $tool-"$version" || command -v $tool)"
done
if [ ! "$llvm_cov" ] || [ ! "$llvm_profdata" ]; then
	echo "fuzz-coverage: needs llvm-cov and llvm-profdata (make deps installs llvm)" >&2
	exit 1
fi

rooms=
for name; do
	room=${name#fuzz_}
	room=${room%%_*}
	rooms+=" $room"
	mkdir -p "$out/corpus/$name"
	LLVM_PROFILE_FILE="$out/$name.profraw" "$out/fuzz/$name" \
		-max_total_time="${FUZZ_SECONDS:-20}" -timeout=10 -verbosity=0 \
		-artifact_prefix="$out/$name-" "$out/corpus/$name" "tests/fuzz/corpus/$name" \
		</dev/null >"$out/$name.log" 2>&1 ||
		{ echo "$name found something: $out/$name.log"; tail -3 "$out/$name.log"; }
done
programs=() profiles=()
for name; do
	profiles+=("$out/$name.profraw")
	programs+=(-object "$out/fuzz/$name")
done
"$llvm_profdata" merge -sparse "${profiles[@]}" -o "$out/all.profdata" || exit 1
printf '%-46s %6s %8s\n' file lines reached
for room in $(tr ' ' '\n' <<<"$rooms" | sort -u); do
	folder=
	for at in {recorder,recorder/managed,recorder/source,.}/$room; do
		[ ! -d "$at" ] || folder=${folder:-$at}
	done
	"$llvm_cov" report "${programs[@]:1}" -instr-profile="$out/all.profdata" \
		"$folder" 2>/dev/null | awk -v folder="$folder" '
		/\.c / && $8 > $9 { printf "%-46s %6d %7.1f %%\n", $1 ~ folder ? $1 : folder "/" $1,
			$8, 100 * ($8 - $9) / $8; all += $8; hit += $8 - $9 }
		END { if (all) printf "%-46s %6d %7.1f %%\n\n", folder, all, 100 * hit / all }'
done
