#include "source/stopped/thread_stacks.h"

#include <string.h>

/* Any name is found, so that thread_stacks_open() reports the error. */
uint32_t thread_stacks_find(const char *name, uint32_t *pids, uint32_t max)
{
	(void)name;
	pids[0] = 0;
	return max ? 1 : 0;
}

int thread_stacks_open(uint32_t pid, struct frames *frames, struct thread_stacks **out,
		       struct err *err)
{
	(void)pid;
	(void)frames;
	(void)out;
	return err_set(
		err, ERR_UNSUPPORTED,
		"stacks of stopped threads are available on Windows only; record for a while "
		"instead: recorder collect --record-process NAME --max-collect-sec 5, with "
		"--thread-time for waiting threads");
}

void thread_stacks_close(struct thread_stacks *s)
{
	(void)s;
}

int thread_stacks_refresh(struct thread_stacks *s, struct err *err)
{
	(void)s;
	return err_set(err, ERR_UNSUPPORTED, "not available on Linux");
}

int thread_stacks_take(struct thread_stacks *s, uint64_t idle_ns, thread_stack_fn *tell, void *ctx,
		       struct err *err)
{
	(void)s;
	(void)idle_ns;
	(void)tell;
	(void)ctx;
	return err_set(err, ERR_UNSUPPORTED, "not available on Linux");
}

void thread_stacks_use(const struct thread_stacks *s, struct thread_stacks_use *out)
{
	(void)s;
	memset(out, 0, sizeof(*out));
}

const char *thread_stacks_path(const struct thread_stacks *s)
{
	(void)s;
	return "";
}
