#include "source/perf/file_names_linux.h"

#include "base/pool.h"
#include "base/table.h"
#include "source/host/file_paths_linux.h"

#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#define WANTED_MAX 1024u                     /* what finds no room has no name */
#define LOOK_FILES 128u                      /* at a time */
#define LOOK_PART 25u                        /* so many times as long as a look takes is a pause */
#define LOOK_NS (10 * NS_PER_MS)             /* at least */
#define AGAIN_NS (250 * NS_PER_MS)           /* each time doubled, up to: */
#define AGAIN_MAX_NS NS_PER_SEC
#define SPARED_NS (60 * NS_PER_SEC)          /* after one that hung */

struct wanted {
	uint32_t pid;
	uint64_t dev, ino;                   /* dev: as the kernel has it */
	bool pending;                        /* it had an event since it was asked for */
	uint64_t due_ns, again_ns;
};

struct look {
	struct job job;
	uint32_t n;
	uint64_t cpu_ns;                     /* what it took */
	uint64_t devs[LOOK_FILES];
	struct file_path files[LOOK_FILES];
};

struct perf_files {
	struct queue *queue;
	struct pool *pool;
	struct wanted wanted[WANTED_MAX];    /* by hash */
	uint32_t npending, next;             /* of them; where the next look begins */
	struct look *look;                   /* NULL = none is at work */
	uint64_t next_ns;
};

/* ---- a thread of the pool -------------------------------------------------------------------- */

static void run_look(struct job *job)
{
	struct look *look = (struct look *)job;
	uint64_t begin_ns = os_thread_cpu_ns();

	file_paths_find(look->files, look->n);
	look->cpu_ns = os_thread_cpu_ns() - begin_ns;
}

static void free_look(struct job *job)
{
	struct look *look = (struct look *)job;
	uint32_t i;

	for (i = 0; i < look->n; i++)
		free(look->files[i].path);
	free(look);
}

/* ---- the source's thread --------------------------------------------------------------------- */

static bool field_of(const struct event *e, const char *name, uint64_t *out)
{
	uint32_t i;

	for (i = 0; i < e->nfields; i++)
		if (strcmp(e->fields[i].name, name) == 0) {
			*out = e->fields[i].v.u;
			return e->fields[i].type == FIELD_UINT || e->fields[i].type == FIELD_INT;
		}
	return false;
}

void perf_files_event(struct perf_files *f, const struct perf_process *process,
		      const struct event *e)
{
	struct wanted want = {.pending = true, .due_ns = e->time_ns, .again_ns = AGAIN_NS}, *at;

	if (!f || !process || process->skipped ||
	    strcmp(e->name, "mm_filemap_add_to_page_cache") != 0 ||
	    !field_of(e, "s_dev", &want.dev) || !field_of(e, "i_ino", &want.ino))
		return;
	want.pid = process->pid;
	at = &f->wanted[hash_pair(hash_pair(want.dev, want.ino), want.pid) % WANTED_MAX];
	if (at->pending)                     /* the same, or no room */
		return;
	if (at->pid == want.pid && at->dev == want.dev && at->ino == want.ino) {
		want.due_ns = at->due_ns > want.due_ns ? at->due_ns : want.due_ns;
		want.again_ns = at->again_ns;
	}
	*at = want;
	f->npending++;
}

static void put_name(struct perf_files *f, const struct look *look, uint32_t i, uint64_t now_ns)
{
	const struct file_path *file = &look->files[i];
	uint64_t from_ns = file->born_ns < now_ns ? now_ns - file->born_ns : 0;
	uint64_t to_ns = file->seen_ns < now_ns ? now_ns - file->seen_ns : 0;
	const struct event_field fields[] = {
		{.name = "s_dev", .type = FIELD_UINT, .v.u = look->devs[i]},
		{.name = "i_ino", .type = FIELD_UINT, .v.u = file->ino},
		{.name = "FileName", .type = FIELD_TEXT, .v.text = file->path},
		{.name = "from_us_ago", .type = FIELD_UINT, .v.u = from_ns / 1000},
		{.name = "to_us_ago", .type = FIELD_UINT, .v.u = to_ns / 1000 + 1},
	};
	/* Of no process, as it does not count against what one process may put. */
	struct event e = {.time_ns = now_ns, .kind = EVENT_GENERIC, .cpu = CPU_NONE,
			  .stream = STREAM_EVENT, .stack = STACK_NONE, .provider = "Linux",
			  .name = "File/Name", .fields = fields, .nfields = 5};

	if (!file->path || file->born_ns > now_ns)
		return;
	queue_put(f->queue, &e);
}

/* Of a look that is done, or left behind; it is dropped. */
static void take_look(struct perf_files *f, uint64_t time_ns)
{
	const struct job *stuck;
	uint64_t now_ns = os_now_ns();
	uint32_t i;

	while ((stuck = pool_look(f->pool, now_ns)) != NULL)
		if (f->look && stuck == &f->look->job) {
			job_drop(&f->look->job);
			f->look = NULL;
			f->next_ns = now_ns + SPARED_NS;
		}
	if (!f->look || !job_done(&f->look->job))
		return;
	for (i = 0; i < f->look->n; i++)
		put_name(f, f->look, i, time_ns);
	f->next_ns = now_ns + LOOK_NS + LOOK_PART * f->look->cpu_ns;
	job_drop(&f->look->job);
	f->look = NULL;
}

/* Those that are due. NULL: nothing is, or no memory */
static struct look *choose(struct perf_files *f, uint64_t now_ns)
{
	struct look *look = calloc(1, sizeof(*look));
	uint32_t i;

	for (i = 0; look && i < WANTED_MAX && look->n < LOOK_FILES; i++) {
		struct wanted *w = &f->wanted[f->next++ % WANTED_MAX];

		if (!w->pending || w->due_ns > now_ns)
			continue;
		look->devs[look->n] = w->dev;
		look->files[look->n++] = (struct file_path){
			.pid = w->pid, .ino = w->ino,
			.dev = makedev((unsigned)(w->dev >> 20), (unsigned)w->dev & 0xFFFFF)};
		w->pending = false;
		w->due_ns = now_ns + w->again_ns;
		w->again_ns = w->again_ns < AGAIN_MAX_NS ? 2 * w->again_ns : AGAIN_MAX_NS;
		f->npending--;
	}
	if (look && !look->n) {
		free(look);
		look = NULL;
	}
	return look;
}

void perf_files_look(struct perf_files *f, uint64_t now_ns)
{
	uint64_t clock_ns = os_now_ns();

	if (!f)
		return;
	take_look(f, now_ns);
	if (f->look || !f->npending || clock_ns < f->next_ns)
		return;
	f->look = choose(f, clock_ns);
	if (!f->look)
		return;
	f->look->job = (struct job){.run = run_look, .free = free_look,
				    .what = "the names of open files"};
	job_init(&f->look->job);
	pool_put(f->pool, &f->look->job);
}

struct pool *perf_files_pool(const struct perf_files *f)
{
	return f ? f->pool : NULL;
}

static bool is_wanted(const struct needs *needs)
{
	uint32_t i;

	for (i = 0; needs && i < needs->nevents; i++)
		if (strcmp(needs->events[i].provider, "filemap") == 0)
			return true;
	return false;
}

int perf_files_new(const struct needs *needs, struct queue *queue, struct perf_files **out,
		   struct err *err)
{
	struct perf_files *f = is_wanted(needs) ? calloc(1, sizeof(*f)) : NULL;
	int rc;

	*out = NULL;
	if (!f)
		return is_wanted(needs) ? err_memory(err, "for names of files") : 0;
	f->queue = queue;
	rc = pool_new("files", 1, OS_PRIORITY_NORMAL, &f->pool, err);
	if (rc)
		free(f);
	else
		*out = f;
	return rc;
}

void perf_files_free(struct perf_files *f)
{
	if (!f)
		return;
	if (f->look)
		job_drop(&f->look->job);
	pool_free(f->pool);
	free(f);
}
