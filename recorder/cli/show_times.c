#include "cli/show_times.h"

#include "cli/cmd.h"

#include <stdlib.h>
#include <string.h>

/* Those from KINDS_ALWAYS on are said only if there are some. */
enum { KINDS = 8, KINDS_ALWAYS = 4 };

static const struct {
	const char *leaf, *words, *key;
} kinds[KINDS] = {
	{"CPU_TIME", "on a CPU", "cpu_s"},
	{"BLOCKED_TIME", "blocked", "blocked_s"},
	{"DISK_TIME", "waiting for devices", "disk_s"},
	{"READIED_TIME", "ready but without a CPU", "readied_s"},
	{"HARD_FAULT", "waiting for pages of files", "hard_fault_s"},
	{"NETWORK_TIME", "waiting for the network", "network_s"},
	{"UNKNOWN_TIME", "unknown because records of switches are missing", "unknown_s"},
	{"GIL", "waiting for Python's lock", "gil_s"},
};

struct times {
	double s[KINDS];
	uint32_t threads;
};

static bool add_up(const struct incident *in, struct times *out)
{
	bool *seen = calloc((size_t)in->nthreads + 1, sizeof(*seen));
	uint32_t i, k;

	memset(out, 0, sizeof(*out));
	for (i = 0; seen && i < in->nsamples; i++) {
		const struct incident_sample *s = &in->samples[i];
		const char *leaf = NULL;
		uint32_t node;

		if (s->stream != STREAM_OFF_CPU || s->stack == STACK_NONE)
			continue;
		/* The kind is the leaf, or stands above the waker's stack. */
		for (node = s->stack, k = KINDS; node != STACK_NONE && k == KINDS;
		     node = in->stacks[node].parent) {
			leaf = in->frames[in->stacks[node].frame].function;
			for (k = 0; k < KINDS && !(leaf && strcmp(leaf, kinds[k].leaf) == 0); k++)
				;
		}
		if (k < KINDS)
			out->s[k] += (double)s->weight / 1e9;
		if (s->thread != THREAD_NONE && !seen[s->thread]) {
			seen[s->thread] = true;
			out->threads++;
		}
	}
	free(seen);
	return out->threads != 0;
}

void times_put(const struct incident *in, struct sheet *p)
{
	char n[NUMBER_BYTES];
	struct times t;
	unsigned k;

	if (!add_up(in, &t))
		return;
	if (p->json) {
		json_key_open(&p->j, "thread_time", '{');
		json_key_uint(&p->j, "threads", t.threads);
		for (k = 0; k < KINDS; k++)
			json_key_num(&p->j, kinds[k].key, t.s[k]);
		json_close(&p->j, '}');
		return;
	}
	sheet_label(p, "Times");
	buf_printf(&p->out, "%s threads:", text_count(t.threads, n));
	for (k = 0; k < KINDS; k++)
		if (k < KINDS_ALWAYS || t.s[k] >= 0.0005)
			buf_printf(&p->out, "%s %s %s", k ? "," : "", text_seconds(t.s[k], n),
				   kinds[k].words);
	buf_puts(&p->out, "; see report --metric off-cpu\n");
}
