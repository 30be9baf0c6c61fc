/*
 * The source of files that have names instead of addresses: the text of perf script, folded stacks,
 * those of speedscope, PerfView, pprof, Chrome, V8 and Java; and heap profiles of allocators, whose
 * addresses the symbol readers name. A file is read whole, its samples are sorted by time, and then
 * delivered.
 *
 * Frames keep their names: an object for each module and process of one's own, whose offsets are
 * numbers of frames. What the file does not tell is not made up, but for the time: folded stacks
 * follow each other, and count 10 ms each.
 */
#include "base/array.h"
#include "base/json_read.h"
#include "base/os.h"
#include "base/sort.h"
#include "base/text.h"
#include "source/source.h"
#include "source/stackfile/stack_list.h"
#include "source/stackfile/unzip.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX_BYTES ((size_t)2 << 30)
#define PPROF_FIRST '\n'                     /* field 1, of bytes: no text begins with it */
#define PPROF_FIRST_OF_GO 0x5a               /* the period's kind; of its heap profiles */
#define JFR_MAGIC "FLR"                      /* and a NUL */
#define JEMALLOC_HEAD "heap_v2/"
#define TCMALLOC_HEAD "heap profile: "
#define GOOGLE_RAW_HEAD "--- symbol\n"
#define GOOGLE_CPU_HEAD "\0\0\0\0\0\0\0\0\3\0\0\0\0\0\0"        /* and a NUL */
#define START_NS NS_PER_SEC                  /* of the recorder's clock; not 0 */

struct stackfile {
	struct source base;
	struct source_config cfg;
	const char *format;
	struct stack_list list;
	struct object **objects;             /* of each frame */
	struct thread **threads;             /* of each thread, as the next */
	struct process **processes;
	struct sort_item *order;
	struct frame_ref stack[STACK_MAX_FRAMES];
	uint64_t size_bytes, modified_ns, first_ns, length_ns, marked_ns;
	char note[400];
	_Atomic bool stopping;
	atomic_uint_fast64_t delivered;
};

extern const struct source_ops stackfile_source;

/* ---- reading --------------------------------------------------------------------------------- */

typedef int parser(struct stack_list *l, const char *text, size_t n, struct err *err);

static const struct format {
	const char *name;
	char first;                          /* character; '[' before a '{'; '\0' = any other */
	const char *member;                  /* of the object that it is; NULL = any */
	parser *read;
} formats[] = {
	{"speedscope's JSON", '{', "profiles", stack_list_speedscope},
	{"PerfView's JSON", '{', "StackSource", stack_list_perfview_json},
	{"PerfView's JSON", '{', "Samples", stack_list_perfview_json},
	{"Chrome's trace events", '{', "traceEvents", stack_list_trace_events},
	{"Chrome's trace events", '[', NULL, stack_list_trace_events},
	{"V8's CPU profile", '{', "nodes", stack_list_v8_profile},
	{"PerfView's XML", '<', NULL, stack_list_perfview},
	{"text of perf script", '\0', NULL, stack_list_perf_script},
	{"folded stacks", '\0', NULL, stack_list_folded},
};

static int read_as(struct stackfile *s, const char *format, parser *read, const char *text,
		   size_t n, struct err *err)
{
	int rc;

	stack_list_free(&s->list);
	s->format = format;
	rc = read(&s->list, text, n, err);
	if (rc == ERR_FORMAT)
		err_prefix(err, "%s is not read as %s", s->cfg.capture.file, format);
	if (!rc && s->list.no_memory)
		rc = err_memory(err, "for the samples of %s", s->cfg.capture.file);
	if (!rc && !s->list.nsamples)
		rc = err_set(err, ERR_FORMAT, "%s is read as %s, but has no samples",
			     s->cfg.capture.file, format);
	return rc;
}

/* By its first character and its members; a text by which parser finds samples in it. */
static int parse(struct stackfile *s, const struct buf *text, struct err *err)
{
	const char *at = buf_text(text);
	struct json_value whole = {0};
	const struct format *f, *end = formats + COUNT_OF(formats);
	int rc = ERR_FORMAT;
	char first;

	if (strncmp(at, "\xef\xbb\xbf", 3) == 0)
		at += 3;
	at += strspn(at, " \t\r\n");
	if (*at == '{' && !json_read(at, &whole))
		return err_set(err, ERR_FORMAT, "%s begins as JSON, but is none: is it cut?",
			       s->cfg.capture.file);
	first = *at == '[' && at[1 + strspn(at + 1, " \t\r\n")] != '{' ? '\0' : *at;
	first = first && strchr("{[<", first) ? first : '\0';
	for (f = formats; rc == ERR_FORMAT && f < end; f++) {
		if (f->first != first || (f->member && !json_member(whole, f->member).at))
			continue;
		rc = read_as(s, f->name, f->read, at, text->len - (size_t)(at - buf_text(text)),
			     err);
		if (first)
			return rc;
	}
	if (whole.at)
		return err_set(err, ERR_FORMAT, "%s is JSON of a kind that is not read: it has no "
			       "profiles (speedscope), traceEvents (Chrome), StackSource "
			       "(PerfView) or nodes (V8)", s->cfg.capture.file);
	return rc;
}

/* perfcollect's .trace.zip: of what is in it the text of perf script. */
static bool is_perfcollect(const struct stackfile *s)
{
	return text_ends_fold(s->cfg.capture.file, ".trace.zip");
}

static int unpack(const struct stackfile *s, struct buf *text, struct err *err)
{
	const char *path = s->cfg.capture.file;
	struct buf packed = *text;
	int rc;

	*text = (struct buf){.max_bytes = FILE_MAX_BYTES};
	if (unzip_is_gzip(packed.data, packed.len))
		rc = unzip_gzip(packed.data, packed.len, path, text, err);
	else
		rc = unzip_file(packed.data, packed.len, is_perfcollect(s) ? ".data.txt" : "",
				path, text, err);
	buf_free(&packed);
	return rc;
}

/* Files of gperftools that do not tell what they weigh, bytes or time: what to do about it. */
static const char *other_than(const char *at, size_t n)
{
	if (strncmp(at, GOOGLE_RAW_HEAD, strlen(GOOGLE_RAW_HEAD)) == 0)
		return "what google-pprof --raw printed: give the profile that it had read, "
		       "NAME.0001.heap";
	if (n > sizeof(GOOGLE_CPU_HEAD) && !memcmp(at, GOOGLE_CPU_HEAD, sizeof(GOOGLE_CPU_HEAD)))
		return "a CPU profile of gperftools: give what 'go tool pprof -proto PROGRAM "
		       "FILE' makes of it";
	return NULL;
}

static int load(struct stackfile *s, struct err *err)
{
	struct buf text = {.max_bytes = FILE_MAX_BYTES};
	int rc = os_load(s->cfg.capture.file, FILE_MAX_BYTES, &text, err);
	const char *at;

	s->size_bytes = text.len;
	if (!rc && (unzip_is_zip(text.data, text.len) || unzip_is_gzip(text.data, text.len)))
		rc = unpack(s, &text, err);
	at = buf_text(&text);
	if (rc)
		;
	else if (text.len > sizeof(JFR_MAGIC) && memcmp(at, JFR_MAGIC, sizeof(JFR_MAGIC)) == 0)
		rc = read_as(s, "a recording of JDK Flight Recorder", stack_list_jfr, at, text.len,
			     err);
	else if (strncmp(at, JEMALLOC_HEAD, strlen(JEMALLOC_HEAD)) == 0)
		rc = read_as(s, "a heap profile of jemalloc", stack_list_heap_profile, at,
			     text.len, err);
	else if (strncmp(at, TCMALLOC_HEAD, strlen(TCMALLOC_HEAD)) == 0)
		rc = read_as(s, "a heap profile of tcmalloc", stack_list_heap_profile, at,
			     text.len, err);
	else if (other_than(at, text.len))
		rc = err_set(err, ERR_FORMAT, "%s is %s", s->cfg.capture.file,
			     other_than(at, text.len));
	else if (*at == PPROF_FIRST || (*at == PPROF_FIRST_OF_GO && memchr(at, 0, text.len)))
		rc = read_as(s, "a profile of pprof", stack_list_pprof, at, text.len, err);
	else if (memchr(at, 0, text.len))
		rc = err_set(err, ERR_FORMAT, "%s is neither a trace nor a text",
			     s->cfg.capture.file);
	else
		rc = parse(s, &text, err);
	buf_free(&text);
	return rc;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* tcmalloc tells no devices: then it is that of the file with the same number that is there now. */
static uint64_t device_of(const struct stack_list_frame *f)
{
	struct os_file_info info;

	if (!f->is_address || f->place.dev || os_path_info(f->module, &info, NULL) != 0 ||
	    info.ino != f->place.ino)
		return f->place.dev;
	return info.dev;
}

static int make_objects(struct stackfile *s)
{
	const struct stack_list *l = &s->list;
	uint32_t i;

	s->objects = calloc((size_t)l->nframes + 1, sizeof(struct object *));
	for (i = 0; s->objects && i < l->nframes; i++) {
		const struct stack_list_frame *f = &l->frames[i];
		const struct object_key key = {
			.kind = f->flags & FRAME_KERNEL ? OBJECT_KERNEL
				: f->flags & FRAME_JIT ? OBJECT_JIT : OBJECT_ELF,
			.dev = device_of(f), .ino = f->place.ino,
			.path = *f->module ? f->module : "?"};

		s->objects[i] = objects_get(s->cfg.frames, &key, 0);
	}
	return s->objects ? 0 : ERR_MEMORY;
}

static int make_threads(struct stackfile *s)
{
	const struct stack_list *l = &s->list;
	uint32_t i;

	s->threads = calloc((size_t)l->nthreads + 1, sizeof(struct thread *));
	s->processes = calloc((size_t)l->nthreads + 1, sizeof(struct process *));
	for (i = 0; s->threads && s->processes && i < l->nthreads; i++) {
		const struct stack_list_thread *t = &l->threads[i];
		/* Processes without a number differ by name. */
		uint32_t exec = (uint32_t)hash_bytes(t->process, strlen(t->process));

		s->processes[i] = process_add(s->cfg.processes, t->pid, START_NS, exec, 0,
					      t->process);
		if (!s->processes[i])
			continue;
		s->threads[i] = thread_add(s->cfg.processes, s->processes[i], t->tid);
		if (s->threads[i])
			thread_set_name(s->threads[i], t->name);
	}
	return s->threads && s->processes ? 0 : ERR_MEMORY;
}

/* Bytes without times are what was there, or had been allocated, at one moment. */
static bool is_snapshot(const struct stack_list *l)
{
	return !l->has_times && l->nsamples && (l->samples[0].stream == STREAM_HEAP_NET ||
						l->samples[0].stream == STREAM_ALLOC);
}

/* Where a file has no times, each sample begins where the one before ends. */
static void invent_times(struct stack_list *l)
{
	uint64_t now_ns = 0;
	uint32_t i;

	for (i = 0; i < l->nsamples; i++) {
		struct stack_list_sample *s = &l->samples[i];

		if (s->stream == STREAM_OFF_CPU) {   /* its time is its end */
			s->time_ns = now_ns += (uint64_t)s->weight;
			continue;
		}
		s->time_ns = now_ns;
		now_ns += (s->count ? s->count : 1) * STACK_LIST_PERIOD_NS;
	}
}

static uint64_t begin_of(const struct stack_list_sample *s)
{
	if (s->stream != STREAM_OFF_CPU || !(s->weight > 0))
		return s->time_ns;
	return s->weight < (double)s->time_ns ? s->time_ns - (uint64_t)s->weight : 0;
}

static int sort(struct stackfile *s)
{
	struct stack_list *l = &s->list;
	struct sort_item *scratch = calloc((size_t)l->nsamples + 1, sizeof(*scratch));
	uint32_t i;

	s->order = calloc((size_t)l->nsamples + 1, sizeof(*s->order));
	if (!s->order || !scratch || stack_list_thread_time(l)) {
		free(scratch);
		return ERR_MEMORY;
	}
	stack_list_limit(l);
	if (!l->has_times && !is_snapshot(l))
		invent_times(l);
	for (i = 0; i < l->nsamples; i++)
		s->order[i] = (struct sort_item){.key = l->samples[i].time_ns, .value = {i, 0}};
	sort_items(s->order, scratch, l->nsamples);
	free(scratch);
	s->first_ns = l->nsamples ? s->order[0].key : 0;
	for (i = 0; i < l->nsamples; i++)
		if (begin_of(&l->samples[i]) < s->first_ns)
			s->first_ns = begin_of(&l->samples[i]);
	s->length_ns = l->nsamples ? s->order[l->nsamples - 1].key - s->first_ns : 0;
	return 0;
}

static void note(struct stackfile *s)
{
	struct buf b = {0};

	buf_printf(&b, "read from %s", s->format);
	if (s->list.full)
		buf_puts(&b, "; it has more samples, stacks or names than are read");
	if (s->list.merged)
		buf_puts(&b, "; its lines are one sample each, because they count too many");
	if (s->list.skipped)
		buf_printf(&b, "; %" PRIu64 " of its lines or items make no sense",
			   s->list.skipped);
	if (!s->list.has_times && !is_snapshot(&s->list))
		buf_printf(&b, "; it has no times: its samples follow each other%s",
			   s->list.samples[0].stream == STREAM_OFF_CPU ? "" : ", 10 ms each");
	if (is_perfcollect(s))
		buf_puts(&b, "; events of LTTng in it are not read");
	buf_puts(&b, "; the time of day is that of the file's last change");
	snprintf(s->note, sizeof(s->note), "%s", buf_text(&b));
	buf_free(&b);
}

/* ---- delivering ------------------------------------------------------------------------------ */

static bool put(struct stackfile *s, const struct event *e)
{
	while (!queue_offer(s->cfg.queue, e)) {
		if (atomic_load(&s->stopping))
			return false;
		os_sleep_ns(NS_PER_MS / 4);
	}
	atomic_fetch_add_explicit(&s->delivered, 1, memory_order_relaxed);
	if (e->time_ns - s->marked_ns >= NS_PER_MS) {
		s->marked_ns = e->time_ns;
		queue_watermark(s->cfg.queue, s->marked_ns);
	}
	return !atomic_load_explicit(&s->stopping, memory_order_relaxed);
}

static uint32_t make_stack(struct stackfile *s, uint32_t node)
{
	const struct stack_list *l = &s->list;
	uint32_t n = 0;

	for (; node != STACK_LIST_NONE && n < STACK_MAX_FRAMES; node = l->nodes[node].caller) {
		uint32_t frame = l->nodes[node].frame;
		const struct stack_list_frame *f = &l->frames[frame];

		s->stack[n++] = (struct frame_ref){
			.object = s->objects[frame] ? s->objects[frame]
						    : objects_unknown(s->cfg.frames),
			.offset = f->is_address ? f->place.offset : frame, .flags = f->flags};
	}
	return n;
}

/*
 * A sample of an event that is no time, which is its leaf, is that event, too: rules see it, as
 * those of perf.data. "sched:sched_switch" is of provider sched.
 */
static bool deliver_event(struct stackfile *s, const struct event *sample, uint32_t node)
{
	const struct stack_list *l = &s->list;
	const struct stack_list_frame *leaf = node == STACK_LIST_NONE
						      ? NULL : &l->frames[l->nodes[node].frame];
	const char *colon = leaf && leaf->function ? strchr(leaf->function, ':') : NULL;
	char provider[sizeof(CPU_COUNTER_PROVIDER) + 64] = CPU_COUNTER_PROVIDER;
	struct event e = *sample;

	if (!leaf || !leaf->function || strcmp(leaf->module, "event") != 0)
		return true;
	if (colon)
		snprintf(provider, sizeof(provider), "%.*s", (int)(colon - leaf->function),
			 leaf->function);
	e.kind = EVENT_GENERIC;
	e.provider = provider;
	e.name = colon ? colon + 1 : leaf->function;
	e.stack_frames++;
	e.nstack_frames--;
	return put(s, &e);
}

static bool deliver(struct stackfile *s, const struct stack_list_sample *sample)
{
	uint64_t step_ns = s->list.has_times ? 0 : STACK_LIST_PERIOD_NS;
	uint32_t i, n = sample->count ? sample->count : 1;
	struct event e = {.kind = EVENT_SAMPLE, .cpu = sample->cpu, .stack = STACK_NONE,
			  .stream = sample->stream, .quality = sample->quality,
			  .value = sample->weight, .stack_frames = s->stack,
			  .process = s->processes[sample->thread],
			  .thread = s->threads[sample->thread]};
	bool goes_on = true;

	e.nstack_frames = make_stack(s, sample->node);
	if (s->cfg.every_event) {
		e.provider = "stack";
		e.name = stream_text(sample->stream);
	}
	for (i = 0; goes_on && i < n; i++) {
		e.time_ns = START_NS + sample->time_ns - s->first_ns + i * step_ns;
		if (e.stream == STREAM_EVENT && !s->cfg.every_event)
			goes_on = deliver_event(s, &e, sample->node);
		goes_on = goes_on && put(s, &e);
	}
	return goes_on;
}

static int stackfile_run(struct source *source, struct err *err)
{
	struct stackfile *s = (struct stackfile *)source;
	const char *only = s->cfg.capture.only_process;
	uint32_t i;

	(void)err;
	for (i = 0; i < s->list.nsamples; i++) {
		const struct stack_list_sample *sample = &s->list.samples[s->order[i].value[0]];
		const struct process *process = s->processes[sample->thread];

		if (only && !(process && process_is_meant(process, only)))
			continue;
		if (!deliver(s, sample))
			break;
	}
	queue_finish(s->cfg.queue);
	return 0;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void stackfile_close(struct source *source)
{
	struct stackfile *s = (struct stackfile *)source;
	uint32_t i;

	for (i = 0; s->objects && i < s->list.nframes; i++)
		if (s->objects[i])
			object_drop(s->objects[i], 0);
	stack_list_free(&s->list);
	free(s->objects);
	free(s->threads);
	free(s->processes);
	free(s->order);
	free(s);
}

static int stackfile_open(const struct source_config *cfg, const struct needs *needs,
			  struct source **out, struct err *err)
{
	struct stackfile *s = calloc(1, sizeof(*s));
	struct os_file *file = NULL;
	struct os_file_info info;
	int rc;

	(void)needs;
	if (!s)
		return err_memory(err, "for reading %s", cfg->capture.file);
	s->base.ops = &stackfile_source;
	s->cfg = *cfg;
	rc = os_open(cfg->capture.file, OS_READ, &file, err);
	if (!rc && os_file_info(file, &info, NULL) == 0)
		s->modified_ns = info.mtime_ns;
	os_close(file);
	if (!rc)
		rc = load(s, err);
	if (!rc && (make_objects(s) || make_threads(s) || sort(s)))
		rc = err_memory(err, "for the samples of %s", cfg->capture.file);
	if (rc) {
		stackfile_close(&s->base);
		return rc;
	}
	note(s);
	*out = &s->base;
	return 0;
}

static int stackfile_check(const struct needs *needs, struct err *err)
{
	if (needs->ncounters || needs->nlogs)
		return err_set(err, ERR_NOT_FOUND,
			       "a file of stacks holds no counters and no logs");
	return 0;
}

static void stackfile_stop(struct source *source)
{
	atomic_store(&((struct stackfile *)source)->stopping, true);
}

static void stackfile_status(struct source *source, struct source_status *out)
{
	struct stackfile *s = (struct stackfile *)source;

	memset(out, 0, sizeof(*out));
	out->events = atomic_load_explicit(&s->delivered, memory_order_relaxed);
}

static void stackfile_origin(struct source *source, struct source_origin *out)
{
	struct stackfile *s = (struct stackfile *)source;

	memset(out, 0, sizeof(*out));
	out->start_ns = START_NS;
	out->start_wall_ns = s->modified_ns > s->length_ns ? s->modified_ns - s->length_ns : 0;
	out->bytes = s->size_bytes;
	snprintf(out->note, sizeof(out->note), "%s", s->note);
}

static bool stackfile_name_frame(struct source *source, const struct frame *frame,
				 struct symbol *out)
{
	struct stackfile *s = (struct stackfile *)source;
	const struct stack_list_frame *f;

	if (frame->offset >= s->list.nframes)
		return false;
	f = &s->list.frames[frame->offset];
	if (!f->function || f->is_address || s->objects[frame->offset] != frame->object)
		return false;
	*out = (struct symbol){.offset = frame->offset, .name = f->function,
			       .raw_name = f->function};
	return true;
}

const struct source_ops stackfile_source = {
	.name = "stacks",
	.summary = "samples in files of names: perf script, folded, PerfView, Chrome, Java",
	.check = stackfile_check,
	.open = stackfile_open,
	.run = stackfile_run,
	.stop = stackfile_stop,
	.status = stackfile_status,
	.origin = stackfile_origin,
	.name_frame = stackfile_name_frame,
	.close = stackfile_close,
};
