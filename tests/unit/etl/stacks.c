/* Processes, code and stacks of the real traces, number by number. */
#include "base/array.h"
#include "base/os.h"
#include "source/etl/file.h"
#include "source/etw/code.h"
#include "source/etw/stacks.h"
#include "tests/support/etw_bytes.h"
#include "tests/support/real_trace.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One method's share of the samples. */
struct share {
	const char *module, *name;
	uint32_t leaf, inclusive;
	bool seen;                           /* in this stack */
};

static struct reading {
	struct etl_file *file;
	struct frames *frames;
	struct etw_state *state;
	struct etw_code *code;
	struct etw_stacks *stacks;
	bool delivering;

	/* Events with a stack of the kernel's walker, by class. */
	uint32_t targets[ETW_CLASS_IDS];
	uint32_t samples, idle, kept, with_stack, both, kernel_only, user_only;
	uint64_t frames_seen, managed, kernel, image, unknown, of_unloaded, sum;
	uint32_t deepest;
	uint32_t kept_of_pid[5000];
	uint32_t item_stacks, item_frames, runtime_stacks, runtime_frames;
	uint32_t disk_keys, disk_named;
	uint32_t of_class[ETW_CLASS_IDS];    /* records */
	uint32_t images, images_found, methods, methods_named;
	struct share share[8];
	uint64_t one[16];                    /* the sample at 1970006276 */
	uint32_t none, one_kernel;
	char one_second[300], one_last[300];
} r;

static const struct share shares[] = {
	{"mscorlib.dll", "System.DateTime.GetDatePart", 0, 0, false},
	{"mscorlib.dll", "System.TimeZoneInfo.TransitionTimeToDateTime", 0, 0, false},
	{"mscorlib.dll", "System.DateTime.get_DayOfWeek", 0, 0, false},
	{"clr.dll", NULL, 0, 0, false},
	{"mscorlib.dll", "System.DateTime.DateToTicks", 0, 0, false},
	{"hal.dll", NULL, 0, 0, false},
	{"Test.x64.exe", "Test.Program.Main", 0, 0, false},
};

static void count_share(const struct frame_ref *ref, bool leaf)
{
	struct symbol symbol = {0};
	const char *module = ref->object->name;
	uint32_t i;

	if (etw_code_name(r.code, ref->object, ref->offset, &symbol))
		module = symbol.module;
	for (i = 0; i < COUNT_OF(shares); i++) {
		struct share *s = &r.share[i];

		if (!module || strcmp(s->module, module) != 0 || !s->name != !symbol.name ||
		    (s->name && strcmp(s->name, symbol.name) != 0))
			continue;
		s->leaf += leaf;
		s->inclusive += !s->seen;
		s->seen = true;
	}
}

/* Whether an image held the address at 2897.2248 ms; 3676 mapped mscorlib.dll there for 28 us. */
static bool was_image(uint32_t pid, uint64_t address)
{
	struct frame_ref ref;

	etw_code_locate(r.code, pid, address, 1971581123, false, &ref);
	return ref.object->key.kind == OBJECT_PE;
}

static void count_frames(const struct etw_whole *w, uint32_t pid)
{
	struct frame_ref ref;
	uint32_t i;

	for (i = 0; i < COUNT_OF(shares); i++)
		r.share[i].seen = false;
	for (i = 0; i < w->naddresses; i++) {
		uint64_t address = w->addresses[i];
		bool kernel = etw_is_kernel_address(address, w->os_pointer_bytes);

		r.sum += address;
		etw_code_locate(r.code, pid, address, w->record->ticks, kernel, &ref);
		switch (ref.object->key.kind) {
		case OBJECT_JIT:
			r.managed++;
			break;
		case OBJECT_PE:
			r.image++;
			r.kernel += kernel;
			break;
		default:
			r.unknown++;
			r.of_unloaded += was_image(pid, address);
			break;
		}
		count_share(&ref, i == 0);
	}
	r.frames_seen += w->naddresses;
	r.deepest = w->naddresses > r.deepest ? w->naddresses : r.deepest;
}

static void text_of(const struct etw_whole *w, uint32_t pid, uint32_t i, char out[300])
{
	struct frame_ref ref;
	bool kernel = etw_is_kernel_address(w->addresses[i], 8);

	etw_code_locate(r.code, pid, w->addresses[i], w->record->ticks, kernel, &ref);
	snprintf(out, 300, "%s+0x%x", ref.object->name, (unsigned)ref.offset);
	r.one_kernel += kernel;
}

static void take_sample(const struct etw_whole *w)
{
	uint8_t flags = w->record->payload[w->record->pointer_bytes + 6];
	const struct etw_thread *t = etw_state_thread(r.state, w->tid, w->record->ticks);
	bool kernel, user;
	uint32_t i;

	r.samples++;
	if (w->tid == 0 && !(flags & 3)) {
		r.idle++;
		return;
	}
	r.kept++;
	assert_non_null(t);
	assert_true(t->pid < 5000);
	r.kept_of_pid[t->pid]++;
	if (!w->naddresses)
		return;
	r.with_stack++;
	kernel = etw_is_kernel_address(w->addresses[0], 8);
	user = !etw_is_kernel_address(w->addresses[w->naddresses - 1], 8);
	r.both += kernel && user;
	r.kernel_only += kernel && !user;
	r.user_only += !kernel;
	count_frames(w, t->pid);
	if (w->record->ticks == 1970006276 && w->tid == 3680) {
		char unused[300];

		r.none = w->naddresses;
		for (i = 0; i < w->naddresses; i++)
			text_of(w, t->pid, i, i == 1 ? r.one_second :
				i == w->naddresses - 1 ? r.one_last : unused);
	}
}

/* What a record says of an image or a method must be found at its address. */
static void look_up(const struct etw_whole *w, uint32_t id)
{
	const struct etw_record *record = w->record;
	struct etw_value v[AT_IMAGE_FIELDS];
	struct symbol symbol;
	struct frame_ref ref;

	if (id == ETW_IMAGE_LOAD || id == ETW_IMAGE_DCSTART) {
		etw_class_read(w->class, record, v, AT_IMAGE_FIELDS);
		r.images++;
		etw_code_locate(r.code, (uint32_t)v[AT_IMAGE_PID].u, v[AT_IMAGE_BASE].u,
				record->ticks, !v[AT_IMAGE_PID].u, &ref);
		r.images_found += ref.object->key.kind == OBJECT_PE && ref.offset == 0;
	} else if (id == ETW_METHOD_LOAD || id == ETW_METHOD_DCSTOP) {
		etw_class_read(w->class, record, v, AT_METHOD_CODE_FIELDS);
		r.methods++;
		etw_code_locate(r.code, record->pid, v[AT_METHOD_START].u, record->ticks, false,
				&ref);
		r.methods_named += etw_code_name(r.code, ref.object, ref.offset, &symbol);
	}
}

static bool has_item_stack(const struct etw_record *record)
{
	uint32_t i = 0;

	while (i < record->nitems && record->items[i].type != 5 && record->items[i].type != 6)
		i++;
	return i < record->nitems;
}

static void take(const struct etw_whole *w)
{
	struct etw_value v[AT_DISK_FIELDS];
	uint32_t id = w->class ? w->class->id : ETW_OTHER;

	r.of_class[id]++;
	look_up(w, id);
	if (id == ETW_DISK_READ || id == ETW_DISK_WRITE) {
		etw_class_read(w->class, w->record, v, AT_DISK_FIELDS);
		r.disk_keys++;
		r.disk_named +=
			etw_state_file(r.state, v[AT_DISK_FILE].u, w->record->ticks) != NULL;
	}
	if (has_item_stack(w->record)) {
		r.item_stacks++;
		r.item_frames += w->naddresses;
	} else if (w->from_runtime) {
		r.runtime_stacks++;
		r.runtime_frames += w->naddresses;
	} else if (w->naddresses) {
		r.targets[id]++;
	}
	if (id == ETW_SAMPLE)
		take_sample(w);
}

static int each(void *ctx, const struct etw_record *record)
{
	const struct etw_class *class = etw_class_find(record);
	const struct etw_whole *w;

	(void)ctx;
	etw_stacks_put(r.stacks, record, class);
	if (!r.delivering) {
		etw_state_learn(r.state, record, class);
		etw_code_learn(r.code, record, class);
		return 0;
	}
	while ((w = etw_stacks_next(r.stacks)))
		take(w);
	return 0;
}

/* Read a trace twice, or skip the test and say why. */
static void read_real(const char *name)
{
	const struct etw_whole *w;
	struct err err;

	memset(&r, 0, sizeof(r));
	memcpy(r.share, shares, sizeof(shares));
	r.file = real_trace_open(name);
	assert_int_equal(frames_new(&r.frames, &err), 0);
	assert_int_equal(etw_state_new(&r.state, &err), 0);
	assert_int_equal(etw_code_new(r.state, r.frames, &r.code, &err), 0);
	assert_int_equal(etw_stacks_new(ETW_STACKS_SURVEY, 10000000, &r.stacks, &err), 0);
	assert_int_equal(etl_file_run(r.file, each, NULL, NULL, &err), 0);
	etw_code_settle(r.code);
	assert_int_equal(etw_stacks_deliver(r.stacks, &err), 0);
	r.delivering = true;
	assert_int_equal(etl_file_run(r.file, each, NULL, NULL, &err), 0);
	etw_stacks_end(r.stacks);
	while ((w = etw_stacks_next(r.stacks)))
		take(w);
}

static void close_real(void)
{
	etw_stacks_free(r.stacks);
	etw_code_free(r.code, 1);
	etw_state_free(r.state);
	frames_free(r.frames);
	etl_file_close(r.file);
}

static void net_has_these_processes_and_images(void)
{
	const struct etw_process *p = etw_state_process(r.state, 3676, 1980000000);
	struct etw_guid guid = etw_guid_of("72482100-1c1c-4a03-aed8-c4c71c2e8d1d");
	const struct etw_clock *clock = &etl_file_facts(r.file)->clock;
	uint32_t i, nprocesses = 0, nthreads = 0, age = 2;
	struct frame_ref kernel;
	size_t bytes = 0;

	for (i = 0; i < 100000; i++) {
		nprocesses += etw_state_process(r.state, i, INT64_MAX) != NULL;
		nthreads += etw_state_thread(r.state, i, INT64_MAX) != NULL;
	}
	assert_int_equal(nprocesses, 35);
	assert_int_equal(nthreads, 672);
	assert_int_equal(etw_state_refused(r.state, &bytes) + etw_code_refused(r.code, &bytes), 0);
	assert_int_equal(r.images, 1798);
	assert_int_equal(r.images_found, 1798);
	assert_int_equal(r.methods, 16992);        /* two of them twice */
	assert_int_equal(r.methods_named, 16992);
	assert_string_equal(p->image, "Test.x64.exe");
	assert_int_equal(p->parent, 3508);
	assert_true(p->has_exit && p->exit_code == 0);
	assert_int_equal((etw_clock_ns(clock, p->life.from) + 500) / 1000, 2733176);
	assert_int_equal((etw_clock_ns(clock, p->life.until) + 500) / 1000, 8202285);
	etw_code_locate(r.code, 0, 0xfffff80021489000u, 1980000000, true, &kernel);
	assert_int_equal(kernel.object->key.build_id_bytes, sizeof(guid) + sizeof(age));
	assert_memory_equal(kernel.object->key.build_id, &guid, sizeof(guid));
	assert_memory_equal(kernel.object->key.build_id + sizeof(guid), &age, sizeof(age));
	assert_int_equal(r.disk_keys, 1229);
	assert_int_equal(r.disk_named, 1229);
}

static void net_has_these_parts_of_stacks(void)
{
	const struct etw_stacks_count *n = etw_stacks_counts(r.stacks);

	assert_int_equal(r.of_class[ETW_STACK], 252);
	assert_int_equal(r.of_class[ETW_STACK_KEY_KERNEL], 2061);
	assert_int_equal(r.of_class[ETW_STACK_KEY_USER], 7046);
	assert_int_equal(r.of_class[ETW_STACK_KEY_DELETE], 1909);
	assert_int_equal(r.of_class[ETW_STACK_KEY_RUNDOWN], 1012);
	assert_int_equal(n->orphans + n->unresolved + n->refused, 0);
	assert_int_equal(r.targets[ETW_SAMPLE], 6318);
	assert_int_equal(r.targets[ETW_DISK_READ_INIT], 1208);
	assert_int_equal(r.targets[ETW_DISK_WRITE_INIT], 21);
	assert_int_equal(r.targets[ETW_DISK_FLUSH_INIT], 2);
	assert_int_equal(r.targets[ETW_HARD_FAULT], 153);
	assert_int_equal(r.targets[ETW_IMAGE_LOAD], 35);
	assert_int_equal(r.targets[ETW_THREAD_START], 9);
	assert_int_equal(r.item_stacks, 655);
	assert_int_equal(r.item_frames, 29211);
	assert_int_equal(r.of_class[ETW_CLR_STACK], 14983);
	assert_int_equal(r.runtime_stacks, 14983);
	assert_int_equal(r.runtime_frames, 337030);
}

static void net_has_these_samples(void)
{
	assert_int_equal(r.samples, 79528);
	assert_int_equal(r.idle, 73208);
	assert_int_equal(r.kept, 6320);
	assert_int_equal(r.with_stack, 6318);
	assert_int_equal(r.both, 538);
	assert_int_equal(r.kernel_only, 224);
	assert_int_equal(r.user_only, 5556);
	assert_int_equal(r.kept_of_pid[3676], 5129);
	assert_int_equal(r.kept_of_pid[3988], 356);
	assert_int_equal(r.kept_of_pid[1632], 283);
	assert_int_equal(r.kept_of_pid[980], 132);
	assert_int_equal(r.kept_of_pid[0], 105);
	assert_int_equal(r.share[0].leaf, 1856);
	assert_int_equal(r.share[1].leaf, 566);
	assert_int_equal(r.share[2].leaf, 470);
	assert_int_equal(r.share[3].leaf, 339);
	assert_int_equal(r.share[4].leaf, 315);
	assert_int_equal(r.share[5].leaf, 311);
	assert_int_equal(r.share[6].inclusive, 4935);
}

/*
 * The expected numbers have one frame more with a module and one fewer without: an address of 3676
 * inside mscorlib.dll, which that process had unmapped before. At its time nothing was there.
 */
static void net_has_these_frames(void)
{
	assert_int_equal(r.frames_seen, 128768);
	assert_int_equal(r.managed, 30033);
	assert_int_equal(r.of_unloaded, 1);
	assert_int_equal(r.image + r.of_unloaded, 98409);
	assert_int_equal(r.kernel, 7761);
	assert_int_equal(r.unknown - r.of_unloaded, 326);
	assert_int_equal(r.deepest, 120);
	assert_true(r.sum == 0x0c4ba863abdf34a6u);
	assert_int_equal(r.none, 13);
	assert_int_equal(r.one_kernel, 2);
	assert_string_equal(r.one_second, "ntoskrnl.exe+0x151e37");
	assert_string_equal(r.one_last, "ntdll.dll+0x1c1ae");
}

TEST(net_452_is_understood_to_the_last_frame)
{
	read_real("net.4.5.2.x64.etl.zip");
	net_has_these_processes_and_images();
	net_has_these_parts_of_stacks();
	net_has_these_samples();
	net_has_these_frames();
	close_real();
}

TEST(small_traces_have_no_stacks)
{
	static const char *const names[] = {"gcevents.etl.zip", "primitive-types.etl.zip",
					    "lxcore_kernel.etl"};
	static const uint32_t records[] = {71, 7, 4};
	const struct etw_stacks_count *n;
	uint32_t i, id, nrecords;

	for (i = 0; i < 3; i++) {
		read_real(names[i]);
		n = etw_stacks_counts(r.stacks);
		for (id = nrecords = 0; id < ETW_CLASS_IDS; id++) {
			nrecords += r.of_class[id];
			assert_int_equal(r.targets[id], 0);
		}
		assert_int_equal(nrecords, records[i]);
		assert_int_equal(r.runtime_stacks + r.item_stacks, 0);
		assert_int_equal(n->orphans + n->refused, 0);
		close_real();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net_452_is_understood_to_the_last_frame),
		cmocka_unit_test(small_traces_have_no_stacks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
