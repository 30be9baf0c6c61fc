/*
 * The operating system: clock, threads, files, signals, one-line messages between processes.
 *
 * os_linux.c and os_windows.c implement it; nobody else includes a system header for these things.
 * Paths and texts are UTF-8 on both; UTF-16 exists only inside os_windows.c.
 */
#ifndef BASE_OS_H
#define BASE_OS_H

#include "base/buf.h"
#include "base/err.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NS_PER_SEC 1000000000ULL
#define NS_PER_MS 1000000ULL

/* ---- errors: errno or GetLastError() -------------------------------------------------------- */

int os_error_last(void);
enum err_code os_error_code(int os_error);
void os_error_text(int os_error, char *out, size_t n);

/* ---- clock ----------------------------------------------------------------------------------- */

/* The recorder clock: CLOCK_MONOTONIC, or QueryPerformanceCounter in ns. */
uint64_t os_now_ns(void);

/* Wall clock, ns since 1970-01-01 UTC. */
uint64_t os_wall_ns(void);

void os_sleep_ns(uint64_t ns);

/* "2026-11-21T03:04:05.678Z" (24 characters and NUL) of a wall clock time. */
#define OS_TIME_TEXT_BYTES 32
void os_time_text(uint64_t wall_ns, char out[OS_TIME_TEXT_BYTES]);

/* ---- threads --------------------------------------------------------------------------------- */

struct os_thread;
typedef void os_thread_main(void *ctx);

enum os_priority {
	OS_PRIORITY_HIGH,     /* nice -10 where allowed, else as it was */
	OS_PRIORITY_NORMAL,
	OS_PRIORITY_LOW,      /* nice 10, where that can be taken back (CAP_SYS_NICE), and idle I/O class */
	OS_PRIORITY_LOWEST,   /* nice 19 and idle I/O class; on Windows as LOW, which is the lowest there */
};

/* name: at most 15 bytes. Signals that os_signals_open() listens to stay blocked in it. */
int os_thread_start(const char *name, os_thread_main *run, void *ctx, struct os_thread **out,
		    struct err *err);
void os_thread_join(struct os_thread *thread);    /* waits and frees; NULL allowed */
/* Instead of a join, for one that may never come back: it frees itself if it does. What it uses must be its own. */
void os_thread_leave(struct os_thread *thread);
void os_thread_priority(enum os_priority priority);   /* of the calling thread; best effort */
/*
 * HIGH, for another thread that is not joined yet, wherever it stands: one below may not get to a call of
 * its own for half a minute. Best effort; on Windows its I/O stays as low as it was until it makes that call.
 */
void os_thread_hurry(struct os_thread *thread);

struct os_mutex;
struct os_cond;
struct os_mutex *os_mutex_new(void);               /* NULL = no memory */
void os_mutex_free(struct os_mutex *m);
void os_mutex_lock(struct os_mutex *m);
void os_mutex_unlock(struct os_mutex *m);
struct os_cond *os_cond_new(void);
void os_cond_free(struct os_cond *c);
void os_cond_signal(struct os_cond *c);
void os_cond_broadcast(struct os_cond *c);
/* Wait at most timeout_ns (UINT64_MAX = for ever); false when the time ran out. May wake early. */
bool os_cond_wait(struct os_cond *c, struct os_mutex *m, uint64_t timeout_ns);

struct os_wake;
struct os_ipc;
struct os_wake *os_wake_new(void);                 /* NULL = none to be had; error as of the system */
void os_wake_free(struct os_wake *w);              /* NULL allowed */
/* Any thread, never waits: ends the os_wake_wait() that is under way, else the next one. NULL allowed. */
void os_wake(struct os_wake *w);
/*
 * One thread: until it is woken, somebody has called on `ipc` (NULL = nobody can), a signal has come (if
 * `signals`, and os_signals_open() listens), or the time has passed. What came is still to be taken.
 */
void os_wake_wait(struct os_wake *w, struct os_ipc *ipc, bool signals, uint64_t timeout_ns);
/* Linux only: a descriptor for poll(), readable until os_wake_clear() once it was woken. Borrowed. */
int os_wake_fd(const struct os_wake *w);
void os_wake_clear(struct os_wake *w);             /* Linux only */

/*
 * Linux only: poll() for at most wait_ns; how many are ready. Where the system refuses (a limit on descriptors
 * that is below their number) none is, and the time, at most 100 ms of it, passes all the same.
 */
struct pollfd;
unsigned os_poll(struct pollfd *p, unsigned n, uint64_t wait_ns);

/* ---- files ----------------------------------------------------------------------------------- */

struct os_file;

enum os_open {
	OS_READ,              /* existing file, or whatever else is there */
	OS_READ_PLAIN,        /* existing plain file, see below */
	OS_READ_NO_LINK,      /* the same, never through a link */
	OS_CREATE,            /* new file, 0600; ERR_EXISTS when it is there; never through a link */
	OS_REPLACE,           /* new or emptied */
	OS_APPEND,            /* new or at its end */
};

/* What a file is, so that a name can be trusted. ino and dev are 0 where the system has none. */
struct os_file_info {
	uint64_t dev, ino, size_bytes, mtime_ns;
	uint32_t uid, mode;   /* mode: permission bits; 0 on Windows */
	bool regular, directory;
};

/*
 * A path that somebody else may have filled is opened by OS_READ_PLAIN or OS_READ_NO_LINK: ERR_ACCESS for a
 * directory, a pipe, a device, a socket, which are not touched. It waits for nobody (a lease on the file
 * gives ERR_BUSY). What is open is that which was looked at, whatever the path has become since: whose it
 * is and how old tells os_file_info().
 */
int os_open(const char *path, enum os_open how, struct os_file **out, struct err *err);
void os_close(struct os_file *file);               /* NULL allowed */
int os_file_fd(struct os_file *file);              /* Linux only: its descriptor, borrowed */
int os_file_info(struct os_file *file, struct os_file_info *out, struct err *err);
int os_path_info(const char *path, struct os_file_info *out, struct err *err);  /* follows links */

/* Bytes at an offset; *got is less than n only at the end of the file. */
int os_pread(struct os_file *file, void *to, size_t n, uint64_t offset, size_t *got,
	     struct err *err);
int os_read_all(struct os_file *file, size_t max_bytes, struct buf *out, struct err *err);
int os_write(struct os_file *file, const void *bytes, size_t n, struct err *err);  /* all of them */
int os_sync(struct os_file *file, struct err *err);

/*
 * A new file to read and write that nobody else can open and that ends with its os_close(), or with
 * the process. In TMPDIR, else /var/tmp (which is a disk where /tmp may be memory); on Windows in the
 * user's temporary folder. Written by os_pwrite() only: all n bytes, at an offset.
 */
int os_temp(struct os_file **out, struct err *err);
int os_pwrite(struct os_file *file, const void *bytes, size_t n, uint64_t offset, struct err *err);

/* Loading in one step: open, read at most max_bytes, close. Works for /proc files too. */
int os_load(const char *path, size_t max_bytes, struct buf *out, struct err *err);

int os_rename(const char *from, const char *to, struct err *err);   /* replaces `to` */
int os_remove(const char *path, struct err *err);
int os_mkdirs(const char *path, struct err *err);  /* with parents, 0700 */
bool os_exists(const char *path);
int os_chmod_private(const char *path, struct err *err);  /* 0600 / owner ACL */
int os_free_bytes(const char *dir, uint64_t *free_bytes, uint64_t *total_bytes, struct err *err);

/* File descriptor 1, for os_write(); not closed by os_close(). */
struct os_file *os_stdout(void);
struct os_file *os_stderr(void);
bool os_is_terminal(struct os_file *file);
unsigned os_terminal_columns(void);                /* 80 when unknown */
/* Whether a terminal as standard output obeys escape sequences; Windows: switched on, until the program ends. */
bool os_terminal_styles(void);

/*
 * An advisory lock that the system drops when the process ends, however it ends. The file holds the
 * owner's pid as decimal text and LF.
 * returns  0, or ERR_BUSY when another process holds it
 */
int os_lock(const char *path, struct os_file **out, struct err *err);
void os_unlock(struct os_file *lock);

/* ---- the machine and this process ------------------------------------------------------------ */

/* Directory part of a path, without its last separator ("." when there is none). */
void os_dirname(const char *path, struct buf *out);
/* What follows the last of this host's separators that something follows; points into the path. */
const char *os_base_name(const char *path);

/* The store's default path of this user; see README, "Where incidents are kept". */
int os_default_store(struct buf *out, struct err *err);
/* The path of the machine's own recorder (root, or the Windows service). */
void os_system_store(struct buf *out);

bool os_is_admin(void);
uint32_t os_uid(void);                             /* effective user; 0 on Windows */
uint32_t os_pid(void);
bool os_process_exists(uint32_t pid);              /* now, whoever's it is */
void os_host_name(char *out, size_t n);
void os_host_text(char *out, size_t n);            /* "Linux 6.1.0 x86_64" */
unsigned os_cpu_count(void);
int os_random(void *to, size_t n, struct err *err);
/* CPU time used so far and resident memory, of this process. */
void os_self_usage(uint64_t *cpu_ns, uint64_t *rss_bytes);
/*
 * For a program that runs for months: blocks of OS_OWN_PAGES_BYTES or more get pages of their own, which
 * freeing gives back. Else the allocator carves them, of any size, out of a heap that grows for ever by
 * what lies between them. Once, at the start.
 */
#define OS_OWN_PAGES_BYTES ((size_t)64 << 10)
void os_keep_memory_tight(void);
/* What was freed, and the allocator keeps for later, back to the system. Milliseconds. */
void os_give_memory_back(void);
/* Environment variable, or NULL; borrowed until the environment changes. */
const char *os_env(const char *name);
/* The program's arguments as UTF-8, owned by the system for the life of the process. */
char **os_args(int argc, char **argv);

/*
 * Run a program without a shell and wait for it, at most timeout_ns: then it and what it has started
 * are ended. Its input is empty; of what it prints, both streams, the first max_bytes go to output.
 *
 * argv     found in PATH; ends in NULL
 * returns  0 and its exit code (128 + signal), whatever that is; ERR_LIMIT it ran too long; else why
 *          it could not be started
 */
int os_run(char *const *argv, uint64_t timeout_ns, struct buf *output, size_t max_bytes, int *code,
	   struct err *err);
/* Whether os_run() would find this program now; that it may be run by this user is not promised. */
bool os_finds_program(const char *name);

/*
 * Show text through $PAGER, a shell command (else less, if it is there), and wait until it is left.
 * false: there is no pager here, and nothing was shown.
 */
bool os_page(const char *text, size_t n);

/* ---- signals --------------------------------------------------------------------------------- */

enum os_signal {
	OS_SIGNAL_NONE,
	OS_SIGNAL_STOP,       /* SIGINT, SIGTERM, SIGHUP of a terminal; Ctrl-C, console close, logoff */
	OS_SIGNAL_REOPEN,     /* SIGHUP of a program that was started without a terminal: a daemon */
	OS_SIGNAL_SNAPSHOT,   /* SIGUSR2; Ctrl-Break */
};

/* Before the first thread is started: from here on the signals arrive by os_signal_wait() only. */
int os_signals_open(struct err *err);
void os_signals_close(void);   /* the program ends now: from here on requests to end mean nothing (Linux) */
enum os_signal os_signal_wait(uint64_t timeout_ns);   /* one thread; OS_SIGNAL_NONE on time-out */

/* ---- one line each way between processes ----------------------------------------------------- */

#define OS_IPC_MAX_BYTES 65536

struct os_ipc_call;

/* A Unix socket (0600, in the directory of path) or a named pipe with an owner ACL. */
int os_ipc_listen(const char *path, struct os_ipc **out, struct err *err);
void os_ipc_close(struct os_ipc *ipc);
/*
 * Wait for a caller and read its line (no LF). 0, ERR_NOT_FOUND on time-out or a caller that sent
 * nothing useful within a second. Answer every call that was returned. Another error (ERR_LIMIT: no descriptor
 * is free): those who call wait; os_wake_wait() leaves them aside for a moment, and it is to be tried again.
 */
int os_ipc_next(struct os_ipc *ipc, uint64_t timeout_ns, struct buf *line,
		struct os_ipc_call **call, struct err *err);
void os_ipc_answer(struct os_ipc_call *call, const char *line);   /* takes the call */
/* Ask and wait at most timeout_ns for the answer. ERR_NOT_FOUND when nobody listens there. */
int os_ipc_ask(const char *path, const char *line, uint64_t timeout_ns, struct buf *answer,
	       struct err *err);

#endif
