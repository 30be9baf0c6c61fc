/* The real traces against what PerfView says of them. */
#include "source/etl/file.h"
#include "source/etw/computed.h"
#include "tests/support/etw_baseline.h"
#include "tests/support/real_trace.h"

#include "base/os.h"
#include "tests/support/test.h"

#include <stdio.h>
#include <string.h>

struct real {
	struct etl_file *file;
	struct baseline baseline;
	struct etw_decode *decode;
	struct etw_state *state;
	struct etw_computed computed;
	struct etw_decoded event;
	struct baseline_fields fields;
	uint32_t next_line;                  /* of the baseline */
	uint32_t unknown;                    /* events that the baseline does not count */
};

/* What PerfView's baselines leave out. */
static bool is_left_out(const struct etw_record *record, const struct etw_decoded *event)
{
	struct etw_value v[AT_SAMPLE_FIELDS];

	switch (event->class ? event->class->id : ETW_OTHER) {
	case ETW_SAMPLE:
		etw_class_read(event->class, record, v, AT_SAMPLE_FIELDS);
		return v[AT_SAMPLE_TID].u == 0 && !(v[AT_SAMPLE_FLAGS].u & 3);
	case ETW_THREAD_DCSTART: case ETW_THREAD_DCSTOP:
	case ETW_FILE_NAME: case ETW_FILE_CREATE: case ETW_FILE_DELETE: case ETW_FILE_RUNDOWN:
	case ETW_STACK:
	case ETW_STACK_KEY_KERNEL:
	case ETW_STACK_KEY_USER:
	case ETW_STACK_KEY_DELETE:
	case ETW_STACK_KEY_RUNDOWN:
	case ETW_CLR_STACK: case ETW_METHOD_DCSTOP: case ETW_HYPERCALL_PAGE:
		return true;
	default:
		return strstr(event->name, "ILToNativeMap") ||
		       (strcmp(event->provider, "Windows Kernel") == 0 && !event->class);
	}
}

static double ms_of(const struct real *real, int64_t ticks)
{
	const struct etw_clock *clock = &etl_file_facts(real->file)->clock;

	return (double)(ticks - clock->t0_ticks) * 1000 / (double)clock->frequency_hz;
}

static int learn(void *ctx, const struct etw_record *record)
{
	struct real *real = ctx;

	etw_decode_learn(real->decode, record);
	etw_state_learn(real->state, record, etw_class_find(record));
	return 0;
}

/* The first five of a kind must be the next line of the baseline. */
static void check_line(struct real *real, const struct etw_record *record)
{
	const struct baseline_line *line = &real->baseline.lines[real->next_line++];
	double ms = ms_of(real, record->ticks);
	char name[300];

	assert_true(real->next_line <= real->baseline.nlines);
	snprintf(name, sizeof(name), "%s/%s", real->event.provider, real->event.name);
	assert_string_equal(name, line->name);
	assert_true(ms > line->ms - 0.00051 && ms < line->ms + 0.00051);
	assert_int_equal(record->cpu, line->cpu);
	assert_int_equal(record->payload_bytes, line->nbytes);
	baseline_compare(line, &real->event, &real->fields);
}

static int check(void *ctx, const struct etw_record *record)
{
	struct real *real = ctx;
	struct baseline_count *count;

	etw_decode_event(real->decode, record, &real->event);
	etw_computed_add(&real->computed, real->state,
			 etl_file_facts(real->file)->clock.frequency_hz, record, &real->event);
	if (is_left_out(record, &real->event))
		return 0;
	count = baseline_count(&real->baseline, real->event.provider, real->event.name);
	if (!count) {
		if (real->unknown < 20)
			printf("%s/%s is not in the baseline\n", real->event.provider,
			       real->event.name);
		real->unknown++;
		return 0;
	}
	if (count->seen++ < BASELINE_LISTED)
		check_line(real, record);
	return 0;
}

/* Run a trace against its baseline; close with close_real(). */
static void run_real(struct real *real, const char *trace, const char *baseline)
{
	struct err err;
	char path[200];

	*real = (struct real){.file = real_trace_open(trace)};
	snprintf(path, sizeof(path), TRACES "%s", baseline);
	assert_true(baseline_open(path, &real->baseline));
	assert_int_equal(etw_decode_new(&real->decode, &err), 0);
	assert_int_equal(etw_state_new(&real->state, &err), 0);
	assert_int_equal(etl_file_run(real->file, learn, real, NULL, &err), 0);
	assert_int_equal(etl_file_run(real->file, check, real, NULL, &err), 0);
	assert_int_equal(real->next_line, real->baseline.nlines);
	assert_int_equal(real->unknown, 0);
	for (uint32_t i = 0; i < real->baseline.ncounts; i++)
		if (real->baseline.counts[i].seen != real->baseline.counts[i].n)
			fail_msg("%s: %u, not %u", real->baseline.counts[i].name,
				 real->baseline.counts[i].seen, real->baseline.counts[i].n);
	printf("%s: %u kinds, %u events; values: %u equal, %u named, %u without a field of ours, "
	       "%u different\n%s\n",
	       trace, real->baseline.ncounts, real->next_line, real->fields.equal,
	       real->fields.named, real->fields.absent, real->fields.different,
	       real->fields.differences);
}

static void close_real(struct real *real)
{
	etl_file_close(real->file);
	baseline_close(&real->baseline);
	etw_decode_free(real->decode);
	etw_state_free(real->state);
}

TEST(net452_has_every_kind_and_listed_event_of_the_baseline)
{
	struct real real;
	struct etw_learned learned;

	run_real(&real, "net.4.5.2.x64.etl.zip", "net.4.5.2.x64.baseline.txt");
	assert_int_equal(real.baseline.ncounts, 152);
	assert_int_equal(real.baseline.nlines, 480);
	etw_decode_learned(real.decode, &learned);
	assert_int_equal(learned.unreadable + learned.refused + learned.torn, 0);
	/*
	 * Different: 22 paths that PerfView prints with a drive letter, 5 services' processes
	 * that it knows itself, 3 options that it masks, 5 ids that it reads from the upper half
	 * of the size, 1 address that it prints as a signed number. Without a field of ours: what
	 * it derives, and zeros of later versions.
	 */
	assert_int_equal(real.fields.equal, 2229);
	assert_int_equal(real.fields.named, 142);
	assert_int_equal(real.fields.absent, 193);
	assert_int_equal(real.fields.different, 36);
	close_real(&real);
}

TEST(gcevents_has_every_kind_and_listed_event_of_the_baseline)
{
	struct real real;

	run_real(&real, "gcevents.etl.zip", "gcevents.baseline.txt");
	assert_int_equal(real.baseline.ncounts, 21);
	assert_int_equal(real.fields.equal, 250);
	assert_int_equal(real.fields.different, 0);
	close_real(&real);
}

TEST(primitive_types_have_the_values_of_the_baseline)
{
	struct real real;

	run_real(&real, "primitive-types.etl.zip", "primitive-types.baseline.txt");
	assert_int_equal(real.baseline.nlines, 6);
	assert_int_equal(real.fields.equal, 76);
	/* PerfView prints SYSTEMTIME's weekday for the fraction. */
	assert_int_equal(real.fields.different, 5);
	close_real(&real);
}

struct break_point {
	struct etw_decode *decode;
	uint32_t n;
};

static int check_break_point(void *ctx, const struct etw_record *record)
{
	static const struct {
		const char *function;
		uint64_t line;
	} known[] = {{"LxpDrvFsTypeMount", 10528}, {"LxpInstanceStart", 2659}};
	struct break_point *seen = ctx;
	struct etw_decoded decoded;
	struct event e = {.fields = decoded.fields};

	etw_decode_event(seen->decode, record, &decoded);
	e.nfields = decoded.nfields;
	if (strcmp(decoded.provider, "Microsoft.Windows.Subsystem.LxCore") != 0)
		return 0;
	assert_true(seen->n < 2);
	assert_string_equal(decoded.name, "BreakPoint");
	assert_int_equal(decoded.nfields, 9);
	assert_false(decoded.cut);
	assert_string_equal(event_field(&e, "Function")->v.text, known[seen->n].function);
	assert_int_equal(event_field(&e, "Line")->v.u, known[seen->n].line);
	assert_string_equal(event_field(&e, "ExecutablePath")->v.text, "");
	seen->n++;
	return 0;
}

TEST(lxcore_has_its_two_break_points)
{
	struct etl_file *file = real_trace_open("lxcore_kernel.etl");
	struct break_point seen = {.n = 0};

	assert_int_equal(etw_decode_new(&seen.decode, NULL), 0);
	assert_int_equal(etl_file_run(file, check_break_point, &seen, NULL, NULL), 0);
	assert_int_equal(seen.n, 2);
	etw_decode_free(seen.decode);
	etl_file_close(file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net452_has_every_kind_and_listed_event_of_the_baseline),
		cmocka_unit_test(gcevents_has_every_kind_and_listed_event_of_the_baseline),
		cmocka_unit_test(primitive_types_have_the_values_of_the_baseline),
		cmocka_unit_test(lxcore_has_its_two_break_points),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
