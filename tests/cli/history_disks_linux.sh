#!/bin/bash
# The history's disk becomes full, read-only, broken (EIO), slow (1 MB/s, and a sync of 0.5 s); its
# directory is renamed, removed; the disk of the store is pulled, too: one recorder for each, all at
# once. Recording and incidents go on, log and status say what is wrong, and once the disk is well
# the history goes on by itself, without a gap, and what waited for the store is in it.
. "$TOP/tests/support/cli.sh"
need_perf

if [ "$(id -u)" != 0 ] || ! unshare -m true 2>/dev/null; then
	echo "skip everything: needs root and a mount namespace of its own"
	exit 0
fi
[ "${DISKS_INSIDE:-}" ] || DISKS_INSIDE=1 exec unshare -m bash "$0"

# Files below a .history, and all of pulled.db, cannot be written while the file "eio" or "erofs" is
# there, and take their time while "slow" is.
cat >disk.c <<'C'
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int bad(const char *path, size_t n)
{
	if (!strstr(path, ".history/") && !strstr(path, "pulled.db"))
		return 0;
	if (access("slow", F_OK) == 0)
		usleep(n ? (useconds_t)n : 500000);
	errno = access("eio", F_OK) == 0 ? EIO : access("erofs", F_OK) == 0 ? EROFS : 0;
	return errno;
}

static int bad_file(int fd, size_t n)
{
	char link[64], path[4096];
	ssize_t len;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	len = readlink(link, path, sizeof(path) - 1);
	path[len > 0 ? len : 0] = '\0';
	return bad(path, n);
}

ssize_t pwrite64(int fd, const void *bytes, size_t n, off64_t at)
{
	ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");

	return bad_file(fd, n) ? -1 : next(fd, bytes, n, at);
}

int fdatasync(int fd)
{
	int (*next)(int) = dlsym(RTLD_NEXT, "fdatasync");

	return bad_file(fd, 0) ? -1 : next(fd);
}

/* Both names: the recorder's own files, and SQLite's. */
int open(const char *path, int flags, ...)
{
	int (*next)(const char *, int, mode_t) = dlsym(RTLD_NEXT, "open64");
	mode_t mode;
	va_list more;

	va_start(more, flags);
	mode = va_arg(more, mode_t);
	va_end(more);
	return (flags & O_ACCMODE) != O_RDONLY && bad(path, 1) ? -1 : next(path, flags, mode);
}

int open64(const char *, int, ...) __attribute__((alias("open")));
C
if ! gcc -shared -fPIC -o disk.so disk.c; then
	echo "skip everything: gcc does not build a disk that breaks"
	exit 0
fi

cases="full readonly eio slow renamed removed pulled"
declare -A pid
"$BUILD/programs/burn" 120 >/dev/null & burn=$!
trap 'kill -KILL $burn ${pid[*]} 2>/dev/null' EXIT

says() { grep -qE -- "$2" "$1" || { cat "$1"; return 1; }; }
status() { "$RECORDER" status --store "$1.db" >"$1.status" 2>&1; says "$1.status" "$2"; }
written() { "$RECORDER" history --store "$1.db" --json | jq -se 'any(.samples > 0)'; }
last() { "$RECORDER" history --store "$1.db" --json | jq -r .to_utc | tail -1; }
last_ms() { date -d "$(last "$1")" +%s%3N; }
is_later() { [ "$(last_ms "$1")" -gt "$2" ]; }

mkdir full.db.history
mount -t tmpfs -o size=16m,mode=700 tmpfs full.db.history
for name in $cases; do
	preload=
	case $name in readonly | eio | slow | pulled) preload=$PWD/disk.so ;; esac
	mkdir -p $name
	(cd $name && LD_PRELOAD=$preload exec "$RECORDER" collect --store ../$name.db --freq 49 \
		--history-sync-sec 1 --max-cpu-percent 0 --delay-after-trigger-sec 1 \
		2>../$name.log) & pid[$name]=$!
done
for name in $cases; do
	check ${name}_disk_is_written_at_first wait_for 30 written $name
done

# ---- all of them break ---------------------------------------------------------------------------

head -c 16m /dev/zero >full.db.history/filler 2>/dev/null
touch readonly/erofs eio/eio slow/slow pulled/eio
mv renamed.db.history renamed.aside
rm -r removed.db.history
broke=$(date +%s%3N)

check full_disk_is_in_the_log wait_for 30 says full.log 'history is not written: .*(free|full)'
check readonly_disk_is_in_the_log wait_for 30 says readonly.log 'history is not written: '
check broken_disk_is_in_the_log wait_for 30 says eio.log 'history is not written: .*error'
for name in full readonly eio; do
	check ${name}_disk_is_in_the_status status $name 'degraded.*|history is not written'
	check a_snapshot_is_asked_for_beside_a_${name}_disk "$RECORDER" snapshot --store $name.db
	check it_is_stored_beside_a_${name}_disk wait_for 30 grep -q 'incident .* stored' $name.log
done
"$RECORDER" snapshot --store pulled.db >/dev/null 2>&1
check a_pulled_disk_is_a_failure wait_for 60 status pulled 'Health +failing'
check the_log_says_why says pulled.log 'an incident cannot be stored: .*error'
for name in slow renamed removed; do
	check history_goes_on_in_spite_of_a_${name}_disk wait_for 30 is_later $name $broke
done
for file in renamed.aside/*.db; do
	check what_was_renamed_is_sound \
		test "$(sqlite3 "$file" 'PRAGMA integrity_check')" = ok
	check what_was_renamed_is_a_store "$RECORDER" list --store "$file"
done

# ---- and are well again --------------------------------------------------------------------------

rm -f full.db.history/filler readonly/erofs eio/eio slow/slow pulled/eio
well=$(date +%s%3N)
for name in $cases; do
	check history_is_written_again_after_a_${name}_disk wait_for 40 is_later $name "$well"
done
for name in full readonly eio; do
	check the_log_says_that_a_${name}_disk_is_well \
		says $name.log 'the history is written again'
done
check what_waited_for_a_pulled_disk_is_stored wait_for 60 grep -q 'incident .* stored' pulled.log
check nothing_fails_any_more wait_for 60 says pulled.log 'nothing fails any more'
for name in $cases; do
	"$RECORDER" stop --store $name.db >stop.out 2>&1
	wait "${pid[$name]}"
	"$RECORDER" history --store $name.db --json >$name.history
	for file in "$name.db.history"/*.db; do
		[ "$(sqlite3 "$file" 'PRAGMA integrity_check')" = ok ] || echo "$file"
	done >unsound
	check files_of_a_${name}_disk_are_sound test ! -s unsound
done
# What waited is there: one stretch from before the failure to the end, and no sample is missing.
for name in full readonly eio slow pulled; do
	check nothing_is_missing_after_a_${name}_disk jq -se \
		"length == 1 and .[0].lost == 0 and (.[0].from_utc | length > 0)" $name.history
	check no_second_is_missing_after_a_${name}_disk bash -c "
		'$RECORDER' export --store $name.db --last 10m --format jsonl -o - |
		jq -r 'select(.type == \"sample\") | .t_ms / 1000 | floor' | uniq |
		awk 'NR > 1 && \$1 > last + 2 { print last, \$1; bad = 1 } { last = \$1; n++ }
		     END { print n + 0, \"seconds\"; exit bad || n < 10 }'"
done
