#include "source/stopped/target_threads_windows.h"

#include "base/array.h"
#include "base/bytes.h"
#include "base/os.h"
#include "base/os_windows.h"
#include "source/host/by_id_windows.h"
#include "source/stopped/target_images_windows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <windows.h>
#include <tlhelp32.h>
#include <winternl.h>

/*
 * StackBase of NT_TIB; DeallocationStack, the start of the reserved memory (x64, x86). The 32-bit
 * TEB knows its own address; where it is, the other says since Windows 10 in WowTebOffset, and
 * before in ExceptionList.
 */
enum {
	TEB_STACK_BASE = 8, TEB_DEALLOCATION_STACK = 0x1478, TEB_WOW_TEB_OFFSET = 0x180c,
	TEB32_STACK_BASE = 4, TEB32_SELF = 0x18, TEB32_DEALLOCATION_STACK = 0xe0c,
	CS_64_BIT = 0x33,
};

/* For ThreadBasicInformation; winternl.h lacks it. */
struct thread_basic {
	NTSTATUS exit_status;
	void *teb;
	HANDLE process, thread;
	ULONG_PTR affinity;
	LONG priority, base_priority;
};

typedef HRESULT WINAPI get_description(HANDLE thread, PWSTR *text);

/* ---- the list -------------------------------------------------------------------------------- */

static void close_thread(struct target_thread *thread)
{
	if (thread->handle)
		CloseHandle(thread->handle);
}

void target_threads_close(struct target_threads *t)
{
	uint32_t i;

	for (i = 0; i < t->n; i++)
		close_thread(&t->all[i]);
	free(t->all);
	memset(t, 0, sizeof(*t));
}

/* Exists from Windows 10 1607 on; looked up, so that this program runs on older systems. */
static void read_name(struct target_thread *thread)
{
	FARPROC found = GetProcAddress(GetModuleHandleW(L"kernel32.dll"), "GetThreadDescription");
	get_description *get;
	struct buf text = {0};
	PWSTR wide = NULL;

	memcpy(&get, &found, sizeof(get));
	thread->name[0] = '\0';
	if (!get || !thread->handle || get(thread->handle, &wide) < 0 || !wide)
		return;
	wide_put(&text, wide);
	snprintf(thread->name, sizeof(thread->name), "%s", buf_text(&text));
	buf_free(&text);
	LocalFree(wide);
}

static bool read_small(const struct target_threads *t, uint64_t address, unsigned n, uint64_t *out)
{
	uint8_t bytes[8];

	if (target_read(t->process, address, bytes, n) != n)
		return false;
	*out = le_sized(bytes, n);
	return true;
}

static void find_teb32(const struct target_threads *t, struct target_thread *thread)
{
	uint64_t offset = 0, list = 0, at[2], self;
	unsigned i;

	read_small(t, thread->teb + TEB_WOW_TEB_OFFSET, 4, &offset);
	read_small(t, thread->teb, 4, &list);
	at[0] = thread->teb + (uint64_t)(int64_t)(int32_t)offset;
	at[1] = list;
	for (i = 0; i < 2 && !thread->teb32; i++)
		if (at[i] && at[i] <= UINT32_MAX && read_small(t, at[i] + TEB32_SELF, 4, &self) &&
		    self == at[i])
			thread->teb32 = at[i];
}

static void read_teb(const struct target_threads *t, struct target_thread *thread)
{
	struct thread_basic basic = {0};

	if (thread->handle && NtQueryInformationThread(thread->handle, (THREADINFOCLASS)0, &basic,
						       sizeof(basic), NULL) >= 0)
		thread->teb = (uint64_t)(uintptr_t)basic.teb;
	if (thread->teb && t->is_wow64)
		find_teb32(t, thread);
}

static void open_thread(struct target_threads *t, struct target_thread *thread)
{
	thread->handle = OpenThread(THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT |
					    THREAD_QUERY_INFORMATION | SYNCHRONIZE,
				    FALSE, thread->tid);
	/* The thread may have ended meanwhile, and its id may belong to another process now. */
	if (thread->handle && GetProcessIdOfThread(thread->handle) != t->pid) {
		CloseHandle(thread->handle);
		thread->handle = NULL;
	}
	read_teb(t, thread);
}

static int note_thread(struct target_threads *t, uint32_t tid, struct err *err)
{
	uint32_t at = by_id_find(t->all, sizeof(*t->all), t->n, tid);

	if (at < t->n && t->all[at].tid == tid && !by_id_has_ended(t->all[at].handle)) {
		t->all[at].round = t->round;
		read_name(&t->all[at]);
		return 0;
	}
	if (t->n >= TARGET_THREADS_MAX || (at < t->n && t->all[at].tid == tid))
		return 0;
	if (ARRAY_ROOM(t->all, t->room, t->n + 1))
		return err_memory(err, "for the threads of process %u", (unsigned)t->pid);
	memmove(&t->all[at + 1], &t->all[at], (t->n - at) * sizeof(*t->all));
	t->all[at] = (struct target_thread){.tid = tid, .round = t->round};
	t->n++;
	open_thread(t, &t->all[at]);
	read_name(&t->all[at]);
	return 0;
}

int target_threads_refresh(struct target_threads *t, struct err *err)
{
	HANDLE list = CreateToolhelp32Snapshot(TH32CS_SNAPTHREAD, 0);
	THREADENTRY32 entry = {.dwSize = sizeof(entry)};
	uint32_t i, kept = 0;
	BOOL more;
	int rc = 0;

	if (list == INVALID_HANDLE_VALUE)
		return err_os(err, "cannot list the threads of process %u", (unsigned)t->pid);
	t->round++;
	for (more = Thread32First(list, &entry); more && !rc; more = Thread32Next(list, &entry))
		if (entry.th32OwnerProcessID == t->pid)
			rc = note_thread(t, entry.th32ThreadID, err);
	CloseHandle(list);
	for (i = 0; i < t->n; i++) {
		if (rc || t->all[i].round == t->round)
			t->all[kept++] = t->all[i];
		else
			close_thread(&t->all[i]);
	}
	t->n = kept;
	return rc;
}

/* ---- one thread ------------------------------------------------------------------------------ */

/* Read the bounds again if the stack pointer lies outside: fibers change the stack. */
static bool find_bounds(struct target_threads *t, struct target_thread *thread, uint64_t sp,
			bool is_32_bit)
{
	uint64_t *low = is_32_bit ? &thread->low32 : &thread->stack_low;
	uint64_t *base = is_32_bit ? &thread->base32 : &thread->stack_base;
	uint64_t teb = is_32_bit ? thread->teb32 : thread->teb;
	unsigned n = is_32_bit ? 4 : 8;

	if (sp >= *low && sp < *base)
		return true;
	if (!teb ||
	    !read_small(t, teb + (is_32_bit ? TEB32_STACK_BASE : TEB_STACK_BASE), n, base) ||
	    !read_small(t, teb + (is_32_bit ? TEB32_DEALLOCATION_STACK : TEB_DEALLOCATION_STACK),
			n, low))
		*low = *base = 0;
	return sp >= *low && sp < *base;
}

static void copy_stack(struct target_threads *t, struct target_thread *thread,
		       struct pe_stack *out)
{
	uint64_t sp = out->regs.r[PE_RSP], n;

	out->start = sp;
	if (!find_bounds(t, thread, sp, out->is_32_bit))
		return;
	n = (out->is_32_bit ? thread->base32 : thread->stack_base) - sp;
	out->cut = n > TARGET_STACK_MAX_BYTES;
	out->nbytes = (uint32_t)target_read(t->process, sp, out->bytes,
					    out->cut ? TARGET_STACK_MAX_BYTES : (size_t)n);
}

/*
 * Between 32-bit and 64-bit code a few instructions of wow64cpu.dll save the registers: what is
 * saved is old, as long as the stack pointer, which is still in RSP or R14, is another one. (Seen
 * in Wine 8; it returns to the word at R14.) The caller knows if Rip is in that library.
 */
static bool may_be_switching(const struct target_thread *thread, const CONTEXT *native,
			     uint64_t esp)
{
	uint64_t low = thread->low32, size = thread->base32 - low;

	return native->Rsp - low < size ||
	       (native->R14 - low < size && native->R14 != esp && native->R14 + 4 != esp);
}

/* The registers of its 32-bit code, which it may have left for 64-bit code. */
static bool get_32_bit(struct target_threads *t, struct target_thread *thread,
		       const CONTEXT *native, struct pe_stack *out)
{
	WOW64_CONTEXT c = {.ContextFlags = WOW64_CONTEXT_CONTROL | WOW64_CONTEXT_INTEGER};
	uint64_t *r = out->regs.r;
	unsigned i;

	if (!thread->teb32)
		return false;
	if (native->SegCs != CS_64_BIT) {
		memcpy(r, &native->Rax, sizeof(out->regs.r));
		for (i = 0; i < PE_REGISTERS; i++)
			r[i] &= UINT32_MAX;
		out->regs.rip = native->Rip & UINT32_MAX;
		return true;
	}
	if (!Wow64GetThreadContext(thread->handle, &c) || !c.Eip ||
	    !find_bounds(t, thread, c.Esp, true))
		return false;
	r[PE_RAX] = c.Eax, r[PE_RCX] = c.Ecx, r[PE_RDX] = c.Edx, r[PE_RBX] = c.Ebx;
	r[PE_RSP] = c.Esp, r[PE_RBP] = c.Ebp, r[PE_RSI] = c.Esi, r[PE_RDI] = c.Edi;
	out->regs.rip = c.Eip;
	if (may_be_switching(thread, native, c.Esp))
		out->switching = native->Rip;
	return true;
}

int target_thread_copy(struct target_threads *t, struct target_thread *thread,
		       struct pe_stack *out)
{
	CONTEXT context
		__attribute__((aligned(16))) = {.ContextFlags = CONTEXT_CONTROL | CONTEXT_INTEGER};
	bool has_context;

	if (!thread->handle)
		return ERR_ACCESS;
	out->nbytes = 0;
	out->cut = false;
	out->switching = 0;
	out->time_ns = os_now_ns();
	if (SuspendThread(thread->handle) == (DWORD)-1)
		return by_id_has_ended(thread->handle) ? ERR_NOT_FOUND : ERR_ACCESS;
	has_context = GetThreadContext(thread->handle, &context);
	if (has_context) {
		out->is_32_bit = get_32_bit(t, thread, &context, out);
		if (!out->is_32_bit) {
			memcpy(out->regs.r, &context.Rax, sizeof(out->regs.r));
			out->regs.rip = context.Rip;
		}
		out->regs.interrupted = true;
		copy_stack(t, thread, out);
	}
	if (ResumeThread(thread->handle) == (DWORD)-1)
		t->not_resumed++;
	out->suspended_ns = os_now_ns() - out->time_ns;
	if (out->suspended_ns > t->longest_ns)
		t->longest_ns = out->suspended_ns;
	return has_context ? 0 : by_id_has_ended(thread->handle) ? ERR_NOT_FOUND : ERR_ACCESS;
}

static uint64_t ns_of(const FILETIME *time)
{
	return ((uint64_t)time->dwHighDateTime << 32 | time->dwLowDateTime) * 100;
}

bool target_thread_cpu(struct target_thread *thread, uint64_t *since_ns)
{
	FILETIME created, ended, kernel, user;
	uint64_t now_ns;

	if (!thread->handle || !GetThreadTimes(thread->handle, &created, &ended, &kernel, &user))
		return false;
	now_ns = ns_of(&kernel) + ns_of(&user);
	*since_ns = now_ns > thread->cpu_ns ? now_ns - thread->cpu_ns : 0;
	thread->cpu_ns = now_ns;
	return true;
}
