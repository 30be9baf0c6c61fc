/* Processes of which records may be missing: perf_state_lose() says what becomes of them. */
#include "source/perf/state_private.h"

#include "source/perf/names_linux.h"

void perf_state_lose(struct perf_state *s, uint64_t until_ns)
{
	s->lost_until_ns = until_ns > s->lost_until_ns ? until_ns : s->lost_until_ns;
	perf_scan_doubt(s->scan);
}

uint64_t perf_state_now(const struct perf_state *s)
{
	return s->now_ns;
}

void perf_state_known(const struct perf_state *s, struct perf_process *process)
{
	process->sure_ns = s->now_ns;
}

/*
 * Two pids belong to no process: the idle task's, and that of tasks that have already exited. In a
 * pid namespace the first one is also that of all that runs outside.
 */
const char *perf_state_pid_comm(const struct perf_state *s, uint32_t pid)
{
	return pid == 0 ? (s->nested ? "outside" : "idle") : pid == UINT32_MAX ? "exited" : NULL;
}

/* A record of it may be missing since it was known, even if one of another CPU just told of it. */
bool perf_state_is_doubtful(const struct perf_state *s, const struct perf_process *p)
{
	return p->unnamed || p->sure_ns <= s->lost_until_ns;
}

/* From here on it has no name, unless at a ceiling. */
void perf_state_doubt(struct perf_state *s, struct perf_process *p)
{
	struct process *fresh;

	if (p->unnamed || !perf_state_is_doubtful(s, p) || perf_state_pid_comm(s, p->pid))
		return;
	fresh = perf_state_clear_maps(s, p) ? NULL
		: process_add_next(s->cfg.processes, p->pid, p->start_ns, p->exec + 1,
				   p->parent_pid, NULL);
	if (!fresh)
		return;
	perf_names_forget(s->names, p);
	process_ref(p->process);
	p->before = p->process;
	process_drop(s->cfg.processes, p->process, s->now_ns);
	p->process = fresh;
	p->exec = fresh->exec;
	p->doubts++;
	p->exe_known = false;
	p->unnamed = true;
}

void perf_state_forget_before(struct perf_process *p)
{
	if (p->before)
		process_unref(p->before);
	p->before = NULL;
	p->unnamed = false;
}

void perf_state_settle(struct perf_state *s, struct perf_process *p, const char *comm,
		       const char *exe)
{
	bool same = p->before && exe && process_exe_is(p->before, exe);
	const struct perf_thread *t;

	perf_state_forget_before(p);
	process_set_comm(p->process, comm);
	if (exe)
		perf_state_exe(s, p, exe);
	else
		perf_names_update(s->names, p);
	t = same ? NULL : perf_state_known_thread(s, p->pid);
	if (t)
		perf_state_put_event(s, EVENT_PROCESS_START, p, p->pid, s->now_ns);
}

/* For what is recorded of a thread: its process must be known, or have no name. */
struct perf_thread *perf_state_for_sample(struct perf_state *s, struct perf_thread *t)
{
	struct perf_process *p = t->process;

	perf_state_doubt(s, p);
	if (p->unnamed)
		perf_scan_want(s->scan, p->pid);
	perf_state_follow(s, t);
	return t;
}

struct perf_thread *perf_state_find_thread(struct perf_state *s, uint32_t tid)
{
	struct perf_thread *t = perf_state_known_thread(s, tid);

	return t ? perf_state_for_sample(s, t) : NULL;
}
