/*
 * Unwinding this very process, through functions without frame pointers, the C library and signal
 * frames, and comparing with backtrace(3), which reads the same tables by other code.
 */
#include "base/os.h"
#include "tests/support/test.h"
#include "tests/support/unwind_file.h"
#include "unwind/unwind.h"

#include <execinfo.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#ifndef __clang__
#pragma GCC optimize("omit-frame-pointer")
#endif
#define NOINLINE __attribute__((noinline, noclone))
#ifdef __clang__
#undef NOINLINE
#define NOINLINE __attribute__((noinline))
#endif

enum { MAPPINGS_MAX = 64, STACK_COPY = 16384, STACK_COPY_MAX = 1 << 20, DEPTH_MAX = 512 };

/* ---- what is mapped -------------------------------------------------------------------------- */

struct mapping {
	uint64_t start, end, offset;
	char path[200];
	struct unwind_file file;
};

static struct mapping mappings[MAPPINGS_MAX];
static unsigned nmappings;
static struct object here = {.key = {.kind = OBJECT_ELF}};
static struct object nowhere = {.key = {.kind = OBJECT_UNKNOWN}};

static void read_mappings(void)
{
	FILE *in = fopen("/proc/self/maps", "r");
	char line[600];

	assert_non_null(in);
	while (fgets(line, sizeof(line), in) && nmappings < MAPPINGS_MAX) {
		struct mapping *m = &mappings[nmappings];
		char perms[5];

		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %*s %*s %199s", &m->start,
			   &m->end, perms, &m->offset, m->path) != 5 || perms[2] != 'x')
			continue;
		unwind_file_open(m->path, UNWIND_FILE_SECTIONS, &m->file);
		nmappings++;
	}
	fclose(in);
}

static void find(void *ctx, uint64_t address, bool kernel, struct unwind_place *out)
{
	unsigned i;

	(void)ctx;
	(void)kernel;
	out->ref.object = &nowhere;
	for (i = 0; i < nmappings; i++) {
		const struct mapping *m = &mappings[i];

		if (address < m->start || address >= m->end)
			continue;
		out->ref.object = &here;
		out->tables = m->file.tables;
		out->vaddr = unwind_file_vaddr(&m->file, address - m->start + m->offset);
	}
}

/* ---- a sample of this thread ----------------------------------------------------------------- */

struct sample {
	uint64_t regs[17];              /* perf's order of UNWIND_MASK */
	uint64_t stack[STACK_COPY_MAX / 8];
	uint32_t stack_bytes;
	void *expected[DEPTH_MAX];
	int nexpected;
};

#define UNWIND_MASK 0xff01ffu           /* 16 registers and RIP */

static struct sample sample;
static struct unwinder *unwinder;
static struct unwind_stack got;
static uint64_t stack_top;

static void find_stack_top(void)
{
	pthread_attr_t attr;
	void *start;
	size_t bytes;

	assert_int_equal(pthread_getattr_np(pthread_self(), &attr), 0);
	pthread_attr_getstack(&attr, &start, &bytes);
	pthread_attr_destroy(&attr);
	stack_top = (uint64_t)(uintptr_t)start + bytes;
}

/* Word by word, as a sanitizer would not let memcpy() do. */
__attribute__((no_sanitize("address"))) static void copy_words(volatile uint64_t *to, uint64_t from,
							       uint32_t bytes)
{
	const volatile uint64_t *at = (const volatile uint64_t *)(uintptr_t)from;
	uint32_t i;

	for (i = 0; i < bytes / 8; i++)
		to[i] = at[i];
}

static void take_sample(const ucontext_t *uc, uint32_t max_bytes)
{
	static const int order[17] = {REG_RAX, REG_RBX, REG_RCX, REG_RDX, REG_RSI, REG_RDI, REG_RBP,
				      REG_RSP, REG_RIP, REG_R8, REG_R9, REG_R10, REG_R11, REG_R12,
				      REG_R13, REG_R14, REG_R15};
	uint64_t rsp = (uint64_t)uc->uc_mcontext.gregs[REG_RSP];
	unsigned i;

	for (i = 0; i < 17; i++)
		sample.regs[i] = (uint64_t)uc->uc_mcontext.gregs[order[i]];
	sample.stack_bytes = stack_top - rsp < max_bytes ? (uint32_t)(stack_top - rsp) : max_bytes;
	copy_words(sample.stack, rsp, sample.stack_bytes);
}

static size_t read_own(void *ctx, uint64_t address, void *to, size_t n)
{
	(void)ctx;
	if (address >= stack_top)
		return 0;
	if (n > stack_top - address)
		n = (size_t)(stack_top - address);
	copy_words(to, address, (uint32_t)n);
	return n;
}

static void walk(bool remote, struct unwind_memory *memory)
{
	struct unwind_caller caller = {.find = find, .read = remote ? read_own : NULL};
	struct unwind_input in = {.user_expected = true, .regs_abi = 2, .regs = sample.regs,
				  .regs_mask = UNWIND_MASK, .stack = (const uint8_t *)sample.stack,
				  .stack_bytes = sample.stack_bytes};

	unwinder_walk(unwinder, &in, &caller, memory, &got);
}

static uint64_t frame_ip(uint32_t n)
{
	return got.frames[n].offset + (got.frames[n].flags & FRAME_RETURN_ADDRESS ? 1 : 0);
}

/* The walk's frames from `skip` on are backtrace()'s from `skip_expected` on. */
static bool is_as_expected(uint32_t skip, int skip_expected)
{
	uint32_t i;

	if (sample.nexpected - skip_expected != (int)(got.nframes - skip))
		return false;
	for (i = skip; i < got.nframes; i++) {
		const void *expected = sample.expected[(int)(i - skip) + skip_expected];

		if (frame_ip(i) != (uint64_t)(uintptr_t)expected)
			return false;
	}
	return true;
}

static void print_both(void)
{
	int i;

	printf("quality %s\n", stack_quality_text(got.quality));
	for (i = 0; i < sample.nexpected || i < (int)got.nframes; i++)
		printf("%2d %16" PRIx64 " %p\n", i,
		       i < (int)got.nframes ? frame_ip((uint32_t)i) : 0,
		       i < sample.nexpected ? sample.expected[i] : NULL);
}

static volatile bool read_remotely;          /* also read in signal handlers */

/*
 * From here, with all that called it. The first frame is this function, at two places of it. Walked
 * at once, as remote reading needs the stack to be there.
 */
NOINLINE static void stop_and_look(uint32_t max_bytes)
{
	ucontext_t uc;

	sample.nexpected = backtrace(sample.expected, DEPTH_MAX);
	getcontext(&uc);
	take_sample(&uc, max_bytes);
	walk(read_remotely, NULL);
}

/* A sanitizer's backtrace() has a frame of its own first. */
static void assert_same_as_backtrace(enum stack_quality quality)
{
	if ((!is_as_expected(1, 1) && !is_as_expected(1, 2)) || got.quality != quality) {
		print_both();
		fail();
	}
}

/* ---- ways to get there ----------------------------------------------------------------------- */

static volatile int sink;

static int compare_once(const void *a, const void *b)
{
	static bool looked;

	if (!looked)
		stop_and_look(STACK_COPY);
	looked = true;
	return *(const int *)a - *(const int *)b;
}

NOINLINE static void by_qsort(void)
{
	int numbers[20] = {3, 1, 2};

	qsort(numbers, 20, sizeof(numbers[0]), compare_once);
	sink = numbers[0];
}

TEST(through_functions_without_frame_pointers)
{
	by_qsort();
	assert_same_as_backtrace(QUALITY_COMPLETE);
	assert_int_equal(got.nframe_pointer, 0);
	assert_in_range(got.nframes, 8, 40);
}

NOINLINE static void realigned(int n)
{
	_Alignas(64) char aligned[128];
	volatile char variable[(size_t)n];      /* only an expression leads from it */

	memset(aligned, n, sizeof(aligned));
	variable[0] = aligned[5];
	stop_and_look(STACK_COPY);
	sink = variable[0];
}

TEST(through_a_realigned_stack)
{
	realigned(100);
	assert_same_as_backtrace(QUALITY_COMPLETE);
}

static void on_signal(int number)
{
	(void)number;
	stop_and_look(STACK_COPY);
}

NOINLINE static void raise_signal(void)
{
	raise(SIGUSR1);
	sink++;
}

TEST(through_a_signal_frame)
{
	struct sigaction action = {.sa_handler = on_signal};

	sigaction(SIGUSR1, &action, NULL);
	raise_signal();
	assert_same_as_backtrace(QUALITY_COMPLETE);
}

/* Alternate stack: the interrupted one is not in the copy, it is read as from another process. */
TEST(through_a_handler_on_its_own_stack)
{
	static char room[1 << 16];
	struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_ONSTACK};
	stack_t own = {.ss_sp = room, .ss_size = sizeof(room)}, none = {.ss_flags = SS_DISABLE};

	sigaltstack(&own, NULL);
	sigaction(SIGUSR1, &action, NULL);
	read_remotely = true;
	raise_signal();
	read_remotely = false;
	sigaltstack(&none, NULL);
	assert_same_as_backtrace(QUALITY_REMOTE);
}

NOINLINE static void recurse(unsigned n, uint32_t max_bytes)
{
	volatile char big[2000];

	big[0] = (char)n;
	if (n)
		recurse(n - 1, max_bytes);
	else
		stop_and_look(max_bytes);
	sink = big[0];
}

/* The top of the stack is this thread's own while it runs. */
static void *deep_thread(void *ctx)
{
	struct unwind_memory *memory = ctx;

	find_stack_top();
	recurse(100, STACK_COPY);
	assert_int_equal(got.quality, QUALITY_TRUNCATED);
	assert_in_range(got.nframes, 6, 30);
	read_remotely = true;
	recurse(100, STACK_COPY);
	read_remotely = false;
	assert_same_as_backtrace(QUALITY_REMOTE);

	recurse(100, STACK_COPY_MAX);
	walk(false, memory);
	assert_same_as_backtrace(QUALITY_COMPLETE);
	sample.stack_bytes = STACK_COPY;
	walk(false, memory);
	assert_same_as_backtrace(QUALITY_STITCHED);
	return NULL;
}

TEST(thread_with_a_200_kib_stack)
{
	static struct unwind_memory memory;
	pthread_t thread;

	assert_int_equal(pthread_create(&thread, NULL, deep_thread, &memory), 0);
	pthread_join(thread, NULL);
	find_stack_top();
	assert_in_range(memory.npairs, 100, 110);
}

/* ---- interrupted anywhere -------------------------------------------------------------------- */

static volatile unsigned nsamples, ncomplete, nequal;

/* backtrace() sees: this handler, the restorer, the interrupted instruction, its callers. */
static void on_timer(int number, siginfo_t *info, void *context)
{
	const ucontext_t *uc = context;
	int i;

	(void)number;
	(void)info;
	take_sample(uc, STACK_COPY);
	sample.nexpected = backtrace(sample.expected, DEPTH_MAX);
	walk(false, NULL);
	nsamples++;
	ncomplete += got.quality == QUALITY_COMPLETE;
	for (i = 0; i < sample.nexpected; i++) {
		if ((uint64_t)(uintptr_t)sample.expected[i] == sample.regs[8])
			break;
	}
	nequal += is_as_expected(0, i);
}

static int by_value(const void *a, const void *b)
{
	return *(const int *)a - *(const int *)b;
}

NOINLINE static void work(void)
{
	int numbers[300], i;
	char text[64];

	for (i = 0; i < 300; i++) {
		snprintf(text, sizeof(text), "%d %g", rand(), i / 7.0);
		numbers[i] = (int)(strtod(text, NULL) / 2 + (double)strlen(text)) + (sink & 1);
	}
	qsort(numbers, 300, sizeof(numbers[0]), by_value);
	sink ^= numbers[7];
}

/* Where backtrace(3) stops early (it knows nothing of popped RBPs), we need not. */
TEST(interrupted_at_any_instruction)
{
	struct sigaction action = {.sa_sigaction = on_timer, .sa_flags = SA_SIGINFO | SA_RESTART};
	struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR2};
	struct itimerspec each = {{0, 200000}, {0, 200000}};
	uint64_t end = os_now_ns() + NS_PER_SEC / 2;
	timer_t timer;

	sigaction(SIGUSR2, &action, NULL);
	assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
	timer_settime(timer, 0, &each, NULL);
	while (os_now_ns() < end || nsamples < 100)
		work();
	timer_delete(timer);
	printf("%u interrupts: %u complete, %u as backtrace(3)\n", nsamples, ncomplete, nequal);
	assert_true(ncomplete >= nsamples - nsamples / 100);
	assert_true(nequal >= nsamples - nsamples / 50);
}

/* ---- speed ----------------------------------------------------------------------------------- */

static int compare_deep(const void *a, const void *b)
{
	static bool looked;

	if (!looked)
		recurse(4, STACK_COPY);
	looked = true;
	return *(const int *)a - *(const int *)b;
}

TEST(speed_is_printed)
{
	enum { ROUNDS = 100000 };
	struct unwinder *fresh = NULL, *warm = unwinder;
	int numbers[20] = {1}, i;
	uint64_t start;

	qsort(numbers, 20, sizeof(numbers[0]), compare_deep);
	walk(false, NULL);
	start = os_now_ns();
	for (i = 0; i < ROUNDS; i++)
		walk(false, NULL);
	printf("%u frames, %s, rules cached: %.2f us per stack\n", got.nframes,
	       stack_quality_text(got.quality), (double)(os_now_ns() - start) / ROUNDS / 1000);
	assert_int_equal(unwinder_new(0, &fresh, NULL), 0);
	unwinder = fresh;
	start = os_now_ns();
	walk(false, NULL);
	printf("first time: %.2f us\n", (double)(os_now_ns() - start) / 1000);
	unwinder = warm;
	unwinder_free(fresh);
}

static int set_up(void **state)
{
	void *first[4];

	(void)state;
	backtrace(first, 4);                    /* loads libgcc_s */
	read_mappings();
	find_stack_top();
	return unwinder_new(512 << 10, &unwinder, NULL);
}

static int tear_down(void **state)
{
	unsigned i;

	(void)state;
	for (i = 0; i < nmappings; i++)
		unwind_file_close(&mappings[i].file);
	unwinder_free(unwinder);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(through_functions_without_frame_pointers),
		cmocka_unit_test(through_a_realigned_stack),
		cmocka_unit_test(through_a_signal_frame),
		cmocka_unit_test(through_a_handler_on_its_own_stack),
		cmocka_unit_test(thread_with_a_200_kib_stack),
		cmocka_unit_test(interrupted_at_any_instruction),
		cmocka_unit_test(speed_is_printed),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
