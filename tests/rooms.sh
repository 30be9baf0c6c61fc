#!/bin/bash
# The house rules that a compiler does not check, over the files that git knows:
#
#   - a room includes and calls exactly the rooms of its uses_ line in the Makefile, and no two
#     rooms use each other
#   - NAME_private.h is included from its own folder only
#   - a folder holds 40 modules at most (a .c, its .h and its twin of the other host are one)
#   - a line has 100 columns at most, a C file 800 lines, README.md 10 KB
#
# Calls are read from the archives of both hosts in build/, which `make check` has built.
#
#   tests/rooms.sh          check the rules
#   tests/rooms.sh graph    print which room uses which
#   tests/rooms.sh wide     print every line of more than 100 columns
set -u
cd "$(dirname "$0")/.." || exit 1

# ---- exceptions, each with its reason ------------------------------------------------------------

# Decoders of some forty kinds of records, a file for each family; a fuzz target for each parser.
many_modules='recorder/source/etw tests/fuzz'

# Formats whose lines are data: what other programs wrote, or will read.
wide_lines='tests/data/ tests/fuzz/corpus/'

# ---- the graph -----------------------------------------------------------------------------------

rooms=$(sed -n 's/^uses_\([a-z]*\) *:=.*/\1/p' Makefile)
# What programs preload is no room: it shares a header with ring.
sources=$(git ls-files 'recorder/*/*.[ch]' 'triggers/*.[ch]' 'store/*.[ch]' 'export/*.[ch]' \
	':!recorder/preload')

# "FROM TO" for each room in a uses_ line.
listed()
{
	sed -n 's/^uses_\([a-z]*\) *[:+]=/\1/p' Makefile |
		awk '{ for (i = 2; i <= NF; i++) print $1, $i }' | sort -u
}

# "FROM TO" for each include; a room is the folder that a file stands in.
included()
{
	grep -H '^ *# *include "' $sources | awk -F: '
		function room(path) { sub("/[^/]*$", "", path); sub(".*/", "", path); return path }
		{ split($2, part, "\""); from = room($1); to = room(part[2]) }
		from != to { print from, to }' | sort -u
}

# "wants ROOM SYMBOL" and "has ROOM SYMBOL" of what is built for host $1; $2 is its nm.
symbols()
{
	for room in $rooms; do
		"$2" -A "build/$1/lib/$room.a" 2>/dev/null | awk -v room="$1/$room" '
			$(NF - 1) == "U" { print "wants", room, $NF }
			$(NF - 1) ~ /^[TDBRVC]$/ { print "has", room, $NF }'
	done
}

# "FROM TO" for each symbol that one room wants and another one has, on either host.
called()
{
	{ symbols linux nm; symbols windows x86_64-w64-mingw32-nm; } | awk '
		{ split($2, at, "/"); key = at[1] " " $3 }
		$1 == "has" { home[key] = at[2]; next }
		{ from[++n] = at[2]; wanted[n] = key }
		END {
			for (i = 1; i <= n; i++)
				if (wanted[i] in home && home[wanted[i]] != from[i])
					print from[i], home[wanted[i]]
		}' | sort -u
}

used()
{
	{ included; called; } | sort -u
}

# Arrows to a room whose own line comes later: a circle, or a line upwards.
upwards()
{
	listed | awk -v rooms="$(echo $rooms)" '
		BEGIN { n = split(rooms, name, " "); for (i = 1; i <= n; i++) place[name[i]] = i }
		!($2 in place) || place[$2] >= place[$1] { print $1 " -> " $2 }'
}

if [ "${1:-}" = graph ]; then
	used | awk '
		{ to[$1] = to[$1] " " $2; n++ }
		END { for (r in to) print r " ->" to[r]; print n " arrows" }' | sort
	exit
fi

# ---- the rules -----------------------------------------------------------------------------------

# report NAME: "ok NAME" when stdin is empty, else "not ok NAME" with its lines.
report()
{
	local found
	found=$(cat)
	if [ ! "$found" ]; then
		echo "ok $1"
	else
		echo "not ok $1: $(echo "$found" | wc -l) found"
		echo "$found" | head -n 40
	fi
}

foreign_private_headers()
{
	grep -H '^ *# *include ".*_private\.h"' $(git ls-files '*.[ch]') | awk -F: '
		function folder(path) { sub("/[^/]*$", "", path); return path }
		{ split($2, part, "\""); from = folder($1); to = folder(part[2])
		  if ($1 !~ /^tests\// && from != to && from != "recorder/" to) print }'
}

crowded_folders()
{
	git ls-files {recorder,triggers,store,export,tests}'/*.[ch]' |
		sed 's/\(_linux\|_windows\|_private\)*\.[ch]$//' | sort -u |
		sed 's|/[^/]*$||' | uniq -c | awk -v except=" $many_modules " '
			$1 > 40 && !index(except, " " $2 " ") { print $2 ": " $1 " modules" }'
}

text_files()
{
	git ls-files '*.'{c,h,cc,sh,md,mjs,js,css,html,conf,cmd} \
		Makefile .clang-format .ci/run | awk -v except="$wide_lines" '
		BEGIN { n = split(except, folder, " ") }
		{ for (i = 1; i <= n; i++) if (index($0, folder[i]) == 1) next; print }'
}

# Columns, not bytes: a tab goes to the next multiple of 8, a character of several bytes is one.
wide()
{
	text_files | xargs awk '
		# Rows of tables and what a program printed cannot be wrapped in Markdown.
		FILENAME ~ /\.md$/ && /^(\||    )/ { next }
		# Nor can a value of a conf file.
		FILENAME ~ /\.conf$/ && /^[^#]*=/ { next }
		{ gsub(/[\200-\277]/, ""); line = $0; column = 0
		  while ((at = index(line, "\t")) > 0) {
			  column += at - 1; column += 8 - column % 8; line = substr(line, at + 1) }
		  column += length(line)
		  if (column > 100) print FILENAME ":" FNR ": " column " columns" }'
}

long()
{
	git ls-files '*.[ch]' | xargs wc -l | awk '
		$2 != "total" && $1 > 800 { print $2 ": " $1 " lines" }'
}

if [ "${1:-}" = wide ]; then
	LC_ALL=C wide
	exit
fi

if [ -e build/linux/lib/cli.a ] && [ -e build/windows/lib/cli.a ]; then
	diff <(listed) <(used) |
		sed -n 's/^< \(.*\)/listed, never used: \1/p; s/^> \(.*\)/used, not listed: \1/p' |
		report rooms_use_what_their_line_lists
else
	echo "skip rooms_use_what_their_line_lists: build both hosts first (make all windows)"
fi
upwards | report rooms_use_only_rooms_below_them
foreign_private_headers | report private_headers_stay_in_their_folder
crowded_folders | report folders_hold_forty_modules_at_most
LC_ALL=C wide | report lines_have_a_hundred_columns_at_most
long | report files_have_800_lines_at_most
find README.md -size +10239c | report readme_is_at_most_10_kb
