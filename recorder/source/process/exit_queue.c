#include "source/process/exit_queue.h"

#include <stdio.h>
#include <stdlib.h>

int exit_queue_init(struct exit_queue *q, struct processes *processes, struct err *err)
{
	q->processes = processes;
	q->all = malloc(EXIT_QUEUE_MAX * sizeof(*q->all));
	return q->all ? 0 : err_memory(err, "for the source of endings");
}

void exit_queue_free(struct exit_queue *q)
{
	free(q->all);
	*q = (struct exit_queue){0};
}

static struct queued_exit *at(const struct exit_queue *q, uint32_t i)
{
	return &q->all[(q->first + i) % EXIT_QUEUE_MAX];
}

void exit_queue_put(struct exit_queue *q, const struct queued_exit *p)
{
	uint32_t i;

	for (i = q->count++; i && at(q, i - 1)->record.time_ns > p->record.time_ns; i--)
		*at(q, i) = *at(q, i - 1);
	*at(q, i) = *p;
}

void exit_queue_look(struct exit_queue *q, uint64_t now_ns)
{
	struct process *process;
	uint32_t i;

	for (i = 0; i < q->count && at(q, i)->record.time_ns + EXIT_HOLD_NS <= now_ns; i++) {
		struct queued_exit *p = at(q, i);

		if (p->name[0])
			continue;
		process = process_find(q->processes, p->record.pid, p->record.time_ns);
		if (!process)
			continue;
		p->start_ns = process->start_ns;
		p->exec = process->exec;
		snprintf(p->name, sizeof(p->name), "%s", process_name(process));
		process_unref(process);
	}
}

const struct queued_exit *exit_queue_first(const struct exit_queue *q)
{
	return q->count ? at(q, 0) : NULL;
}

bool exit_queue_take(struct exit_queue *q, uint64_t now_ns, struct queued_exit *out)
{
	const struct queued_exit *p = exit_queue_first(q);
	uint64_t hold_ns = p && p->name[0] ? EXIT_HOLD_NS : EXIT_HOLD_NS + EXIT_HOLD_UNKNOWN_NS;

	if (!p || (now_ns != UINT64_MAX && p->record.time_ns + hold_ns > now_ns))
		return false;
	*out = *p;
	q->first = (q->first + 1) % EXIT_QUEUE_MAX;
	q->count--;
	return true;
}
