#include "model/incident_build_private.h"

#include "base/array.h"

#include <stdlib.h>
#include <string.h>

/* A wait's last part is told when the thread runs again. Later, something is missing in between. */
#define READY_MAX_NS 1000000000ULL

/* What a stack of the stream off-cpu says of its thread, by its frames in [thread]. */
enum meaning { SAYS_NOTHING, SAYS_WAIT, SAYS_PART, SAYS_UNKNOWN };

/* What comes next in a thread, in the order of time. */
struct next {
	uint32_t stack;                      /* of the next wait; STACK_NONE = there is none */
	uint64_t start_ns;                   /* of that wait */
	uint64_t unknown_ns;                 /* before that, unknown time ends here; 0 = none */
};

static enum meaning meaning_of(const struct incident *in, const struct incident_frame *f)
{
	const struct incident_module *m = &in->modules[f->module];

	if (m->kind != OBJECT_JIT || !f->function || strcmp(m->path, "[thread]") != 0)
		return SAYS_NOTHING;
	if (strcmp(f->function, "NOT_READIED_YET") == 0)
		return SAYS_PART;
	if (strcmp(f->function, "UNKNOWN_TIME") == 0)
		return SAYS_UNKNOWN;
	return strcmp(f->function, "BLOCKED_TIME") == 0 || strcmp(f->function, "DISK_TIME") == 0 ?
		       SAYS_WAIT :
		       SAYS_NOTHING;
}

/* frames and stacks: one byte for each, an enum meaning. returns whether there are parts. */
static bool find_meanings(const struct incident *in, uint8_t *frames, uint8_t *stacks)
{
	bool found = false;
	uint32_t i, parent;

	for (i = 0; i < in->nframes; i++) {
		frames[i] = (uint8_t)meaning_of(in, &in->frames[i]);
		found |= frames[i] == SAYS_PART;
	}
	/* A caller comes before its callees. */
	for (i = 0; found && i < in->nstacks; i++) {
		parent = in->stacks[i].parent;
		stacks[i] = frames[in->stacks[i].frame];
		if (stacks[i] == SAYS_NOTHING && parent != STACK_NONE)
			stacks[i] = stacks[parent];
	}
	return found;
}

static void join(struct incident *in, const uint8_t *meanings, struct next *threads)
{
	struct incident_sample *s;
	struct next *next;
	uint32_t i;

	for (i = 0; i < in->nthreads; i++)
		threads[i] = (struct next){.stack = STACK_NONE};
	for (i = in->nsamples; i-- > 0;) {
		s = &in->samples[i];
		if (s->stream != STREAM_OFF_CPU || s->thread == THREAD_NONE ||
		    s->stack == STACK_NONE)
			continue;
		next = &threads[s->thread];
		if (meanings[s->stack] == SAYS_UNKNOWN)
			next->unknown_ns = s->time_ns;
		if (meanings[s->stack] != SAYS_WAIT && meanings[s->stack] != SAYS_PART)
			continue;
		/* What was left of unknown times may be told together with a part. */
		if (meanings[s->stack] == SAYS_PART && next->stack != STACK_NONE &&
		    next->unknown_ns <= s->time_ns && next->start_ns <= s->time_ns + READY_MAX_NS)
			s->stack = next->stack;
		*next = (struct next){.stack = s->stack};
		next->start_ns = s->time_ns > s->weight ? s->time_ns - s->weight : 0;
	}
}

/* ---- what waits are for ---------------------------------------------------------------------- */

/* Functions of Linux in which a thread waits: kernel 6.1 to 6.18, net/ and arch/. */
static const char *const network[] = {
	"sk_wait_data", "sk_stream_wait_memory", "sk_stream_wait_connect", "inet_csk_accept",
	"inet_wait_for_connect", "inet_stream_connect", "tcp_recvmsg", "tcp_sendmsg",
	"udp_recvmsg", "udpv6_recvmsg", "raw_recvmsg",
};
static const char *const page_fault[] = {
	"asm_exc_page_fault", "exc_page_fault", "do_user_addr_fault", "handle_mm_fault",
	"filemap_fault", "do_page_fault", "do_mem_abort",
};

static bool is_one_of(const char *name, const char *const *names, size_t n)
{
	while (n--)
		if (strcmp(name, names[n]) == 0)
			return true;
	return false;
}

/* The name of a wait whose kernel frames say more than its leaf; NULL = they do not. */
static const char *wait_of(const struct incident *in, uint32_t wait)
{
	bool disk = strcmp(in->frames[in->stacks[wait].frame].function, "DISK_TIME") == 0;
	uint32_t at;

	for (at = in->stacks[wait].parent; at != STACK_NONE; at = in->stacks[at].parent) {
		const struct incident_frame *f = &in->frames[in->stacks[at].frame];

		if (incident_frame_code(in, in->stacks[at].frame) != CODE_KERNEL)
			return NULL;
		if (!f->function)
			continue;
		if (disk && is_one_of(f->function, page_fault, COUNT_OF(page_fault)))
			return "HARD_FAULT";
		if (!disk && is_one_of(f->function, network, COUNT_OF(network)))
			return "NETWORK_TIME";
	}
	return NULL;
}

int incident_name_waits(struct incident *in)
{
	uint32_t n = in->nstacks, i;

	for (i = 0; i < in->nframes && meaning_of(in, &in->frames[i]) != SAYS_WAIT; i++)
		;
	if (i == in->nframes)
		return 0;
	for (i = 0; i < n; i++) {
		struct incident_frame f = in->frames[in->stacks[i].frame];

		if (meaning_of(in, &f) != SAYS_WAIT)
			continue;
		f.function = wait_of(in, i);
		if (!f.function)
			continue;
		f.offset = hash_bytes(f.function, strlen(f.function));
		in->stacks[i].frame = incident_add_frame(in, &f);
		if (in->stacks[i].frame == UINT32_MAX)
			return ERR_MEMORY;
	}
	return 0;
}

/* ---- who ended them -------------------------------------------------------------------------- */

int incident_join_waits(struct incident *in)
{
	uint8_t *frames = calloc((size_t)in->nframes + 1, 1);
	uint8_t *stacks = calloc((size_t)in->nstacks + 1, 1);
	struct next *threads = malloc(((size_t)in->nthreads + 1) * sizeof(*threads));
	int rc = frames && stacks && threads ? 0 : ERR_MEMORY;

	if (!rc && find_meanings(in, frames, stacks))
		join(in, stacks, threads);
	free(threads);
	free(stacks);
	free(frames);
	return rc;
}
