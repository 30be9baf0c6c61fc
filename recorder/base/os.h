/*
 * The operating system: clock, threads, files, signals, one-line messages between processes.
 *
 * os_*_linux.c and os_*_windows.c implement it; nobody else includes a system header for these
 * things. Paths and texts are UTF-8 on both hosts; UTF-16 exists only inside os_*_windows.c.
 */
#pragma once

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

/* The recorder clock in ns: CLOCK_MONOTONIC, or QueryPerformanceCounter. */
uint64_t os_now_ns(void);

/* The recorder clock this long from now; UINT64_MAX = never. */
static inline uint64_t os_deadline_ns(uint64_t timeout_ns)
{
	uint64_t now_ns = os_now_ns();

	return timeout_ns < UINT64_MAX - now_ns ? now_ns + timeout_ns : UINT64_MAX;
}

/* Wall clock, ns since 1970-01-01 UTC. */
uint64_t os_wall_ns(void);
/*
 * For how long the machine has slept since it started, as far as the recorder clock stood still.
 */
uint64_t os_asleep_ns(void);

void os_sleep_ns(uint64_t ns);

/* A wall clock time as "2026-11-21T03:04:05.678Z" (24 characters and NUL). */
#define OS_TIME_TEXT_BYTES 32
void os_time_text(uint64_t wall_ns, char out[OS_TIME_TEXT_BYTES]);

/* ---- threads --------------------------------------------------------------------------------- */

struct os_thread;
typedef void os_thread_main(void *ctx);

enum os_priority {
	OS_PRIORITY_HIGH,     /* nice -10 where allowed, else unchanged */
	OS_PRIORITY_NORMAL,
	OS_PRIORITY_WRITER,   /* idle I/O class; on Windows the same as LOW */
	OS_PRIORITY_LOW,      /* idle I/O class, and nice 10 if that can be undone (CAP_SYS_NICE) */
	OS_PRIORITY_LOWEST,   /* idle I/O class and nice 19; on Windows the same as LOW */
};

/* name: at most 15 bytes. The thread keeps the signals of os_signals_open() blocked. */
int os_thread_start(const char *name, os_thread_main *run, void *ctx, struct os_thread **out,
		    struct err *err);
void os_thread_join(struct os_thread *thread);    /* waits and frees; NULL allowed */
/* The same, at most timeout_ns. false: it still runs, and `thread` stays valid. */
bool os_thread_join_within(struct os_thread *thread, uint64_t timeout_ns);
/* For a thread that may never return, instead of a join: it frees itself, and owns what it uses. */
void os_thread_leave(struct os_thread *thread);
/* Of the calling thread; best effort. On Linux it counts once no mutex is held, or at a wait. */
void os_thread_priority(enum os_priority priority);
uint64_t os_thread_cpu_ns(void);             /* that the calling thread has used */
/*
 * HIGH for another thread that is not joined yet, whatever it is doing: a low one may not get to
 * raise itself for half a minute. Best effort; on Windows its I/O priority stays low until it calls
 * os_thread_priority() itself.
 */
void os_thread_hurry(struct os_thread *thread);

/*
 * Does a thread that is not joined yet wait for something other than a CPU? progress: grows by the
 * least that it does, since it is its CPU time. Never blocks. On Windows always true, as if it
 * waited; but there a thread that waits for a CPU gets one after 4 s (balance set manager).
 */
bool os_thread_waits(const struct os_thread *thread, uint64_t *progress);

/*
 * What a thread does now, for people: "runs" or "waits in the kernel (state D, fuse_get_req)".
 * Never blocks; on Windows "waits or runs". NULL: the calling one.
 */
#define OS_THREAD_WAITS_BYTES 128
void os_thread_state_text(const struct os_thread *thread, char out[OS_THREAD_WAITS_BYTES]);

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
struct os_wake *os_wake_new(void);     /* NULL = none available; the system's error code says why */
void os_wake_free(struct os_wake *w);              /* NULL allowed */
/*
 * Any thread, never blocks: ends the os_wake_wait() in progress, else the next one. NULL allowed.
 */
void os_wake(struct os_wake *w);
/*
 * Wait, on one thread, until it is woken, somebody calls on `ipc` (NULL = nobody can), a signal
 * arrives (if `signals`, after os_signals_open()), or the time has passed. Takes nothing: the
 * caller fetches what came.
 */
void os_wake_wait(struct os_wake *w, struct os_ipc *ipc, bool signals, uint64_t timeout_ns);
/* Linux only: a descriptor for poll(), readable from a wake until os_wake_clear(). Borrowed. */
int os_wake_fd(const struct os_wake *w);
void os_wake_clear(struct os_wake *w);             /* Linux only */

/*
 * Linux only: poll() for at most wait_ns; returns how many are ready. If the system refuses (more
 * descriptors than the limit allows), none is, and the call still waits, at most 100 ms.
 */
struct pollfd;
unsigned os_poll(struct pollfd *p, unsigned n, uint64_t wait_ns);

/* ---- files ----------------------------------------------------------------------------------- */

struct os_file;

enum os_open {
	OS_READ,              /* an existing file of any kind */
	OS_READ_PLAIN,        /* an existing regular file, see below */
	OS_READ_NO_LINK,      /* the same, never through a link */
	OS_CREATE,           /* a new file, 0600; ERR_EXISTS when it exists; never through a link */
	OS_REPLACE,           /* new or emptied */
	OS_APPEND,            /* new or at its end; a pipe needs a reader: ERR_ACCESS */
};

/* What a file is, so that a name can be trusted. ino and dev are 0 where the system has none. */
struct os_file_info {
	uint64_t dev, ino, size_bytes, mtime_ns;
	uint32_t uid, mode;   /* mode: permission bits; 0 on Windows */
	bool regular, directory;
};

/*
 * Open a path that somebody else may have filled with OS_READ_PLAIN or OS_READ_NO_LINK:
 * directories, pipes, devices and sockets give ERR_ACCESS and are not touched. It never blocks (a
 * lease on the file gives ERR_BUSY). What is opened is what was checked, whatever the path has
 * become since; os_file_info() tells its owner and age.
 *
 * Linux: a path "/proc/PID/root/..." to be read or looked at is resolved as that process would:
 * its links do not lead out of its root (before Linux 5.6 they may).
 */
int os_open(const char *path, enum os_open how, struct os_file **out, struct err *err);
void os_close(struct os_file *file);               /* NULL allowed */
int os_file_fd(struct os_file *file);              /* Linux only: its descriptor, borrowed */
int os_file_info(struct os_file *file, struct os_file_info *out, struct err *err);
int os_path_info(const char *path, struct os_file_info *out, struct err *err);  /* follows links */
/*
 * Linux, run by sudo: the user who typed it becomes the owner, or he could not open what he asked
 * for. Else the owner stays, as when the file system knows no owners.
 */
void os_file_hand_over(struct os_file *file);
/* Let everybody read it, as 0644 does. On Windows it stays as its folder says. */
void os_file_show(struct os_file *file);

/* Read bytes at an offset; *got is less than n only at the end of the file. */
int os_pread(struct os_file *file, void *to, size_t n, uint64_t offset, size_t *got,
	     struct err *err);
/* Read what comes next, at least one byte; *got = 0 at the end. */
int os_read_next(struct os_file *file, void *to, size_t n, size_t *got, struct err *err);
int os_read_all(struct os_file *file, size_t max_bytes, struct buf *out, struct err *err);
int os_write(struct os_file *file, const void *bytes, size_t n, struct err *err);  /* all of them */
int os_sync(struct os_file *file, struct err *err);
/* Let the disk begin with what was written, so that os_sync() waits less; best effort. */
void os_sync_soon(struct os_file *file);

/*
 * A new file to read and write, which nobody else can open and which vanishes with os_close() or
 * the process. In TMPDIR, else /var/tmp (a disk, where /tmp may be memory); on Windows in the
 * user's temporary folder. Only os_pwrite() writes it: all n bytes, at an offset.
 */
int os_temp(struct os_file **out, struct err *err);
int os_pwrite(struct os_file *file, const void *bytes, size_t n, uint64_t offset, struct err *err);
/*
 * Make a file at least this long, with blocks of the disk that are not written yet; best effort, on
 * Linux only. Drops the locks that this process has on the file by fcntl().
 */
void os_make_room(const char *path, uint64_t bytes);

/* Load in one step: open, read at most max_bytes, close. Works for /proc files too. */
int os_load(const char *path, size_t max_bytes, struct buf *out, struct err *err);

/* Replaces `to`, or the link that it is. The new name is on the disk when this returns. */
int os_rename(const char *from, const char *to, struct err *err);
int os_remove(const char *path, struct err *err);
int os_mkdirs(const char *path, struct err *err);  /* with parents, 0700 */
void os_remove_dir(const char *path);        /* if it is empty; best effort */
bool os_exists(const char *path);
/* Each name in a directory, but "." and "..", in no order; non-zero from each() ends it early. */
int os_list(const char *dir, int (*each)(void *ctx, const char *name), void *ctx, struct err *err);
int os_free_bytes(const char *dir, uint64_t *free_bytes, uint64_t *total_bytes, struct err *err);

/* File descriptor 1, for os_write(); not closed by os_close(). */
struct os_file *os_stdout(void);
struct os_file *os_stderr(void);
struct os_file *os_stdin(void);                    /* for os_read_next() */
bool os_is_terminal(struct os_file *file);
unsigned os_terminal_columns(void);                /* 80 when unknown */
/*
 * Does standard output, a terminal, obey escape sequences? Windows: enabled until the program ends.
 */
bool os_terminal_styles(void);

/*
 * An advisory lock. os_close() releases it; so does the end of the process, however it comes.
 * The file holds the owner's pid as decimal text and LF.
 * returns  0, or ERR_BUSY when another process holds it
 */
int os_lock(const char *path, struct os_file **out, struct err *err);
/* The same for a file that is open already, without the text; false: it is not locked. */
bool os_try_lock(struct os_file *file);

/* ---- the machine and this process ------------------------------------------------------------ */

/* The directory part of a path, without its last separator ("." when there is none). */
void os_dirname(const char *path, struct buf *out);
/* The same path from the root on. */
void os_full_path(const char *path, struct buf *out);
/* What follows the last of this host's separators; see text_last_part(). */
const char *os_base_name(const char *path);

/* This user's default path of the store; see recorder help store. */
int os_default_store(struct buf *out, struct err *err);
/* The store's path of the machine's own recorder (root, or the Windows service). */
void os_system_store(struct buf *out);

bool os_is_admin(void);
uint32_t os_uid(void);                             /* effective user; 0 on Windows */
uint32_t os_pid(void);
bool os_process_exists(uint32_t pid);              /* now, whoever owns it */
/*
 * A process's arguments joined by blanks, at most OS_ARGUMENTS_MAX bytes; may be empty. The process
 * writes them. ERR_UNSUPPORTED on Windows, where they come with events.
 */
#define OS_ARGUMENTS_MAX 4096u
int os_process_arguments(uint32_t pid, struct buf *out, struct err *err);
void os_host_name(char *out, size_t n);
void os_host_text(char *out, size_t n);            /* "Linux 6.1.0 x86_64" */
unsigned os_cpu_count(void);
int os_random(void *to, size_t n, struct err *err);
/* CPU time used so far and resident memory of this process. */
void os_self_usage(uint64_t *cpu_ns, uint64_t *rss_bytes);
/*
 * For a program that runs for months: map each block of at least OS_OWN_PAGES_BYTES separately, so
 * that free() returns its pages. Otherwise the allocator carves blocks of any size out of a heap
 * that keeps growing by the gaps between them. Call once, at the start.
 */
#define OS_OWN_PAGES_BYTES ((size_t)64 << 10)
void os_keep_memory_tight(void);
/* Return memory that was freed, but kept by the allocator, to the system. Takes milliseconds. */
void os_give_memory_back(void);
/*
 * The whole pages among these bytes go back to the system: they need no memory until they are
 * written again, and hold anything until then.
 */
void os_give_pages_back(void *at, size_t n);
/*
 * A hint: these bytes will be written one after the other, and should cost few page faults. They
 * may take a large page more than is written. Nothing is done for less than some large pages.
 */
void os_use_large_pages(void *at, size_t n);
/*
 * Environment variable, or NULL; borrowed until the environment changes. Always NULL while
 * os_rights_lent().
 */
const char *os_env(const char *name);
/* Is it set, though os_env() does not tell? */
bool os_env_hidden(const char *name);
/*
 * A program may be started without its three streams, as the kernel starts the reader of a core:
 * then no file gets their numbers, and using them is an error. Call first. Windows: nothing.
 */
void os_guard_streams(void);
/* The program's arguments as UTF-8, owned by the system for the life of the process. */
char **os_args(int argc, char **argv);

/*
 * Run a program without a shell and wait for it for at most timeout_ns; then it and what it started
 * are ended. Its input is empty; output gets the first max_bytes of what it prints to both streams.
 *
 * argv     found in PATH; ends in NULL
 * more     "NAME=value", added to this process's environment; ends in NULL
 * returns  0 and its exit code (128 + signal), whatever that is; ERR_LIMIT when it ran too long;
 *          else why it could not be started
 */
int os_run(char *const *argv, char *const *more, uint64_t timeout_ns, struct buf *output,
	   size_t max_bytes, int *code, struct err *err);
/*
 * Linux only: the same, but its standard output goes to a descriptor, and messages get the other
 * stream; it is ended, too, once *stop is true.
 */
int os_run_into(int to, char *const *argv, uint64_t timeout_ns,
		const _Atomic bool *stop, struct buf *messages, size_t max_bytes, int *code,
		struct err *err);
/*
 * A program that the user named, with this process's terminal, streams, environment and directory.
 * It exists, and waits before its first instruction until os_child_go(). Start it before any
 * thread. Windows: suspended.
 *
 * variables   "NAME=value" ... NULL, in its environment too (Linux); NULL = none
 */
struct os_child;
int os_child_start(char *const *argv, char *const *variables, struct os_child **out,
		   struct err *err);
uint32_t os_child_pid(const struct os_child *child);
/* Let it run. returns  0; why it cannot be executed */
int os_child_go(struct os_child *child, struct err *err);
/* Whether it has ended, without waiting; then its exit code, or 128 + the signal that ended it. */
bool os_child_ended(struct os_child *child, int *code);
/* Ask it to end, as the terminal has done already for a program in its foreground. */
void os_child_stop(struct os_child *child);
/* One that has not been let go is ended; else it goes on. NULL allowed. */
void os_child_free(struct os_child *child);
/*
 * Go on in a process of its own that outlives this one and its terminal. Before any thread. Linux;
 * elsewhere ERR_UNSUPPORTED.
 *
 * returns  0 twice: in the new process, which has the streams until os_background_ready(); and in
 *          this one, once the new one is ready or has ended
 */
struct os_background {
	bool is_new;                         /* this is the new process */
	uint32_t pid;                        /* else: of it */
	bool ready;                          /* else: it goes on, or has ended with this code */
	int code;
	int fd;
};
int os_background(struct os_background *out, struct err *err);
/* The new process works now: let the caller go, and the streams. */
void os_background_ready(struct os_background *b);
/*
 * Tell the service manager that started us, if one did and asked for it: "READY=1". Linux.
 * Source: sd_notify(3), "a datagram to $NOTIFY_SOCKET".
 */
void os_notify(const char *state);
/*
 * One structured line in the system's log, if there is one. It never blocks. Linux: the journal,
 * all fields; the first is MESSAGE. Windows: the application log of the event source "recorder",
 * the first field's value and then the others. Sources: systemd.io "Native Journal Protocol";
 * ReportEventW().
 */
struct os_log_field {
	const char *name, *value;
};
void os_system_log(const struct os_log_field *fields, unsigned n);
/*
 * Allow this process as many open files as it may have at all; what os_run() starts keeps the limit
 * that was there. Call once, at the start. Windows has no such limit.
 */
void os_raise_file_limit(void);
/* Would os_run() find this program now? It does not promise that this user may run it. */
bool os_finds_program(const char *name);

/*
 * Show text through $PAGER, a shell command (else less, if installed), and wait until the user
 * quits. Returns false, having shown nothing, when there is no pager.
 */
bool os_show_in_pager(const char *text, size_t n);

/* ---- rights ---------------------------------------------------------------------------------- */

/*
 * A program file with capabilities (setcap) lends them to everybody who may run it; they must serve
 * the recording, not the caller's curiosity. A setuid file counts as one with all of them: the
 * process takes its caller's user and group at once. Without such a file (root, a service's ambient
 * capabilities, Windows) all of these but os_rights_keep_used() do nothing, and os_env() answers.
 */
bool os_rights_lent(void);
/* For good, before the first thread: keep no capability. */
void os_rights_give_up(void);
/*
 * For good, before the first thread: keep those capabilities that recording uses, also of root. A
 * program that root starts then gains rights by its exec, so it cannot be traced or dumped.
 */
void os_rights_keep_used(void);
/*
 * This thread and those that it starts: open files with the caller's own rights. The first call
 * comes before the first thread.
 */
void os_rights_lower(void);
/* This thread: use every capability again, to look at other users' processes and programs. */
void os_rights_raise(void);
/*
 * Linux: for a process of one thread that computes with bytes of strangers. From here on it can
 * take memory, read and write what is open, and end; every other system call fails with EPERM. It
 * has no capability, and if it was root is a user that no other process has.
 * returns  false when it could not give something up: then it must end
 */
bool os_confine(void);
/*
 * For a process that records, before its first thread: from here on system calls that recording
 * never makes fail with EPERM, also for the programs that it starts, and these gain no right by
 * their files. Does nothing on Windows, nor under a sanitizer.
 * returns  false when the kernel has no such filter
 */
bool os_forbid_unused_calls(void);
/* Linux: the most memory of a process of os_confine(), without mapped files; it leaves no core. */
void os_limit_memory(uint64_t max_bytes);

/* ---- signals --------------------------------------------------------------------------------- */

enum os_signal {
	OS_SIGNAL_NONE,
	OS_SIGNAL_STOP,   /* SIGINT, SIGTERM, SIGHUP of a terminal; Ctrl-C, console close, logoff */
	OS_SIGNAL_REOPEN,     /* SIGHUP of a program started without a terminal: a daemon */
	OS_SIGNAL_SNAPSHOT,   /* SIGUSR2; Ctrl-Break */
};

/* Call before starting the first thread: then only os_signal_wait() receives the signals. */
int os_signals_open(struct err *err);
/* The program is ending: from here on requests to end have no effect (Linux). */
void os_signals_close(void);
enum os_signal os_signal_wait(uint64_t timeout_ns);   /* one thread; OS_SIGNAL_NONE on time-out */

/* ---- one line each way between processes ----------------------------------------------------- */

#define OS_IPC_MAX_BYTES 65536

struct os_ipc_call;

/* A Unix socket (0600, in the directory of path) or a named pipe with an owner ACL. */
int os_ipc_listen(const char *path, struct os_ipc **out, struct err *err);
void os_ipc_close(struct os_ipc *ipc);
/*
 * Wait for a caller and read its line (no LF). 0, or ERR_NOT_FOUND on time-out or when the caller
 * sent nothing useful within a second. Answer every call that was returned. On another error
 * (ERR_LIMIT: no descriptor is free) callers keep waiting; os_wake_wait() ignores them for a
 * moment; try again.
 */
int os_ipc_next(struct os_ipc *ipc, uint64_t timeout_ns, struct buf *line,
		struct os_ipc_call **call, struct err *err);
void os_ipc_answer(struct os_ipc_call *call, const char *line);   /* takes the call */
/*
 * The ends of all sockets and pipes here whose name ends like this and somebody listens at, for
 * os_ipc_ask(): of other users too, who may not answer us. Windows: all pipes of recorders.
 */
int os_ipc_each(const char *suffix, void (*one)(void *ctx, const char *path), void *ctx,
		struct err *err);
/* Send a line and wait at most timeout_ns for the answer. ERR_NOT_FOUND when nobody listens. */
int os_ipc_ask(const char *path, const char *line, uint64_t timeout_ns, struct buf *answer,
	       struct err *err);
