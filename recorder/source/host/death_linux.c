#include "source/host/death.h"

#include "base/array.h"
#include "base/moment.h"
#include "base/os.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SMALL_MAX ((size_t)64 << 10)
#define END_BYTES ((size_t)384 << 12)        /* of a large file: the newest part counts */
#define KMSG_RECORDS_MAX 100000u
#define SLACK_NS (30 * NS_PER_SEC)           /* data is up to a sync older than the end */
#define EXIT_NS (600 * NS_PER_SEC)

/* A small file below a root. */
static bool load(const char *root, const char *path, struct buf *out)
{
	struct buf name = {0};
	bool ok;

	buf_printf(&name, "%s%s", root, path);
	ok = !name.failed && !os_load(name.data, SMALL_MAX, out, NULL);
	buf_free(&name);
	return ok;
}

static bool load_line(const char *root, const char *path, char *out, size_t n)
{
	struct buf text = {0};
	bool ok = load(root, path, &text);

	snprintf(out, n, "%s", ok ? buf_text(&text) : "");
	out[strcspn(out, "\n")] = '\0';
	buf_free(&text);
	return ok;
}

/* The end of a large file. *mtime_ns: 0 = it cannot be read. */
static void load_end(const char *root, const char *path, struct buf *out, uint64_t *mtime_ns)
{
	struct os_file_info info = {0};
	struct os_file *file = NULL;
	struct buf name = {0};
	size_t got = 0;
	char *to;

	*mtime_ns = 0;
	buf_printf(&name, "%s%s", root, path);
	if (!name.failed && !os_open(name.data, OS_READ_PLAIN, &file, NULL) &&
	    !os_file_info(file, &info, NULL) && (to = buf_reserve(out, END_BYTES)) != NULL) {
		/* wtmp is records of 384 bytes: END_BYTES are a multiple of that. */
		uint64_t at = info.size_bytes > END_BYTES ? info.size_bytes - END_BYTES : 0;

		if (!os_pread(file, to, END_BYTES, at, &got, NULL)) {
			buf_advance(out, got);
			*mtime_ns = info.mtime_ns;
		}
	}
	os_close(file);
	buf_free(&name);
}

static void boot_id_of(const char *root, char out[DEATH_BOOT_BYTES])
{
	load_line(root, "/proc/sys/kernel/random/boot_id", out, DEATH_BOOT_BYTES);
}

void death_boot_id(char out[DEATH_BOOT_BYTES])
{
	boot_id_of("", out);
}

static bool group_kills(const char *root, const char *group, uint64_t *kills)
{
	struct buf path = {0}, text = {0};
	bool ok;

	buf_printf(&path, "/sys/fs/cgroup%s/memory.events", group);
	ok = !path.failed && load(root, path.data, &text) &&
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
	if (!load_line("", "/proc/self/cgroup", line, sizeof(line)) ||
	    strncmp(line, "0::/", 4) != 0 || strlen(line) > DEATH_KILLS_BYTES - 30 ||
	    !group_kills("", line + 3, &kills))
		return;
	snprintf(out, DEATH_KILLS_BYTES, "%.*s %" PRIu64, (int)(DEATH_KILLS_BYTES - 30), line + 3,
		 kills);
}

/* Whether OOM kills were counted in its group since it began. */
static bool group_killed(const struct death *d)
{
	char path[DEATH_KILLS_BYTES];
	uint64_t then, now;

	return death_parse_kills(d->kills, path, &then) && group_kills(d->root, path, &now) &&
	       now > then;
}

/* ---- the kernel's log ------------------------------------------------------------------------ */

/* Of this start of the machine. *readable: it is open to us. */
static enum death_word word_now(const struct death *d, bool *readable)
{
	enum death_word word = DEATH_NO_WORD;
	char record[8192];
	struct buf path = {0};
	uint64_t time_ns;
	uint32_t i;
	int fd;

	buf_printf(&path, "%s/dev/kmsg", d->root);
	fd = path.failed ? -1 : open(path.data, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	buf_free(&path);
	*readable = fd >= 0;
	for (i = 0; fd >= 0 && i < KMSG_RECORDS_MAX && word == DEATH_NO_WORD; i++) {
		ssize_t n = read(fd, record, sizeof(record));

		if (n <= 0)
			break;
		word = death_parse_kmsg(record, (size_t)n, d->pid, &time_ns);
		if (word == DEATH_PANIC || (word != DEATH_NO_WORD &&
					    time_ns + SLACK_NS < d->clock_ns))
			word = DEATH_NO_WORD;        /* of an earlier process with this pid */
	}
	if (fd >= 0)
		close(fd);
	return word;
}

/* As rsyslog keeps it, also from the start before: lines with a time of the wall clock. */
static enum death_word word_kept(const struct death *d, const char **place)
{
	static const char *const places[] = {"/var/log/kern.log", "/var/log/messages"};
	enum death_word word = DEATH_NO_WORD;
	uint64_t mtime_ns, ns, unused;
	size_t i;

	for (i = 0; i < COUNT_OF(places) && word == DEATH_NO_WORD; i++) {
		struct buf text = {0};
		char *line, *end;

		load_end(d->root, places[i], &text, &mtime_ns);
		buf_text(&text);
		for (line = mtime_ns ? text.data : NULL; line && word == DEATH_NO_WORD;
		     line = end ? end + 1 : NULL) {
			end = strchr(line, '\n');
			if (end)
				*end = '\0';
			if (moment_find(line, mtime_ns, &ns) && ns + SLACK_NS > d->wall_ns)
				word = death_parse_kmsg(line, strlen(line), d->pid, &unused);
		}
		*place = places[i];
		buf_free(&text);
	}
	return word;
}

static const char *word_text(enum death_word word)
{
	return word == DEATH_OOM     ? "it was killed because memory ran out"
	       : word == DEATH_CRASH ? "it crashed"
				     : "the kernel panicked";
}

/* ---- systemd --------------------------------------------------------------------------------- */

/* What the unit's last command wrote, when it ended about when the data does. */
static bool put_exit(const struct death *d, struct buf *out)
{
	struct os_file_info info;
	struct buf path = {0}, text = {0};
	bool said;

	buf_printf(&path, "%s%s%s", d->root, d->store, DEATH_EXIT_SUFFIX);
	said = !path.failed && !os_path_info(path.data, &info, NULL) && info.uid == os_uid() &&
	       info.mtime_ns + SLACK_NS > d->wall_ns && info.mtime_ns < d->wall_ns + EXIT_NS &&
	       !os_load(path.data, SMALL_MAX, &text, NULL) &&
	       death_put_exit(buf_text(&text), out);
	buf_free(&path);
	buf_free(&text);
	return said;
}

static void put_same_boot(const struct death *d, struct buf *out)
{
	const char *place = "the kernel's log";
	bool readable;
	enum death_word word = word_now(d, &readable);

	if (word == DEATH_NO_WORD && !readable)
		word = word_kept(d, &place);
	if (word != DEATH_NO_WORD)
		buf_printf(out, "%s (%s says so)", word_text(word), place);
	else if (put_exit(d, out))
		return;
	else if (group_killed(d))
		buf_puts(out, "its control group has had an OOM kill since it began, probably "
			 "its own");
	else
		buf_printf(out, "why is unknown: the machine went on, and %s; kill -9 leaves no "
			   "trace", readable ? "the kernel's log names no OOM kill or crash of it"
					     : "the kernel's log cannot be read");
}

/* ---- the end of the machine ------------------------------------------------------------------ */

struct left {
	struct buf dir;
	uint64_t since_s;
	uint32_t depth;
	bool panicked;
	char why[DEATH_WHY_BYTES];
};

static void look_for_panic(struct left *l);

/* What the firmware kept, and what systemd-pstore(8) moved away from there, in folders. */
static int look_at_left(void *ctx, const char *name)
{
	struct left *l = ctx;
	size_t len = l->dir.len;
	struct os_file_info info;
	struct buf text = {0};

	buf_printf(&l->dir, "/%s", name);
	if (!l->dir.failed && !os_path_info(l->dir.data, &info, NULL)) {
		if (info.directory && l->depth < 2)
			look_for_panic(l);
		else if (strncmp(name, "dmesg", 5) == 0 && info.regular &&
			 info.mtime_ns / NS_PER_SEC + 60 >= l->since_s &&
			 !os_load(l->dir.data, SMALL_MAX, &text, NULL))
			l->panicked = death_parse_pstore(buf_text(&text), l->why);
	}
	buf_free(&text);
	l->dir.len = len;
	return l->panicked && l->why[0];
}

static void look_for_panic(struct left *l)
{
	struct buf dir = {0};

	l->depth++;
	buf_puts(&dir, buf_text(&l->dir));
	if (!dir.failed)
		os_list(dir.data, look_at_left, l, NULL);
	l->depth--;
	buf_free(&dir);
}

/* The kernel's last words, which a panic leaves where there is a place for them. */
static bool put_panic(const struct death *d, struct buf *out)
{
	static const char *const places[] = {"/sys/fs/pstore", "/var/lib/systemd/pstore"};
	struct left l = {.since_s = d->wall_ns / NS_PER_SEC};
	size_t i;

	for (i = 0; i < COUNT_OF(places) && !l.panicked; i++) {
		buf_reset(&l.dir);
		buf_printf(&l.dir, "%s%s", d->root, places[i]);
		look_for_panic(&l);
	}
	if (l.panicked)
		buf_printf(out, "the kernel panicked%s%s (its last words are in %s)",
			   l.why[0] ? ": " : "", l.why, places[i - 1]);
	buf_free(&l.dir);
	return l.panicked;
}

static void put_boots(const struct death *d, struct buf *out)
{
	struct death_boots boots = {0};
	struct buf bytes = {0};
	uint64_t mtime_ns;

	load_end(d->root, "/var/log/wtmp", &bytes, &mtime_ns);
	if (mtime_ns)
		death_parse_wtmp((const uint8_t *)bytes.data, bytes.len, d->wall_ns / NS_PER_SEC,
				 &boots);
	buf_free(&bytes);
	if (boots.booted && boots.shut_down)
		buf_puts(out, "it was shut down or rebooted in order (wtmp says so)");
	else if (boots.booted)
		buf_puts(out, "no shutdown is noted in wtmp before: a power cut, a reset or a "
			 "panic; which is unknown");
	else
		buf_puts(out, "why is unknown, as wtmp does not have it");
}

static void put_other_boot(const struct death *d, struct buf *out)
{
	size_t begin = out->len;
	enum death_word word;
	const char *place;

	buf_puts(out, "the machine was started anew: ");
	if (put_panic(d, out))
		return;
	word = word_kept(d, &place);
	if (word == DEATH_PANIC) {
		buf_printf(out, "%s (%s says so)", word_text(word), place);
	} else if (word != DEATH_NO_WORD) {
		out->len = begin;
		buf_printf(out, "%s (%s says so); the machine was started anew since",
			   word_text(word), place);
	} else {
		put_boots(d, out);
	}
}

void death_put_cause(const struct death *d, struct buf *out)
{
	char boot_id[DEATH_BOOT_BYTES];

	boot_id_of(d->root, boot_id);
	if (!d->boot_id[0] || !boot_id[0])
		buf_puts(out, "why is unknown");
	else if (strcmp(d->boot_id, boot_id) == 0)
		put_same_boot(d, out);
	else
		put_other_boot(d, out);
}
