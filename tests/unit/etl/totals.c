/* The real traces as a source, by their known totals. */
#include "source/source.h"

#include "tests/support/etl_taking.h"
#include "tests/support/real_trace.h"
#include "tests/support/test.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One process's collections. */
struct clr {
	uint32_t pid, ngc, ngen[3], nsuspensions, nticks, nexceptions;
	uint32_t count;                      /* of the GC that runs */
	double start, suspend;               /* ms; NaN = none runs */
	double longest, longest_suspension, longest_pause, total;
	uint64_t bytes, object_bytes;
};

static struct totals {
	uint32_t samples, with_stack, disk_reads, disk_writes;
	uint64_t read_bytes, written_bytes;
	double longest_disk;
	uint32_t files_named;
	struct clr of[2];
} totals;

static double ms(const struct event *e)
{
	return (double)(e->time_ns - ETL_START) / 1e6;
}

static uint64_t number(const struct event *e, const char *name)
{
	const struct event_field *f = event_field(e, name);

	assert_non_null(f);
	assert_int_not_equal(f->type, FIELD_TEXT);
	return f->v.u;
}

static double longer(double a, double b)
{
	return a > b ? a : b;
}

static void take_clr(struct clr *c, const struct event *e)
{
	if (!strcmp(e->name, "GC/Start")) {
		c->count = (uint32_t)number(e, "Count");
		c->start = ms(e);
		c->ngen[number(e, "Depth") % 3]++;
	} else if (!strcmp(e->name, "GC/Stop") && number(e, "Count") == c->count) {
		c->ngc++;
		c->longest = longer(c->longest, ms(e) - c->start);
		c->total += ms(e) - c->start;
	} else if (!strcmp(e->name, "GC/SuspendEEStart")) {
		c->suspend = ms(e);
		c->nsuspensions++;
	} else if (!strcmp(e->name, "GC/SuspendEEStop")) {
		c->longest_suspension = longer(c->longest_suspension, ms(e) - c->suspend);
	} else if (!strcmp(e->name, "GC/RestartEEStop")) {
		c->longest_pause = longer(c->longest_pause, ms(e) - c->suspend);
	} else if (!strcmp(e->name, "GC/AllocationTick")) {
		const struct event_field *type = event_field(e, "TypeName");

		c->nticks++;
		c->bytes += number(e, "AllocationAmount64");
		if (type && !strcmp(type->v.text, "System.Object"))
			c->object_bytes += number(e, "AllocationAmount64");
	} else if (!strcmp(e->name, "Exception/Start")) {
		c->nexceptions++;
		assert_string_equal(event_field(e, "ExceptionType")->v.text,
				    "System.IO.FileNotFoundException");
		assert_true(fabs(ms(e) - 9903.345) < 0.001);
	}
}

static void take_disk(const struct event *e)
{
	bool read = !strcmp(e->name, "DiskIO/Read");

	if (!read && strcmp(e->name, "DiskIO/Write") != 0)
		return;
	totals.disk_reads += read;
	totals.disk_writes += !read;
	*(read ? &totals.read_bytes : &totals.written_bytes) += number(e, "TransferSize");
	totals.longest_disk = longer(totals.longest_disk,
				     (double)number(e, "HighResResponseTime") / 1e4);
	totals.files_named += event_field(e, "FileName") != NULL;
}

static void add_up(const struct event *e)
{
	uint32_t i;

	if (e->kind == EVENT_SAMPLE && e->stream != STREAM_CPU)
		return;                      /* objects of .NET, and that they died */
	if (e->kind == EVENT_SAMPLE) {
		totals.samples++;
		totals.with_stack += e->nstack_frames > 0;
		assert_true(e->value == 1e6);
		return;
	}
	if (e->kind != EVENT_GENERIC)
		return;
	take_disk(e);
	for (i = 0; i < 2; i++)
		if (e->process && e->process->pid == totals.of[i].pid &&
		    !strcmp(e->provider, "Microsoft-Windows-DotNETRuntime"))
			take_clr(&totals.of[i], e);
}

static void read_real(const char *name, uint32_t pid, uint32_t other)
{
	memset(&totals, 0, sizeof(totals));
	totals.of[0].pid = pid;
	totals.of[1].pid = other;
	totals.of[0].suspend = totals.of[1].suspend = NAN;
	if (begin_taking(real_trace(name), QUEUE_BYTES, NULL))
		fail_msg("%s", taking.err.text);
	taking.each = add_up;
	take_all();
	assert_int_equal(taking.rc, 0);
}

static bool near(double a, double b)
{
	return fabs(a - b) < 0.00006;
}

TEST(net_452_has_these_events)
{
	struct source_origin origin;
	const struct clr *c;

	read_real("net.4.5.2.x64.etl.zip", 3676, 3988);
	etl_source.origin(taking.source, &origin);
	end_taking();
	assert_int_equal(origin.period_ns, 1000000);
	assert_int_equal(origin.start_ns, ETL_START);
	/* 00:07:00.623616. */
	assert_int_equal(origin.start_wall_ns / 1000, 1595981220623616);
	assert_string_equal(origin.note, "");
	assert_int_equal(totals.samples, 6320);
	assert_int_equal(totals.with_stack, 6318);
	assert_int_equal(totals.disk_reads, 1208);
	assert_int_equal(totals.read_bytes, 19564544);
	assert_int_equal(totals.disk_writes, 21);
	assert_int_equal(totals.written_bytes, 286720);
	assert_int_equal(totals.files_named, 1229);
	assert_true(fabs(totals.longest_disk - 404.587) < 0.001);
	c = &totals.of[0];
	assert_int_equal(c->ngc, 263);
	assert_int_equal(c->ngen[0], 263);
	assert_true(near(c->longest, 1.3340));
	assert_true(fabs(c->total - 24.950) < 0.001);
	assert_int_equal(c->nsuspensions, 264);
	assert_true(near(c->longest_pause, 1.4177));
	assert_int_equal(c->nticks, 10371);
	assert_int_equal(c->bytes, 1107714400);
	assert_int_equal(c->object_bytes, 1105577280);
	c = &totals.of[1];
	assert_int_equal(c->ngc, 1);
	assert_int_equal(c->ngen[1], 1);
	assert_true(near(c->longest, 10.8275));
	assert_true(near(c->longest_pause, 10.8771));
	assert_int_equal(c->nticks, 11);
	assert_int_equal(c->nexceptions, 1);
}

TEST(gcevents_has_two_collections)
{
	const struct clr *c = &totals.of[0];

	read_real("gcevents.etl.zip", 179596, 0);
	end_taking();
	assert_int_equal(c->ngc, 2);
	assert_int_equal(c->ngen[1], 1);
	assert_int_equal(c->ngen[2], 1);
	assert_true(near(c->longest, 0.7027));
	assert_true(near(c->total, 0.7027 + 0.5122));
	assert_true(near(c->longest_pause, 0.7867));
	assert_int_equal(c->nticks, 12);
	assert_int_equal(c->bytes, 1449944);
}

TEST(self_describing_traces_have_their_events)
{
	read_real("primitive-types.etl.zip", 0, 0);
	taking.n = 0;
	end_taking();
	assert_int_equal(begin_taking(TRACES "primitive-types.etl.zip", QUEUE_BYTES, NULL), 0);
	take_all();
	end_taking();
	assert_int_equal(taking.n, 5);
	assert_string_equal(taking.names[0], "PrimitiveTypesTest");
	assert_int_equal((taking.events[0].time_ns - ETL_START + 500) / 1000, 2942306);
	assert_int_equal((taking.events[4].time_ns - ETL_START + 500) / 1000, 4626652);
	assert_int_equal(begin_taking(TRACES "lxcore_kernel.etl", QUEUE_BYTES, NULL), 0);
	take_all();
	end_taking();
	assert_int_equal(taking.n, 2);
	assert_string_equal(taking.names[0], "BreakPoint");
	assert_int_equal(taking.events[0].cpu, 5);
	assert_int_equal(taking.events[1].cpu, 3);
	assert_int_equal((taking.events[0].time_ns - ETL_START + 500) / 1000, 5763915);
	assert_int_equal((taking.events[1].time_ns - ETL_START + 500) / 1000, 5765135);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(net_452_has_these_events),
		cmocka_unit_test(gcevents_has_two_collections),
		cmocka_unit_test(self_describing_traces_have_their_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
