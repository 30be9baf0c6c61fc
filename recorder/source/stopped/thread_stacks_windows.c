#include "source/stopped/thread_stacks.h"

#include "base/array.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "source/host/by_id_windows.h"
#include "source/stopped/target_images_windows.h"
#include "source/stopped/target_threads_windows.h"

#include <stdlib.h>
#include <string.h>

#include <windows.h>

#define CLOCK_TICK_NS (16 * NS_PER_MS)

struct thread_stacks {
	struct target_images images;
	struct target_threads threads;
	struct buf path;
	struct pe_stack copy;
	uint32_t refused;
	struct pe_walked walked;
};

/* ---- opening --------------------------------------------------------------------------------- */

static int open_process(uint32_t pid, HANDLE *out, struct err *err)
{
	DWORD error;

	if (pid == os_pid())
		return err_set(err, ERR_USAGE,
			       "process %u is the recorder itself, which cannot stop its own "
			       "threads", (unsigned)pid);
	*out = OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ | SYNCHRONIZE, FALSE, pid);
	if (!*out) {
		error = GetLastError();
		if (error == ERROR_INVALID_PARAMETER)
			return err_set(err, ERR_NOT_FOUND, "there is no process %u", (unsigned)pid);
		if (error == ERROR_ACCESS_DENIED)
			return err_set(err, ERR_ACCESS,
				       "no access to process %u: it belongs to another user or is "
				       "protected; run as administrator", (unsigned)pid);
		return err_os_code(err, (int)error, "cannot open process %u", (unsigned)pid);
	}
	return 0;
}

static void read_path(struct thread_stacks *s)
{
	wchar_t image[1024];
	DWORD chars = COUNT_OF(image);

	if (QueryFullProcessImageNameW(s->threads.process, 0, image, &chars))
		wide_put(&s->path, image);
}

int thread_stacks_open(uint32_t pid, struct frames *frames, struct thread_stacks **out,
		       struct err *err)
{
	struct thread_stacks *s = calloc(1, sizeof(*s));
	BOOL is_wow64 = FALSE;
	int rc = 0;

	if (s)
		s->copy.bytes = malloc(TARGET_STACK_MAX_BYTES);
	if (!s || !s->copy.bytes)
		rc = err_memory(err, "for the stacks of process %u", (unsigned)pid);
	if (!rc)
		rc = open_process(pid, &s->threads.process, err);
	if (!rc) {
		s->threads.pid = pid;
		s->threads.is_wow64 = IsWow64Process(s->threads.process, &is_wow64) && is_wow64;
		read_path(s);
		rc = target_images_open(s->threads.process, pid, s->threads.is_wow64, frames,
					&s->images, err);
	}
	if (!rc)
		rc = thread_stacks_refresh(s, err);
	if (rc) {
		thread_stacks_close(s);
		return rc;
	}
	*out = s;
	return 0;
}

void thread_stacks_close(struct thread_stacks *s)
{
	if (!s)
		return;
	if (s->threads.process)
		CloseHandle(s->threads.process);
	target_threads_close(&s->threads);
	target_images_close(&s->images, os_now_ns());
	buf_free(&s->path);
	free(s->copy.bytes);
	free(s);
}

const char *thread_stacks_path(const struct thread_stacks *s)
{
	return buf_text(&s->path);
}

bool thread_stacks_name(struct thread_stacks *s, const struct frame *frame, struct symbol *out)
{
	(void)s, (void)frame, (void)out;
	return false;
}

/* ---- taking ---------------------------------------------------------------------------------- */

static int check_alive(const struct thread_stacks *s, struct err *err)
{
	if (by_id_has_ended(s->threads.process))
		return err_set(err, ERR_NOT_FOUND, "process %u has ended",
			       (unsigned)s->threads.pid);
	return 0;
}

int thread_stacks_never_stop(struct thread_stacks *s, struct err *err)
{
	(void)s;
	return err_set(err, ERR_UNSUPPORTED, "--no-stop: Windows tells where a thread is only "
		       "while it is suspended; 'recorder top -p' records without that");
}

int thread_stacks_refresh(struct thread_stacks *s, struct err *err)
{
	int rc = check_alive(s, err);

	if (!rc)
		rc = target_images_refresh(&s->images, err);
	if (!rc)
		rc = target_threads_refresh(&s->threads, err);
	/* Calls may fail because the process is about to end. */
	return rc ? (check_alive(s, err) ? ERR_NOT_FOUND : rc) : 0;
}

/*
 * What a thread did since its last report: its CPU time, and its wait once that is longer than a
 * tick of the system's clock, in which CPU time is counted. False = skip the thread.
 */
static bool account(struct target_thread *thread, uint64_t idle_ns, struct thread_stack *out)
{
	uint64_t now_ns = os_now_ns(), since_ns = 0, wall_ns;
	bool has_cpu = target_thread_cpu(thread, &since_ns);

	if (!thread->seen_ns) {
		thread->seen_ns = thread->waits_from_ns = now_ns;
		return true;
	}
	if (has_cpu && !since_ns && now_ns - thread->seen_ns < idle_ns)
		return false;
	thread->seen_ns = now_ns;
	thread->ran_ns += since_ns;
	out->cpu_ns = since_ns;
	wall_ns = now_ns - thread->waits_from_ns;
	if (!idle_ns || !has_cpu || wall_ns < idle_ns || wall_ns < thread->ran_ns + CLOCK_TICK_NS)
		return true;
	out->waited_ns = wall_ns - thread->ran_ns;
	thread->waits_from_ns = now_ns;
	thread->ran_ns = 0;
	return true;
}

static void take_one(struct thread_stacks *s, struct target_thread *thread, uint64_t idle_ns,
		     thread_stack_fn *tell, void *ctx)
{
	struct thread_stack stack = {.tid = thread->tid, .name = thread->name,
				     .frames = s->walked.frames,
				     .addresses = s->walked.addresses};
	int rc;

	if (!account(thread, idle_ns, &stack))
		return;
	rc = target_thread_copy(&s->threads, thread, &s->copy);
	if (rc) {
		s->refused += rc == ERR_ACCESS;
		return;
	}
	pe_images_walk(s->images.images, &s->copy, &s->walked);
	if (s->walked.unlisted && !target_images_refresh(&s->images, NULL))
		pe_images_walk(s->images.images, &s->copy, &s->walked);
	stack.nframes = s->walked.nframes;
	stack.quality = s->walked.quality;
	stack.time_ns = s->copy.time_ns;
	stack.suspended_ns = s->copy.suspended_ns;
	tell(ctx, &stack);
}

int thread_stacks_take(struct thread_stacks *s, uint64_t idle_ns, thread_stack_fn *tell, void *ctx,
		       struct err *err)
{
	uint32_t i;

	s->refused = 0;
	pe_images_forget(s->images.images);
	for (i = 0; i < s->threads.n; i++)
		take_one(s, &s->threads.all[i], idle_ns, tell, ctx);
	return check_alive(s, err);
}

void thread_stacks_use(const struct thread_stacks *s, struct thread_stacks_use *out)
{
	*out = (struct thread_stacks_use){.threads = s->threads.n, .refused = s->refused,
					  .longest_ns = s->threads.longest_ns,
					  .not_resumed = s->threads.not_resumed};
}
