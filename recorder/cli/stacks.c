/* stacks: print or store the stacks of a process's threads, as they are or as a dump has them. */
#include "cli/cmd.h"
#include "listing/deadlocks.h"
#include "listing/sheet.h"
#include "cli/stacks_store.h"

#include "base/array.h"
#include "base/fit.h"
#include "base/moment.h"
#include "base/os.h"
#include "base/text.h"
#include "base/utf8.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_NS (20 * NS_PER_SEC)           /* a large PDB on a slow disk */

/* ---- taking ---------------------------------------------------------------------------------- */

static bool make_room(struct stacks *s, uint32_t nframes)
{
	uint32_t room = s->frames_room;

	if (ARRAY_ROOM(s->taken, s->taken_room, s->ntaken + 1))
		return false;
	if (ARRAY_ROOM(s->frames, room, s->nframes + nframes) ||
	    ARRAY_ROOM(s->addresses, s->frames_room, s->nframes + nframes))
		return false;
	s->frames_room = room;
	return true;
}

static void keep(void *ctx, const struct thread_stack *stack)
{
	struct stacks *s = ctx;
	struct taken *t;
	uint32_t i, number;
	bool fresh;

	if (s->failed || !make_room(s, stack->nframes)) {
		s->failed = true;
		return;
	}
	t = &s->taken[s->ntaken++];
	*t = (struct taken){.tid = stack->tid, .quality = stack->quality, .time_ns = stack->time_ns,
			    .suspended_ns = stack->suspended_ns, .first = s->nframes};
	strncat(t->name, stack->name, sizeof(t->name) - 1);
	t->waits_for = stack->waits_for;
	if (stack->wait)
		s->failed |= !(t->wait = text_dup(stack->wait, SIZE_MAX));
	for (i = 0; i < stack->nframes; i++) {
		number = frames_intern(s->table, &stack->frames[i], &fresh);
		if (number == FRAME_NONE) {
			s->failed = true;
			return;
		}
		s->frames[s->nframes] = frame_get(s->table, number);
		frame_ref(s->frames[s->nframes]);
		s->addresses[s->nframes++] = stack->addresses[i];
		t->n++;
	}
}

static bool same_stack(const struct stacks *s, const struct taken *a, const struct taken *b)
{
	return a->n == b->n && a->quality == b->quality &&
	       memcmp(s->frames + a->first, s->frames + b->first,
		      a->n * sizeof(*s->frames)) == 0;
}

/* Count the pictures in which each thread stands still. Both pictures are sorted by tid. */
static void compare_pictures(struct stacks *s)
{
	uint32_t old = s->before, i;

	for (i = s->now; i < s->ntaken; i++) {
		while (old < s->now && s->taken[old].tid < s->taken[i].tid)
			old++;
		if (old < s->now && s->taken[old].tid == s->taken[i].tid &&
		    same_stack(s, &s->taken[old], &s->taken[i]))
			s->taken[i].still = s->taken[old].still + 1;
	}
}

/* A picture of all threads. ERR_NOT_FOUND: the process has ended. */
static int take(struct stacks *s, struct err *err)
{
	int rc;

	s->before = s->now;
	s->now = s->ntaken;
	rc = s->dead ? 0 : thread_stacks_take(s->threads, 0, keep, s, err);
	if (s->dead)
		dump_stacks_take(s->dead, keep, s);
	/* The process may have ended just after the last stack was taken. */
	if (rc == ERR_NOT_FOUND && s->ntaken > s->now)
		rc = 0;
	if (!rc && s->failed)
		rc = err_memory(err, "for the stacks of process %u", (unsigned)s->pid);
	compare_pictures(s);
	return rc;
}

static int open_all(struct stacks *s, bool no_stop, struct err *err)
{
	int rc = frames_new(&s->table, err);

	/* Stopped threads wait for this one. */
	os_thread_priority(OS_PRIORITY_HIGH);
	if (!rc)
		rc = thread_stacks_open(s->pid, s->table, &s->threads, err);
	if (!rc && no_stop)
		rc = thread_stacks_never_stop(s->threads, err);
	return rc;
}

/* Both kinds of dumps are known by their bytes. NULL = the process lives. */
static const char *dump_of(const struct options *o)
{
	return o->core ? o->core : o->dump;
}

static int open_dead(struct stacks *s, const struct options *o, struct err *err)
{
	int rc = dump_file_open(dump_of(o), &s->file, err);

	if (!rc)
		rc = frames_new(&s->table, err);
	if (!rc)
		rc = dump_stacks_open(s->file.dump, o->exe, s->file.wall_ns, &s->env, s->table,
				      &s->dead, err);
	if (!rc)
		s->pid = s->file.dump->pid;
	s->env.foreign = true;
	s->env.sandboxed = true;
	return rc;
}

const char *stacks_path(const struct stacks *s)
{
	return s->dead ? dump_stacks_path(s->dead) : thread_stacks_path(s->threads);
}

static int open_names(struct stacks *s, struct err *err)
{
	int rc = processes_new(&s->processes, err);

	if (!rc)
		rc = log_open(NULL, &s->log, err);
	return rc ? rc : symbols_open(s->table, &s->env, s->log, &s->symbols, err);
}

/* Name the frames of this picture. */
static void name_frames(struct stacks *s)
{
	uint64_t start_ns = os_now_ns();
	uint32_t first = s->now < s->ntaken ? s->taken[s->now].first : s->nframes, i;
	struct symbol symbol;

	for (i = first; i < s->nframes; i++)
		if (s->dead ? dump_stacks_name(s->dead, s->frames[i], &symbol)
			    : thread_stacks_name(s->threads, s->frames[i], &symbol))
			frame_set_function(s->table, s->frames[i], symbol.offset, symbol.name, NULL,
					   symbol.module);
	if (symbols_settle(s->symbols, s->frames + first, s->nframes - first, NAMES_NS) &&
	    os_now_ns() - start_ns >= NAMES_NS)
		cmd_note("some names are missing: reading them takes longer than %u s",
			 (unsigned)(NAMES_NS / NS_PER_SEC));
}

/* ---- printing -------------------------------------------------------------------------------- */

/* The module, and the function that is known: NULL = none. */
const char *stacks_module_of(const struct frame *f, const struct function **function)
{
	*function = atomic_load(&f->function);
	return *function && (*function)->module ? (*function)->module : f->object->name;
}

void stacks_put_name(const struct stacks *s, uint32_t which, const struct function *function,
		     struct buf *out)
{
	const struct frame *f = s->frames[which];

	if (function)
		utf8_put_clean(out, function->name, strlen(function->name), FUNCTION_NAME_MAX);
	else if (f->object->key.kind == OBJECT_UNKNOWN)
		buf_printf(out, "0x%" PRIX64, s->addresses[which]);
	else
		buf_printf(out, "+0x%" PRIX64,
			   f->offset + (f->flags & FRAME_RETURN_ADDRESS ? 1 : 0));
}

static void put_frame(const struct stacks *s, uint32_t which, struct buf *out)
{
	const struct function *function;
	const char *module = stacks_module_of(s->frames[which], &function);

	if (s->frames[which]->object->key.kind == OBJECT_UNKNOWN) {
		stacks_put_name(s, which, NULL, out);
		return;
	}
	utf8_put_clean(out, module, strlen(module), 255);
	buf_putc(out, '!');
	stacks_put_name(s, which, function, out);
}

/* Whether a thread is printed with one before it: neither was told, and the stacks are the same. */
static bool is_alike(const struct stacks *s, const struct taken *t, const struct taken *other)
{
	return !other->told && same_stack(s, t, other);
}

/* How many bytes of its wait all threads of its group have; cut behind a word. */
static size_t common_wait(const struct stacks *s, const struct taken *t)
{
	size_t n = strlen(t->wait), k;
	const struct taken *other;

	for (other = t + 1; other < s->taken + s->ntaken; other++) {
		if (!other->wait || !is_alike(s, t, other))
			continue;
		for (k = 0; k < n && t->wait[k] == other->wait[k]; k++)
			;
		while (t->wait[k] && k && t->wait[k - 1] != ' ')
			k--;
		n = k < n ? k : n;
	}
	return n;
}

/* "  waits in read of pipe:[12]", in a group what is true of all: "  waits in read of ...". */
static void put_wait(const struct stacks *s, const struct taken *t, bool grouped, struct buf *out)
{
	size_t n = grouped ? common_wait(s, t) : strlen(t->wait);

	buf_puts(out, "  ");
	utf8_put_clean(out, t->wait, n, 400);
	if (t->wait[n])
		buf_puts(out, "...");
	if (t->wait[n] && t->waits_for)
		buf_printf(out, " (for %u)", (unsigned)t->waits_for);
}

/* "  and 2 more: 13, 14 (for 12)": those behind it with the same stack, not to be printed again. */
static void put_others(struct stacks *s, const struct taken *t, struct sheet *p)
{
	struct buf list = {0};
	uint32_t i, n = 0;

	for (i = (uint32_t)(t - s->taken) + 1; i < s->ntaken; i++) {
		if (!is_alike(s, t, &s->taken[i]))
			continue;
		s->taken[i].told = true;
		buf_printf(&list, "%s%u", n++ ? ", " : "", (unsigned)s->taken[i].tid);
		if (t->wait && s->taken[i].waits_for && strcmp(s->taken[i].wait, t->wait) != 0)
			buf_printf(&list, " (for %u)", (unsigned)s->taken[i].waits_for);
	}
	if (n)
		buf_printf(&p->out, "  and %u more: %s", (unsigned)n, buf_text(&list));
	buf_free(&list);
}

static void put_thread(struct stacks *s, const struct taken *t, const struct options *o,
		       struct sheet *p)
{
	size_t from;
	uint32_t k;

	if (!t->still)
		buf_putc(&p->out, '\n');
	from = p->out.len;
	buf_printf(&p->out, "thread %u", (unsigned)t->tid);
	if (*t->name) {
		buf_puts(&p->out, "  ");
		utf8_put_clean(&p->out, t->name, strlen(t->name), sizeof(t->name));
	}
	sheet_style(p, from, SHEET_HEAD);
	if (t->wait)
		put_wait(s, t, o->group_threads, &p->out);
	if (t->quality != QUALITY_COMPLETE)
		sheet_put(p, SHEET_LOSS, "  [%s]", stack_quality_text(t->quality));
	if (o->group_threads)
		put_others(s, t, p);
	if (t->still)
		buf_puts(&p->out, "  has not moved");
	if (t->still > 1)
		buf_printf(&p->out, ", %u times", (unsigned)t->still);
	buf_putc(&p->out, '\n');
	if (t->still)
		return;
	for (k = t->first; k < t->first + t->n; k++) {
		buf_puts(&p->out, "    ");
		put_frame(s, k, &p->out);
		buf_putc(&p->out, '\n');
	}
}

struct waiting *stacks_waiting(const struct stacks *s, uint32_t *n)
{
	struct waiting *threads = calloc(s->ntaken - s->now + 1, sizeof(*threads));
	uint32_t i;

	*n = s->ntaken - s->now;
	for (i = 0; threads && i < *n; i++)
		threads[i] = (struct waiting){s->taken[s->now + i].tid,
					      s->taken[s->now + i].waits_for};
	return threads;
}

static void put_deadlocks(const struct stacks *s, struct sheet *p)
{
	uint32_t n;
	struct waiting *threads = stacks_waiting(s, &n);

	if (threads)
		deadlocks_put(threads, n, p);
	p->out.failed |= !threads;
	free(threads);
}

void stacks_put_death(const struct stacks *s, struct buf *out)
{
	const struct dump *d = s->file.dump;
	const char *why = dump_fault_text(d), *path = stacks_path(s);
	char text[DUMP_SIGNAL_BYTES];

	buf_puts(out, "program ");
	utf8_put_clean(out, text_base_name(path), strlen(text_base_name(path)), 255);
	buf_printf(out, " (%u) ", (unsigned)s->pid);
	if (!d->signal) {
		buf_puts(out, "lived when its memory was dumped");
		return;
	}
	dump_signal_text(d, text);
	buf_printf(out, "died of %s", text);
	if (d->has_fault_address)
		buf_printf(out, " at address 0x%" PRIx64, d->fault_address);
	if (why)
		buf_printf(out, " (%s)", why);
	buf_printf(out, ", thread %u", (unsigned)d->threads[0].tid);
}

static void put_head(const struct stacks *s, const struct options *o, struct sheet *p)
{
	struct thread_stacks_use use = {0};
	size_t from = p->out.len;

	if (s->dead) {
		stacks_put_death(s, &p->out);
		sheet_style(p, from, SHEET_LOSS);
		buf_putc(&p->out, '\n');
	} else {
		thread_stacks_use(s->threads, &use);
	}
	if (s->now)
		buf_putc(&p->out, '\n');
	buf_printf(&p->out, "process %u  %s  %u threads", (unsigned)s->pid, stacks_path(s),
		   (unsigned)(s->ntaken - s->now));
	if (o->no_stop)
		buf_puts(&p->out, ", none was stopped");
	else if (!s->dead)
		buf_printf(&p->out, ", the longest stopped for %.3f ms",
			   (double)use.longest_ns / 1e6);
	buf_putc(&p->out, '\n');
}

static void put_text(struct stacks *s, const struct options *o, struct sheet *p)
{
	uint32_t i;

	put_head(s, o, p);
	for (i = s->now; i < s->ntaken; i++) {
		if (s->taken[i].told)
			continue;
		put_thread(s, &s->taken[i], o, p);
	}
	put_deadlocks(s, p);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_json_frames(const struct stacks *s, const struct taken *t, struct json *j)
{
	struct buf text = {0};
	char address[32];
	uint32_t k;

	json_key_open(j, "frames", '[');
	for (k = t->first; k < t->first + t->n; k++) {
		buf_reset(&text);
		put_frame(s, k, &text);
		snprintf(address, sizeof(address), "0x%" PRIx64, s->addresses[k]);
		json_open(j, '{');
		json_key_str(j, "frame", buf_text(&text));
		if (s->addresses[k])
			json_key_str(j, "address", address);
		json_close(j, '}');
	}
	json_close(j, ']');
	buf_free(&text);
}

static void put_json_death(const struct stacks *s, struct json *j)
{
	const struct dump *d = s->file.dump;
	char text[DUMP_SIGNAL_BYTES];

	dump_signal_text(d, text);
	json_key_str(j, "died_of", text);
	snprintf(text, sizeof(text), "0x%" PRIx64, d->fault_address);
	if (d->has_fault_address)
		json_key_str(j, "fault_address", text);
}

static void put_json(const struct stacks *s, bool repeated, struct sheet *p)
{
	uint32_t i;

	for (i = s->now; i < s->ntaken; i++) {
		const struct taken *t = &s->taken[i];

		sheet_open(p);
		json_key_uint(&p->j, "pid", s->pid);
		json_key_uint(&p->j, "tid", t->tid);
		json_key_str(&p->j, "name", t->name);
		json_key_str(&p->j, "quality", stack_quality_text(t->quality));
		if (!s->dead)
			json_key_uint(&p->j, "stopped_ns", t->suspended_ns);
		if (repeated)
			json_key_uint(&p->j, "not_moved_times", t->still);
		if (t->wait)
			json_key_str(&p->j, "state", t->wait);
		if (s->dead && i == s->now && s->file.dump->signal)
			put_json_death(s, &p->j);
		if (t->waits_for)
			json_key_uint(&p->j, "waits_for_tid", t->waits_for);
		put_json_frames(s, t, &p->j);
		sheet_close(p);
	}
}

/* ---- the command ----------------------------------------------------------------------------- */

static void note_doubt(void *ctx, const char *text)
{
	(void)ctx;
	cmd_note("%s", text);
}

/* Without RBP, which only a thread that stands shows. */
static void note_ended_early(const struct stacks *s)
{
	uint32_t i, n = 0;

	for (i = s->now; i < s->ntaken; i++)
		n += s->taken[i].quality == QUALITY_BROKEN;
	if (n)
		cmd_note("%u of %u stacks end early: a register is needed that can only be read "
			 "of a stopped thread, and could not be worked out from its code; leave "
			 "out --no-stop to have them whole", (unsigned)n,
			 (unsigned)(s->ntaken - s->now));
}

static void note_missing(const struct stacks *s, bool no_stop)
{
	struct thread_stacks_use use;
	uint32_t seen;

	if (s->dead) {
		dump_stacks_doubts(s->dead, note_doubt, NULL);
		return;
	}
	if (no_stop)
		note_ended_early(s);
	thread_stacks_use(s->threads, &use);
	if (use.refused)
		cmd_note("%u of %u threads are missing: they could not be stopped or read",
			 (unsigned)use.refused, (unsigned)use.threads);
	if (use.stuck)
		cmd_note("%u of %u threads are missing: they wait in the kernel (state D) and "
			 "cannot be stopped", (unsigned)use.stuck, (unsigned)use.threads);
	if (use.unseen)
		cmd_note("%u of %u threads are missing: they run, and %s", (unsigned)use.unseen,
			 (unsigned)use.threads,
			 *use.unseen_why ? use.unseen_why : "had no time on a CPU for a sample");
	seen = s->ntaken - s->now + use.refused + use.stuck + use.unseen;
	if (use.threads > seen)
		cmd_note("%u threads ended meanwhile", (unsigned)(use.threads - seen));
}

static void close_all(struct stacks *s)
{
	uint32_t i;

	symbols_close(s->symbols);
	for (i = 0; i < s->nframes; i++)
		frame_unref(s->frames[i]);
	for (i = 0; i < s->ntaken; i++)
		free(s->taken[i].wait);
	thread_stacks_close(s->threads);
	dump_stacks_close(s->dead);
	dump_file_close(&s->file);
	if (s->table)
		frames_free(s->table);
	if (s->processes)
		processes_free(s->processes);
	log_close(s->log);
	free(s->taken);
	free(s->frames);
	free(s->addresses);
}

/* Take and print one picture. */
static int show_picture(struct stacks *s, const struct options *o, struct err *err)
{
	struct sheet sheet;
	int rc = take(s, err);

	sheet_init(&sheet, o);
	sheet.columns = FIT_ALL;             /* a frame is never cut */
	if (!rc && !s->symbols)
		rc = open_names(s, err);
	if (!rc) {
		name_frames(s);
		if (o->json)
			put_json(s, o->repeat > 1, &sheet);
		else if (o->format)
			stacks_put_jstack(s, &sheet);
		else
			put_text(s, o, &sheet);
		note_missing(s, o->no_stop);
		rc = sheet_print(&sheet, err);
	}
	sheet_free(&sheet);
	return rc;
}

/* Take the pictures after the first. The process may end between them. */
static int repeat_picture(struct stacks *s, const struct options *o, struct err *err)
{
	uint32_t i;
	int rc = 0;

	for (i = 1; !rc && i < o->repeat; i++) {
		os_sleep_ns(o->every_ms * NS_PER_MS);
		rc = thread_stacks_refresh(s->threads, err);
		if (!rc)
			rc = show_picture(s, o, err);
	}
	if (rc == ERR_NOT_FOUND) {
		cmd_note("process %u has ended", (unsigned)s->pid);
		rc = 0;
	}
	return rc;
}

/* One picture of every process. Those that cannot be read are counted, with the first reason. */
static int all_processes(const struct options *o, struct err *err)
{
	static const uint32_t max = 8192;
	uint32_t *pids = malloc(max * sizeof(*pids)), n, i, shown = 0, missing = 0;
	struct err why, first = {0};
	int rc = 0;

	if (!pids)
		return err_memory(err, "for the list of processes");
	n = thread_stacks_find(NULL, pids, max);
	for (i = 0; i < n && rc != ERR_MEMORY; i++) {
		struct stacks s = {.pid = pids[i], .env.path = o->capture.symbol_path};

		rc = open_all(&s, o->no_stop, &why);
		if (!rc && shown && !o->json)
			putchar('\n');
		if (!rc)
			rc = show_picture(&s, o, &why);
		shown += !rc;
		if (rc && rc != ERR_NOT_FOUND && !missing++)      /* not found: it has ended */
			first = why;
		close_all(&s);
	}
	free(pids);
	if (rc == ERR_MEMORY || !shown)
		return err_set(err, rc == ERR_MEMORY ? rc : (enum err_code)first.code, "%s",
			       first.text);
	if (missing)
		cmd_note("%u of %u processes are missing; the first: %s", (unsigned)missing,
			 (unsigned)n, first.text);
	return 0;
}

int cmd_stacks(const struct options *o, struct err *err)
{
	struct stacks s = {.env.path = o->capture.symbol_path};
	bool store = options_origin(o, "store") == FROM_ARGS;
	struct err unprinted = {0};
	int rc;

	if (o->format && !text_same_fold(o->format, "jstack"))
		return err_set(err, ERR_USAGE, "stacks has the format jstack, not '%.60s'; with "
			       "--store, export writes the others", o->format);
	if (dump_of(o) && (o->process || o->all_processes || o->repeat > 1 || o->no_stop ||
			   (o->core && o->dump)))
		return err_set(err, ERR_USAGE, "--core and --dump are one picture of one dead "
			       "process: not with each other, -p, --all-processes, --repeat or "
			       "--no-stop");
	if (o->exe && !dump_of(o))
		return err_set(err, ERR_USAGE, "--exe says where the program of a --core or --dump "
			       "is");
	if (o->all_processes && (o->process || o->repeat > 1 || store))
		return err_set(err, ERR_USAGE, "--all-processes prints one picture of each "
			       "process; -p, --repeat and --store are for one process");
	if (o->all_processes)
		return all_processes(o, err);
	if (!o->process && !dump_of(o))
		return err_set(err, ERR_USAGE, "stacks of which process? -p takes its name or "
			       "number, --all-processes all of them, --core or --dump a dead one");
	rc = dump_of(o) ? open_dead(&s, o, err) : cmd_one_process(o->process, &s.pid, err);
	if (!rc && !s.dead)
		rc = open_all(&s, o->no_stop, err);
	if (!rc)
		rc = show_picture(&s, o, err);
	/* The kernel, which pipes a core to us, gives us no output to print to. */
	if (rc && s.symbols && s.dead && store) {
		unprinted = *err;
		rc = 0;
	}
	if (!rc)
		rc = repeat_picture(&s, o, err);
	/* Only --store on the command line stores the stacks: elsewhere it names a recorder's. */
	if (!rc && store)
		rc = stacks_store(o, &s, err);
	close_all(&s);
	if (rc || !unprinted.code)
		return rc;
	*err = unprinted;
	return unprinted.code;
}
