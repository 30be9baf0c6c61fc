/*
 * A session with one .NET program: the connection to its diagnostic socket, from the request to the
 * end of its stream. It never blocks; every step reads a bounded portion.
 *
 * The peer is trusted only if the kernel says that it is the expected process. A program that does
 * not answer, or sends a malformed stream, is disconnected and asked again after growing delays.
 * One thread.
 *
 * Programs of .NET Core 3 are told by their refusal to say who they are. These die when they are
 * hung up on between a request and its stream (seen with 3.1.27: EventPipeFile's serializer is
 * NULL), and may hang for ever when a session ends while one of their threads writes an event of it
 * (dotnet/runtime issue 51579; fixed in .NET 5). So they are not asked for code, whose sessions are
 * full of events when they end, and only a rule has them asked for events.
 */
#pragma once

#include "base/log.h"
#include "model/needs.h"
#include "model/process.h"
#include "source/dotnet/find_linux.h"
#include "source/dotnet/ipc.h"
#include "source/dotnet/event_queue.h"
#include "source/dotnet/stacks.h"
#include "source/dotnet/streams.h"

#include <poll.h>

#define DOTNET_PROVIDERS_MAX (NEEDS_MAX_PROVIDERS + 1)

/* What a session is for. */
enum dotnet_role {
	DOTNET_EVENTS,                       /* they go into the queue */
	DOTNET_CODE,                         /* names of code, as it is loaded */
	DOTNET_RUNDOWN,                      /* of code that was loaded before; ends at once */
};

/* What to request from every program. Constant while sessions exist. */
struct dotnet_request {
	enum dotnet_role role;
	struct dotnet_provider providers[DOTNET_PROVIDERS_MAX];
	char names[DOTNET_PROVIDERS_MAX][PROVIDER_NAME_MAX];
	uint32_t n;
	bool perf_map;                       /* also its map of compiled code, once */
	bool comes_at_once;                  /* megabytes while it stands still */
	uint64_t settle_ns;                  /* wait this long after a program was found */
	struct dotnet_streams *streams;      /* who reads what they send */
	struct pool *pool;                   /* whose jobs connect */
};

struct dotnet_session;

/*
 * Takes the socket's fd, and the reference to the program; NULL: events have no stacks. request and
 * log: borrowed for the session's life.
 */
struct dotnet_session *dotnet_session_new(const struct dotnet_socket *socket,
					  const struct dotnet_request *request,
					  struct dotnet_program *program,
					  struct log *log); /* NULL = no memory */
void dotnet_session_free(struct dotnet_session *s, struct processes *processes);
const struct dotnet_socket *dotnet_session_socket(const struct dotnet_session *s);

/* What poll() should wait for; fd -1: nothing. */
void dotnet_session_polled(const struct dotnet_session *s, struct pollfd *out);
/* When to call dotnet_session_step() even if nothing is ready; may have passed already. */
uint64_t dotnet_session_due_ns(const struct dotnet_session *s);
/* Do whatever is due. ready: the result of poll(). Events go into the queue. */
void dotnet_session_step(struct dotnet_session *s, bool ready, uint64_t now_ns,
			 struct dotnet_queue *queue);
/* Ask the program to end its session; dotnet_session_is_over() tells when it has. */
void dotnet_session_stop(struct dotnet_session *s);
/* Whether freeing the session now, before the program has answered, may harm it. */
bool dotnet_session_waits(const struct dotnet_session *s);

/* Its program, borrowed. */
struct dotnet_program *dotnet_session_program(const struct dotnet_session *s);
enum dotnet_role dotnet_session_role(const struct dotnet_session *s);
/* Since when it receives events; 0 = not yet, or no more. */
uint64_t dotnet_session_streams_ns(const struct dotnet_session *s);
bool dotnet_session_has_streamed(const struct dotnet_session *s);
/* Whether it is of .NET Core 3; false until it has said who it is. */
bool dotnet_session_is_old(const struct dotnet_session *s);
/* The program has ended or its session was stopped, and none of its events is queued. */
bool dotnet_session_is_over(const struct dotnet_session *s);
/* Events lost since the last call, in the program and by a full queue. */
uint64_t dotnet_session_lost(struct dotnet_session *s);
uint32_t dotnet_session_pointer_bytes(const struct dotnet_session *s);
/* Its process, with a reference; NULL when the process table is full. */
struct process *dotnet_session_process(struct dotnet_session *s, struct processes *processes);
