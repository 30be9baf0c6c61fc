#include "base/os.h"

#include "base/array.h"
#include "base/os_windows.h"

#include <process.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

struct os_thread {
	HANDLE handle;
	os_thread_main *run;
	void *ctx;
	char name[16];
	_Atomic bool shared;        /* freed by its end or os_thread_leave(), whichever is second */
};

/* From Windows 10 1607 on: first in kernelbase.dll, later in kernel32.dll; before it, no names. */
typedef HRESULT WINAPI set_thread_description(HANDLE thread, const wchar_t *name);

static void name_thread(const char *name)
{
	static const wchar_t *const modules[] = {L"kernel32.dll", L"kernelbase.dll"};
	set_thread_description *set = NULL;
	wchar_t *text = wide_text(name);
	size_t i;

	for (i = 0; !set && i < COUNT_OF(modules); i++) {
		HMODULE module = GetModuleHandleW(modules[i]);

		if (module)
			set = (set_thread_description *)(void (*)(void))
				GetProcAddress(module, "SetThreadDescription");
	}
	if (set && text)
		set(GetCurrentThread(), text);
	free(text);
}

static unsigned __stdcall thread_main(void *arg)
{
	struct os_thread *thread = arg;

	name_thread(thread->name);
	thread->run(thread->ctx);
	if (atomic_exchange(&thread->shared, true))
		free(thread);
	return 0;
}

int os_thread_start(const char *name, os_thread_main *run, void *ctx, struct os_thread **out,
		    struct err *err)
{
	struct os_thread *thread = calloc(1, sizeof(*thread));

	if (!thread)
		return err_memory(err, "while starting the %s thread", name);
	thread->run = run;
	thread->ctx = ctx;
	snprintf(thread->name, sizeof(thread->name), "%s", name);
	/* Not CreateThread(): the C runtime keeps data for each thread that uses it. */
	thread->handle = (HANDLE)_beginthreadex(NULL, 0, thread_main, thread, 0, NULL);
	if (!thread->handle) {
		free(thread);
		return err_set(err, ERR_LIMIT,
			       "cannot start the %s thread: the system allows no more", name);
	}
	*out = thread;
	return 0;
}

void os_thread_join(struct os_thread *thread)
{
	if (!thread)
		return;
	WaitForSingleObject(thread->handle, INFINITE);
	CloseHandle(thread->handle);
	free(thread);
}

bool os_thread_join_within(struct os_thread *thread, uint64_t timeout_ns)
{
	if (WaitForSingleObject(thread->handle, wait_ms(timeout_ns)) != WAIT_OBJECT_0)
		return false;
	CloseHandle(thread->handle);
	free(thread);
	return true;
}

void os_thread_leave(struct os_thread *thread)
{
	CloseHandle(thread->handle);
	if (atomic_exchange(&thread->shared, true))
		free(thread);
}

uint64_t os_thread_cpu_ns(void)
{
	FILETIME begun, ended, kernel, user;
	const uint64_t high = UINT64_C(1) << 32;

	if (!GetThreadTimes(GetCurrentThread(), &begun, &ended, &kernel, &user))
		return 0;
	return 100 * (high * ((uint64_t)kernel.dwHighDateTime + user.dwHighDateTime) +
		      kernel.dwLowDateTime + user.dwLowDateTime);
}

void os_thread_priority(enum os_priority priority)
{
	HANDLE self = GetCurrentThread();

	/* Background mode is the only one that lowers disk and memory priority too. */
	if (priority >= OS_PRIORITY_WRITER) {
		if (!SetThreadPriority(self, THREAD_MODE_BACKGROUND_BEGIN))
			SetThreadPriority(self, THREAD_PRIORITY_LOWEST);
		return;
	}
	SetThreadPriority(self, THREAD_MODE_BACKGROUND_END);
	SetThreadPriority(self, priority == OS_PRIORITY_HIGH ? THREAD_PRIORITY_HIGHEST :
							       THREAD_PRIORITY_NORMAL);
}

/* Only the thread itself can leave background mode. */
void os_thread_hurry(struct os_thread *thread)
{
	SetThreadPriority(thread->handle, THREAD_PRIORITY_HIGHEST);
}

/* Cycles are exact; where there are none (Wine), times count by the clock's tick. */
bool os_thread_waits(const struct os_thread *thread, uint64_t *progress)
{
	FILETIME created, ended, kernel = {0}, user = {0};
	ULONG64 cycles;

	if (QueryThreadCycleTime(thread->handle, &cycles)) {
		*progress = cycles;
		return true;
	}
	GetThreadTimes(thread->handle, &created, &ended, &kernel, &user);
	*progress = (uint64_t)kernel.dwLowDateTime + user.dwLowDateTime;
	return true;
}

void os_thread_state_text(const struct os_thread *thread, char out[OS_THREAD_WAITS_BYTES])
{
	(void)thread;
	snprintf(out, OS_THREAD_WAITS_BYTES, "waits or runs");
}

/* Both kinds need no clean-up and cannot fail; they are on the heap because os.h hides them. */
struct os_mutex {
	SRWLOCK lock;
};

struct os_cond {
	CONDITION_VARIABLE variable;
};

struct os_mutex *os_mutex_new(void)
{
	struct os_mutex *m = calloc(1, sizeof(*m));

	if (m)
		InitializeSRWLock(&m->lock);
	return m;
}

void os_mutex_free(struct os_mutex *m)
{
	free(m);
}

void os_mutex_lock(struct os_mutex *m)
{
	AcquireSRWLockExclusive(&m->lock);
}

void os_mutex_unlock(struct os_mutex *m)
{
	ReleaseSRWLockExclusive(&m->lock);
}

struct os_cond *os_cond_new(void)
{
	struct os_cond *c = calloc(1, sizeof(*c));

	if (c)
		InitializeConditionVariable(&c->variable);
	return c;
}

void os_cond_free(struct os_cond *c)
{
	free(c);
}

void os_cond_signal(struct os_cond *c)
{
	WakeConditionVariable(&c->variable);
}

void os_cond_broadcast(struct os_cond *c)
{
	WakeAllConditionVariable(&c->variable);
}

bool os_cond_wait(struct os_cond *c, struct os_mutex *m, uint64_t timeout_ns)
{
	return SleepConditionVariableSRW(&c->variable, &m->lock, wait_ms(timeout_ns), 0);
}
