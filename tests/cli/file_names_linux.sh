#!/bin/bash
# Names of files below waits for disks: a program reads one cold file again and again and touches
# the pages of another that it maps and has closed; each wait has the path of its own file.
# time limit: 60
. "$TOP/tests/support/cli.sh"
need_perf
need_tracefs "$0"

cat >cold.c <<'EOF'
#define _GNU_SOURCE
#include <fcntl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static volatile char sink;

__attribute__((noinline)) void reads_cold(int fd)
{
	char page[4096];
	off_t at;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	for (at = 0; pread(fd, page, sizeof(page), at) > 0; at += 1 << 18)
		sink = page[0];
}

__attribute__((noinline)) void touches_cold(const char *file, size_t size)
{
	int fd = open(file, O_RDONLY);
	char *p = mmap(0, size, PROT_READ, MAP_SHARED, fd, 0);
	size_t at;

	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	close(fd);
	madvise(p, size, MADV_RANDOM);
	for (at = 0; at < size; at += 1 << 18)
		sink = p[at];
	munmap(p, size);
}

int main(int n, char **v)
{
	int fd = open(v[1], O_RDONLY);
	size_t size = (size_t)lseek(fd, 0, SEEK_END);
	time_t end = time(0) + 4;

	posix_fadvise(fd, 0, 0, POSIX_FADV_RANDOM);
	while (n == 3 && time(0) < end) {
		reads_cold(fd);
		touches_cold(v[2], size);
		usleep(50000);
	}
	return 0;
}
EOF
gcc -O1 -o cold cold.c
mkdir "a dir"
head -c 8000000 /dev/urandom >"a dir/read.bin"
head -c 8000000 /dev/urandom >mapped.bin
sync "a dir/read.bin" mapped.bin

timeout 50 "$RECORDER" collect --store files.db --thread-time --record-process cold \
	--providers filemap:mm_filemap_add_to_page_cache --delay-after-trigger-sec 2 \
	--stop-on-process cold 2>log & collect=$!
wait_for 15 grep -q recording log
sleep 0.5
./cold "a dir/read.bin" mapped.bin
wait $collect
check a_run_with_names_of_files_ends_well test $? -eq 0
"$RECORDER" export --store files.db --metric off-cpu -f --process cold >folded 2>err
if ! grep -qE '_cold;.*!(DISK_TIME|HARD_FAULT)' folded; then
	echo "skip the_file_of_a_wait_is_named: nothing waited for a disk here"
	exit 0
fi
# named FUNCTION: the files below its waits for disks, that of most time first. Waits below 2 ms
# count with the thread's next one, so a little of the time may be below the other function.
named()
{
	grep "$1;" folded |
		sed -nE 's/.*!(DISK_TIME|HARD_FAULT);event!(\/.*)_\[j\] ([0-9]+)$/\3 \2/p' |
		awk '{n = $1; sub(/^[0-9]+ /, ""); sum[$0] += n}
			END {for (file in sum) print sum[file], file}' | sort -nr | cut -d" " -f2-
}
check a_file_that_is_read_is_named test "$(named reads_cold | head -1)" = "$PWD/a dir/read.bin"
check a_file_that_is_mapped_is_named test "$(named touches_cold | head -1)" = "$PWD/mapped.bin"
check no_other_file_is_named eval '! named _cold | grep -vFx -e "$PWD/mapped.bin" \
	-e "$PWD/a dir/read.bin"'
"$RECORDER" events --store files.db --id 1 --name File/Name --json >names.json 2>err
check the_number_in_the_event_is_the_files_own eval \
	'test "$(jq -r "select(.fields.FileName == \"$PWD/mapped.bin\").fields.i_ino" names.json |
		sort -u)" = "$(stat -c %i mapped.bin)"'
