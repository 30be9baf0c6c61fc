/*
 * The source of process starts and ends without an ETW session: reads the list of processes five
 * times a second. Its events are EVENT_PROCESS_START and EVENT_PROCESS_EXIT, the latter with the
 * field ExitStatus if this user may open the process. A process that lives for less than 200 ms may
 * be missed.
 *
 * A process is held open until its end is reported, so that its pid is not reused meanwhile.
 * Source: docs, Tool Help functions, GetExitCodeProcess().
 */
#include "source/host/by_id_windows.h"
#include "source/source.h"

#include "base/array.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "base/table.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <tlhelp32.h>

#define PERIOD_NS (200 * NS_PER_MS)
#define PROCESSES_MAX 65536u

struct listed_process {
	uint32_t pid;
	uint32_t round;                      /* the last round that listed it */
	HANDLE handle;                       /* NULL = may not be opened */
	struct process *process;             /* with a reference; NULL = the model is full */
	bool own;                            /* added, and to be dropped, by this source */
};

struct process_list {
	struct source base;
	struct source_config cfg;
	struct listed_process *all;                  /* by pid, ascending */
	uint32_t n, room, round;
	struct os_mutex *lock;
	struct os_cond *wake;
	bool stopping;                       /* under lock */
	bool full_logged;
	atomic_uint_fast64_t events;
};

extern const struct source_ops process_list_source;

static struct process_list *list_of(struct source *s)
{
	return (struct process_list *)s;
}

/* ---- one process ----------------------------------------------------------------------------- */

static void put_event(struct process_list *s, enum event_kind kind, struct listed_process *p,
		      const DWORD *exit_code)
{
	struct event_field field = {.name = "ExitStatus", .type = FIELD_INT};
	struct event e = {.time_ns = os_now_ns(), .kind = kind, .cpu = CPU_NONE,
			  .stream = STREAM_EVENT, .stack = STACK_NONE, .process = p->process};

	if (exit_code) {
		field.v.i = (int32_t)*exit_code;
		e.value = (int32_t)*exit_code;
		e.fields = &field;
		e.nfields = 1;
	}
	if (queue_put(s->cfg.queue, &e))
		atomic_fetch_add_explicit(&s->events, 1, memory_order_relaxed);
}

static void open_process(struct process_list *s, struct listed_process *p,
			 const PROCESSENTRY32W *entry)
{
	uint64_t now_ns = os_now_ns();
	struct buf path = {0};
	wchar_t image[1024];
	DWORD chars = COUNT_OF(image);

	p->handle = OpenProcess(PROCESS_QUERY_LIMITED_INFORMATION | SYNCHRONIZE, FALSE,
				entry->th32ProcessID);
	p->process = process_find(s->cfg.processes, entry->th32ProcessID, now_ns);
	if (p->process)
		return;
	p->process = process_add(s->cfg.processes, entry->th32ProcessID, now_ns, 0,
				 entry->th32ParentProcessID, NULL);
	if (!p->process)
		return;
	process_ref(p->process);
	p->own = true;
	if (p->handle && QueryFullProcessImageNameW(p->handle, 0, image, &chars))
		wide_put(&path, image);
	else
		wide_put(&path, entry->szExeFile);
	if (!path.failed)
		process_set_exe(p->process, buf_text(&path));
	buf_free(&path);
}

static void close_process(struct process_list *s, struct listed_process *p)
{
	if (p->process && p->own)
		process_drop(s->cfg.processes, p->process, os_now_ns());
	if (p->process)
		process_unref(p->process);
	if (p->handle)
		CloseHandle(p->handle);
}

static void put_end(struct process_list *s, struct listed_process *p)
{
	DWORD code = 0;
	bool known = p->handle && GetExitCodeProcess(p->handle, &code);

	put_event(s, EVENT_PROCESS_EXIT, p, known ? &code : NULL);
	close_process(s, p);
}

/* ---- the list -------------------------------------------------------------------------------- */

static struct listed_process *insert_process(struct process_list *s, uint32_t at, uint32_t pid)
{
	if (s->n == PROCESSES_MAX || ARRAY_ROOM(s->all, s->room, s->n + 1)) {
		if (!s->full_logged)
			log_line(s->cfg.log, LOG_WARN,
				 "more than %u processes run: starts and ends of some are not "
				 "reported", s->n);
		s->full_logged = true;
		return NULL;
	}
	memmove(&s->all[at + 1], &s->all[at], (s->n - at) * sizeof(*s->all));
	s->all[at] = (struct listed_process){.pid = pid};
	s->n++;
	return &s->all[at];
}

static void note_process(struct process_list *s, const PROCESSENTRY32W *entry, bool first)
{
	uint32_t pid = entry->th32ProcessID, at = by_id_find(s->all, sizeof(*s->all), s->n, pid);
	struct listed_process *p = at < s->n && s->all[at].pid == pid ? &s->all[at] : NULL;

	/* While it is held open its pid is not reused. */
	if (p) {
		if (!by_id_has_ended(p->handle))
			p->round = s->round;         /* else this round reports its end */
		return;
	}
	p = insert_process(s, at, pid);
	if (!p)
		return;
	p->round = s->round;
	open_process(s, p, entry);
	if (!first)
		put_event(s, EVENT_PROCESS_START, p, NULL);
}

static void read_list(struct process_list *s, bool first)
{
	HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPPROCESS, 0);
	PROCESSENTRY32W entry = {.dwSize = sizeof(entry)};
	uint32_t i, kept = 0;
	BOOL more;

	if (list == INVALID_HANDLE_VALUE)
		return;
	s->round++;
	for (more = Process32FirstW(list, &entry); more; more = Process32NextW(list, &entry))
		if (entry.th32ProcessID)
			note_process(s, &entry, first);
	CloseHandle(list);
	for (i = 0; i < s->n; i++) {
		if (s->all[i].round == s->round)
			s->all[kept++] = s->all[i];
		else
			put_end(s, &s->all[i]);
	}
	s->n = kept;
}

/* ---- the source ------------------------------------------------------------------------------ */

static void close_source(struct source *source)
{
	struct process_list *s = list_of(source);
	uint32_t i;

	if (!s)
		return;
	for (i = 0; i < s->n; i++)
		close_process(s, &s->all[i]);
	free(s->all);
	os_cond_free(s->wake);
	os_mutex_free(s->lock);
	free(s);
}

static int open_source(const struct source_config *cfg, const struct needs *needs,
		       struct source **out, struct err *err)
{
	struct process_list *s = calloc(1, sizeof(*s));

	(void)needs;
	if (s) {
		s->base.ops = &process_list_source;
		s->cfg = *cfg;
		s->lock = os_mutex_new();
		s->wake = os_cond_new();
	}
	if (!s || !s->lock || !s->wake) {
		close_source(s ? &s->base : NULL);
		return err_memory(err, "for the list of processes");
	}
	*out = &s->base;
	return 0;
}

static bool wait_for_round(struct process_list *s)
{
	bool stopping;

	os_mutex_lock(s->lock);
	if (!s->stopping)
		os_cond_wait(s->wake, s->lock, PERIOD_NS);
	stopping = s->stopping;
	os_mutex_unlock(s->lock);
	return !stopping;
}

static int run(struct source *source, struct err *err)
{
	struct process_list *s = list_of(source);
	bool first = true;

	(void)err;
	do {
		read_list(s, first);
		first = false;
		queue_watermark(s->cfg.queue, os_now_ns());
	} while (wait_for_round(s));
	return 0;
}

static void stop(struct source *source)
{
	struct process_list *s = list_of(source);

	os_mutex_lock(s->lock);
	s->stopping = true;
	os_cond_broadcast(s->wake);
	os_mutex_unlock(s->lock);
}

static void status(struct source *source, struct source_status *out)
{
	struct process_list *s = list_of(source);

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->events, memory_order_relaxed);
	out->lost = queue_lost(s->cfg.queue);
}

const struct source_ops process_list_source = {
	.name = "processes",
	.summary = "starts and ends of processes, from the list of processes",
	.endings = true,
	.instead_of_events = true,
	.open = open_source,
	.run = run,
	.stop = stop,
	.status = status,
	.close = close_source,
};
