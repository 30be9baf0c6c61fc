#include "tests/support/incident_samples.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEC 1000000000ULL
#define PERIOD_NS 10000000ULL

static int set_text(char **at, const char *text)
{
	*at = malloc(strlen(text) + 1);
	if (!*at)
		return ERR_MEMORY;
	strcpy(*at, text);
	return 0;
}

int sample_incident(struct incident *in)
{
	struct incident_head *h = &in->head;
	int rc = incident_init(in);

	h->id = 7;
	strcpy(h->uuid, "00000000-0000-4000-8000-000000000007");
	h->state = INCIDENT_COMPLETE;
	h->trigger_ns = 105 * SEC;
	h->trigger_wall_ns = 1767323045 * SEC + 678000000;
	h->t0_ns = 100 * SEC;
	h->t1_ns = 110 * SEC;
	h->asked_pre_ns = 120 * SEC;
	h->asked_post_ns = 5 * SEC;
	h->period_ns[STREAM_CPU] = PERIOD_NS;
	h->lost = 3;
	h->lost_by_kind[LOSS_KERNEL] = 2;
	h->lost_by_kind[LOSS_QUEUE] = 1;
	if (!rc)
		rc = set_text(&h->rule, "Processor:% Processor Time:_Total>80");
	if (!rc)
		rc = set_text(&h->reason, "% Processor Time was 91.5, over its limit of 80");
	if (!rc)
		rc = set_text(&h->gap_reason, "the recorder had started 5 s before");
	if (!rc)
		rc = set_text(&h->host, "web-1");
	if (!rc)
		rc = set_text(&h->host_text, "Linux 6.1.0 x86_64");
	if (!rc)
		rc = set_text(&h->recorder_version, "1.0");
	return rc;
}

uint32_t sample_thread(struct incident *in, const char *process, uint32_t pid, const char *thread,
		       uint32_t tid)
{
	struct incident_process p = {.pid = pid, .start_ns = pid * SEC, .name = process};
	struct incident_thread t = {.tid = tid, .name = thread};

	t.process = incident_add_process(in, &p);
	return incident_add_thread(in, &t);
}

static uint32_t add_module(struct incident *in, const char *name)
{
	struct incident_module m = {.kind = OBJECT_ELF, .name = name, .path = name};

	if (!*name)
		m.kind = OBJECT_UNKNOWN;
	else if (strcmp(name, "[kernel]") == 0)
		m.kind = OBJECT_KERNEL;
	else if (*name == '[')
		m.kind = OBJECT_JIT;
	return incident_add_module(in, &m);
}

static uint32_t add_frame(struct incident *in, const struct frame_spec *spec)
{
	struct incident_frame f = {
		.module = add_module(in, spec->module),
		.flags = spec->flags,
		.offset = spec->offset,
		.function = spec->function,
	};

	if (f.module < in->nmodules && in->modules[f.module].kind == OBJECT_KERNEL)
		f.flags |= FRAME_KERNEL;
	if (f.module < in->nmodules && in->modules[f.module].kind == OBJECT_JIT)
		f.flags |= FRAME_JIT;
	return incident_add_frame(in, &f);
}

int sample_frames(struct incident *in, const struct frame_spec *root_first, uint32_t n,
		  uint32_t *stack)
{
	uint32_t node = STACK_NONE, i;

	for (i = 0; i < n; i++) {
		node = incident_add_stack(in, node, add_frame(in, &root_first[i]));
		if (node == UINT32_MAX)
			return ERR_MEMORY;
	}
	*stack = node;
	return 0;
}

int sample_stack(struct incident *in, const char *root_first, uint32_t *stack)
{
	struct frame_spec frames[64];
	char text[4096], *at, *bang;
	uint32_t n = 0;

	snprintf(text, sizeof(text), "%s", root_first);
	for (at = strtok(text, ";"); at && n < 64; at = strtok(NULL, ";")) {
		bang = strchr(at, '!');
		*bang = '\0';
		frames[n].module = at;
		frames[n].function = strcmp(bang + 1, "?") == 0 ? NULL : bang + 1;
		frames[n].offset = 0x1000;
		frames[n++].flags = 0;
	}
	return sample_frames(in, frames, n, stack);
}

int sample_add(struct incident *in, uint32_t thread, uint32_t stack, enum stack_quality quality,
	       uint32_t count)
{
	struct incident_sample s = {
		.time_ns = in->head.t0_ns,
		.weight = PERIOD_NS,
		.thread = thread,
		.stack = stack,
		.stream = STREAM_CPU,
		.quality = (uint8_t)quality,
	};
	int rc = 0;

	if (in->nsamples)
		s.time_ns = in->samples[in->nsamples - 1].time_ns;
	while (count-- && !rc) {
		s.time_ns += PERIOD_NS;
		s.cpu = (uint16_t)(in->nsamples % 2);
		rc = incident_add_sample(in, &s);
	}
	incident_count(in);
	return rc;
}

static int add_text(struct incident *in, uint32_t thread, const char *root_first,
		    enum stack_quality quality, uint32_t count)
{
	uint32_t stack;
	int rc = thread == UINT32_MAX ? ERR_MEMORY : sample_stack(in, root_first, &stack);

	return rc ? rc : sample_add(in, thread, stack, quality, count);
}

int sample_small(struct incident *in)
{
	static const struct frame_spec second[] = {
		{.module = "app", .function = "main", .offset = 0x1000},
		{.module = "app", .function = "burn_alpha", .offset = 0x2222},
	};
	uint32_t app, worker, node, stack;
	int rc = sample_incident(in);

	if (rc)
		return rc;
	app = sample_thread(in, "app", 100, "", 100);
	worker = sample_thread(in, "app", 100, "worker", 101);
	node = sample_thread(in, "node", 200, "node", 200);
	rc = add_text(in, app, "app!main;app!burn_alpha", QUALITY_COMPLETE, 3);
	if (!rc)
		rc = sample_frames(in, second, 2, &stack);
	if (!rc)
		rc = sample_add(in, app, stack, QUALITY_COMPLETE, 1);
	if (!rc)
		rc = add_text(in, app, "app!main", QUALITY_COMPLETE, 1);
	if (!rc)
		rc = add_text(in, worker, "libc.so.6!start;app!?;[kernel]!read", QUALITY_FP, 1);
	if (!rc)
		rc = add_text(in, worker, "app!orphan", QUALITY_BROKEN, 1);
	if (!rc)
		rc = add_text(in, worker, "app!deep", QUALITY_TRUNCATED, 1);
	if (!rc)
		rc = add_text(in, node, "node!main;[jit]!run;!?", QUALITY_FP, 2);
	if (!rc)
		rc = add_text(in, node, "", QUALITY_NONE, 1);
	if (!rc)
		rc = sample_add(in, THREAD_NONE, STACK_NONE, QUALITY_NONE, 1);
	return rc;
}

static int add_weighed(struct incident *in, uint32_t thread, uint32_t stack, enum stream stream,
		       uint64_t weight, uint64_t after_ms)
{
	struct incident_sample s = {
		.time_ns = in->head.t0_ns + after_ms * 1000000, .weight = weight, .thread = thread,
		.stack = stack, .stream = (uint8_t)stream, .quality = QUALITY_COMPLETE, .cpu = 1,
	};

	return incident_add_sample(in, &s);
}

static int add_events(struct incident *in)
{
	const struct event_field gc[] = {
		{.name = "Count", .type = FIELD_UINT, .v.u = 18446744073709551615u},
		{.name = "Reason", .type = FIELD_TEXT, .v.text = "=1+1, \"x\"\n"},
		{.name = "Delta", .type = FIELD_INT, .v.i = -5},
		{.name = "Ratio", .type = FIELD_DOUBLE, .v.d = 0.25},
		{.name = "DurationMSec", .type = FIELD_DOUBLE, .v.d = 12.5},
	};
	const struct event_field log[] = {
		{.name = "Message", .type = FIELD_TEXT, .v.text = "<script>\"a\", b\nc"},
	};
	struct incident_event e = {
		.kind = EVENT_COUNTER, .thread = THREAD_NONE, .stack = STACK_NONE, .cpu = CPU_NONE,
		.provider = "", .name = "Process:Working Set:app", .time_ns = in->head.t0_ns,
		.value = 1.5,
	};
	int rc = incident_add_event(in, &e, NULL);

	e.time_ns += SEC;
	e.value = 2e15;
	rc = rc ? rc : incident_add_event(in, &e, NULL);
	e.time_ns += SEC;
	e.flags = EVENT_FLAG_ABSENT;
	rc = rc ? rc : incident_add_event(in, &e, NULL);
	e = (struct incident_event){
		.kind = EVENT_GENERIC, .thread = 1, .stack = 1, .cpu = 3, .value = 12.5,
		.provider = "Microsoft-Windows-DotNETRuntime", .name = "GC/Stop",
		.time_ns = in->head.trigger_ns, .nfields = 5,
	};
	rc = rc ? rc : incident_add_event(in, &e, gc);
	e.kind = EVENT_LOG;
	e.provider = "journal";
	e.name = "line";
	e.time_ns += SEC;
	e.stack = STACK_NONE;
	e.nfields = 1;
	return rc ? rc : incident_add_event(in, &e, log);
}

int sample_streams(struct incident *in)
{
	int rc = sample_small(in);

	in->head.period_ns[STREAM_OFF_CPU] = 1;
	in->head.period_ns[STREAM_ALLOC] = 102400;
	rc = rc ? rc : add_weighed(in, 0, 0, STREAM_OFF_CPU, 1000001, 200);
	rc = rc ? rc : add_weighed(in, 1, 2, STREAM_OFF_CPU, 20, 210);
	rc = rc ? rc : add_weighed(in, 0, STACK_NONE, STREAM_OFF_CPU, 7, 220);
	rc = rc ? rc : add_weighed(in, 0, 1, STREAM_ALLOC, 4096, 230);
	rc = rc ? rc : add_weighed(in, 1, 2, STREAM_ALLOC, 100000000, 240);
	rc = rc ? rc : add_events(in);
	incident_count(in);
	return rc;
}

/* 10,000 times "n". */
static char *long_name(void)
{
	char *name = malloc(10001);

	if (name) {
		memset(name, 'n', 10000);
		name[10000] = '\0';
	}
	return name;
}

const char *const sample_hostile_names[] = {
	"operator+", "a;b;c", "page 12", "page_12", "two 1 2", "half 1.5",
	"std::map<int, int>::operator->", "<script>alert(1)</script>", "]]>", "&amp;",
	"\"quoted\"", "'", "bad\xff\xfeutf8\xc3", "tab\there", "line\nfeed\r",
	"\x01\x7f", "\xef\xbf\xbf", "\xed\xa0\x80", "# comment", "",
	" ", "--", "caf\xc3\xa9 \xf0\x9f\x94\xa5", "%s%n%d", "?", "42",
	NULL,
};

int sample_hostile(struct incident *in)
{
	char *longest = long_name();
	uint32_t thread, stack, i;
	int rc = sample_incident(in);

	if (!longest)
		rc = ERR_MEMORY;
	for (i = 0; !rc && (!i || sample_hostile_names[i - 1]); i++) {
		const char *name = sample_hostile_names[i] ? sample_hostile_names[i] : longest;
		struct frame_spec frames[] = {
			{.module = "app", .function = "main"},
			{.module = name, .function = name},
		};

		thread = sample_thread(in, name, 10 + i, name, 20 + i);
		rc = thread == UINT32_MAX ? ERR_MEMORY : sample_frames(in, frames, 2, &stack);
		if (!rc)
			rc = sample_add(in, thread, stack, QUALITY_COMPLETE, 1);
	}
	free(longest);
	return rc;
}

/* A small generator of our own: the same numbers on every host. */
static uint32_t next(uint64_t *state)
{
	*state = *state * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(*state >> 33);
}

/* Below n, small numbers far more often than large ones, as hot stacks are. */
static uint32_t skewed(uint64_t *state, uint32_t n)
{
	double u = (double)next(state) / 2147483648.0;

	return (uint32_t)(u * u * u * u * n);
}

static int large_stacks(struct incident *in, uint32_t *stacks, uint32_t nstacks, uint32_t depth,
			uint64_t *state)
{
	struct frame_spec frames[256];
	char names[256][64];
	uint32_t i, j;
	int rc = 0;

	for (i = 0; i < nstacks && !rc; i++) {
		for (j = 0; j < depth; j++) {
			/* Few ways near the root, many near the leaf. */
			uint32_t pick = next(state) % (j + 2);

			snprintf(names[j], sizeof(names[j]), "library::function_%u_of_level_%u",
				 pick, j);
			frames[j] = (struct frame_spec){
				.module = j % 5 ? "libservice.so.1" : "service",
				.function = names[j],
				.offset = j * 4096 + pick * 16,
			};
		}
		rc = sample_frames(in, frames, depth, &stacks[i]);
	}
	return rc;
}

int sample_large(struct incident *in, uint32_t nsamples, uint32_t nstacks, uint32_t depth,
		 uint32_t nthreads)
{
	uint32_t *stacks = malloc(nstacks * sizeof(*stacks));
	struct incident_sample s = {.weight = PERIOD_NS, .quality = QUALITY_COMPLETE};
	uint64_t state = 1;
	char name[32];
	uint32_t i;
	int rc = sample_incident(in);

	if (!stacks)
		rc = ERR_MEMORY;
	for (i = 0; i < nthreads && !rc; i++) {
		snprintf(name, sizeof(name), "worker %u", i);
		if (sample_thread(in, "service", 500 + i / 16, name, 1000 + i) == UINT32_MAX)
			rc = ERR_MEMORY;
	}
	if (!rc)
		rc = large_stacks(in, stacks, nstacks, depth, &state);
	for (i = 0; i < nsamples && !rc; i++) {
		uint32_t pick = skewed(&state, nstacks);

		s.time_ns = in->head.t0_ns + i * 10000ULL;
		s.thread = pick % nthreads;
		s.stack = stacks[pick];
		rc = incident_add_sample(in, &s);
	}
	in->head.t1_ns = s.time_ns;
	incident_count(in);
	free(stacks);
	return rc;
}
