#include "base/os.h"

#include "base/os_windows.h"
#include "base/table.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/*
 * One line each way over a named pipe in message mode.
 *
 * Pipes have names of their own, outside the file system: ours is made of the absolute path in
 * lower case, its hash and its last part for people. A message is the line and its LF, the same
 * bytes as on Linux; other messages are no call. Every caller gets a pipe instance of its own; the
 * next one is made before the last caller's line is read, so that there is always one to reach.
 */
#define CALLER_WAIT_NS NS_PER_SEC     /* a caller has this long to send its line */
#define NAME_TAIL_CHARS 100
#define NAME_CHARS 160
#define BUSY_WAIT_MS 50

/* One end of a pipe; the event belongs to whatever operation is under way, one at a time. */
struct pipe {
	HANDLE handle;                /* NULL: none */
	OVERLAPPED io;
};

struct os_ipc {
	struct pipe next;             /* waits for the next caller */
	bool waiting;                 /* ConnectNamedPipe() is under way, or over */
	wchar_t name[NAME_CHARS];
	char path[];
};

struct os_ipc_call {
	struct pipe pipe;
};

/* ---- names, ends and waits ------------------------------------------------------------------- */

static bool pipe_name(const char *path, wchar_t out[NAME_CHARS])
{
	static const char of_pipes[] = "\\\\.\\pipe\\";
	wchar_t *given;
	wchar_t *full = NULL;
	const wchar_t *tail, *at;
	DWORD n;

	if (strncmp(path, of_pipes, strlen(of_pipes)) == 0)  /* from os_ipc_each() */
		return MultiByteToWideChar(CP_UTF8, 0, path, -1, out, NAME_CHARS) > 0;
	given = wide_path(path);
	n = given ? GetFullPathNameW(given, 0, NULL, NULL) : 0;
	if (n)
		full = calloc(n, 2 * sizeof(*full));
	if (!full || !GetFullPathNameW(given, n, full, NULL) ||
	    !LCMapStringEx(LOCALE_NAME_INVARIANT, LCMAP_LOWERCASE, full, -1, full + n, (int)n, NULL,
			   NULL, 0)) {
		if (n && !full)
			SetLastError(ERROR_NOT_ENOUGH_MEMORY);
		wide_free(full);
		wide_free(given);
		return false;
	}
	tail = full + n;
	for (at = tail; *at; at++) {
		if (*at == L'\\')
			tail = at + 1;
	}
	_snwprintf(out, NAME_CHARS, L"\\\\.\\pipe\\recorder-%016I64x-%.*ls",
		   hash_bytes(full + n, wcslen(full + n) * sizeof(*full)), NAME_TAIL_CHARS, tail);
	out[NAME_CHARS - 1] = L'\0';
	wide_free(full);
	wide_free(given);
	return true;
}

static void pipe_close(struct pipe *pipe)
{
	DWORD error = GetLastError();

	if (pipe->handle)
		CloseHandle(pipe->handle);
	if (pipe->io.hEvent)
		CloseHandle(pipe->io.hEvent);
	memset(pipe, 0, sizeof(*pipe));
	SetLastError(error);
}

static DWORD left_ms(uint64_t until_ns)
{
	uint64_t now = os_now_ns();

	if (until_ns == UINT64_MAX)
		return INFINITE;
	return until_ns > now ? wait_ms(until_ns - now) : 0;
}

/* The end of a started operation; past the deadline it is cancelled, and still waited for. */
static bool finish(struct pipe *pipe, bool started, uint64_t until_ns, DWORD *n)
{
	if (!started && GetLastError() != ERROR_IO_PENDING)
		return false;
	if (WaitForSingleObject(pipe->io.hEvent, left_ms(until_ns)) != WAIT_OBJECT_0)
		CancelIoEx(pipe->handle, &pipe->io);
	return GetOverlappedResult(pipe->handle, &pipe->io, n, TRUE);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static bool send_line(struct pipe *pipe, const char *line, uint64_t until_ns)
{
	struct buf message = {0};
	DWORD n = 0;
	bool ok = false;

	buf_puts(&message, line);
	buf_putc(&message, '\n');
	if (!message.failed && message.len <= OS_IPC_MAX_BYTES + 1) {
		bool started = WriteFile(pipe->handle, message.data, (DWORD)message.len, NULL,
					 &pipe->io);

		ok = finish(pipe, started, until_ns, &n) && n == message.len;
	}
	buf_free(&message);
	return ok;
}

/* False when no message came in time, it is too long (ERROR_MORE_DATA), or it is no line. */
static bool read_line(struct pipe *pipe, uint64_t until_ns, struct buf *line)
{
	char *to = buf_reserve(line, OS_IPC_MAX_BYTES + 1);
	char *end;
	DWORD n = 0;
	bool started;

	if (!to)
		return false;
	started = ReadFile(pipe->handle, to, OS_IPC_MAX_BYTES + 1, NULL, &pipe->io);
	if (!finish(pipe, started, until_ns, &n))
		return false;
	end = memchr(to, '\n', n);
	if (!end)
		return false;
	buf_advance(line, (size_t)(end - to));
	return true;
}

/* ---- the listening side ---------------------------------------------------------------------- */

static bool add_instance(struct os_ipc *ipc, DWORD first)
{
	SECURITY_ATTRIBUTES owner_only;
	HANDLE handle;

	ipc->next.io.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
	if (!ipc->next.io.hEvent || !private_open(PRIVATE_PIPE, &owner_only))
		return false;
	handle = CreateNamedPipeW(ipc->name, PIPE_ACCESS_DUPLEX | FILE_FLAG_OVERLAPPED | first,
				  PIPE_TYPE_MESSAGE | PIPE_READMODE_MESSAGE | PIPE_WAIT |
					  PIPE_REJECT_REMOTE_CLIENTS,
				  PIPE_UNLIMITED_INSTANCES, OS_IPC_MAX_BYTES + 1,
				  OS_IPC_MAX_BYTES + 1, 0, &owner_only);
	private_free(&owner_only);
	if (handle == INVALID_HANDLE_VALUE)
		return false;
	ipc->next.handle = handle;
	return true;
}

/* Make the next instance and let it wait for a caller; false leaves none, and GetLastError(). */
static bool wait_next(struct os_ipc *ipc, DWORD first)
{
	if (add_instance(ipc, first)) {
		DWORD result = ConnectNamedPipe(ipc->next.handle, &ipc->next.io) ?
				       ERROR_PIPE_CONNECTED : GetLastError();

		switch (result) {
		case ERROR_IO_PENDING:
			ipc->waiting = true;
			return true;
		case ERROR_PIPE_CONNECTED:        /* came in between */
		case ERROR_NO_DATA:               /* came and went: the read will say so */
			SetEvent(ipc->next.io.hEvent);
			ipc->waiting = true;
			return true;
		}
	}
	pipe_close(&ipc->next);
	return false;
}

int os_ipc_listen(const char *path, struct os_ipc **out, struct err *err)
{
	size_t n = strlen(path) + 1;
	struct os_ipc *ipc = calloc(1, sizeof(*ipc) + n);

	if (!ipc)
		return err_memory(err, "while opening %s", path);
	memcpy(ipc->path, path, n);
	/* Refused when somebody else has made a pipe of this name, to be taken for us. */
	if (!pipe_name(path, ipc->name) || !wait_next(ipc, FILE_FLAG_FIRST_PIPE_INSTANCE)) {
		int error = os_error_last();

		free(ipc);
		return err_os_code(err, error, "cannot listen on %s", path);
	}
	*out = ipc;
	return 0;
}

void os_ipc_close(struct os_ipc *ipc)
{
	DWORD n;

	if (!ipc)
		return;
	if (ipc->waiting) {
		CancelIoEx(ipc->next.handle, &ipc->next.io);
		GetOverlappedResult(ipc->next.handle, &ipc->next.io, &n, TRUE);
	}
	pipe_close(&ipc->next);
	free(ipc);
}

int os_ipc_next(struct os_ipc *ipc, uint64_t timeout_ns, struct buf *line,
		struct os_ipc_call **call, struct err *err)
{
	struct pipe caller;
	bool sent;

	buf_reset(line);
	if (!ipc->waiting && !wait_next(ipc, 0))
		return err_os(err, "cannot answer on %s", ipc->path);
	if (WaitForSingleObject(ipc->next.io.hEvent, wait_ms(timeout_ns)) != WAIT_OBJECT_0)
		return err_set(err, ERR_NOT_FOUND, "nobody called");
	/* Nothing refers to the OVERLAPPED any more, so it may move. */
	caller = ipc->next;
	memset(&ipc->next, 0, sizeof(ipc->next));
	ipc->waiting = false;
	wait_next(ipc, 0);            /* when it fails the next call tries again and says why */

	sent = read_line(&caller, os_deadline_ns(CALLER_WAIT_NS), line);
	*call = sent ? malloc(sizeof(**call)) : NULL;
	if (!*call) {
		pipe_close(&caller);
		return err_set(err, ERR_NOT_FOUND, "a caller sent no line");
	}
	(*call)->pipe = caller;
	return 0;
}

void os_ipc_answer(struct os_ipc_call *call, const char *line)
{
	send_line(&call->pipe, line, os_deadline_ns(CALLER_WAIT_NS));
	/* Closed, not disconnected: that would take back an answer that is not read yet. */
	pipe_close(&call->pipe);
	free(call);
}

/* ---- the asking side ------------------------------------------------------------------------- */

/* The listener learns nothing but that we called: it may be somebody else's pipe. */
static bool pipe_connect(struct pipe *pipe, const wchar_t *name, uint64_t until_ns)
{
	DWORD mode = PIPE_READMODE_MESSAGE;
	HANDLE handle;

	for (;;) {
		handle = CreateFileW(name, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING,
				     FILE_FLAG_OVERLAPPED | SECURITY_SQOS_PRESENT |
					     SECURITY_ANONYMOUS,
				     NULL);
		if (handle != INVALID_HANDLE_VALUE)
			break;
		if (GetLastError() != ERROR_PIPE_BUSY || left_ms(until_ns) == 0)
			return false;
		WaitNamedPipeW(name, BUSY_WAIT_MS);
	}
	pipe->handle = handle;
	pipe->io.hEvent = CreateEventW(NULL, TRUE, FALSE, NULL);
	return pipe->io.hEvent && SetNamedPipeHandleState(handle, &mode, NULL, NULL);
}

int os_ipc_ask(const char *path, const char *line, uint64_t timeout_ns, struct buf *answer,
	       struct err *err)
{
	uint64_t until_ns = os_deadline_ns(timeout_ns);
	struct pipe pipe = {0};
	wchar_t name[NAME_CHARS];
	int rc = 0;

	if (!pipe_name(path, name) || !pipe_connect(&pipe, name, until_ns))
		rc = err_os(err, "cannot reach a recorder at %s", path);
	else if (!send_line(&pipe, line, until_ns) || !read_line(&pipe, until_ns, answer))
		rc = err_set(err, ERR_IO, "the recorder at %s did not answer in time", path);
	pipe_close(&pipe);
	return rc;
}

/* ---- waking a thread that waits -------------------------------------------------------------- */

struct os_wake {
	HANDLE event;                 /* resets itself by the wait that it ends */
};

struct os_wake *os_wake_new(void)
{
	struct os_wake *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->event = CreateEventW(NULL, FALSE, FALSE, NULL);
	if (!w->event) {
		free(w);
		return NULL;
	}
	return w;
}

void os_wake_free(struct os_wake *w)
{
	if (!w)
		return;
	CloseHandle(w->event);
	free(w);
}

void os_wake(struct os_wake *w)
{
	DWORD error = GetLastError();

	if (w)
		SetEvent(w->event);
	SetLastError(error);
}

void os_wake_wait(struct os_wake *w, struct os_ipc *ipc, bool signals, uint64_t timeout_ns)
{
	HANDLE any[3] = {w->event};
	DWORD n = 1;

	if (ipc && ipc->waiting)
		any[n++] = ipc->next.io.hEvent;
	if (signals && os_signals_event())
		any[n++] = os_signals_event();
	WaitForMultipleObjects(n, any, FALSE, wait_ms(timeout_ns));
}

int os_ipc_each(const char *suffix, void (*one)(void *ctx, const char *path), void *ctx,
		struct err *err)
{
	WIN32_FIND_DATAW found;
	HANDLE all = FindFirstFileW(L"\\\\.\\pipe\\*", &found);
	char name[3 * MAX_PATH], path[3 * MAX_PATH + 16];

	(void)suffix;
	if (all == INVALID_HANDLE_VALUE)
		return err_os(err, "the pipes of recorders cannot be listed");
	do {
		if (wcsncmp(found.cFileName, L"recorder-", 9) != 0 ||
		    WideCharToMultiByte(CP_UTF8, 0, found.cFileName, -1, name, sizeof(name), NULL,
					NULL) <= 0)
			continue;
		snprintf(path, sizeof(path), "\\\\.\\pipe\\%s", name);
		one(ctx, path);
	} while (FindNextFileW(all, &found));
	FindClose(all);
	return 0;
}
