/*
 * How a recorder ended that did not say so, as far as the system tells: out of memory, a crash, the
 * end of the machine. What nothing tells is called unknown, never guessed. Any thread.
 */
#pragma once

#include "base/buf.h"

#include <stdbool.h>
#include <stdint.h>

#define DEATH_BOOT_BYTES 40u
#define DEATH_KILLS_BYTES 160u

/* This start of the machine; "" where the system has no such name. */
void death_boot_id(char out[DEATH_BOOT_BYTES]);
/*
 * This process's control group, and how many OOM kills it has had: "/system.slice/x.service 0"; ""
 * where there is none (cgroup v2 only).
 */
void death_kills(char out[DEATH_KILLS_BYTES]);

struct death {
	const char *root;                    /* of the files that are read; "" = of the machine */
	const char *store;                   /* its store: systemd's word lies beside it */
	uint32_t pid;
	const char *boot_id, *kills;         /* as these functions gave them when it began */
	uint64_t clock_ns, wall_ns;          /* of its last data, by both clocks */
};

/*
 * Append a clause: "killed because memory ran out (the kernel log says so)", "the machine was
 * started anew ...", or "why is unknown: ...".
 */
void death_put_cause(const struct death *d, struct buf *out);

/* ---- parsing, on any system: bytes of other programs ----------------------------------------- */

/* "oom_kill N" in a control group's memory.events; false: it is not there. */
bool death_parse_events(const char *text, uint64_t *kills);
/* "PATH N" of death_kills(); false: damaged. */
bool death_parse_kills(const char *text, char path[DEATH_KILLS_BYTES], uint64_t *kills);

enum death_word { DEATH_NO_WORD, DEATH_OOM, DEATH_CRASH, DEATH_PANIC };
/*
 * What a record of /dev/kmsg says about the end of a process. Source: mm/oom_kill.c,
 * arch/x86/mm/fault.c, and Documentation/ABI/testing/dev-kmsg: "6,339,5140900,-;text".
 *
 * *time_ns  of the record, by CLOCK_MONOTONIC
 */
enum death_word death_parse_kmsg(const char *record, size_t n, uint32_t pid, uint64_t *time_ns);

/*
 * What the kernel left in pstore, one file of it: "Panic#2 Part1", then lines of its log. false: it
 * was no panic (an oops, an order to restart). why: the panic's own words, or "".
 */
#define DEATH_WHY_BYTES 120u
bool death_parse_pstore(const char *text, char why[DEATH_WHY_BYTES]);

/*
 * What systemd told the unit's ExecStopPost=, "RESULT CODE STATUS" (systemd.exec(5),
 * $SERVICE_RESULT and the next two), in a file beside the store. Appends a clause; false: it says
 * nothing.
 */
#define DEATH_EXIT_SUFFIX ".exit"
bool death_put_exit(const char *text, struct buf *out);

struct death_boots {
	bool booted;                         /* after last_s */
	bool shut_down;                      /* in order, before that */
	uint64_t boot_s;                     /* since 1970 */
};
/* Records of /var/log/wtmp (utmp(5), 384 bytes each) from last_s on: how the machine fared. */
void death_parse_wtmp(const uint8_t *bytes, size_t n, uint64_t last_s, struct death_boots *out);
