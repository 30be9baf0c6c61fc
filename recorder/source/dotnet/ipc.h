/*
 * The diagnostics protocol of .NET programs, on the socket TMPDIR/dotnet-diagnostic-PID-KEY-socket.
 *
 *	 0  "DOTNET_IPC_V1" NUL, u16 bytes of the whole message, u8 set, u8 command, u16 0, payload
 *	    a text: u32 UTF-16 units with the NUL, units; none: u32 0
 *	collect (2, 3): u32 MB, u32 1 = nettrace, u8 rundown, u32 n,
 *	    {u64 keywords, u32 level, name, arguments}
 *	stop (2, 1): u64 session; perf map (4, 5): u32 kind (1 all, 2 jitdump, 3 map)
 *	who (4, 0): the answer has the pid and the command line; .NET Core 3 does not know it
 *	the answer: set 255, command 0 and the result (a session), or command 255 and an error
 *	number; after the answer to collect, the stream (nettrace.h) follows on the same connection
 *
 * Portable and pure. Source: github.com/dotnet/diagnostics
 * documentation/design-docs/ipc-protocol.md; checked with .NET 8 programs.
 */
#pragma once

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>

#define DOTNET_ANSWER_MAX_BYTES 1024u

struct dotnet_provider {
	const char *name, *arguments;        /* arguments: NULL = none */
	uint64_t keywords;
	uint32_t level;
};

/*
 * Append a request; check buf_failed once. Names are ASCII. rundown: when the session is stopped,
 * the program tells of all its code.
 */
void dotnet_ask_collect(struct buf *out, const struct dotnet_provider *providers, uint32_t n,
			uint32_t mbytes, bool rundown);
void dotnet_ask_stop(struct buf *out, uint64_t session);
void dotnet_ask_perf_map(struct buf *out);
void dotnet_ask_who(struct buf *out);        /* harmless, and answered by all */

struct dotnet_answer {
	bool refused;
	uint64_t value;                      /* the session, or the error number; 0 = none */
};

/* Returns the length of the answer, of which only the head must be there, 0, or ERR_FORMAT. */
int dotnet_answer_head(const void *bytes, size_t n, bool *refused, struct err *err);
/* Returns the length of the answer, 0 while it is incomplete, or ERR_FORMAT. */
int dotnet_answer(const void *bytes, size_t n, struct dotnet_answer *out, struct err *err);

/*
 * Parse "dotnet-diagnostic-26363-2474910-socket": the pid in its own namespace, and the start of
 * the process in clock ticks.
 */
bool dotnet_socket_name(const char *name, uint32_t *pid, uint64_t *key);
