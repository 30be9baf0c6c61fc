/*
 * Asking a JVM for the map of its compiled code (JDK 17 and later), by its attach mechanism, as
 * jcmd does: /tmp/.java_pidN is its socket; where there is none, a file /tmp/.attach_pidN and
 * SIGQUIT make it listen (only if it catches that signal). Then
 *
 *	"1" NUL "jcmd" NUL "Compiler.perfmap" NUL NUL NUL -> "0" LF, or an error's number and a text
 *
 * and /tmp/perf-PID.map is written. Never blocks: look() does what can be done now. One thread.
 *
 * Source: hotspot/os/linux/attachListener_linux.cpp (posix since 19) of OpenJDK.
 */
#pragma once

#include "base/log.h"

#include <stdbool.h>
#include <stdint.h>

struct jvm_attach {
	enum { ATTACH_REST, ATTACH_CALLED, ATTACH_ASKED, ATTACH_NEVER } state;
	int fd;                              /* valid in ATTACH_ASKED */
	uint64_t next_ns, deadline_ns;       /* next_ns: when to ask again, the first time at 0 */
	char answer[200];
	uint32_t nanswer, asked;
};

/* Starts empty. Asks every second at first, then every 30 s. */
void jvm_attach_look(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns,
		     struct log *log);
void jvm_attach_close(struct jvm_attach *a);
