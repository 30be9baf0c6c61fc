/*
 * Ask a JVM (JDK 17 and later) for the map of its compiled code by its attach mechanism, as jcmd
 * does. Its socket is /tmp/.java_pidN. If there is none, a file /tmp/.attach_pidN and SIGQUIT make
 * the JVM listen; SIGQUIT is sent only if the JVM catches it. Then
 *
 *	"1" NUL "jcmd" NUL "Compiler.perfmap" NUL NUL NUL -> "0" LF, or an error number and a text
 *
 * writes /tmp/perf-PID.map. Nothing here blocks: jvm_attach_look() does what can be done now. One
 * thread.
 *
 * Source: hotspot/os/linux/attachListener_linux.cpp (posix since 19) of OpenJDK.
 */
#pragma once

#include "base/log.h"
#include "base/pool.h"

#include <stdbool.h>
#include <stdint.h>

struct jvm_attach {
	enum { ATTACH_IDLE, ATTACH_SIGNALLED, ATTACH_WAITING, ATTACH_REFUSED } state;
	int fd;                              /* valid in ATTACH_WAITING */
	uint64_t next_ns, deadline_ns;       /* next_ns: when to ask next; starts at 0 */
	char answer[200];
	uint32_t nanswer, nrequests;
};

/*
 * The state starts empty. The first requests are a second apart, later ones 30 s. pool: touches
 * /tmp, which may hang.
 */
void jvm_attach_look(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns,
		     struct pool *pool, struct log *log);
void jvm_attach_close(struct jvm_attach *a);
