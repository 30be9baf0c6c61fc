#include "source/etw/events.h"

#include "base/array.h"
#include "base/text.h"
#include "source/etw/guids.h"
#include "source/etw/kernel.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- samples' interval ----------------------------------------------------------------------- */

/* How often samples are taken, if the record says so. */
static void learn_interval(struct etw_events *s, const struct etw_record *record,
			   const struct etw_class *class)
{
	struct etw_value v[AT_INTERVAL_FIELDS];

	if (!class || (class->id != ETW_SAMPLE_START && class->id != ETW_SAMPLE_SET))
		return;
	etw_class_read(class, record, v, AT_INTERVAL_FIELDS);
	if (etw_value_is(&v[AT_INTERVAL_NEW]) && v[AT_INTERVAL_SOURCE].u == 0 &&
	    v[AT_INTERVAL_NEW].u)
		s->interval_100ns = (uint32_t)v[AT_INTERVAL_NEW].u;
}

/* ---- whose event it is ----------------------------------------------------------------------- */

uint64_t etw_events_time(const struct etw_events *s, int64_t ticks)
{
	uint64_t ns = etw_clock_ns(&s->clock, ticks);

	return ns > UINT64_MAX - 1 - s->start_ns ? UINT64_MAX - 1 : s->start_ns + ns;
}

/* Events of the network have no process but this; so have a process's last counters. */
static bool begins_with_process(const struct etw_class *class)
{
	const char *name = class && class->nfields ? class->fields[0].name : NULL;

	return name && (strcmp(name, "PID") == 0 || strcmp(name, "ProcessID") == 0) &&
	       class->fields[0].type == ETW_U32;
}

/* An event about a process, thread or image belongs to it, not to the process that caused it. */
static void subject_of(const struct etw_events *s, const struct etw_whole *w, uint32_t *pid,
		       uint32_t *tid)
{
	const struct etw_record *r = w->record;
	const struct etw_thread *t;

	*pid = r->pid;
	*tid = w->tid;
	switch (w->class ? w->class->topic : ETW_TOPIC_OTHER) {
	case ETW_TOPIC_PROCESS:
		*pid = etw_payload_u32(r, r->pointer_bytes);
		*tid = ETW_ID_UNKNOWN;
		return;
	case ETW_TOPIC_THREAD:
		*pid = etw_payload_u32(r, 0);
		*tid = etw_payload_u32(r, 4);
		return;
	case ETW_TOPIC_IMAGE:
	case ETW_TOPIC_MEMORY:
		*pid = etw_payload_u32(r, 2u * r->pointer_bytes);
		if (*pid != r->pid)
			*tid = ETW_ID_UNKNOWN;
		return;
	default:
		if (*tid == ETW_ID_UNKNOWN && w->class && w->class->id == ETW_READY_THREAD)
			*tid = etw_thread_time_running(&s->time, r->cpu);
		break;
	}
	if (*pid == ETW_ID_UNKNOWN && begins_with_process(w->class))
		*pid = etw_payload_u32(r, 0);
	if (*tid == r->tid && *pid != ETW_ID_UNKNOWN)
		return;
	/* An unknown thread keeps the header's process, if its id is the header's too. */
	t = *tid == ETW_ID_UNKNOWN ? NULL : etw_state_thread(s->state, *tid, r->ticks);
	if (t)
		*pid = t->pid;
}

/*
 * The model's process. A process that has ended is added and dropped again each time, because the
 * merge thread frees processes that no segment lists.
 */
static struct process *process_of(struct etw_events *s, uint32_t pid, int64_t ticks,
				  uint64_t now_ns)
{
	struct etw_process *p =
		pid == ETW_ID_UNKNOWN ? NULL : etw_state_need_process(s->state, pid, ticks);
	struct process *model;

	if (!p)
		return NULL;
	if (p->model && ticks <= p->life.until)
		return p->model;
	model = process_add(s->cfg.processes, pid,
			    p->life.from == ETW_ALWAYS ? 0 : etw_events_time(s, p->life.from), 0,
			    p->parent, NULL);
	if (!model)
		return NULL;
	if (p->image)
		process_set_exe(model, p->image);
	if (p->command_line)
		process_set_cmdline(model, p->command_line);
	p->model = ticks <= p->life.until ? model : NULL;
	if (!p->model)
		process_drop(s->cfg.processes, model, now_ns);
	return model;
}

static struct thread *thread_of(struct etw_events *s, struct process *process, uint32_t pid,
				uint32_t tid, int64_t ticks, uint64_t now_ns)
{
	struct etw_thread *t = tid == ETW_ID_UNKNOWN ? NULL :
			       etw_state_need_thread(s->state, tid, pid, ticks);
	struct thread *model;
	bool lives;

	if (!t || !process)
		return NULL;
	lives = ticks <= t->life.until &&
		ticks <= etw_state_need_process(s->state, pid, ticks)->life.until;
	if (t->model && lives)
		return t->model;
	model = thread_add_started(s->cfg.processes, process, tid,
				   t->life.from == ETW_ALWAYS ? 0
							      : etw_events_time(s, t->life.from));
	if (!model)
		return NULL;
	if (t->name)
		thread_set_name(model, t->name);
	t->model = lives ? model : NULL;
	if (!lives)
		thread_drop(s->cfg.processes, model, now_ns);
	return model;
}

/* Drop a process or thread from the model after its last own event. */
static void drop_ended(struct etw_events *s, const struct etw_whole *w, uint32_t pid, uint32_t tid,
		       uint64_t now_ns)
{
	struct etw_process *p;
	struct etw_thread *t;

	if (w->class->id == ETW_PROCESS_STOP) {
		p = etw_state_process(s->state, pid, w->record->ticks);
		if (p && p->model) {
			process_drop(s->cfg.processes, p->model, now_ns);
			p->model = NULL;
		}
		gc_objects_gone(&s->objects, pid);
	} else if (w->class->id == ETW_THREAD_STOP) {
		t = etw_state_thread(s->state, tid, w->record->ticks);
		if (t && t->model && t->pid == pid) {
			thread_drop(s->cfg.processes, t->model, now_ns);
			t->model = NULL;
		}
	}
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/*
 * Every user thread starts in ntdll.dll and every kernel thread in the kernel, so a walk that ends
 * elsewhere ended too early. The CLR's own walks may end anywhere.
 */
static uint8_t quality_of(const struct etw_whole *w, const struct event *e)
{
	const struct frame_ref *root;

	if (w->state == ETW_STACK_NO_USER || w->state == ETW_STACK_NO_KEY)
		return QUALITY_BROKEN;
	if (!e->nstack_frames)
		return e->kind == EVENT_SAMPLE ? QUALITY_BROKEN : QUALITY_NONE;
	if (w->naddresses > STACK_MAX_FRAMES)
		return QUALITY_TRUNCATED;
	root = &e->stack_frames[e->nstack_frames - 1];
	if ((root->flags & FRAME_KERNEL) || strcmp(root->object->name, "ntdll.dll") == 0 ||
	    text_same_fold(root->object->name, "ntdll.dll"))
		return QUALITY_COMPLETE;
	return w->from_runtime ? QUALITY_FP : QUALITY_BROKEN;
}

static void put_stack(struct etw_events *s, const struct etw_whole *w, uint32_t pid,
		      struct event *e)
{
	struct etw_located stack = {
		.pid = pid, .addresses = w->addresses, .naddresses = w->naddresses,
		.os_pointer_bytes = w->os_pointer_bytes, .ticks = w->record->ticks,
		.no_kernel = s->cfg.capture.no_kernel_stacks,
	};

	etw_code_stack(s->code, &stack);
	e->stack_frames = stack.nframes ? stack.frames : NULL;
	e->nstack_frames = stack.nframes;
	e->stack_id = stack.nframes ? stack.id : 0;
}

/* ---- which events ---------------------------------------------------------------------------- */

#define MANIFEST_ID 65534u                   /* a piece of an EventSource's manifest */

/* Records that only describe other records: nothing happened. */
static bool is_metadata(const struct etw_whole *w)
{
	static const struct etw_guid rundown = CLR_RUNDOWN_GUID;
	static const struct etw_guid classic[] = {IMAGE_ID_GUID, SYSTEM_CONFIG_GUID,
						  EVENT_TRACE_GUID, VOLUMES_GUID, SCHEMAS_GUID};
	const struct etw_record *r = w->record;
	size_t i = 0;

	if (w->class && w->class->describes)
		return true;
	if (r->header == ETW_MANIFEST)
		return r->id == MANIFEST_ID || guid_same(&r->guid, &rundown);
	while (i < COUNT_OF(classic) && !guid_same(&r->guid, &classic[i]))
		i++;
	return i < COUNT_OF(classic);
}

bool etw_is_idle_sample(const struct etw_record *r, const struct etw_class *class)
{
	uint32_t tid_at = r->pointer_bytes, flags_at = tid_at + 6u;
	static const uint8_t zero[4];

	return class && class->id == ETW_SAMPLE && flags_at < r->payload_bytes &&
	       memcmp(r->payload + tid_at, zero, sizeof(zero)) == 0 && !(r->payload[flags_at] & 3);
}

static enum event_kind kind_of(const struct etw_whole *w)
{
	static const uint8_t kinds[ETW_CLASS_IDS] = {
		[ETW_SAMPLE] = EVENT_SAMPLE,
		[ETW_PROCESS_START] = EVENT_PROCESS_START, [ETW_PROCESS_STOP] = EVENT_PROCESS_EXIT,
		[ETW_THREAD_START] = EVENT_THREAD_START, [ETW_THREAD_STOP] = EVENT_THREAD_EXIT,
	};
	uint8_t kind = w->class ? kinds[w->class->id] : EVENT_NONE;

	return kind ? (enum event_kind)kind : EVENT_GENERIC;
}

/* ---- values, and who wants the event --------------------------------------------------------- */

static double value_of(const struct etw_events *s, const struct etw_whole *w, enum event_kind kind,
		       uint32_t pid)
{
	const struct etw_record *r = w->record;
	const struct etw_process *p;
	uint16_t count = 1;

	switch (kind) {
	case EVENT_SAMPLE:
		if (r->pointer_bytes + 6u <= r->payload_bytes)
			memcpy(&count, r->payload + r->pointer_bytes + 4, sizeof(count));
		return (double)(count ? count : 1) * 100 *
		       (s->interval_100ns ? s->interval_100ns : ETW_INTERVAL_100NS);
	case EVENT_PROCESS_EXIT:
		p = etw_state_process(s->state, pid, r->ticks);
		return p && p->has_exit ? p->exit_code : 0;
	default:
		return 0;
	}
}

static bool is_wanted_process(const struct etw_events *s, const struct process *process,
			      int64_t ticks)
{
	const struct capture *c = &s->cfg.capture;
	const struct etw_process *p;

	if (c->root_pid) {
		p = process ? etw_state_process(s->state, process->pid, ticks) : NULL;
		return p && p->in_tree;
	}
	return !c->only_process || (process && process_is_meant(process, c->only_process));
}

/* Whether its stack shows who ended a wait, perhaps in a recorded process. */
static bool is_waker(const struct etw_events *s, const struct etw_whole *w)
{
	return s->time.threads && s->cfg.capture.wakers && w->class &&
	       w->class->id == ETW_READY_THREAD;
}

/* Whether a record becomes an event. */
static bool is_delivered(struct etw_events *s, const struct etw_whole *w)
{
	uint32_t id = w->class ? w->class->id : ETW_OTHER;

	return s->cfg.every_event ||
	       (!is_metadata(w) &&
		!(id == ETW_GC_START && etw_state_gc_twin(s->state, w->record, w->class)));
}

static int send_event(struct etw_events *s, const struct event *e)
{
	while (s->waits && !queue_offer(s->cfg.queue, e)) {
		if (atomic_load(&s->stopping))
			return ERR_STOPPED;
		os_sleep_ns(NS_PER_MS / 4);
	}
	if (!s->waits && !queue_put(s->cfg.queue, e))
		return 0;                    /* the queue has counted it */
	atomic_fetch_add_explicit(&s->delivered, 1, memory_order_relaxed);
	if (e->time_ns > s->last_ns)
		s->last_ns = e->time_ns;
	if (s->last_ns - s->marked_ns >= NS_PER_MS) {
		s->marked_ns = s->last_ns;
		queue_watermark(s->cfg.queue, s->marked_ns);
	}
	return 0;
}

/* ---- times of threads ------------------------------------------------------------------------ */

static void put_time(void *ctx, const struct thread_time_piece *piece)
{
	struct etw_events *s = ctx;
	struct etw_thread *t = etw_state_thread(s->state, piece->tid, s->time.now_ticks);
	struct event e = {.time_ns = piece->end_ns, .kind = EVENT_SAMPLE, .cpu = CPU_NONE,
			  .stream = STREAM_OFF_CPU, .stack = STACK_NONE, .value = (double)piece->ns,
			  .quality = piece->quality, .stack_frames = s->time.scratch};
	uint32_t pid = t ? t->pid : ETW_ID_UNKNOWN;

	e.process = process_of(s, pid, s->time.now_ticks, piece->end_ns);
	e.thread = thread_of(s, e.process, pid, piece->tid, s->time.now_ticks, piece->end_ns);
	if (!is_wanted_process(s, e.process, s->time.now_ticks))
		return;
	e.nstack_frames = thread_time_frames(piece, s->time.leaves, s->time.scratch);
	send_event(s, &e);
}

static bool is_gone(void *ctx, uint32_t tid)
{
	struct etw_events *s = ctx;
	const struct etw_thread *t = etw_state_thread(s->state, tid, s->time.now_ticks);

	return !t || t->life.until < s->time.now_ticks;
}

/* Move thread time on. Only a live session needs ticks: a file has the ends of all waits. */
static void advance_thread_time(struct etw_events *s, int64_t ticks)
{
	struct etw_thread_time *t = &s->time;
	bool after_gap = t->lost && ticks > t->lost_ticks;

	t->now_ticks = ticks;
	t->now_ns = etw_events_time(s, ticks);
	if (after_gap) {
		thread_time_lost(t->threads, t->now_ns);
		memset(t->running, 0, sizeof(t->running));
		t->lost = false;
	}
	if (!s->waits && t->now_ns - t->tick_ns >= ETW_THREAD_TIME_TICK_NS) {
		thread_time_tick(t->threads, t->now_ns, is_gone);
		t->tick_ns = t->now_ns;
	}
}

bool etw_events_name(struct etw_events *s, const struct frame *frame, struct symbol *out)
{
	return thread_time_name(s->time.leaves, s->cfg.processes, frame, s->time.name, out);
}

/* ---- counters of the processor --------------------------------------------------------------- */

/* The event of what the counter counted; false = it is not one of this session's. */
static bool name_counter(const struct etw_events *s, const struct etw_whole *w, struct event *e)
{
	const struct etw_record *r = w->record;
	const struct etw_pmc *counter;
	uint32_t at = r->pointer_bytes + 4u;
	uint16_t id = 0;

	if (!w->class || w->class->id != ETW_PMC_SAMPLE || at + sizeof(id) > r->payload_bytes)
		return false;
	memcpy(&id, r->payload + at, sizeof(id));
	counter = etw_pmcs_find(&s->counters, id);
	if (!counter)
		return false;
	e->provider = CPU_COUNTER_PROVIDER;
	e->name = counter->name;
	e->value = counter->interval;
	return true;
}

/* ---- heaps ----------------------------------------------------------------------------------- */

static bool is_of_heap(const struct etw_whole *w)
{
	return w->class && w->class->id >= ETW_HEAP_ALLOC && w->class->id <= ETW_HEAP_DESTROY;
}

/* Send what a heap's record tells of a block, if that is new: a sample, or the mark of one. */
static int send_block(struct etw_events *s, enum heap_probe what, const struct etw_value *heap,
		      const struct etw_value *address, const struct etw_value *bytes,
		      struct event e)
{
	const struct event_field fields[] = {
		{.name = "Arg1", .type = FIELD_UINT, .v.u = address->u},
		{.name = "Heap", .type = FIELD_UINT, .v.u = heap->u},
		{.name = "Arg3", .type = FIELD_UINT, .v.u = bytes ? bytes->u : 0},
	};

	if (!etw_value_is(address) || !address->u || (bytes && !etw_value_is(bytes)))
		return 0;
	e.fields = fields;
	e.nfields = COUNT_OF(fields);
	return heap_blocks_take(&s->heap, what, &e) ? send_event(s, &e) : 0;
}

static int send_destroyed(struct etw_events *s, const struct etw_value *heap, const struct event *e)
{
	struct event mark = *e;
	uint32_t at = 0;
	int rc = 0;

	while (!rc && heap_blocks_destroy(&s->heap, heap->u, &at, &mark)) {
		rc = send_event(s, &mark);
		mark = *e;
	}
	return rc;
}

static int deliver_heap(struct etw_events *s, const struct etw_whole *w, const struct event *e)
{
	struct etw_value v[AT_HEAP_REALLOC_FIELDS] = {{0}};
	int rc;

	if (atomic_load(&s->heap.forgotten) && !s->heap_full)
		log_line(s->cfg.log, LOG_WARN, "heaps have more than %u blocks: some are no longer "
			 "followed, and count as in use", HEAP_BLOCKS_ALL);
	s->heap_full = atomic_load(&s->heap.forgotten) > 0;
	etw_class_read(w->class, w->record, v, COUNT_OF(v));
	switch (w->class->id) {
	case ETW_HEAP_ALLOC:
		return send_block(s, HEAP_ALLOC, &v[AT_HEAP_HANDLE], &v[AT_HEAP_ALLOC_ADDRESS],
				  &v[AT_HEAP_ALLOC_BYTES], *e);
	case ETW_HEAP_REALLOC:
		rc = send_block(s, HEAP_FREE, &v[AT_HEAP_HANDLE], &v[AT_HEAP_REALLOC_OLD], NULL,
				*e);
		return rc ? rc : send_block(s, HEAP_ALLOC, &v[AT_HEAP_HANDLE],
					    &v[AT_HEAP_REALLOC_ADDRESS],
					    &v[AT_HEAP_REALLOC_BYTES], *e);
	case ETW_HEAP_FREE:
		return send_block(s, HEAP_FREE, &v[AT_HEAP_HANDLE], &v[AT_HEAP_FREE_ADDRESS],
				  NULL, *e);
	default:
		return send_destroyed(s, &v[AT_HEAP_HANDLE], e);
	}
}

/* ---- objects --------------------------------------------------------------------------------- */

static void put_object(void *ctx, const struct event *e)
{
	struct etw_events *s = ctx;

	send_event(s, e);
}

/* Follow objects of .NET; returns  whether the event itself is not to be kept: only live */
static bool follow_objects(struct etw_events *s, const struct etw_whole *w, const struct event *e)
{
	const struct etw_record *r = w->record;

	if (s->cfg.every_event)
		return false;
	return gc_objects_collect(&s->objects, e, r->payload, r->payload_bytes, r->pointer_bytes,
				  put_object, s) &&
	       !s->waits;
}

/* ---- each event ------------------------------------------------------------------------------ */

static int deliver(struct etw_events *s, const struct etw_whole *w)
{
	struct event e = {.kind = kind_of(w), .cpu = w->record->cpu, .stack = STACK_NONE,
			  .stream = STREAM_EVENT};
	uint32_t pid, tid;
	bool wanted;
	int rc = 0;

	learn_interval(s, w->record, w->class);
	if (s->before)
		s->before(s, w->record->ticks);
	if (s->time.threads)
		advance_thread_time(s, w->record->ticks);
	if (!is_delivered(s, w))
		return 0;
	e.time_ns = etw_events_time(s, w->record->ticks);
	subject_of(s, w, &pid, &tid);
	e.process = process_of(s, pid, w->record->ticks, e.time_ns);
	e.thread = thread_of(s, e.process, pid, tid, w->record->ticks, e.time_ns);
	e.value = value_of(s, w, e.kind, pid);
	e.payload_bytes = w->record->payload_bytes;
	wanted = is_wanted_process(s, e.process, w->record->ticks);
	if (w->naddresses && (wanted || is_waker(s, w)))
		put_stack(s, w, pid, &e);
	e.quality = quality_of(w, &e);
	if (is_of_heap(w) && !s->cfg.every_event)
		return wanted ? deliver_heap(s, w, &e) : 0;
	if (e.kind == EVENT_SAMPLE) {
		e.stream = STREAM_CPU;
		if (!wanted)
			return 0;
	}
	if (s->time.threads && etw_thread_time_take(&s->time, w, &e) &&
	    !s->switch_rules)
		return 0;
	if (name_counter(s, w, &e)) {
		if (!wanted)
			return 0;
	} else if (e.kind != EVENT_SAMPLE || s->cfg.every_event) {
		etw_decode_event(s->decode, w->record, &s->decoded);
		etw_computed_add(&s->computed, s->state, s->clock.frequency_hz, w->record,
				 &s->decoded);
		etw_decoded_fill(&s->decoded, &e);
		if (w->record->header == ETW_MANIFEST)
			e.flags |= EVENT_FLAG_ID | (uint32_t)w->record->id << EVENT_ID_SHIFT;
	}
	if (wanted && follow_objects(s, w, &e))
		return 0;
	if (wanted || !s->cfg.capture.root_pid)
		rc = send_event(s, &e);
	if (wanted && !s->cfg.every_event)
		gc_objects_alloc(&s->objects, &e, put_object, s);
	if (s->time.threads && e.kind == EVENT_SAMPLE)
		etw_thread_time_sample(&s->time, w->tid, &e);
	if (e.kind == EVENT_PROCESS_EXIT || e.kind == EVENT_THREAD_EXIT)
		drop_ended(s, w, pid, tid, e.time_ns);
	return rc;
}

static int take(struct etw_events *s, struct etw_stacks *from)
{
	const struct etw_whole *w;
	int rc = 0;

	while (!rc && (w = etw_stacks_next(from)))
		rc = deliver(s, w);
	return rc;
}

int etw_events_take(struct etw_events *s)
{
	int rc = take(s, s->stacks);

	return rc || !s->heap_stacks ? rc : take(s, s->heap_stacks);
}

static bool never_gone(void *ctx, uint32_t tid)
{
	(void)ctx;
	(void)tid;
	return false;
}

int etw_events_end(struct etw_events *s)
{
	int rc;

	etw_stacks_end(s->stacks);
	if (s->heap_stacks)
		etw_stacks_end(s->heap_stacks);
	rc = etw_events_take(s);
	if (!rc && s->time.threads)
		thread_time_tick(s->time.threads, s->time.now_ns, never_gone);
	return rc;
}

int etw_events_loss(struct etw_events *s, enum loss_kind kind, uint64_t n)
{
	struct event e = {.kind = EVENT_LOST, .cpu = CPU_NONE, .stack = STACK_NONE,
			  .value = (double)n, .name = loss_kind_text(kind)};

	e.time_ns = s->last_ns ? s->last_ns : s->start_ns;
	if (n && kind == LOSS_KERNEL)
		gc_objects_lost(&s->objects, e.time_ns);
	return n ? send_event(s, &e) : 0;
}

/* ---- records --------------------------------------------------------------------------------- */

void etw_events_learn(struct etw_events *s, const struct etw_record *record,
		      const struct etw_class *class)
{
	etw_decode_learn(s->decode, record);
	etw_state_learn(s->state, record, class);
	etw_code_learn(s->code, record, class);
	if (class && gc_objects_tells(class->provider, class->key))
		s->objects.on = true;
	if (!s->interval_100ns)
		learn_interval(s, record, class);
}

uint64_t etw_events_refused(const struct etw_events *s, size_t *bytes)
{
	struct etw_learned learned;

	etw_decode_learned(s->decode, &learned);
	*bytes = learned.nbytes + etw_stacks_bytes(s->stacks);
	return learned.refused + etw_stacks_counts(s->stacks)->refused +
	       etw_state_refused(s->state, bytes) + etw_code_refused(s->code, bytes) +
	       (s->time.threads ? thread_time_refused(s->time.threads) : 0);
}

/* ---- life ------------------------------------------------------------------------------------ */

int etw_events_open(struct etw_events *s, enum etw_stacks_pass pass, struct err *err)
{
	int rc = etw_decode_new(&s->decode, err);

	s->objects.log = s->cfg.log;
	if (!rc)
		rc = etw_state_new(&s->state, err);
	if (!rc && s->cfg.capture.root_pid)
		rc = etw_state_root(s->state, s->cfg.capture.root_pid, err);
	if (!rc)
		rc = etw_code_new(s->state, s->cfg.frames, &s->code, err);
	if (!rc && heap_blocks_init(&s->heap, HEAP_BLOCKS_ALL))
		rc = err_memory(err, "for the blocks of heaps");
	if (!rc)
		rc = etw_stacks_new(pass, (int64_t)s->clock.frequency_hz, &s->stacks, err);
	if (!rc && capture_switches(&s->cfg.capture) && !s->cfg.every_event)
		rc = etw_thread_time_open(&s->time, s->cfg.capture.wakers, s->cfg.frames,
					  put_time, s, err);
	return rc;
}

void etw_events_needs(struct etw_events *s, const struct needs *needs)
{
	uint32_t i;

	for (i = 0; i < needs->nevents; i++)
		s->switch_rules |= etw_is_kernel(needs->events[i].provider) &&
				   (event_name_is(needs->events[i].name, "Thread/CSwitch") ||
				    event_name_is(needs->events[i].name, "Dispatcher/ReadyThread"));
}

void etw_events_close(struct etw_events *s)
{
	heap_blocks_free(&s->heap);
	gc_objects_free(&s->objects);
	etw_thread_time_close(&s->time);
	etw_stacks_free(s->stacks);
	etw_stacks_free(s->heap_stacks);
	etw_code_free(s->code, s->last_ns + 1);
	etw_state_free(s->state);
	etw_decode_free(s->decode);
}
