/* Names of a rule that a trace lacks are reported with the nearest ones, and no others are. */
#include "analysis/known_names.h"

#include "tests/support/alloc_walk.h"
#include "tests/support/test.h"
#include "triggers/event_match.h"
#include "triggers/perf_counter.h"

#include <stdio.h>
#include <string.h>

static struct event_field fields[] = {{.name = "Count"}, {.name = "Depth"}, {.name = "Later"}};

static struct event event_named(const char *provider, const char *name, uint32_t nfields)
{
	return (struct event){.kind = EVENT_GENERIC,
			      .provider = provider,
			      .name = name,
			      .fields = fields,
			      .nfields = nfields,
			      .flags = EVENT_FLAG_ID | 7u << EVENT_ID_SHIFT};
}

/*
 * The lines about one rule over: P GC/Start (Count, Depth; then also Later) and the counter A:B:.
 */
static int tell(const struct trigger_ops *ops, const char *spec, struct buf *out)
{
	struct trigger_env env = {.process = NULL};
	struct event first = event_named("Provider", "GC/Start", 2),
		     later = event_named("Provider", "GC/Start", 3);
	struct event counter = {.kind = EVENT_COUNTER, .name = "A:B:"};
	struct known_names *k = NULL;
	struct trigger *t = NULL;
	struct err err = {0};
	int rc = trigger_open(ops, spec, &env, &t, &err);

	if (!rc)
		rc = known_names_new(&k, &err);
	if (!rc)
		rc = known_names_add(k, &first, &err);
	if (!rc)
		rc = known_names_add(k, &later, &err);
	if (!rc)
		rc = known_names_add(k, &counter, &err);
	if (!rc)
		known_names_explain(k, t, "it", out);
	known_names_free(k);
	if (t)
		trigger_close(t);
	return rc;
}

static void says(const struct trigger_ops *ops, const char *spec, const char *wanted)
{
	struct buf out = {0};

	assert_int_equal(tell(ops, spec, &out), 0);
	if (*wanted ? !strstr(buf_text(&out), wanted) : out.len > 0)
		fail_msg("%s: %s", spec, buf_text(&out));
	buf_free(&out);
}

TEST(what_is_not_there_is_told_and_what_is_there_is_not)
{
	says(&event_match_trigger, "Provider/GC/Start", "");
	says(&event_match_trigger,
	     "provider/gc/start;FieldFilter=depth>1;FieldFilter=Later=1;FieldFilter=ProcessID=1",
	     "");
	says(&event_match_trigger, "Provider/EventID(7)", "");
	says(&event_match_trigger, "Provider/EventID(8)",
	     "provider 'Provider' has no event 'EventID(8)' in it; there are 'GC/Start'\n");
	says(&event_match_trigger, "Provder/GC/Start",
	     ": it has no event of provider 'Provder'; did you mean 'Provider'?\n");
	says(&event_match_trigger, "Provider/GC/Strt", "did you mean 'GC/Start'?\n");
	says(&event_match_trigger, "Provider/GC/Start;TriggerMSec=5",
	     "has no event 'GC/Stop' in it");
	says(&event_match_trigger, "Provider/GC/Start;FieldFilter=Dept>1",
	     "'GC/Start' has no field 'Dept' in it; did you mean 'Depth'?\n");
	says(&event_match_trigger, "Provider/GC/Start;Process=nginx",
	     "it has no process 'nginx'\n");
	says(&perf_counter_trigger, "A:B:>1", "");
	says(&perf_counter_trigger, "A:C:>1",
	     "it has no value of counter 'A:C:'; did you mean 'A:B:'?\n");
}

static int step(void *ctx)
{
	struct buf out = {0};
	int rc = tell(ctx, "Provider/GC/Strt;FieldFilter=x>1", &out);

	rc = rc ? rc : buf_check(&out, "the lines", NULL);
	buf_free(&out);
	return rc;
}

TEST(lack_of_memory_is_an_error)
{
	alloc_walk(step, (void *)&event_match_trigger);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_not_there_is_told_and_what_is_there_is_not),
		cmocka_unit_test(lack_of_memory_is_an_error),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
