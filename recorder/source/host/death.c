/*
 * What other programs wrote about ends: a control group's counters, the kernel's log, wtmp.
 *
 * A record of wtmp, utmp(5) of glibc on 64-bit systems, 384 bytes:
 *
 *	 0  int16  type: 1 a run level, 2 a boot      44  user: "shutdown", "reboot", "runlevel"
 *	 8  char[32] line: "~"                       340  int32 seconds since 1970
 */
#include "source/host/death.h"

#include "base/array.h"
#include "base/bytes.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PANIC "Kernel panic - not syncing: "
#define WTMP_BYTES 384u
#define WTMP_USER 44u
#define WTMP_TIME 340u
#define RUN_LEVEL 1
#define BOOT 2

bool death_parse_events(const char *text, uint64_t *kills)
{
	static const char key[] = "oom_kill ";
	const char *at = text;

	while (at && strncmp(at, key, sizeof(key) - 1) != 0) {
		at = strchr(at, '\n');
		at = at ? at + 1 : NULL;
	}
	if (!at || strspn(at + sizeof(key) - 1, "0123456789") == 0)
		return false;
	*kills = strtoull(at + sizeof(key) - 1, NULL, 10);
	return true;
}

bool death_parse_kills(const char *text, char path[DEATH_KILLS_BYTES], uint64_t *kills)
{
	const char *blank = strrchr(text, ' ');

	if (*text != '/' || !blank || strlen(text) >= DEATH_KILLS_BYTES ||
	    blank[1 + strspn(blank + 1, "0123456789")] || !blank[1] || strstr(text, "/../"))
		return false;
	snprintf(path, DEATH_KILLS_BYTES, "%.*s", (int)(blank - text), text);
	*kills = strtoull(blank + 1, NULL, 10);
	return true;
}

static bool has(const char *text, size_t n, const char *word)
{
	size_t len = strlen(word), i;

	for (i = 0; len <= n && i <= n - len; i++) {
		if (memcmp(text + i, word, len) == 0)
			return true;
	}
	return false;
}

/* The third number of "6,339,5140900,-;", in microseconds. */
static uint64_t record_time_ns(const char *record, size_t n)
{
	uint64_t v = 0;
	unsigned commas = 0;
	size_t i;

	for (i = 0; i < n && commas < 3 && record[i] != ';'; i++) {
		if (record[i] == ',')
			commas++;
		else if (commas == 2 && record[i] >= '0' && record[i] <= '9' && v < 1ull << 53)
			v = v * 10 + (uint64_t)(record[i] - '0');
	}
	return v * 1000;
}

enum death_word death_parse_kmsg(const char *record, size_t n, uint32_t pid, uint64_t *time_ns)
{
	char killed[40], crashed[40], trapped[40];

	*time_ns = record_time_ns(record, n);
	snprintf(killed, sizeof(killed), "Killed process %u (", (unsigned)pid);
	snprintf(crashed, sizeof(crashed), "[%u]: segfault at", (unsigned)pid);
	snprintf(trapped, sizeof(trapped), "[%u] general protection", (unsigned)pid);
	if (has(record, n, killed))
		return DEATH_OOM;
	if (has(record, n, PANIC))
		return DEATH_PANIC;
	return has(record, n, crashed) || has(record, n, trapped) ? DEATH_CRASH : DEATH_NO_WORD;
}

static bool user_is(const uint8_t *record, const char *user)
{
	return strncmp((const char *)record + WTMP_USER, user, 32) == 0;
}

/* In order of time: the first boot after last_s decides, and what was said before it. */
void death_parse_wtmp(const uint8_t *bytes, size_t n, uint64_t last_s, struct death_boots *out)
{
	size_t at;

	memset(out, 0, sizeof(*out));
	for (at = 0; n >= WTMP_BYTES && at <= n - WTMP_BYTES; at += WTMP_BYTES) {
		const uint8_t *r = bytes + at;
		uint64_t time_s = le32(r + WTMP_TIME);
		unsigned type = le16(r);

		if (time_s + 60 < last_s)
			continue;
		if (type == RUN_LEVEL && user_is(r, "shutdown")) {
			out->shut_down = true;
		} else if (type == BOOT && time_s >= last_s) {
			out->booted = true;
			out->boot_s = time_s;
			return;
		}
	}
}

bool death_parse_pstore(const char *text, char why[DEATH_WHY_BYTES])
{
	const char *at = strstr(text, PANIC);
	size_t i;

	*why = '\0';
	if (!at)
		return strncmp(text, "Panic#", 6) == 0;
	at += strlen(PANIC);
	for (i = 0; i + 1 < DEATH_WHY_BYTES && at[i] >= ' ' && at[i] <= '~'; i++)
		why[i] = at[i];
	why[i] = '\0';
	return true;
}

bool death_put_exit(const char *text, struct buf *out)
{
	static const char *const results[][2] = {
		{"oom-kill", "it was killed because memory ran out"},
		{"watchdog", "systemd killed it, as it had not answered for WatchdogSec="},
		{"timeout", "systemd killed it, as it did not stop within TimeoutStopSec="},
	};
	char result[24], code[24], status[24];
	size_t i;

	if (sscanf(text, "%23[a-z-] %23[a-z] %23[A-Z0-9+]", result, code, status) != 3)
		return false;
	for (i = 0; i < COUNT_OF(results) && strcmp(results[i][0], result) != 0; i++)
		;
	if (i < COUNT_OF(results))
		buf_puts(out, results[i][1]);
	else if (strcmp(code, "dumped") == 0 || strcmp(result, "core-dump") == 0 ||
		 strcmp(status, "SEGV") == 0 || strcmp(status, "ABRT") == 0 ||
		 strcmp(status, "BUS") == 0)
		buf_printf(out, "it crashed with SIG%s", status);
	else if (strcmp(code, "killed") == 0)
		buf_printf(out, "somebody killed it with SIG%s", status);
	else if (strcmp(code, "exited") == 0 && strcmp(status, "0") != 0)
		buf_printf(out, "it exited with status %s", status);
	else
		return false;
	buf_puts(out, " (systemd says so)");
	return true;
}
