/*
 * librecorder-heap.so: a sampler of allocations for programs that are started with
 * LD_PRELOAD=.../librecorder-heap.so (recorder run --heap). It tells of what it samples by two
 * probes, the USDT contract otel_memory. Without a listener a probe is a nop. Where the recorder
 * that started the program shares a ring with it, samples go there, and by probes when it is full.
 *
 *	otel_memory:alloc(pointer, size, weight)     a sampled allocation; weight in bytes
 *	otel_memory:free(pointer)                    that one is freed
 *
 * Sampling is a Poisson process over the allocated bytes: each byte is a hit with probability
 * 1 / MEAN, and an allocation weighs hits * MEAN, so sums of weights are unbiased. MEAN is 512 KB
 * or RECORDER_HEAP_BYTES. A realloc is a free and an allocation. Which pointers are sampled stands
 * in a fixed set; a counter per hash, in one load, leaves nearly all others out. If the set is full
 * around a hash, the allocation is not sampled.
 *
 *	recorder_heap:double_free(pointer)           a sampled block that was freed already
 *	recorder_heap:unknown_free(pointer)          a pointer that no allocation gave
 *
 * A sampled block of HELD_BYTES_MAX at most goes back to the allocator only when HELD_MAX others
 * were freed: until then nobody else gets its address, so a second free of it is a mistake for
 * certain. Both frees then reach the allocator, which may end the program as it does without this
 * library. With a mean of 1 byte each allocation is sampled; as long as the set has room for all,
 * a pointer that is not in it is unknown.
 *
 * It stands in for malloc and its kin and passes on to the next ones, of any allocator. Any thread;
 * it allocates nothing, waits for no lock and logs nothing. x86-64, glibc or musl.
 */
#include "source/ring/heap_ring.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define EXPORT __attribute__((visibility("default")))
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define MEAN_BYTES (512 << 10)
#define EARLY_BYTES 65536u                   /* for dlsym() itself, before malloc is known */
#define COUNTERS_BITS 16u
#define SET_BITS 18u
#define PROBES_AT_MOST 64u                   /* places of the set where a pointer may be */
#define REMOVED ((uintptr_t)1)
#define HELD_BIT ((uintptr_t)2)              /* of a pointer in the set: freed, and held back */
#define HELD_MAX 1024u
#define HELD_BYTES_MAX 4096u
#define HITS_DRAWN 64u                       /* more hits of one allocation are not drawn each */
#define PAGE_BYTES 4096u
#define STACK_BYTES 8184u                    /* copied at most, as probes do */
#define MAIN_STACK_BYTES (8u << 20)          /* less than what is free below it */

static void *first_malloc(size_t size);
static void first_free(void *p);
static void *first_calloc(size_t n, size_t size);
static void *first_realloc(void *p, size_t size);

/* The first four stand in until begin() has found them, so that calls need not look. */
static struct {
	void *(*malloc)(size_t);
	void (*free)(void *);
	void *(*calloc)(size_t, size_t);
	void *(*realloc)(void *, size_t);
	void *(*aligned_alloc)(size_t, size_t);
	void *(*memalign)(size_t, size_t);
	int (*posix_memalign)(void **, size_t, size_t);
	void *(*valloc)(size_t);
	void *(*pvalloc)(size_t);
	size_t (*usable_size)(void *);
} next = {first_malloc, first_free, first_calloc, first_realloc, 0, 0, 0, 0, 0, 0};

static uint64_t mean = MEAN_BYTES;
static bool off;                             /* it is not meant */
/* Of sampled pointers, by hash; 255 stays. */
static _Atomic uint8_t counters[1u << COUNTERS_BITS];
static _Atomic uintptr_t set[1u << SET_BITS];            /* 0 = never used */
static _Atomic uintptr_t held[HELD_MAX];                 /* the blocks that are held back */
static _Atomic unsigned held_hand;
static _Atomic bool knows_all;                           /* every block is in the set */

struct random {
	uint64_t left;                       /* this byte from now on is the next hit */
	uint64_t state;                      /* 0 = this thread has not begun */
};
static _Thread_local struct random random_here __attribute__((tls_model("initial-exec")));

static _Alignas(16) char early[EARLY_BYTES];
static _Atomic size_t early_used;

/* ---- the ring -------------------------------------------------------------------------------- */

enum { ALLOC = 1, FREE };                    /* enum heap_probe */

static struct heap_ring *ring;               /* NULL = none */
static _Atomic uint32_t *own_pid;            /* a page that is zero again in a process that forks */
static _Thread_local struct {
	uint32_t pid, tid;
} thread_here __attribute__((tls_model("initial-exec")));

extern void *__libc_stack_end __attribute__((weak));     /* of the main thread; glibc */

/* PERF_RECORD_SAMPLE: perf_event_open(2). Registers in the order of asm/perf_regs.h. */
enum { AX, BX, CX, DX, SI, DI, BP, SP, IP, R8, R9, R10, R11, R12, R13, R14, R15, NREGS };
struct record {
	struct perf_event_header header;
	uint64_t identifier, ip;
	uint32_t pid, tid;
	uint64_t time_ns;
	uint32_t cpu, unused;
	uint64_t nchain;
	uint32_t raw_bytes, raw;
	uint64_t abi, regs[NREGS], stack_bytes;
};

/* Where it is, with what its callers need back. */
static inline __attribute__((always_inline)) void take_regs(uint64_t *regs)
{
	regs[AX] = regs[CX] = regs[DX] = regs[SI] = regs[R8] = regs[R9] = regs[R10] = regs[R11] = 0;
	__asm__ volatile("movq %%rbx, 8(%0)\n\tmovq %%rbp, 48(%0)\n\tmovq %%rsp, 56(%0)\n\t"
			 "leaq (%%rip), %%rax\n\tmovq %%rax, 64(%0)\n\t"
			 "movq %%r12, 104(%0)\n\tmovq %%r13, 112(%0)\n\t"
			 "movq %%r14, 120(%0)\n\tmovq %%r15, 128(%0)"
			 : : "r"(regs) : "rax", "memory");
}

/* The kernel reads it, and then refuses what is to be done with it: EINVAL. No sandbox minds. */
static bool is_readable(uintptr_t at)
{
	int before = errno;
	bool yes = syscall(SYS_rt_sigprocmask, -1, at, NULL, 8) == 0 || errno != EFAULT;

	errno = before;
	return yes;
}

/* How much of the stack from sp on can be copied: up to the first frame, if that is known. */
static size_t stack_from(uintptr_t sp)
{
	uintptr_t end = &__libc_stack_end ? (uintptr_t)__libc_stack_end : 0, own;
	size_t n = PAGE_BYTES - sp % PAGE_BYTES, most = STACK_BYTES;

	__asm__("movq %%fs:0, %0" : "=r"(own));              /* ends the stacks of other threads */
	if (end - sp < MAIN_STACK_BYTES)
		return end - sp < most ? end - sp : most;
	if (own - sp < most)
		most = own - sp;
	while (n < most && is_readable(sp + n))
		n += PAGE_BYTES;
	return n < most ? n : most;
}

static void who_am_i(uint32_t *pid, uint32_t *tid)
{
	if (UNLIKELY(!atomic_load_explicit(own_pid, memory_order_relaxed)))
		atomic_store(own_pid, (uint32_t)getpid());
	*pid = atomic_load_explicit(own_pid, memory_order_relaxed);
	if (UNLIKELY(thread_here.pid != *pid)) {
		thread_here.tid = (uint32_t)syscall(SYS_gettid);
		thread_here.pid = *pid;
	}
	*tid = thread_here.tid;
}

static void put(uint64_t at, const void *bytes, size_t n)
{
	char *data = (char *)ring + HEAP_RING_PAGE_BYTES;
	size_t from = (size_t)(at % HEAP_RING_DATA_BYTES), here = HEAP_RING_DATA_BYTES - from;

	here = here < n ? here : n;
	memcpy(data + from, bytes, here);
	memcpy(data, (const char *)bytes + here, n - here);
}

/* One writer at a time, as there is one order of time. */
static bool write_record(struct record *r)
{
	size_t stack = stack_from(r->regs[SP]) & ~(size_t)7;
	uint64_t head = atomic_load_explicit(&ring->head, memory_order_relaxed);
	uint64_t tail = atomic_load_explicit(&ring->tail, memory_order_acquire);
	struct timespec now;

	r->header = (struct perf_event_header){PERF_RECORD_SAMPLE, PERF_RECORD_MISC_USER,
					       (uint16_t)(sizeof(*r) + stack + sizeof(stack))};
	if (head - tail + r->header.size > HEAP_RING_DATA_BYTES)
		return false;
	r->stack_bytes = stack;
	put(head + sizeof(*r), (const void *)r->regs[SP], stack);
	put(head + sizeof(*r) + stack, &stack, sizeof(stack));
	/* Last: whoever is put to sleep here must not come late. */
	clock_gettime(CLOCK_MONOTONIC, &now);
	r->time_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
	put(head, r, sizeof(*r));
	atomic_store_explicit(&ring->head, head + r->header.size, memory_order_release);
	return true;
}

/* Its regs are filled. returns  false = by the probe, as the ring is busy, full or not there */
static bool tell(struct record *r, uint64_t what)
{
	bool told;

	if (atomic_exchange_explicit(&ring->busy, 1, memory_order_acquire))
		return false;
	r->identifier = what;
	r->ip = r->regs[IP];
	who_am_i(&r->pid, &r->tid);
	r->cpu = (uint32_t)sched_getcpu();
	r->unused = r->raw = 0;
	r->nchain = 0;
	r->raw_bytes = sizeof(r->raw);
	r->abi = PERF_SAMPLE_REGS_ABI_64;
	told = write_record(r);
	atomic_store_explicit(&ring->busy, 0, memory_order_release);
	return told;
}

static uint64_t inode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? st.st_ino : 0;
}

static void find_ring(void)
{
	const char *text = getenv(HEAP_RING_VARIABLE), *colon = text ? strrchr(text, ':') : NULL;
	size_t bytes = HEAP_RING_PAGE_BYTES + HEAP_RING_DATA_BYTES;
	struct heap_ring *found;
	struct stat st;
	char path[64];
	int fd, seals;

	if (off || !colon || (size_t)(colon - text) >= sizeof(path))
		return;
	snprintf(path, sizeof(path), "%.*s", (int)(colon - text), text);
	/* A number that was used again may be of a device, which is better not opened. */
	if (stat(path, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size != (off_t)bytes)
		return;
	fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	seals = fd < 0 ? -1 : fcntl(fd, F_GET_SEALS);
	if (seals < 0 || !(seals & F_SEAL_SHRINK)) {         /* it could become shorter */
		if (fd >= 0)
			close(fd);
		return;
	}
	found = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	own_pid = mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		       0);
	if (found == MAP_FAILED || own_pid == MAP_FAILED ||
	    madvise(own_pid, PAGE_BYTES, MADV_WIPEONFORK) != 0 ||
	    found->nonce != strtoull(colon + 1, NULL, 16) ||
	    found->pid_namespace != inode_of("/proc/self/ns/pid") ||
	    found->time_namespace != inode_of("/proc/self/ns/time")) {
		if (found != MAP_FAILED)
			munmap(found, bytes);
		if (own_pid != MAP_FAILED)
			munmap(own_pid, PAGE_BYTES);
		return;
	}
	ring = found;
}

/* ---- probes ---------------------------------------------------------------------------------- */

/* As <sys/sdt.h> writes it; see recorder/symbol/stapsdt.h. */
#define PROBE(provider, name, arguments)                                                           \
	"990: nop\n"                                                                               \
	".pushsection .note.stapsdt,\"?\",\"note\"\n"                                              \
	".balign 4\n"                                                                              \
	".4byte 992f-991f, 994f-993f, 3\n"                                                         \
	"991: .asciz \"stapsdt\"\n"                                                                \
	"992: .balign 4\n"                                                                         \
	"993: .8byte 990b, _.stapsdt.base, 0\n"                                                    \
	".asciz \"" provider "\"\n.asciz \"" name "\"\n.asciz \"" arguments "\"\n"                 \
	"994: .balign 4\n"                                                                         \
	".popsection\n"                                                                            \
	".ifndef _.stapsdt.base\n"                                                                 \
	".pushsection .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"                    \
	".weak _.stapsdt.base\n.hidden _.stapsdt.base\n"                                           \
	"_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"                                      \
	".popsection\n.endif\n"

static __attribute__((noinline)) void probe_alloc(void *p, uint64_t size, uint64_t weight)
{
	struct record r;

	take_regs(r.regs);
	r.regs[DI] = (uintptr_t)p;
	r.regs[SI] = size;
	r.regs[DX] = weight;
	if (ring && tell(&r, ALLOC))
		return;
	__asm__ volatile(PROBE("otel_memory", "alloc", "8@%%rdi 8@%%rsi 8@%%rdx")
			 : : "D"(p), "S"(size), "d"(weight) : "memory");
}

static __attribute__((noinline)) void probe_free(void *p)
{
	struct record r;

	take_regs(r.regs);
	r.regs[DI] = (uintptr_t)p;
	if (ring && tell(&r, FREE))
		return;
	__asm__ volatile(PROBE("otel_memory", "free", "8@%%rdi") : : "D"(p) : "memory");
}

static __attribute__((noinline)) void probe_double_free(void *p)
{
	__asm__ volatile(PROBE("recorder_heap", "double_free", "8@%%rdi") : : "D"(p) : "memory");
}

static __attribute__((noinline)) void probe_unknown_free(void *p)
{
	__asm__ volatile(PROBE("recorder_heap", "unknown_free", "8@%%rdi") : : "D"(p) : "memory");
}

/* ---- which pointers are sampled -------------------------------------------------------------- */

static uint64_t hash_of(uintptr_t p)
{
	return (uint64_t)(p >> 4) * 0x9e3779b97f4a7c15u;
}

static _Atomic uintptr_t *place_of(uint64_t hash, unsigned i)
{
	return &set[((hash >> (64 - SET_BITS)) + i) % (1u << SET_BITS)];
}

/* by: 1 or -1 */
static void count(uint64_t hash, int by)
{
	_Atomic uint8_t *counter = &counters[hash >> (64 - COUNTERS_BITS)];
	uint8_t n = atomic_load(counter);

	while (n != UINT8_MAX && (n || by > 0) &&
	       !atomic_compare_exchange_weak(counter, &n, (uint8_t)(n + by)))
		;
}

static bool set_add(uintptr_t p)
{
	uint64_t hash = hash_of(p);
	unsigned i;

	for (i = 0; i < PROBES_AT_MOST; i++) {
		_Atomic uintptr_t *at = place_of(hash, i);
		uintptr_t was = atomic_load(at);

		if (was > REMOVED || !atomic_compare_exchange_strong(at, &was, p))
			continue;
		count(hash, 1);
		return true;
	}
	return false;
}

/* Of pointer p the set has `from`; make it `to`. */
static bool set_change(uintptr_t p, uintptr_t from, uintptr_t to)
{
	uint64_t hash = hash_of(p);
	unsigned i;

	for (i = 0; i < PROBES_AT_MOST; i++) {
		_Atomic uintptr_t *at = place_of(hash, i);
		uintptr_t was = atomic_load(at);

		if (!was)
			return false;
		if (was != from || !atomic_compare_exchange_strong(at, &was, to))
			continue;
		if (to == REMOVED)
			count(hash, -1);
		return true;
	}
	return false;
}

static bool set_has(uintptr_t p)             /* or it is held back */
{
	uint64_t hash = hash_of(p);
	uintptr_t was = p;
	unsigned i;

	for (i = 0; was && i < PROBES_AT_MOST; i++) {
		was = atomic_load_explicit(place_of(hash, i), memory_order_acquire);
		if ((was & ~HELD_BIT) == p)
			return true;
	}
	return false;
}

static inline bool may_be_sampled(void *p)
{
	uint64_t hash = hash_of((uintptr_t)p);

	return atomic_load_explicit(&counters[hash >> (64 - COUNTERS_BITS)],
				    memory_order_relaxed) != 0;
}

/* ---- sampling -------------------------------------------------------------------------------- */

static uint64_t draw(struct random *r)       /* xorshift64* */
{
	r->state ^= r->state >> 12;
	r->state ^= r->state << 25;
	r->state ^= r->state >> 27;
	return r->state * 0x2545f4914f6cdd1du;
}

/* Natural logarithm of a number from 0 to 1, to 1e-7: no libm. ln m = 2 atanh((m - 1) / (m + 1)) */
static double log_of(double u)
{
	union { double d; uint64_t u; } bits = {u};
	int exponent = (int)(bits.u >> 52) - 1023;
	double z, zz;

	bits.u = (bits.u & 0xfffffffffffffu) | 0x3ff0000000000000u;
	z = (bits.d - 1) / (bits.d + 1);
	zz = z * z;
	return exponent * 0.69314718055994531 +
	       2 * z * (1 + zz * (1.0 / 3 + zz * (1.0 / 5 + zz * (1.0 / 7 + zz * (1.0 / 9 + zz *
		(1.0 / 11 + zz / 13))))));
}

static uint64_t next_step(struct random *r)
{
	double u = ((double)(draw(r) >> 11) + 0.5) / 9007199254740992.0;

	return 1 + (uint64_t)(-log_of(u) * (double)mean);
}

static void begin_thread(struct random *r)
{
	struct timespec now = {0};

	clock_gettime(CLOCK_MONOTONIC, &now);
	r->state = ((uint64_t)now.tv_nsec * 0x9e3779b97f4a7c15u) ^ (uint64_t)(uintptr_t)r;
	r->state |= 1;
	draw(r);
	r->left = next_step(r);
}

/* It has a hit, or is a thread's first allocation. */
static __attribute__((noinline)) void *sample(void *p, size_t size)
{
	struct random *r = &random_here;
	size_t bytes = size;
	uint64_t hits = 0;

	if (off) {
		r->left = UINT64_MAX;
		return p;
	}
	if (!p)
		return p;
	if (!r->state)
		begin_thread(r);
	if (mean == 1) {
		hits = size ? size : 1;
		r->left = 0;                 /* the next one, too, even if it has no byte */
	} else {
		if (size / mean > HITS_DRAWN) {
			hits = size / mean;
			size %= mean;
		}
		for (; size >= r->left; hits++) {
			size -= r->left;
			r->left = next_step(r);
		}
		r->left -= size;
	}
	if (hits && set_add((uintptr_t)p))
		probe_alloc(p, bytes, hits * mean);
	else if (hits)
		atomic_store(&knows_all, false);
	return p;
}

/* Count an allocation of so many bytes. returns  whether sample() is to see it */
static inline bool is_hit(size_t size)
{
	struct random *r = &random_here;

	if (UNLIKELY(size >= r->left))
		return true;
	r->left -= size;
	return false;
}

/* ---- giving back ----------------------------------------------------------------------------- */

static bool hold(void *p)
{
	unsigned i;
	uintptr_t was;

	if (!next.usable_size || next.usable_size(p) > HELD_BYTES_MAX)
		return false;
	if (!set_change((uintptr_t)p, (uintptr_t)p, (uintptr_t)p | HELD_BIT))
		return false;
	probe_free(p);
	i = atomic_fetch_add(&held_hand, 1) % HELD_MAX;
	was = atomic_exchange(&held[i], (uintptr_t)p);
	if (was && set_change(was, was | HELD_BIT, REMOVED))
		next.free((void *)was);
	return true;
}

/* The block is nobody's any more; true: it was held back. */
static bool let_go(void *p)
{
	unsigned i;

	if (!set_change((uintptr_t)p, (uintptr_t)p | HELD_BIT, REMOVED))
		return false;
	for (i = 0; i < HELD_MAX; i++) {
		uintptr_t was = (uintptr_t)p;

		if (atomic_compare_exchange_strong(&held[i], &was, 0))
			break;
	}
	return true;
}

static bool is_early(const void *p)
{
	return (uintptr_t)p - (uintptr_t)early < EARLY_BYTES;
}

/*
 * A pointer that may be sampled is freed, or by a realloc replaced.
 * returns  false = the allocator is not to get it (now)
 */
static __attribute__((noinline)) bool gave_back(void *p, bool may_hold)
{
	bool known = !((uintptr_t)p & (REMOVED | HELD_BIT)) && set_has((uintptr_t)p);

	if (!p || is_early(p))
		return false;
	if (known && may_hold && hold(p))
		return false;
	if (known && set_change((uintptr_t)p, (uintptr_t)p, REMOVED)) {
		probe_free(p);
	} else if (known && let_go(p)) {
		probe_double_free(p);
		if (may_hold)
			next.free(p);        /* the first of the two */
	} else if (atomic_load(&knows_all)) {
		probe_unknown_free(p);
	}
	return true;
}

/* ---- the next allocator ---------------------------------------------------------------------- */

static void *early_alloc(size_t size)
{
	size_t room = (size + 31) & ~(size_t)15, at;

	if (size > EARLY_BYTES || (at = atomic_fetch_add(&early_used, room)) > EARLY_BYTES - room)
		return NULL;
	/* The size stands before the block; free() looks for it. */
	memcpy(early + at, &size, sizeof(size));
	atomic_store(&counters[hash_of((uintptr_t)early + at + 16) >> (64 - COUNTERS_BITS)],
		     UINT8_MAX);
	return early + at + 16;
}

static void find(void *to, const char *name)
{
	void *p = dlsym(RTLD_NEXT, name);

	memcpy(to, &p, sizeof(p));
}

/*
 * recorder collect --heap-next has each program load it, by a link
 * .../recorder-heap/PID/NAME@BYTES/librecorder-heap.so: in programs of another name, and in those
 * with rights that their user does not have, it does nothing.
 */
static void read_own_name(void)
{
	static const char before[] = "/recorder-heap/";
	const char *program = (const char *)getauxval(AT_EXECFN), *slash, *name, *bytes;
	Dl_info info;

	if (!dladdr(&mean, &info) || !info.dli_fname ||
	    !(name = strstr(info.dli_fname, before)) ||
	    !(name = strchr(name + sizeof(before) - 1, '/')) || !(bytes = strchr(name, '@')))
		return;
	name++;
	slash = program ? strrchr(program, '/') : NULL;
	program = slash ? slash + 1 : program;
	off = getauxval(AT_SECURE) || !program || strlen(program) != (size_t)(bytes - name) ||
	      memcmp(program, name, strlen(program)) != 0;
	if (atoll(bytes + 1) > 0)
		mean = (uint64_t)atoll(bytes + 1);
}

static __attribute__((constructor)) void begin(void)
{
	static _Atomic bool begun;
	const char *text;
	unsigned i;

	if (atomic_exchange(&begun, true))
		return;
	text = getenv("RECORDER_HEAP_BYTES");
	if (text && atoll(text) > 0)
		mean = (uint64_t)atoll(text);
	read_own_name();
	find_ring();
	if (mean == 1 && !off) {
		/* Look for each pointer in the set. */
		for (i = 0; i < 1u << COUNTERS_BITS; i++)
			atomic_store_explicit(&counters[i], UINT8_MAX, memory_order_relaxed);
		atomic_store(&knows_all, true);
	}
	find(&next.free, "free");
	find(&next.calloc, "calloc");
	find(&next.realloc, "realloc");
	find(&next.aligned_alloc, "aligned_alloc");
	find(&next.memalign, "memalign");
	find(&next.posix_memalign, "posix_memalign");
	find(&next.valloc, "valloc");
	find(&next.pvalloc, "pvalloc");
	find(&next.usable_size, "malloc_usable_size");
	find(&next.malloc, "malloc");
}

/* false: dlsym() itself allocates, or another thread is not through. */
static bool ready(void)
{
	if (next.malloc == first_malloc)
		begin();
	return next.malloc != first_malloc;
}

static void *first_malloc(size_t size)
{
	return ready() ? next.malloc(size) : early_alloc(size);
}

static void first_free(void *p)
{
	if (ready())
		next.free(p);
}

static void *first_calloc(size_t n, size_t size)
{
	return ready() ? next.calloc(n, size) : early_alloc(n * size);
}

static void *first_realloc(void *p, size_t size)
{
	return ready() ? next.realloc(p, size) : early_alloc(size);
}

/* ---- what programs call ---------------------------------------------------------------------- */

EXPORT void *malloc(size_t size)
{
	return UNLIKELY(is_hit(size)) ? sample(next.malloc(size), size) : next.malloc(size);
}

EXPORT void free(void *p)
{
	if (UNLIKELY(may_be_sampled(p)) && !gave_back(p, true))
		return;
	next.free(p);
}

EXPORT void *calloc(size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return UNLIKELY(is_hit(bytes)) ? sample(next.calloc(n, size), bytes) : next.calloc(n, size);
}

EXPORT void *realloc(void *p, size_t size)
{
	size_t had;
	void *q;

	/* Before it may be somebody else's. */
	if (UNLIKELY(may_be_sampled(p)) && !gave_back(p, false) && p) {
		memcpy(&had, (char *)p - 16, sizeof(had));
		q = malloc(size);
		return q ? memcpy(q, p, had < size ? had : size) : NULL;
	}
	return UNLIKELY(is_hit(size)) ? sample(next.realloc(p, size), size) : next.realloc(p, size);
}

EXPORT void *reallocarray(void *p, size_t n, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(n, size, &bytes)) {
		errno = ENOMEM;
		return NULL;
	}
	return realloc(p, bytes);
}

static void *aligned(void *(*get)(size_t, size_t), size_t alignment, size_t size)
{
	void *p = get ? get(alignment, size) : NULL;

	return p && is_hit(size) ? sample(p, size) : p;
}

EXPORT void *aligned_alloc(size_t alignment, size_t size)
{
	return aligned(ready() ? next.aligned_alloc : NULL, alignment, size);
}

EXPORT void *memalign(size_t alignment, size_t size)
{
	return aligned(ready() ? next.memalign : NULL, alignment, size);
}

static void *of_pages(void *(*get)(size_t), size_t size)
{
	void *p = get ? get(size) : NULL;

	return p && is_hit(size) ? sample(p, size) : p;
}

EXPORT void *valloc(size_t size)
{
	return of_pages(ready() ? next.valloc : NULL, size);
}

EXPORT void *pvalloc(size_t size)
{
	return of_pages(ready() ? next.pvalloc : NULL, size);
}

EXPORT int posix_memalign(void **out, size_t alignment, size_t size)
{
	int rc = ready() && next.posix_memalign ? next.posix_memalign(out, alignment, size)
						: ENOMEM;

	if (!rc && is_hit(size))
		sample(*out, size);
	return rc;
}
