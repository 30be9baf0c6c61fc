#include "tests/support/perf_state_lab_linux.h"

#include <stdio.h>
#include <string.h>

struct frames *frames;
struct processes *processes;
struct queue *queue;
struct perf_state *state_of;

/* ---- records --------------------------------------------------------------------------------- */

void feed_task(enum perf_record_kind kind, uint32_t pid, uint32_t tid, uint32_t parent_pid,
	       uint64_t time_ns)
{
	struct perf_record r = {.kind = kind, .time_ns = time_ns, .pid = pid, .tid = tid,
				.u.task = {parent_pid, parent_pid}};

	perf_state_feed(state_of, &r);
}

void feed_fork(uint32_t pid, uint32_t parent_pid, uint64_t time_ns)
{
	feed_task(PERF_KIND_FORK, pid, pid, parent_pid, time_ns);
}

void feed_thread(uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	feed_task(PERF_KIND_FORK, pid, tid, pid, time_ns);
}

void feed_exit(uint32_t pid, uint32_t tid, uint64_t time_ns)
{
	feed_task(PERF_KIND_EXIT, pid, tid, INIT, time_ns);
}

void feed_comm(uint32_t pid, uint32_t tid, const char *name, bool exec, uint64_t time_ns)
{
	struct perf_record r = {.kind = PERF_KIND_COMM, .time_ns = time_ns, .pid = pid, .tid = tid,
				.u.comm = {name, exec}};

	perf_state_feed(state_of, &r);
}

void feed_mmap(uint32_t pid, const char *path, uint64_t start, uint64_t time_ns)
{
	struct perf_record r = {.kind = PERF_KIND_MMAP, .time_ns = time_ns, .pid = pid, .tid = pid};

	r.u.mmap.start = start;
	r.u.mmap.bytes = 0x2000;
	r.u.mmap.pgoff = 0x400;
	r.u.mmap.ino = strlen(path);
	r.u.mmap.path = path;
	perf_state_feed(state_of, &r);
}

/* ---- what came of them ----------------------------------------------------------------------- */

const char *name_of(uint32_t pid)
{
	const struct perf_process *p = perf_state_find(state_of, pid);

	return p ? process_name(p->process) : "nobody";
}

struct perf_thread *thread_of(uint32_t pid, uint32_t tid)
{
	return perf_state_thread(state_of, pid, tid, SECOND);
}

const char *name_of_thread(uint32_t pid, uint32_t tid)
{
	static char name[16];

	thread_name(thread_of(pid, tid)->thread, name);
	return name;
}

struct frame_ref locate(uint32_t pid, uint64_t address)
{
	struct frame_ref ref = {0};

	perf_state_locate(state_of, perf_state_find(state_of, pid), NULL, address, &ref);
	return ref;
}

const char *file_at(uint32_t pid, uint64_t address)
{
	return locate(pid, address).object->name;
}

const char *events(bool images)
{
	static char text[1000];
	const struct event *e;
	size_t n = 0;

	text[0] = '\0';
	while ((e = queue_peek(queue)) != NULL) {
		if (e->kind == EVENT_IMAGE && images)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "=%s ", e->name);
		if (e->kind == EVENT_PROCESS_START || e->kind == EVENT_PROCESS_EXIT)
			n += (size_t)snprintf(text + n, sizeof(text) - n, "%c%s %u ",
					      e->kind == EVENT_PROCESS_START ? '+' : '-', e->name,
					      e->process->pid);
		queue_pop(queue);
		assert_true(n < sizeof(text));
	}
	return text;
}

uint32_t live_processes(uint64_t released_ns)
{
	struct processes_use use;

	processes_sweep(processes, released_ns);
	processes_use(processes, &use);
	return use.processes;
}

uint32_t live_objects(void)
{
	struct frames_use use;

	frames_sweep(frames, UINT64_MAX);
	frames_use(frames, &use);
	return use.objects;
}

/* ---- the ground ------------------------------------------------------------------------------ */

int open_config(struct perf_state_config cfg)
{
	struct perf_process *init;

	if (frames_new(&frames, NULL) || processes_new(&processes, NULL) ||
	    !(queue = queue_new(1 << 20)))
		return -1;
	cfg.frames = frames;
	cfg.processes = processes;
	cfg.queue = queue;
	if (perf_state_new(&cfg, &state_of, NULL))
		return -1;
	init = perf_state_add_process(state_of, INIT, 1, 50, "init");
	if (!init || !perf_state_add_thread(state_of, init, INIT))
		return -1;
	feed_mmap(INIT, "/sbin/init", 0x1000, 100);
	events(false);
	return 0;
}

int open_with(const char *only, struct log *log)
{
	return open_config((struct perf_state_config){.only_process = only, .log = log});
}

int open_state(void **state)
{
	(void)state;
	return open_with(NULL, NULL);
}

int close_state(void **state)
{
	(void)state;
	perf_state_free(state_of);
	queue_free(queue);
	frames_free(frames);
	processes_free(processes);
	return 0;
}
