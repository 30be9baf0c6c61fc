/*
 * Give a JVM (JDK 17 and later) a command by its attach mechanism, as jcmd does: for the map of its
 * compiled code, again and again, or any other, once. Its socket is /tmp/.java_pidN. If there is
 * none, a file /tmp/.attach_pidN and SIGQUIT make the JVM listen; SIGQUIT is sent only if the JVM
 * catches it. Then
 *
 *	"1" NUL "jcmd" NUL "Compiler.perfmap" NUL NUL NUL -> "0" LF, or an error number and a text
 *
 * writes /tmp/perf-PID.map. Nothing here blocks: jvm_attach_look() does what can be done now. One
 * thread.
 *
 * Source: hotspot/os/linux/attachListener_linux.cpp (posix since 19) of OpenJDK.
 */
#pragma once

#include "base/buf.h"
#include "base/log.h"
#include "base/pool.h"

#include <stdbool.h>
#include <stdint.h>

struct jvm_attach {
	enum { ATTACH_IDLE, ATTACH_SIGNALLED, ATTACH_WAITING, ATTACH_REFUSED } state;
	int fd;                              /* valid in ATTACH_WAITING */
	uint64_t next_ns, deadline_ns;       /* next_ns: when to ask next; starts at 0 */
	const char *command;                 /* NULL = Compiler.perfmap */
	const char *refused;                 /* why; of ATTACH_REFUSED */
	char answer[400];                    /* "0" LF and what jcmd prints; the rest is cut off */
	uint32_t nanswer, nrequests;
};

/*
 * The state starts empty. The first requests are a second apart, later ones 30 s. pool: touches
 * /tmp, which may hang.
 */
void jvm_attach_look(struct jvm_attach *a, uint32_t pid, uint32_t uid, uint64_t now_ns,
		     struct pool *pool, struct log *log);
void jvm_attach_close(struct jvm_attach *a);

/*
 * Give it this command and wait for the answer, 8 s at most. Any thread that may wait.
 *
 * answer   without the number before it, at most some 400 bytes
 * returns  0, ERR_NOT_FOUND (no such process), or ERR_UNSUPPORTED with what it lacks
 */
int jvm_command(uint32_t pid, const char *command, struct buf *answer, struct err *err);
