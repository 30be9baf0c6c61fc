#include "source/probe/cpu_counter_linux.h"

#include "base/array.h"
#include "base/buf.h"
#include "base/json.h"
#include "base/nearest.h"
#include "source/ring/perf_ring_linux.h"

#include <ctype.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

/* Some 100 stacks a second of a busy CPU. */
#define USUAL_CYCLES 30000001u
#define USUAL_ACCESSES 3000017u
#define USUAL_MISSES 100003u
#define USUAL_FAULTS 101u
#define PERIOD_MAX (1ull << 40)

static const struct known {
	const char *names;                   /* the first is perf's, then other spellings */
	uint32_t type;
	uint64_t config, period;
} known[] = {
	{"cycles cpu-cycles TotalCycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES,
	 USUAL_CYCLES},
	{"instructions InstructionRetired", PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS,
	 USUAL_CYCLES},
	{"ref-cycles UnhaltedReferenceCycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_REF_CPU_CYCLES,
	 USUAL_CYCLES},
	{"cache-references LLCReference", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_REFERENCES,
	 USUAL_ACCESSES},
	{"cache-misses LLCMisses CacheMisses", PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES,
	 USUAL_MISSES},
	{"branches branch-instructions BranchInstructions", PERF_TYPE_HARDWARE,
	 PERF_COUNT_HW_BRANCH_INSTRUCTIONS, USUAL_ACCESSES},
	{"branch-misses BranchMispredictions", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BRANCH_MISSES,
	 USUAL_MISSES},
	{"bus-cycles", PERF_TYPE_HARDWARE, PERF_COUNT_HW_BUS_CYCLES, USUAL_ACCESSES},
	{"stalled-cycles-frontend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_FRONTEND,
	 USUAL_CYCLES},
	{"stalled-cycles-backend", PERF_TYPE_HARDWARE, PERF_COUNT_HW_STALLED_CYCLES_BACKEND,
	 USUAL_CYCLES},
	{"page-faults faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS, USUAL_FAULTS},
	{"minor-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MIN, USUAL_FAULTS},
	{"major-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_PAGE_FAULTS_MAJ, 1},
	{"context-switches cs", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CONTEXT_SWITCHES, USUAL_FAULTS},
	{"cpu-migrations migrations", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_MIGRATIONS, 1},
	{"alignment-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_ALIGNMENT_FAULTS, 1},
	{"emulation-faults", PERF_TYPE_SOFTWARE, PERF_COUNT_SW_EMULATION_FAULTS, 1},
#define CACHE(name, cache, op, miss, period)                                                       \
	{name, PERF_TYPE_HW_CACHE,                                                                 \
	 PERF_COUNT_HW_CACHE_##cache | PERF_COUNT_HW_CACHE_OP_##op << 8 |                          \
		 PERF_COUNT_HW_CACHE_RESULT_##miss << 16, period}
	CACHE("L1-dcache-loads", L1D, READ, ACCESS, USUAL_ACCESSES),
	CACHE("L1-dcache-load-misses", L1D, READ, MISS, USUAL_MISSES),
	CACHE("L1-dcache-stores", L1D, WRITE, ACCESS, USUAL_ACCESSES),
	CACHE("L1-icache-load-misses", L1I, READ, MISS, USUAL_MISSES),
	CACHE("LLC-loads", LL, READ, ACCESS, USUAL_MISSES),
	CACHE("LLC-load-misses", LL, READ, MISS, USUAL_MISSES),
	CACHE("LLC-stores", LL, WRITE, ACCESS, USUAL_MISSES),
	CACHE("LLC-store-misses", LL, WRITE, MISS, USUAL_MISSES),
	CACHE("dTLB-loads", DTLB, READ, ACCESS, USUAL_ACCESSES),
	CACHE("dTLB-load-misses", DTLB, READ, MISS, USUAL_MISSES),
	CACHE("dTLB-store-misses", DTLB, WRITE, MISS, USUAL_MISSES),
	CACHE("iTLB-load-misses", ITLB, READ, MISS, USUAL_MISSES),
	CACHE("node-loads", NODE, READ, ACCESS, USUAL_MISSES),
	CACHE("node-load-misses", NODE, READ, MISS, USUAL_MISSES),
#undef CACHE
};

bool cpu_counter_provider(const char *provider)
{
	return strcmp(provider, CPU_COUNTER_PROVIDER) == 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* Whether it is one of names, which are separated by blanks. */
static bool is_one_of(const char *names, const char *wanted)
{
	size_t n, length = strlen(wanted);

	for (; *names; names += n + (names[n] == ' ')) {
		n = strcspn(names, " ");
		if (n == length && strncasecmp(names, wanted, n) == 0)
			return true;
	}
	return false;
}

static void first_name(const struct known *k, char out[CPU_COUNTER_NAME_MAX])
{
	snprintf(out, CPU_COUNTER_NAME_MAX, "%.*s", (int)strcspn(k->names, " "), k->names);
}

/* "r1a8" */
static bool is_raw(const char *name, uint64_t *config)
{
	size_t n = strlen(name);

	if (name[0] != 'r' || n < 2 || n > 17 ||
	    strspn(name + 1, "0123456789abcdefABCDEF") != n - 1)
		return false;
	*config = strtoull(name + 1, NULL, 16);
	return true;
}

static int unknown(const char *name, struct err *err)
{
	struct nearest nearest = {.wanted = name};
	char names[COUNT_OF(known)][CPU_COUNTER_NAME_MAX];
	struct buf near = {0};
	size_t i;

	for (i = 0; i < COUNT_OF(known); i++) {
		first_name(&known[i], names[i]);
		nearest_offer(&nearest, names[i]);
	}
	if (nearest.n)
		buf_puts(&near, "; the nearest are ");
	nearest_put(&nearest, "", "", &near);
	err_set(err, ERR_USAGE,
		"--cpu-counters: there is no counter '%.60s'%s; "
		"'recorder events " CPU_COUNTER_PROVIDER "' lists all", name, buf_text(&near));
	buf_free(&near);
	return ERR_USAGE;
}

static int find(const char *name, struct cpu_counter *out, struct err *err)
{
	size_t i;

	for (i = 0; i < COUNT_OF(known); i++) {
		if (!is_one_of(known[i].names, name))
			continue;
		first_name(&known[i], out->name);
		out->type = known[i].type;
		out->config = known[i].config;
		out->period = known[i].period;
		return 0;
	}
	if (!is_raw(name, &out->config))
		return unknown(name, err);
	out->type = PERF_TYPE_RAW;
	out->period = USUAL_MISSES;
	snprintf(out->name, sizeof(out->name), "%s", name);
	return 0;
}

/* ---- this machine ---------------------------------------------------------------------------- */

/* returns  0, or the errno of opening it */
static int try_open(const struct cpu_counter *c)
{
	struct perf_event_attr attr;
	int fd;

	perf_attr_common(&attr);
	attr.type = c->type;
	attr.config = c->config;
	attr.sample_period = c->period;
	fd = perf_event_fd(&attr, 0);
	if (fd < 0)
		return errno;
	close(fd);
	return 0;
}

static bool is_missing(int os_error)
{
	return os_error == ENOENT || os_error == EOPNOTSUPP || os_error == ENODEV ||
	       os_error == EINVAL;
}

int cpu_counter_find(const char *text, struct cpu_counter *out, struct err *err)
{
	size_t n = strcspn(text, "@:");
	char name[CPU_COUNTER_NAME_MAX], *end;
	int rc, os_error;

	*out = (struct cpu_counter){.period = 0};
	if (!n || n >= sizeof(name))
		return err_set(err, ERR_USAGE,
			       "--cpu-counters: '%.60s': write NAME or NAME@PERIOD, as in "
			       "cache-misses@100000", text);
	snprintf(name, sizeof(name), "%.*s", (int)n, text);
	rc = find(name, out, err);
	if (rc)
		return rc;
	if (text[n]) {
		out->period = strtoull(text + n + 1, &end, 10);
		if (!isdigit((unsigned char)text[n + 1]) || *end || !out->period ||
		    out->period > PERIOD_MAX)
			return err_set(err, ERR_USAGE,
				       "--cpu-counters: '%.60s': the period is a number from 1 to "
				       "%llu: one of so many is recorded", text, PERIOD_MAX);
	}
	os_error = try_open(out);
	if (is_missing(os_error))
		return err_set(err, ERR_UNSUPPORTED,
			       "--cpu-counters: this machine does not count %s: %s", out->name,
			       out->type == PERF_TYPE_SOFTWARE
				       ? "its kernel lacks it"
				       : "most virtual machines hide the counters of the processor "
					 "('recorder events " CPU_COUNTER_PROVIDER
					 "' lists what there is)");
	return 0;                            /* other errors are told where it is opened */
}

void cpu_counter_list(bool json, struct out *out)
{
	char name[CPU_COUNTER_NAME_MAX];
	struct cpu_counter c;
	struct buf line = {0};
	bool here;
	size_t i;

	for (i = 0; i < COUNT_OF(known); i++) {
		struct json j = {.out = &line};

		first_name(&known[i], name);
		c = (struct cpu_counter){.type = known[i].type, .config = known[i].config,
					 .period = known[i].period};
		here = !is_missing(try_open(&c));
		buf_reset(&line);
		if (json) {
			json_open(&j, '{');
			json_key_str(&j, "provider", CPU_COUNTER_PROVIDER);
			json_key_str(&j, "name", name);
			json_key_uint(&j, "period", c.period);
			json_key_bool(&j, "here", here);
			json_close(&j, '}');
		} else {
			buf_printf(&line, CPU_COUNTER_PROVIDER "/%s  period %llu%s", name,
				   (unsigned long long)c.period,
				   here ? "" : ", not counted on this machine");
		}
		buf_putc(&line, '\n');
		out_put(out, buf_text(&line), line.len);
	}
	buf_free(&line);
}
