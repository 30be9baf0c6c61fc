/*
 * One .NET program: the connection to its diagnostic socket, from asking to the end of its stream. It never
 * blocks; every step reads a bounded portion. The peer is believed only if the kernel says that it is the
 * process it should be, and is given up when it does not answer, or sends what is no stream; then it is
 * asked again, later and later. One thread.
 */
#ifndef SOURCE_DOTNET_SESSION_LINUX_H
#define SOURCE_DOTNET_SESSION_LINUX_H

#include "base/log.h"
#include "model/needs.h"
#include "model/process.h"
#include "source/dotnet/find_linux.h"
#include "source/dotnet/ipc.h"
#include "source/dotnet/event_queue.h"

#include <poll.h>

#define DOTNET_PROVIDERS_MAX (NEEDS_MAX_PROVIDERS + 1)

/* What every program is asked for. Stays as it is while there are sessions. */
struct dotnet_ask {
	struct dotnet_provider providers[DOTNET_PROVIDERS_MAX];
	char names[DOTNET_PROVIDERS_MAX][PROVIDER_NAME_MAX];
	uint32_t n;
	bool perf_map;                       /* also for its map of compiled code, once */
	uint64_t settle_ns;                  /* not before it has been known for so long */
};

struct dotnet_session;

/* Takes the socket's fd; its path stands for as long. */
struct dotnet_session *dotnet_session_new(const struct dotnet_socket *socket, const struct dotnet_ask *ask,
					  struct log *log);       /* NULL = no memory */
void dotnet_session_free(struct dotnet_session *s, struct processes *processes);
uint32_t dotnet_session_pid(const struct dotnet_session *s);
bool dotnet_session_is(const struct dotnet_session *s, const struct dotnet_socket *socket);

/* What to wait for; fd -1: nothing. */
void dotnet_session_polled(const struct dotnet_session *s, struct pollfd *out);
/* When dotnet_session_step() has something to do though nothing is ready; may be over. */
uint64_t dotnet_session_due_ns(const struct dotnet_session *s);
/* Whatever is to be done now; `ready`: poll() said so. Events go into the queue. */
void dotnet_session_step(struct dotnet_session *s, bool ready, uint64_t now_ns, struct dotnet_queue *queue);
/* Ask it to end its session; it is over when it has, or when that is no use. */
void dotnet_session_stop(struct dotnet_session *s);

/* The program has ended, or was stopped, and no event of it is held. */
bool dotnet_session_is_over(const struct dotnet_session *s);
/* Events lost since the last call: by the program, and by a full queue. */
uint64_t dotnet_session_lost(struct dotnet_session *s);
uint32_t dotnet_session_pointer_bytes(const struct dotnet_session *s);
/* Whether the threads of its events have the numbers that we know them by. */
bool dotnet_session_knows_threads(const struct dotnet_session *s);
/* Its process, with a reference; NULL when there is no room for it. */
struct process *dotnet_session_process(struct dotnet_session *s, struct processes *processes);

#endif
