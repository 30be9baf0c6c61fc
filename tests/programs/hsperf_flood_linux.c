/*
 * Programs that pretend to be Java and keep whoever reads their performance data busy:
 *
 *	hsperf_flood_linux N SECONDS
 *
 * N processes with a file each in /tmp/hsperfdata_UID, whose counters of collections change every
 * millisecond, and 2,000 more names there. Source of the layout: source/jvm/hsperf.h.
 */
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { N_MAX = 512, NAME_AT = 20, DATA_AT = 72, ENTRY_BYTES = 80, HEAD_BYTES = 32, NAMES = 7,
       JUNK = 2000 };

static const char *const names[NAMES] = {
	"sun.os.hrt.frequency", "sun.rt.safepoints", "sun.rt.safepointTime",
	"sun.gc.collector.0.invocations", "sun.gc.collector.0.time",
	"sun.gc.collector.0.lastEntryTime", "sun.gc.collector.0.lastExitTime",
};

static char dir[64];

static void set(FILE *f, unsigned which, uint64_t value)
{
	fseek(f, (long)(HEAD_BYTES + which * ENTRY_BYTES + DATA_AT), SEEK_SET);
	fwrite(&value, 8, 1, f);
}

static void play(void)
{
	unsigned char b[HEAD_BYTES + NAMES * ENTRY_BYTES] = {
		0xca, 0xfe, 0xc0, 0xc0, 1, 2, 0, 1, [24] = HEAD_BYTES, [28] = NAMES};
	char path[100];
	uint64_t n;
	unsigned i;
	FILE *f;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(path, sizeof(path), "%s/%d", dir, (int)getpid());
	f = fopen(path, "wb");
	if (!f)
		_exit(1);
	for (i = 0; i < NAMES; i++) {
		unsigned char *entry = b + HEAD_BYTES + i * ENTRY_BYTES;

		entry[0] = ENTRY_BYTES;
		entry[4] = NAME_AT;
		entry[12] = 'J';
		entry[16] = DATA_AT;
		strcpy((char *)entry + NAME_AT, names[i]);
	}
	fwrite(b, sizeof(b), 1, f);
	set(f, 0, 1000000000);
	for (n = 1;; n++) {
		for (i = 1; i < NAMES; i++)
			set(f, i, i < 4 ? n : n * 1000000 + i * 1000);
		fflush(f);
		nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
	}
}

/* Only names: links to nothing. */
static void fill(int add)
{
	char path[100];
	unsigned i;

	for (i = 0; i < JUNK; i++) {
		snprintf(path, sizeof(path), "%s/%u", dir, 4000000 + i);
		if (!add || symlink("/nowhere", path) != 0)
			unlink(path);
	}
}

/* It ends the sleep, and what is in /tmp is removed. */
static void on_end(int number)
{
	(void)number;
}

int main(int argc, char **argv)
{
	static pid_t children[N_MAX];
	unsigned n = argc == 3 ? (unsigned)strtoul(argv[1], NULL, 10) : 0, i;
	char path[100];

	if (!n || n > N_MAX)
		return 2;
	snprintf(dir, sizeof(dir), "/tmp/hsperfdata_%u", (unsigned)getuid());
	signal(SIGTERM, on_end);
	mkdir(dir, 0755);
	fill(1);
	for (i = 0; i < n; i++) {
		children[i] = fork();
		if (children[i] == 0)
			play();
	}
	sleep((unsigned)strtoul(argv[2], NULL, 10));
	for (i = 0; i < n; i++) {
		kill(children[i], SIGKILL);
		waitpid(children[i], NULL, 0);
		snprintf(path, sizeof(path), "%s/%d", dir, (int)children[i]);
		unlink(path);
	}
	fill(0);
	rmdir(dir);
	return 0;
}
