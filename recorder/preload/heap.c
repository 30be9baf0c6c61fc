/*
 * librecorder-heap.so: a sampler of allocations for programs that are started with
 * LD_PRELOAD=.../librecorder-heap.so (recorder run --heap). It tells of what it samples by two
 * probes, the USDT contract otel_memory. Without a listener a probe is a nop.
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
 * it allocates nothing, takes no lock and logs nothing. x86-64, glibc or musl.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>

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
#define HITS_DRAWN 64                        /* more hits of one allocation are not drawn each */

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
	__asm__ volatile(PROBE("otel_memory", "alloc", "8@%%rdi 8@%%rsi 8@%%rdx")
			 : : "D"(p), "S"(size), "d"(weight) : "memory");
}

static __attribute__((noinline)) void probe_free(void *p)
{
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
	bool aligned = !((uintptr_t)p & (REMOVED | HELD_BIT));

	if (!p || is_early(p))
		return false;
	if (aligned && may_hold && hold(p))
		return false;
	if (aligned && set_change((uintptr_t)p, (uintptr_t)p, REMOVED)) {
		probe_free(p);
	} else if (aligned && let_go(p)) {
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
