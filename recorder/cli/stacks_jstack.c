/*
 * stacks --format jstack: tools that read Java thread dumps read these.
 *
 * Source: HotSpot's Threads::print_on(), javaVFrame::print_lock_info_on() and
 * DeadlockCycle::print_on_with(). tests/support/jstack_readers.js has the rules of readers: they
 * drop a thread with a line that they do not know, and a frame without a '.' in its name.
 */
#include "cli/stacks_store.h"

#include "base/moment.h"
#include "base/os.h"
#include "base/table.h"
#include "base/utf8.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NUMBER_MAX 0xFFFFFFFFFFFFu           /* like an address, which readers take for signed */

/* Without what would end it: quotes of a name, parentheses of a frame. */
static void put_text(const char *text, struct buf *out)
{
	size_t at = out->len;

	utf8_put_clean(out, text, strlen(text), FUNCTION_NAME_MAX);
	for (; at < out->len; at++) {
		char *c = &out->data[at];

		*c = *c == '"' ? '\'' : *c == '(' ? '<' : *c == ')' ? '>' : *c;
	}
}

/* A function of a program or library is like a method of a class. */
static void put_frame(const struct stacks *s, uint32_t which, struct buf *out)
{
	const struct function *function;
	const char *module = stacks_module_of(s->frames[which], &function);
	bool is_java = function && strcmp(module, "[java]") == 0 && strchr(function->name, '.');
	struct buf name = {0};

	stacks_put_name(s, which, function, &name);
	out->failed |= name.failed;
	buf_puts(out, "\tat ");
	if (!is_java) {
		put_text(*module ? module : "?", out);
		buf_putc(out, '.');
	}
	put_text(buf_text(&name), out);
	buf_puts(out, is_java ? "(Unknown Source)\n" : "(Native Method)\n");
	buf_free(&name);
}

/* The address of the mutex or futex that it waits for; else a number for what its wait says. */
static unsigned long long lock_of(const struct taken *t)
{
	unsigned long long address;

	if (t->wait && sscanf(t->wait, "waits for the %*s at %llx", &address) == 1)
		return address;
	return t->wait ? hash_bytes(t->wait, strlen(t->wait)) & NUMBER_MAX : 0;
}

static void put_wait(const struct taken *t, struct buf *out)
{
	const char *what = strncmp(t->wait, "waits ", 6) == 0 ? t->wait + 6 : t->wait;

	if (t->waits_for)
		buf_printf(out, "\t- waiting to lock <0x%016llx> (a mutex)\n", lock_of(t));
	else {
		buf_printf(out, "\t- parking to wait for  <0x%016llx> (a wait ", lock_of(t));
		put_text(what, out);
		buf_puts(out, ")\n");
	}
}

static bool runs(const struct taken *t)
{
	return !t->wait || strncmp(t->wait, "runs", 4) == 0;
}

static void put_stack(const struct stacks *s, const struct taken *t, struct buf *out)
{
	uint32_t i, k;

	for (k = t->first; k < t->first + t->n; k++) {
		put_frame(s, k, out);
		if (k != t->first)
			continue;
		if (!runs(t))
			put_wait(t, out);
		for (i = s->now; i < s->ntaken; i++)
			if (s->taken[i].waits_for == t->tid)
				buf_printf(out, "\t- locked <0x%016llx> (a mutex)\n",
					   lock_of(&s->taken[i]));
	}
}

static void put_name(const struct taken *t, struct buf *out)
{
	buf_putc(out, '"');
	put_text(*t->name ? t->name : "?", out);
	buf_putc(out, '"');
}

/* A circle of threads[first], which are those of s->taken + s->now. */
static void put_circle(const struct stacks *s, const struct waiting *threads, uint32_t n,
		       uint32_t first, struct buf *out)
{
	const struct taken *all = s->taken + s->now;
	uint32_t i = first, owner;

	buf_puts(out, "\nFound one Java-level deadlock:\n=============================\n");
	do {
		owner = deadlocks_owner(threads, n, i);
		put_name(&all[i], out);
		buf_printf(out, ":\n  waiting to lock monitor 0x%016llx "
			   "(object 0x%016llx, a mutex),\n  which is held by ",
			   lock_of(&all[i]), lock_of(&all[i]));
		put_name(&all[owner], out);
		buf_putc(out, '\n');
		i = owner;
	} while (i != first);
	buf_puts(out, "\nJava stack information for the threads listed above:\n"
		 "===================================================\n");
	do {
		put_name(&all[i], out);
		buf_puts(out, ":\n");
		put_stack(s, &all[i], out);
		i = deadlocks_owner(threads, n, i);
	} while (i != first);
}

static void put_circles(const struct stacks *s, struct buf *out)
{
	uint32_t n, i, found = 0;
	struct waiting *threads = stacks_waiting(s, &n);

	for (i = 0; threads && i < n; i++) {
		if (!deadlocks_lead(threads, n, i))
			continue;
		put_circle(s, threads, n, i, out);
		found++;
	}
	if (found)
		buf_printf(out, "\nFound %u deadlock%s.\n", (unsigned)found, found > 1 ? "s" : "");
	out->failed |= !threads;
	free(threads);
}

void stacks_put_jstack(const struct stacks *s, struct sheet *p)
{
	char time[MOMENT_TEXT_BYTES];
	uint32_t i;

	moment_local_text(s->dead ? s->file.wall_ns : os_wall_ns(), time);
	buf_printf(&p->out, "%s%s\nFull thread dump of process %u ", s->now ? "\n" : "", time,
		   (unsigned)s->pid);
	utf8_put_clean(&p->out, stacks_path(s), strlen(stacks_path(s)), 1024);
	buf_puts(&p->out, ":\n");
	for (i = s->now; i < s->ntaken; i++) {
		const struct taken *t = &s->taken[i];
		bool running = runs(t);

		buf_putc(&p->out, '\n');
		put_name(t, &p->out);
		buf_printf(&p->out, " #%u prio=0 os_prio=0 tid=0x%016x nid=0x%x %s "
			   "[0x0000000000000000]\n   java.lang.Thread.State: %s\n",
			   (unsigned)(i - s->now + 1), (unsigned)t->tid, (unsigned)t->tid,
			   running ? "runnable" : t->waits_for ? "waiting for monitor entry"
							       : "waiting on condition",
			   running ? "RUNNABLE" : t->waits_for ? "BLOCKED (on object monitor)"
							       : "WAITING (parking)");
		put_stack(s, t, &p->out);
	}
	put_circles(s, &p->out);
}
