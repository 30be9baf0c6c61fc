#include "source/host/death.h"

#include "base/os.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SMALL_MAX ((size_t)64 << 10)
#define WTMP_MAX ((size_t)16 << 20)          /* the newest part counts */
#define KMSG_RECORDS_MAX 100000u
#define SLACK_NS (30 * NS_PER_SEC)           /* data is up to a sync older than the end */

static bool load_line(const char *path, char *out, size_t n)
{
	struct buf text = {0};
	bool ok = !os_load(path, SMALL_MAX, &text, NULL);

	snprintf(out, n, "%s", ok ? buf_text(&text) : "");
	out[strcspn(out, "\n")] = '\0';
	buf_free(&text);
	return ok;
}

void death_boot_id(char out[DEATH_BOOT_BYTES])
{
	load_line("/proc/sys/kernel/random/boot_id", out, DEATH_BOOT_BYTES);
}

static bool group_kills(const char *group, uint64_t *kills)
{
	struct buf path = {0}, text = {0};
	bool ok;

	buf_printf(&path, "/sys/fs/cgroup%s/memory.events", group);
	ok = !path.failed && !os_load(path.data, SMALL_MAX, &text, NULL) &&
	     death_parse_events(buf_text(&text), kills);
	buf_free(&path);
	buf_free(&text);
	return ok;
}

void death_kills(char out[DEATH_KILLS_BYTES])
{
	char line[DEATH_KILLS_BYTES];
	uint64_t kills;

	*out = '\0';
	/* cgroup v2: one line, "0::/path". */
	if (!load_line("/proc/self/cgroup", line, sizeof(line)) || strncmp(line, "0::/", 4) != 0 ||
	    strlen(line) > DEATH_KILLS_BYTES - 30 || !group_kills(line + 3, &kills))
		return;
	snprintf(out, DEATH_KILLS_BYTES, "%.*s %" PRIu64, (int)(DEATH_KILLS_BYTES - 30), line + 3,
		 kills);
}

/* Whether OOM kills were counted in its group since it began. */
static bool group_killed(const struct death *d)
{
	char path[DEATH_KILLS_BYTES];
	uint64_t then, now;

	return death_parse_kills(d->kills, path, &then) && group_kills(path, &now) && now > then;
}

/* *readable: the kernel's log is open to us. */
static enum death_word kernel_word(const struct death *d, bool *readable)
{
	int fd = open("/dev/kmsg", O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	enum death_word word = DEATH_NO_WORD;
	char record[8192];
	uint64_t time_ns;
	uint32_t i;

	*readable = fd >= 0;
	for (i = 0; fd >= 0 && i < KMSG_RECORDS_MAX && word == DEATH_NO_WORD; i++) {
		ssize_t n = read(fd, record, sizeof(record));

		if (n <= 0)
			break;
		word = death_parse_kmsg(record, (size_t)n, d->pid, &time_ns);
		if (word != DEATH_NO_WORD && time_ns + SLACK_NS < d->clock_ns)
			word = DEATH_NO_WORD;        /* of an earlier process with this pid */
	}
	if (fd >= 0)
		close(fd);
	return word;
}

static void put_same_boot(const struct death *d, struct buf *out)
{
	bool readable;

	switch (kernel_word(d, &readable)) {
	case DEATH_OOM:
		buf_puts(out, "it was killed because memory ran out (the kernel's log says so)");
		return;
	case DEATH_CRASH:
		buf_puts(out, "it crashed (the kernel's log says so)");
		return;
	default:
		break;
	}
	if (group_killed(d))
		buf_puts(out, "its control group has had an OOM kill since it began, probably "
			 "its own");
	else
		buf_printf(out, "why is unknown: the machine went on, and %s; kill -9 leaves no "
			   "trace", readable ? "the kernel's log names no OOM kill or crash of it"
					     : "the kernel's log cannot be read");
}

/* The kernel's last words, which a panic leaves where there is a place for them. */
static bool left_words(uint64_t since_s)
{
	static const char place[] = "/sys/fs/pstore";
	const struct dirent *entry;
	DIR *dir = opendir(place);
	bool found = false;
	struct stat st;

	while (dir && !found && (entry = readdir(dir)) != NULL)
		found = strncmp(entry->d_name, "dmesg-", 6) == 0 &&
			fstatat(dirfd(dir), entry->d_name, &st, 0) == 0 &&
			(uint64_t)st.st_mtime + 60 >= since_s;
	if (dir)
		closedir(dir);
	return found;
}

static void look_at_boots(uint64_t last_s, struct death_boots *out, bool *readable)
{
	struct buf bytes = {0};

	memset(out, 0, sizeof(*out));
	*readable = !os_load("/var/log/wtmp", WTMP_MAX, &bytes, NULL) && bytes.len;
	if (*readable)
		death_parse_wtmp((const uint8_t *)bytes.data, bytes.len, last_s, out);
	buf_free(&bytes);
}

static void put_other_boot(const struct death *d, struct buf *out)
{
	uint64_t last_s = d->wall_ns / NS_PER_SEC;
	struct death_boots boots;
	bool readable;

	buf_puts(out, "the machine was started anew: ");
	look_at_boots(last_s, &boots, &readable);
	if (left_words(last_s))
		buf_puts(out, "the kernel panicked (its last words are in /sys/fs/pstore)");
	else if (readable && boots.booted && boots.shut_down)
		buf_puts(out, "it was shut down or rebooted in order (wtmp says so)");
	else if (readable && boots.booted)
		buf_puts(out, "no shutdown is noted in wtmp before: a power cut, a reset or a "
			 "panic; which is unknown");
	else
		buf_puts(out, "why is unknown, as wtmp does not have it");
}

void death_put_cause(const struct death *d, struct buf *out)
{
	char boot_id[DEATH_BOOT_BYTES];

	death_boot_id(boot_id);
	if (!d->boot_id[0] || !boot_id[0])
		buf_puts(out, "why is unknown");
	else if (strcmp(d->boot_id, boot_id) == 0)
		put_same_boot(d, out);
	else
		put_other_boot(d, out);
}
