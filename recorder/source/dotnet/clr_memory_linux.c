#include "source/dotnet/clr_memory_linux.h"

#include "base/pool.h"
#include "source/dotnet/clr_code.h"
#include "source/host/maps.h"
#include "source/host/proc_pid_linux.h"
#include "symbol/symbol_open.h"

#include <stdlib.h>
#include <string.h>

#define PROGRAMS_MAX 64u                     /* that are known at a time */
#define ANSWER_NS (200 * NS_PER_MS)
#define SEEN_NS (100 * NS_PER_MS)            /* another program starts no runtime in that time */
#define RETRY_NS NS_PER_SEC                  /* a runtime that starts has no tables yet; */
#define RETRY_MAX_NS (64 * NS_PER_SEC)       /* doubled up to this */
#define MAPS_BYTES_MAX ((size_t)4 << 20)
#define RUNTIME "libcoreclr.so"

/* What is asked about a process; a job that hangs keeps it. */
struct program {
	struct job job;
	uint32_t pid;
	bool looked;                         /* for its runtime */
	struct clr_code code;
	uint64_t address;
	bool named;
	struct clr_method method;
};

struct known {
	uint32_t pid;
	uint64_t identity;
	struct program *program;             /* NULL = it is no .NET program */
	uint64_t until_ns, rest_ns;          /* when to look again whether it is one; its rest */
	uint64_t seen_ns;                    /* when it was this program last */
};

struct clr_memory {
	struct os_mutex *lock;
	struct pool *pool;
	struct known known[PROGRAMS_MAX];    /* the newest at (next - 1) % PROGRAMS_MAX */
	uint32_t next;
	struct clr_method method;            /* the last answer */
};

/* ---- on the pool's thread -------------------------------------------------------------------- */

static size_t read_memory(void *ctx, uint64_t address, void *to, size_t n)
{
	const struct program *p = ctx;

	return proc_pid_memory(p->pid, address, to, n);
}

/* The runtime is a library, or in the program itself: the mapping of its file's begin. */
static void look_for_runtime(struct program *p, const struct managed_memory *memory)
{
	struct buf text = {0};
	char exe[4096], *line, *end;
	bool known = proc_pid_exe(p->pid, exe, sizeof(exe)) &&
		     proc_pid_load(p->pid, "maps", MAPS_BYTES_MAX, &text) && text.len;
	struct maps_line l;

	for (line = text.data; known && !p->code.ranges && (end = strchr(line, '\n')) != NULL;
	     line = end + 1) {
		*end = '\0';
		if (!maps_line_read(line, &l) || l.path[0] != '/' || l.pgoff)
			continue;
		if (strcmp(l.path, exe) == 0 || strcmp(os_base_name(l.path), RUNTIME) == 0)
			clr_code_open(&p->code, memory, l.start);
	}
	buf_free(&text);
}

static void run_job(struct job *job)
{
	struct program *p = (struct program *)job;
	const struct managed_memory memory = {.read = read_memory, .ctx = p};

	if (!p->looked)
		look_for_runtime(p, &memory);
	p->looked = true;
	p->named = clr_code_find(&p->code, &memory, p->address, &p->method);
}

static void free_program(struct job *job)
{
	struct program *p = (struct program *)job;

	clr_code_free(&p->code);
	free(p);
}

/* ---- of any thread, under the lock ----------------------------------------------------------- */

static void drop(struct known *k)
{
	if (k->program)
		job_drop(&k->program->job);
	*k = (struct known){0};
}

/* The names of a turn come together: no program, as it was a moment ago. */
static bool was_none(const struct clr_memory *c, uint32_t pid, uint64_t now_ns)
{
	const struct known *k = c->known;

	while (k < c->known + PROGRAMS_MAX && k->pid != pid)
		k++;
	return k < c->known + PROGRAMS_MAX && !k->program && now_ns < k->until_ns &&
	       now_ns < k->seen_ns + SEEN_NS;
}

/* NULL = it has ended, or there is no memory */
static struct known *known_of(struct clr_memory *c, uint32_t pid)
{
	uint64_t identity, rest_ns = RETRY_NS, now_ns = os_now_ns();
	struct known *k;
	bool is_same;
	uint32_t i;

	if (was_none(c, pid, now_ns))
		return NULL;
	identity = symbol_process_identity(pid);
	if (!identity)
		return NULL;
	for (i = 0; i < PROGRAMS_MAX; i++) {
		k = &c->known[i];
		is_same = k->pid == pid && k->identity == identity;
		if (is_same)
			k->seen_ns = now_ns;
		if (is_same && (k->program || now_ns < k->until_ns))
			return k;
		if (is_same)
			rest_ns = 2 * k->rest_ns < RETRY_MAX_NS ? 2 * k->rest_ns : RETRY_MAX_NS;
		if (k->pid == pid)
			drop(k);
	}
	k = &c->known[c->next++ % PROGRAMS_MAX];
	drop(k);
	k->program = calloc(1, sizeof(*k->program));
	if (!k->program)
		return NULL;
	k->pid = k->program->pid = pid;
	k->identity = identity;
	k->rest_ns = rest_ns;
	k->program->job = (struct job){.run = run_job, .free = free_program,
				       .what = "the memory of a .NET program"};
	job_init(&k->program->job);
	return k;
}

static bool ask(struct clr_memory *c, uint32_t pid, uint64_t address, struct clr_method *out)
{
	struct known *k = known_of(c, pid);
	struct program *p = k ? k->program : NULL;

	if (!p)
		return false;
	p->address = address;
	job_again(&p->job);
	if (!pool_ask(c->pool, pid, &p->job, ANSWER_NS)) {
		*k = (struct known){0};      /* the job's now; learned again if it answers */
		return false;
	}
	*out = p->method;
	if (p->code.ranges)
		return p->named;
	job_drop(&p->job);
	k->program = NULL;
	k->until_ns = os_now_ns() + k->rest_ns;
	return false;
}

bool clr_memory_name(struct clr_memory *c, const struct object *object, uint64_t address,
		     struct symbol *out)
{
	bool named;

	if (object->key.kind != OBJECT_JIT || strcmp(object->key.path, "[jit]") != 0)
		return false;
	os_mutex_lock(c->lock);
	named = ask(c, object->key.pid, address, &c->method);
	pool_look(c->pool, os_now_ns());
	*out = (struct symbol){.offset = c->method.start, .name = c->method.name,
			       .module = c->method.module};
	os_mutex_unlock(c->lock);
	return named;
}

int clr_memory_new(struct clr_memory **out, struct err *err)
{
	struct clr_memory *c = calloc(1, sizeof(*c));
	int rc;

	if (!c || !(c->lock = os_mutex_new())) {
		free(c);
		return err_memory(err, "for names of .NET programs");
	}
	rc = pool_new("dotnet memory", 1, OS_PRIORITY_NORMAL, &c->pool, err);
	if (rc) {
		clr_memory_free(c);
		return rc;
	}
	*out = c;
	return 0;
}

void clr_memory_free(struct clr_memory *c)
{
	uint32_t i;

	if (!c)
		return;
	pool_free(c->pool);
	for (i = 0; i < PROGRAMS_MAX; i++)
		drop(&c->known[i]);
	os_mutex_free(c->lock);
	free(c);
}
